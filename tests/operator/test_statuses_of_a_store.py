"""Statuses of realms and catalogs that are really there: what the planners, the store and the status say fits together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bodies import body, condition

from fake_clock import FakeClock
from headwater import Store
from headwater.clock import Micros, as_text
from headwater.realms import RealmRegistry, RealmState
from headwater.reconcile import (
    FileCredentials,
    ManagerIdentity,
    RealmManifest,
    ReconcileOutcome,
    describe_catalog,
    describe_realm,
    read_manifest,
    reconcile_catalog,
    reconcile_realm,
)
from headwater.store import RealmId
from headwater_operator.resource.conditions import UNSEEN, SecretSeen
from headwater_operator.resource.events import events_for
from headwater_operator.resource.resource_status import catalog_status, realm_status
from headwater_operator.runtime.informer_cache import CachedResource

Passed = tuple[dict[str, Any], list[str]]
Pass = Callable[[dict[str, Any]], Passed]
SECRET = SecretSeen("acme-root-credentials", True)


@pytest.fixture
def look_after(store: Store, tmp_path: Path) -> Pass:
    """One pass over a body, which keeps the status. Returns it, and the reasons of the events."""
    manager, sink = ManagerIdentity(cluster="here"), FileCredentials(tmp_path)

    def pass_over(made: dict[str, Any]) -> Passed:
        resource = CachedResource.from_body(made)
        manifest = read_manifest(resource.body(), settings=store.settings, realm_id=RealmId("acme"))
        outcome: ReconcileOutcome
        if isinstance(manifest, RealmManifest):
            outcome = reconcile_realm(store, manifest, credentials=sink, manager=manager)
            seen = describe_realm(store, manifest.spec.realm_id)
            secret = SECRET if seen else UNSEEN
            made["status"] = realm_status(resource, outcome, seen, now=store.clock.now(), secret=secret)
        else:
            outcome = reconcile_catalog(store, manifest, credentials=sink, manager=manager)
            found = describe_catalog(store, manifest.spec.realm_id, manifest.spec.name)
            made["status"] = catalog_status(resource, outcome, found, now=store.clock.now())
        told = events_for(resource, resource.status, made["status"], outcome.steps)
        return made["status"], [event.reason for event in told]

    return pass_over


def test_new_realm_is_ready_after_one_pass_and_stays(look_after: Pass, clock: FakeClock) -> None:
    realm = body()

    first, told = look_after(realm)
    clock.advance(300)
    second, told_again = look_after(realm)

    assert condition(first, "Ready") == ("True", "Reconciled")
    assert (first["state"], first["catalogs"], first["tables"]) == ("ACTIVE", 0, 0)
    assert (second, told, told_again) == (first, ["RealmCreated"], [])


def test_drift_is_corrected_and_told(look_after: Pass, store: Store) -> None:
    realm = body()
    before, _ = look_after(realm)
    realms = RealmRegistry(store)
    realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)

    after, told = look_after(realm)

    assert told == ["DriftCorrected"]
    assert condition(after, "Ready") == condition(before, "Ready")


def test_drift_that_shall_be_reported_is_told_and_stays(look_after: Pass, store: Store) -> None:
    realm = body(spec={"driftPolicy": "Report"})
    look_after(realm)
    realms = RealmRegistry(store)
    realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)

    after, told = look_after(realm)

    assert told[-1] == "DriftReported"
    assert condition(after, "Drifted") == ("True", "DriftReported")
    assert condition(after, "Ready") == ("False", "DriftReported")
    assert look_after(realm) == (after, [])


def test_deletion_waits_for_confirmation_then_hold_then_worker(look_after: Pass, clock: FakeClock) -> None:
    realm = body(spec={"deletionPolicy": "Purge"})
    look_after(realm)

    realm["metadata"] |= {"deletionTimestamp": as_text(clock.now()), "generation": 2}
    unconfirmed, told = look_after(realm)
    assert (condition(unconfirmed, "Deleting"), told) == (("True", "PurgeUnconfirmed"), ["PurgeUnconfirmed"])

    realm["metadata"]["annotations"] = {"headwater.dev/confirm-purge": "acme"}
    held, told = look_after(realm)
    assert (condition(held, "Purging"), told) == (("False", "PurgeHold"), ["RealmMoved", "PurgeHold"])
    assert held["purge"] == {"holdUntil": as_text(Micros(clock.now() + 60_000_000))}

    clock.advance(61)
    purging, told = look_after(realm)
    assert (condition(purging, "Purging"), purging["state"]) == (("True", "Purging"), "PURGING")
    assert told == ["RealmMoved", "Purging"]

    clock.advance(301)
    stuck, told = look_after(realm)
    assert condition(stuck, "MaintenanceHealthy") == ("False", "TaskOverdue")
    assert told == ["TaskOverdue"]


def test_catalog_waits_for_its_realm_and_goes_on(look_after: Pass) -> None:
    catalog = body("Catalog", "lake", spec={"imports": [{"name": "initial", "locations": ["s3://old/"]}]})

    waiting, told = look_after(catalog)
    assert (condition(waiting, "Ready"), told) == (("False", "RealmMissing"), ["RealmMissing"])

    look_after(body())
    ready, told = look_after(catalog)
    assert (condition(ready, "Ready"), told) == (("True", "Reconciled"), ["CatalogCreated"])
    assert (ready["state"], [one["state"] for one in ready["imports"]]) == ("ACTIVE", ["WAITING"])
    assert look_after(catalog) == (ready, [])


def test_realm_that_belongs_to_another_resource_is_not_told_of(look_after: Pass) -> None:
    look_after(body())

    shown, told = look_after(body(name="rival", spec={"realmId": "acme"}))

    assert told == ["ManagedByAnother"]
    assert "state" not in shown
