"""What a list gives when something in it cannot be read: the others, and the name of what is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from headwater.errors import UnreadableError
from headwater.store.identity import ObjectId, id_text

__all__ = ["ReadableRows", "UnreadableRow"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRow:
    """Something that is listed and cannot be read, as far as its list tells what it is.

    what          such as "task" or "realm"
    name          what its list calls it
    realm         to whom it belongs; empty where the list does not tell
    fault         what is wrong with it
    """

    what: str
    id: ObjectId
    name: str
    realm: str
    fault: str

    def __str__(self) -> str:
        return f"{self.what} {self.name} ({id_text(self.id)}) cannot be read: {self.fault}: `headwater fsck` tells what to do"


class ReadableRows(list[T]):
    """All that can be read, in the order of the list. ``unreadable`` names what cannot."""

    def __init__(self, readable: Iterable[T] = (), unreadable: Iterable[UnreadableRow] = ()) -> None:
        super().__init__(readable)
        self.unreadable = tuple(unreadable)

    def complete(self) -> ReadableRows[T]:
        """The same list, for callers that must not miss an entry. Raises UnreadableError that names the first one missing."""
        if self.unreadable:
            more = len(self.unreadable) - 1
            raise UnreadableError(f"{self.unreadable[0]}" + (f"; and {more} more" if more else ""))
        return self
