"""Histories as programs read them: an iterator that says in the end why there is no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        """Why there are no more. None: the iteration is not over, or was ended by its limit.

        ``beginning``: history begins there. ``cut``: what is older was collected. ``until``: what is older was not asked for.
        ``bound``: as many commits were looked at as ``within`` allows. ``limit``: there may be more.
        """
        return None if self._source.end is None else self._source.end.value

    @property
    def last(self) -> str | None:
        """The oldest commit that was looked at: a search that ended as ``bound`` goes on at ``HASH~1``. None: none yet."""
        return told_id(self._source.last)


def told_log(log: CatalogLog, tell: Callable[[LogEntry], T]) -> LogIterator[T]:
    """A log with its entries as values."""
    return LogIterator(map(tell, log), log)


def told_history(history: KeyHistory, tell: Callable[[KeyChange], T]) -> LogIterator[T]:
    """A history with its changes as values."""
    return LogIterator(map(tell, history), history)
