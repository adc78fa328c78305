"""Commits of threads to one reference are published together, and each is one of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from lineup import behind, has_queue, lined_up

from faulty_backend import FaultyBackend
from headwater.commits import (
    Commit,
    CommitResult,
    Operation,
    Transaction,
    commit_change,
    create_reference_at,
    descends,
    read_changes,
    read_head,
    read_log,
)
from headwater.errors import RefusedError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore, StoredObject, Versioned, object_type

Put = Callable[..., CommitResult[None]]
Increment = Callable[[RealmStore], CommitResult[int]]


@object_type("test-parcel")
class Parcel(StoredObject, frozen=True, kw_only=True):
    text: str = ""


@object_type("test-tally", updateable=True)
class Counter(StoredObject, frozen=True, kw_only=True):
    number: int = 0


def put_parcel(tx: Transaction, key: bytes = b"k", text: str = "hello") -> ObjectId:
    parcel = tx.add_object(Parcel(text=text))
    tx.index("things").put(key, IndexValue(parcel))
    return parcel


def look(tx: Transaction) -> ObjectId | None:
    return tx.head_id


def refuse(tx: Transaction) -> None:
    tx.index("things").put(b"unwanted", IndexValue(tx.add_object(Parcel())))
    raise RefusedError(f"after {0 if tx.head is None else tx.head.seq}")


def committing(rows: RealmStore, change: Callable[[Transaction], Any], **options: Any) -> Callable[[], CommitResult[Any]]:
    return lambda: commit_change(rows, "main", change, **options)


def test_commits_that_wait_together_are_written_and_swapped_together(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    faults.calls.clear()
    with lined_up(faulty, faults, [partial(increment, faulty)] * 5) as line:
        pass

    assert [done.result().result for done in line.commits] == [1, 2, 3, 4, 5]
    assert faults.calls == ["read_references", "write_objects", "swap_reference"]
    assert [int(operation.data) for _, operation in read_changes(faulty, "main")] == [1, 2, 3, 4, 5]


def test_members_have_commits_on_top_of_one_another(faulty: RealmStore, faults: FaultyBackend, put: Put) -> None:
    base = put(faulty, b"old").commit_id
    works = [committing(faulty, partial(put_parcel, key=key), message=key.decode()) for key in (b"a", b"b", b"c")]
    with lined_up(faulty, faults, works) as line:
        pass
    ids = [done.result().commit_id for done in line.commits]
    found = [one.commit for one in read_log(faulty, "main", oldest_first=True)][1:]

    assert [one.id for one in read_log(faulty, "main", oldest_first=True)] == [base, *ids]
    assert [(one.seq, one.message, one.tail[0]) for one in found] == [(2, "a", base), (3, "b", ids[0]), (4, "c", ids[1])]
    assert found[0].time < found[1].time < found[2].time


def test_inner_members_are_stored_as_operations_alone(faulty: RealmStore, faults: FaultyBackend, put: Put) -> None:
    base = put(faulty, b"old").commit_id
    with lined_up(faulty, faults, [partial(put, faulty, key, b"1") for key in (b"a", b"b", b"c")]):
        pass
    *_, first, second, last = (one.commit for one in read_log(faulty.without_cache(), "main", oldest_first=True))

    assert [(one.base, one.depth, list(one.indexes)) for one in (first, second)] == [(base, 1, []), (base, 2, [])]
    assert (last.base, last.depth, list(last.indexes)) == (None, 0, ["things"])
    assert [one.operations for one in (first, second, last)] == [
        (Operation("things", k, data=b"1"),) for k in (b"a", b"b", b"c")
    ]


def test_every_member_reads_as_it_was(faulty: RealmStore, faults: FaultyBackend, put: Put) -> None:
    put(faulty, b"old")
    with lined_up(faulty, faults, [partial(put, faulty, key) for key in (b"a", b"b", b"c")]):
        pass
    cold = faulty.without_cache(budget_bytes=1 << 20)

    assert [b"".join(one.index("things").keys()) for one in read_log(cold, "main")] == [b"abcold", b"abold", b"aold", b"old"]


def test_group_of_one_is_an_ordinary_commit(rows: RealmStore, put: Put) -> None:
    put(rows)
    put(rows, b"other")

    assert [(one.commit.base, one.commit.depth, list(one.commit.indexes)) for one in read_log(rows, "main")] == [
        (None, 0, ["things"]),
        (None, 0, ["things"]),
    ]


def test_lone_commit_waits_for_nobody_and_leaves_no_queue(rows: RealmStore, put: Put) -> None:
    put(rows)

    assert not has_queue(rows)


@pytest.mark.parametrize("at", range(3))
def test_member_that_raises_is_left_out_alone(faulty: RealmStore, faults: FaultyBackend, increment: Increment, at: int) -> None:
    works = [partial(increment, faulty)] * 2
    works.insert(at, committing(faulty, refuse))
    with lined_up(faulty, faults, works) as line:
        pass

    with pytest.raises(RefusedError, match=f"after {at}"):
        line.commits.pop(at).result()
    assert [done.result().result for done in line.commits] == [1, 2]
    assert [key.type for batch in faulty.scan_objects() for key in batch].count("test-parcel") == 0


@pytest.mark.parametrize("change", [look, refuse])
def test_answer_that_saw_an_unpublished_commit_waits_for_the_swap(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, change: Callable[[Transaction], Any]
) -> None:
    swap = faults.hang("swap_reference")
    with lined_up(faulty, faults, [partial(increment, faulty), committing(faulty, change)]) as line:
        line.go()
        swap.reached()
        answered_before = line.commits[1].done()
        swap.release()

    assert not answered_before
    assert line.commits[1].exception() or line.commits[1].result().result == line.commits[0].result().commit_id


@pytest.mark.parametrize("change", [look, refuse])
def test_answer_from_published_state_is_given_at_once(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, change: Callable[[Transaction], Any]
) -> None:
    swap = faults.hang("swap_reference")
    with lined_up(faulty, faults, [committing(faulty, change), partial(increment, faulty)]) as line:
        line.go()
        swap.reached()

        line.commits[0].exception(timeout=30)
        swap.release()


def test_unchanged_member_is_told_the_commit_before_it(faulty: RealmStore, faults: FaultyBackend, increment: Increment) -> None:
    with lined_up(faulty, faults, [partial(increment, faulty), committing(faulty, look), partial(increment, faulty)]) as line:
        pass
    first, unchanged, last = (done.result() for done in line.commits)

    assert (unchanged.changed, unchanged.commit_id) == (False, first.commit_id)
    assert read_head(faulty, "main").id == last.commit_id


def test_no_answer_is_older_than_its_question(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment, elsewhere: RealmStore
) -> None:
    hang = faults.hang("read_references", before=False)
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(committing(faulty, look))
        hang.reached()  # it has seen that there is no commit yet
        done = increment(elsewhere)
        faulty.clock.sleep(0.001)
        with behind(faulty, committing(faulty, look)) as late:
            hang.release()

    assert (early.result().result, late.result().result) == (None, done.commit_id)


def test_members_read_what_those_before_them_add(faulty: RealmStore, faults: FaultyBackend) -> None:
    def read(tx: Transaction) -> tuple[Any, ...]:
        parcel, counter = (tx.index("things").get(key).object_id for key in (b"k", b"c"))
        (same,) = tx.reader.read_many([parcel], Parcel)
        return (
            same,
            tx.reader.read_object(parcel, Parcel),
            tx.reader.read_versioned(counter, Counter).value,
            tx.reader.read_object(tx.head_id, Commit),
        )

    def put_counter(tx: Transaction) -> None:
        tx.index("things").put(b"c", IndexValue(tx.add_object(Counter(number=7))))

    works = [committing(faulty, change) for change in (put_parcel, put_counter, read)]
    with lined_up(faulty, faults, works) as line:
        pass
    *_, head_read = line.commits[2].result().result

    assert line.commits[2].result().result[:3] == (Parcel(text="hello"), Parcel(text="hello"), Counter(number=7))
    assert (head_read.seq, head_read.operations[0].key) == (2, b"c")


def test_history_is_walked_through_commits_that_are_not_written_yet(
    faulty: RealmStore, faults: FaultyBackend, increment: Increment
) -> None:
    oldest = increment(faulty).commit_id
    works = [*[partial(increment, faulty)] * 25, committing(faulty, lambda tx: descends(tx.reader, tx.head_id, oldest, 1))]
    with lined_up(faulty, faults, works) as line:
        pass

    assert line.commits[-1].result().result


def test_updateable_object_has_the_same_token_before_and_after(faulty: RealmStore, faults: FaultyBackend) -> None:
    def add(tx: Transaction) -> ObjectId:
        counter = tx.add_object(Counter())
        tx.index("things").put(b"c", IndexValue(counter))
        return counter

    def read(tx: Transaction) -> Versioned[Counter]:
        return tx.reader.read_versioned(tx.index("things").get(b"c").object_id, Counter)

    with lined_up(faulty, faults, [committing(faulty, add), committing(faulty, read)]) as line:
        pass

    assert line.commits[1].result().result == faulty.read_versioned(line.commits[0].result().result, Counter)


def test_member_may_move_what_those_before_it_put(faulty: RealmStore, faults: FaultyBackend) -> None:
    def move(tx: Transaction) -> None:
        held = tx.index("things").get(b"k")
        tx.index("things").remove(b"k")
        tx.index("others").put(b"moved", held)

    with lined_up(faulty, faults, [committing(faulty, put_parcel), committing(faulty, move)]) as line:
        pass
    newest = read_head(faulty.without_cache(), "main")

    assert newest.index("others").get(b"moved") == IndexValue(line.commits[0].result().result)
    assert newest.index("things").get(b"k") is None


def test_object_of_a_member_left_out_is_nobodys_target(faulty: RealmStore, faults: FaultyBackend) -> None:
    added: list[ObjectId] = []

    def fail(tx: Transaction) -> None:
        added.append(put_parcel(tx))
        raise ZeroDivisionError

    works = [committing(faulty, fail), committing(faulty, lambda tx: tx.index("things").put(b"k", IndexValue(added[0])))]
    with lined_up(faulty, faults, works) as line:
        pass

    with pytest.raises(RefusedError, match="neither added by this commit nor held by its parent"):
        line.commits[1].result()


def test_index_unchanged_by_a_group_keeps_its_bytes(faulty: RealmStore, faults: FaultyBackend, put: Put) -> None:
    put(faulty, b"old")
    before = read_head(faulty, "main").commit.indexes
    works = [partial(put, faulty, b"new"), committing(faulty, lambda tx: tx.index("things").remove(b"new"))]
    with lined_up(faulty, faults, works):
        pass

    assert read_head(faulty, "main").commit.indexes == before
    assert [operation.removed for _, operation in read_changes(faulty, "main")] == [False, False, True]


def test_commit_on_an_inner_member_carries_all_indexes(faulty: RealmStore, faults: FaultyBackend, put: Put) -> None:
    commit_change(faulty, "main", lambda tx: tx.index("untouched").put(b"u", IndexValue(None, b"1")))
    with lined_up(faulty, faults, [partial(put, faulty, key) for key in (b"a", b"b")]) as line:
        pass
    create_reference_at(faulty, "branch", line.commits[0].result().commit_id, among=["main"])
    put(faulty, b"c", reference="branch")
    newest = read_head(faulty.without_cache(), "branch")

    assert (newest.commit.depth, sorted(newest.commit.indexes)) == (0, ["things", "untouched"])
    assert [key for key, _ in newest.index("things").range()] == [b"a", b"c"]


def test_other_references_do_not_wait(faulty: RealmStore, faults: FaultyBackend, put: Put) -> None:
    faulty.ensure_reference("other")
    with lined_up(faulty, faults, [partial(put, faulty), partial(put, faulty)]):
        assert put(faulty, reference="other").attempts == 1
