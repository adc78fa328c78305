"""What a list says of a watch: what it owes, what left without an event, and since when it is silent."""

from __future__ import annotations

from typing import Any

import pytest

from fake_clock import FakeClock
from headwater_operator.runtime.informer_cache import ResourceKey
from headwater_operator.runtime.relist import Sighting, WatchProgress, WatchTarget

REALMS = WatchTarget("Realm", None)
ACME = ResourceKey("Realm", "default", "acme")


def body(name: str = "acme", *, uid: str = "u1", version: int = 1) -> dict[str, Any]:
    metadata = {"namespace": "default", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"kind": "Realm", "metadata": metadata}


def listed(*, uid: str = "u1", version: int = 1) -> dict[ResourceKey, Sighting]:
    return {ACME: Sighting(uid, str(version))}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def progress(clock: FakeClock) -> WatchProgress:
    return WatchProgress([REALMS], clock)


def test_empty_list_completes_a_watch(progress: WatchProgress) -> None:
    assert not progress.is_complete

    progress.end_list(progress.begin_list(REALMS), {})

    assert progress.is_complete


def test_watch_is_complete_when_it_has_brought_what_was_listed(progress: WatchProgress) -> None:
    progress.end_list(progress.begin_list(REALMS), listed(version=2))
    progress.note_event(None, body(version=1))
    assert (progress.is_complete, progress.owed([REALMS])) == (False, 1)

    progress.note_event("MODIFIED", body(version=2))

    assert (progress.is_complete, progress.owed([REALMS])) == (True, 0)


def test_resource_that_a_list_lacks_has_left(progress: WatchProgress) -> None:
    progress.note_event(None, body())
    begun = progress.begin_list(REALMS)

    assert progress.end_list(begun, {}) == {ACME: "u1"}
    assert progress.end_list(progress.begin_list(REALMS), {}) == {}


def test_resource_that_came_during_a_list_has_not_left(progress: WatchProgress) -> None:
    begun = progress.begin_list(REALMS)
    progress.note_event("ADDED", body())

    assert progress.end_list(begun, {}) == {}


def test_resource_that_was_made_again_has_left_and_is_owed(progress: WatchProgress) -> None:
    progress.note_event("ADDED", body(uid="u1", version=1))

    assert progress.end_list(progress.begin_list(REALMS), listed(uid="u2", version=5)) == {ACME: "u1"}
    assert progress.owed([REALMS]) == 1


def test_late_word_of_an_earlier_resource_settles_nothing(progress: WatchProgress) -> None:
    progress.end_list(progress.begin_list(REALMS), listed(uid="u2", version=5))
    progress.note_event("DELETED", body(uid="u1", version=4))

    assert progress.owed([REALMS]) == 1


def test_resource_that_is_owed_and_deleted_is_owed_no_more(progress: WatchProgress) -> None:
    progress.end_list(progress.begin_list(REALMS), listed())
    progress.note_event("DELETED", body(version=3))

    assert progress.owed([REALMS]) == 0


def test_change_is_a_sign_of_life(progress: WatchProgress, clock: FakeClock) -> None:
    progress.note_event("ADDED", body())
    clock.advance(7)

    assert progress.ages() == {"Realm": 7}


def test_list_that_the_watch_keeps_up_with_shows_life(progress: WatchProgress, clock: FakeClock) -> None:
    progress.note_event("ADDED", body())
    clock.advance(50)
    begun = progress.begin_list(REALMS)
    clock.advance(3)
    progress.end_list(begun, listed())

    assert progress.ages() == {"Realm": 3}


def test_list_that_shows_more_than_the_watch_brought_is_none(progress: WatchProgress, clock: FakeClock) -> None:
    progress.note_event("ADDED", body())
    clock.advance(50)
    progress.end_list(progress.begin_list(REALMS), listed(version=2))

    assert progress.ages() == {"Realm": 50}


def test_watch_that_begins_with_a_list_again_is_noticed(progress: WatchProgress) -> None:
    progress.end_list(progress.begin_list(REALMS), listed())

    assert [progress.note_event(None, body()) for _ in range(2)] == [False, True]


def test_watch_of_one_namespace_is_silent_by_itself(clock: FakeClock) -> None:
    targets = [WatchTarget("Realm", "default"), WatchTarget("Realm", "other")]
    progress = WatchProgress(targets, clock)
    for target in targets:
        progress.end_list(progress.begin_list(target), {})
    clock.advance(9)
    progress.note_event("ADDED", body())

    assert progress.ages() == {"Realm": 9}
