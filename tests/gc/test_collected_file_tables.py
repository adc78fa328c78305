"""File tables and the collection of garbage: their list and their trees stay; of deleted tables nothing does."""

from __future__ import annotations

import itertools

import pytest

from fake_clock import FakeClock
from file_tables import make_tree
from headwater.commits import read_head
from headwater.errors import CorruptionError, NotFoundError
from headwater.files import (
    FILE_TABLES,
    ROOT,
    FileTableDefinition,
    FileTables,
    FileTableState,
    PartitionId,
    PartitionTree,
    find_file_table,
    read_file_table,
)
from headwater.files.stored_tree import commit_splits, read_tree
from headwater.fsck import FindingCode, check_store, explain
from headwater.gc import collect_realm
from headwater.realms import Realm
from headwater.settings import Settings
from headwater.store import RealmStore, Store
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, REALM, make_realm, meetings, open_on, rows_of
from tiers import Sample


@pytest.fixture
def orders(realm_rows: RealmStore, clock: FakeClock) -> FileTableDefinition:
    """A table with two splits, older than all graces."""
    table = make_tree(realm_rows)
    commit_splits(realm_rows, table, {ROOT: b"m"})
    commit_splits(realm_rows, table, {PartitionId("r0"): b"f"})
    clock.advance(10 * HOUR)
    return table


def collect_twice(store: Store, clock: FakeClock) -> None:
    for _ in range(2):
        collect_realm(store, REALM)
        clock.advance(10 * HOUR)


def test_collection_keeps_a_table_and_its_tree(
    store: Store, realm_rows: RealmStore, orders: FileTableDefinition, clock: FakeClock
) -> None:
    collect_twice(store, clock)

    fresh = realm_rows.without_cache()
    assert read_file_table(fresh, "orders") == orders
    assert read_tree(fresh, orders) == PartitionTree(3, {ROOT: b"m", PartitionId("r0"): b"f"})


def test_tree_can_grow_while_it_is_collected(
    store: Store, realm: Realm, realm_rows: RealmStore, orders: FileTableDefinition, clock: FakeClock
) -> None:
    collect_realm(store, REALM)
    commit_splits(realm_rows, orders, {PartitionId("r1"): b"t"})
    clock.advance(10 * HOUR)
    collect_realm(store, REALM)

    assert read_tree(realm_rows.without_cache(), orders).number == 4


def test_collection_of_a_realm_without_file_tables_makes_no_list(store: Store, realm_rows: RealmStore) -> None:
    collect_realm(store, REALM)

    assert realm_rows.find_row(FILE_TABLES) is None
    assert check_store(store, realm=REALM) == []


def test_lost_list_of_file_tables_stops_the_collection(
    store: Store, realm_rows: RealmStore, orders: FileTableDefinition
) -> None:
    realm_rows.remove_tombstone(realm_rows.delete_reference(realm_rows.read_reference(FILE_TABLES)))

    with pytest.raises(CorruptionError, match="no reference 'file-tables', but trees of file tables"):
        collect_realm(store, REALM)
    with pytest.raises(CorruptionError, match="it was lost"):
        make_tree(realm_rows)
    assert [(finding.code, finding.subject) for finding in check_store(store, realm=REALM)] == [
        (FindingCode.ROW_WITHOUT_NAME, orders.tree_reference)
    ]


def test_deleted_table_leaves_nothing(
    store: Store, realm_rows: RealmStore, orders: FileTableDefinition, clock: FakeClock
) -> None:
    deleting = FileTables(realm_rows, lambda _: None).change_state(orders, FileTableState.DELETING)
    FileTables(realm_rows, lambda _: None).change_state(deleting, FileTableState.DELETED)
    clock.advance(10 * HOUR)
    collect_twice(store, clock)

    assert find_file_table(realm_rows, table_id=orders.id) is None
    assert realm_rows.find_row(orders.tree_reference) is None
    with pytest.raises(NotFoundError):
        read_file_table(realm_rows, "orders")


def test_table_that_is_being_deleted_keeps_its_tree(
    store: Store, realm_rows: RealmStore, orders: FileTableDefinition, clock: FakeClock
) -> None:
    deleting = FileTables(realm_rows, lambda _: None).change_state(orders, FileTableState.DELETING)
    clock.advance(10 * HOUR)
    collect_twice(store, clock)

    assert find_file_table(realm_rows, table_id=orders.id) == deleting
    assert read_tree(realm_rows.without_cache(), orders).number == 3


def test_explanation_names_the_tree_of_the_table(store: Store, realm_rows: RealmStore, orders: FileTableDefinition) -> None:
    head = read_head(realm_rows, orders.tree_reference)
    assert head is not None

    explanation = explain(store, REALM, head.id)

    assert explanation.sentence == "the commit is the head of the partition tree of file table orders"


def test_table_made_during_a_collection_stays(settings: Settings, clock: FakeClock, sample: Sample) -> None:
    backend = MemoryBackend()
    make_realm(open_on(backend, settings, clock))
    calls = sample.one_in(10, itertools.count(1))

    for met in meetings(backend, settings, clock.now(), lambda other: make_tree(rows_of(other)), calls):
        met.collect_again()

        rows = rows_of(met.open())
        assert met.faults == []
        assert read_tree(rows, read_file_table(rows, "orders")) == PartitionTree(1, {})


def test_split_made_during_a_collection_stays(settings: Settings, clock: FakeClock, sample: Sample) -> None:
    backend = MemoryBackend()
    prepared = open_on(backend, settings, clock)
    make_realm(prepared)
    orders = make_tree(rows_of(prepared))
    clock.advance(HOUR)
    calls = sample.one_in(10, itertools.count(1))

    for met in meetings(
        backend, settings, clock.now(), lambda other: commit_splits(rows_of(other), orders, {ROOT: b"m"}), calls
    ):
        met.collect_again()

        assert met.faults == []
        assert read_tree(rows_of(met.open()), orders) == PartitionTree(2, {ROOT: b"m"})
