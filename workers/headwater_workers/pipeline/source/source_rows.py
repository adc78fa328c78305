"""Arrow batches of a table's rows in the requested columns: the entries of states, their histories, objects and references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from headwater.catalogs import CONTENT, CommitMeta, ContentKey, ContentType, ContentValue
from headwater.catalogs.content import CONTENT_VALUE_BYTES, NO_SNAPSHOT, type_text
from headwater.catalogs.registry import ParsedReference, RefKind, parse_reference
from headwater.commits import Head, Operation, read_commit, read_log
from headwater.errors import CorruptionError
from headwater.index import IndexValue
from headwater.store import ObjectKey, RealmStore, ReferenceKey, StoredObject, id_text
from headwater_workers.pipeline.source.partitions import ScanPartition, catalog_names, is_wanted
from headwater_workers.pipeline.source.pinned_states import PinnedState, StatePlace
from headwater_workers.pipeline.source.pushdown import KeyRange, Selection
from headwater_workers.pipeline.source.reader_options import ReadRequest

T = TypeVar("T")
ROWS = 8192
"""Rows of one batch; Spark's own batches have up to ten thousand."""
FEW_ROWS = 1024
"""Rows of a batch of commits, and of a batch for which an object is read for each row."""
_HAS_METADATA = 0x80
Makers = Mapping[str, Callable[[T], Any]]
"""A function for each column that makes its values for some rows: as an array, or as a list."""


class PartitionReader(NamedTuple):
    """The input of a table's rows: a piece, and the request that it serves."""

    rows: RealmStore
    piece: ScanPartition
    request: ReadRequest
    selection: Selection
    schema: pa.Schema

    @property
    def pin(self) -> PinnedState:
        """The pinned state that the piece is a part of."""
        assert self.piece.pin is not None
        return self.piece.pin


