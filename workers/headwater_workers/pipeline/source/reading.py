"""Rows of the store as Arrow batches. Runs in the executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from headwater.catalogs import CONTENT, CommitMeta, ContentKey, ContentType, ContentValue
from headwater.catalogs.content.types import CONTENT_VALUE_BYTES, type_text
from headwater.catalogs.listing import BY_ID, all_definitions
from headwater.catalogs.names import CatalogPart, NameKind, parse_reference
from headwater.commits import Head, Operation, log, read_commit
from headwater.errors import ExpiredError, HeadwaterError, MissingError, UnreadableError
from headwater.index import Value
from headwater.realms import Realms
from headwater.store import SYSTEM_REALM, ObjectKey, RealmStore, ReferenceKey, Store, StoredObject, id_text
from headwater_workers.pipeline.source.columns import arrow_schema
from headwater_workers.pipeline.source.conditions import Selection
from headwater_workers.pipeline.source.options import Request, open_for_reading
from headwater_workers.pipeline.source.planning import Piece, Pin, Place, check_served, expired, is_wanted, read_only

__all__ = ["read"]

T = TypeVar("T")
_ROWS = 8192
"""Rows of one batch: Spark's own are of up to ten thousand."""
_FEW_ROWS = 1024
"""Of a batch of commits, and of one for which an object is read for each row."""
_HAS_METADATA = 0x80


