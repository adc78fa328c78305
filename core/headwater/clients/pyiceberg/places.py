"""Where new tables and views lie, where a catalog lets them lie, and which places are a table's own.

A place is judged by its text alone (``plain_location`` says which texts mean the same to every driver); of local files also by the links
below what the catalog allows, of which none is followed. Nothing here tells whether something is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from uuid import UUID

from pyiceberg.table import TableProperties

from headwater.catalogs import CatalogDefinition, ContentKey, Namespace
from headwater.catalogs.iceberg import is_through_link, is_within, plain_location
from headwater.catalogs.metadata_names import own_name
from headwater.clients.pyiceberg.states import State
from headwater.errors import RefusedError

__all__ = ["LOCATION", "check_allowed", "check_own", "default_location", "metadata_file"]

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
    allowed = definition.places
    for place in places:
        spelled = plain_location(place)
        if not any(is_within(spelled, outer) and not is_through_link(spelled, outer) for outer in allowed):
            raise RefusedError(
                f"{key} cannot have files at {place}: it is outside the locations that catalog {definition.name!r} allows"
                f" ({', '.join(allowed) or 'none'}), or is reached through a symbolic link. Add the location to the catalog's allowed"
                " locations, or use the path without the link"
            )


def check_own(key: ContentKey, files: Iterable[str], places: Iterable[str]) -> None:
    """Pass, or raise RefusedError for a file that does not lie in one of a table's own places, of which each is allowed."""
    own = sorted(places)
    for file in files:
        if not any(_lies_plainly_in(file, place) for place in own):
            raise RefusedError(
                f"{key} cannot have {file}: it is outside the table's own places ({', '.join(own)}), or is reached through a symbolic"
                " link. Write it to one of them, without a link"
            )


def _lies_plainly_in(file: str, place: str) -> bool:
    """A place that an import took may itself be spelled oddly; what comes after it may not."""
    stem = place.rstrip("/") + "/"
    try:
        plain_location(f"s3://own/{file.removeprefix(stem)}" if file.startswith(stem) else file)
    except RefusedError:
        return False
    return is_within(file, place) and not is_through_link(file, place)


def metadata_file(catalog_id: str, location: str, properties: Mapping[str, str], version: int = 0) -> str:
    """A new name for a metadata file of a table or view, as pyiceberg gives them; no code of the table's choice is asked.

    The name tells an import of this catalog that the file is not another writer's, even if its commit never happened.
    """
    folder = properties.get(TableProperties.WRITE_METADATA_PATH) or f"{location.rstrip('/')}/metadata"
    return f"{folder.rstrip('/')}/{own_name(catalog_id, version)}"


def _folder(element: str) -> str:
    """An element as the name of a folder, in every storage and every kind of URL."""
    return _UNFIT.sub("_", element)
