"""What combined commits owe each of their members: its own commit, its own result, its own error."""

from __future__ import annotations

from typing import Any

import pytest
from callers import Caller, in_line
from counters import ADD, LOOK, REFUSE, Refusal, assert_exact, count, counted
from grounds import Ground
from groups import a_group, callers_of, groups_in

from headwater.commits import Transaction, commit_change, read_head, read_log
from headwater.errors import RefusedError
from headwater.index import IndexValue
from headwater.store import ObjectId, StoredObject, object_type


@object_type("test-burden")
class Burden(StoredObject, frozen=True, kw_only=True):
    """What a member adds."""

    data: bytes


def adding(data: bytes, then: BaseException | None = None) -> Any:
    """A change that adds an object under a key of its own, and returns its id, or raises."""

    def change(tx: Transaction) -> ObjectId:
        burden = tx.add_object(Burden(data=data))
        tx.index("burdens").put(data, IndexValue(burden))
        if then is not None:
            raise then
        return burden

    return change


def burdens(ground: Ground) -> int:
    return sum(key.type == "test-burden" for batch in ground.rows.scan_objects() for key in batch)


def test_members_share_one_swap(ground: Ground) -> None:
    before = ground.swaps()
    journal = a_group(ground.rows, [ADD] * 10)

    assert ground.swaps() - before == 1
    assert [answer.number for answer in journal] == list(range(1, 11))
    assert assert_exact(ground.rows, journal) == 10


def test_member_has_a_commit_with_its_own_operation_and_message(ground: Ground) -> None:
    def signing(name: str) -> Any:
        def change(tx: Transaction) -> str:
            tx.set_message(f"by {name}")
            tx.set_property("name", name)
            tx.index("names").put(name.encode(), IndexValue(None, b"here"))
            return name

        return change

    callers = callers_of(ground.rows, [signing(name) for name in "abc"])
    found = list(read_log(ground.rows, "main", oldest_first=True))

    assert [(one.commit.message, one.commit.properties) for one in found] == [(f"by {n}", {"name": n}) for n in "abc"]
    assert [[operation.key for operation in one.commit.operations] for one in found] == [[b"a"], [b"b"], [b"c"]]
    assert [caller.result().commit_id for caller in callers] == [one.id for one in found]
    assert [one.commit.seq for one in found] == [1, 2, 3]
    assert found[0].commit.time < found[1].commit.time < found[2].commit.time


def test_each_member_reads_as_it_was_then(ground: Ground) -> None:
    a_group(ground.rows, [ADD] * 3)
    callers_of(ground.rows, [adding(b"one"), counted(ADD), adding(b"two"), counted(ADD)])
    cold = ground.rows.without_cache()
    seen = [
        (int(one.index("counters").get(b"n").data), [key for key, _ in one.index("burdens").range()])  # type: ignore[union-attr]
        for one in read_log(cold, "main", oldest_first=True)
    ]

    assert seen[3:] == [(3, [b"one"]), (4, [b"one"]), (4, [b"one", b"two"]), (5, [b"one", b"two"])]


def test_inner_members_hold_no_copy_of_the_indexes(ground: Ground) -> None:
    a_group(ground.rows, [ADD] * 5)
    (group,) = groups_in(ground.rows)

    assert [len(one.commit.indexes) for one in group] == [0, 0, 0, 0, 1]
    assert [one.commit.depth for one in group] == [1, 2, 3, 4, 0]


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_member_that_raises_is_left_out_alone(ground: Ground, place: int) -> None:
    changes = [counted(ADD) for _ in range(3)]
    changes.insert(place, adding(b"unwanted", ValueError("no")))
    callers = callers_of(ground.rows, changes)
    with pytest.raises(ValueError, match=r"^no$"):
        callers.pop(place).result()

    assert [caller.result().result for caller in callers] == [1, 2, 3]
    assert (burdens(ground), len(list(read_log(ground.rows, "main")))) == (0, 3)


def test_error_of_a_member_is_the_object_its_change_raised(ground: Ground) -> None:
    fault = RefusedError("mine")
    callers = callers_of(ground.rows, [counted(ADD), adding(b"x", fault), counted(ADD)])
    with pytest.raises(RefusedError) as raised:
        callers[1].result()

    assert raised.value is fault


def test_member_that_changes_nothing_is_told_where_the_head_was(ground: Ground) -> None:
    journal = a_group(ground.rows, [LOOK, ADD, LOOK, ADD, LOOK])

    assert [answer.number for answer in journal] == [0, 1, 1, 2, 2]
    assert [answer.commit_id for answer in journal] == [
        None,
        *[journal[1].commit_id] * 2,
        *[journal[3].commit_id] * 2,
    ]
    assert assert_exact(ground.rows, journal) == 2


def test_group_of_which_none_changes_anything_swaps_nothing(ground: Ground) -> None:
    before = ground.swaps()
    journal = a_group(ground.rows, [LOOK, REFUSE, LOOK, REFUSE])

    assert [answer.number for answer in journal] == [0, 0, 0, 0]
    assert ground.swaps() == before
    assert read_head(ground.rows, "main", fresh=True) is None


