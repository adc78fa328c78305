"""What a manifest holds, read without its statistics: always what a whole reader of Avro finds, or an error."""

from __future__ import annotations

import bz2
import io
import lzma
import random
import re
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import fastavro
import pytest
from backports import zstd
from cramjam import snappy

from headwater.iceberg import avro_codecs, avro_projection
from headwater.iceberg.avro import read_records
from headwater.iceberg.avro_projection import read_avro_fields
from headwater.iceberg.manifest_entries import UNKNOWN, ListedManifest, read_manifest_entries, read_manifest_list

_MAPS = {"column_sizes": "long", "value_counts": "long", "lower_bounds": "bytes", "upper_bounds": "bytes"}


def _map(name: str, kind: str) -> dict[str, Any]:
    entry = {
        "type": "record",
        "name": f"{name}_entry",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": kind}],
    }
    return {"name": name, "type": ["null", {"type": "array", "items": entry, "logicalType": "map"}], "default": None}


FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        {"name": "content", "type": "int"},
        {"name": "file_path", "type": "string"},
        {"name": "file_format", "type": "string"},
        {
            "name": "partition",
            "type": {
                "type": "record",
                "name": "r102",
                "fields": [
                    {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
                    {"name": "place", "type": ["null", "string"]},
                    {"name": "uuid", "type": {"type": "fixed", "name": "u", "size": 16}},
                    {"name": "share", "type": ["null", "double"]},
                    {"name": "flag", "type": "boolean"},
                ],
            },
        },
        {"name": "record_count", "type": "long"},
        *(_map(name, kind) for name, kind in _MAPS.items()),
        {"name": "tags", "type": ["null", {"type": "map", "values": "string"}], "default": None},
        {"name": "split_offsets", "type": ["null", {"type": "array", "items": "long"}], "default": None},
    ],
}
ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int"},
        {"name": "snapshot_id", "type": ["null", "long"], "default": None},
        {"name": "data_file", "type": FILE},
    ],
}


def entry(chance: random.Random) -> dict[str, Any]:
    columns = chance.choice((0, 1, 3, 3, 3, 70))

    def pairs(kind: str) -> list[dict[str, Any]] | None:
        if not columns:
            return None
        value = (
            (lambda: chance.randbytes(chance.choice((0, 4, 8, 8, 16, 63, 64, 200)))) if kind == "bytes" else chance.getrandbits
        )
        return [{"key": key, "value": value() if kind == "bytes" else value(50)} for key in range(columns)]  # type: ignore[operator]

    return {
        "status": chance.choice((0, 1, 2)),
        "snapshot_id": chance.choice((None, -1, 1 << 62)),
        "data_file": {
            "content": chance.choice((0, 1, 2)),
            "file_path": "s3://lake/" + "ü" * chance.choice((0, 1, 30, 31, 32, 90)) + f"/{chance.getrandbits(40):x}.parquet",
            "file_format": chance.choice(("PARQUET", "orc", "")),
            "partition": {
                "day": chance.choice((None, -5, 99_999_999)),
                "place": chance.choice((None, "", "x" * 300)),
                "uuid": chance.randbytes(16),
                "share": chance.choice((None, 0.5)),
                "flag": chance.choice((True, False)),
            },
            "record_count": chance.getrandbits(33),
            **{name: pairs(kind) for name, kind in _MAPS.items()},
            "tags": chance.choice((None, {}, {"a": "b", "key" * 40: "\x0ePARQUET"})),
            "split_offsets": chance.choice((None, [], [4, 1 << 40])),
        },
    }


def written(
    records: list[dict[str, Any]], schema: dict[str, Any] = ENTRY, *, codec: str = "deflate", interval: int = 4000
) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), records, codec=codec, sync_interval=interval)
    return file.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard", "snappy"])
@pytest.mark.parametrize("seed", range(3))
def test_manifest_is_read_as_by_a_whole_reader(seed: int, codec: str) -> None:
    chance = random.Random(seed)
    records = [entry(chance) for _ in range(chance.choice((0, 1, 150)))]
    if seed % 2:  # most manifests have records that are alike
        records = [record | {"status": number % 3} for record in records[:3] for number in range(60)]
    data = written(records, codec=codec)
    read = read_manifest_entries(data)

    assert read.paths == [record["data_file"]["file_path"] for record in read_records(data) if record["status"] != 2]
    assert [read.existing, read.added, read.deleted] == [sum(r["status"] == status for r in records) for status in (0, 1, 2)]
    assert read.total == len(records)


