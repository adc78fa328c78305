"""The metrics and the health of a worker: read from the store, and served where the settings say."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from headwater.errors import RefusedError, UnavailableError
from headwater.monitoring import FiguresReader, Health, ProbeServer, StoreFigures
from headwater.realms import RealmRegistry
from headwater.settings import Settings
from headwater.store import Store
from headwater.tasks import TaskQueue
from headwater_workers.celery_app import broker_of, make_app
from headwater_workers.worker_metrics import WORKER_CATALOGUE, WorkerMetrics, WorkerProbes

REDIS = "redis://localhost:6379/0"


@pytest.fixture
def metrics(store: Store) -> WorkerMetrics:
    return WorkerMetrics(store, concurrency=3, is_stopping=lambda: False, realms=200)


def read(metrics: WorkerMetrics, store: Store) -> str:
    """The metrics after a reading of the store."""
    reader = FiguresReader(store, store.clock, 15, lambda: True, metrics.take_figures)
    metrics.take_figures(reader.read_figures())
    return metrics.render().decode()


def ask(port: int | None, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_worker_shows_every_metric_of_its_catalogue(metrics: WorkerMetrics, store: Store) -> None:
    RealmRegistry(store).create_realm("acme")

    assert {metric.name for metric in WORKER_CATALOGUE} <= set(re.findall(r"# TYPE (\w+) ", read(metrics, store)))


def test_worker_shows_what_is_due_and_where(metrics: WorkerMetrics, store: Store) -> None:
    RealmRegistry(store).create_realm("acme")
    due = store.clock.now()
    TaskQueue(store).submit_task("gc", realm="acme", due=due)
    text = read(metrics, store)

    assert 'headwater_realms{state="CREATED"} 1.0' in text
    assert 'headwater_tasks_due{kind="gc"} 1.0' in text
    shown = re.search(r'^headwater_maintenance_next_due_timestamp_seconds\{realm="acme"\} (\S+)$', text, re.MULTILINE)
    assert shown and float(shown[1]) == pytest.approx(due / 1_000_000)


def test_realm_that_is_gone_leaves_the_metrics(metrics: WorkerMetrics, store: Store) -> None:
    RealmRegistry(store).create_realm("acme")
    TaskQueue(store).submit_task("gc", realm="acme", due=store.clock.now())
    assert 'realm="acme"' in read(metrics, store)
    metrics._catalogs["ghost"] = {("ghost", "lake")}

    assert 'realm="ghost"' not in read(metrics, store)
    assert set(metrics._catalogs) == {"acme"}


def test_store_that_does_not_answer_is_told(metrics: WorkerMetrics) -> None:
    assert metrics.store_fault == "it has not answered yet"
    metrics.take_figures(StoreFigures(is_up=True))
    assert metrics.store_fault == ""
    metrics.take_figures(StoreFigures(is_up=False, error="refused"))

    assert metrics.store_fault == "it does not answer"
    assert "headwater_store_up 0.0" in metrics.render().decode()


def test_probes_answer_where_the_settings_say(metrics: WorkerMetrics, store: Store) -> None:
    settings = Settings(worker_probes="127.0.0.1:0")
    health = Health(lambda: {"loops": "hanging: dispatcher"}, lambda: {"process": ""})
    with WorkerProbes(settings, metrics, store, health) as probes:
        assert ask(probes.port, "/healthz") == (503, "loops: hanging: dispatcher\n")
        assert ask(probes.port, "/metrics")[1].count("headwater_worker_concurrency 3.0") == 1
        assert ask(probes.port, "/readyz")[1].startswith("process: ok\nstore: ")
        assert ask(probes.port, "/other") == (404, "not found\n")
        port = probes.port

    with pytest.raises(urllib.error.URLError):
        ask(port, "/healthz")


def test_probes_are_off_by_default(metrics: WorkerMetrics, store: Store) -> None:
    with WorkerProbes(Settings(), metrics, store, Health()) as probes:
        assert probes.port is None


@pytest.mark.parametrize("address", ["8183", "127.0.0.1", "127.0.0.1:x", ":8183", "127.0.0.1:70000"])
def test_probe_address_of_another_form_is_refused(metrics: WorkerMetrics, store: Store, address: str) -> None:
    with pytest.raises(RefusedError, match="HEADWATER_WORKER_PROBES"):
        WorkerProbes(Settings(worker_probes=address), metrics, store, Health())


def test_probe_port_that_is_taken_is_told(metrics: WorkerMetrics, store: Store) -> None:
    with ProbeServer("127.0.0.1", 0, health=Health(), render=bytes, content_type="text/plain") as taken:
        probes = WorkerProbes(Settings(worker_probes=f"127.0.0.1:{taken.port}"), metrics, store, Health())

        with pytest.raises(UnavailableError, match=f"port {taken.port}"):
            probes.__enter__()


@pytest.mark.parametrize("is_on", [False, True])
def test_remote_control_and_events_are_one_setting(tmp_path: Path, is_on: bool) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path}/s.db", broker=REDIS, worker_remote_control=is_on)
    with make_app(settings, broker_of(settings)) as app:
        names = ("worker_enable_remote_control", "worker_send_task_events", "task_send_sent_event")

        assert {app.conf[name] for name in names} == {is_on}


def test_remote_control_is_refused_without_a_redis(tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path}/s.db", worker_remote_control=True)

    with pytest.raises(RefusedError, match="needs a Redis"):
        broker_of(settings)
