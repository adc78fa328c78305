"""A few fields of the records of an Avro file, read fast: manifests of a million files have hundreds of bytes of statistics for each.

A schema says how the bytes of a record follow each other, and a regular expression can say the same: numbers end where a byte's high
bit is clear, texts begin with their length. Only the lengths of arrays, the branches of unions and long texts differ from record to
record. The first record of such a *shape* is decoded step by step; an expression is made of it, which matches all later records of
that shape, and nothing else: every element of it is possessive, and no two alternatives begin alike. What matches no expression is decoded
step by step.

A text of the file is in no error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple, cast

from headwater.iceberg.avro import tamed_schema
from headwater.iceberg.avro_codecs import AvroFileError, BlockUnpacker

Value = int | str | bytes | None
Columns = list[list[Value]]
"""The values of some records: a list for each wanted field, in the order in which they were asked for; None for null."""

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_MOST_SCHEMA_BYTES = 1 << 20
"""Schemas are kept for the next file; manifests need ten thousand."""
_MOST_SHAPES = 12
"""Of one schema; a record of a further shape takes the place of the one that was used the longest ago."""
_SHORT = 64
"""Texts of fewer bytes have a length of one byte, and need no shape."""
_MOST_EXPRESSIONS = 200
"""So many are made for one schema; a file in which no record is like another is read step by step."""
_MOST_EXPRESSION_BYTES = 4 << 20
"""Of all expressions of one schema together: it takes seconds to make so many, and those of manifests have some ten thousand each."""
_MOST_NODES = 5_000
"""Types of one schema, each as often as it is used: manifests of a thousand columns have fewer than a hundred."""
_WINDOW = 12
"""Long texts whose length differs by at most so much are of one shape."""
_NUMBER = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
_SIZES = {"boolean": 1, "float": 4, "double": 8}
_NUMBERS = ("int", "long")
_TEXTS = ("bytes", "string")


def read_avro_fields(data: bytes, names: Sequence[str | tuple[str, ...]], *, optional: Sequence[str] = ()) -> Iterator[Columns]:
    """Read some fields of all records, block by block.

    names         of fields, inner ones with dots: ``data_file.file_path``; of a tuple of names the first that the schema has
    optional      names that the schema need not have: they are None in each record
    raises        AvroFileError
    """
    try:
        header, start = _read_header(data)
        reader = _reader(
            bytes(header["avro.schema"]), tuple((name,) if isinstance(name, str) else name for name in names), tuple(optional)
        )
        for count, block in _blocks(data, start, header):
            yield reader.read_block(block, count)
    except AvroFileError:
        raise
    except MemoryError:
        raise
    except Exception as fault:  # all is in memory: what comes can only be about these bytes
        raise AvroFileError("broken Avro") from fault


def _read_header(data: bytes) -> tuple[dict[str, bytes], int]:
    if not data.startswith(_MAGIC):
        raise AvroFileError("it does not begin as an Avro file does")
    header, at = dict[str, bytes](), len(_MAGIC)
    while True:
        count, at = _number(data, at)
        if count == 0:
            return header, at
        if count < 0:
            _, at = _number(data, at)
        for _ in range(abs(count)):
            key, at = _bytes(data, at)
            header[key.decode()], at = _bytes(data, at)


def _blocks(data: bytes, start: int, header: Mapping[str, bytes]) -> Iterator[tuple[int, bytes]]:
    """The blocks of a file, unpacked, each with its number of records."""
    sync = data[start : start + _SYNC_BYTES]
    if len(sync) != _SYNC_BYTES:
        raise AvroFileError("it ends within its header")
    unpacker = BlockUnpacker(header.get("avro.codec", b"null"))
    at = start + _SYNC_BYTES
    while at < len(data):
        count, at = _number(data, at)
        size, at = _number(data, at)
        end = at + size
        if count < 0 or size < 0 or data[end : end + _SYNC_BYTES] != sync:
            raise AvroFileError("a block of it is cut off or damaged")
        yield count, unpacker.unpack(data[at:end])
        at = end + _SYNC_BYTES


class _Shape:
    """What of a record's layout is not in its schema: branches of unions, lengths of arrays and of long texts, in their order."""

    __slots__ = ("is_regular", "parts", "short")

    def __init__(self) -> None:
        self.parts: list[int] = []
        self.short: dict[int, None] = {}
        self.is_regular = True


class _Node:
    """One type of a schema."""

    def skip(self, block: bytes, at: int, shape: _Shape) -> int:
        """The place behind a value; notes its shape."""
        raise NotImplementedError

    def pattern(self, parts: Iterator[int], short: Sequence[int]) -> bytes:
        """An expression for values of the shape."""
        raise NotImplementedError

    def value(self, raw: bytes) -> Value:
        """The value in its bytes."""
        raise AvroFileError("a field has another type than it should have")


