"""Pages of what may be shown: what they promise, and how long they look for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fake_clock import FakeClock
from headwater.errors import RefusedError
from headwater_server.nessie.shown_pages import PATIENCE_SECONDS, ShownPage, read_shown

ITEMS = 5_000


def page(clock: FakeClock, shown: set[int], *, limit: int, token: str | None = None, seconds: float = 0) -> ShownPage[int]:
    """A page of numbers, of which some are shown; each reading takes so many seconds."""

    def read(token: str | None, limit: int) -> tuple[Sequence[int], str | None]:
        clock.advance(seconds)
        start = int(token or 0)
        end = min(start + limit, ITEMS)
        return range(start, end), None if end == ITEMS else str(end)

    def show(items: Sequence[int]) -> list[int | None]:
        return [each if each in shown else None for each in items]

    return read_shown(read, show, token=token, limit=limit, is_all_shown=False, clock=clock)


@pytest.mark.parametrize("last", [3, 4_999])
def test_full_page_promises_what_comes(last: int) -> None:
    first = page(FakeClock(), {1, 2, last}, limit=2)

    assert first == ShownPage([1, 2], "3")
    assert page(FakeClock(), {1, 2, last}, limit=2, token=first.token) == ShownPage([last], None)


def test_full_page_promises_nothing_where_nothing_comes() -> None:
    assert page(FakeClock(), {1, 2}, limit=2) == ShownPage([1, 2], None)


def test_page_looks_for_a_while_only() -> None:
    with pytest.raises(RefusedError, match="nothing to be shown was found among"):
        page(FakeClock(), {4_999}, limit=2, seconds=PATIENCE_SECONDS / 3)


def test_full_page_promises_more_where_looking_takes_long() -> None:
    assert page(FakeClock(), {1, 2}, limit=2, seconds=PATIENCE_SECONDS + 1) == ShownPage([1, 2], "3")
