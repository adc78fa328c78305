"""Avro as it comes, and as somebody made it who means ill: whatever the bytes are, the worst is a ValueError."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from fastavro import schemaless_writer

from headwater.iceberg.avro import read_records

LONG = {"type": "record", "name": "x", "fields": [{"name": "a", "type": "long"}]}
HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
BLOCK = {
    "type": "record",
    "name": "block",
    "fields": [{"name": "count", "type": "long"}, {"name": "data", "type": "bytes"}, HEADER["fields"][2]],
}


def avro_of(schema: object, *, codec: bytes = b"null", count: int = 1, block: bytes = b"\x06abc") -> bytes:
    """A file of one block that need not be what its schema says; bytes as the schema are taken as they are."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    file = io.BytesIO()
    meta = {"avro.schema": text, "avro.codec": codec}
    schemaless_writer(file, HEADER, {"magic": b"Obj\x01", "meta": meta, "sync": b"S" * 16})
    schemaless_writer(file, BLOCK, {"count": count, "data": block, "sync": b"S" * 16})
    return file.getvalue()


def record_of(kind: object) -> dict[str, Any]:
    return {"type": "record", "name": "x", "fields": [{"name": "a", "type": kind}]}


def written(schema: Any, records: list[dict[str, Any]], codec: str = "null") -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, schema, records, codec=codec)
    return file.getvalue()


def nested(levels: int) -> object:
    kind: object = "long"
    for _ in range(levels):
        kind = {"type": "array", "items": kind}
    return kind


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_every_codec_that_engines_write_is_read(codec: str) -> None:
    assert read_records(written(LONG, [{"a": 1}, {"a": 2}], codec)) == [{"a": 1}, {"a": 2}]


def test_date_that_python_does_not_know_is_a_number() -> None:
    assert read_records(avro_of(record_of({"type": "int", "logicalType": "date"}), block=b"\xfe\xff\xff\xff\x0f")) == [
        {"a": 2**31 - 1}
    ]


def test_type_may_be_named_again_after_its_definition() -> None:
    fixed = {"type": "fixed", "name": "uuid_fixed", "size": 1}
    schema = {
        "type": "record",
        "name": "x",
        "fields": [{"name": "a", "type": fixed}, {"name": "b", "type": ["null", "uuid_fixed"]}],
    }

    assert read_records(written(schema, [{"a": b"1", "b": b"2"}])) == [{"a": b"1", "b": b"2"}]


@pytest.mark.parametrize(
    "schema",
    [
        record_of("x"),
        record_of(["null", "x"]),
        record_of({"type": "array", "items": "x"}),
        record_of({"type": "record", "name": "n.x", "fields": [{"name": "b", "type": ".x"}]}),
        record_of("nope"),
        record_of({"type": "array", "items": "null"}),
        record_of({"type": "array", "items": {"type": "record", "name": "y", "fields": []}}),
        record_of({"type": "fixed", "name": "f", "size": "z"}),
        record_of({"type": "bytes", "logicalType": "decimal", "precision": -1, "scale": "a"}) | {"name": 1},
        record_of(nested(60)),
        record_of(7),
        {"type": "record", "fields": []},
        {"type": "record", "name": "x", "fields": []},
        {"type": "record", "name": "x", "fields": 1},
        "long",
        [LONG],
        b"[" * 200_000,
        b"{{{",
    ],
    ids=lambda schema: str(schema)[:60],
)
def test_schema_that_would_break_its_reader_is_refused(schema: object) -> None:
    with pytest.raises(ValueError, match="broken Avro"):
        read_records(avro_of(schema, count=1 << 40))


@pytest.mark.parametrize("codec", [b"bzip2", b"xz", b"zstandard", b"snappy", b"deflate", b"lz4", b"nope", b"\xff"])
def test_block_that_cannot_be_unpacked_is_broken_whatever_the_codec(codec: bytes) -> None:
    with pytest.raises(ValueError, match=r"^broken Avro$"):
        read_records(avro_of(LONG, codec=codec, block=b"garbagegarbage"))
