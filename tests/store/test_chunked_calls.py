"""Bulk calls that are too large for one round trip."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headwater.errors import HeadwaterError, RefusedError, SwapConflictError, UnavailableError, UnknownOutcomeError
from headwater.store import BULK_BYTES
from headwater.store.backend import in_chunks

Row = tuple[str, int]


def chunks_of(rows: Sequence[Row]) -> list[list[Row]]:
    seen: list[list[Row]] = []
    in_chunks(lambda chunk: seen.append(list(chunk)), rows, size=lambda row: row[1], group=lambda row: row[0])
    return seen


def test_rows_that_fit_go_at_once() -> None:
    assert chunks_of([("a", BULK_BYTES - 1), ("b", 1)]) == [[("a", BULK_BYTES - 1), ("b", 1)]]


def test_empty_bulk_makes_no_call() -> None:
    assert chunks_of([]) == []


def test_rows_that_belong_together_stay_together() -> None:
    rows = [("a", BULK_BYTES), ("b", BULK_BYTES), ("b", BULK_BYTES), ("c", 1)]

    assert chunks_of(rows) == [rows[:1], rows[1:3], rows[3:]]


@pytest.mark.parametrize("kind", [UnavailableError, RefusedError, SwapConflictError, UnknownOutcomeError])
def test_fault_after_something_has_happened_leaves_the_outcome_open(kind: type[HeadwaterError]) -> None:
    def act(chunk: Sequence[Row]) -> None:
        if chunk[0][0] == "b":
            raise kind("no")

    with pytest.raises(UnknownOutcomeError, match="no"):
        in_chunks(act, [("a", BULK_BYTES), ("b", BULK_BYTES)], size=lambda row: row[1])


@pytest.mark.parametrize("kind", [UnavailableError, RefusedError])
def test_fault_before_anything_has_happened_is_told_as_it_is(kind: type[HeadwaterError]) -> None:
    def act(chunk: Sequence[Row]) -> None:
        raise kind("no")

    with pytest.raises(kind):
        in_chunks(act, [("a", BULK_BYTES), ("b", BULK_BYTES)], size=lambda row: row[1])
