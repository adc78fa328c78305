"""A pass over a resource: what it does in the store, what it writes down, and what other resources notice of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from desks import Desk, make_catalog, make_realm

from faulty_backend import FaultyBackend
from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.errors import FencedError, RefusedError
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import RealmId, Store
from headwater.tasks import TaskQueue

DAY = 86_400.0


def find_realm(desk: Desk, realm_id: str = "acme") -> Realm | None:
    return RealmRegistry(desk.store).find_realm(realm_id)


def state_of(desk: Desk, realm_id: str = "acme") -> RealmState | None:
    found = find_realm(desk, realm_id)
    return found.state if found else None


def find_catalog(desk: Desk, name: str = "sales", realm_id: str = "acme") -> CatalogDefinition | None:
    return Catalogs(RealmRegistry(desk.store).open_realm(RealmId(realm_id))).find_catalog(name)


def change_realm(desk: Desk, **changes: Any) -> None:
    """As the command line does, behind the operator's back."""
    realms = RealmRegistry(desk.store)
    realms.update_realm(realms.read_realm("acme"), **changes)


@pytest.fixture
def ready(desk: Desk) -> Desk:
    """A Realm and a Catalog, both ready."""
    desk.apply(make_realm(), make_catalog())
    desk.work()
    desk.go_on(3)
    assert desk.is_ready("Realm", "acme")
    assert desk.is_ready("Catalog", "sales")
    return desk


@pytest.fixture
def purgeable(desk: Desk) -> Desk:
    """A ready Realm that goes with all that it has."""
    desk.apply(make_realm(deletionPolicy="Purge"))
    desk.work()
    assert desk.is_ready("Realm", "acme")
    return desk


# Making and keeping


def test_realm_and_its_catalog_are_made(ready: Desk) -> None:
    assert state_of(ready) is RealmState.ACTIVE
    assert find_catalog(ready) is not None


def test_realm_remembers_the_resource_that_manages_it(ready: Desk) -> None:
    realm = find_realm(ready)

    assert realm is not None and realm.manager is not None
    uid = ready.namespace.read("Realm", "acme")["metadata"]["uid"]
    assert (realm.manager.cluster, realm.manager.namespace, realm.manager.name) == ("tests", ready.namespace.name, "acme")
    assert realm.manager.uid == uid


@pytest.mark.long
def test_resources_at_rest_are_not_written(ready: Desk) -> None:
    ready.worked.clear()
    ready.http.fail(None)

    ready.go_on(2 * 3600, step=30)

    assert len(ready.worked) > 40
    assert ready.http.writes == []


def test_new_operator_writes_nothing_about_what_is_as_declared(ready: Desk, make_desk: Callable[..., Desk]) -> None:
    other = make_desk()

    other.work()

    assert len(other.worked) >= 2
    assert other.http.writes == []


def test_realm_counts_its_catalogs_as_they_come_and_go(ready: Desk) -> None:
    assert ready.status("Realm", "acme")["catalogs"] == 1
    ready.apply(make_catalog("returns"))
    ready.go_on(3)
    assert ready.status("Realm", "acme")["catalogs"] == 2

    ready.annotate("Catalog", "returns", confirm_purge="acme/returns")
    ready.apply(make_catalog("returns", deletionPolicy="Purge"))
    ready.delete("Catalog", "returns")
    ready.go_on(3)
    assert ready.status("Realm", "acme")["catalogs"] == 1


def test_changed_spec_changes_the_realm(ready: Desk) -> None:
    ready.apply(make_realm(properties={"team": "sales"}, state="Inactive"))

    ready.work()

    realm = find_realm(ready)
    assert realm is not None
    assert (realm.properties, realm.state) == ({"team": "sales"}, RealmState.INACTIVE)
    assert ready.status("Realm", "acme")["observedGeneration"] == 2


def test_realm_id_may_differ_from_the_name_of_its_resource(desk: Desk) -> None:
    desk.apply(make_realm("acme", realmId="ACME_Corp"), make_catalog())

    desk.work()

    assert state_of(desk, "ACME_Corp") is RealmState.ACTIVE
    assert find_catalog(desk, realm_id="ACME_Corp") is not None


