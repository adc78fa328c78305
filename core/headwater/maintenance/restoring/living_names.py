"""Which branches and tags a catalog had at a moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from headwater.catalogs import reference_text
from headwater.catalogs.listed import relisted
from headwater.catalogs.names import NAMES, ListedName, listed_names
from headwater.clock import Micros
from headwater.commits import AbsentReference, Head, check_reference_times, pointer_as_of, state_as_of
from headwater.store import RealmStore, Reference

__all__ = ["NamesThen", "names_at", "stood_at"]


@dataclass(frozen=True, slots=True)
class NamesThen:
    """The branches and tags that a catalog listed at a moment.

    listed        by index key
    relisted      by reference, when each was listed for the first time after that moment: by then it was not alive any more
    """

    rows: RealmStore
    time: Micros
    listed: Mapping[bytes, ListedName]
    relisted: Mapping[str, Micros]

    def has_living(self, key: bytes, row: Reference) -> bool:
        """Whether a name was listed, and its reference alive. RefusedError when the row's times cannot be right."""
        check_reference_times(self.rows, row, self.time, what=partial(reference_text, self.rows, row.name))
        return key in self.listed and not isinstance(
            pointer_as_of(row, self.time, self.relisted.get(row.name)), AbsentReference
        )


def stood_at(rows: RealmStore, row: Reference, time: Micros) -> Head | None:
    """The commit that was HEAD at a moment; None: the reference had none yet, or was not there. Raises as ``state_as_of`` does."""
    found = state_as_of(rows, row, time, what=partial(reference_text, rows, row.name))
    return None if isinstance(found, AbsentReference) else found


def names_at(rows: RealmStore, refs: Reference, catalog_id: str, time: Micros) -> NamesThen:
    """The names that the reference ``refs`` of a catalog listed at a moment. Raises as ``state_as_of`` does."""
    then = stood_at(rows, refs, time)
    listed = {} if then is None else {entry.key: entry for entry in listed_names(then.index(NAMES))}
    again = {} if refs.pointer is None else relisted(rows, refs.pointer, catalog_id, since=time)
    return NamesThen(rows, time, listed, again)
