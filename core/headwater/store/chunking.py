"""Bulk calls in chunks of a size that a database takes well, and what a fault in the middle of them means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from headwater.errors import HeadwaterError, UnknownOutcomeError
from headwater.store.backend import BULK_BYTES

__all__ = ["chunks", "in_chunks"]

T = TypeVar("T")


def in_chunks(
    act: Callable[[Sequence[T]], object],
    rows: Sequence[T],
    *,
    size: Callable[[T], int],
    group: Callable[[T], object] = id,
) -> None:
    """Act on about BULK_BYTES of rows at a time, and never on a part of a group, whose rows stand together.

    size          bytes that a row takes on its way
    raises        what ``act`` raises at the first chunk; UnknownOutcomeError for the same at a later one, for some has happened
    """
    has_happened = False
    for chunk in chunks(rows, size=size, group=group):
        try:
            act(chunk)
        except HeadwaterError as fault:
            if not has_happened or isinstance(fault, UnknownOutcomeError):
                raise
            raise UnknownOutcomeError(f"{fault}; an earlier part of the same call happened") from fault
        has_happened = True


def chunks(rows: Sequence[T], *, size: Callable[[T], int], group: Callable[[T], object] = id) -> Iterator[Sequence[T]]:
    """Cut rows as ``in_chunks`` does."""
    start = total = 0
    for end, row in enumerate(rows):
        total += size(row)
        if total > BULK_BYTES and end > start and group(row) != group(rows[end - 1]):
            yield rows[start:end]
            start, total = end, size(row)
    if rows:
        yield rows[start:]
