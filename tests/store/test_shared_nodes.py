"""Two processes that make ids with one node number, as after the copy of a running machine: nothing is overwritten, and one moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from id_parts import leases
from notes import Note

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import Transaction, commit_change, read_log
from headwater.errors import CollisionError, UnknownOutcomeError
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Store, open_store
from headwater.store.ids import node_of

COMMITS = 30


def rows_of(store: Store) -> RealmStore:
    return store.rows(RealmId("acme"), RealmKey(7))


@pytest.fixture(params=["memory", "sqlite"])
def twins(request: pytest.FixtureRequest, tmp_path: Path, settings: Settings, clock: FakeClock) -> Iterator[list[Store]]:
    """Two processes with the same lease, clock and last id."""
    url = f"sqlite:///{tmp_path}/store.db" if request.param == "sqlite" else "memory://"
    first = open_store(url, settings=settings, clock=clock)
    first.new_id()
    second = Store(first.backend, url=url, settings=settings, clock=FakeClock(clock.now()))
    clone(first, second)
    yield [first, second]
    first.close()


def clone(first: Store, second: Store) -> None:
    ids, copy = vars(first.ids), vars(second.ids)
    for name in ("_lease", "_renew_from", "_node_bits", "_last", "_highest"):
        copy[name] = ids[name]
    copy["_current"] = ids["_current"] = (0, iter(()))


def test_no_commit_of_two_processes_with_one_node_is_overwritten(twins: list[Store]) -> None:
    first, second = map(rows_of, twins)
    first.ensure_reference("one")
    first.ensure_reference("two")
    for number in range(COMMITS):
        for rows, reference in ((first, "one"), (second, "two")):

            def change(tx: Transaction, number: int = number, reference: str = reference) -> None:
                tx.index("all").put(b"%d" % number, IndexValue(tx.add_object(Note(text=reference))))

            commit_change(rows, reference, change)
    for store in twins:
        store.cache.clear()

    for reference in ("one", "two"):
        found = list(read_log(first, first.read_reference(reference, fresh=True).pointer or ObjectId(0)))
        held = [value.object_id or ObjectId(0) for _, value in found[0].index("all").range()]
        assert [head.commit.seq for head in found] == list(range(COMMITS, 0, -1))
        assert {note.text for note in first.read_many(held, Note) if note} == {reference}
    assert node_of(twins[0].new_id()) != node_of(twins[1].new_id())


def test_writes_under_new_ids_overwrite_nothing(twins: list[Store]) -> None:
    first, second = map(rows_of, twins)
    taken = first.new_id()
    first.write_objects([(taken, Note(text="first"))], are_new=True)
    node = node_of(second.new_id())
    with pytest.raises(CollisionError):
        second.write_objects([(taken, Note(text="second"))], are_new=True)

    assert first.without_cache().read_object(taken, Note) == Note(text="first")
    assert node_of(second.new_id()) != node


def test_node_is_left_once_for_all_that_collides(twins: list[Store]) -> None:
    first, second = map(rows_of, twins)
    taken = [first.new_id(), first.new_id()]
    first.write_objects([(one, Note(text="first")) for one in taken], are_new=True)
    nodes = set()
    for one in taken:
        with pytest.raises(CollisionError):
            second.write_objects([(one, Note(text="second"))], are_new=True)
        nodes.add(node_of(second.new_id()))

    assert len(nodes) == 1


@pytest.mark.parametrize("is_atomic", [True, False])
def test_unclear_commit_that_collides_starts_over(twins: list[Store], settings: Settings, is_atomic: bool) -> None:
    first = twins[0]
    faults = FaultyBackend(first.backend, is_atomic=is_atomic)
    lost = Store(faults, url="memory://", settings=settings, clock=FakeClock(first.clock.now()))  # type: ignore[arg-type]
    for reference in ("one", "two"):
        rows_of(first).ensure_reference(reference)
    clone(first, lost)
    before = len(leases(first))
    put(rows_of(first), "one")
    faults.fail("write_and_swap", fault=UnknownOutcomeError("injected"))
    faults.fail("swap_reference", fault=UnknownOutcomeError("injected"))
    faults.fail("write_objects", fault=UnknownOutcomeError("injected"))
    put(rows_of(lost), "two")

    assert len(leases(first)) == before + 1
    assert [len(list(read_log(rows_of(first), reference))) for reference in ("one", "two")] == [1, 1]


def put(rows: RealmStore, reference: str) -> None:
    commit_change(rows, reference, lambda tx: tx.index("all").put(b"key", IndexValue(tx.add_object(Note(text=reference)))))


def test_process_that_leaves_a_node_does_not_give_it_back(twins: list[Store], settings: Settings) -> None:
    first, second = twins
    node = node_of(first.new_id())
    second.ids.leave(node)
    second.new_id()
    second.close = lambda: None  # type: ignore[method-assign]  # the first one's backend

    with Store(first.backend, url="memory://", settings=settings, clock=first.clock) as third:
        assert node_of(third.new_id()) != node
