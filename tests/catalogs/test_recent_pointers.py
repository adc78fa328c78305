"""The commits that a branch pointed to last, each checked."""

from __future__ import annotations

import pytest

from headwater.catalogs import CONTENT, Catalog, ContentKey, Namespace, PointerState, Put
from headwater.catalogs.history import recent_pointers
from headwater.commits import Commit
from headwater.errors import NotFoundError, RefusedError
from headwater.store import ObjectId, RealmStore

SOUND, NO_CONTENT, NO_COMMIT = (
    PointerState.COMMIT_CONSISTENT,
    PointerState.COMMIT_CONTENT_INCONSISTENT,
    PointerState.COMMIT_INCONSISTENT,
)


@pytest.fixture
def store_url() -> str:
    return "memory://"


@pytest.fixture
def commits(catalog: Catalog) -> list[ObjectId]:
    made = [catalog.commit("main", [Put(ContentKey.of(f"n{number}"), Namespace())]).commit_id for number in range(4)]
    return [commit_id for commit_id in made if commit_id is not None]


def forget(rows: RealmStore, object_id: ObjectId) -> None:
    """Lose an object, as a fail-over to a replica that lags does."""
    rows.store.backend.delete_objects([key for batch in rows.scan_objects() for key in batch if key.id == object_id])
    rows.store.cache.clear()


def content_of(rows: RealmStore, commit_id: ObjectId) -> ObjectId:
    commit = rows.read_object(commit_id, Commit)
    return next(put.object_id for put in commit.operations if put.index == CONTENT and put.object_id is not None)


def test_pointers_are_the_head_and_those_before_it(catalog: Catalog, commits: list[ObjectId]) -> None:
    recent = catalog.recent_pointers("main")

    assert recent.ref == catalog.branch("main")
    assert recent.current is not None and recent.current.entry == next(catalog.log("main"))
    assert [recent.current.commit_id, *(pointer.commit_id for pointer in recent.previous)] == commits[::-1]
    assert {pointer.state for pointer in (recent.current, *recent.previous)} == {SOUND}
    assert recent.log is PointerState.NOT_CHECKED


def test_lost_commit_shows_at_its_pointer(catalog: Catalog, realm: RealmStore, commits: list[ObjectId]) -> None:
    forget(realm, content_of(realm, commits[2]))
    forget(realm, commits[1])

    recent = catalog.recent_pointers(None)

    assert recent.current is not None and recent.current.state is SOUND
    assert [pointer.state for pointer in recent.previous] == [NO_CONTENT, NO_COMMIT, SOUND]
    assert [pointer.entry is None for pointer in recent.previous] == [False, True, False]


@pytest.mark.parametrize(("most", "state"), [(2, SOUND), (3, NO_CONTENT)])
def test_contents_of_a_log_are_looked_for_up_to_a_bound(
    catalog: Catalog,
    realm: RealmStore,
    commits: list[ObjectId],
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    state: PointerState,
) -> None:
    monkeypatch.setattr(recent_pointers, "_SCANNED_CONTENTS", most)
    forget(realm, content_of(realm, commits[1]))

    assert catalog.recent_pointers("main", scan=4).log is state


@pytest.mark.parametrize(("scan", "state"), [(0, PointerState.NOT_CHECKED), (2, SOUND), (3, NO_CONTENT), (5000, NO_CONTENT)])
def test_log_is_checked_as_far_as_asked(
    catalog: Catalog, realm: RealmStore, commits: list[ObjectId], scan: int, state: PointerState
) -> None:
    forget(realm, content_of(realm, commits[1]))

    assert catalog.recent_pointers("main", scan=scan).log is state


def test_lost_head_is_told(catalog: Catalog, realm: RealmStore, commits: list[ObjectId]) -> None:
    forget(realm, commits[3])

    recent = catalog.recent_pointers("main", scan=5)

    assert recent.current is not None and (recent.current.state, recent.log) == (NO_COMMIT, NO_COMMIT)
    assert {pointer.state for pointer in recent.previous} == {SOUND}


def test_branch_without_a_commit_has_no_pointers(catalog: Catalog) -> None:
    recent = catalog.recent_pointers("main", scan=5)

    assert (recent.current, recent.previous, recent.log) == (None, (), PointerState.NOT_CHECKED)
    with pytest.raises(NotFoundError):
        catalog.recent_pointers("nothing")
    with pytest.raises(RefusedError):
        catalog.recent_pointers("main", scan=-1)