def test_finalizers_of_others_are_left_alone(desk: Desk) -> None:
    desk.apply({**make_realm(), "metadata": {"name": "acme", "finalizers": ["example.com/theirs"]}})
    desk.work()
    assert desk.namespace.read("Realm", "acme")["metadata"]["finalizers"] == ["example.com/theirs", "headwater.dev/operator"]

    desk.delete("Realm", "acme")
    desk.work()

    assert desk.namespace.read("Realm", "acme")["metadata"]["finalizers"] == ["example.com/theirs"]


def test_pass_is_told_to_the_metrics(ready: Desk) -> None:
    text = ready.metrics.render().decode()

    assert 'headwater_operator_reconcile_total{kind="Realm",outcome="changed"} 1.0' in text
    assert 'headwater_operator_events_total{reason="RealmCreated"} 1.0' in text


def test_secrets_are_in_no_log_line(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.apply(make_realm())
    desk.work()
    desk.annotate("Realm", "acme", rotate_credentials="again")
    desk.work()

    data = desk.namespace.read("Secret", "acme-root-credentials")["data"]
    said = capsys.readouterr()
    assert "acme" in said.out
    assert data["clientSecret"] not in said.out + said.err


# A Catalog and its Realm


def test_catalog_before_its_realm_says_so_and_goes_on(desk: Desk) -> None:
    desk.apply(make_catalog())
    desk.work()
    assert desk.reason("Catalog", "sales", "RealmReady") == ("False", "RealmMissing")

    desk.apply(make_realm())
    desk.work()  # no time passes

    assert desk.is_ready("Catalog", "sales")


def test_catalog_hears_that_its_realm_is_active_again(ready: Desk) -> None:
    ready.apply(make_realm(state="Inactive"))
    ready.work()
    assert ready.reason("Catalog", "sales", "RealmReady") == ("False", "RealmNotActive")

    ready.apply(make_realm(state="Active"))
    ready.work()

    assert ready.is_ready("Catalog", "sales")


def test_catalog_outlives_its_realm_resource_and_says_so(ready: Desk) -> None:
    ready.delete("Realm", "acme")

    ready.work()

    assert ready.namespace.find("Realm", "acme") is None
    assert state_of(ready) is RealmState.ACTIVE
    assert ready.reason("Catalog", "sales", "RealmReady") == ("False", "RealmMissing")
    assert find_catalog(ready) is not None


def test_catalog_whose_realm_resource_went_first_can_be_deleted(ready: Desk) -> None:
    ready.delete("Realm", "acme")
    ready.work()

    ready.delete("Catalog", "sales")
    ready.work()

    assert ready.namespace.find("Catalog", "sales") is None
    kept = find_catalog(ready)
    assert kept is not None and kept.manager is None


def test_catalog_that_outlived_its_realm_resource_goes_where_confirmed(desk: Desk) -> None:
    desk.apply(make_realm(), make_catalog(deletionPolicy="Purge"))
    desk.work()
    desk.delete("Realm", "acme")
    desk.work()

    desk.annotate("Catalog", "sales", confirm_purge="acme/sales")
    desk.delete("Catalog", "sales")
    desk.work()

    assert desk.namespace.find("Catalog", "sales") is None
    assert find_catalog(desk) is None


def test_catalog_sees_that_its_realm_is_being_deleted(purgeable: Desk) -> None:
    purgeable.apply(make_catalog())
    purgeable.work()

    purgeable.delete("Realm", "acme")
    purgeable.work()

    assert purgeable.reason("Realm", "acme", "Deleting") == ("True", "PurgeUnconfirmed")
    assert purgeable.reason("Catalog", "sales", "RealmReady") == ("False", "RealmDeleting")


def test_catalog_is_looked_after_once_its_realm_is_back(ready: Desk) -> None:
    ready.delete("Realm", "acme")
    ready.work()

    ready.apply(make_realm())
    ready.work()

    assert ready.is_ready("Realm", "acme")
    assert ready.is_ready("Catalog", "sales")


def test_catalog_under_retain_is_let_go_from_a_sleeping_realm(ready: Desk) -> None:
    ready.apply(make_realm(state="Inactive"))
    ready.work()
    ready.delete("Realm", "acme")
    ready.delete("Catalog", "sales")

    ready.work()

    assert ready.namespace.find("Realm", "acme") is None
    assert ready.namespace.find("Catalog", "sales") is None
    assert state_of(ready) is RealmState.INACTIVE


def test_deleted_catalog_waits_while_its_realm_may_become_active_again(ready: Desk) -> None:
    ready.apply(make_realm(state="Inactive"))
    ready.work()
    ready.delete("Catalog", "sales")
    ready.work()
    assert ready.reason("Catalog", "sales", "Deleting") == ("True", "RealmNotActive")

    ready.apply(make_realm(state="Active"))
    ready.work()

    assert ready.namespace.find("Catalog", "sales") is None


def test_catalog_that_never_had_a_realm_is_let_go(desk: Desk) -> None:
    desk.apply(make_catalog())
    desk.work()

    desk.delete("Catalog", "sales")
    desk.work()

    assert desk.namespace.find("Catalog", "sales") is None


# Deletion


def test_realm_under_retain_stays_with_credentials_and_no_manager(ready: Desk) -> None:
    ready.delete("Realm", "acme")
    ready.work()

    realm = find_realm(ready)
    assert realm is not None
    assert (realm.state, realm.manager) == (RealmState.ACTIVE, None)
    assert ready.namespace.find("Secret", "acme-root-credentials") is not None


@pytest.mark.long
def test_purge_waits_for_its_confirmation_however_long_that_takes(purgeable: Desk) -> None:
    purgeable.delete("Realm", "acme")

    purgeable.go_on(DAY, step=600)

    assert purgeable.reason("Realm", "acme", "Deleting") == ("True", "PurgeUnconfirmed")
    assert state_of(purgeable) is RealmState.ACTIVE


def test_confirmed_purge_takes_the_realm_its_entry_and_its_secret(purgeable: Desk) -> None:
    purgeable.delete("Realm", "acme")
    purgeable.work()
    purgeable.annotate("Realm", "acme", confirm_purge="acme")
    purgeable.work()
    assert purgeable.reason("Realm", "acme", "Purging") == ("False", "PurgeHold")

    purgeable.go_on(300, until=lambda: (purgeable.work_off() and False) or purgeable.namespace.find("Realm", "acme") is None)

    assert purgeable.namespace.find("Realm", "acme") is None
    assert find_realm(purgeable) is None
    assert purgeable.namespace.find("Secret", "acme-root-credentials") is None


def test_end_of_the_hold_is_not_slept_through(purgeable: Desk) -> None:
    purgeable.annotate("Realm", "acme", confirm_purge="acme")
    purgeable.delete("Realm", "acme")
    purgeable.work()

    purgeable.go_on(62, step=1)  # the hold is 60 s, the resync 300 s

    assert state_of(purgeable) is RealmState.PURGING


def test_purge_is_called_off_by_retain(purgeable: Desk) -> None:
    purgeable.delete("Realm", "acme")
    purgeable.work()

    purgeable.apply(make_realm(deletionPolicy="Retain"))
    purgeable.work()

    assert purgeable.namespace.find("Realm", "acme") is None
    assert state_of(purgeable) is RealmState.ACTIVE


def test_resource_that_is_wrong_can_be_deleted(ready: Desk) -> None:
    ready.annotate("Realm", "acme", delete="true")
    ready.work()
    assert ready.reason("Realm", "acme", "Accepted") == ("False", "SpecInvalid")

    ready.delete("Realm", "acme")
    ready.work()

    assert ready.namespace.find("Realm", "acme") is None


def test_resource_whose_finalizer_was_taken_leaves_word_of_it(ready: Desk) -> None:
    ready.delete("Catalog", "sales")
    ready.namespace.cluster.api.patch_resource(
        ready.namespace.path("Catalog", "sales"), {"metadata": {"finalizers": None}}, kind="merge", manager="a-person"
    )

    ready.work()

    assert [reason for reason, _ in ready.namespace.events("sales", kind="Catalog")][-1] == "ReleasedByHand"


def test_resource_made_again_under_its_name_is_another_one(ready: Desk) -> None:
    ready.delete("Catalog", "sales")
    ready.work()
    ready.apply(make_catalog(properties={"tier": "gold"}))
    ready.work()

    found = find_catalog(ready)
    assert found is not None
    assert found.properties == {"tier": "gold"}
    assert ready.is_ready("Catalog", "sales")


# Whose realm it is


def test_second_resource_that_claims_a_realm_is_refused(ready: Desk) -> None:
    ready.apply(make_realm("rival", realmId="acme"))

    ready.work()

    assert ready.reason("Realm", "rival", "Accepted") == ("False", "ManagedByAnother")
    assert ready.is_ready("Realm", "acme")


def test_refused_resource_is_deleted_and_leaves_the_realm(ready: Desk) -> None:
    ready.apply(make_realm("rival", realmId="acme"))
    ready.work()
    ready.delete("Realm", "rival")
    ready.work()

    assert ready.namespace.find("Realm", "rival") is None
    realm = find_realm(ready)
    assert realm is not None and realm.manager is not None and realm.manager.name == "acme"


def test_refused_resource_goes_and_says_that_nothing_was_deleted(ready: Desk) -> None:
    ready.apply(
        make_realm("rival", realmId="acme", deletionPolicy="Purge", annotations={"headwater.dev/confirm-purge": "acme"})
    )
    ready.work()
    ready.delete("Realm", "rival")
    ready.work()

    assert ready.namespace.find("Realm", "rival") is None
    assert ready.is_ready("Realm", "acme")
    assert [reason for reason, _ in ready.namespace.events("rival")][-1] == "ManagedByAnother"


def test_realm_is_adopted_once_when_asked_for(ready: Desk) -> None:
    ready.apply(make_realm("rival", annotations={"headwater.dev/adopt": "acme"}, realmId="acme"))

    ready.work()
    ready.go_on(1200, step=60)

    realm = find_realm(ready)
    assert realm is not None and realm.manager is not None and realm.manager.name == "rival"
    assert ready.reason("Realm", "acme", "Accepted") == ("False", "ManagedByAnother")


def test_catalog_of_a_realm_taken_over_may_go(ready: Desk) -> None:
    ready.apply(make_realm("rival", annotations={"headwater.dev/adopt": "acme"}, realmId="acme"))
    ready.work()
    ready.go_on(400, step=60)
    assert ready.reason("Catalog", "sales", "RealmReady") == ("False", "RealmManagedByAnother")

    ready.delete("Catalog", "sales")
    ready.work()

    assert ready.namespace.find("Catalog", "sales") is None


# Drift, annotations, plans


def test_drift_is_seen_within_one_resync_and_corrected(ready: Desk) -> None:
    change_realm(ready, properties={"by": "hand"})

    ready.go_on(330, step=30)

    realm = find_realm(ready)
    assert realm is not None
    assert realm.properties == {}
    assert "DriftCorrected" in [reason for reason, _ in ready.namespace.events("acme")]
    assert 'drift_total{action="corrected",kind="Realm"} 1.0' in ready.metrics.render().decode()


def test_drift_is_seen_within_a_resync_and_may_stay(desk: Desk) -> None:
    desk.apply(make_realm(driftPolicy="Report"))
    desk.work()
    change_realm(desk, properties={"by": "hand"})

    desk.go_on(700, step=30)

    realm = find_realm(desk)
    assert realm is not None
    assert realm.properties == {"by": "hand"}
    assert desk.reason("Realm", "acme", "Drifted") == ("True", "DriftReported")
    assert 'drift_total{action="reported",kind="Realm"} 1.0' in desk.metrics.render().decode()


def test_collection_is_run_now_once(ready: Desk) -> None:
    ready.annotate("Realm", "acme", run_now="gc")
    ready.work()
    assert ready.work_off() == 1
    ready.go_on(60)

    assert ready.work_off() == 0
    assert ready.status("Realm", "acme")["maintenance"]["lastResult"] == "Succeeded"


def test_work_of_a_worker_is_seen_within_seconds(ready: Desk) -> None:
    ready.annotate("Realm", "acme", run_now="gc")
    ready.work()
    ready.work_off()

    ready.go_on(6)

    assert ready.status("Realm", "acme")["maintenance"]["lastResult"] == "Succeeded"


def test_catalog_shows_the_maintenance_of_its_realm(ready: Desk) -> None:
    ready.annotate("Realm", "acme", run_now="gc")
    ready.work()
    ready.work_off()
    ready.go_on(6)

    shown = ready.status("Catalog", "sales")
    assert shown["lastMaintenanceTime"] == ready.status("Realm", "acme")["maintenance"]["lastTime"]


def test_lost_secret_is_told_and_rotated_anew(ready: Desk) -> None:
    ready.delete("Secret", "acme-root-credentials")
    ready.go_on(330, step=30)
    assert ready.reason("Realm", "acme", "CredentialsAvailable") == ("False", "SecretMissing")

    ready.annotate("Realm", "acme", rotate_credentials="once-more")
    ready.work()

    assert ready.reason("Realm", "acme", "CredentialsAvailable") == ("True", "SecretPresent")
    secret = ready.namespace.read("Secret", "acme-root-credentials")
    assert secret["metadata"]["annotations"]["headwater.dev/rotation"] == "once-more"


def test_plan_is_made_once_for_each_token(ready: Desk) -> None:
    spec = {**make_realm()["spec"], "state": "Inactive"}
    ready.annotate("Realm", "acme", plan=json.dumps({"token": "t1", "spec": spec}))
    ready.work()
    plan = ready.status("Realm", "acme")["plan"]
    assert plan["token"] == "t1"
    assert plan["steps"][0] == "move realm acme to INACTIVE"
    assert state_of(ready) is RealmState.ACTIVE

    ready.http.fail(None)
    ready.go_on(1000, step=100)
    assert ready.http.writes == []

    ready.annotate("Realm", "acme", plan=None)
    ready.work()
    assert "plan" not in ready.status("Realm", "acme")


def test_plan_of_a_wrong_catalog_says_what_is_wrong(ready: Desk) -> None:
    ready.annotate("Catalog", "sales", plan=json.dumps({"token": "t1", "spec": {"realm": "acme"}}))

    ready.work()

    assert any("SpecInvalid" in line for line in ready.status("Catalog", "sales")["plan"]["refused"])
    assert ready.is_ready("Catalog", "sales")


def test_question_that_nobody_can_read_is_answered_so(ready: Desk) -> None:
    ready.annotate("Realm", "acme", plan="what now?")

    ready.work()

    assert "must be JSON" in ready.status("Realm", "acme")["plan"]["refused"][0]


# What goes wrong


@pytest.fixture
def faults(memory_store: Store) -> FaultyBackend:
    return FaultyBackend(memory_store.backend)


@pytest.fixture
def faulty_desk(faults: FaultyBackend, memory_store: Store, make_desk: Callable[..., Desk]) -> Desk:
    """A desk on a store whose backend fails when told to."""
    return make_desk(Store(faults, url=memory_store.url, settings=memory_store.settings, clock=memory_store.clock))


def test_store_that_does_not_answer_is_told_and_asked_again(faulty_desk: Desk, faults: FaultyBackend) -> None:
    faulty_desk.apply(make_realm())
    faulty_desk.work()
    faults.fail(times=10_000)
    faulty_desk.go_on(400, step=20)
    assert faulty_desk.reason("Realm", "acme") == ("Unknown", "StoreUnavailable")
    assert faulty_desk.reason("Realm", "acme", "StoreReachable") == ("False", "StoreUnavailable")
    assert faulty_desk.status("Realm", "acme")["state"] == "ACTIVE"

    faults.heal()
    faulty_desk.go_on(70)

    assert faulty_desk.is_ready("Realm", "acme")


def test_store_that_refuses_everybody_is_asked_again(faulty_desk: Desk, faults: FaultyBackend) -> None:
    faulty_desk.apply(make_realm())
    faulty_desk.work()
    faults.fail(times=10_000, fault=RefusedError("the password is wrong"))
    faulty_desk.go_on(400, step=20)
    assert faulty_desk.reason("Realm", "acme", "StoreReachable") == ("False", "StoreUnavailable")

    faults.heal()
    faulty_desk.go_on(70)

    assert faulty_desk.is_ready("Realm", "acme")


@pytest.mark.long
def test_store_that_is_away_is_not_hammered(faulty_desk: Desk, faults: FaultyBackend) -> None:
    faults.fail(times=10_000)
    faulty_desk.apply(make_realm())

    faulty_desk.go_on(600)

    assert len([key for key in faulty_desk.worked if key.kind == "Realm"]) < 60


def test_bug_is_a_condition_that_shows_no_values(faulty_desk: Desk, faults: FaultyBackend) -> None:
    faulty_desk.apply(make_realm())
    faulty_desk.work()
    faults.fail(times=10_000, fault=ZeroDivisionError("password=swordfish"))
    faulty_desk.go_on(330, step=30)

    assert faulty_desk.reason("Realm", "acme") == ("Unknown", "InternalError")
    assert "ZeroDivisionError" in faulty_desk.status("Realm", "acme")["message"]
    assert "swordfish" not in json.dumps(faulty_desk.status("Realm", "acme"))
    faults.heal()
    faulty_desk.go_on(120)
    assert faulty_desk.is_ready("Realm", "acme")


def test_reconciler_that_may_not_act_any_more_stops(ready: Desk, make_desk: Callable[..., Desk]) -> None:
    def lost() -> None:
        raise FencedError("not any more")

    fenced = make_desk(fence=lost)
    ready.apply(make_realm(state="Inactive"))

    with pytest.raises(FencedError):
        fenced.work()

    assert fenced.http.writes == []
    assert state_of(ready) is RealmState.ACTIVE


# Others who write


def test_status_that_somebody_changed_is_put_right(ready: Desk) -> None:
    path = f"{ready.namespace.path('Realm', 'acme')}/status"
    ready.namespace.cluster.api.patch_resource(
        path, {"status": {"message": "mine", "state": "PURGED"}}, kind="merge", manager="else"
    )

    ready.work()

    assert ready.status("Realm", "acme")["message"] == ""
    assert ready.status("Realm", "acme")["state"] == "ACTIVE"


@pytest.mark.long
def test_writers_that_insist_on_a_status_do_not_keep_busy(ready: Desk) -> None:
    path = f"{ready.namespace.path('Realm', 'acme')}/status"
    ready.http.fail(None)

    def insist() -> bool:
        if ready.status("Realm", "acme")["message"] != "mine":
            ready.namespace.cluster.api.patch_resource(path, {"status": {"message": "mine"}}, kind="merge", manager="else")
        return False

    ready.go_on(600, until=insist, step=2)

    assert 3 <= len(ready.http.writes) <= 12


def test_condition_of_somebody_else_stays(ready: Desk) -> None:
    theirs = {
        "type": "Audited",
        "status": "True",
        "reason": "Yes",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    path = f"{ready.namespace.path('Realm', 'acme')}/status"
    body = {**make_realm(), "status": {"conditions": [theirs]}}
    body.pop("spec")
    ready.namespace.cluster.api.patch_resource(path, body, kind="apply", manager="auditor")
    ready.http.fail(None)
    ready.apply(make_realm(state="Inactive"))
    ready.work()

    assert ready.reason("Realm", "acme", "Audited") == ("True", "Yes")
    ready.http.fail(None)
    ready.go_on(1000, step=100)
    assert ready.http.writes == []


def test_resource_that_is_gone_is_forgotten(ready: Desk) -> None:
    ready.delete("Catalog", "sales")
    ready.work()
    ready.worked.clear()

    ready.go_on(900, step=60)

    assert {key.name for key in ready.worked} == {"acme"}
    assert [task for task in TaskQueue(ready.store).list_tasks() if task.value.kind == "import"] == []
