"""Every kind of work that the product submits is done by workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fake_clock import FakeClock
from headwater.jobs import (
    COLLECT,
    COLLECT_FILES,
    EXPIRE_SNAPSHOTS,
    EXPORT,
    FSCK,
    IMPORT,
    LOAD,
    PURGE,
    PURGE_TABLE,
    REPORT_FILES,
    RESTORE,
)
from headwater.realms import CredentialsHash, RealmRegistry, RealmState, bootstrap
from headwater.store import Store
from headwater.tasks import LeaseExpiry, Task, TaskQueue, TaskState
from headwater_workers.task_executor import TASK_BODIES, execute_task

NOBODY = CredentialsHash(client_id="nobody", salt=b"", digest=b"")


@pytest.fixture
def archive(store: Store, clock: FakeClock, tmp_path: Path) -> Path:
    """An archive of an ACTIVE realm, made by a worker."""
    RealmRegistry(store).create_realm("acme")
    bootstrap(RealmRegistry(store), "acme", NOBODY)
    clock.advance(3600)
    file = tmp_path / "acme.archive"
    assert work(store, EXPORT, "acme", file=str(file)).state is TaskState.SUCCEEDED
    return file


def work(store: Store, kind: str, realm: str, **arguments: object) -> Task:
    task_id = TaskQueue(store).submit_task(kind, realm=realm, arguments=arguments).id
    with capture_logs():
        execute_task(store, task_id, LeaseExpiry(None), owner="here", is_stopping=lambda: False)
    return TaskQueue(store).read_task(task_id).value


def test_workers_know_every_kind() -> None:
    kinds = {COLLECT, COLLECT_FILES, EXPIRE_SNAPSHOTS, EXPORT, IMPORT, LOAD, PURGE, PURGE_TABLE, REPORT_FILES, RESTORE, FSCK}

    assert set(TASK_BODIES) == kinds


def test_workers_export_a_realm_and_import_it_as_another(store: Store, archive: Path) -> None:
    assert work(store, LOAD, "copy", file=str(archive)).state is TaskState.SUCCEEDED
    assert RealmRegistry(store).read_realm("copy").state is RealmState.ACTIVE
