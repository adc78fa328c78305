"""Servers on one store, each a process of its own that can be killed, and the requests that engines send them."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from click.testing import CliRunner

from headwater.catalogs import Catalog, Catalogs
from headwater.cli import main
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater.store import Store, open_store

__all__ = [
    "PREFIX",
    "Replica",
    "ReplicaAnswer",
    "append_body",
    "fsck_faults",
    "identified",
    "new_key",
    "opened_lake",
    "prepare_lake",
    "started_replicas",
]

PREFIX = "acme~lake"
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
SECONDS = 20.0
PROGRAM = Path(__file__).with_name("replica_process.py")
LOST = 0
"""The status of a request that was never answered."""


@dataclass(frozen=True)
class ReplicaAnswer:
    status: int
    content: bytes = b""

    @property
    def data(self) -> Any:
        return json.loads(self.content)

    @property
    def is_done(self) -> bool:
        return self.status in (200, 204)

    @property
    def is_final(self) -> bool:
        """Whether a client need not ask again what became of it."""
        return self.status not in (LOST, 429, 500, 503)


class Replica:
    """A server's process."""

    def __init__(self, url: str, *, fault_share: float = 0.0, seed: str = "0") -> None:
        self._arguments = [url, str(fault_share), seed]
        self.start()

    def start(self) -> None:
        """Start it, or its successor."""
        path = os.pathsep.join([str(PROGRAM.parents[2]), *sys.path])
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *self._arguments],
            env=environment | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = 0

    def wait(self) -> None:
        """Wait until it serves."""
        assert self.process.stdout is not None
        url = self.process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), "the server did not start"
        self.port = int(url.rpartition(":")[2])

    def die(self, method: str, *, at: int = 1, before: bool = False) -> None:
        """Let it die at a call of the database, before or after the call's effect."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"die {method} {at} {'before' if before else 'after'}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "armed\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, method: str, path: str, body: Any = None, *, key: str | None = None, prefix: str = PREFIX) -> ReplicaAnswer:
        """Send one request on a connection of its own; ``LOST`` when no answer comes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
        try:
            connection.request(method, f"/iceberg/v1/{prefix}/{path}", None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return ReplicaAnswer(answer.status, answer.read())
        except (OSError, http.client.HTTPException):
            return ReplicaAnswer(LOST)
        finally:
            connection.close()


@contextmanager
def started_replicas(url: str, count: int = 2, *, fault_share: float = 0.0, seed: int = 0) -> Iterator[Sequence[Replica]]:
    replicas = [Replica(url, fault_share=fault_share, seed=f"{seed} {number}") for number in range(count)]
    try:
        for replica in replicas:
            replica.wait()
        yield replicas
    finally:
        for replica in replicas:
            replica.kill()


def prepare_lake(url: str, warehouse: str, *, branches: Sequence[str] = ()) -> None:
    """An active realm ``acme`` with the catalog ``lake``, the namespace ``sales``, and branches that have it, too."""
    with open_store(url) as store:
        realms = RealmRegistry(store)
        realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
        realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
        realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
        Catalogs(realms.open_realm("acme")).create_catalog("lake", base_location=warehouse)
    with started_replicas(url, 1) as (replica,):
        assert replica.send("POST", "namespaces", {"namespace": ["sales"]}).is_done
    with opened_lake(url) as lake:
        for branch in branches:
            lake.create_branch(branch)


@contextmanager
def opened_lake(url: str) -> Iterator[Catalog]:
    with open_store(url) as store:
        yield lake_of(store)


def lake_of(store: Store) -> Catalog:
    return Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")


def fsck_faults(url: str) -> list[str]:
    """What fsck finds that a person would have to look at."""
    result = CliRunner().invoke(main, ["--store", url, "fsck"], prog_name="headwater")
    return [] if result.exit_code == 0 else [result.output]


def identified(name: str) -> dict[str, Any]:
    return {"namespace": ["sales"], "name": name}


def append_body(metadata: Mapping[str, Any], snapshot_id: int) -> dict[str, Any]:
    """The body of an append to ``main`` of a table, as engines make it from the metadata that they loaded."""
    parent = metadata.get("refs", {}).get("main", {}).get("snapshot-id")
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": max(int(time.time() * 1000), metadata["last-updated-ms"]),
        "manifest-list": f"{metadata['location']}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    } | ({} if parent is None else {"parent-snapshot-id": parent})
    return {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id},
        ],
    }


def new_key() -> str:
    """A UUID of version 7, as clients make it."""
    millis, chance = int(time.time() * 1000), secrets.randbits(74)
    return str(UUID(int=(millis << 80) | (7 << 76) | ((chance >> 62) << 64) | (2 << 62) | (chance & ((1 << 62) - 1))))
