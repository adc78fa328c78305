"""Histories of many clients through several servers that die and whose database fails: judged by what holds for every other door.

HEADWATER_SEED repeats what the seed decides; HEADWATER_SOAK=1 lets the storm on PostgreSQL last for HEADWATER_TORTURE_SECONDS.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from replicas import SCHEMA, fsck_faults, opened_lake, prepare_lake, started_replicas
from storm_clients import SHARED, StormClient, StormRecord

from engines.model import find_anomaly, keys_hold_what_was_told
from headwater.catalogs import Catalog, ContentType
from headwater.store import id_text

IS_SOAK = os.environ.get("HEADWATER_SOAK") == "1"
SECONDS = float(os.environ.get("HEADWATER_TORTURE_SECONDS", "600")) if IS_SOAK else 6.0
SEED = int(os.environ.get("HEADWATER_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
BRANCHES = ("", "dev")
CLIENTS = 6
DEATH_SECONDS = 2.0


class SharedTable:
    """The snapshot that ``main`` of the shared table is at."""

    initial: Hashable = None

    def apply(self, value: Hashable, call: Hashable) -> tuple[Hashable, Hashable]:
        assert isinstance(call, tuple)
        _, action, *values = call
        if action == "look":
            return value, value
        before, new = values
        return (new, "done") if value == before else (value, "conflict")


def storm(url: str, warehouse: str, seconds: float) -> StormRecord:
    print(f"HEADWATER_SEED={SEED} HEADWATER_TORTURE_SECONDS={seconds:g}")  # noqa: T201 - shown with a failure
    prepare_lake(url, warehouse)
    record, chance = StormRecord(), random.Random(SEED)
    with started_replicas(url, fault_share=0.1, seed=SEED) as replicas:
        _make_shared(url, replicas)
        until = time.monotonic() + seconds
        clients = [
            StormClient(f"c{number}", replicas, record, random.Random(f"{SEED} {number}"), BRANCHES[number % 2])
            for number in range(CLIENTS)
        ]
        threads = [threading.Thread(target=client.run, args=(until,)) for client in clients]
        for thread in threads:
            thread.start()
        while time.monotonic() < until - 2:
            time.sleep(chance.uniform(0.1, 0.6))
            victim = chance.choice(replicas)
            if chance.random() < 0.8:  # at once, most deaths would meet a server between two changes
                victim.die("write_and_swap", at=chance.randint(1, 3), before=chance.random() < 0.3)
                with suppress(subprocess.TimeoutExpired):
                    victim.process.wait(DEATH_SECONDS)
            victim.kill()
            victim.start()
            victim.wait()
        for thread in threads:
            thread.join()
    return record


def _make_shared(url: str, replicas: Any) -> None:
    while not replicas[0].send("HEAD", f"namespaces/sales/tables/{SHARED}").is_done:
        replicas[0].send("POST", "namespaces/sales/tables", {"name": SHARED, "schema": SCHEMA})
    with opened_lake(url) as lake:
        lake.create_branch(BRANCHES[1])


def faults_of(url: str, record: StormRecord) -> list[str]:
    faults = [*record.faults, *fsck_faults(url)]
    added = Counter[int]()
    with opened_lake(url) as lake:
        for branch in BRANCHES:
            names = {
                entry.key.name for entry in lake.entries(branch or None).entries if entry.key.name not in ("sales", SHARED)
            }
            notes = [note for note in record.notes if note.key.startswith(f"{branch}/")]
            faults += keys_hold_what_was_told(notes, {f"{branch}/{name}" for name in names}, branch or "main")
            anomaly = find_anomaly([one for one in record.operations if one.call[0] == branch], SharedTable())  # type: ignore[index]
            faults += [] if anomaly is None else [str(anomaly)]
            added += added_snapshots(lake, branch)
    faults += [f"snapshot {number} was added {times} times" for number, times in added.items() if times > 1]
    faults += [
        f"snapshot {number} was acknowledged, and is lost"
        for number, told in record.appended.items()
        if told and not added[number]
    ]
    return faults + [
        f"snapshot {number} was refused, and is there"
        for number, told in record.appended.items()
        if told is False and added[number]
    ]


def added_snapshots(lake: Catalog, branch: str) -> Counter[int]:
    """How often each snapshot was added, by all versions of all tables on a branch."""
    added, known = Counter[int](), dict[Any, set[int]]()
    for entry in lake.log(branch or None, oldest_first=True):
        for operation in entry.operations:
            if operation.action != "PUT" or operation.type is not ContentType.ICEBERG_TABLE:
                continue
            text = lake.metadata(id_text(entry.id), operation.key)
            assert text is not None
            ids = {snapshot["snapshot-id"] for snapshot in msgspec.json.decode(text).get("snapshots", ())}
            added.update(ids - known.get(operation.content_id, set()))
            known[operation.content_id] = ids
    return added


@pytest.mark.timeout(SECONDS * 4 + 300)
@pytest.mark.parametrize("database", ["postgresql"])
def test_storm_on_replicas_keeps_every_promise(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = request.getfixturevalue(f"{database}_url")
    record = storm(url, (tmp_path / "warehouse").as_uri(), SECONDS)
    print(record.statuses, len(record.notes), len(record.operations), len(record.appended))  # noqa: T201 - shown with a failure
    faults = faults_of(url, record)

    assert not faults, "\n".join(faults[:20])
    assert min(record.statuses.get(status, 0) for status in (0, 200, 204)) > 0, record.statuses
