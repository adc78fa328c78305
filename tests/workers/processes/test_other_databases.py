"""The whole way on databases that are servers: a folder of manifests, an import, collections and purges by processes that fork."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import Worker, ended, in_the_middle
from work import Collection, Purge, Work, make_realm, write_warehouse

from backend_fixtures import STORES, mongodb_server, postgresql_server
from headwater.fsck import check_store
from headwater.jobs.task_runs import list_runs
from headwater.realms import RealmRegistry, RealmState
from headwater.store import Store
from headwater.tasks import AttemptEnd, TaskQueue, TaskState

__all__ = ["mongodb_server", "postgresql_server"]

pytestmark = [pytest.mark.long, pytest.mark.rare(2)]
BATCHES = {"postgresql": "2", "mongodb": "20"}
"""Rows deleted at a time: few enough that a deletion has a middle."""
GARBAGE = {"postgresql": 5000, "mongodb": 1000}
"""Rows to delete: MongoDB's test server takes some hundredths of a second for each."""

MANIFESTS = """
apiVersion: headwater.dev/v1alpha1
kind: Realm
metadata: {name: acme}
---
apiVersion: headwater.dev/v1alpha1
kind: Catalog
metadata: {name: lake}
spec:
  realm: acme
  storage: {baseLocation: "s3://lake/", allowedLocations: ["%s"]}
  imports: [{name: initial, locations: ["%s"]}]
---
apiVersion: headwater.dev/v1alpha1
kind: Realm
metadata:
  name: sandbox
  annotations: {headwater.dev/adopt: sandbox, headwater.dev/delete: "true", headwater.dev/confirm-purge: sandbox}
spec: {deletionPolicy: Purge, purgeHold: 1s}
"""


@pytest.fixture(params=BATCHES)
def environment(request: pytest.FixtureRequest, environment: dict[str, str]) -> dict[str, str]:
    """That of the other tests of processes, on an empty store of each server."""
    return environment | {"HEADWATER_STORE": STORES[request.param](request), "HEADWATER_DELETE_BATCH": BATCHES[request.param]}


@pytest.fixture
def headwater(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``headwater("gc", "run", "acme")`` is the command line in a process of its own."""

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "headwater", "-o", "json", *words]
        return subprocess.run(command, env=environment, cwd=tmp_path, text=True, capture_output=True, check=False, timeout=120)

    return call


def test_realm_is_made_filled_collected_and_another_one_purged(
    headwater: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, store: Store
) -> None:
    warehouse = write_warehouse(tmp_path / "warehouse", tables=5)
    sandbox = make_realm(store, "sandbox", garbage=100)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "all.yaml").write_text(MANIFESTS % (warehouse, warehouse))
    up = headwater("up", "manifests", "--once", "--wait", "20s")
    branched = [headwater("catalog", "branch", do, "acme/lake", "trial").returncode for do in ("create", "delete")]
    collected = headwater("gc", "run", "acme")
    checked = headwater("fsck")

    assert (up.returncode, branched, collected.returncode, checked.returncode) == (0, [0, 0], 0, 0), (
        up.stderr + collected.stderr + checked.stdout
    )
    assert {"id": "acme", "state": "ACTIVE", "catalogs": [{"name": "lake", "tables": 5}]} in json.loads(up.stdout)["realms"]
    assert {task["state"] for task in json.loads(up.stdout)["tasks"]} <= {"SUCCEEDED", "WAITING"}
    assert json.loads(collected.stdout)["scanned"] > 0
    assert RealmRegistry(store).find_realm("sandbox") is None and store.rows(sandbox.id, sandbox.key).is_empty()


def test_command_prints_no_password(
    headwater: Callable[..., subprocess.CompletedProcess[str]], environment: dict[str, str]
) -> None:
    login = environment["HEADWATER_STORE"].partition("://")[2].rpartition("@")[0]
    secret = login.partition(":")[2] or "Geheim"
    for words in (("realm", "list"), ("realm", "show", "nobody"), ("fsck",), ("task", "list"), ("--debug", "gc", "run", "x")):
        done = headwater(*words)

        assert secret not in done.stdout + done.stderr


@pytest.mark.parametrize("kind", [Collection, Purge], ids=["gc", "purge"])
def test_killed_workers_task_is_done_by_another_on_any_database(
    kind: type[Collection | Purge],
    store: Store,
    tasks: TaskQueue,
    start_worker: Callable[..., Worker],
    tmp_path: Path,
) -> None:
    work: Work = kind.prepare(store, tmp_path, garbage=GARBAGE[store.url.partition(":")[0]])
    broker = ("--broker-folder", str(tmp_path / "broker"))
    first = start_worker(*broker)
    in_the_middle(tasks, work.task)
    first.signal(signal.SIGKILL)
    start_worker(*broker)

    task = ended(tasks, work.task)
    assert task.state is TaskState.SUCCEEDED
    assert [attempt.outcome for attempt in task.attempts] == [AttemptEnd.LOST, AttemptEnd.SUCCEEDED]
    assert [run.attempt for run in list_runs(store)] == [2]
    work.check(store)


def test_worker_whose_child_was_killed_goes_on_with_its_connections(
    store: Store, tasks: TaskQueue, start_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    work = Collection.prepare(store, tmp_path, garbage=GARBAGE[store.url.partition(":")[0]])
    worker = start_worker("--broker-folder", str(tmp_path / "broker"))
    owner = in_the_middle(tasks, work.task).owner
    os.kill(int(owner.rpartition(":")[2]), signal.SIGKILL)  # the pool forks another one from the main process

    assert [attempt.outcome for attempt in ended(tasks, work.task).attempts] == [AttemptEnd.LOST, AttemptEnd.SUCCEEDED]
    assert "could not be" not in worker.said, worker.said
    assert check_store(store) == [] and RealmRegistry(store).read_realm("acme").state is RealmState.ACTIVE
