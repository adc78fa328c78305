"""What programs read one by one: histories whose iterator says in the end why there is no more, and listings of many pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Generic, TypeVar

from headwater.api.api_values import told_id
from headwater.catalogs import CatalogLog, KeyChange, KeyHistory, LogEntry

T = TypeVar("T")


class LogIterator(Iterator[T], Generic[T]):
    """The commits of a log, or the changes of a history, read as they are asked for."""

    def __init__(self, found: Iterator[T], source: CatalogLog | KeyHistory) -> None:
        self._found = found
        self._source = source

    def __next__(self) -> T:
        return next(self._found)

    @property
    def end(self) -> str | None:
        """Why there are no more. None: the iteration is not over yet.

        ``beginning``: history begins there. ``cut``: what is older was collected. ``until``: what is older was not asked for.
        ``bound``: as many commits were looked at as ``within`` allows. ``limit``: there may be more.
        """
        return None if self._source.end is None else self._source.end.value

    @property
    def last(self) -> str | None:
        """The oldest commit that was looked at: a search that ended as ``bound`` goes on at ``HASH~1``. None: none yet."""
        return told_id(self._source.last)


def begun(values: Iterator[T]) -> Iterator[T]:
    """Values whose first one is read now: so what is wrong is raised by the call that asks for them."""
    first = list(islice(values, 1))
    return chain(first, values)


def iter_pages(read_page: Callable[[str | None], tuple[Iterable[T], str | None]]) -> Iterator[T]:
    """The values of all pages, the first of which is read now.

    read_page     takes the token of a page, None for the first one; returns its values and the token of the next one, None after the last
    """
    values, token = read_page(None)

    def others() -> Iterator[T]:
        after = token
        while after is not None:
            page, after = read_page(after)
            yield from page

    return chain(values, others())


def told_log(log: CatalogLog, tell: Callable[[LogEntry], T]) -> LogIterator[T]:
    """A log with its entries as values."""
    return LogIterator(map(tell, log), log)


def told_history(history: KeyHistory, tell: Callable[[KeyChange], T]) -> LogIterator[T]:
    """A history with its changes as values."""
    return LogIterator(map(tell, history), history)
