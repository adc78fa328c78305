"""Every kind of work that the product submits is done by workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fake_clock import FakeClock
from headwater.maintenance.work import EXPORT, LOAD, kinds
from headwater.realms import CredentialsHash, Realms, RealmState, bootstrap
from headwater.store import Store
from headwater.tasks import StoodStill, Task, Tasks, TaskState
from headwater_workers.running import run_task
from headwater_workers.task_bodies import TASK_BODIES

NOBODY = CredentialsHash(client_id="nobody", salt=b"", digest=b"")


@pytest.fixture
def archive(store: Store, clock: FakeClock, tmp_path: Path) -> Path:
    """An archive of an ACTIVE realm, made by a worker."""
    Realms(store).create("acme")
    bootstrap(Realms(store), "acme", NOBODY)
    clock.advance(3600)
    file = tmp_path / "acme.archive"
    assert work(store, EXPORT, "acme", file=str(file)).state is TaskState.SUCCEEDED
    return file


def work(store: Store, kind: str, realm: str, **arguments: object) -> Task:
    task_id = Tasks(store).submit(kind, realm=realm, arguments=arguments).id
    with capture_logs():
        run_task(store, task_id, StoodStill(None), owner="here", is_stopping=lambda: False)
    return Tasks(store).read(task_id).value


def test_workers_know_every_kind() -> None:
    assert set(TASK_BODIES) == {getattr(kinds, name) for name in kinds.__all__}


def test_workers_export_a_realm_and_import_it_as_another(store: Store, archive: Path) -> None:
    assert work(store, LOAD, "copy", file=str(archive)).state is TaskState.SUCCEEDED
    assert Realms(store).read("copy").state is RealmState.ACTIVE
