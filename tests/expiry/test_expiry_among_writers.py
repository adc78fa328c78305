"""Expiry beside writers, and processes that are killed: no append is lost, and no table is expired twice."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from expiring_lake import ExpiringLake
from fake_clock import FakeClock
from headwater import Store, open_store
from headwater.catalogs import Catalogs
from headwater.expiry import AskedRules
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState

pytestmark = pytest.mark.long

TABLES = [f"t{number:02}" for number in range(30)]
KEEP = AskedRules(max_age_ms=0, keep=3)
SETTINGS = {"HEADWATER_EXPIRE_BATCH": "1", "HEADWATER_TASK_LEASE": "2s", "HEADWATER_TASK_HEARTBEAT": "500ms"}
SLOW = {**SETTINGS, "HEADWATER_EXPIRE_TABLES_PER_SECOND": "10"}


def lake_on(store: Store, warehouse: Path) -> ExpiringLake:
    return ExpiringLake(store, FakeClock(store.clock.now() - 30 * 86_400_000_000), warehouse)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def tables(url: str, tmp_path: Path) -> ExpiringLake:
    """A lake of tables with four snapshots each, in a database of its own."""
    store = open_store(url)
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
    realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
    Catalogs(realms.open_realm("acme")).create_catalog("lake", base_location=(tmp_path / "warehouse").as_uri())
    lake = lake_on(store, tmp_path / "warehouse")
    lake.on().namespaces.create(lake.key("x").parent, {})
    for name in TABLES:
        lake.create(name, snapshots=4)
    return lake


def test_no_append_is_lost_beside_expiry(tables: ExpiringLake) -> None:
    names, is_over = TABLES[:4], threading.Event()
    tables.clock.advance(20 * 86_400)  # expiry is later than all appends
    appended: Counter[str] = Counter()
    faults: list[BaseException] = []

    def write(seed: int) -> None:
        chance, lake = random.Random(seed), lake_on(tables.store, tables.warehouse)
        try:
            while not is_over.is_set():
                name = names[2 * seed + chance.randrange(2)]
                lake.append(name)
                appended[name] += 1
        except BaseException as fault:  # noqa: BLE001  shown below
            faults.append(fault)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(2)]
    for writer in writers:
        writer.start()
    deadline = time.monotonic() + 6
    try:
        runs = [tables.expire(KEEP) for _ in itertools.takewhile(lambda _: time.monotonic() < deadline, itertools.count())]
    finally:
        is_over.set()
        for writer in writers:
            writer.join()
    tables.expire(KEEP)

    assert faults == []
    assert sum(appended.values()) > 10 and sum(run.changed for run in runs) > len(TABLES)
    for name in names:
        last = 4 + appended[name]
        assert tables.snapshots(name) == [last - 2, last - 1, last]
        assert tables.load(name).document["refs"]["main"]["snapshot-id"] == last


def expiries(lake: ExpiringLake) -> list[str]:
    """The messages of the commits that expired tables."""
    return [entry.message for entry in lake.catalog.log() if entry.message.startswith("expire")]


@pytest.mark.rare(2)
def test_killed_expiry_is_gone_on_with_by_the_same_command(url: str, tables: ExpiringLake) -> None:
    tables.store.close()
    command = [sys.executable, "-m", "headwater", "--store", url, "-o", "json", "snapshots", "expire", "acme/lake"]
    command += ["--retain-last", "1", "--older-than", "2100-01-01"]
    with open_store(url) as store:
        lake = lake_on(store, tables.warehouse)
        for least in (1, 5, 12):
            with subprocess.Popen(
                command,
                env={**os.environ, **SLOW},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            ) as process:
                deadline = time.monotonic() + 60
                while len(expiries(lake)) < least and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.02)
                os.killpg(process.pid, signal.SIGKILL)
            assert process.returncode == -signal.SIGKILL
            assert least <= len(expiries(lake)) < len(TABLES)
        last = subprocess.run(command, env={**os.environ, **SETTINGS}, capture_output=True, text=True, timeout=60, check=False)
        assert last.returncode == 0, last.stderr

        texts = expiries(lake)
        assert Counter(texts) == Counter(f"expire snapshots of sales.{name}" for name in TABLES)
        assert all(lake.snapshots(name) == [4] for name in TABLES)
