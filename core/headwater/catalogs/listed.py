"""What a realm's catalogs listed at an earlier commit: the names that there were then, whether or not they have rows now."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.catalogs.listing import BY_ID, gone_parts
from headwater.catalogs.names import NAMES, ListedName, OwnPart, listed_names, own_reference
from headwater.clock import Micros
from headwater.commits import Head, read_log, sound_times
from headwater.store import ObjectId, RealmStore

__all__ = ["catalog_ids", "names_in", "own_references", "relisted"]


def catalog_ids(catalogs: Head) -> list[str]:
    """The ids of all catalogs that a commit of the reference ``catalogs`` lists, deleted ones included."""
    return [key.decode() for key, _ in catalogs.index(BY_ID).range()]


def own_references(catalogs: Head) -> list[str]:
    """The names of the catalogs' own references at a commit of ``catalogs``, but for those that the collector removed before it."""
    return [
        own_reference(key.decode(), part)
        for key, entry in catalogs.index(BY_ID).range()
        for part in OwnPart
        if not gone_parts(entry) & part.bit
    ]


def names_in(refs: Head, catalog_id: str) -> list[str]:
    """The references of the branches and tags that a commit of a catalog's ``refs`` lists."""
    return [entry.reference(catalog_id) for entry in listed_names(refs.index(NAMES))]


def relisted(rows: RealmStore, newest: ObjectId, catalog_id: str, *, since: Micros) -> Mapping[str, Micros]:
    """By reference: when its name was listed first after ``since``, of those names that were, in the history of a ``refs``.

    A name that is alive is not listed again, so at that time it was not.
    """
    found: dict[str, Micros] = {}
    for commit, time in sound_times(read_log(rows, newest)):
        if time <= since:
            break
        for operation in commit.commit.operations:
            if operation.index == NAMES and operation.value is not None:
                entry = ListedName.decode(operation.key, operation.value)
                found[entry.reference(catalog_id)] = time
    return found