def batch(schema: pa.Schema, make: Makers[T], some: T) -> pa.RecordBatch:
    """Make a record batch of a schema from some rows."""
    arrays = []
    for field in schema:
        made = make[field.name](some)
        arrays.append(made if isinstance(made, pa.Array) else pa.array(made, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batched(items: Iterable[T], count: int) -> Iterator[list[T]]:
    """The items in lists of at most ``count``."""
    rest = iter(items)
    while some := list(islice(rest, count)):
        yield some


def each(of: Callable[[T], Any]) -> Callable[[Sequence[T]], list[Any]]:
    """A column with a value for each row."""
    return lambda some: [of(row) for row in some]


def id_or_none(object_id: int | None) -> str | None:
    return None if object_id is None else f"{object_id:016x}"


def pairs(values: Mapping[str, Any] | None) -> list[tuple[str, Any]] | None:
    """A mapping as a list of pairs, which Arrow takes as a map."""
    return None if values is None else list(values.items())


def key_texts(keys: Sequence[bytes]) -> pa.Array:
    """The text of each encoded ``ContentKey``, computed for all at once."""
    plain = pa.array(keys, pa.binary()).cast(pa.string())
    escaped = pc.replace_substring(pc.replace_substring(plain, "\\", "\\\\"), ".", "\\.")
    return pc.replace_substring(escaped, "\0", ".")


def namespaces_column(keys: Sequence[bytes]) -> pa.Array:
    """The text of each key's namespace; null where the key has a single element."""
    texts = key_texts([key.rpartition(b"\0")[0] for key in keys])
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def names_column(keys: Sequence[bytes]) -> list[str]:
    """The last element of each key."""
    return [key[key.rfind(b"\0") + 1 :].decode() for key in keys]


def type_name(data: bytes) -> str:
    """The type name of a content, from its value in the index."""
    return _TYPES[data[0]]


def content_id(data: bytes) -> str:
    """The id of a content, from its value in the index."""
    text = data[1:17].hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _type_names() -> list[str]:
    """The type names by type byte."""
    numbers = [byte & ~_HAS_METADATA for byte in range(256)]
    known = frozenset(ContentType)
    return [type_text(ContentType(number) if number in known else number) for number in numbers]


_TYPES = _type_names()


class _Entries(NamedTuple):
    """Entries of one state; for ``content_rows`` in the order of the keys, if that was requested."""

    pin: PinnedState
    keys: Sequence[bytes]
    values: Sequence[IndexValue]
    contents: Sequence[StoredObject] = ()


def entry_rows(part: PartitionReader) -> Iterator[pa.RecordBatch]:
    """Rows with the index entry of each key."""
    for some in _read(part, ROWS):
        yield batch(part.schema, _ENTRY, some)


def content_rows(part: PartitionReader) -> Iterator[pa.RecordBatch]:
    """Rows with the index entry of each key, and the content itself."""
    make = {**_ENTRY, **_FIELDS}
    for some in _read(part, FEW_ROWS):
        yield batch(part.schema, make, some._replace(contents=_objects_of(part.rows, some)))


def _read(part: PartitionReader, at_once: int) -> Iterator[_Entries]:
    index = read_commit(part.rows, part.pin.commit).index(CONTENT)
    for some in batched(index.range(part.piece.keys.start, part.piece.keys.end), at_once):
        keys, values = zip(*some, strict=True)
        for odd in (value for value in values if len(value.data) != CONTENT_VALUE_BYTES):
            ContentValue.from_value(odd)  # raises the error that says what is wrong with it
        yield _Entries(part.pin, keys, values)


def _objects_of(rows: RealmStore, some: _Entries) -> list[StoredObject]:
    ids = [ContentValue.from_value(value).object_id for value in some.values]
    contents = []
    for key, object_id, content in zip(some.keys, ids, rows.read_many(ids, StoredObject), strict=True):
        if content is None:
            raise CorruptionError(
                f"content {ContentKey.from_index(key)} of catalog {some.pin.place.catalog!r} in realm {rows.realm!r}: object"
                f" {id_text(object_id)} is not there"
            )
        contents.append(content)
    return contents


def _always(of: Callable[[StatePlace], str]) -> Callable[[_Entries], pa.Array]:
    return lambda some: pa.repeat(of(some.pin.place), len(some.keys))


def _field(*fields: str) -> Callable[[_Entries], list[Any]]:
    """For each content, the first of these fields that it has; None where it has none."""

    def value(content: StoredObject) -> Any:
        return next((field_value for field in fields if (field_value := getattr(content, field, None)) is not None), None)

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
    "namespace": lambda some: namespaces_column(some.keys),
    "name": lambda some: names_column(some.keys),
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


class _LogEntry(NamedTuple):
    """A commit, and its decoded description."""

    head: Head
    meta: CommitMeta


class _Change(NamedTuple):
    """One change of one commit."""

    entry: _LogEntry
    operation: Operation


def commit_rows(part: PartitionReader) -> Iterator[pa.RecordBatch]:
    """Rows of the commits that led to a state, newest first."""
    make: Makers[Sequence[_LogEntry]] = {**_columns_of(part.pin.place), **_COMMIT}
    for some in batched(_history(part), FEW_ROWS):
        yield batch(part.schema, make, some)


def change_rows(part: PartitionReader) -> Iterator[pa.RecordBatch]:
    """Rows of the changes of each commit, within the range of keys."""
    make: Makers[Sequence[_Change]] = {**_columns_of(part.pin.place), **_CHANGE}
    changes = chain.from_iterable(_changes_of(entry, part.piece.keys) for entry in _history(part))
    for some in batched(changes, ROWS):
        yield batch(part.schema, make, some)


def _history(part: PartitionReader) -> Iterator[_LogEntry]:
    """The history as far down as it is requested: seq and time only decrease."""
    seq, since = part.piece.seq, part.piece.since
    for head in read_log(part.rows, part.pin.commit):
        if (seq is not None and head.commit.seq < seq) or (since is not None and head.commit.time < since):
            return
        yield _LogEntry(head, CommitMeta.from_commit(head.commit))


def _changes_of(entry: _LogEntry, keys: KeyRange) -> Iterator[_Change]:
    return (_Change(entry, operation) for operation in _operations(entry.head) if keys.has(operation.key))


def _operations(head: Head) -> list[Operation]:
    return [operation for operation in head.commit.operations if operation.index == CONTENT]


def _columns_of(place: StatePlace) -> Makers[Sequence[Any]]:
    def always(text: str) -> Callable[[Sequence[Any]], pa.Array]:
        return lambda some: pa.repeat(text, len(some))

    return {name: always(text) for name, text in place._asdict().items()}


def _action(operation: Operation) -> str:
    return "DELETE" if operation.removed else "PUT"


def _fields(operation: Operation) -> dict[str, str | None]:
    """An operation in the form of the column ``operations``."""
    is_put = not operation.removed
    return {
        "action": _action(operation),
        "key": str(ContentKey.from_index(operation.key)),
        "type": type_name(operation.data) if is_put else None,
        "content_id": content_id(operation.data) if is_put else None,
        "object_id": id_or_none(operation.object_id),
    }


def _of_commit(make: Callable[[Sequence[_LogEntry]], Any]) -> Callable[[Sequence[_Change]], Any]:
    return lambda some: make([change.entry for change in some])


def _of_key(make: Callable[[Sequence[bytes]], Any]) -> Callable[[Sequence[_Change]], Any]:
    return lambda some: make([change.operation.key for change in some])


def _of_content(make: Callable[[bytes], str]) -> Callable[[Sequence[_Change]], list[str | None]]:
    return lambda some: [None if change.operation.removed else make(change.operation.data) for change in some]


_COMMIT: Makers[Sequence[_LogEntry]] = {
    "hash": each(lambda entry: id_text(entry.head.id)),
    "seq": each(lambda entry: entry.head.commit.seq),
    "time": each(lambda entry: entry.head.commit.time),
    "message": each(lambda entry: entry.meta.message),
    "authors": each(lambda entry: entry.meta.authors),
    "author_time": each(lambda entry: entry.meta.author_time),
    "signed_off_by": each(lambda entry: entry.meta.signed_off_by),
    "properties": each(lambda entry: pairs(entry.meta.properties)),
    "parent": each(lambda entry: id_text(entry.head.commit.tail[0]) if entry.head.commit.tail else None),
    "merged": each(lambda entry: [id_text(head) for head in entry.meta.merged]),
    "operations": each(lambda entry: [_fields(operation) for operation in _operations(entry.head)]),
}
_CHANGE: Makers[Sequence[_Change]] = {
    **{name: _of_commit(_COMMIT[name]) for name in ("hash", "seq", "time", "message", "authors")},
    "action": each(lambda change: _action(change.operation)),
    "key": _of_key(key_texts),
    "namespace": _of_key(namespaces_column),
    "name": _of_key(names_column),
    "type": _of_content(type_name),
    "content_id": _of_content(content_id),
    "object_id": each(lambda change: id_or_none(change.operation.object_id)),
}


def object_rows(part: PartitionReader) -> Iterator[pa.RecordBatch]:
    """Rows of objects, without their values."""
    make: Makers[Sequence[ObjectKey]] = {"realm": _realm(part.rows), **_OBJECT}
    for some in batched(chain.from_iterable(part.rows.scan_objects(part.piece.split)), ROWS):
        yield batch(part.schema, make, some)


_OBJECT: Makers[Sequence[ObjectKey]] = {
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
    part: ParsedReference | None
    catalog: str | None


def reference_rows(part: PartitionReader) -> Iterator[pa.RecordBatch]:
    """Rows of references, tombstones included, each with its catalog."""
    catalogs = catalog_names(part.rows)
    make: Makers[Sequence[_Referred]] = {"realm": _realm(part.rows), **_REFERENCE}
    is_any = part.request.catalog is None and "catalog" not in part.selection.among
    references = (_referred(row, catalogs) for row in part.rows.scan_references(part.piece.split))
    wanted = (
        reference
        for reference in references
        if is_any or (reference.catalog and is_wanted(part.request, part.selection, reference.catalog))
    )
    for some in batched(wanted, ROWS):
        yield batch(part.schema, make, some)


def _referred(row: ReferenceKey, catalogs: Mapping[str, str]) -> _Referred:
    part = parse_reference(row.name)
    return _Referred(row, part, None if part is None else catalogs.get(part.catalog_id))


def _realm(rows: RealmStore) -> Callable[[Sequence[Any]], pa.Array]:
    return lambda some: pa.repeat(rows.realm, len(some))


_REFERENCE: Makers[Sequence[_Referred]] = {
    "name": each(lambda reference: reference.row.name),
    "catalog": each(lambda reference: reference.catalog),
    "kind": each(lambda reference: reference.part and reference.part.part.value),
    "ref": each(
        lambda reference: (
            reference.part.name if reference.part is not None and isinstance(reference.part.part, RefKind) else None
        )
    ),
    "pointer": each(lambda reference: id_or_none(reference.row.pointer)),
    "version": each(lambda reference: reference.row.version),
    "created": each(lambda reference: reference.row.created),
    "deleted": each(lambda reference: reference.row.deleted),
}
