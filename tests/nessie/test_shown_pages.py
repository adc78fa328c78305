"""Pages of a listing of which a part is hidden, over listings that chance makes."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from fake_clock import FakeClock
from headwater_server.nessie.shown_pages import ShownPage, page_limit, read_shown


class NumberedItems:
    """Items ``0``, ``1`` and so on, in pages that a filter may end early. A token names the item that it stands behind.

    ends          items with which a page ends, whatever was asked for
    """

    def __init__(self, count: int, ends: frozenset[int] = frozenset()) -> None:
        self.count = count
        self.ends = ends
        self.looked = 0

    def __call__(self, token: str | None, limit: int) -> tuple[Sequence[int], str | None]:
        start = 0 if token is None else int(token) + 1
        items: list[int] = []
        for item in range(start, min(start + limit, self.count)):
            items.append(item)
            if item in self.ends:
                break
        self.looked += len(items)
        last = items[-1] if items else start - 1
        return items, str(last) if last + 1 < self.count else None


def read(
    source: NumberedItems, hidden: frozenset[int], *, token: str | None, limit: int, is_all_shown: bool = False
) -> ShownPage[str]:
    def show(items: Sequence[int]) -> list[str | None]:
        return [None if item in hidden else str(item) for item in items]

    return read_shown(source, show, token=token, limit=limit, is_all_shown=is_all_shown, clock=FakeClock())


SUBSETS = st.frozensets(st.integers(0, 700))


@given(st.integers(0, 700), SUBSETS, SUBSETS, st.integers(1, 250))
def test_pages_show_everything_once_and_name_only_what_they_show(
    count: int, hidden: frozenset[int], ends: frozenset[int], limit: int
) -> None:
    source, shown, token = NumberedItems(count, ends), list[str](), None
    while True:
        page = read(source, hidden, token=token, limit=limit)
        assert len(page.shown) <= limit
        shown += page.shown
        token = page.token
        if token is None:
            break
        assert token == page.shown[-1]

    assert shown == [str(item) for item in range(count) if item not in hidden]


@given(st.integers(0, 700), SUBSETS, st.integers(1, 250))
def test_pages_of_an_open_listing_read_no_more_than_they_show(count: int, ends: frozenset[int], limit: int) -> None:
    source = NumberedItems(count, ends)
    page = read(source, frozenset(), token=None, limit=limit, is_all_shown=True)

    assert source.looked == len(page.shown) <= limit


def test_page_ends_where_very_much_is_hidden() -> None:
    source = NumberedItems(1_000_000)
    page = read(source, frozenset(range(1, 999_999)), token=None, limit=2)

    assert (page.shown, page.token) == (["0"], "0") and source.looked < 30_000


def test_page_that_shows_nothing_is_the_last() -> None:
    page = read(NumberedItems(50_000), frozenset(range(50_000)), token=None, limit=2)

    assert page == ShownPage([], None)


def test_size_of_a_page_is_bounded() -> None:
    assert [page_limit(asked, 10) for asked in (None, 0, 1, 10, 11)] == [10, 10, 1, 10, 10]
