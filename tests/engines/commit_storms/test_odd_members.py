"""Members whose commit cannot be written, or may not be, or whose reference goes away: each is told its own, and no other's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from callers import Caller, in_line
from counters import ADD, counted
from grounds import Ground
from groups import callers_of

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import CommitResult, Transaction, commit_change, read_log
from headwater.errors import CorruptionError, FencedError, NotFoundError, RefusedError
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import RealmId, RealmKey, RealmStore, Store
from headwater.store.backends.memory import MemoryBackend

places = pytest.mark.parametrize("place", [0, 1, 3])


class ShutGate:
    """Lets nothing through."""

    def check_write(self) -> None:
        raise RefusedError("the realm is INACTIVE")


def with_a_strange_property(tx: Transaction) -> None:
    counted(ADD)(tx)
    tx.set_property("strange", object())


def with_text_for_bytes(tx: Transaction) -> None:
    counted(ADD)(tx)
    tx.index("counters").put(b"m", IndexValue(None, "text"))  # type: ignore[arg-type]


def with_text_for_a_key(tx: Transaction) -> None:
    counted(ADD)(tx)
    tx.index("counters").put("m", IndexValue(None, b"1"))  # type: ignore[arg-type]


def with_a_strange_id(tx: Transaction) -> None:
    counted(ADD)(tx)
    tx.index("counters").put(b"m", IndexValue(1 << 70, b"1"))  # type: ignore[arg-type]


def with_too_long_a_key(tx: Transaction) -> None:
    counted(ADD)(tx)
    tx.index("counters").put(b"x" * 501, IndexValue(None))


STRANGE = [
    with_a_strange_property,
    with_text_for_bytes,
    with_text_for_a_key,
    with_a_strange_id,
    with_too_long_a_key,
]


@places
@pytest.mark.parametrize("strange", STRANGE)
def test_member_that_cannot_be_written_is_left_out_alone(ground: Ground, strange: Any, place: int) -> None:
    changes: list[Any] = [counted(ADD) for _ in range(3)]
    changes.insert(place, strange)
    callers = callers_of(ground.rows, changes)
    with pytest.raises((TypeError, ValueError, OverflowError, AttributeError, NotImplementedError, RefusedError)):
        callers.pop(place).result()

    assert [caller.result().result for caller in callers] == [1, 2, 3]
    assert [len(one.commit.operations) for one in read_log(ground.rows, "main")] == [1, 1, 1]


@places
def test_member_whose_gate_is_shut_writes_nothing_through_the_others(ground: Ground, place: int) -> None:
    shut = ground.rows.store.rows(ground.rows.realm, ground.rows.key, ShutGate())  # type: ignore[attr-defined]
    callers = called_through([ground.rows] * place + [shut] + [ground.rows] * (3 - place))
    with pytest.raises(RefusedError, match="INACTIVE"):
        callers.pop(place).result()

    assert [caller.result().result for caller in callers] == [1, 2, 3]
    assert len(list(read_log(ground.rows, "main"))) == 3


class ShuttingGate:
    """Lets so many looks through, as a realm that becomes inactive meanwhile."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def check_write(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise RefusedError("the realm is INACTIVE")


@pytest.mark.parametrize("looks", [0, 1, 2])
def test_publisher_whose_gate_shuts_leaves_the_others_to_publish(ground: Ground, looks: int) -> None:
    shutting = ground.rows.store.rows(ground.rows.realm, ground.rows.key, ShuttingGate(looks))  # type: ignore[attr-defined]
    callers = called_through([ground.rows] * 3 + [shutting])
    told = [caller.result().result for caller in callers[:3]]
    try:
        told.append(callers[3].result().result)
    except RefusedError:
        assert len(list(read_log(ground.rows, "main"))) == 3

    assert told == list(range(1, len(told) + 1))


def called_through(handles: list[RealmStore]) -> list[Caller]:
    """One member through each of these handles, in one group."""
    with in_line() as held:

        def first(tx: Transaction) -> int:
            held.hold(tx)
            return counted(ADD)(tx)

        held.lead(lambda: commit_change(handles[0], "main", first))
        for rows in handles[1:]:
            held.call(lambda rows=rows: commit_change(rows, "main", counted(ADD)))  # type: ignore[misc]
    return held.callers


@places
def test_member_whose_fence_fell_is_left_out_alone(ground: Ground, place: int) -> None:
    def fallen() -> None:
        raise FencedError("taken over")

    def work(at: int) -> Callable[[], CommitResult[int]]:
        return lambda: commit_change(ground.rows, "main", counted(ADD), fence=fallen if at == place else None)

    def holding(tx: Transaction) -> int:
        held.hold(tx)
        return counted(ADD)(tx)

    with in_line() as held:
        held.lead(lambda: commit_change(ground.rows, "main", holding))
        for at in range(4):
            held.call(work(at))
    callers = held.callers
    with pytest.raises(FencedError):
        callers.pop(place + 1).result()

    assert [caller.result().result for caller in callers] == [1, 2, 3, 4]


def test_fence_is_asked_before_every_run(ground: Ground) -> None:
    asked: list[int] = []
    others = ground.open(is_safe=True)
    ground.faults.intervene(ground.swap, lambda: commit_change(others, "main", counted(ADD)))
    done = commit_change(ground.rows, "main", counted(ADD), fence=lambda: asked.append(1))

    assert (done.result, done.attempts, len(asked)) == (2, 2, 2)


def test_reference_that_goes_away_is_missing_to_every_member(ground: Ground) -> None:
    def delete() -> None:
        ground.faults.intervene(
            ground.swap, lambda: ground.rows.delete_reference(ground.rows.read_reference("main", fresh=True))
        )

    callers = callers_of(ground.rows, [counted(ADD)] * 4, delete)

    for caller in callers:
        with pytest.raises(NotFoundError, match="'main'"):
            caller.result()


def test_head_that_is_not_there_is_unreadable_to_every_caller(ground: Ground) -> None:
    commit_change(ground.rows, "main", counted(ADD))
    newest = next(read_log(ground.rows, "main"))
    for batch in list(ground.rows.scan_objects()):
        ground.rows.delete_unchanged([key for key in batch if key.id == newest.id])
    fresh = ground.open()
    begin = threading.Barrier(4)

    def attempt() -> CommitResult[int]:
        begin.wait(20)
        return commit_change(fresh, "main", counted(ADD))

    for caller in [Caller(attempt) for _ in range(4)]:
        with pytest.raises(CorruptionError, match="not there"):
            caller.result()
    assert fresh.read_reference("main", fresh=True).pointer == newest.id


def test_lone_commit_neither_sleeps_nor_asks_more_than_it_must() -> None:
    clock, faults = FakeClock(), FaultyBackend(MemoryBackend())
    with Store(faults, url="memory://", settings=Settings(), clock=clock) as store:
        rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
        rows.ensure_reference("main")
        commit_change(rows, "main", counted(ADD))
        faults.calls.clear()
        done = commit_change(rows, "main", counted(ADD))

        assert (done.attempts, clock.monotonic()) == (1, 0)
        assert faults.calls == ["read_references", "write_objects", "swap_reference"]
