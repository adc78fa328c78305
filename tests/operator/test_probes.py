"""Liveness and readiness: what they ask, what they say where it is not well, and the server that answers them."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from fake_clock import FakeClock
from headwater.errors import UnavailableError
from headwater.monitoring import Health, ProbeServer
from headwater_operator.runtime.health import LookTimes, ProcessHealth
from headwater_operator.runtime.informer_cache import ResourceKey
from headwater_operator.runtime.leader_election import UncontestedLead
from headwater_operator.runtime.operator_settings import OperatorSettings

ACME = ResourceKey("Realm", "default", "acme")


@dataclass
class Standby(UncontestedLead):
    """A lead that is as the test says."""

    is_held: bool = False
    seen_seconds_ago: float = 1.0


@dataclass
class Watches:
    is_listed: bool = False
    heard: dict[str, float] = field(default_factory=dict)

    def ages(self) -> dict[str, float]:
        return self.heard


@pytest.fixture
def lead() -> Standby:
    return Standby()


@pytest.fixture
def vitals(lead: Standby, clock: FakeClock) -> ProcessHealth:
    """Of a process that stands by, and has met the store."""
    return ProcessHealth(lead, OperatorSettings(), clock, has_met_store=True)


@pytest.fixture
def watches(vitals: ProcessHealth, lead: Standby, clock: FakeClock) -> Watches:
    """Those of the process once it leads."""
    lead.is_held = True
    begun = Watches()
    vitals.begin_leading(begun, LookTimes(lambda key: None, clock))
    return begun


def wrong(findings: dict[str, str]) -> dict[str, str]:
    return {what: why for what, why in findings.items() if why}


def test_standby_is_alive_and_ready(vitals: ProcessHealth) -> None:
    assert (wrong(vitals.alive()), wrong(vitals.ready())) == ({}, {})


def test_standby_is_ready_only_while_it_sees_the_lease(vitals: ProcessHealth, lead: Standby) -> None:
    lead.seen_seconds_ago = 31

    assert wrong(vitals.ready()) == {"Lease": "the Lease was not read for 31s"}
    assert wrong(vitals.alive()) == {}


def test_standby_that_never_saw_the_lease_says_so(vitals: ProcessHealth, lead: Standby) -> None:
    lead.seen_seconds_ago = float("inf")

    assert wrong(vitals.ready()) == {"Lease": "the Lease was not read yet"}


def test_operator_that_never_met_the_store_replaces_no_other(vitals: ProcessHealth) -> None:
    vitals.has_met_store = False

    assert wrong(vitals.ready()) == {"store": "the store has not answered yet"}


def test_leader_is_ready_when_everything_was_listed(vitals: ProcessHealth, watches: Watches) -> None:
    before = wrong(vitals.ready())
    watches.is_listed = True

    assert before == {"lists": "not everything that there is was listed yet"}
    assert wrong(vitals.ready()) == {}


def test_operator_that_stops_is_alive_and_not_ready(vitals: ProcessHealth, watches: Watches) -> None:
    watches.is_listed, vitals.is_stopping = True, True

    assert wrong(vitals.ready()) == {"process": "it is stopping"}
    assert wrong(vitals.alive()) == {}


def test_leader_whose_watch_is_silent_is_not_alive(vitals: ProcessHealth, watches: Watches) -> None:
    watches.heard = {"Realm": 5.0, "Catalog": 181.0}

    assert wrong(vitals.alive()) == {"watch of Catalog resources": "nothing was heard of it for 3m1s"}


def test_watch_never_heard_of_has_time_from_the_start(vitals: ProcessHealth, watches: Watches, clock: FakeClock) -> None:
    watches.heard = {"Realm": 5.0}
    clock.advance(180)
    before = wrong(vitals.alive())
    clock.advance(1)

    assert before == {}
    assert list(wrong(vitals.alive())) == ["watch of Catalog resources"]


def test_reconcile_that_hangs_is_told_with_its_resource(lead: Standby, clock: FakeClock) -> None:
    lead.is_held = True
    begun, goes_on = threading.Event(), threading.Event()

    def hang(key: ResourceKey) -> None:
        begun.set()
        goes_on.wait(30)

    looks, vitals = LookTimes(hang, clock), ProcessHealth(lead, OperatorSettings(), clock)
    vitals.begin_leading(Watches(heard={"Realm": 0.0, "Catalog": 0.0}), looks)
    thread = threading.Thread(target=looks, args=(ACME,))
    thread.start()
    assert begun.wait(10)
    clock.advance(601)
    found = wrong(vitals.alive())
    goes_on.set()
    thread.join()

    assert found == {"reconciles": "that of Realm default/acme has not ended for 10m1s"}
    assert wrong(vitals.alive()) == {}


def test_look_that_fails_is_not_told_as_hanging(clock: FakeClock) -> None:
    def fail(key: ResourceKey) -> None:
        raise RuntimeError("no")

    looks = LookTimes(fail, clock)
    with pytest.raises(RuntimeError):
        looks(ACME)

    assert looks.longest() is None


@pytest.fixture
def serve() -> Iterator[Callable[[Health], ProbeServer]]:
    started: list[ProbeServer] = []

    def start(health: Health) -> ProbeServer:
        started.append(ProbeServer("127.0.0.1", 0, health=health, render=lambda: b"a_metric 1\n", content_type="text/plain"))
        started[-1].start()
        return started[-1]

    yield start
    for server in started:
        server.stop()


def ask(server: ProbeServer, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


Serve = Callable[[Health], ProbeServer]


def test_process_that_starts_is_alive_and_not_ready(serve: Serve) -> None:
    server = serve(Health())

    assert ask(server, "/healthz") == (200, "ok\n")
    assert ask(server, "/readyz") == (503, "start: the process is starting\n")


def test_probe_says_each_thing_that_it_asked(serve: Serve) -> None:
    server = serve(Health(ready=lambda: {"Lease": "", "store": "it does not answer"}))

    assert ask(server, "/readyz") == (503, "Lease: ok\nstore: it does not answer\n")


def test_metrics_are_served_as_text(serve: Serve) -> None:
    assert ask(serve(Health()), "/metrics") == (200, "a_metric 1\n")


def test_port_that_is_taken_is_told(serve: Serve) -> None:
    taken = serve(Health()).port
    other = ProbeServer("127.0.0.1", taken, health=Health(), render=bytes, content_type="text/plain")

    with pytest.raises(UnavailableError, match=f"port {taken}"):
        other.start()


def test_server_is_gone_after_its_end(serve: Serve) -> None:
    server = serve(Health())
    server.stop()

    with pytest.raises(urllib.error.URLError):
        ask(server, "/healthz")
