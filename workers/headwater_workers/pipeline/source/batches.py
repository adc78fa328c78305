"""Batches of rows in Arrow, of the columns that are wanted and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from headwater.catalogs import ContentType
from headwater.catalogs.content.types import type_text
from headwater.store import RealmStore
from headwater_workers.pipeline.source.conditions import Selection
from headwater_workers.pipeline.source.dividing import Piece
from headwater_workers.pipeline.source.options import Request
from headwater_workers.pipeline.source.pinning import Pin

__all__ = [
    "FEW_ROWS",
    "ROWS",
    "Makers",
    "Part",
    "batch",
    "batched",
    "content_id",
    "each",
    "id_or_none",
    "key_texts",
    "names",
    "namespaces",
    "pairs",
    "type_name",
]

T = TypeVar("T")
ROWS = 8192
"""Rows of one batch: Spark's own are of up to ten thousand."""
FEW_ROWS = 1024
"""Of a batch of commits, and of one for which an object is read for each row."""
_HAS_METADATA = 0x80
Makers = Mapping[str, Callable[[T], Any]]
"""How each column is made of some rows: as an array, or as a list of values."""


class Part(NamedTuple):
    """What a table's rows are made from: a piece, and who asks for it."""

    rows: RealmStore
    piece: Piece
    request: Request
    selection: Selection
    schema: pa.Schema

    @property
    def pin(self) -> Pin:
        """Of a piece of a state."""
        assert self.piece.pin is not None
        return self.piece.pin


def batch(schema: pa.Schema, make: Makers[T], some: T) -> pa.RecordBatch:
    """The columns of a schema, made of some rows."""
    arrays = []
    for field in schema:
        made = make[field.name](some)
        arrays.append(made if isinstance(made, pa.Array) else pa.array(made, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batched(found: Iterable[T], count: int) -> Iterator[list[T]]:
    """What is found, so many at a time."""
    rest = iter(found)
    while some := list(islice(rest, count)):
        yield some


def each(of: Callable[[T], Any]) -> Callable[[Sequence[T]], list[Any]]:
    """A column with a value for each row."""
    return lambda some: [of(one) for one in some]


def id_or_none(object_id: int | None) -> str | None:
    return None if object_id is None else f"{object_id:016x}"


def pairs(values: Mapping[str, Any] | None) -> list[tuple[str, Any]] | None:
    """A map as Arrow takes it."""
    return None if values is None else list(values.items())


# content keys and the values beside them in an index


def key_texts(keys: Sequence[bytes]) -> pa.Array:
    """As ``str`` of each ``ContentKey``, all at once."""
    plain = pa.array(keys, pa.binary()).cast(pa.string())
    escaped = pc.replace_substring(pc.replace_substring(plain, "\\", "\\\\"), ".", "\\.")
    return pc.replace_substring(escaped, "\0", ".")


def namespaces(keys: Sequence[bytes]) -> pa.Array:
    """The same without the last elements; null where there is no other."""
    texts = key_texts([key.rpartition(b"\0")[0] for key in keys])
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def names(keys: Sequence[bytes]) -> list[str]:
    """The last elements."""
    return [key[key.rfind(b"\0") + 1 :].decode() for key in keys]


def type_name(data: bytes) -> str:
    """The type of a content, of the data in the index."""
    return _TYPES[data[0]]


def content_id(data: bytes) -> str:
    """The id of a content, of the data in the index."""
    text = data[1:17].hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _type_names() -> list[str]:
    """The names of all type bytes."""
    numbers = [byte & ~_HAS_METADATA for byte in range(256)]
    known = frozenset(ContentType)
    return [type_text(ContentType(number) if number in known else number) for number in numbers]


_TYPES = _type_names()
