"""Events: one for each transition, none for a pass that changed nothing, and how they are posted."""

from __future__ import annotations

from typing import Any

import pytest
from bodies import NOW_TEXT, OK, catalog, catalog_seen, ended, import_seen, lake_work_seen, later, realm, realm_seen, task

from fake_clock import FakeClock
from headwater.errors import FencedError, NotFoundError, RefusedError, SwapConflictError, UnavailableError
from headwater.realms import RealmState
from headwater.reconcile import PlannedStep, ReconcileOutcome, RefuseManifest, ReportDrift, TaskDescription, WaitUntil
from headwater_operator.resource.conditions import UNSEEN, SecretSeen
from headwater_operator.resource.events import BURST, REFILL_SECONDS, Event, EventPoster, events_for, is_drift_corrected
from headwater_operator.resource.resource_status import catalog_status, realm_status
from headwater_operator.runtime.informer_cache import CachedResource

SECRET = SecretSeen("acme-root-credentials", True)
EVENTS = "/api/v1/namespaces/default/events"


def status(outcome: ReconcileOutcome | Exception = OK, before: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    seen = others.pop("seen", realm_seen())
    return realm_status(realm(status=before or {}), outcome, seen, **{"now": later(0), "secret": SECRET} | others)


def waiting(reason: str) -> dict[str, Any]:
    return status(ReconcileOutcome(subject="it", waits=(WaitUntil(reason, "it waits"),)))


def words(events: list[Event]) -> list[str]:
    return [event.reason for event in events]


def step(reason: str) -> PlannedStep:
    return PlannedStep(reason, f"did {reason}")


# Which


def test_creation_is_one_event_that_tells_all_of_it() -> None:
    steps = [step("RealmCreated"), step("RealmBootstrapped"), step("Recorded"), step("TaskRequested")]

    assert events_for(realm(), {}, status(), steps) == [
        Event("Normal", "RealmCreated", "did RealmCreated; did RealmBootstrapped; did TaskRequested")
    ]


def test_pass_that_changed_nothing_tells_nothing() -> None:
    assert events_for(realm(), status(), status(now=later(60)), []) == []


def test_note_of_the_operator_alone_is_no_event() -> None:
    assert events_for(realm(), status(), status(), [step("Recorded")]) == []


@pytest.mark.parametrize(
    ("steps", "named"),
    [
        (["RealmMoved", "TaskCancelled"], "RealmMoved"),
        (["TaskCancelled", "TaskRequested"], "TaskRequested"),
        (["TaskRequested", "RealmUpdated", "CredentialsRotated"], "CredentialsRotated"),
        (["RealmDetached"], "RealmDetached"),
        (["RealmDeleted"], "RealmDeleted"),
        (["CatalogCreated", "TaskRequested"], "CatalogCreated"),
    ],
)
def test_most_important_step_gives_the_event_its_name(steps: list[str], named: str) -> None:
    assert words(events_for(realm(generation=2), status(), status(), [step(one) for one in steps])) == [named]


def test_obstacle_is_told_once() -> None:
    refused = status(ReconcileOutcome(subject="it", refused=(RefuseManifest("ManagedByAnother", "it is another's"),)))

    assert events_for(realm(), {}, refused, []) == [Event("Warning", "ManagedByAnother", "it is another's")]
    assert events_for(realm(), refused, refused, []) == []


def test_one_wait_that_follows_another_is_told() -> None:
    assert words(events_for(realm(), waiting("PurgeUnconfirmed"), waiting("PurgeHold"), [])) == ["PurgeHold"]


def test_recovery_is_told_after_a_fault_that_was_told() -> None:
    assert words(events_for(realm(), waiting("Loading"), status(), [])) == ["Reconciled"]
    assert words(events_for(realm(), waiting("Loading"), status(), [step("RealmUpdated")])) == ["RealmUpdated"]


def test_store_that_comes_back_is_told_by_conditions_alone() -> None:
    away = status(UnavailableError("no route"), status(), seen=UNSEEN)

    assert events_for(realm(), status(), away, []) == []
    assert events_for(realm(), away, status(before=away), []) == []


def test_secret_that_went_is_a_warning() -> None:
    without = status(secret=SecretSeen("acme-root-credentials", False))

    assert [(event.type, event.reason) for event in events_for(realm(), status(), without, [])] == [
        ("Warning", "SecretMissing")
    ]


def test_drift_that_is_left_is_told_when_it_is_seen() -> None:
    drifted = status(ReconcileOutcome(subject="it", reports=(ReportDrift("Drifted", "state is INACTIVE"),)))

    assert events_for(realm(), status(), drifted, []) == [Event("Warning", "DriftReported", "state is INACTIVE")]
    assert words(events_for(realm(), drifted, status(), [])) == ["Reconciled"]


def test_drift_that_was_corrected_is_one_warning() -> None:
    events = events_for(realm(), status(), status(), [step("RealmMoved"), step("RealmUpdated")])

    assert events == [Event("Warning", "DriftCorrected", "did RealmMoved; did RealmUpdated")]


@pytest.mark.parametrize(
    ("resource", "before"),
    [
        (realm(generation=2), status()),
        (realm(), waiting("Loading")),
        (realm(), status(seen=realm_seen(state=RealmState.INACTIVE))),
        (realm(), {}),
        (realm(deletionTimestamp=NOW_TEXT), status()),
    ],
)
def test_change_that_was_declared_is_no_drift(resource: CachedResource, before: dict[str, Any]) -> None:
    assert not is_drift_corrected(resource, before, [step("RealmUpdated")])


def test_collection_that_ended_is_told_with_its_counts() -> None:
    last = ended(outcome={"deleted": 12, "deletedBytes": 3456})
    after = status(seen=realm_seen(last_collection=last, last_success=last.finished))

    events = events_for(realm(), status(), after, [step("TaskRequested")])

    told = "collected garbage: 12 rows deleted, 3456 bytes reclaimed (task 024850f60011101e)"
    assert Event("Normal", "CollectionDone", told) in events
    assert events_for(realm(), after, after, []) == []


IMPORTED = {"imported": 8, "updated": 1, "quarantined": {"total": 2, "codes": {"Corrupt": 2}, "shown": []}}


def with_imports(**last: TaskDescription | None) -> dict[str, Any]:
    """The status of a Catalog with imports of these names, and the run that ended last of each."""
    seen = catalog_seen(imports=tuple(import_seen(name=name, last=run) for name, run in last.items()))
    return catalog_status(catalog(), OK, seen, now=later(0))


def test_import_that_ended_is_told_once_with_its_counts() -> None:
    before, after = with_imports(initial=None), with_imports(initial=ended(outcome=IMPORTED))

    assert events_for(catalog(), before, after, []) == [
        Event("Normal", "ImportDone", "import initial has run: 9 tables (8 new, 1 moved forward), 2 left alone: Corrupt 2"),
        Event("Warning", "TablesQuarantined", "tables left alone by import initial: 2"),
    ]
    assert events_for(catalog(), after, after, []) == []


def test_work_on_a_lake_that_ended_is_told_once() -> None:
    def shown(**seen: Any) -> dict[str, Any]:
        return catalog_status(catalog(), OK, catalog_seen(lake_work=(lake_work_seen(**seen),)), now=later(0))

    before, after = shown(active=task()), shown(last=ended(finished=later(-60)))

    told = [event for event in events_for(catalog(), before, after, []) if event.reason == "LakeWorkDone"]
    assert [event.message.partition(",")[0] for event in told] == ["report-files has run"]
    assert events_for(catalog(), after, after, []) == []


def test_first_run_of_an_import_is_told_with_its_counts() -> None:
    before, after = with_imports(initial=None), with_imports(initial=ended(outcome={"imported": 8}))
    noted = PlannedStep("ImportDone", "recorded that import initial of catalog lake is done", "initial")

    assert events_for(catalog(), before, after, [noted, step("TaskRequested")]) == [
        Event("Normal", "TaskRequested", "did TaskRequested"),
        Event("Normal", "ImportDone", "import initial has run: 8 tables (8 new, 0 moved forward), 0 left alone"),
    ]


def test_first_run_faster_than_the_status_is_told_with_counts() -> None:
    noted = PlannedStep("ImportDone", "recorded that import initial of catalog lake is done", "initial")

    told = events_for(catalog(), {}, with_imports(initial=ended(outcome={"imported": 8})), [noted])

    assert [event.message for event in told if event.reason == "ImportDone"] == [
        "import initial has run: 8 tables (8 new, 0 moved forward), 0 left alone"
    ]


def test_imports_that_ended_at_the_same_time_are_all_told() -> None:
    before = with_imports(initial=None, daily=None)
    after = with_imports(initial=ended(outcome={"imported": 8}), daily=ended(outcome={"imported": 2}))

    told = [event.message.partition(" (")[0] for event in events_for(catalog(), before, after, [])]

    assert told == ["import initial has run: 8 tables", "import daily has run: 2 tables"]


def test_tables_still_quarantined_are_not_told_again() -> None:
    def shown(task_id: str, finished: int) -> dict[str, Any]:
        outcome = {"imported": 9, "quarantined": {"total": 2, "codes": {"Corrupt": 2}, "shown": []}}
        last = ended(id=task_id, finished=later(finished), outcome=outcome)
        return catalog_status(catalog(), OK, catalog_seen(imports=(import_seen(last=last),)), now=later(0))

    assert words(events_for(catalog(), shown("1", -60), shown("2", -30), [])) == ["ImportDone"]


def test_work_that_ended_before_anybody_looked_is_not_told() -> None:
    last = ended(outcome={"deleted": 12})
    imported = catalog_seen(imports=(import_seen(last=last),))

    assert events_for(realm(), {}, status(seen=realm_seen(last_collection=last, last_success=last.finished)), []) == []
    assert events_for(catalog(), {}, catalog_status(catalog(), OK, imported, now=later(0)), []) == []


def test_catalog_that_is_kept_is_told_as_detached() -> None:
    gone = catalog(deletionTimestamp=NOW_TEXT)

    assert words(events_for(gone, {}, {}, [step("CatalogUpdated")])) == ["Detached"]


def test_message_of_an_event_is_bounded() -> None:
    (event,) = events_for(realm(), {}, {}, [PlannedStep("RealmCreated", "x" * 5000)])

    assert len(event.message) <= 1024


# Posting


class Events:
    """The events of an API server, in memory: creating is refused where one of the name is."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.faults: list[Exception] = []

    def get_resource(self, path: str) -> dict[str, Any]:
        self._fail()
        if path not in self.kept:
            raise NotFoundError(f"GET {path}: not found")
        return self.kept[path]

    def create_resource(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._fail()
        name = f"{path}/{body['metadata']['name']}"
        if name in self.kept:
            raise SwapConflictError(f"POST {path}: there is one already")
        self.kept[name] = body
        return body

    def patch_resource(self, path: str, body: Any, *, kind: Any) -> dict[str, Any]:
        self._fail()
        assert kind == "merge"
        self.kept[path] = {**self.kept[path], **body}
        return self.kept[path]

    def _fail(self) -> None:
        if self.faults:
            raise self.faults.pop(0)


@pytest.fixture
def api() -> Events:
    return Events()


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def poster(api: Events, clock: FakeClock, told: list[str]) -> EventPoster:
    return EventPoster(api, component="headwater-operator", instance="pod-1", clock=clock, observe=told.append)


HELD = Event("Normal", "PurgeHold", "it is held")


def test_event_is_posted_beside_its_resource(poster: EventPoster, api: Events) -> None:
    poster.post(catalog(), [HELD])

    ((path, posted),) = api.kept.items()
    assert path == f"{EVENTS}/{posted['metadata']['name']}"
    assert posted["involvedObject"] == {
        "apiVersion": "headwater.dev/v1alpha1",
        "kind": "Catalog",
        "namespace": "default",
        "name": "lake",
        "uid": "uid-of-lake",
        "resourceVersion": "1",
    }
    assert {name: posted[name] for name in ("type", "reason", "message", "count", "firstTimestamp", "lastTimestamp")} == {
        "type": "Normal",
        "reason": "PurgeHold",
        "message": "it is held",
        "count": 1,
        "firstTimestamp": NOW_TEXT,
        "lastTimestamp": NOW_TEXT,
    }
    assert (posted["reportingComponent"], posted["reportingInstance"]) == ("headwater-operator", "pod-1")


def test_repetition_counts_up(poster: EventPoster, api: Events, clock: FakeClock, told: list[str]) -> None:
    poster.post(realm(), [HELD])
    clock.advance(60)
    poster.post(realm(resourceVersion="9"), [HELD])

    (posted,) = api.kept.values()
    assert (posted["count"], posted["firstTimestamp"], posted["lastTimestamp"]) == (2, NOW_TEXT, "2026-05-28T20:27:40Z")
    assert told == ["PurgeHold", "PurgeHold"]


def test_other_words_and_other_objects_are_other_events(poster: EventPoster, api: Events) -> None:
    poster.post(realm(), [HELD, Event("Normal", "PurgeHold", "it is held longer")])
    poster.post(realm(uid="made-again"), [HELD])

    assert len(api.kept) == 3


def test_event_that_left_in_between_is_posted_anew(poster: EventPoster, api: Events) -> None:
    api.faults = [SwapConflictError("there is one"), NotFoundError("there is none")]

    poster.post(realm(), [HELD])

    assert len(api.kept) == 1


@pytest.mark.parametrize("fault", [UnavailableError("away"), RefusedError("forbidden")])
def test_event_that_cannot_be_posted_is_left(poster: EventPoster, api: Events, told: list[str], fault: Exception) -> None:
    api.faults = [fault]

    poster.post(realm(), [HELD, Event("Normal", "Purging", "it goes on")])

    assert told == ["Purging"]
    assert len(api.kept) == 1


def test_operator_that_may_not_write_any_more_is_told_so(poster: EventPoster, api: Events) -> None:
    api.faults = [FencedError("the lead is lost")]

    with pytest.raises(FencedError):
        poster.post(realm(), [HELD])

    assert api.kept == {}


def test_one_object_cannot_flood_the_others_out(poster: EventPoster, api: Events, clock: FakeClock) -> None:
    flood = [Event("Warning", "Conflict", f"beaten {number}") for number in range(BURST + 5)]

    poster.post(realm(), flood)
    assert len(api.kept) == BURST

    poster.post(catalog(), [HELD])
    clock.advance(REFILL_SECONDS)
    poster.post(realm(), flood[-2:])
    assert len(api.kept) == BURST + 2


def test_names_of_events_are_short_enough(poster: EventPoster, api: Events) -> None:
    poster.post(realm(name="a" * 199 + "-" + "b" * 53), [HELD])

    ((path, posted),) = api.kept.items()
    assert len(posted["metadata"]["name"]) <= 253
    assert posted["metadata"]["name"].startswith("a" * 199 + ".")
    assert path.startswith(EVENTS)
