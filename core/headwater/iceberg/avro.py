"""Reads the records of Avro files, the format of manifests and manifest lists."""

from __future__ import annotations

import io
from typing import Any, cast

import msgspec

__all__ = ["read_records", "tamed_schema"]

_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
    ],
}
"""How a file begins; source: Apache Avro, specification, "Object Container Files"."""

_PRIMITIVES = frozenset(("boolean", "int", "long", "float", "double", "bytes", "string"))
_MOST_LEVELS = 50
"""Manifests need ten."""


def read_records(data: bytes) -> list[dict[str, Any]]:
    """Read all records of a file; dates and other logical types stay the numbers and bytes that were written.

    raises        ValueError when the file is broken, with no text of the file: a library's message may quote much of it
    """
    from fastavro import reader  # only who follows manifests needs it

    try:
        return cast("list[dict[str, Any]]", list(reader(io.BytesIO(_tamed(data)))))
    except MemoryError:
        raise
    except Exception as fault:  # all is in memory: what comes, also as a codec's own error, can only be about these bytes
        raise ValueError("broken Avro") from fault


def _tamed(data: bytes) -> bytes:
    """Replace the schema by a harmless one without logical types: a date may be later than Python's last."""
    from fastavro import schemaless_reader, schemaless_writer

    file, tamed = io.BytesIO(data), io.BytesIO()
    header = cast("dict[str, Any]", schemaless_reader(file, _HEADER, None))
    header["meta"]["avro.schema"] = msgspec.json.encode(tamed_schema(header["meta"]["avro.schema"]))
    schemaless_writer(tamed, _HEADER, header)
    return tamed.getvalue() + data[file.tell() :]


def tamed_schema(text: bytes) -> dict[str, Any]:
    """The schema of records, without logical types, if it can be read safely; raises ValueError otherwise."""
    schema = msgspec.json.decode(text)
    _Names().tame(schema)
    return cast("dict[str, Any]", schema)


class _Names:
    """The names that a schema has defined so far.

    fastavro trusts a schema: a recursive one would overflow the stack and kill the process, and an array of items without bytes
    would never end.
    """

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._takes: dict[str, bool] = {}

    def tame(self, schema: object) -> None:
        """Remove the logical types from a record's schema; raises ValueError for a schema that cannot be read safely."""
        if not isinstance(schema, dict) or schema.get("type") != "record" or not self._takes_bytes(schema, 0):
            raise ValueError("the schema is not that of a record")

    def _takes_bytes(self, schema: object, level: int) -> bool:
        """True if each value takes at least one byte."""
        if level > _MOST_LEVELS:
            raise ValueError(f"a schema deeper than {_MOST_LEVELS} levels")
        if isinstance(schema, str):
            return self._is_named_with_bytes(schema)
        if isinstance(schema, list):
            for member in schema:
                self._takes_bytes(member, level + 1)
            return True
        if not isinstance(schema, dict):
            raise ValueError(f"a schema that is a {type(schema).__name__}")
        return self._object_takes_bytes(schema, level)

    def _object_takes_bytes(self, schema: dict[str, Any], level: int) -> bool:
        schema.pop("logicalType", None)
        kind = schema.get("type")
        if kind == "record":
            self._open.add(name := self._name(schema))
            takes = [self._takes_bytes(field["type"], level + 1) for field in schema["fields"]]
            self._open.remove(name)
            return self._define(name, any(takes))
        if kind in ("fixed", "enum"):
            return self._define(self._name(schema), kind == "enum" or schema["size"] > 0)
        if kind == "array" and not self._takes_bytes(schema["items"], level + 1):
            raise ValueError("an array of what takes no bytes")
        if kind == "map":
            self._takes_bytes(schema["values"], level + 1)
        return kind in ("array", "map") or self._takes_bytes(kind, level + 1)

    def _is_named_with_bytes(self, name: str) -> bool:
        if name in _PRIMITIVES or name == "null":
            return name != "null"
        last = _last(name)
        if last in self._open or last not in self._takes:
            raise ValueError(f"the type {name!r}, which is not defined before")
        return self._takes[last]

    def _name(self, schema: dict[str, Any]) -> str:
        """The name without its namespace, so that no type still being defined is mistaken for another."""
        name = _last(schema["name"])
        if name in self._open or name in _PRIMITIVES or name == "null":
            raise ValueError(f"the type {name!r} within itself")
        return name

    def _define(self, name: str, takes_bytes: bool) -> bool:
        self._takes[name] = takes_bytes and self._takes.get(name, True)
        return takes_bytes


def _last(name: str) -> str:
    return name.rpartition(".")[2]
