"""How a state came about, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.catalogs import CONTENT, CommitMeta, ContentKey
from headwater.commits import Head, Operation, read_log
from headwater.store import id_text
from headwater_workers.pipeline.source.batches import (
    FEW_ROWS,
    ROWS,
    Makers,
    Part,
    batch,
    batched,
    content_id,
    each,
    id_or_none,
    key_texts,
    names,
    namespaces,
    pairs,
    type_name,
)
from headwater_workers.pipeline.source.keys import KeyRange
from headwater_workers.pipeline.source.pinning import Place

__all__ = ["changes", "commits"]


class _Told(NamedTuple):
    """A commit, and what it tells."""

    head: Head
    meta: CommitMeta


class _Change(NamedTuple):
    """One change of one commit."""

    told: _Told
    operation: Operation


def commits(part: Part) -> Iterator[pa.RecordBatch]:
    """The commits that led to a state, newest first."""
    make: Makers[Sequence[_Told]] = {**_columns_of(part.pin.place), **_COMMIT}
    for some in batched(_history(part), FEW_ROWS):
        yield batch(part.schema, make, some)


def changes(part: Part) -> Iterator[pa.RecordBatch]:
    """What each of them changed, within the range of keys."""
    make: Makers[Sequence[_Change]] = {**_columns_of(part.pin.place), **_CHANGE}
    found = chain.from_iterable(_changes_of(told, part.piece.keys) for told in _history(part))
    for some in batched(found, ROWS):
        yield batch(part.schema, make, some)


def _history(part: Part) -> Iterator[_Told]:
    """As far down as it is wanted: seq and time only fall."""
    seq, since = part.piece.seq, part.piece.since
    for head in read_log(part.rows, part.pin.commit):
        if (seq is not None and head.commit.seq < seq) or (since is not None and head.commit.time < since):
            return
        yield _Told(head, CommitMeta.of(head.commit))


def _changes_of(told: _Told, keys: KeyRange) -> Iterator[_Change]:
    return (_Change(told, operation) for operation in _operations(told.head) if keys.has(operation.key))


def _operations(head: Head) -> list[Operation]:
    return [operation for operation in head.commit.operations if operation.index == CONTENT]


def _columns_of(place: Place) -> Makers[Sequence[Any]]:
    def always(text: str) -> Callable[[Sequence[Any]], pa.Array]:
        return lambda some: pa.repeat(text, len(some))

    return {name: always(text) for name, text in place._asdict().items()}


def _action(operation: Operation) -> str:
    return "DELETE" if operation.removed else "PUT"


def _fields(operation: Operation) -> dict[str, str | None]:
    """An operation as the column ``operations`` has it."""
    is_put = not operation.removed
    return {
        "action": _action(operation),
        "key": str(ContentKey.from_index(operation.key)),
        "type": type_name(operation.data) if is_put else None,
        "content_id": content_id(operation.data) if is_put else None,
        "object_id": id_or_none(operation.object_id),
    }


def _of_commit(make: Callable[[Sequence[_Told]], Any]) -> Callable[[Sequence[_Change]], Any]:
    return lambda some: make([change.told for change in some])


def _of_key(make: Callable[[Sequence[bytes]], Any]) -> Callable[[Sequence[_Change]], Any]:
    return lambda some: make([change.operation.key for change in some])


def _of_content(make: Callable[[bytes], str]) -> Callable[[Sequence[_Change]], list[str | None]]:
    return lambda some: [None if change.operation.removed else make(change.operation.data) for change in some]


_COMMIT: Makers[Sequence[_Told]] = {
    "hash": each(lambda told: id_text(told.head.id)),
    "seq": each(lambda told: told.head.commit.seq),
    "time": each(lambda told: told.head.commit.time),
    "message": each(lambda told: told.meta.message),
    "authors": each(lambda told: told.meta.authors),
    "author_time": each(lambda told: told.meta.author_time),
    "signed_off_by": each(lambda told: told.meta.signed_off_by),
    "properties": each(lambda told: pairs(told.meta.properties)),
    "parent": each(lambda told: id_text(told.head.commit.tail[0]) if told.head.commit.tail else None),
    "merged": each(lambda told: [id_text(head) for head in told.meta.merged]),
    "operations": each(lambda told: [_fields(operation) for operation in _operations(told.head)]),
}
_CHANGE: Makers[Sequence[_Change]] = {
    **{name: _of_commit(_COMMIT[name]) for name in ("hash", "seq", "time", "message", "authors")},
    "action": each(lambda change: _action(change.operation)),
    "key": _of_key(key_texts),
    "namespace": _of_key(namespaces),
    "name": _of_key(names),
    "type": _of_content(type_name),
    "content_id": _of_content(content_id),
    "object_id": each(lambda change: id_or_none(change.operation.object_id)),
}
