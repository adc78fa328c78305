"""A warehouse made by hand: one table for every way to name metadata and to point to it, each with what is right about it.

The one list serves all engines: what they say of these folders has to be this.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

__all__ = ["CASES", "Case", "make_by_hand"]

A, B = "1b5fa0c6-2a1e-4f0e-8d5f-000000000001", "1b5fa0c6-2a1e-4f0e-8d5f-000000000002"
HINT = "version-hint.text"
Files = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One folder, and what a survey has to say.

    files         by name: changes to a sound document, or bytes; ``.gz`` in ``packed`` names those that are written packed
    is            the metadata file that is right, or the code of the quarantine
    rule          how it is told
    """

    name: str
    files: Files
    expected: str
    rule: str = ""
    packed: tuple[str, ...] = ()
    others: tuple[str, ...] = field(default=())


def _log(*names: str) -> Files:
    """The metadata log of a version that grew out of these."""
    return {"metadata-log": [{"timestamp-ms": 1, "metadata-file": f"LOCATION/metadata/{name}"} for name in names]}


def _m(number: int, uuid: str = A) -> str:
    return f"{number:05}-{uuid}.metadata.json"


CASES = (
    Case("hadoop.only", {"v1.metadata.json": {}}, "v1.metadata.json", "only file"),
    Case("hadoop.hint", {"v1.metadata.json": {}, "v2.metadata.json": {}, HINT: b"2"}, "v2.metadata.json", "version hint"),
    Case("hadoop.ten", {f"v{n}.metadata.json": {} for n in (1, 2, 10)}, "v10.metadata.json", "highest number"),
    Case(
        "hadoop.behind",
        {**{f"v{n}.metadata.json": {} for n in (1, 2, 3)}, HINT: b"1"},
        "v3.metadata.json",
        "version hint, rolled forward",
    ),
    Case("hadoop.ahead", {"v1.metadata.json": {}, HINT: b"5"}, "HintAhead"),
    Case(
        "hadoop.windows", {"v1.metadata.json": {}, "v2.metadata.json": {}, HINT: b"2\r\n"}, "v2.metadata.json", "version hint"
    ),
    Case(
        "hadoop.empty_hint", {"v1.metadata.json": {}, "v2.metadata.json": {}, HINT: b""}, "v2.metadata.json", "highest number"
    ),
    Case(
        "hadoop.deleted_hint",
        {"v2.metadata.json": {}, "v3.metadata.json": {}, HINT: b"1"},
        "v3.metadata.json",
        "highest number",
    ),
    Case("hadoop.packed", {"v1.gz.metadata.json": {}}, "v1.gz.metadata.json", "only file", ("v1.gz.metadata.json",)),
    Case("hadoop.old_packed", {"v1.metadata.json.gz": {}}, "v1.metadata.json.gz", "only file", ("v1.metadata.json.gz",)),
    Case("hadoop.quietly_packed", {"v1.metadata.json": {}}, "v1.metadata.json", "only file", ("v1.metadata.json",)),
    Case("hadoop.not_packed", {"v1.gz.metadata.json": {}}, "v1.gz.metadata.json", "only file"),
    Case("hadoop.zstd", {"v1.zst.metadata.json": b"\x28\xb5\x2f\xfd..."}, "UnknownCodec"),
    Case("hadoop.timestamp", {"v1749025517.metadata.json": {}}, "v1749025517.metadata.json", "only file"),
    Case("hadoop.fraction", {"v3.metadata.json": {}, "v3.1.metadata.json": b"not read"}, "v3.metadata.json", "highest number"),
    Case("hadoop.final", {"v3.metadata.json": {}, "vfinal.metadata.json": b"not read"}, "v3.metadata.json", "highest number"),
    Case("hadoop.stem", {_m(0): {}, _m(1, B): {}, HINT: _m(1, B).encode()}, _m(1, B), "version hint"),
    Case(
        "hadoop.uncommitted",
        {"v1.metadata.json": {}, f"{A}.metadata.json": b"half a wri"},
        "v1.metadata.json",
        "highest number",
    ),
    Case(
        "hadoop.noise",
        {"v1.metadata.json": {}, ".v1.metadata.json.crc": b"x", "_v9.metadata.json": b"x", "v9.metadata.json.tmp": b"x"},
        "v1.metadata.json",
        "only file",
    ),
    Case("metastore.highest", {_m(0): {}, _m(2, B): {}, _m(1): {}}, _m(2, B), "highest number"),
    Case(
        "metastore.packed",
        {f"00000-{A}.gz.metadata.json": {}},
        f"00000-{A}.gz.metadata.json",
        "only file",
        (f"00000-{A}.gz.metadata.json",),
    ),
    Case("metastore.race", {_m(0): {}, _m(1): _log(_m(0)), _m(1, B): _log(_m(0), _m(1))}, _m(1, B), "metadata log"),
    Case("metastore.tie", {_m(1): {}, _m(1, B): {}}, "Ambiguous"),
    Case("metastore.mixed", {_m(1): _log("v7.metadata.json"), "v7.metadata.json": {}}, _m(1), "metadata log"),
    Case(
        "metastore.uuids",
        {f"{A}.metadata.json": {}, f"{B}.metadata.json": _log(f"{A}.metadata.json")},
        f"{B}.metadata.json",
        "metadata log",
    ),
    Case("broken.corrupt", {"v1.metadata.json": {}, "v2.metadata.json": b"{"}, "Corrupt"),
    Case("broken.empty", {"v1.metadata.json": b""}, "Corrupt"),
    Case("broken.future", {"v1.metadata.json": {"format-version": 9}}, "UnsupportedVersion"),
    Case("broken.half", {"v1.metadata.json": {"schemas": None}}, "Invalid"),
    Case("broken.snapshot", {"v1.metadata.json": {"current-snapshot-id": 7}}, "Inconsistent"),
    Case("broken.moved", {"v1.metadata.json": {"location": "s3://elsewhere/t"}}, "LocationMismatch"),
    Case("broken.outside", {"v1.metadata.json": {"properties": {"write.data.path": "s3://elsewhere/d"}}}, "OutsideAllowed"),
    Case("left.dropped", {}, "NoMetadata", others=("data/1.parquet",)),
    Case("left.delta", {"v1.metadata.json": {}}, "IsDelta", others=("_delta_log/00.json",)),
    Case("pair.one", {"v1.metadata.json": {"table-uuid": B}}, "DuplicateUuid"),
    Case("pair.two", {"v1.metadata.json": {"table-uuid": B}}, "DuplicateUuid"),
    Case("nest.outer", {"v1.metadata.json": {}}, "Nested"),
    Case("nest.outer.inner", {"v1.metadata.json": {}}, "Nested"),
    Case("raw.four", {"v1.metadata.json": {"format-version": 4, "location": None}}, "v1.metadata.json", "only file"),
)


def make_by_hand(root: Path) -> None:
    """Write all the folders below a root."""
    for case in CASES:
        folder = root.joinpath(*case.name.split("."))
        (folder / "metadata").mkdir(parents=True, exist_ok=True)
        for name, content in case.files.items():
            data = content if isinstance(content, bytes) else _document(folder, case.name, content)
            (folder / "metadata" / name).write_bytes(gzip.compress(data) if name in case.packed else data)
        for name in case.others:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).touch()


def _document(folder: Path, name: str, changes: Files) -> bytes:
    sound = {
        "format-version": 2,
        "table-uuid": str(uuid5(NAMESPACE_URL, name)),
        "location": folder.as_uri(),
        "last-sequence-number": 0,
        "last-updated-ms": 1_750_000_000_000,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
    }
    return json.dumps(sound | changes).replace("LOCATION", folder.as_uri()).encode()
