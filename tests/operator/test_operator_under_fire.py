"""Whatever call fails, before its effect or after, and wherever the operator dies: in the end all is as declared, and there once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cut_connections import FAULTS, HttpFault
from desks import Desk, Killed, make_catalog, make_realm
from fires import Stage, assert_as_declared, assert_gone, is_gone, is_ready

from headwater.errors import UnavailableError, UnknownOutcomeError
from headwater.settings import Settings
from kubetest import Cluster
from tiers import Sample

pytestmark = pytest.mark.long

Story = Callable[[Desk], None]

STORE_FAULTS: dict[str, dict[str, Any]] = {
    "not done": {"before": True, "fault": UnavailableError("injected")},
    "lost on its way": {"before": True, "fault": UnknownOutcomeError("injected")},
    "answer lost": {"before": False, "fault": UnknownOutcomeError("injected")},
    "killed before": {"before": True, "fault": Killed()},
    "killed after": {"before": False, "fault": Killed()},
}

AT = {"not done": (1, 2), "lost on its way": (1, 5), "killed before": (3, 5), "killed after": (5, 5)}
"""Which call meets the fault first, and how many calls further the next ones; with an answer that is lost it is every call."""


@pytest.fixture
def stage(cluster: Cluster, settings: Settings) -> Iterator[Stage]:
    made = Stage(cluster, settings)
    yield made
    made.end()


def begin_nothing(stage: Stage) -> None:
    stage.declare()


def begin_with_a_change(stage: Stage) -> None:
    """All is ready, and then declared otherwise."""
    stage.declare()
    desk = stage.operator()
    desk.work()
    assert is_ready(desk)
    desk.apply(make_realm(properties={"team": "sales"}, state="Inactive"), make_catalog(properties={"tier": "gold"}))
    desk.work()
    desk.apply(make_realm(properties={"team": "lake"}))
    desk.annotate("Realm", "acme", rotate_credentials="t1", run_now="gc")


def begin_with_a_deletion(stage: Stage) -> None:
    stage.declare(deletionPolicy="Purge")
    desk = stage.operator()
    desk.work()
    assert is_ready(desk)
    stage.confirm_and_delete(desk)


STORIES = {
    "made": (begin_nothing, is_ready, assert_as_declared),
    "changed": (begin_with_a_change, is_ready, lambda desk: assert_as_declared(desk, properties={"team": "lake"})),
    "purged": (begin_with_a_deletion, is_gone, assert_gone),
}


def live_on(stage: Stage, desk: Desk, until: Callable[[Desk], bool]) -> Desk:
    """Go on until it is so; who dies is followed by another. Returns the last one."""
    for _ in range(3):
        try:
            desk.go_on(300, until=lambda at=desk: until(at), step=5)
        except Killed:
            desk = stage.operator()
            continue
        break
    return desk


def burn(stage: Stage, story: str, at: int, light: Callable[[Desk], None], has_burnt: Callable[[Desk], bool]) -> bool:
    """One try: begin, let something fail, see that the end is right. False when the story was over before it could fail."""
    begin, until, assert_end = STORIES[story]
    stage.reset()
    begin(stage)
    desk = stage.operator()
    light(desk)
    last = live_on(stage, desk, until)
    if not has_burnt(desk):
        return False
    stage.heal()
    desk.http.fail(None)
    try:
        assert_end(last)
    except BaseException as failed:
        raise AssertionError(f"{story}, with a fault at call {at}: {stage.faults.calls} {desk.http.requests}") from failed
    return True


@pytest.mark.parametrize("fault", STORE_FAULTS)
@pytest.mark.parametrize("story", STORIES)
def test_each_call_of_the_store_may_fail(stage: Stage, story: str, fault: str, sample: Sample) -> None:
    first, step = AT.get(fault, (1, 1))

    def try_at(at: int) -> bool:
        def light(desk: Desk) -> None:
            stage.faults.calls.clear()
            stage.faults.fail(at=at, **STORE_FAULTS[fault])

        return burn(stage, story, at, light, lambda desk: len(stage.faults.calls) >= at)

    tries = sum(1 for _ in itertools.takewhile(try_at, sample.one_in(10, itertools.count(first, step))))

    assert tries >= sample.at_least(10)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("story", STORIES)
def test_each_request_to_the_api_server_may_fail(stage: Stage, story: str, fault: HttpFault, sample: Sample) -> None:
    def try_at(at: int) -> bool:
        seen: list[int] = []

        def light(desk: Desk) -> None:
            desk.http.fail(fault, at=at)

        def has_burnt(desk: Desk) -> bool:
            seen.append(len(desk.http.requests))
            return seen[-1] >= at

        return burn(stage, story, at, light, has_burnt)

    tries = sum(1 for _ in itertools.takewhile(try_at, sample.one_in(10, itertools.count(1))))

    assert tries >= sample.at_least(5)


@pytest.mark.parametrize("story", STORIES)
def test_operator_may_die_between_any_two_steps(stage: Stage, story: str, sample: Sample) -> None:
    begin, until, assert_end = STORIES[story]

    def try_at(at: int) -> bool:
        passed = itertools.count(1)
        died = []

        def fence() -> None:
            if next(passed) == at:
                died.append(at)
                raise Killed

        stage.reset()
        begin(stage)
        last = live_on(stage, stage.operator(fence=fence), until)
        if died:
            assert_end(last)
        return bool(died)

    tries = sum(1 for _ in itertools.takewhile(try_at, sample.one_in(5, itertools.count(1))))

    assert tries >= sample.at_least(10)


@pytest.mark.parametrize("story", STORIES)
def test_two_operators_without_a_leader_do_no_harm(stage: Stage, story: str) -> None:
    begin, until, assert_end = STORIES[story]
    for _ in range(5):
        stage.reset()
        begin(stage)
        desks = [stage.operator() for _ in range(2)]
        at_once = threading.Barrier(2)

        def run(desk: Desk, at_once: threading.Barrier = at_once) -> None:
            at_once.wait(10)
            for _ in range(6):
                desk.work()

        threads = [threading.Thread(target=run, args=(desk,)) for desk in desks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        live_on(stage, desks[0], until)
        desks[0].work_off()
        desks[0].go_on(340, step=340)  # what one of them noticed was not told to the other
        assert_end(desks[0])
