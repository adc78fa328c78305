"""Where new tables and views lie, and where a catalog lets them lie."""

from __future__ import annotations

import re
from collections.abc import Iterable
from uuid import UUID

from headwater.catalogs import CatalogDefinition, ContentKey, Namespace
from headwater.catalogs.iceberg import is_within
from headwater.clients.pyiceberg.states import State
from headwater.errors import RefusedError

__all__ = ["LOCATION", "check_allowed", "default_location"]

LOCATION = "location"
"""The property of a namespace that says where its tables lie."""
_UNFIT = re.compile(r"[^\w.=@+-]|^\.+$")


def default_location(state: State, key: ContentKey, *, unique: UUID, warehouse: str) -> str:
    """A place that no other table has, or ever had: a new table in the place of a dropped one, or of one that was renamed, would
    share its files with it.

    It is below the location of the nearest namespace that has one, else below the warehouse.

    unique        of the table
    """
    base, rest = warehouse, key.elements
    namespaces = state.find_many(list(key.ancestors()))
    for ancestor in key.ancestors():
        namespace = namespaces.get(ancestor)
        if isinstance(namespace, Namespace) and namespace.properties.get(LOCATION):
            base, rest = namespace.properties[LOCATION], key.elements[len(ancestor.elements) :]
            break
    return "/".join([base.rstrip("/"), *map(_folder, rest)]) + f"_{unique.hex}"


def check_allowed(definition: CatalogDefinition, key: ContentKey, places: Iterable[str]) -> None:
    """Pass, or raise RefusedError: what a collector may one day delete for a table lies where the catalog allows.

    That is its base location, its allowed locations, and those of its imports.
    """
    imported = (location for one in definition.imports for location in one.locations)
    allowed = [location for location in (definition.base_location, *definition.allowed_locations, *imported) if location]
    for place in places:
        if not any(is_within(place, outer) for outer in allowed):
            raise RefusedError(
                f"{key} would have files at {place}, outside of what catalog {definition.name!r} allows"
                f" ({', '.join(allowed) or 'nothing'}): add it to the catalog's allowed locations if it is meant to be there"
            )


def _folder(element: str) -> str:
    """An element as the name of a folder, in every storage and every kind of URL."""
    return _UNFIT.sub("_", element)
