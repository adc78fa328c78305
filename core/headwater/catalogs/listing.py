"""The catalogs of a realm as its reference ``catalogs`` lists them.

Index ``by-name`` has the live ones. Index ``by-id`` has all until the collector has removed their last reference; the byte in
its value tells which of a deleted catalog's own references are gone already (see ``OwnPart.bit``).
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.catalogs.definitions import CatalogDefinition
from headwater.catalogs.names import CATALOGS, OwnPart, own_reference
from headwater.commits import Head, read_head
from headwater.errors import MissingError, UnreadableError
from headwater.index import Index, Value
from headwater.store import ObjectId, ReadableRows, RealmReader, RealmStore, UnreadableRow, id_text

__all__ = [
    "BY_ID",
    "BY_NAME",
    "all_definitions",
    "definition_in",
    "find_definition",
    "gone_parts",
    "listed_definitions",
    "lost_list",
    "target_of",
]

BY_NAME = "by-name"
BY_ID = "by-id"


def find_definition(rows: RealmStore, *, name: str | None = None, catalog_id: str | None = None) -> CatalogDefinition | None:
    """A live catalog by its name, or any by its id, as it is now."""
    catalogs = _catalogs(rows)
    if catalogs is None:
        return None
    if name is not None:
        return definition_in(rows, catalogs.index(BY_NAME), name)
    return definition_in(rows, catalogs.index(BY_ID), catalog_id or "")


def definition_in(rows: RealmReader, index: Index, key: str) -> CatalogDefinition | None:
    value = index.get(key.encode())
    return None if value is None else rows.read(target_of(value), CatalogDefinition)


def all_definitions(rows: RealmStore, *, index: str = BY_NAME) -> list[tuple[CatalogDefinition, Value]]:
    """The definitions in an index, by its order, each with its entry.

    raises        UnreadableError when one is not there
    """
    catalogs = _catalogs(rows)
    values = [] if catalogs is None else [value for _, value in catalogs.index(index).range()]
    found = []
    for value, definition in zip(values, rows.read_many(list(map(target_of, values)), CatalogDefinition), strict=True):
        if definition is None:
            raise UnreadableError(
                f"realm {rows.realm!r} lists a catalog whose definition {id_text(target_of(value))} is not there"
            )
        found.append((definition, value))
    return found


def listed_definitions(rows: RealmStore, *, index: str = BY_NAME) -> ReadableRows[CatalogDefinition]:
    """The definitions in an index, by its order; those that cannot be read by their key."""
    catalogs = _catalogs(rows)
    entries = (
        [] if catalogs is None else [(key.decode(errors="replace"), value) for key, value in catalogs.index(index).range()]
    )
    targets = [value.object_id for _, value in entries if value.object_id is not None]
    found = dict(zip(targets, rows.read_each(targets, CatalogDefinition), strict=True))
    readable, unreadable = [], []
    for name, value in entries:
        definition = found.get(value.object_id or ObjectId(0))
        if isinstance(definition, CatalogDefinition):
            readable.append(definition)
            continue
        fault = "its definition is not there" if definition is None else str(definition)
        row = UnreadableRow(what="catalog", id=value.object_id or ObjectId(0), name=repr(name), realm=rows.realm, fault=fault)
        unreadable.append(row)
    return ReadableRows(readable, unreadable)


def target_of(value: Value) -> ObjectId:
    if value.object_id is None:
        raise UnreadableError("an entry of the catalogs points to no definition")
    return value.object_id


def gone_parts(value: Value) -> int:
    """The bits of the own references that are gone."""
    return value.data[0] if value.data else 0


def lost_list(rows: RealmStore, definition: CatalogDefinition, found: Sequence[str]) -> UnreadableError:
    """What to say of a catalog that has branches or tags, and no reference that lists them."""
    reference = own_reference(definition.id, OwnPart.REFS)
    return UnreadableError(
        f"reference {reference!r} of realm {rows.realm!r}, which lists the branches and tags of catalog {definition.name!r}, is not there,"
        f" but {len(found)} of them are ({', '.join(sorted(found)[:3])}{', ...' if len(found) > 3 else ''}): it was lost; restore it from"
        " a backup of the database"
    )


def _catalogs(rows: RealmStore) -> Head | None:
    try:
        return read_head(rows, CATALOGS, fresh=True)
    except MissingError as fault:
        raise MissingError(f"realm {rows.realm!r} has no reference {CATALOGS!r}: it was not bootstrapped") from fault