class _Number(_Node):
    def skip(self, block: bytes, at: int, shape: _Shape) -> int:
        for end in range(at, at + 10):
            if block[end] < 0x80:
                return end + 1
        raise AvroFileError("a number is longer than ten bytes")

    def pattern(self, parts: Iterator[int], short: Sequence[int]) -> bytes:
        return _NUMBER

    def value(self, raw: bytes) -> Value:
        return _kept_number(raw)


class _Fixed(_Node):
    def __init__(self, size: int) -> None:
        self._size = size

    def skip(self, block: bytes, at: int, shape: _Shape) -> int:
        return _checked_end(block, at + self._size)

    def pattern(self, parts: Iterator[int], short: Sequence[int]) -> bytes:
        return b".{%d}" % self._size

    def value(self, raw: bytes) -> Value:
        return raw


class _Nothing(_Node):
    def skip(self, block: bytes, at: int, shape: _Shape) -> int:
        return at

    def pattern(self, parts: Iterator[int], short: Sequence[int]) -> bytes:
        return b""

    def value(self, raw: bytes) -> Value:
        return None


class _Text(_Node):
    """Bytes or a string. Where ``is_inner``, it stands in an array, and its length is no part of the shape."""

    def __init__(self, *, is_string: bool, is_inner: bool) -> None:
        self._is_string = is_string
        self._is_inner = is_inner

    def skip(self, block: bytes, at: int, shape: _Shape) -> int:
        size, at = _number(block, at)
        if size < 0:
            raise AvroFileError("a text of negative length")
        if size < _SHORT:
            shape.short[size] = None
        elif self._is_inner:
            shape.is_regular = False
        if not self._is_inner:
            shape.parts.append(-1 if size < _SHORT else size // _WINDOW)
        return _checked_end(block, at + size)

    def pattern(self, parts: Iterator[int], short: Sequence[int]) -> bytes:
        window = -1 if self._is_inner else next(parts)
        if window < 0:
            return _one_of(_sized(size) for size in short)
        return _one_of(_sized(size) for size in range(max(window * _WINDOW, _SHORT), (window + 1) * _WINDOW))

    def value(self, raw: bytes) -> Value:
        start = 1 if raw[0] < 0x80 else 2 if raw[1] < 0x80 else _number(raw, 0)[1]
        return raw[start:].decode() if self._is_string else raw[start:]


class _Record(_Node):
    def __init__(self, fields: Sequence[tuple[str, _Node]], wanted: Mapping[str, int]) -> None:
        self._fields = fields
        self._wanted = wanted

    def skip(self, block: bytes, at: int, shape: _Shape) -> int:
        for _, node in self._fields:
            at = node.skip(block, at, shape)
        return at

    def find_fields(self, block: bytes, at: int, shape: _Shape, found: dict[int, Value]) -> int:
        """The place behind a record; notes the wanted fields of it and of its inner records."""
        for name, node in self._fields:
            end = node.find_fields(block, at, shape, found) if isinstance(node, _Record) else node.skip(block, at, shape)
            if name in self._wanted:
                found[self._wanted[name]] = node.value(block[at:end])
            at = end
        return at

    def pattern(self, parts: Iterator[int], short: Sequence[int]) -> bytes:
        pieces = []
        for name, node in self._fields:
            piece = node.pattern(parts, short)
            pieces.append(b"(?P<f%d>%b)" % (self._wanted[name], piece) if name in self._wanted else piece)
        return b"".join(pieces)

    def wanted_nodes(self) -> Iterator[tuple[int, _Node]]:
        for name, node in self._fields:
            if name in self._wanted:
                yield self._wanted[name], node
            if isinstance(node, _Record):
                yield from node.wanted_nodes()


class _Union(_Node):
    """One of several types. Which one is a part of the shape."""

    def __init__(self, branches: Sequence[_Node]) -> None:
        self._branches = branches

    def skip(self, block: bytes, at: int, shape: _Shape) -> int:
        branch, at = _number(block, at)
        if not 0 <= branch < len(self._branches):
            raise AvroFileError("a union has no such branch")
        shape.parts.append(branch)
        return self._branches[branch].skip(block, at, shape)

    def pattern(self, parts: Iterator[int], short: Sequence[int]) -> bytes:
        branch = next(parts)
        return re.escape(_encoded(branch)) + self._branches[branch].pattern(parts, short)

    def value(self, raw: bytes) -> Value:
        branch, at = _number(raw, 0)
        return self._branches[branch].value(raw[at:])


class _Array(_Node):
    """Items, or entries of a map, in one block. How many they are is a part of the shape; what they are must not be."""

    def __init__(self, item: _Node) -> None:
        self._item = item

    def skip(self, block: bytes, at: int, shape: _Shape) -> int:
        blocks, total = 0, 0
        while True:
            count, at = _number(block, at)
            if count == 0:
                break
            if count < 0:
                shape.is_regular = False
                _, at = _number(block, at)
            blocks, total = blocks + 1, abs(count)
            if total > len(block) - at:
                raise AvroFileError("an array has more items than bytes")
            before = len(shape.parts)
            for _ in range(total):
                at = self._item.skip(block, at, shape)
            if len(shape.parts) > before:
                shape.is_regular = False
        if blocks > 1:
            shape.is_regular = False
        shape.parts.append(total)
        return at

    def pattern(self, parts: Iterator[int], short: Sequence[int]) -> bytes:
        count = next(parts)
        if count == 0:
            return rb"\x00"
        return b"%b(?:%b){%d}+\\x00" % (re.escape(_encoded(count)), self._item.pattern(iter(()), short), count)


class _Layout(NamedTuple):
    """An expression for records of one shape.

    fields        gives the bytes of the wanted fields in a match
    """

    match: Callable[[bytes, int], re.Match[bytes] | None]
    fields: Callable[[re.Match[bytes]], Any]


class _Reader:
    """Reads the records of one schema. May be used by several threads."""

    def __init__(self, record: _Record, width: int) -> None:
        self._record = record
        self._width = width
        self._layouts: dict[tuple[int, ...], _Layout] = {}
        self._met: dict[tuple[int, ...], None] = {}
        self._expressions = 0
        self._expression_bytes = 0
        self._nodes = dict(record.wanted_nodes())
        self._order = sorted(self._nodes)
        self._absent = [index for index in range(width) if index not in self._nodes]

    def read_block(self, block: bytes, count: int) -> Columns:
        """The wanted fields of all records of a block; raises AvroFileError where these are not exactly the block."""
        columns: Columns = [[] for _ in range(self._width)]
        at, left, layouts = 0, count, list(self._layouts.values())
        while left:
            for layout in layouts:
                at, read = self._read_alike(layout, block, at, left, columns)
                left -= read
            if left:
                at = self._read_one(block, at, columns)
                left -= 1
                layouts = list(self._layouts.values())
        if at != len(block):
            raise AvroFileError("a block of it has other records than it says")
        for index in self._absent:
            columns[index] = [None] * count
        return columns

    def _read_alike(self, layout: _Layout, block: bytes, at: int, most: int, columns: Columns) -> tuple[int, int]:
        """Read the records from here on that are of one shape; returns where they end, and how many they are."""
        match, fields = layout.match, layout.fields
        raw: list[Any] = []
        while len(raw) < most and (found := match(block, at)) is not None:
            at = found.end()
            raw.append(fields(found))
        if raw:
            by_field = [raw] if len(self._order) == 1 else zip(*raw, strict=True)
            for index, values in zip(self._order, by_field, strict=True):
                columns[index] += map(self._nodes[index].value, values)
        return at, len(raw)

    def _read_one(self, block: bytes, at: int, columns: Columns) -> int:
        """Read a record step by step, and remember its shape."""
        shape, found = _Shape(), dict[int, Value]()
        end = self._record.find_fields(block, at, shape, found)
        for index in self._order:
            columns[index].append(found[index])
        if shape.is_regular and self._order:
            self._remember(shape)
        return end

    def _remember(self, shape: _Shape) -> None:
        """Make an expression of a shape that is met for the second time."""
        key = tuple(shape.parts)
        if key not in self._met:
            self._met = {key: None, **dict(list(self._met.items())[:_MOST_SHAPES])}
            return
        if self._expressions >= _MOST_EXPRESSIONS or self._expression_bytes >= _MOST_EXPRESSION_BYTES:
            return
        lengths = list({**shape.short, **dict.fromkeys(range(_SHORT))})  # those that were met are tried first
        pattern = self._record.pattern(iter(shape.parts), lengths)
        self._expressions += 1
        self._expression_bytes += len(pattern)
        if self._expression_bytes > _MOST_EXPRESSION_BYTES:
            return
        expression = re.compile(pattern, re.DOTALL)
        fields = itemgetter(*(expression.groupindex[f"f{index}"] for index in self._order))
        others = [(other, layout) for other, layout in self._layouts.items() if other != key]
        self._layouts = {key: _Layout(expression.match, fields), **dict(others[: _MOST_SHAPES - 1])}


@lru_cache(maxsize=64)
def _reader(schema_text: bytes, names: tuple[tuple[str, ...], ...], optional: tuple[str, ...]) -> _Reader:
    if len(schema_text) > _MOST_SCHEMA_BYTES:
        raise AvroFileError("its schema is too long")
    schema = tamed_schema(schema_text)
    wanted = {}
    for index, alternatives in enumerate(names):
        name = next((name for name in alternatives if _has_field(schema, name)), None)
        if name is not None:
            wanted[name] = index
        elif not set(alternatives) & set(optional):
            raise AvroFileError(f"its records have no field {alternatives[0]}")
    return _Reader(cast(_Record, _Nodes().make(schema, wanted)), len(names))


def _has_field(schema: Any, name: str) -> bool:
    first, _, rest = name.partition(".")
    for field in schema.get("fields", ()) if isinstance(schema, dict) and schema.get("type") == "record" else ():
        if field["name"] == first:
            return not rest or _has_field(field["type"], rest)
    return False


class _Nodes:
    """Makes the nodes of a schema, which was tamed: its types are defined before they are used, and none is within itself."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self._made = 0

    def make(self, schema: Any, wanted: Mapping[str, int] | None = None, *, prefix: str = "", is_inner: bool = False) -> _Node:
        """Make the node of a type.

        wanted        fields by their names from the outermost record on
        prefix        of the names of this type's fields
        """
        self._made += 1
        if self._made > _MOST_NODES:
            raise AvroFileError("its schema has too many types")
        if isinstance(schema, list):
            return _Union([self.make(each, is_inner=is_inner) for each in schema])
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self.make(kind, wanted, prefix=prefix, is_inner=is_inner)
        if isinstance(schema, dict) and "name" in schema:
            self._known[schema["name"].rpartition(".")[2]] = schema
        if kind == "record":
            return self._record(schema["fields"], wanted or {}, prefix, is_inner)
        if kind == "array":
            return _Array(self.make(schema["items"], is_inner=True))
        if kind == "map":
            key = _Text(is_string=True, is_inner=True)
            return _Array(_Record([("key", key), ("value", self.make(schema["values"], is_inner=True))], {}))
        return self._simple(kind, schema, wanted, prefix, is_inner)

    def _record(self, fields: Sequence[Mapping[str, Any]], wanted: Mapping[str, int], prefix: str, is_inner: bool) -> _Record:
        nodes = []
        for field in fields:
            name = f"{prefix}{field['name']}"
            nodes.append((field["name"], self.make(field["type"], wanted, prefix=f"{name}.", is_inner=is_inner)))
        mine = {field["name"]: wanted[prefix + field["name"]] for field in fields if prefix + field["name"] in wanted}
        return _Record(nodes, mine)

    def _simple(self, kind: str, schema: Any, wanted: Mapping[str, int] | None, prefix: str, is_inner: bool) -> _Node:
        if kind in _NUMBERS or kind == "enum":
            return _Number()
        if kind in _TEXTS:
            return _Text(is_string=kind == "string", is_inner=is_inner)
        if kind in _SIZES:
            return _Fixed(_SIZES[kind])
        if kind == "fixed":
            return _Fixed(schema["size"])
        if kind == "null":
            return _Nothing()
        return self.make(self._known[kind.rpartition(".")[2]], wanted, prefix=prefix, is_inner=is_inner)


def _one_of(patterns: Iterator[bytes]) -> bytes:
    return b"(?>%b)" % b"|".join(patterns)


@lru_cache(maxsize=4096)
def _sized(size: int) -> bytes:
    return re.escape(_encoded(size)) + (b".{%d}" % size if size else b"")


def _encoded(number: int) -> bytes:
    """A number that is not negative, as Avro has it."""
    rest, made = number << 1, bytearray()
    while rest > 0x7F:
        made.append(rest & 0x7F | 0x80)
        rest >>= 7
    made.append(rest)
    return bytes(made)


@lru_cache(maxsize=4096)
def _kept_number(raw: bytes) -> int:
    """A number in its bytes: statuses and counts are the same in most records."""
    return _number(raw, 0)[0]


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number, and the place behind it."""
    byte = data[at]
    value, shift = byte & 0x7F, 7
    while byte & 0x80:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise AvroFileError("a number is longer than ten bytes")
    return (value >> 1) ^ -(value & 1), at + 1


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _number(data, at)
    end = _checked_end(data, at + size)
    if size < 0:
        raise AvroFileError("a text of negative length")
    return data[at:end], end


def _checked_end(data: bytes, end: int) -> int:
    if end > len(data):
        raise AvroFileError("a value of it is cut off")
    return end