def read(request: Request, selection: Selection, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    """The rows of some pieces, through a connection of their own that is closed behind them. Writes nothing.

    raises        ExpiredError when a state was collected since it was pinned; MissingError and RefusedError when its realm is gone
    """
    schema = arrow_schema(request.columns)
    with open_for_reading(request.url) as store:
        for piece in pieces:
            try:
                yield from _TABLES[request.table](read_only(store, piece.tenant), piece, request, selection, schema)
            except (MissingError, UnreadableError) as fault:
                raise _meaning(store, piece, fault) from None


def _meaning(store: Store, piece: Piece, fault: HeadwaterError) -> HeadwaterError:
    """What happened to a state that could not be read."""
    if piece.pin is None:
        return fault
    realm = Realms(store).find(piece.tenant.realm)
    if realm is None or realm.key != piece.tenant.key:
        return MissingError(f"realm {piece.tenant.realm!r} was deleted since this data frame or view was made")
    check_served(realm)
    try:
        head = read_commit(read_only(store, piece.tenant).without_cache(), piece.pin.commit)
    except ExpiredError:
        return expired(piece.pin)
    return expired(piece.pin) if isinstance(fault, UnreadableError) and head.is_collected() else fault


# entries and contents


class _Entries(NamedTuple):
    """Entries of one state; ``contents`` in the order of the keys, where they were asked for."""

    pin: Pin
    keys: Sequence[bytes]
    values: Sequence[Value]
    contents: Sequence[StoredObject] = ()


def _entries(rows: RealmStore, piece: Piece, _: Request, __: Selection, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for some in _entries_of(rows, piece, _ROWS):
        yield _batch(schema, _ENTRY, some, len(some.keys))


def _contents(rows: RealmStore, piece: Piece, _: Request, __: Selection, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for some in _entries_of(rows, piece, _FEW_ROWS):
        yield _batch(schema, _ENTRY | _FIELDS, some._replace(contents=_objects_of(rows, some)), len(some.keys))


def _entries_of(rows: RealmStore, piece: Piece, at_once: int) -> Iterator[_Entries]:
    pin = _pin_of(piece)
    index = read_commit(rows, pin.commit).index(CONTENT)
    for some in _batched(index.range(piece.keys.start, piece.keys.end), at_once):
        keys, values = zip(*some, strict=True)
        if any(len(value.data) != CONTENT_VALUE_BYTES for value in values):
            for value in values:
                ContentValue.decode(value)  # says what is wrong with it
        yield _Entries(pin, keys, values)


def _objects_of(rows: RealmStore, some: _Entries) -> list[StoredObject]:
    ids = [ContentValue.decode(value).object_id for value in some.values]
    found = rows.read_many(ids, StoredObject)
    for key, object_id, content in zip(some.keys, ids, found, strict=True):
        if content is None:
            raise UnreadableError(
                f"content {ContentKey.from_index(key)} of catalog {some.pin.place.catalog!r} in realm {rows.realm!r}: object"
                f" {id_text(object_id)} is not there"
            )
    return [content for content in found if content is not None]


def _key_texts(keys: Sequence[bytes]) -> pa.Array:
    """As ``str`` of each ``ContentKey``, all at once."""
    plain = pa.array(keys, pa.binary()).cast(pa.string())
    escaped = pc.replace_substring(pc.replace_substring(plain, "\\", "\\\\"), ".", "\\.")
    return pc.replace_substring(escaped, "\0", ".")


def _namespaces(keys: Sequence[bytes]) -> pa.Array:
    parents = [key.rpartition(b"\0")[0] for key in keys]
    texts = _key_texts(parents)
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _names(keys: Sequence[bytes]) -> list[str]:
    return [key[key.rfind(b"\0") + 1 :].decode() for key in keys]


def _type_texts() -> list[str]:
    """The texts of all type bytes."""
    numbers = [byte & ~_HAS_METADATA for byte in range(256)]
    return [type_text(ContentType(number) if number in set(ContentType) else number) for number in numbers]


_TYPE_TEXTS = _type_texts()


def _content_id(data: bytes) -> str:
    text = data[1:17].hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _always(of: Callable[[Place], str]) -> Callable[[_Entries], pa.Array]:
    return lambda some: pa.repeat(of(some.pin.place), len(some.keys))


def _field(*names: str) -> Callable[[_Entries], list[Any]]:
    """The first of some fields that each content has."""
    return lambda some: [
        next((value for name in names if (value := getattr(one, name, None)) is not None), None) for one in some.contents
    ]


_ENTRY: dict[str, Callable[[_Entries], Any]] = {
    "realm": _always(lambda place: place.realm),
    "catalog": _always(lambda place: place.catalog),
    "ref": _always(lambda place: place.ref),
    "kind": _always(lambda place: place.kind),
    "hash": lambda some: pa.repeat(id_text(some.pin.commit), len(some.keys)),
    "key": lambda some: _key_texts(some.keys),
    "namespace": lambda some: _namespaces(some.keys),
    "name": lambda some: _names(some.keys),
    "type": lambda some: [_TYPE_TEXTS[value.data[0]] for value in some.values],
    "content_id": lambda some: [_content_id(value.data) for value in some.values],
    "object_id": lambda some: [_id_or_none(value.object_id) for value in some.values],
}
_FIELDS: dict[str, Callable[[_Entries], Any]] = {
    "metadata_location": _field("metadata_location"),
    "uuid": _field("table_uuid", "view_uuid"),
    "snapshot_id": lambda some: [None if value == -1 else value for value in _field("snapshot_id")(some)],
    "schema_id": _field("schema_id"),
    "properties": lambda some: [_pairs(getattr(content, "properties", None)) for content in some.contents],
}


# commits and changes


class _Changed(NamedTuple):
    """One change of one commit."""

    head: Head
    meta: CommitMeta
    operation: Operation


def _commits(rows: RealmStore, piece: Piece, _: Request, __: Selection, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    place = _columns_of(_pin_of(piece).place)
    for some in _batched(_history(rows, piece), _FEW_ROWS):
        told = [(head, CommitMeta.of(head.commit)) for head in some]
        yield _batch(schema, place | _COMMIT, told, len(told))


def _changes(rows: RealmStore, piece: Piece, _: Request, __: Selection, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    place = _columns_of(_pin_of(piece).place)
    changed = chain.from_iterable(_changed_in(head, piece) for head in _history(rows, piece))
    for some in _batched(changed, _ROWS):
        yield _batch(schema, place | _CHANGE, some, len(some))


def _history(rows: RealmStore, piece: Piece) -> Iterator[Head]:
    """The commits that led to a state, newest first, as far down as they are wanted: seq and time only fall."""
    for head in log(rows, _pin_of(piece).commit):
        if (piece.seq is not None and head.commit.seq < piece.seq) or (
            piece.since is not None and head.commit.time < piece.since
        ):
            return
        yield head


def _changed_in(head: Head, piece: Piece) -> Iterator[_Changed]:
    meta = CommitMeta.of(head.commit)
    start, end = piece.keys.start, piece.keys.end
    for operation in _content_operations(head):
        if (start is None or operation.key >= start) and (end is None or operation.key < end):
            yield _Changed(head, meta, operation)


def _content_operations(head: Head) -> list[Operation]:
    return [operation for operation in head.commit.operations if operation.index == CONTENT]


def _columns_of(place: Place) -> dict[str, Callable[[Sequence[Any]], Any]]:
    def always(text: str) -> Callable[[Sequence[Any]], Any]:
        return lambda some: pa.repeat(text, len(some))

    return {name: always(text) for name, text in place._asdict().items()}


def _each(of: Callable[[T], Any]) -> Callable[[Sequence[T]], list[Any]]:
    return lambda some: [of(one) for one in some]


def _told(operation: Operation) -> dict[str, str | None]:
    """An operation as the column ``operations`` has it."""
    value = operation.value
    return {
        "action": _action(operation),
        "key": str(ContentKey.from_index(operation.key)),
        "type": None if value is None else _TYPE_TEXTS[value.data[0]],
        "content_id": None if value is None else _content_id(value.data),
        "object_id": _id_or_none(operation.object_id),
    }


def _action(operation: Operation) -> str:
    return "DELETE" if operation.removed else "PUT"


_Told = tuple[Head, CommitMeta]
_COMMIT: dict[str, Callable[[Sequence[_Told]], Any]] = {
    "hash": _each(lambda told: id_text(told[0].id)),
    "seq": _each(lambda told: told[0].commit.seq),
    "time": _each(lambda told: told[0].commit.time),
    "message": _each(lambda told: told[1].message),
    "authors": _each(lambda told: told[1].authors),
    "author_time": _each(lambda told: told[1].author_time),
    "signed_off_by": _each(lambda told: told[1].signed_off_by),
    "properties": _each(lambda told: _pairs(told[1].properties)),
    "parent": _each(lambda told: id_text(told[0].commit.tail[0]) if told[0].commit.tail else None),
    "merged": _each(lambda told: [id_text(head) for head in told[1].merged]),
    "operations": _each(lambda told: [_told(operation) for operation in _content_operations(told[0])]),
}


def _of_commit(make: Callable[[Sequence[_Told]], Any]) -> Callable[[Sequence[_Changed]], Any]:
    return lambda some: make([(one.head, one.meta) for one in some])


def _of_operation(name: str) -> Callable[[Sequence[_Changed]], Any]:
    return lambda some: [_told(one.operation)[name] for one in some]


_CHANGE: dict[str, Callable[[Sequence[_Changed]], Any]] = {
    **{name: _of_commit(_COMMIT[name]) for name in ("hash", "seq", "time", "message", "authors")},
    "action": _each(lambda one: _action(one.operation)),
    "key": lambda some: _key_texts([one.operation.key for one in some]),
    "namespace": lambda some: _namespaces([one.operation.key for one in some]),
    "name": lambda some: _names([one.operation.key for one in some]),
    **{name: _of_operation(name) for name in ("type", "content_id", "object_id")},
}


# objects and references


def _objects(rows: RealmStore, piece: Piece, _: Request, __: Selection, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    found = chain.from_iterable(rows.scan_objects(piece.split))
    realm = {"realm": lambda some: pa.repeat(rows.realm, len(some))}
    for some in _batched(found, _ROWS):
        yield _batch(schema, realm | _OBJECT, some, len(some))


_OBJECT: dict[str, Callable[[Sequence[ObjectKey]], Any]] = {
    "id": lambda some: [f"{key.id:016x}" for key in some],
    "part": lambda some: [key.part for key in some],
    "parts": lambda some: [key.parts for key in some],
    "type": lambda some: [key.type for key in some],
    "bytes": lambda some: [key.bytes for key in some],
    "created": lambda some: [key.created for key in some],
    "is_updateable": lambda some: [key.token is not None for key in some],
}


class _Referred(NamedTuple):
    """A reference, and what its name says."""

    row: ReferenceKey
    part: CatalogPart | None
    catalog: str | None


def _references(
    rows: RealmStore, piece: Piece, request: Request, selection: Selection, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    names = _catalog_names(rows)
    found = (_referred(row, names) for row in rows.scan_references(piece.split))
    is_any = request.catalog is None and "catalog" not in selection.among
    wanted = (one for one in found if is_any or (one.catalog is not None and is_wanted(request, selection, one.catalog)))
    realm = {"realm": lambda some: pa.repeat(rows.realm, len(some))}
    for some in _batched(wanted, _ROWS):
        yield _batch(schema, realm | _REFERENCE, some, len(some))


def _catalog_names(rows: RealmStore) -> Mapping[str, str]:
    """The names of a realm's catalogs, deleted ones included, by their ids; none where a realm has no list of them, or lost it."""
    if rows.realm == SYSTEM_REALM:
        return {}
    try:
        return {definition.id: definition.name for definition, _ in all_definitions(rows, index=BY_ID)}
    except (MissingError, UnreadableError):
        return {}  # it is being made, or purged: its references are there all the same


def _referred(row: ReferenceKey, names: Mapping[str, str]) -> _Referred:
    part = parse_reference(row.name)
    return _Referred(row, part, None if part is None else names.get(part.catalog_id))


_REFERENCE: dict[str, Callable[[Sequence[_Referred]], Any]] = {
    "name": _each(lambda one: one.row.name),
    "catalog": _each(lambda one: one.catalog),
    "kind": _each(lambda one: one.part and one.part.part.value),
    "ref": _each(lambda one: one.part.name if one.part is not None and isinstance(one.part.part, NameKind) else None),
    "pointer": _each(lambda one: _id_or_none(one.row.pointer)),
    "version": _each(lambda one: one.row.version),
    "created": _each(lambda one: one.row.created),
    "deleted": _each(lambda one: one.row.deleted),
}


# what all have


_TABLES = {
    "objects": _objects,
    "references": _references,
    "commits": _commits,
    "changes": _changes,
    "entries": _entries,
    "contents": _contents,
}


def _batch(schema: pa.Schema, make: Mapping[str, Callable[[T], Any]], some: T, count: int) -> pa.RecordBatch:
    """The wanted columns of some rows; no others are made."""
    arrays = []
    for field in schema:
        made = make[field.name](some)
        arrays.append(made if isinstance(made, pa.Array) else pa.array(made, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _pin_of(piece: Piece) -> Pin:
    assert piece.pin is not None
    return piece.pin


def _id_or_none(object_id: int | None) -> str | None:
    return None if object_id is None else f"{object_id:016x}"


def _pairs(values: Mapping[str, Any] | None) -> list[tuple[str, Any]] | None:
    return None if values is None else list(values.items())


def _batched(found: Iterable[T], count: int) -> Iterator[list[T]]:
    rest = iter(found)
    while some := list(islice(rest, count)):
        yield some
