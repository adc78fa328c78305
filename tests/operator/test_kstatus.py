"""How tools that wait for a resource judge it by kstatus: from the moment it is made, and for every reason that it may have."""

from __future__ import annotations

from typing import Any

import pytest
from bodies import body, later, realm_seen
from desks import Desk, make_catalog, make_realm
from hypothesis import given
from kstatus import kstatus
from passes import either, status_of

from headwater.errors import ConflictError, CorruptionError, RefusedError, UnavailableError, UnknownOutcomeError
from headwater.reconcile import ManifestError, ReconcileOutcome, RefuseManifest, ReportDrift, WaitUntil
from headwater.reconcile.manifests import ManifestFault
from headwater_operator.resource.conditions import UNSEEN, SecretSeen
from headwater_operator.resource.reasons import REASONS

JUDGEMENTS = {"Reconciling": "InProgress", "Stalled": "Failed"}
INVALID = ManifestError([ManifestFault("", 0, "spec.purgeHold", "is too short")])


def judged(desk: Desk, kind: str, name: str) -> str:
    return kstatus(desk.namespace.read(kind, name))


def conditions_of(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["type"]: one for one in status["conditions"]}


# The catalogue


def test_every_reason_to_be_unready_says_whether_waiting_helps() -> None:
    unready = [one for one in REASONS.values() if "Ready" in one.conditions and one.name != "Reconciled"]

    assert [one.name for one in unready if len(JUDGEMENTS.keys() & set(one.conditions)) != 1] == []
    assert [one.name for one in REASONS.values() if one not in unready and JUDGEMENTS.keys() & set(one.conditions)] == []


def test_person_is_waited_for_by_what_is_stalled() -> None:
    assert {one.name for one in REASONS.values() if "Stalled" in one.conditions} == {
        "ConnectionTaken",
        "DeletionProtected",
        "DriftReported",
        "ManagedByAnother",
        "PurgeUnconfirmed",
        "Purged",
        "RealmManagedByAnother",
        "Refused",
        "SchemaOlder",
        "ServerUnknown",
        "SpecInvalid",
        "TaskCancelled",
        "TaskDeadLettered",
        "Unreadable",
    }


def test_stalled_resource_says_what_a_person_does() -> None:
    assert [one.name for one in REASONS.values() if "Stalled" in one.conditions and not one.action] == []


# Every status


@pytest.mark.long
@given(one=either)
def test_every_status_is_judged_by_its_reason(one: Any) -> None:
    made, brought = one
    status = status_of(made, brought, now=later(0))
    ready = conditions_of(status)["Ready"]

    found = kstatus({**made, "metadata": {**made["metadata"], "deletionTimestamp": None}, "status": status})

    (judgement,) = [JUDGEMENTS[name] for name in REASONS[ready["reason"]].conditions if name in JUDGEMENTS] or ["Current"]
    assert found == ("Current" if ready["status"] == "True" else judgement)


@pytest.mark.long
@given(one=either)
def test_kstatus_conditions_say_what_ready_says(one: Any) -> None:
    found = conditions_of(status_of(*one, now=later(0)))
    ready, repeated = found["Ready"], [found[name] for name in JUDGEMENTS if name in found]

    assert len(repeated) == (ready["status"] != "True")
    for name in ("reason", "message", "observedGeneration"):
        assert all(condition[name] == ready[name] for condition in repeated)
    assert all(condition["status"] == "True" for condition in repeated)


