"""`headwater up`: a folder of manifests becomes the state of a store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from processes import wait_for
from work import make_realm, write_warehouse

from headwater.catalogs import Catalogs, ContentType
from headwater.commits import read_head
from headwater.errors import NotFoundError
from headwater.realms import RealmRegistry, RealmState
from headwater.store import Store
from headwater.tasks import TaskQueue

pytestmark = [pytest.mark.long, pytest.mark.rare(2)]
Up = subprocess.Popen[str]

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
"""

PURGED_REALM = """
apiVersion: headwater.dev/v1alpha1
kind: Realm
metadata:
  name: sandbox
  annotations: {headwater.dev/adopt: sandbox, headwater.dev/delete: "true", headwater.dev/confirm-purge: sandbox}
spec: {deletionPolicy: Purge, purgeHold: 1s}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Manifests of a realm and a catalog that imports five tables."""
    warehouse = write_warehouse(tmp_path / "warehouse", tables=5)
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "acme.yaml").write_text(MANIFESTS % (warehouse, warehouse))
    return folder


@pytest.fixture
def start_up(folder: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """``start_up("--once")`` runs `headwater up` on the folder."""
    started: list[Up] = []

    def start(*options: str) -> Up:
        command = [sys.executable, "-m", "headwater", "-o", "json", "up", str(folder), *options]
        command += ["--credentials", str(tmp_path / "credentials")]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, env=environment, text=True, stdout=pipe, stderr=pipe, start_new_session=True))
        return started[-1]

    yield start
    for up in started:
        _kill_with_children(up)
        up.communicate()


def test_up_once_converges_and_ends(start_up: Callable[..., Up], store: Store) -> None:
    up = start_up("--once")
    output, errors = up.communicate(timeout=120)

    said = json.loads(output)
    assert up.returncode == 0, errors
    assert said["realms"] == [{"id": "acme", "state": "ACTIVE", "catalogs": [{"name": "lake", "tables": 5}]}]
    assert ("import", "SUCCEEDED", 1) in [(task["kind"], task["state"], task["attempts"]) for task in said["tasks"]]
    assert "gc of realm 'acme'" in [waiting["subject"] for waiting in said["waiting"]]


def test_up_shows_what_happens(start_up: Callable[..., Up]) -> None:
    _, errors = start_up("--once").communicate(timeout=120)

    assert "Realm acme: created realm acme" in errors
    assert "(lake/initial): finished after 1 attempt" in errors
    assert "UNSAFE" in errors


def test_up_writes_its_log_as_json(start_up: Callable[..., Up], environment: dict[str, str]) -> None:
    environment["HEADWATER_LOG_FORMAT"] = "json"
    _, errors = start_up("--once").communicate(timeout=120)

    lines = [json.loads(line) for line in errors.splitlines()]
    assert "Realm acme: created realm acme" in [line["event"] for line in lines]


def test_up_that_is_interrupted_writes_its_log_as_json(
    start_up: Callable[..., Up], environment: dict[str, str], store: Store
) -> None:
    environment["HEADWATER_LOG_FORMAT"] = "json"
    up = start_up()
    wait_for(lambda: _tables(store) == 5)
    up.send_signal(signal.SIGINT)
    _, errors = up.communicate(timeout=60)

    assert [json.loads(line)["event"] for line in errors.splitlines()][-1] == "interrupted"


def test_up_a_second_time_makes_no_commit_and_no_task(start_up: Callable[..., Up], store: Store) -> None:
    start_up("--once").communicate(timeout=120)
    before = _heads(store)
    up = start_up("--once")
    up.communicate(timeout=120)

    assert up.returncode == 0
    assert _heads(store) == before


def test_wrong_manifest_is_refused_before_anything_happens(start_up: Callable[..., Up], folder: Path, store: Store) -> None:
    (folder / "wrong.yaml").write_text(
        "apiVersion: headwater.dev/v1alpha1\nkind: Realm\nmetadata: {name: other}\nspec: {state: Asleep}\n"
    )
    up = start_up("--once")
    _, errors = up.communicate(timeout=60)

    assert up.returncode == 5
    assert "wrong.yaml:4" in errors
    assert RealmRegistry(store).list_realms() == []


