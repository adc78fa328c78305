"""A realm on a database that keeps no order and deletes no realm at once: everything works, and only this realm's rows are seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from notes import Counter, Note

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, ScanSplit, Store
from headwater.store.backends.memory import MemoryBackend
from unordered import UnorderedBackend

ORDERED, UNORDERED = "ordered", "unordered"
EACH = 25


@pytest.fixture(params=[ORDERED, UNORDERED])
def faults(request: pytest.FixtureRequest) -> FaultyBackend:
    return FaultyBackend(UnorderedBackend() if request.param == UNORDERED else MemoryBackend())


@pytest.fixture
def store(faults: FaultyBackend, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with Store(faults, url="memory://", settings=settings, clock=clock) as opened:  # type: ignore[arg-type]  # any backend
        yield opened


@pytest.fixture
def rows(store: Store) -> RealmStore:
    """A realm with 25 objects and 25 references, among others that have as many."""
    made = [store.rows(RealmId(name), RealmKey(store.new_id())) for name in ("before", "acme", "behind")]
    for realm in made:
        realm.write_objects([(ObjectId(number), Note(number=number)) for number in range(1, EACH + 1)])
        realm.create_references([f"branch-{number}" for number in range(EACH)])
    return made[1]


@pytest.fixture
def others(rows: RealmStore) -> Callable[[], int]:
    """How many rows the other realms and the system realm have."""

    def count() -> int:
        backend = rows.store.backend
        held = [*backend.scan_objects(ScanSplit(), None, 1000), *backend.scan_references(ScanSplit(), None, 1000)]
        return sum(key.realm != rows.key for key in held)

    return count


def test_scan_sees_this_realm_alone(rows: RealmStore) -> None:
    assert sorted(key.id for batch in rows.scan_objects() for key in batch) == list(range(1, EACH + 1))
    assert len({key.name for key in rows.scan_references()}) == EACH
    assert {key.realm for key in rows.scan_references()} == {rows.key}


@pytest.mark.parametrize("count", [1, 4, 1000])
def test_splits_are_the_whole_scan_each_row_once(rows: RealmStore, count: int) -> None:
    objects = [key.id for split in rows.split_objects(count) for batch in rows.scan_objects(split) for key in batch]
    names = [key.name for split in rows.split_references(count) for key in rows.scan_references(split)]

    assert sorted(objects) == list(range(1, EACH + 1))
    assert sorted(names) == sorted(f"branch-{number}" for number in range(EACH))


def test_split_is_gone_on_with_behind_any_key(rows: RealmStore) -> None:
    for split in rows.split_objects(3):
        whole = [key for batch in rows.scan_objects(split) for key in batch]
        for number, key in enumerate(whole):
            rest = [later for batch in rows.scan_objects(split._replace(after=key.position)) for later in batch]
            assert rest == whole[number + 1 :]


def test_realm_is_empty_only_without_rows(rows: RealmStore) -> None:
    fresh = rows.store.rows(RealmId("fresh"), RealmKey(rows.new_id()))
    assert (rows.is_empty(), fresh.is_empty()) == (False, True)

    made = fresh.create_reference("only")
    assert not fresh.is_empty()
    fresh.remove_tombstone(fresh.delete_reference(made))
    assert fresh.is_empty()


@pytest.mark.parametrize("limit", [1, 7, EACH, 1000])
def test_realm_is_deleted_in_batches_whose_counts_are_true(rows: RealmStore, others: Callable[[], int], limit: int) -> None:
    before = others()
    rows.delete_reference(rows.read_reference("branch-3"))
    counts = list(iter(lambda: rows.delete_rows(limit), 0))

    assert sum(counts) == 2 * EACH
    assert max(counts) <= limit
    assert rows.is_empty()
    assert others() == before


def test_rows_that_come_during_a_realms_deletion_go_too(rows: RealmStore) -> None:
    rows.delete_rows(30)
    rows.write_objects([(ObjectId(1), Counter()), (ObjectId(99), Note())])
    rows.create_references(["late", "branch-0"])
    while rows.delete_rows(30):
        pass

    assert rows.is_empty()


def test_rows_that_come_before_the_last_deleted_go_too(rows: RealmStore) -> None:
    assert rows.delete_rows(2 * EACH) == 2 * EACH
    rows.write_objects([(ObjectId(number), Note()) for number in range(1, EACH + 1)])
    rows.create_references(all_names())

    assert sum(iter(lambda: rows.delete_rows(2 * EACH), 0)) == 2 * EACH
    assert rows.is_empty()


@pytest.mark.parametrize("faults", [UNORDERED], indirect=True)
def test_reference_changed_while_deleted_goes_the_next_time(rows: RealmStore, faults: FaultyBackend) -> None:
    faults.intervene("remove_reference", lambda: [rows.raise_version(row) for row in rows.find_rows(all_names()) if row])
    counts = list(iter(lambda: rows.delete_rows(1000), 0))

    assert counts == [EACH, EACH]  # objects, then the references that were changed
    assert rows.is_empty()


def all_names() -> list[str]:
    return [f"branch-{number}" for number in range(EACH)]


@pytest.mark.parametrize("faults", [UNORDERED], indirect=True)
def test_realm_is_deleted_without_reading_others_for_each_batch(rows: RealmStore, faults: FaultyBackend) -> None:
    begun: list[object] = []
    scan = faults.backend.scan_objects
    faults.backend.scan_objects = lambda split, *rest: (begun.append((split.after, rest[0])), scan(split, *rest))[1]  # type: ignore[method-assign, func-returns-value]
    while rows.delete_rows(1):
        pass

    assert begun.count((None, None)) <= 2  # the first batch, and the scan that finds nothing; 26 if each batch began anew
