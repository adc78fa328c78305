from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


@pytest.fixture
def document() -> dict[str, Any]:
    """A sound version 2 document of the table in s3://lake/sales/orders, with two snapshots."""
    return {
        "format-version": 2,
        "table-uuid": UUID,
        "location": "s3://lake/sales/orders",
        "last-sequence-number": 2,
        "last-updated-ms": 1_750_000_002_000,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": []}, {"type": "struct", "schema-id": 1, "fields": []}],
        "current-schema-id": 1,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": 22,
        "refs": {"main": {"snapshot-id": 22, "type": "branch"}, "old": {"snapshot-id": 11, "type": "tag"}},
        "snapshots": [
            {
                "snapshot-id": number,
                "sequence-number": sequence,
                "timestamp-ms": 1_750_000_000_000 + sequence,
                "summary": {},
                "manifest-list": f"s3://lake/sales/orders/metadata/snap-{number}.avro",
            }
            for sequence, number in ((1, 11), (2, 22))
        ],
        "snapshot-log": [
            {"snapshot-id": 11, "timestamp-ms": 1_750_000_000_001},
            {"snapshot-id": 22, "timestamp-ms": 1_750_000_000_002},
        ],
        "metadata-log": [],
    }


@pytest.fixture
def make_table(tmp_path: Path, document: dict[str, Any]) -> Callable[..., Path]:
    """Writes a table below tmp_path: ``make_table("sales/orders", {"v1.metadata.json": {...changes}})``; bytes are written as they are."""

    def make(folder: str, files: dict[str, dict[str, Any] | bytes]) -> Path:
        directory = tmp_path / folder
        (directory / "metadata").mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            sound = {
                **document,
                "location": directory.as_uri(),
                "snapshots": [],
                "refs": {},
                "current-snapshot-id": -1,
                "snapshot-log": [],
            }
            data = content if isinstance(content, bytes) else json.dumps({**sound, **content}).encode()
            (directory / "metadata" / name).write_bytes(data)
        return directory

    return make
