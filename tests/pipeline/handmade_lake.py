"""A warehouse written by hand: every way to name metadata, and every way for tables to be wrong or to contradict each other."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

FILES = ("00001-aaa.metadata.json", "00002-bbb.metadata.json")
DAY = 86_400


class Lake:
    """Below two folders; ``expected`` has for each dotted name the rule that decided, or the code of the quarantine."""

    def __init__(self, folder: Path) -> None:
        self.root, self.other = folder / "one", folder / "two"
        self.expected: dict[str, str] = {}
        _names(self)
        _hints(self)
        _contests(self)
        _contents(self)
        _contradictions(self)

    @property
    def locations(self) -> list[str]:
        return [str(self.root), str(self.other)]

    def table(
        self, name: str, expected: str, *files: str, hint: str | bytes | None = None, root: Path | None = None, **fields: Any
    ) -> Path:
        """A table whose files, oldest first, are a day apart and say the same; returns its metadata folder."""
        directory = (root or self.root) / name.replace(".", "/")
        metadata = directory / "metadata"
        metadata.mkdir(parents=True)
        for day, file in enumerate(files):
            self.write(metadata / file, document(directory, **fields), day=day)
        if hint is not None:
            (metadata / "version-hint.text").write_bytes(hint if isinstance(hint, bytes) else hint.encode())
        self.expected[name] = expected
        return metadata

    def write(self, path: Path, content: dict[str, Any] | bytes, *, day: int = 0) -> None:
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        os.utime(path, (1_750_000_000 + day * DAY,) * 2)


def document(directory: Path, *, log: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    """A sound table of version 2 without snapshots, with these files in its log and these fields changed (``_`` for ``-``)."""
    sound = {
        "format-version": 2,
        "table-uuid": str(uuid5(NAMESPACE_URL, directory.as_uri())),
        "location": directory.as_uri(),
        "last-sequence-number": 0,
        "last-updated-ms": 1_750_000_000_000,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "metadata-log": [
            {"metadata-file": f"{directory.as_uri()}/metadata/{name}", "timestamp-ms": 1_750_000_000_000} for name in log
        ],
    }
    return sound | {name.replace("_", "-"): value for name, value in fields.items()}


def _names(lake: Lake) -> None:
    lake.table("names.hadoop", "highest number", "v9.metadata.json", "v10.metadata.json")
    lake.table("names.metastore", "highest number", "00009-x.metadata.json", "00010-a.metadata.json")
    lake.table("names.uuid", "only file", "9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json")
    lake.table("names.final", "only file", "vfinal.metadata.json")
    lake.table("names.fraction", "highest number", "v3.1.metadata.json", "v3.metadata.json", "v4.metadata.json")
    lake.table("names.time", "highest number", "v1749025517.metadata.json", "v1749025600.metadata.json")
    left = lake.table("names.leftovers", "highest number", *FILES)
    for name in (".v9.metadata.json.crc", "_v9.metadata.json", "9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json"):
        lake.write(left / name, b"never committed")
    for name, file in (("new", "v2.gz.metadata.json"), ("old", "v2.metadata.json.gz"), ("unsaid", "v2.metadata.json")):
        packed = lake.table(f"gzip.{name}", "only file")
        lake.write(packed / file, gzip.compress(json.dumps(document(packed.parent)).encode()))
    lake.write(lake.table("gzip.pretended", "only file") / "v1.gz.metadata.json", document(lake.root / "gzip" / "pretended"))
    lake.write(lake.table("codecs.zstd", "UnknownCodec") / "v1.zst.metadata.json", b"\x28\xb5\x2f\xfd\x00")


def _hints(lake: Lake) -> None:
    two = ("v1.metadata.json", "v2.metadata.json")
    lake.table("hints.right", "version hint", *two, hint="2")
    lake.table("hints.stem", "version hint", *FILES, hint="00002-bbb")
    lake.table("hints.windows", "version hint", *two, hint="2\r\n")
    lake.table("hints.behind", "version hint, rolled forward", *two, "v3.metadata.json", hint="1")
    lake.table("hints.empty", "highest number", *two, hint="")
    lake.table("hints.nonsense", "highest number", *two, hint=b"\xff\x00newest")
    lake.table("hints.deleted", "highest number", *two, hint="0")
    lake.table("hints.ahead", "HintAhead", *two, hint="3")
    gap = lake.table("hints.gap", "metadata log", "v1.metadata.json", hint="1")
    lake.write(gap / "v3.metadata.json", document(gap.parent, log=["v1.metadata.json", "v2.metadata.json"]), day=3)


def _contests(lake: Lake) -> None:
    lost = lake.table("contests.lost_race", "metadata log", "00002-lost.metadata.json")
    lake.write(lost / "00002-won.metadata.json", document(lost.parent, log=["00002-lost.metadata.json"]))
    lake.table("contests.tie", "Ambiguous", "00002-one.metadata.json", "00002-two.metadata.json")
    lake.table("contests.schemes", "Ambiguous", "v2.metadata.json", "00002-x.metadata.json")
    anew = lake.table("contests.anew", "TwoTables", "00009-old.metadata.json")
    other = document(anew.parent, table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c2")
    lake.write(anew / "00001-new.metadata.json", other, day=9)


def _contents(lake: Lake) -> None:
    v1 = {"format_version": 1, "schema": {"type": "struct", "fields": []}, "partition_spec": []}
    lake.table("versions.one", "only file", "v1.metadata.json", **v1)
    lake.table("versions.three", "only file", "v1.metadata.json", format_version=3, next_row_id=0)
    lake.table("versions.seven", "UnsupportedVersion", "v1.metadata.json", format_version=7)
    for name, data in (("empty", b""), ("cut", b'{"format-version": 2, "loc'), ("list", b"[]")):
        lake.write(lake.table(f"broken.{name}", "Corrupt") / "v1.metadata.json", data)
    lake.table("broken.incomplete", "Invalid", "v1.metadata.json", last_column_id="many")
    lake.table("broken.inconsistent", "Inconsistent", "v1.metadata.json", current_schema_id=5)
    lake.table("foreign.moved", "LocationMismatch", "v1.metadata.json", location="s3a://elsewhere/moved")
    lake.table("foreign.outside", "OutsideAllowed", "v1.metadata.json", properties={"write.data.path": "s3://elsewhere/data"})
    delta = lake.table("siblings.delta", "IsDelta", "v1.metadata.json").parent / "_delta_log"
    delta.mkdir()
    lake.write(delta / "00000000000000000000.json", b"{}")
    dropped = lake.root / "siblings" / "dropped" / "data"
    dropped.mkdir(parents=True)
    lake.write(dropped / "part-0.parquet", b"PAR1")
    lake.expected["siblings.dropped"] = "NoMetadata"


def _contradictions(lake: Lake) -> None:
    same = "9c12d441-03fe-4693-9a96-a0705ddf69c3"
    for number in range(7):
        lake.table(f"copies.t{number}", "DuplicateUuid", "v1.metadata.json", table_uuid=same)
    lake.table("nests.outer", "Nested", "v1.metadata.json")
    lake.table("nests.outer.inner", "Nested", "v1.metadata.json")
    lake.table("nests.outer.inner.most", "Nested", "v1.metadata.json")
    lake.table("nests.copied", "DuplicateUuid", "v1.metadata.json", table_uuid=same)
    lake.table("nests.copied.inner", "Nested", "v1.metadata.json")
    for root in (lake.root, lake.other):
        lake.table("twins.both", "DuplicateKey", "v1.metadata.json", root=root)
    lake.table("namespaces.table", "only file", "v1.metadata.json")
    lake.table("namespaces.table.below", "KeyTaken", "v1.metadata.json", root=lake.other)
