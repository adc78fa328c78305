"""The processes of the compose file and of the units, run by hand: they answer probes, show their metrics, log JSON, and end with 0."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from celery import Celery
from compose_services import compose_service
from logged_process import LoggedProcess

from free_ports import free_port
from headwater.realms import RealmRegistry
from headwater.store import open_store
from headwater_server.server_metrics import SERVER_CATALOGUE
from headwater_workers.worker_metrics import WORKER_CATALOGUE
from noisy_python import NOISE

pytestmark = pytest.mark.long
Start = Callable[..., LoggedProcess]
STORE = "postgresql://headwater:${POSTGRES_PASSWORD:?see the head of compose.yaml}@postgresql:5432/headwater"
BROKER = "redis://redis:6379/0"

MANIFEST = """
apiVersion: headwater.dev/v1alpha1
kind: Realm
metadata: {name: acme}
"""


def type_names(catalogue: tuple[object, ...]) -> set[str]:
    """The names of metrics as `# TYPE` lines have them."""
    return {str(metric.name) for metric in catalogue}  # type: ignore[attr-defined]


def test_server_of_the_compose_file(start: Start, postgresql_url: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "2026-11").write_text("x" * 64)
    with open_store(postgresql_url) as store:
        RealmRegistry(store).create_realm("acme")
    service, listen, port = compose_service("server"), free_port(), free_port()
    places = {STORE: postgresql_url, BROKER: "redis://127.0.0.1:1/0", "/run/headwater/keys": str(keys)}
    places |= {"*:8181": f"127.0.0.1:{listen}", "*:8182": f"127.0.0.1:{port}"}
    server = start(service.command, service.on_loopback(places), port=port)
    server.wait_until_ready()

    assert server.get("/healthz")[0] == 200
    assert server.metric_names(with_="headwater_server_draining") >= type_names(SERVER_CATALOGUE)
    assert server.terminate() == 0
    assert f"serving http://127.0.0.1:{listen}/iceberg" in logged_events(server)


def test_worker_of_the_compose_file(start: Start, postgresql_url: str, redis_url: str) -> None:
    with open_store(postgresql_url) as store:
        RealmRegistry(store).create_realm("acme")
    service, port = compose_service("worker"), free_port()
    places = {STORE: postgresql_url, BROKER: redis_url, "*:8183": f"127.0.0.1:{port}"}
    variables = service.on_loopback(places) | {"HEADWATER_WORKER_REMOTE_CONTROL": "true"}
    worker = start(service.command, variables, port=port)
    worker.wait_until_ready()

    names = worker.metric_names(with_="headwater_realms{")
    assert worker.get("/healthz") == (200, "loops: ok\n")
    assert names >= type_names(WORKER_CATALOGUE)
    with Celery(broker=redis_url, set_as_current=False) as app:
        [answer] = app.control.ping(timeout=10.0, limit=1)
        assert list(answer.values()) == [{"ok": "pong"}]
        assert heard_event(app) in ("worker-heartbeat", "worker-online")
    assert worker.terminate() == 0
    assert logged_events(worker)[-1] == "worker stopped"


def test_up_of_the_unit_logs_json_and_ends_with_0(start: Start, tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "acme.yaml").write_text(MANIFEST)
    port = free_port()
    variables = {
        "STORE": f"sqlite:///{tmp_path}/s.db",
        "LOG_FORMAT": "json",
        "WORKER_PROBES": f"127.0.0.1:{port}",
    }
    words = ["up", "manifests", "--credentials", "credentials"]
    up = start(words, {f"HEADWATER_{name}": value for name, value in variables.items()}, port=port)
    up.wait_until_ready()

    names = up.metric_names(with_='headwater_realms{state="ACTIVE"} 1.0')
    assert names >= type_names(WORKER_CATALOGUE)
    assert up.terminate() == 0
    assert "Realm acme: created realm acme" in logged_events(up)


def logged_events(process: LoggedProcess) -> list[str]:
    """The events of its log, each a line of JSON: also warnings and errors of others, and one warning of an unknown variable alone."""
    events = [str(line["event"]) for line in process.log()]
    assert [noise for noise in NOISE if not any(noise in event for event in events)] == []
    assert len([event for event in events if "is set but is not a setting" in event]) == 1
    return events


def heard_event(app: Celery) -> str:
    """The type of the first event that a worker sends."""
    heard: list[str] = []

    def hear(event: dict[str, str]) -> None:
        heard.append(event["type"])
        receiver.should_stop = True

    with app.connection() as connection:
        receiver = app.events.Receiver(connection, handlers={"*": hear})
        receiver.capture(limit=60, timeout=30, wakeup=False)  # of waits of up to a second
    return heard[0]
