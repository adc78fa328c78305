"""Callers that die in the middle of a group, by whatever exception: the others are told the truth, and nobody waits for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from callers import in_line
from counters import ADD, Answer, assert_exact, counted, killed, tell
from grounds import Ground
from groups import callers_of

from headwater.commits import Transaction, read_log


class StrangeError(BaseException):
    """What no library expects."""


DEATHS = [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, StrangeError]
deaths = pytest.mark.parametrize("death", DEATHS)


def a_dying_group(ground: Ground, count: int, plan: Callable[[], object]) -> tuple[list[Answer], list[BaseException]]:
    """What the members of one group were told, and what those raised that died."""
    begun = time.monotonic_ns()
    journal, faults = [], []
    with in_line() as held:

        def first(tx: Transaction) -> int:
            held.hold(tx)
            return counted(ADD)(tx)

        held.lead(lambda: tell(ground.rows, 0, ADD, first))
        for client in range(1, count):
            held.call(lambda client=client: tell(ground.rows, client))  # type: ignore[misc]
        plan()
    for client, caller in enumerate(held.callers):
        try:
            journal.append(caller.result())
        except BaseException as fault:  # noqa: BLE001  it is what is looked for
            faults.append(fault)
            journal.append(killed(client, begun))
    return journal, faults


@deaths
@pytest.mark.parametrize("place", [0, 1, 3])
def test_change_that_dies_takes_nobody_with_it(ground: Ground, death: type[BaseException], place: int) -> None:
    def dying(tx: Transaction) -> int:
        counted(ADD)(tx)
        raise death

    changes: list[Callable[[Transaction], Any]] = [counted(ADD) for _ in range(3)]
    changes.insert(place, dying)
    callers = callers_of(ground.rows, changes)
    with pytest.raises(death):
        callers.pop(place).result()

    assert [caller.result().result for caller in callers] == [1, 2, 3]
    assert len(list(read_log(ground.rows, "main"))) == 3


@deaths
@pytest.mark.parametrize("before", [True, False], ids=["before the swap", "after the swap"])
def test_publisher_that_dies_is_replaced(ground: Ground, death: type[BaseException], before: bool) -> None:
    journal, faults = a_dying_group(ground, 6, lambda: ground.faults.fail(ground.swap, before=before, fault=death()))

    assert [type(fault) for fault in faults] == [death]
    assert assert_exact(ground.rows, journal, deleted=ground.witness.deleted) >= 5


@pytest.mark.parametrize("times", [2, 3, 6])
def test_publishers_that_die_one_after_the_other_are_replaced(ground: Ground, times: int) -> None:
    journal, faults = a_dying_group(ground, 6, lambda: ground.faults.fail(ground.swap, times=times, fault=SystemExit()))

    assert len(faults) == times
    assert assert_exact(ground.rows, [*journal, tell(ground.rows, 99)], deleted=ground.witness.deleted) >= 7 - times


@deaths
@pytest.mark.parametrize("method", ["write_objects", "read_references"])
def test_caller_that_dies_at_another_call_is_replaced(ground: Ground, death: type[BaseException], method: str) -> None:
    """It dies while it looks after a lost answer, or before the swap."""

    def plan() -> None:
        ground.faults.fail(ground.swap, before=False)
        ground.faults.fail(method, fault=death())

    journal, faults = a_dying_group(ground, 5, plan)

    assert {type(fault) for fault in faults} <= {death}
    assert assert_exact(ground.rows, [*journal, tell(ground.rows, 99)], deleted=ground.witness.deleted) >= 6 - len(faults)


def test_leader_that_dies_before_it_looks_leaves_the_reference_free(ground: Ground) -> None:
    ground.faults.fail("read_references", fault=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        tell(ground.rows, 0)

    assert tell(ground.rows, 1).number == 1