def test_up_follows_the_files(start_up: Callable[..., Up], folder: Path, store: Store) -> None:
    start_up()
    wait_for(lambda: _tables(store) == 5)
    (folder / "acme.yaml").write_text(
        (folder / "acme.yaml").read_text().replace("{name: acme}", "{name: acme}\nspec: {state: Inactive}")
    )

    wait_for(lambda: RealmRegistry(store).read_realm("acme").state is RealmState.INACTIVE)


def test_up_keeps_the_last_good_state_beside_wrong_files(start_up: Callable[..., Up], folder: Path, store: Store) -> None:
    up = start_up()
    wait_for(lambda: _tables(store) == 5)
    good = (folder / "acme.yaml").read_text()
    (folder / "acme.yaml").write_text("kind: [")
    assert up.stderr is not None
    while "the manifests stay as they were before" not in (line := up.stderr.readline()):
        assert line
    (folder / "acme.yaml").write_text(good.replace("{name: acme}", "{name: acme}\nspec: {state: Inactive}"))

    wait_for(lambda: RealmRegistry(store).read_realm("acme").state is RealmState.INACTIVE)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_up_that_is_interrupted_ends_its_worker_first(
    start_up: Callable[..., Up], store: Store, number: signal.Signals, code: int
) -> None:
    up = start_up()
    children = _worker_of(up)
    wait_for(lambda: _tables(store) == 5)
    up.send_signal(number)
    up.communicate(timeout=60)

    assert up.returncode == code
    assert not any(child.is_running() for child in children)


def test_worker_of_a_killed_up_ends_by_itself(start_up: Callable[..., Up], store: Store) -> None:
    up = start_up()
    children = _worker_of(up)
    wait_for(lambda: _tables(store) == 5)
    up.kill()

    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []


def test_up_that_was_killed_converges_when_it_is_started_again(start_up: Callable[..., Up], store: Store) -> None:
    first = start_up("--once")
    wait_for(lambda: RealmRegistry(store).find_realm("acme") is not None)
    _kill_with_children(first)
    second = start_up("--once", "--wait", "20s")
    output, errors = second.communicate(timeout=120)

    assert second.returncode == 0, errors
    assert json.loads(output)["realms"][0]["catalogs"] == [{"name": "lake", "tables": 5}]


def test_up_killed_in_a_purge_goes_on_with_it(start_up: Callable[..., Up], folder: Path, store: Store) -> None:
    realm = make_realm(store, "sandbox", garbage=1000)
    (folder / "sandbox.yaml").write_text(PURGED_REALM)
    first = start_up("--once", "--wait", "20s")
    wait_for(lambda: RealmRegistry(store).read_realm("sandbox").state is RealmState.PURGING)
    _kill_with_children(first)
    second = start_up("--once", "--wait", "20s")
    _, errors = second.communicate(timeout=120)

    assert second.returncode == 0, errors
    assert RealmRegistry(store).find_realm("sandbox") is None
    assert store.rows(realm.id, realm.key).is_empty()


def _tables(store: Store) -> int:
    try:
        catalog = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
        return catalog.count(content_type=ContentType.ICEBERG_TABLE)
    except NotFoundError:
        return 0  # not yet


def _heads(store: Store) -> object:
    """Heads of everything that `up` commits to, and all tasks."""
    rows = [(store.system, name) for name in ("realms", "tasks", "maintenance-runs")]
    rows += [(RealmRegistry(store).open_realm("acme"), name) for name in ("catalogs", "claims")]
    found = [read_head(realm, name, fresh=True) for realm, name in rows]
    return [one and one.id for one in found], [seen.token for seen in TaskQueue(store).list_tasks()]


def _worker_of(up: Up) -> list[psutil.Process]:
    """The worker of an `up` with its pool, once they run."""
    wait_for(lambda: len(psutil.Process(up.pid).children(recursive=True)) >= 3)
    return psutil.Process(up.pid).children(recursive=True)


def _kill_with_children(up: Up) -> None:
    try:
        processes = [*psutil.Process(up.pid).children(recursive=True), psutil.Process(up.pid)]
    except psutil.NoSuchProcess:
        return
    for process in processes:
        os.kill(process.pid, signal.SIGKILL)
