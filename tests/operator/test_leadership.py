"""The Lease: one leads, the others wait; who may have lost it acts no more. Times are short here."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from answer_server import status
from leases import LeaseServer, lease_server

from headwater.errors import FencedError
from headwater_operator.kube import KubeApi, KubeConnection, KubeTimeouts, plain_connection
from headwater_operator.runtime.leader_election import Leadership, LeaseTiming, UncontestedLead
from kubetest import wait_for

TIMING = LeaseTiming(duration=0.9, renew_deadline=0.6, renew=0.1, retry=0.05)
PATIENT = LeaseTiming(duration=180, renew_deadline=120, renew=0.1, retry=0.05)
"""Of a lead that must not be lost: a busy machine alone takes longer than TIMING allows."""
NEVER = threading.Event()


@pytest.fixture
def server() -> Iterator[LeaseServer]:
    with lease_server() as started:
        yield started


@pytest.fixture
def connection(server: LeaseServer) -> Iterator[KubeConnection]:
    opened = plain_connection(server.url)
    yield opened
    opened.close()


class Contender:
    """A process that would lead, here as an object: what it was told, and the lead itself."""

    def __init__(self, connection: KubeConnection, name: str, timing: LeaseTiming) -> None:
        self.losses: list[str] = []
        self.stop = threading.Event()
        api = KubeApi(connection, timeouts=KubeTimeouts(0.5, 0.5))
        self.lead = Leadership(api, namespace="n", name="l", identity=name, timing=timing, on_lost=self.losses.append)
        self.thread = threading.Thread(target=self.lead.acquire, args=(self.stop,))

    def begin(self) -> Contender:
        self.thread.start()
        return self

    def wait(self, *, seconds: float = 10) -> Contender:
        wait_for(lambda: self.lead.is_held, seconds=seconds, every=0.01, why=lambda: f"{self.lead.identity} does not lead")
        return self

    def end(self) -> None:
        self.stop.set()
        if self.thread.ident is not None:
            self.thread.join()
        self.lead.release_lead()


@pytest.fixture
def make_contender(connection: KubeConnection) -> Iterator[Callable[..., Contender]]:
    made: list[Contender] = []

    def make(name: str, timing: LeaseTiming = TIMING) -> Contender:
        made.append(Contender(connection, name, timing))
        return made[-1]

    yield make
    for contender in made:
        contender.end()


Make = Callable[..., Contender]


def test_first_one_makes_the_lease_at_once(make_contender: Make, server: LeaseServer) -> None:
    make_contender("a").begin().wait(seconds=TIMING.duration / 2)

    assert server.lease is not None
    spec = server.lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 1, 0)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", spec["renewTime"])


def test_lease_that_is_renewed_is_left_to_its_holder(make_contender: Make, server: LeaseServer) -> None:
    make_contender("a").begin().wait()
    other = make_contender("b").begin()
    until = server.version + 20
    wait_for(lambda: server.version > until, why=lambda: server.version)

    assert (other.lead.is_held, server.history) == (False, ["a"])


def test_lease_given_back_is_taken_at_the_next_look(make_contender: Make, server: LeaseServer) -> None:
    first = make_contender("a", LeaseTiming(duration=60, renew_deadline=30)).begin().wait()
    other = make_contender("b", LeaseTiming(duration=60, renew_deadline=30, retry=0.05)).begin()
    first.end()
    other.wait(seconds=5)

    assert server.lease is not None
    assert server.history == ["a", "", "b"]
    assert server.lease["spec"]["leaseTransitions"] == 1


def test_lease_that_stands_still_is_taken_over_and_not_before(make_contender: Make, server: LeaseServer) -> None:
    server.write(holderIdentity="gone", renewTime="2099-01-01T00:00:00.000000Z", leaseDurationSeconds=1)
    began = time.monotonic()
    make_contender("b", LeaseTiming(duration=1.0, renew_deadline=0.6, renew=0.1, retry=0.02)).begin().wait()

    assert time.monotonic() - began >= 1.0
    assert server.history == ["gone", "b"]


@pytest.mark.long
def test_times_in_the_lease_do_not_matter(make_contender: Make, server: LeaseServer) -> None:
    timing = LeaseTiming(
        duration=10.0, renew_deadline=0.6, renew=0.1, retry=0.05
    )  # a busy machine stops this thread for seconds
    other = make_contender("b", timing).begin()
    for n in range(110):  # longer than the duration, with a clock that is thirty years late
        server.write(holderIdentity="a", renewTime=f"1996-01-01T00:00:00.{n:06}Z")
        threading.Event().wait(0.1)

    assert (other.lead.is_held, server.history) == (False, ["a"])


def test_holder_that_counts_on_more_time_gets_it(make_contender: Make, server: LeaseServer) -> None:
    server.write(holderIdentity="gone", leaseDurationSeconds=2)
    began = time.monotonic()
    make_contender("b").begin().wait()

    assert time.monotonic() - began >= 2.0


def test_fence_lets_nobody_pass_before_leading(make_contender: Make) -> None:
    with pytest.raises(FencedError, match="does not hold"):
        make_contender("a").lead.fence()


def test_leader_passes_the_fence(make_contender: Make) -> None:
    make_contender("a").begin().wait().lead.fence()


def test_leader_that_could_not_renew_is_fenced_before_a_takeover(make_contender: Make, server: LeaseServer) -> None:
    first = make_contender("a").begin().wait()
    server.is_away = True
    wait_for(lambda: not first.lead.is_held, every=0.01)
    held_by_another = len(server.history) > 1
    with pytest.raises(FencedError):
        first.lead.fence()

    assert not held_by_another
    assert len(first.losses) == 1


def test_loss_is_told_once(make_contender: Make, server: LeaseServer) -> None:
    first = make_contender("a").begin().wait()
    server.is_away = True
    wait_for(lambda: not first.lead.is_held, every=0.01)
    for _ in range(3):
        with pytest.raises(FencedError):
            first.lead.fence()
    wait_for(lambda: first.lead._thread is not None and not first.lead._thread.is_alive())

    assert len(first.losses) == 1


def test_fenced_leader_does_not_come_back_when_the_server_does(make_contender: Make, server: LeaseServer) -> None:
    first = make_contender("a").begin().wait()
    server.is_away = True
    wait_for(lambda: not first.lead.is_held, every=0.01)
    server.is_away = False
    wait_for(lambda: first.losses)

    assert not first.lead.is_held


@pytest.mark.parametrize(
    "trouble",
    [
        status(429, "TooManyRequests", "busy"),
        status(500, "InternalError", "oops"),
        (503, b"<html>"),
        status(401, "Unauthorized", "?"),
    ],
)
def test_server_in_trouble_for_a_moment_ends_no_lead(
    make_contender: Make, server: LeaseServer, trouble: tuple[Any, ...]
) -> None:
    first = make_contender("a", PATIENT).begin().wait()
    server.trouble += [trouble] * 3
    wait_for(lambda: not server.trouble)
    until = server.version + 3
    wait_for(lambda: server.version >= until)

    assert (first.lead.is_held, first.losses, server.history) == (True, [], ["a"])


def test_server_in_trouble_at_the_start_is_waited_for(make_contender: Make, server: LeaseServer) -> None:
    server.trouble += [status(500, "InternalError", "oops")] * 4

    make_contender("a").begin().wait(seconds=5)


def test_renewal_without_an_answer_is_no_loss(make_contender: Make, server: LeaseServer) -> None:
    first = make_contender("a", PATIENT).begin().wait()
    server.swallow = 1
    wait_for(lambda: not server.swallow)
    until = server.version + 3
    wait_for(lambda: server.version >= until)

    assert (first.lead.is_held, first.losses) == (True, [])


def test_leader_that_was_not_told_finds_out(make_contender: Make, server: LeaseServer) -> None:
    server.swallow = 1
    make_contender("a").begin().wait(seconds=5)

    assert server.history == ["a"]


def test_note_on_the_lease_by_another_is_no_loss(make_contender: Make, server: LeaseServer) -> None:
    first = make_contender("a", PATIENT).begin().wait()
    server.write(note="kept")
    until = server.version + 3
    wait_for(lambda: server.version >= until)

    assert (first.lead.is_held, first.losses) == (True, [])
    assert server.lease is not None and server.lease["spec"]["note"] == "kept"


def test_lease_that_another_has_taken_is_lost_at_once(make_contender: Make, server: LeaseServer) -> None:
    first = make_contender("a").begin().wait()
    server.write(holderIdentity="b")
    wait_for(lambda: first.losses)

    assert first.losses == ["b holds it"]
    with pytest.raises(FencedError):
        first.lead.fence()


def test_lease_that_is_deleted_is_lost(make_contender: Make, server: LeaseServer) -> None:
    first = make_contender("a").begin().wait()
    server.delete()
    wait_for(lambda: first.losses)

    assert first.losses == ["somebody deleted it"]


def test_observer_of_a_deleted_lease_waits_as_if_it_stood(make_contender: Make, server: LeaseServer) -> None:
    server.write(holderIdentity="a")
    other = make_contender("b").begin()
    wait_for(lambda: other.lead.seen_seconds_ago < 1)
    server.delete()
    deleted = time.monotonic()
    other.wait()

    assert time.monotonic() - deleted >= TIMING.duration


def test_waiter_that_stops_takes_nothing(make_contender: Make, server: LeaseServer) -> None:
    server.write(holderIdentity="a")
    other = make_contender("b").begin()
    other.stop.set()
    other.thread.join(5)

    assert not other.lead.is_held and not other.thread.is_alive()


def test_giving_back_without_having_led_writes_nothing(make_contender: Make, server: LeaseServer) -> None:
    make_contender("a").lead.release_lead()

    assert server.version == 0


def test_fence_lets_nobody_pass_after_giving_back(make_contender: Make) -> None:
    first = make_contender("a", PATIENT).begin().wait()
    first.end()

    with pytest.raises(FencedError):
        first.lead.fence()
    assert first.losses == []


def test_server_that_is_away_does_not_hold_up_the_end(make_contender: Make, server: LeaseServer) -> None:
    first = make_contender("a").begin().wait()
    server.is_away = True
    first.end()

    assert not first.lead.is_held


@pytest.mark.long
def test_lease_that_many_take_at_once_goes_to_one(connection: KubeConnection, server: LeaseServer) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    timing = LeaseTiming(duration=0.4, renew_deadline=0.25, renew=0.05, retry=0.01)
    acts: list[tuple[float, str]] = []
    over = threading.Event()

    def live(name: str, chance: random.Random) -> None:
        for n in range(6):
            contender = Contender(connection, f"{name}{n}", timing)
            if not contender.lead.acquire(over):
                return
            until = time.monotonic() + chance.uniform(0.0, 0.2)
            while time.monotonic() < until and _acted(contender, acts):
                threading.Event().wait(0.002)
            if chance.random() < 0.6:
                contender.lead.release_lead()
            else:
                contender.lead._stopped.set()  # as if it had been killed

    threads = [threading.Thread(target=live, args=(name, random.Random(chance.random()))) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    over.set()

    order = [name for _, name in sorted(acts)]
    turns = [name for n, name in enumerate(order) if n == 0 or order[n - 1] != name]
    assert len(turns) == len(set(turns)), f"one acted between two acts of another; seed {seed}"
    assert len(turns) > 12, f"seed {seed}"
    assert set(turns) <= set(server.history), f"seed {seed}"


def _acted(contender: Contender, acts: list[tuple[float, str]]) -> bool:
    """One act of a leader; its time is taken before the fence is passed, so it led then."""
    at = time.monotonic()
    try:
        contender.lead.fence()
    except FencedError:
        return False
    acts.append((at, contender.lead.identity))
    return True


def test_leading_without_a_lease_is_never_lost() -> None:
    lead = UncontestedLead()

    assert lead.acquire(NEVER)
    lead.fence()
    lead.release_lead()
    assert lead.is_held
