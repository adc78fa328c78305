"""Versions of metadata documents, kept one on top of the other."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

from headwater.catalogs.stored_metadata import read_metadata, store_metadata
from headwater.commits import Transaction, commit_change
from headwater.iceberg.metadata_json import join_metadata, split_metadata
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore

TABLES = "tables"


class Shelf:
    """Keeps versions of one document, each on top of the one before."""

    def __init__(self, rows: RealmStore) -> None:
        self.rows = rows
        self.newest: ObjectId | None = None

    def store(self, document: Any) -> ObjectId:
        return self.store_text(json.dumps(document).encode())

    def store_text(self, text: bytes) -> ObjectId:
        before = self.newest

        def change(tx: Transaction) -> ObjectId:
            made = store_metadata(tx, split_metadata(text), before=before)
            tx.index("tables").put(b"t", IndexValue(made))
            return made

        self.newest = commit_change(self.rows, TABLES, change).result
        return self.newest

    def read(self, metadata_id: ObjectId) -> Any:
        """The document as the database has it."""
        return json.loads(self.stored_text(metadata_id))

    def stored_text(self, metadata_id: ObjectId) -> bytes:
        return join_metadata(read_metadata(self.rows.without_cache(), metadata_id))

    def kept_text(self, metadata_id: ObjectId) -> bytes:
        """The document from the pieces that the process keeps of it, where it does."""
        return join_metadata(read_metadata(self.rows, metadata_id))

    def stored_bytes(self) -> int:
        """Of all objects in the realm, commits included."""
        return sum(key.bytes for batch in self.rows.scan_objects() for key in batch)

    def count(self, type_name: str) -> int:
        return sum(key.type == type_name for batch in self.rows.scan_objects() for key in batch)


@cache
def snapshot_of(number: int) -> dict[str, Any]:
    snapshot_id = random.Random(number).getrandbits(62)
    totals = {f"total-{what}": str(number * 1000 + at) for at, what in enumerate(("records", "data-files", "files-size"))}
    return {
        "snapshot-id": snapshot_id,
        "sequence-number": number + 1,
        "timestamp-ms": 1_750_000_000_000 + number,
        "summary": {"operation": "append", "engine-name": "spark", "engine-version": "3.5.1", "note": "x" * 400, **totals},
        "manifest-list": f"s3://lake/sales/orders/metadata/snap-{snapshot_id}-1-0b8f1a2c.avro",
    }
