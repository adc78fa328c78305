"""The sequential truth of one row that can be created, read, swapped, removed and overwritten: what every backend must look like.

A row's value is None (absent) or a pair: the mark that conditions compare (a version, a token), and what else was stored.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from engines.model.linearizability import Operation

__all__ = ["CasRow", "Create", "Read", "Remove", "Row", "Swap", "Write", "done", "lost"]


class Row(NamedTuple):
    """What is stored: conditions compare the mark alone."""

    mark: Hashable
    rest: Hashable = None


class Create(NamedTuple):
    row: Row


class Read(NamedTuple):
    pass


class Swap(NamedTuple):
    seen: Hashable
    new: Row


class Remove(NamedTuple):
    seen: Hashable


class Write(NamedTuple):
    row: Row


Call = Create | Read | Swap | Remove | Write


class CasRow:
    """Reads answer the row; conditional changes whether they were made."""

    initial: Row | None = None

    def apply(self, value: Row | None, call: Call) -> tuple[Row | None, Hashable]:
        match call:
            case Read():
                return value, value
            case Write(row):
                return row, True
            case Create(row):
                return (row, True) if value is None else (value, False)
            case Swap(seen, new):
                return (new, True) if value is not None and value.mark == seen else (value, False)
            case Remove(seen):
                return (None, True) if value is not None and value.mark == seen else (value, False)


def done(client: Hashable, call: Call, answer: Hashable, called: int, returned: int) -> Operation:
    """An operation whose answer came."""
    return Operation(client, call, called, returned, answer)


def lost(client: Hashable, call: Call, called: int) -> Operation:
    """An operation of which nobody knows whether it happened."""
    return Operation(client, call, called)