@pytest.mark.parametrize(
    ("outcome", "judgement"),
    [
        (ReconcileOutcome(subject="it"), "Current"),
        (ReconcileOutcome(subject="it", reports=(ReportDrift("Drifted", "properties is {}"),)), "Current"),
        (ReconcileOutcome(subject="it", waits=(WaitUntil("Loading", "it is loaded"),)), "InProgress"),
        (UnavailableError("no route"), "InProgress"),
        (UnknownOutcomeError("the answer was lost"), "InProgress"),
        (ConflictError("somebody was faster"), "InProgress"),
        (ValueError("a bug"), "InProgress"),
        (INVALID, "Failed"),
        (RefusedError("overlaps with catalog b"), "Failed"),
        (CorruptionError("a row is damaged"), "Failed"),
        (ReconcileOutcome(subject="it", refused=(RefuseManifest("ManagedByAnother", "it is another's"),)), "Failed"),
        (ReconcileOutcome(subject="it", waits=(WaitUntil("Purged", "it was purged by hand"),)), "Failed"),
    ],
)
def test_realm_is_judged_by_what_a_pass_came_to(outcome: Any, judgement: str) -> None:
    made = body(generation=3)
    brought = {"outcome": outcome, "seen": realm_seen(), "secret": SecretSeen("acme-root-credentials", True), "plan": None}

    status = status_of(made, brought, now=later(0))

    assert status["observedGeneration"] == 3
    assert kstatus({**made, "status": status}) == judgement


def test_store_that_is_away_is_waited_for() -> None:
    brought = {"outcome": UnavailableError("no route"), "seen": UNSEEN, "secret": UNSEEN, "plan": None}

    assert kstatus({**body(), "status": status_of(body(), brought, now=later(0))}) == "InProgress"


# In a cluster


def test_resource_that_nobody_has_looked_at_yet_is_in_progress(desk: Desk) -> None:
    desk.apply(make_realm(), make_catalog())

    assert [judged(desk, "Realm", "acme"), judged(desk, "Catalog", "sales")] == ["InProgress", "InProgress"]
    assert desk.status("Realm", "acme")["observedGeneration"] == -1


def test_resource_is_current_when_ready_and_in_progress_when_changed(desk: Desk) -> None:
    desk.apply(make_realm(), make_catalog())
    desk.work()
    assert [judged(desk, "Realm", "acme"), judged(desk, "Catalog", "sales")] == ["Current", "Current"]

    desk.apply(make_realm(state="Inactive"))

    assert judged(desk, "Realm", "acme") == "InProgress"


def test_catalog_whose_realm_is_about_to_come_is_in_progress(desk: Desk) -> None:
    desk.apply(make_catalog())
    desk.work()

    assert judged(desk, "Catalog", "sales") == "InProgress"
    assert desk.reason("Catalog", "sales", "Reconciling") == ("True", "RealmMissing")


def test_refused_spec_has_failed_after_the_first_look(desk: Desk) -> None:
    desk.apply(make_realm("tight", annotations={"headwater.dev/unheard-of": "yes"}))

    desk.work()

    assert judged(desk, "Realm", "tight") == "Failed"
    assert desk.reason("Realm", "tight", "Stalled") == ("True", "SpecInvalid")
    assert desk.status("Realm", "tight")["observedGeneration"] == 1


def test_step_that_is_refused_has_failed_after_the_first_look(desk: Desk) -> None:
    desk.put_in_the_way()
    desk.apply(make_realm())

    desk.work()

    assert judged(desk, "Realm", "acme") == "Failed"
    assert desk.reason("Realm", "acme", "Stalled") == ("True", "Refused")


def test_spec_that_is_put_right_is_not_stalled_any_more(desk: Desk) -> None:
    desk.apply(make_realm(annotations={"headwater.dev/unheard-of": "yes"}))
    desk.work()
    assert judged(desk, "Realm", "acme") == "Failed"

    desk.annotate("Realm", "acme", unheard_of=None)
    desk.work()

    assert judged(desk, "Realm", "acme") == "Current"
    assert desk.reason("Realm", "acme", "Stalled") == ("", "")


def test_refusal_is_told_by_one_event(desk: Desk) -> None:
    desk.apply(make_realm(annotations={"headwater.dev/unheard-of": "yes"}))
    desk.work()

    assert [reason for reason, _ in desk.namespace.events("acme")] == ["SpecInvalid"]
