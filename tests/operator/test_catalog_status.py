"""The status of a Catalog: what it says in each situation, and that it says it once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from bodies import NOW_TEXT, OK, catalog, catalog_seen, condition, ended, import_seen, lake_work_seen, later, realm, task

from headwater.clock import as_text
from headwater.errors import RefusedError, UnavailableError
from headwater.reconcile import (
    CatalogDescription,
    ImportDescription,
    LakeWorkDescription,
    PlanPreview,
    ReconcileOutcome,
    RefuseManifest,
    WaitUntil,
)
from headwater.tasks import TaskState
from headwater_operator.resource.conditions import UNSEEN, UnreadState
from headwater_operator.resource.resource_status import PlanMade, catalog_status, is_written
from headwater_operator.runtime.informer_cache import CachedResource
from headwater_operator.runtime.served_schema import spec_digest

THERE = catalog_seen()
REPORT = {
    "surveyed": 11,
    "imported": 3,
    "updated": 1,
    "unchanged": 5,
    "quarantined": {"total": 2, "codes": {"Corrupt": 1, "Ambiguous": 1}, "shown": []},
    "commits": {"total": 2, "shown": ["024850f600111aaa", "024850f600111bbb"]},
}


def status(
    resource: CachedResource | None = None,
    outcome: ReconcileOutcome | Exception = OK,
    seen: CatalogDescription | UnreadState | None = THERE,
    **others: Any,
) -> dict[str, Any]:
    return catalog_status(resource or catalog(), outcome, seen, **{"now": later(0), "realm": realm()} | others)


def wait(reason: str) -> ReconcileOutcome:
    return ReconcileOutcome(subject="it", waits=(WaitUntil(reason, "it waits"),))


def with_import(**others: Any) -> CatalogDescription:
    return catalog_seen(imports=(import_seen(**others),))


def test_catalog_as_declared_is_ready_and_has_nothing_to_say() -> None:
    shown = status()

    assert [(one["type"], one["status"], one["reason"]) for one in shown["conditions"]] == [
        ("Ready", "True", "Reconciled"),
        ("Accepted", "True", "Accepted"),
        ("StoreReachable", "True", "StoreAnswered"),
        ("RealmReady", "True", "RealmActive"),
        ("ImportsHealthy", "True", "NothingScheduled"),
    ]
    assert {name: value for name, value in shown.items() if name != "conditions"} == {
        "observedGeneration": 1,
        "specDigest": spec_digest("Catalog", catalog().spec),
        "state": "ACTIVE",
        "realmId": "acme",
        "catalogId": "024850f600111abc",
        "tables": 7,
        "namespaces": 2,
        "imports": [],
        "message": "",
    }


def test_status_does_not_change_when_nothing_happened() -> None:
    first = status()

    assert status(catalog(status=first), now=later(240)) == first
    assert is_written(catalog(status=first), first)


@pytest.mark.parametrize("reason", ["RealmMissing", "RealmNotActive", "RealmDeleting"])
def test_catalog_waits_for_its_realm(reason: str) -> None:
    shown = status(outcome=wait(reason), seen=None)

    assert condition(shown, "Ready") == ("False", reason)
    assert condition(shown, "RealmReady") == ("False", reason)
    assert (shown["state"], shown["message"]) == ("PENDING", "it waits")


def test_realm_not_looked_for_leaves_what_was_seen_last() -> None:
    first = status()

    shown = status(catalog(status=first), wait("RealmMissing"), UNSEEN, realm=None)

    assert condition(shown, "Ready") == ("False", "RealmMissing")
    assert condition(shown, "StoreReachable") == ("True", "StoreAnswered")
    assert (shown["state"], shown["tables"], shown["realmId"]) == ("ACTIVE", 7, "acme")


def test_catalog_in_a_realm_of_another_manager_is_not_shown() -> None:
    foreign = ReconcileOutcome(subject="it", refused=(RefuseManifest("RealmManagedByAnother", "it is in a realm of another"),))

    shown = status(catalog(status=status()), foreign)

    for type_ in ("Ready", "Accepted", "RealmReady"):
        assert condition(shown, type_) == ("False", "RealmManagedByAnother")
    assert shown.keys() == {"observedGeneration", "specDigest", "state", "realmId", "message", "conditions"}


def test_catalog_of_another_manager_has_its_own_realm() -> None:
    shown = status(
        outcome=ReconcileOutcome(subject="it", refused=(RefuseManifest("ManagedByAnother", "it belongs to another"),))
    )

    assert condition(shown, "Accepted") == ("False", "ManagedByAnother")
    assert condition(shown, "RealmReady") == ("True", "RealmActive")


def test_store_that_does_not_answer_leaves_what_was_seen_last() -> None:
    first = status(seen=with_import(last=ended(outcome=REPORT)))

    shown = status(catalog(status=first), UnavailableError("no route"), UNSEEN)

    assert condition(shown, "Ready") == ("Unknown", "StoreUnavailable")
    assert condition(shown, "RealmReady") == ("True", "RealmActive")
    changed = {"conditions", "message"}
    assert {name: value for name, value in shown.items() if name not in changed} == {
        name: value for name, value in first.items() if name not in changed
    }


def test_catalog_that_was_never_seen_is_pending() -> None:
    shown = status(outcome=UnavailableError("no route"), seen=UNSEEN)

    assert shown["state"] == "PENDING"
    assert condition(shown, "RealmReady") == ("Unknown", "StoreUnavailable")


def test_location_that_belongs_to_another_is_not_accepted() -> None:
    shown = status(
        outcome=ReconcileOutcome(subject="it", error=RefusedError("s3://lake/ overlaps with catalog pond")), seen=None
    )

    assert condition(shown, "Accepted") == ("False", "Refused")
    assert condition(shown, "Ready") == ("False", "Refused")


def test_deleted_catalog_says_what_its_end_waits_for() -> None:
    shown = status(catalog(deletionTimestamp=NOW_TEXT), wait("PurgeUnconfirmed"))

    assert condition(shown, "Deleting") == ("True", "PurgeUnconfirmed")
    assert shown["state"] == "DELETING"


# Imports


def test_import_that_runs_counts() -> None:
    active = task(
        kind="import",
        subject="lake/initial",
        state=TaskState.RUNNING,
        attempt=1,
        due=later(-5),
        done=40,
        total=90,
        unit="tables",
    )

    (shown,) = status(seen=with_import(active=active))["imports"]

    assert shown == {
        "name": "initial",
        "mode": "once",
        "state": "RUNNING",
        "task": active.id,
        "done": 40,
        "total": 90,
        "unit": "tables",
    }


def test_import_that_has_run_counts_good_and_broken_tables() -> None:
    shown = status(seen=with_import(last=ended(outcome=REPORT)))

    assert shown["imports"] == [
        {
            "name": "initial",
            "mode": "once",
            "state": "SUCCEEDED",
            "task": "024850f60011101e",
            "lastTime": as_text(later(-60)),
            "lastResult": "Succeeded",
            "run": "024850f60011101e",
            "surveyed": 11,
            "imported": 3,
            "updated": 1,
            "unchanged": 5,
            "quarantined": 2,
            "quarantineCodes": [{"code": "Ambiguous", "tables": 1}, {"code": "Corrupt", "tables": 1}],
            "commit": "024850f600111bbb",
        }
    ]
    assert condition(shown, "ImportsHealthy") == ("True", "TablesQuarantined")
    assert shown["message"] == ""


def test_counts_of_an_import_outlive_a_later_failure() -> None:
    done, failed = ended(outcome=REPORT, id="1"), ended(TaskState.FAILED, id="2", failures=5)

    (shown,) = status(seen=with_import(last=failed, succeeded=done))["imports"]

    assert (shown["lastResult"], shown["task"], shown["run"], shown["quarantined"]) == ("Failed", "2", "1", 2)


def test_reasons_are_ten_most_frequent_and_the_rest_counted() -> None:
    codes = {f"Code{letter}": number for number, letter in enumerate("ABCDEFGHIJKL", start=1)}
    outcome = {"quarantined": {"total": sum(codes.values()), "codes": codes, "shown": []}}

    (shown,) = status(seen=with_import(last=ended(outcome=outcome)))["imports"]

    assert [one["tables"] for one in shown["quarantineCodes"]] == [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 3]
    assert shown["quarantineCodes"][-1] == {"code": "Other", "tables": 3}
    assert "commit" not in shown


def test_import_that_waits_says_when_it_is_due() -> None:
    active = task(kind="import", subject="lake/initial")

    (shown,) = status(seen=with_import(mode="sync", active=active, last=ended(), next=active.due))["imports"]

    assert (shown["nextTime"], shown["lastResult"], shown["state"]) == (as_text(active.due), "Succeeded", "WAITING")


@pytest.mark.parametrize(
    ("one", "standing"),
    [
        (import_seen(), ("True", "AsScheduled")),
        (import_seen(last=ended()), ("True", "AsScheduled")),
        (import_seen(last=ended(TaskState.FAILED, failures=5)), ("False", "TaskDeadLettered")),
        (import_seen(last=ended(TaskState.CANCELLED)), ("False", "TaskCancelled")),
        (import_seen(active=task(), last=ended(TaskState.FAILED, failures=5)), ("True", "AsScheduled")),
        (import_seen(active=task(due=later(-300))), ("False", "TaskOverdue")),
        (import_seen(active=task(failures=1)), ("False", "TaskRetrying")),
    ],
)
def test_imports_are_as_healthy_as_their_tasks(one: ImportDescription, standing: tuple[str, str]) -> None:
    assert condition(status(seen=catalog_seen(imports=(one,))), "ImportsHealthy") == standing


def test_worst_import_is_told_and_the_others_are_counted() -> None:
    imports = (
        import_seen(name="slow", active=task(id="1", failures=1, error="boom")),
        import_seen(name="dead", last=ended(TaskState.FAILED, id="2", kind="import", failures=1, error="bad")),
    )

    assert status(seen=catalog_seen(imports=imports))["message"] == (
        "task 2 (import) failed once and is not tried again: bad; once the cause is gone, run `headwater task retry 2`; and 1 more"
    )


def test_twenty_imports_are_shown() -> None:
    imports = tuple(import_seen(name=f"n{number}") for number in range(30))

    assert len(status(seen=catalog_seen(imports=imports))["imports"]) == 20


# Work on the lake


def test_work_on_the_lake_is_shown_once_there_is_some() -> None:
    waits = "maintenance of catalog acme/lake was stopped by ann"
    active = task(due=later(60), error=waits)
    idle, busy = lake_work_seen(kind="expire-snapshots"), lake_work_seen(active=active, last=ended(), next=active.due)

    assert "lakeWork" not in status(seen=catalog_seen(lake_work=(idle,)))
    (shown,) = status(seen=catalog_seen(lake_work=(idle, busy)))["lakeWork"]
    assert (shown["kind"], shown["lastResult"], shown["nextTime"]) == ("report-files", "Succeeded", as_text(active.due))
    assert shown["message"] == waits


@pytest.mark.parametrize(
    ("work", "standing"),
    [
        (lake_work_seen(), ("", "")),
        (lake_work_seen(last=ended()), ("True", "AsScheduled")),
        (lake_work_seen(last=ended(TaskState.FAILED, failures=5)), ("False", "TaskDeadLettered")),
        (lake_work_seen(last=ended(TaskState.CANCELLED)), ("True", "AsScheduled")),
        (lake_work_seen(active=task(due=later(-300))), ("False", "TaskOverdue")),
    ],
)
def test_lake_is_as_healthy_as_the_work_on_it(work: LakeWorkDescription, standing: tuple[str, str]) -> None:
    assert condition(status(seen=catalog_seen(lake_work=(work,))), "MaintenanceHealthy") == standing


# Maintenance of the realm


def test_maintenance_of_its_realm_is_told() -> None:
    times = {"lastTime": "2026-05-01T00:00:00Z", "nextTime": "2026-06-01T00:00:00Z", "suspended": False}

    shown = status(realm=realm(status={"maintenance": times}))

    assert (shown["lastMaintenanceTime"], shown["nextMaintenanceTime"]) == ("2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z")
    assert status(catalog(status=shown), realm=None)["lastMaintenanceTime"] == "2026-05-01T00:00:00Z"
    assert "nextMaintenanceTime" not in status(catalog(status=shown), realm=realm(status={"maintenance": {}}))


def test_plan_is_shown_to_who_asked() -> None:
    asking = catalog(annotations={"headwater.dev/plan": '{"token": "t1"}'})

    assert status(asking, plan=PlanMade("t1", PlanPreview(steps=("create it",))))["plan"]["steps"] == ["create it"]


def test_ended_work_shows_its_outcome_and_not_its_progress() -> None:
    counted = {"looked": 4, "unchanged": 1, "changed": 3, "snapshots": 7}
    last = replace(ended(), kind="expire-snapshots", done=4, total=4, unit="tables", outcome=counted)
    (work,) = status(seen=catalog_seen(lake_work=(lake_work_seen(kind="expire-snapshots", last=last),)))["lakeWork"]
    (run,) = status(seen=catalog_seen(imports=(replace(import_seen(), last=replace(last, kind="import"), active=None),)))[
        "imports"
    ]

    assert work["message"] == "looked at 4 tables, 1 were as they had been; expired 7 snapshots of 3 tables"
    assert not {"done", "total", "unit"} & {*work, *run}
