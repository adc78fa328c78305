"""Where new tables and views lie: in the location of their namespace, which is stored or computed."""

from __future__ import annotations

import re
from uuid import UUID

from headwater.catalogs import ContentKey, Namespace
from headwater.iceberg_catalog.branch_session import BranchState

LOCATION = "location"
"""The property of a namespace that has the location of its tables."""
_UNFIT = re.compile(r"[^\w.=@+-]|^\.+$")


def default_location(state: BranchState, key: ContentKey, *, unique: UUID, warehouse: str) -> str:
    """A unique location for a new table, in the location of its namespace.

    A new table in the place of a dropped or renamed one would share its files.

    unique        of the table
    """
    parent = warehouse if key.parent is None else namespace_location(state, key.parent, warehouse=warehouse)
    return f"{parent.rstrip('/')}/{_folder(key.elements[-1])}_{unique.hex}"


def namespace_location(state: BranchState, key: ContentKey, *, warehouse: str) -> str:
    """The location of a namespace's new tables: its stored location, or else below the nearest namespace that has one, or below the
    warehouse. The namespace itself may be missing.
    """
    line = [key, *key.ancestors()]
    namespaces = state.find_many(line)
    base, rest = warehouse, key.elements
    for name in line:
        namespace = namespaces.get(name)
        if isinstance(namespace, Namespace) and namespace.properties.get(LOCATION):
            base, rest = namespace.properties[LOCATION], key.elements[len(name.elements) :]
            break
    return "/".join([base.rstrip("/"), *map(_folder, rest)])


def _folder(element: str) -> str:
    """A key's element as the name of a folder, valid in every storage and every kind of URL."""
    return _UNFIT.sub("_", element)