def test_edit_that_undoes_the_groups_is_its_own_commit(ground: Ground) -> None:
    def put(tx: Transaction) -> bool:
        return tx.index("things").put(b"k", IndexValue(None, b"1"))

    def remove(tx: Transaction) -> bool:
        return tx.index("things").remove(b"k")

    callers = callers_of(ground.rows, [put, remove, put, remove])

    assert [caller.result().result for caller in callers] == [True] * 4
    assert [one.commit.operations[0].removed for one in read_log(ground.rows, "main", oldest_first=True)] == [False, True] * 2
    assert len(read_head(ground.rows, "main", fresh=True).index("things")) == 0  # type: ignore[union-attr]


def test_member_may_point_to_what_its_predecessor_added(ground: Ground) -> None:
    def moving(tx: Transaction) -> None:
        held = tx.index("burdens").get(b"one")
        assert held is not None
        tx.index("burdens").remove(b"one")
        tx.index("elsewhere").put(b"one", held)

    callers = callers_of(ground.rows, [adding(b"one"), moving])
    callers[1].result()
    newest = read_head(ground.rows.without_cache(), "main", fresh=True)

    assert newest is not None
    assert newest.index("elsewhere").get(b"one") == IndexValue(callers[0].result().result)


def test_member_may_not_point_to_what_was_left_out(ground: Ground) -> None:
    left: list[ObjectId] = []

    def left_out(tx: Transaction) -> None:
        left.append(adding(b"gone")(tx))
        raise ValueError("left out")

    def grasping(tx: Transaction) -> None:
        tx.index("burdens").put(b"mine", IndexValue(left[0]))

    callers = callers_of(ground.rows, [counted(ADD), left_out, grasping, counted(ADD)])
    with pytest.raises(RefusedError, match="neither added"):
        callers[2].result()

    assert callers[3].result().result == 2


def test_error_that_saw_no_unpublished_predecessor_is_told_at_once(ground: Ground) -> None:
    hang = ground.faults.hang(ground.swap, at=1)
    with in_line() as held:

        def first(tx: Transaction) -> int:
            held.hold(tx)
            raise Refusal(count(tx))

        refused = held.lead(lambda: commit_change(ground.rows, "main", first))
        added = held.call(lambda: commit_change(ground.rows, "main", counted(ADD)))
        held.let_go()
        hang.reached()
        with pytest.raises(Refusal):
            refused.result()
        assert added.is_alive()
        hang.release()

    assert added.result().result == 1


@pytest.mark.parametrize("wish", [LOOK, REFUSE, ADD])
def test_answer_on_an_unpublished_predecessor_waits_for_the_swap(ground: Ground, wish: str) -> None:
    hang = ground.faults.hang(ground.swap, at=1)
    with in_line() as held:

        def first(tx: Transaction) -> int:
            held.hold(tx)
            return counted(ADD)(tx)

        held.lead(lambda: commit_change(ground.rows, "main", first))
        waiting = held.call(lambda: commit_change(ground.rows, "main", counted(wish)))
        held.let_go()
        hang.reached()
        waiting.join(0.05)
        assert waiting.is_alive()
        hang.release()


@pytest.mark.parametrize("place", ["alone", "first", "later"])
def test_nested_commit_is_refused_and_its_outer_goes_on(ground: Ground, place: str) -> None:
    refusals: list[RefusedError] = []

    def nesting(tx: Transaction) -> int:
        try:
            commit_change(ground.rows, "main", counted(ADD))
        except RefusedError as refused:
            refusals.append(refused)
        return counted(ADD)(tx)

    callers = _placed(ground, nesting, place)

    assert [caller.result().changed for caller in callers] == [True] * len(callers)
    assert len(refusals) == 1
    assert len(list(read_log(ground.rows, "main"))) == len(callers)


def test_nested_commit_let_through_is_its_outers_error(ground: Ground) -> None:
    def nesting(tx: Transaction) -> object:
        return commit_change(ground.rows, "main", counted(ADD))

    with pytest.raises(RefusedError, match="main"):
        commit_change(ground.rows, "main", nesting)

    assert commit_change(ground.rows, "main", counted(ADD)).result == 1


def _placed(ground: Ground, change: Any, place: str) -> list[Caller]:
    if place == "alone":
        caller = Caller(lambda: commit_change(ground.rows, "main", change))
        caller.wait()
        return [caller]
    return callers_of(ground.rows, [change, counted(ADD)] if place == "first" else [counted(ADD), change, counted(ADD)])


def test_transaction_kept_beyond_its_run_changes_nothing_of_the_group(ground: Ground) -> None:
    kept: list[Transaction] = []

    def keeping(tx: Transaction) -> int:
        kept.append(tx)
        return counted(ADD)(tx)

    def meddling(tx: Transaction) -> int:
        kept[0].index("counters").put(b"n", IndexValue(None, b"1000"))
        return counted(ADD)(tx)

    callers = callers_of(ground.rows, [keeping, meddling, counted(ADD)])

    assert [caller.result().result for caller in callers] == [1, 2, 3]
    assert len(list(read_log(ground.rows, "main"))) == 3
