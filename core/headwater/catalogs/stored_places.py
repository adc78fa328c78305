"""Where a table lies and writes, by the metadata that a catalog has stored with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headwater.catalogs.claims import normalise_location
from headwater.catalogs.iceberg import PATH_PROPERTIES
from headwater.catalogs.metadata import read_fields
from headwater.errors import RefusedError
from headwater.store import ObjectId, RealmReader

__all__ = ["StoredPlaces", "stored_places"]


class StoredPlaces(NamedTuple):
    """``location`` is None where the metadata has none that could be claimed; ``paths`` are those besides it that could."""

    location: str | None
    paths: tuple[str, ...]


def stored_places(rows: RealmReader, metadata_ids: Sequence[ObjectId]) -> dict[ObjectId, StoredPlaces]:
    """The places in stored documents, of which nobody may have judged anything. All are read in one go: ask for some hundreds.

    raises        as ``read_metadata`` does
    """
    return {one: _places(fields) for one, fields in read_fields(rows, metadata_ids, ("location", "properties")).items()}


def _places(fields: Mapping[str, bytes]) -> StoredPlaces:
    location, properties = (_decoded(fields.get(name)) for name in ("location", "properties"))
    named = (properties.get(name) for name in PATH_PROPERTIES) if isinstance(properties, dict) else ()
    return StoredPlaces(_place(location), tuple(path for path in map(_place, named) if path is not None))


def _decoded(text: bytes | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


def _place(value: object) -> str | None:
    """A location that can be claimed, or None."""
    if not isinstance(value, str):
        return None
    try:
        normalise_location(value)
    except RefusedError:
        return None
    return value
