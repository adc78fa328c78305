"""Writers of tables: each knows its table as an engine does, and appends to it by what every Iceberg catalog understands."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from typing import Any
from uuid import UUID

import msgspec
from benchmarks.http_calls import HttpConnection, HttpReply, request_bytes, run_scripts
from benchmarks.storms import Act, Storm

from headwater.catalogs import ContentKey
from headwater.iceberg_catalog import IcebergCatalog, TableCommit

__all__ = ["TableChange", "TableScript", "TableWriter", "append_in_process", "append_over_http"]

TableChange = dict[str, Any]
"""``requirements`` and ``updates``, as Iceberg's REST protocol writes them."""


class TableWriter:
    """The next append to a table: a snapshot is added to ``main``, and the oldest expires, so that the table stays as large as it is."""

    def __init__(self, document: dict[str, Any], chance: random.Random) -> None:
        self._chance = chance
        self.learn(document)

    def learn(self, document: dict[str, Any]) -> None:
        """Take the table's present state."""
        self._location = document["location"]
        self._uuid = document["table-uuid"]
        self._sequence = document["last-sequence-number"]
        self._snapshots = deque(snapshot["snapshot-id"] for snapshot in document.get("snapshots") or ())
        self._next, self._expires = 0, True

    def next_change(self, *, keeps_all: bool = False) -> TableChange:
        """The next append; without an expiry where it ``keeps_all``."""
        self._next, self._expires = self._chance.getrandbits(62), not keeps_all
        head = self._snapshots[-1] if self._snapshots else None
        expiry = [] if keeps_all else [{"action": "remove-snapshots", "snapshot-ids": [self._snapshots[0]]}]
        return {
            "requirements": [
                {"type": "assert-table-uuid", "uuid": self._uuid},
                {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head},
            ],
            "updates": [
                {"action": "add-snapshot", "snapshot": self._snapshot(head)},
                {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": self._next},
                *expiry,
            ],
        }

    def took_place(self) -> None:
        """The change that was made last is in the table."""
        self._snapshots.append(self._next)
        if self._expires:
            self._snapshots.popleft()
        self._sequence += 1

    def _snapshot(self, parent: int | None) -> dict[str, Any]:
        unique = UUID(int=self._chance.getrandbits(128), version=4)
        return {
            "snapshot-id": self._next,
            **({} if parent is None else {"parent-snapshot-id": parent}),
            "sequence-number": self._sequence + 1,
            "timestamp-ms": time.time_ns() // 1_000_000,
            "manifest-list": f"{self._location}/metadata/snap-{self._next}-1-{unique}.avro",
            "summary": {
                "operation": "append",
                "added-data-files": "1",
                "added-records": "1000",
                "added-files-size": "34567",
                "total-data-files": str(self._sequence),
                "total-records": str(1000 * self._sequence),
                "total-files-size": str(34567 * self._sequence),
            },
            "schema-id": 0,
        }


class TableScript:
    """A writer over HTTP, which loads its table first. After a failure it loads it again, which counts as no call."""

    def __init__(self, port: int, path: str) -> None:
        self._path = path
        with closing(HttpConnection(port)) as connection:
            document = connection.call(request_bytes("GET", path)).json["metadata"]
        self._writer = TableWriter(document, random.Random())
        self._has_failed = False

    def next_request(self) -> bytes:
        if self._has_failed:
            return request_bytes("GET", self._path)
        return request_bytes("POST", self._path, body=msgspec.json.encode(self._writer.next_change()))

    def take_reply(self, reply: HttpReply) -> str | None:
        if self._has_failed:
            if reply.status == 200:
                self._writer.learn(reply.json["metadata"])
                self._has_failed = False
            return ""
        if reply.status == 200:
            self._writer.took_place()
            return None
        self._has_failed = True
        return str(reply.status)


def append_over_http(port: int, paths: Sequence[str], seconds: float) -> Storm:
    """A client for each of these tables, in this process."""
    return run_scripts(port, [TableScript(port, path) for path in paths], seconds)


def append_in_process(lake: IcebergCatalog, key: ContentKey) -> Act:
    """The same by the catalog itself, without HTTP."""
    writer = TableWriter(lake.tables.load(key).document, random.Random())

    def act(_: random.Random) -> None:
        change = writer.next_change()
        try:
            lake.tables.commit(TableCommit(key, change["requirements"], change["updates"]))
        except Exception:
            writer.learn(lake.tables.load(key).document)
            raise
        writer.took_place()

    return act