def test_fields_are_those_that_were_written() -> None:
    chance = random.Random(7)
    records = [entry(chance) for _ in range(80)] * 2
    names = ("snapshot_id", "data_file.record_count", "data_file.partition.place", "status")
    read = [record for block in read_avro_fields(written(records), names) for record in zip(*block, strict=True)]

    assert read == [
        (r["snapshot_id"], r["data_file"]["record_count"], r["data_file"]["partition"]["place"], r["status"]) for r in records
    ]


def test_statistics_that_look_like_an_entry_change_nothing() -> None:
    chance = random.Random(8)
    records = [entry(chance) for _ in range(4)]
    whole = written(records, codec="null")
    for record in records:
        record["data_file"]["lower_bounds"] = [{"key": 1, "value": whole}]
    data = written(records * 30)

    assert len(read_manifest_entries(data).paths) == 30 * sum(record["status"] != 2 for record in records)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_manifest_is_an_error_or_read_alike(seed: int) -> None:
    chance = random.Random(seed)
    data = written([entry(chance) for _ in range(12)] * 4, codec="null", interval=500)
    for _ in range(60):
        at = chance.randrange(len(data))
        broken = chance.choice(
            (data[:at], data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :], data[:at] + data[at + 1 :])
        )
        try:
            expected: Any = [r["data_file"]["file_path"] for r in read_records(broken) if r["status"] != 2]
        except (ValueError, LookupError):
            expected = None  # it may be a text that only a whole reader looks at
        try:
            read: Any = read_manifest_entries(broken).paths
        except ValueError as fault:
            assert "s3://" not in str(fault)
            continue
        assert expected in (None, read)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "deflate": lambda data: zlib.compress(data, wbits=-15),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": zstd.compress,
    "snappy": lambda data: bytes(snappy.compress_raw(data)) + zlib.crc32(data).to_bytes(4, "big"),
}


def file_of_blocks(codec: str, blocks: list[bytes], *, count: int = 1) -> bytes:
    """A manifest with these blocks behind its header, each said to have so many records."""
    empty = written([], codec=codec)
    number = io.BytesIO()
    for block in blocks:
        fastavro.schemaless_writer(number, "long", count)
        fastavro.schemaless_writer(number, "bytes", block)
        number.write(empty[-16:])
    return empty + number.getvalue()


@pytest.mark.parametrize("codec", PACK)
def test_block_that_unpacks_to_too_much_is_an_error(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_codecs, "MOST_IN_A_BLOCK", 100_000)

    with pytest.raises(ValueError, match="unpack to more than 100000 bytes"):
        read_manifest_entries(file_of_blocks(codec, [PACK[codec](bytes(100_001))]))


def test_file_that_unpacks_to_too_much_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written([entry(random.Random(1)) | {"status": 1}] * 100, interval=2000)
    whole = written([entry(random.Random(1)) | {"status": 1}] * 100, codec="null")
    monkeypatch.setattr(avro_codecs, "MOST_IN_A_FILE", len(whole) // 2)

    with pytest.raises(ValueError, match="or all to more than"):
        read_manifest_entries(data)


@pytest.mark.parametrize("codec", PACK)
def test_block_that_is_cut_off_is_an_error(codec: str) -> None:
    packed = PACK[codec](bytes(range(256)) * 4)

    with pytest.raises(ValueError, match=r"cut off|damaged|broken"):
        read_manifest_entries(file_of_blocks(codec, [packed[:-6]]))


def test_codec_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="packed in a way that is not read"):
        read_manifest_entries(written([]).replace(b"deflate", b"deflatt"))


def test_records_without_end_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"broken|other records|cut off"):
        read_manifest_entries(file_of_blocks("deflate", [PACK["deflate"](b"")], count=1 << 62))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_list_is_an_error_or_has_paths(seed: int) -> None:
    chance = random.Random(seed)
    names = ("manifest_length", "added_files_count", "existing_files_count", "deleted_files_count")
    fields = [{"name": "manifest_path", "type": "string"}, *({"name": name, "type": "long"} for name in names)]
    schema = {"type": "record", "name": "manifest_file", "fields": fields}
    records = [{"manifest_path": f"s3://lake/{number}", **dict.fromkeys(names, number)} for number in range(30)]
    data = bytearray(written(records, schema, codec="null"))
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(chance.choice((1, 1, 3))):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        try:
            listed = read_manifest_list(bytes(broken))
        except ValueError as fault:
            assert "s3://" not in str(fault)
            continue
        assert all(manifest.path and manifest.total >= UNKNOWN for manifest in listed)


