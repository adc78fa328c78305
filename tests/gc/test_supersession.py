"""What was HEAD within the readers' grace stays readable; after it, only what retention keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import Catalog, ContentKey
from headwater.commits import commit_change, read_log
from headwater.errors import ExpiredError, RefusedError
from headwater.gc import collect_realm
from headwater.index import IndexValue
from headwater.realms import HistoryRetention, RealmRegistry
from headwater.settings import Settings
from headwater.store import ObjectId, Store, StoredObject, id_text, object_type
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, make_lake, make_realm, open_on, put, rows_of
from lakes import lake as lake_of

ORDERS = ContentKey.of("orders")


@object_type("test-superseded-note")
class Note(StoredObject, frozen=True, kw_only=True):
    text: str = ""


def is_readable(store: Store, lake: Catalog, commit_id: ObjectId) -> bool:
    """Whether a process that remembers nothing finds the commit and its content."""
    store.cache.clear()
    try:
        return lake.get_content(id_text(commit_id), ORDERS) is not None
    except ExpiredError:
        return False


def test_commit_stays_for_the_grace_after_its_successor(store: Store, lake: Catalog, old_commits: list[ObjectId]) -> None:
    put(lake, 4)
    collect_realm(store, "acme")

    assert is_readable(store, lake, old_commits[2])


def test_commit_goes_when_its_successor_is_older_than_the_grace(
    store: Store, lake: Catalog, old_commits: list[ObjectId]
) -> None:
    collect_realm(store, "acme")

    assert [is_readable(store, lake, commit_id) for commit_id in old_commits] == [False, False, True]


def test_commit_stays_for_a_commits_time_beyond_the_grace(
    store: Store, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock, settings: Settings
) -> None:
    put(lake, 4)
    clock.advance(settings.reader_grace_seconds + settings.commit_timeout_seconds - 1)
    collect_realm(store, "acme")

    assert is_readable(store, lake, old_commits[2])


def test_second_collection_within_that_time_keeps_it_too(
    store: Store, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock, settings: Settings
) -> None:
    put(lake, 4)
    clock.advance(settings.reader_grace_seconds + 1)
    collect_realm(store, "acme")
    clock.advance(1)
    collect_realm(store, "acme")

    assert is_readable(store, lake, old_commits[2])


def test_commit_that_a_branch_left_stays_for_the_grace(store: Store, lake: Catalog, old_commits: list[ObjectId]) -> None:
    lake.assign_branch("main", old_commits[0])
    collect_realm(store, "acme")

    assert is_readable(store, lake, old_commits[2])


def test_commit_that_a_branch_left_goes_after_the_grace(
    store: Store, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    lake.assign_branch("main", old_commits[0])
    clock.advance(HOUR)
    collect_realm(store, "acme")

    assert not is_readable(store, lake, old_commits[2])


def test_deleted_branch_stays_readable_for_the_grace(
    store: Store, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    lake.create_branch("dev")
    lost = put(lake, 10, branch="dev")
    clock.advance(HOUR)
    lake.delete_branch("dev")
    collect_realm(store, "acme")

    assert is_readable(store, lake, lost)


def test_deleted_branch_goes_after_the_grace(
    store: Store, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    lake.create_branch("dev")
    lost = put(lake, 10, branch="dev")
    lake.delete_branch("dev")
    clock.advance(HOUR)
    collect_realm(store, "acme")

    assert not is_readable(store, lake, lost)


def test_branch_that_is_made_again_remembers_what_it_was(
    store: Store, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    lake.create_branch("dev")
    before = put(lake, 10, branch="dev")
    clock.advance(HOUR)
    lake.delete_branch("dev")
    lake.create_branch("dev", "main")
    collect_realm(store, "acme")

    assert is_readable(store, lake, before)


def test_old_commit_that_headed_a_branch_stays_for_the_grace(store: Store, lake: Catalog, clock: FakeClock) -> None:
    kept = put(lake, 1)
    lake.create_branch("younger")
    clock.advance(HOUR)
    put(lake, 2, branch="younger")
    clock.advance(HOUR)
    collect_realm(store, "acme")
    put(lake, 3)
    clock.advance(HOUR)
    lake.create_branch("dev", at=kept)
    put(lake, 4, branch="dev")
    collect_realm(store, "acme")

    assert is_readable(store, lake, kept)


def test_retention_keeps_so_many_commits(store: Store, clock: FakeClock) -> None:
    make_realm(store, commits=2)
    lake = make_lake(store)
    commits = [put(lake, version) for version in range(4)]
    clock.advance(HOUR)
    collect_realm(store, "acme")

    assert [is_readable(store, lake, commit_id) for commit_id in commits] == [False, False, True, True]


def test_retention_keeps_what_was_head_within_an_age(store: Store, clock: FakeClock) -> None:
    make_realm(store, commits=1, age_seconds=1.5 * HOUR)
    lake = make_lake(store)
    commits = []
    for version in range(4):
        commits.append(put(lake, version))
        clock.advance(HOUR)
    collect_realm(store, "acme")

    # superseded 3, 2 and 1 hours ago; the last one is HEAD
    assert [is_readable(store, lake, commit_id) for commit_id in commits] == [False, False, True, True]


def test_other_references_keep_their_own_number_of_commits(store: Store, clock: FakeClock) -> None:
    make_realm(store, reference_commits=3)
    rows = rows_of(store)
    for number in range(6):
        commit_change(
            rows,
            "principals",
            lambda tx, n=number: tx.index("by-name").put(b"%d" % n, IndexValue(tx.add_object(Note(text=str(n))))),
        )
    clock.advance(HOUR)
    collect_realm(store, "acme")
    store.cache.clear()

    assert len(list(read_log(rows, "principals"))) == 3


def test_longer_retention_starts_at_the_last_cut(
    store: Store, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    collect_realm(store, "acme")
    RealmRegistry(store).update_realm(RealmRegistry(store).read_realm("acme"), retention=HistoryRetention(content_commits=100))
    put(lake, 4)
    clock.advance(HOUR)
    collect_realm(store, "acme")
    store.cache.clear()

    assert [found.id for found in read_log(rows_of(store), lake.branch("main").head)][1:] == [old_commits[2]]


def test_longer_grace_asks_for_nothing_let_go_before(settings: Settings, clock: FakeClock) -> None:
    backend = MemoryBackend()
    store = open_on(backend, settings, clock)
    make_realm(store)
    lake = make_lake(store)
    first = put(lake, 1)
    put(lake, 2)
    lake.assign_branch("main", first)
    clock.advance(2 * settings.reader_grace_seconds)
    collect_realm(store, "acme")
    patient = open_on(backend, dataclasses.replace(settings, reader_grace_seconds=10 * HOUR), clock)
    clock.advance(HOUR)

    assert collect_realm(patient, "acme").references == sum(not row.deleted for row in rows_of(patient).scan_references())


@pytest.mark.parametrize("more", [0, 3], ids=["as it was", "with new commits"])
def test_branch_put_back_keeps_its_history(store: Store, clock: FakeClock, more: int) -> None:
    make_realm(store, commits=100, reference_commits=1)
    lake = make_lake(store)
    commits = [put(lake, version) for version in range(5)]
    clock.advance(HOUR)
    commit_change(rows_of(store), "principals", lambda tx: tx.index("by-name").put(b"root", IndexValue(tx.add_object(Note()))))
    collect_realm(store, "acme")
    clock.advance(1)
    lake.assign_branch("main", commits[3])
    later = [put(lake, 10 + version) for version in range(more)]
    clock.advance(HOUR)
    collect_realm(store, "acme")
    store.cache.clear()

    assert [entry.id for entry in lake.log(oldest_first=True)] == commits[:4] + later


def test_history_that_others_cut_is_no_target(store: Store, lake: Catalog, clock: FakeClock) -> None:
    put(lake, 1)
    lake.create_branch("dev")
    between = put(lake, 2, branch="dev")
    ahead = put(lake, 3, branch="dev")
    [row] = store.backend.read_objects(rows_of(store).key, [(between, 0)])
    clock.advance(HOUR)
    collect_realm(store, "acme")
    assert row is not None
    store.backend.write_objects([row])  # as if the sweep had not come that far
    lake.assign_branch("main", ahead)

    with pytest.raises(RefusedError, match="kept history"):
        lake.create_branch("back", at=between)


@pytest.mark.parametrize(
    "leave", [Catalog.delete_branch, lambda lake, name: lake.assign_branch(name, lake.branch("main").head)]
)
def test_commit_that_a_sleeper_left_stays_from_then(
    store: Store, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock, leave: Callable[[Catalog, str], object]
) -> None:
    lake.create_branch("dev")
    left = put(lake, 10, branch="dev")
    backend = FaultyBackend(store.backend)
    backend.intervene("swap_reference", lambda: clock.advance(HOUR))
    leave(lake_of(open_on(backend, store.settings, clock)), "dev")
    collect_realm(store, "acme")

    assert is_readable(store, lake, left)


@pytest.mark.parametrize("age", [0, 30])
def test_time_of_creation_does_not_matter(
    store: Store, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock, age: float
) -> None:
    """HEAD for an hour, superseded half a minute ago at most."""
    put(lake, 4)
    clock.advance(age)
    collect_realm(store, "acme")

    assert is_readable(store, lake, old_commits[2])
    assert not is_readable(store, lake, old_commits[1])
