"""Watches, queue, threads and passes together, on real time, while the API server misbehaves or the store is away."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from desks import make_catalog, make_realm
from watch_thread import QuickServer, RunningWatch, quick_server

from headwater.catalogs import Catalogs
from headwater.errors import FencedError
from headwater.realms import RealmRegistry
from headwater.settings import Settings
from headwater.store import RealmId, Store, open_store
from headwater_operator.kube import KubeApi, plain_connection, resource_path
from headwater_operator.metrics.operator_metrics import OperatorMetrics
from headwater_operator.resource.reconciler import Reconciler
from headwater_operator.runtime.operator_settings import OperatorSettings
from headwater_operator.runtime.workqueue import WorkerThreads
from kubetest.waits import wait_for

HOLDER = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[QuickServer]:
    with quick_server(tmp_path) as started:
        monkeypatch.setenv("KUBECONFIG", str(started.emulated.kubeconfig))
        yield started


@pytest.fixture
def live_store(tmp_path: Path) -> Iterator[Store]:
    """In a file, which does not wait long for another process."""
    settings = Settings(unsafe_short_graces=True, commit_timeout_seconds=0.5, purge_hold_seconds=1)
    with open_store(f"sqlite:///{tmp_path}/live.db?timeout=100ms", settings=settings) as opened:
        yield opened


@contextmanager
def live(
    server: QuickServer, store: Store, *, fence: Callable[[], None] = lambda: None, fenced: list[str] | None = None
) -> Iterator[RunningWatch]:
    """An operator with its threads; when it ends, all of it has ended."""
    running = RunningWatch.make()
    connection = plain_connection(server.emulated.url)
    api = KubeApi(connection, fence=fence)
    settings = OperatorSettings(resync_seconds=2, cluster="tests")
    reconciler = Reconciler(store, api, running.cache, running.queue, store.settings, settings, OperatorMetrics(), fence)
    workers = WorkerThreads(running.queue, reconciler.reconcile, count=4, on_fenced=(fenced or []).append)
    running.start()
    try:
        running.wait_until_listed()
        workers.start()
        yield running
    finally:
        running.stop()
        assert workers.stop(seconds=20)
        connection.close()


def ready(server: QuickServer, kind: str) -> set[str]:
    return {
        body["metadata"]["name"]
        for body in server.api.list_resources(resource_path(kind, "default", None))
        for one in body.get("status", {}).get("conditions", [])
        if one["type"] == "Ready" and one["status"] == "True"
    }


def reason(server: QuickServer, kind: str, name: str) -> str:
    conditions = server.api.get_resource(resource_path(kind, "default", name)).get("status", {}).get("conditions", [])
    return next((str(one["reason"]) for one in conditions if one["type"] == "Ready"), "")


@pytest.mark.long
def test_misbehaving_api_server_delays_everything_and_harms_nothing(server: QuickServer, live_store: Store) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown when the test fails
    chance = random.Random(seed)
    realms = [f"realm-{n}" for n in range(6)]
    with live(server, live_store):
        for name in realms:
            server.make(make_realm(name), make_catalog(f"{name}-a", name), make_catalog(f"{name}-b", name))
            verb = chance.choice(["patch", "create", "get", "watch"])
            action = chance.choice(["500", "429", "drop", *(["500-after", "drop-after", "409"] if verb != "watch" else [])])
            what = {"resource": "secrets"} if verb == "create" else {}  # the test itself makes the others
            times = chance.randint(1, 3)
            server.control("POST", "faults", [{"action": action, "verb": verb, "times": times, "retry_after": 0, **what}])
            if chance.random() < 0.5:
                server.control("POST", "watches/cut")
            if chance.random() < 0.3:
                server.control("POST", "compact")
        wait_for(lambda: ready(server, "Realm") == set(realms) and len(ready(server, "Catalog")) == 12, seconds=90)

    held = RealmRegistry(live_store)
    assert sorted(realm.id for realm in held.list_realms() if not realm.id.startswith("::")) == realms
    assert [len(Catalogs(held.open_realm(RealmId(name))).list_catalogs()) for name in realms] == [2] * 6
    secrets = server.api.list_resources(resource_path("Secret", "default", None))
    assert sorted(secret["metadata"]["name"] for secret in secrets) == [f"{name}-root-credentials" for name in realms]


@pytest.mark.long
def test_store_that_another_process_holds_is_waited_for(server: QuickServer, live_store: Store, tmp_path: Path) -> None:
    server.make(make_realm())
    with live(server, live_store):
        wait_for(lambda: ready(server, "Realm") == {"acme"})
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, f"{tmp_path}/live.db"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as holder:
            assert holder.stdout is not None and holder.stdout.readline() == "held\n"
            path = resource_path("Realm", "default", "acme")
            server.api.patch_resource(path, {"spec": {"state": "Inactive"}}, kind="merge", manager="a-person")
            wait_for(
                lambda: reason(server, "Realm", "acme") in ("Unavailable", "StoreUnavailable", "OutcomeUnknown"), seconds=60
            )
            assert holder.stdin is not None
            holder.stdin.close()
        wait_for(lambda: server.api.get_resource(path)["status"]["state"] == "INACTIVE", seconds=60)
        wait_for(lambda: ready(server, "Realm") == {"acme"})


@pytest.mark.long
def test_threads_end_at_once_when_the_lead_is_lost(server: QuickServer, live_store: Store) -> None:
    fenced: list[str] = ["begun"]
    is_lost = False

    def fence() -> None:
        if is_lost:
            raise FencedError("the lead is lost")

    with live(server, live_store, fence=fence, fenced=fenced) as running:
        is_lost = True
        server.make(make_realm())
        wait_for(lambda: running.queue.is_closed)

        assert fenced == ["begun", "the lead is lost"]
        assert "finalizers" not in server.api.get_resource(resource_path("Realm", "default", "acme"))["metadata"]
        assert RealmRegistry(live_store).find_realm("acme") is None