def test_schema_that_is_too_long_is_refused() -> None:
    schema = ENTRY | {"doc": "x" * (1 << 20)}

    with pytest.raises(ValueError, match="its schema is too long"):
        read_manifest_entries(written([], schema))


def test_expressions_of_one_schema_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {
        "type": "record",
        "name": "wide",
        "fields": [{"name": "status", "type": "int"}, *({"name": f"t{number}", "type": "string"} for number in range(50))],
    }
    texts = [{f"t{at}": "x" * (70 if at == other else 100) for at in range(50)} for other in range(20)]
    records = [{"status": 1} | text for text in texts for _ in range(3)]
    compiled: list[int] = []
    compile_ = re.compile
    counting = SimpleNamespace(
        DOTALL=re.DOTALL, escape=re.escape, compile=lambda text, flags: compiled.append(len(text)) or compile_(text, flags)
    )
    monkeypatch.setattr(avro_projection, "re", counting)
    monkeypatch.setattr(avro_projection, "_MOST_EXPRESSION_BYTES", 30_000)
    read = [
        record for block in read_avro_fields(written(records, schema), ("status", "t7")) for record in zip(*block, strict=True)
    ]

    assert read == [(1, record["t7"]) for record in records]
    assert 0 < sum(compiled) <= 30_000


def test_status_that_is_not_known_is_an_error() -> None:
    record = entry(random.Random(9)) | {"status": 3}

    with pytest.raises(ValueError, match="a status that is not known"):
        read_manifest_entries(written([record]))


def test_file_of_other_records_is_no_manifest() -> None:
    schema = {"type": "record", "name": "x", "fields": [{"name": "status", "type": "int"}]}

    with pytest.raises(ValueError, match=r"no field data_file\.file_path"):
        read_manifest_entries(written([{"status": 1}], schema))


def test_schema_that_unfolds_without_end_is_refused() -> None:
    kind: Any = {"type": "record", "name": "n0", "fields": [{"name": "a", "type": "int"}]}
    for level in range(1, 40):
        kind = {
            "type": "record",
            "name": f"n{level}",
            "fields": [{"name": "a", "type": kind}, {"name": "b", "type": f"n{level - 1}"}],
        }
    header = {
        "type": "record",
        "name": "e",
        "fields": [{"name": "status", "type": "int"}, {"name": "more", "type": ["null", kind]}],
    }

    with pytest.raises(ValueError, match=r"too many types|no field"):
        list(read_avro_fields(written([{"status": 1, "more": None}], header), ("status",)))


def test_list_says_what_each_manifest_has() -> None:
    names = ("manifest_length", "added_files_count", "existing_files_count", "deleted_files_count")
    fields = [{"name": "manifest_path", "type": "string"}, *({"name": name, "type": "int"} for name in names)]
    fields.append({"name": "key_metadata", "type": ["null", "bytes"], "default": None})
    schema = {"type": "record", "name": "manifest_file", "fields": fields}
    records = [
        {"manifest_path": f"m{number}", **dict.fromkeys(names, number), "key_metadata": b"k" if number else None}
        for number in range(2)
    ]

    assert read_manifest_list(written(records, schema)) == [
        ListedManifest("m0", 0, 0, 0, 0, is_encrypted=False),
        ListedManifest("m1", 1, 1, 1, 1, is_encrypted=True),
    ]


def test_list_of_an_old_writer_says_less() -> None:
    schema = {
        "type": "record",
        "name": "manifest_file",
        "fields": [
            {"name": "manifest_path", "type": "string"},
            {"name": "manifest_length", "type": "long"},
            {"name": "added_data_files_count", "type": ["null", "int"]},
        ],
    }
    (listed,) = read_manifest_list(written([{"manifest_path": "m", "manifest_length": 5, "added_data_files_count": 2}], schema))

    assert (listed.length_bytes, listed.added, listed.existing, listed.total) == (5, 2, UNKNOWN, UNKNOWN)
