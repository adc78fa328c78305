"""What `up` prints at its end."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.api.manifest_work import ManifestInfo
from headwater.catalogs import Catalogs
from headwater.errors import RefusedError
from headwater.realms import RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.reconcile import ReconcileOutcome, WaitUntil
from headwater.store import ObjectId, Store
from headwater.tasks import Task, TaskQueue, TaskState
from headwater_workers.up_loop import remarks
from headwater_workers.up_summary import SUMMARY, summary, summary_text
from headwater_workers.worker_commands import exit_code_of_up


def test_realms_are_shown_with_their_states_and_tables(store: Store) -> None:
    realms = RealmRegistry(store)
    realms.create_realm("acme")
    bootstrap(realms, "acme", hash_credentials(new_credentials()))
    Catalogs(realms.open_realm("acme")).create_catalog("lake", base_location="s3://lake/")
    realms.create_realm("fresh")

    data = summary(store, [], [], realms_before=["acme", "sandbox"])

    assert {realm["id"]: realm["state"] for realm in data["realms"]} == {
        "acme": "ACTIVE",
        "fresh": "CREATED",
        "sandbox": "GONE",
    }
    assert "    catalog lake: 0 tables" in summary_text(data).splitlines()


def test_tasks_are_shown_with_attempts_and_what_they_did(store: Store, tasks: TaskQueue, waiting: ObjectId) -> None:
    claim = tasks.claim_task(waiting, "worker-1")
    assert claim is not None
    kept = {"head": 30, "retention": 9}
    types = {"commit": {"garbage": 3}}
    claim.finish_task({"scanned": 42, "kept": kept, "deleted": 3, "deletedBytes": 900, "types": types, "leftoverParts": 1})

    text = summary_text(summary(store, [tasks.read_task(waiting)], [])).splitlines()

    assert "  gc acme   SUCCEEDED   1 attempt, 0.0 s" in text
    assert "    scanned 42 rows, kept 39: 30 head, 9 retention" in text
    assert "    deleted 3 rows (900 bytes), reached from nothing that is kept: 3 commit" in text
    assert "    of the garbage, 1 part an interrupted rewriting had left" in text


def test_quarantined_tables_are_shown_with_their_reasons(store: Store, tasks: TaskQueue) -> None:
    task_id = tasks.submit_task("import", realm="acme", subject="lake/initial").id
    claim = tasks.claim_task(task_id, "worker-1")
    assert claim is not None
    shown = [{"table": "sales.orders", "code": "Corrupt", "message": "v3.metadata.json is no JSON"}]
    quarantined = {"total": 1, "codes": {"Corrupt": 1}, "shown": shown}
    claim.finish_task(
        {"engine": "process", "surveyed": 5, "imported": 4, "updated": 0, "unchanged": 0, "quarantined": quarantined}
    )

    text = summary_text(summary(store, [tasks.read_task(task_id)], [])).splitlines()

    assert "    surveyed 5 tables by process: 4 imported" in text
    assert "      sales.orders: Corrupt: v3.metadata.json is no JSON" in text


def test_waiting_work_is_shown_with_its_time(store: Store, tasks: TaskQueue, waiting: ObjectId) -> None:
    held = ReconcileOutcome(
        subject="Realm sandbox", waits=(WaitUntil("PurgeHold", "realm sandbox is held", store.clock.now()),)
    )

    waits = summary(store, [tasks.read_task(waiting)], [held])["waiting"]

    assert [wait["subject"] for wait in waits] == ["gc of realm 'acme'", "Realm sandbox"]
    assert all(wait["until"].endswith("Z") for wait in waits)


def test_every_step_that_failed_is_reported(store: Store) -> None:
    failed = ReconcileOutcome(subject="Realm acme", error=RefusedError("etl"), more_errors=(RefusedError("other"),))

    assert [entry["message"] for entry in summary(store, [], [failed])["waiting"]] == ["etl", "other"]
    assert remarks(failed) == ["Realm acme: etl", "Realm acme: other"]
    assert ManifestInfo.of(failed).error == "etl; other"


def test_task_that_failed_is_shown_with_its_error(store: Store, tasks: TaskQueue, waiting: ObjectId) -> None:
    claim = tasks.claim_task(waiting, "worker-1")
    assert claim is not None
    claim.fail_task("there is no such realm", retry=False)

    text = summary_text(summary(store, [tasks.read_task(waiting)], [])).splitlines()

    assert text[text.index("  gc acme   FAILED   1 attempt, 0.0 s") + 1] == "    there is no such realm"


def test_every_field_is_documented(store: Store, waiting: ObjectId, tasks: TaskQueue) -> None:
    realms = RealmRegistry(store)
    realms.create_realm("acme")
    bootstrap(realms, "acme", hash_credentials(new_credentials()))
    Catalogs(realms.open_realm("acme")).create_catalog("lake", base_location="s3://lake/")

    data = summary(store, [tasks.read_task(waiting)], [])

    inside = {field.name: {way.split(".")[1].removesuffix("[]") for way in field.inside} for field in SUMMARY.fields}
    assert {name: {key for row in rows for key in row} for name, rows in data.items()} == inside
    assert set(data["realms"][0]["catalogs"][0]) == {"name", "tables"}


@pytest.mark.parametrize(
    ("kind", "outcome", "is_found"),
    [
        ("import", {"quarantined": {"total": 1}}, True),
        ("import", {"quarantined": {"total": 0}}, False),
        ("restore", {"conflicts": 2}, True),
        ("restore", {"conflicts": 0}, False),
        ("file-gc", {"failed": 1}, True),
        ("gc", {"failed": 1}, False),
        ("purge", {}, False),
    ],
)
def test_findings_of_tasks_are_the_end_of_up(kind: str, outcome: dict[str, Any], is_found: bool) -> None:
    task = Task(kind=kind, realm="acme", state=TaskState.SUCCEEDED, outcome=outcome)

    assert exit_code_of_up([], [task]) == (8 if is_found else 0)


def test_task_that_was_given_up_is_the_end_of_up() -> None:
    assert exit_code_of_up([], [Task(kind="gc", realm="acme", state=TaskState.FAILED)]) == 8
