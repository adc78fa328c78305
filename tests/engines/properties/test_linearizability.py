"""The checker itself: what it accepts, what it refuses, and that it agrees with trying every order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

import pytest
from cas_rows import CasRow, Create, Read, Remove, Row, Swap, Write, done, lost
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.model.linearizability import Operation, TooHardError, find_anomaly

A, B, C = Row(1, "a"), Row(2, "b"), Row(3, "c")
TO_B, TO_C = Swap(1, B), Swap(1, C)

GOOD: dict[str, list[Operation]] = {
    "nothing at all": [],
    "one after the other": [done(1, Create(A), True, 0, 1), done(2, TO_B, True, 2, 3), done(1, Read(), B, 4, 5)],
    "a read beside a change sees the old value": [
        done(1, Create(A), True, 0, 1),
        done(2, TO_B, True, 2, 9),
        done(1, Read(), A, 3, 4),
        done(1, Read(), B, 5, 6),
    ],
    "one of two racing swaps wins": [
        done(1, Create(A), True, 0, 1),
        done(1, TO_B, False, 2, 9),
        done(2, TO_C, True, 3, 8),
        done(1, Read(), C, 10, 11),
    ],
    "an unclear change that took effect late": [
        done(1, Create(A), True, 0, 1),
        lost(2, TO_B, 2),
        done(1, Read(), A, 3, 4),
        done(1, Read(), B, 50, 51),
    ],
    "an unclear change that never took effect": [
        done(1, Create(A), True, 0, 1),
        lost(2, TO_B, 2),
        done(1, TO_C, True, 3, 4),
        done(1, Read(), C, 5, 6),
    ],
    "operations that are pending at the end": [lost(1, Create(A), 0), lost(2, Read(), 1), lost(3, Remove(1), 2)],
    "an unclear creation whose row another has already swapped": [
        lost(1, Create(A), 0),
        done(2, TO_B, True, 1, 2),
        done(2, Read(), B, 3, 4),
    ],
    "a beaten swap beside a removal and a creation": [
        done(1, Create(A), True, 0, 1),
        done(2, Remove(1), True, 2, 9),
        done(3, Create(B), True, 2, 9),
        done(4, TO_C, False, 2, 9),
        done(1, Read(), B, 10, 11),
    ],
    "a call at the instant of another's return": [done(1, Create(A), True, 0, 5), done(2, Read(), None, 5, 6)],
}

BAD: dict[str, tuple[list[Operation], int]] = {
    "a stale read": ([done(1, Create(A), True, 0, 1), done(2, TO_B, True, 2, 3), done(1, Read(), A, 4, 5)], 2),
    "a lost update": (
        [
            done(1, Create(A), True, 0, 1),
            done(1, Swap(1, B), True, 2, 3),
            done(2, Read(), B, 4, 5),
            done(2, Swap(2, C), True, 6, 7),
            done(1, Read(), B, 8, 9),
        ],
        4,
    ),
    "two swaps of one version that both succeed": (
        [done(1, Create(A), True, 0, 1), done(1, TO_B, True, 2, 9), done(2, TO_C, True, 3, 10)],
        2,
    ),
    "two creations that both succeed": ([done(1, Create(A), True, 0, 9), done(2, Create(B), True, 1, 10)], 1),
    "a beaten swap that was not beaten": ([done(1, Create(A), True, 0, 1), done(1, TO_B, False, 2, 3)], 1),
    "a beaten swap that took effect": (
        [done(1, Create(A), True, 0, 1), done(1, Swap(0, B), False, 2, 3), done(2, Read(), B, 4, 5)],
        2,
    ),
    "a read from the future": ([done(1, Read(), A, 0, 1), done(1, Create(A), True, 2, 3)], 0),
    "values that go back beside a long change": (
        [
            done(1, Create(A), True, 0, 1),
            done(2, TO_B, True, 2, 99),
            done(1, Read(), B, 3, 4),
            done(3, Read(), A, 5, 6),
        ],
        3,
    ),
    "an unclear change that took effect before its call": ([done(2, Read(), A, 0, 1), lost(1, Create(A), 2)], 0),
    "an unclear change that took effect twice": (
        [lost(1, Create(A), 0), done(2, Remove(1), True, 1, 2), done(2, Read(), A, 3, 4)],
        2,
    ),
    "a removed row that is still read": (
        [done(1, Create(A), True, 0, 1), done(1, Remove(1), True, 2, 3), done(1, Read(), A, 4, 5)],
        2,
    ),
    "a lost row": ([done(1, Create(A), True, 0, 1), done(2, Read(), None, 2, 3)], 1),
}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
def test_history_that_could_have_happened_is_accepted(history: list[Operation]) -> None:
    assert find_anomaly(history, CasRow()) is None


@pytest.mark.parametrize(("history", "culprit"), BAD.values(), ids=BAD)
def test_history_that_cannot_have_happened_is_refused_where_it_shows(history: list[Operation], culprit: int) -> None:
    anomaly = find_anomaly(history, CasRow())

    assert anomaly is not None
    assert anomaly.operation == history[culprit]


def test_order_of_the_records_does_not_matter() -> None:
    assert find_anomaly(GOOD["one of two racing swaps wins"][::-1], CasRow()) is None


def test_anomaly_tells_the_row_before_and_what_happened_beside() -> None:
    stale = done(3, Read(), A, 60, 70)
    slow = done(4, Swap(2, C), True, 65, 80)
    anomaly = find_anomaly(
        [done(1, Create(A), True, 0, 1), done(2, TO_B, True, 2, 3), stale, slow, done(1, Read(), C, 90, 91)], CasRow()
    )

    assert anomaly is not None
    assert anomaly.beside == (slow,)
    assert "Row(mark=1, rest='a')" in str(anomaly)


def test_history_that_would_take_too_long_is_given_up() -> None:
    writes = [done(number, Write(Row(number)), True, 0, 100) for number in range(30)]
    with pytest.raises(TooHardError, match="100 possibilities"):
        find_anomaly([*writes, done(99, Read(), Row(99), 50, 51)], CasRow(), hard=100)


def test_many_unclear_changes_do_not_make_a_history_too_hard() -> None:
    unclear = [lost(number, Write(Row(number)), number) for number in range(60)]
    unclear += [lost(number, Create(Row(number)), number) for number in range(60)]
    reads = [done(99, Read(), Row(number), 1000 + 2 * number, 1001 + 2 * number) for number in range(60)]

    assert find_anomaly([*unclear, *reads], CasRow(), hard=5000) is None
    assert find_anomaly([*unclear, *reads, done(99, Read(), Row(60), 2000, 2001)], CasRow(), hard=5000) is not None


def test_long_histories_of_many_clients_are_judged_in_seconds() -> None:
    history = [done(0, Create(Row(0)), True, 0, 1)]
    for version in range(400):
        start = 10 * version + 10
        history += [done(client, Read(), Row(version), start, start + 8) for client in range(6)]
        history += [done(9, Swap(version, Row(version + 1)), True, start, start + 9), lost(8, Swap(version, Row(-1)), start)]

    assert find_anomaly(history, CasRow()) is None


rows = st.sampled_from([A, B, C])
marks = st.sampled_from([1, 2, 3])
calls = st.one_of(
    st.builds(Create, rows), st.builds(Read), st.builds(Swap, marks, rows), st.builds(Remove, marks), st.builds(Write, rows)
)


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Up to five operations with answers that may or may not be possible."""
    history = []
    for number, call in enumerate(draw(st.lists(calls, max_size=5))):
        called = draw(st.integers(0, 20))
        if draw(st.integers(0, 4)) == 0:
            history.append(lost(number, call, called))
            continue
        answers = st.sampled_from([None, A, B, C]) if isinstance(call, Read) else st.just(True)
        if isinstance(call, Create | Swap | Remove):
            answers = st.booleans()
        history.append(done(number, call, draw(answers), called, called + draw(st.integers(0, 12))))
    return history


@given(histories())
@settings(max_examples=300, database=None, print_blob=True)
def test_verdict_is_the_same_as_that_of_trying_every_order(history: list[Operation]) -> None:
    assert (find_anomaly(history, CasRow()) is None) == some_order_explains(history)


def some_order_explains(history: Sequence[Operation]) -> bool:
    answered = [operation for operation in history if operation.returned is not None]
    unclear = [operation for operation in history if operation.returned is None]
    return any(
        is_explained(order)
        for count in range(len(unclear) + 1)
        for happened in combinations(unclear, count)
        for order in permutations([*answered, *happened])
    )


def is_explained(order: Sequence[Operation]) -> bool:
    """Whether nobody comes before one who had returned before the call, and every answer is that of the model."""
    value = CasRow.initial
    latest_call = -1
    for operation in order:
        latest_call = max(latest_call, operation.called)
        if operation.returned is not None and operation.returned < latest_call:
            return False
        value, answer = CasRow().apply(value, operation.call)
        if operation.returned is not None and answer != operation.answer:
            return False
    return True
