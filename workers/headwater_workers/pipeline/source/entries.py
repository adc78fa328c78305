"""What a state holds, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.catalogs import CONTENT, ContentKey, ContentValue
from headwater.catalogs.content.types import CONTENT_VALUE_BYTES, NO_SNAPSHOT
from headwater.commits import read_commit
from headwater.errors import UnreadableError
from headwater.index import Value
from headwater.store import RealmStore, StoredObject, id_text
from headwater_workers.pipeline.source.batches import (
    FEW_ROWS,
    ROWS,
    Makers,
    Part,
    batch,
    batched,
    content_id,
    id_or_none,
    key_texts,
    names,
    namespaces,
    pairs,
    type_name,
)
from headwater_workers.pipeline.source.pinning import Pin, Place

__all__ = ["contents", "entries"]


class _Entries(NamedTuple):
    """Entries of one state; ``contents`` in the order of the keys, where they were asked for."""

    pin: Pin
    keys: Sequence[bytes]
    values: Sequence[Value]
    contents: Sequence[StoredObject] = ()


def entries(part: Part) -> Iterator[pa.RecordBatch]:
    """What the index says of each key."""
    for some in _read(part, ROWS):
        yield batch(part.schema, _ENTRY, some)


def contents(part: Part) -> Iterator[pa.RecordBatch]:
    """The same, and the content itself."""
    make = {**_ENTRY, **_FIELDS}
    for some in _read(part, FEW_ROWS):
        yield batch(part.schema, make, some._replace(contents=_objects_of(part.rows, some)))


def _read(part: Part, at_once: int) -> Iterator[_Entries]:
    index = read_commit(part.rows, part.pin.commit).index(CONTENT)
    for some in batched(index.range(part.piece.keys.start, part.piece.keys.end), at_once):
        keys, values = zip(*some, strict=True)
        for odd in (value for value in values if len(value.data) != CONTENT_VALUE_BYTES):
            ContentValue.decode(odd)  # says what is wrong with it
        yield _Entries(part.pin, keys, values)


def _objects_of(rows: RealmStore, some: _Entries) -> list[StoredObject]:
    ids = [ContentValue.decode(value).object_id for value in some.values]
    found = []
    for key, object_id, content in zip(some.keys, ids, rows.read_many(ids, StoredObject), strict=True):
        if content is None:
            raise UnreadableError(
                f"content {ContentKey.from_index(key)} of catalog {some.pin.place.catalog!r} in realm {rows.realm!r}: object"
                f" {id_text(object_id)} is not there"
            )
        found.append(content)
    return found


def _always(of: Callable[[Place], str]) -> Callable[[_Entries], pa.Array]:
    return lambda some: pa.repeat(of(some.pin.place), len(some.keys))


def _field(*fields: str) -> Callable[[_Entries], list[Any]]:
    """Of each content, the one of these fields that it has; None where it has none."""

    def value(content: StoredObject) -> Any:
        return next((found for field in fields if (found := getattr(content, field, None)) is not None), None)

    return lambda some: [value(content) for content in some.contents]


def _snapshot(content: StoredObject) -> int | None:
    found: int | None = getattr(content, "snapshot_id", None)
    return None if found == NO_SNAPSHOT else found


_ENTRY: Makers[_Entries] = {
    "realm": _always(lambda place: place.realm),
    "catalog": _always(lambda place: place.catalog),
    "ref": _always(lambda place: place.ref),
    "kind": _always(lambda place: place.kind),
    "hash": lambda some: pa.repeat(id_text(some.pin.commit), len(some.keys)),
    "key": lambda some: key_texts(some.keys),
    "namespace": lambda some: namespaces(some.keys),
    "name": lambda some: names(some.keys),
    "type": lambda some: [type_name(value.data) for value in some.values],
    "content_id": lambda some: [content_id(value.data) for value in some.values],
    "object_id": lambda some: [id_or_none(value.object_id) for value in some.values],
}
_FIELDS: Makers[_Entries] = {
    "metadata_location": _field("metadata_location"),
    "uuid": _field("table_uuid", "view_uuid"),
    "snapshot_id": lambda some: [_snapshot(content) for content in some.contents],
    "schema_id": _field("schema_id"),
    "properties": lambda some: [pairs(getattr(content, "properties", None)) for content in some.contents],
}
