"""Taking down the references of a catalog that is being purged: each leaves a tombstone, and the collector removes the rest."""

from __future__ import annotations

from collections.abc import Callable

from headwater.catalogs.definitions import CatalogDefinition
from headwater.catalogs.names import NAMES, OwnPart, listed_names, own_reference
from headwater.commits import read_head
from headwater.errors import BeatenError, UnavailableError
from headwater.store import RealmStore

__all__ = ["bury"]

_TRIES = 20


def bury(rows: RealmStore, definition: CatalogDefinition, fence: Callable[[], None]) -> int:
    """Delete its branches and tags, and its own references once no branch or tag is listed any more. Returns how many that were.

    fence         called before each of them
    """
    refs = own_reference(definition.id, OwnPart.REFS)
    listed = []
    if rows.find_reference(refs, fresh=True) is not None:
        names = read_head(rows, refs, fresh=True)
        listed = [] if names is None else list(listed_names(names.index(NAMES)))
    names_to_bury = [entry.reference(definition.id) for entry in listed]
    if not listed:  # as long as a name is listed, its list must be readable
        names_to_bury = [own_reference(definition.id, part) for part in OwnPart]
    return sum(_bury_one(rows, name, fence) for name in names_to_bury)


def _bury_one(rows: RealmStore, name: str, fence: Callable[[], None]) -> bool:
    for _ in range(_TRIES):
        row = rows.find_reference(name, fresh=True)
        if row is None:
            return False
        fence()
        try:
            rows.delete_reference(row)
        except BeatenError:
            continue
        return True
    raise UnavailableError(f"reference {name!r} of realm {rows.realm!r} moved {_TRIES} times while it was to be deleted")
