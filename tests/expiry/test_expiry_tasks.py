from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from expiring_lake import ExpiringLake
from headwater import Store
from headwater.catalogs import Catalogs
from headwater.errors import RefusedError
from headwater.expiry import ExpiryRequest, dry_expiry, read_expiry_request, run_expiry, submit_expiry
from headwater.iceberg_catalog.table_adoption import adopt_guests, list_table_homes
from headwater.jobs import EXPIRE_SNAPSHOTS, list_runs
from headwater.policies import (
    MetadataFileRule,
    PolicyKind,
    SnapshotRule,
    StoredPolicy,
    read_scope,
    set_policy,
    stop_maintenance,
)
from headwater.realms import RealmRegistry, RealmState
from headwater.tasks import LeaseWatch, TaskLease, TaskNotReadyError, TaskQueue, TaskStoppedError


@pytest.fixture
def orders(lake: ExpiringLake) -> ExpiringLake:
    """The lake with a table of three snapshots, a minute apart."""
    lake.create("orders", snapshots=3)
    return lake


def asked(lake: ExpiringLake) -> ExpiryRequest:
    return read_expiry_request(lake.store, "acme", "lake", older_than=lake.clock.now(), keep=1)


def set_rules(lake: ExpiringLake, *rules: SnapshotRule) -> None:
    """The catalog's policy of snapshots."""
    set_policy(lake.rows, lake.catalog.definition, StoredPolicy(kind=PolicyKind.SNAPSHOTS, catalog_id="", snapshots=rules))


def claimed(store: Store, request: ExpiryRequest) -> TaskLease:
    submitted = submit_expiry(store, "acme", request)
    claim = TaskQueue(store).claim_task(submitted.id, "test", LeaseWatch(store.clock, 60.0))
    assert claim is not None
    return claim


def run(lake: ExpiringLake, request: ExpiryRequest) -> dict[str, Any]:
    """The outcome of a task from beginning to end."""
    claim = claimed(lake.store, request)
    outcome = run_expiry(lake.store, claim)
    claim.finish_task(outcome)
    return outcome


def test_request_survives_as_arguments_of_a_task(orders: ExpiringLake) -> None:
    request = replace(asked(orders), keys=(("sales", "orders"),), branches="etl/*")

    claim = claimed(orders.store, request)

    assert ExpiryRequest.from_task(claim.task) == request
    assert (claim.task.kind, claim.task.subject) == (EXPIRE_SNAPSHOTS, "lake/by hand")


def test_task_expires_and_leaves_a_record(orders: ExpiringLake) -> None:
    dry = dry_expiry(orders.store, "acme", asked(orders))
    claim = claimed(orders.store, asked(orders))

    outcome = run_expiry(orders.store, claim)

    assert (orders.snapshots("orders"), outcome["snapshots"], outcome["commits"]) == ([3], 2, 1)
    assert outcome | {"dryRun": True, "commits": 0} == dry.as_plain()
    run = next(iter(list_runs(orders.store, kind=EXPIRE_SNAPSHOTS)))
    assert (run.subject, run.counts["snapshots"], run.error) == ("lake/by hand", 2, "")
    assert claim.progress is not None and (claim.progress.done, claim.progress.total) == (2, 2)


def test_table_without_policies_is_not_looked_at(orders: ExpiringLake) -> None:
    outcome = run(orders, read_expiry_request(orders.store, "acme", "lake"))

    assert (outcome["looked"], outcome["changed"]) == (0, 0)
    assert "headwater policy set" in outcome["notes"][0]


def test_policies_decide_where_nothing_else_is_asked(orders: ExpiringLake) -> None:
    orders.create("lines", snapshots=3)
    orders.set_properties("lines", **{"history.expire.min-snapshots-to-keep": "2"})
    tag = {"action": "set-snapshot-ref", "ref-name": "v1", "type": "tag", "snapshot-id": 1, "max-ref-age-ms": 1}
    orders.change("orders", tag)
    set_rules(orders, SnapshotRule(max_age_seconds=0.0, max_ref_age_seconds=3600.0))

    outcome = run(orders, read_expiry_request(orders.store, "acme", "lake"))

    assert (orders.snapshots("orders"), orders.snapshots("lines")) == ([1, 3], [2, 3])
    assert (outcome["refs"], outcome["snapshots"]) == (0, 2)


def test_changed_policy_has_every_table_looked_at(orders: ExpiringLake) -> None:
    set_rules(orders, SnapshotRule(max_age_seconds=0.0, min_to_keep=2))
    request = read_expiry_request(orders.store, "acme", "lake")

    looked = [run(orders, request)["looked"] for _ in range(2)]
    set_rules(orders, SnapshotRule(max_age_seconds=0.0, min_to_keep=1))
    looked.append(run(orders, request)["looked"])

    assert (looked, orders.snapshots("orders")) == ([1, 0, 1], [3])


def test_rules_choose_branches(orders: ExpiringLake) -> None:
    orders.catalog.create_branch("etl/a")
    set_rules(orders, SnapshotRule(branches="etl/*", max_age_seconds=0.0))

    run(orders, read_expiry_request(orders.store, "acme", "lake"))

    assert (orders.snapshots("orders"), orders.snapshots("orders", "etl/a")) == ([1, 2, 3], [3])


def test_policy_of_metadata_files_shortens_logs_alone(orders: ExpiringLake) -> None:
    rule = StoredPolicy(kind=PolicyKind.METADATA_FILES, catalog_id="", metadata_files=MetadataFileRule(keep=2))
    set_policy(orders.rows, orders.catalog.definition, rule)
    request = read_expiry_request(orders.store, "acme", "lake")

    first, second = (run(orders, request) for _ in range(2))

    document = orders.load("orders").document
    assert (len(document["metadata-log"]), len(document["snapshots"])) == (2, 3)
    assert (first["logFiles"], first["changed"], second["looked"]) == (1, 1, 0)


def test_log_of_an_inherited_table_is_left_to_the_default_branch(orders: ExpiringLake) -> None:
    orders.catalog.create_branch("dev")
    rule = StoredPolicy(kind=PolicyKind.METADATA_FILES, catalog_id="", metadata_files=MetadataFileRule(keep=2))
    set_policy(orders.rows, orders.catalog.definition, rule)

    outcome = run(orders, read_expiry_request(orders.store, "acme", "lake"))

    assert (outcome["inherited"], outcome["changed"]) == (1, 1)
    assert orders.catalog.merge("dev").conflicts == ()


def test_registered_table_is_a_guest_until_it_is_adopted(orders: ExpiringLake) -> None:
    place = orders.warehouse / "found"
    loaded = orders.load("orders")
    document = loaded.document
    text = loaded.text.decode().replace(document["location"], place.as_uri()).replace(document["table-uuid"], str(uuid4()))
    file = place / "metadata" / "v9.metadata.json"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    table = orders.on().tables.register(orders.key("found"), file.as_uri())

    before = run(orders, asked(orders))
    adopt_guests(orders.on(), list(list_table_homes(orders.on(), keys=[table.key])))
    after = run(orders, asked(orders))

    assert (before["guests"], before["changed"], orders.snapshots("found")) == (1, 1, [3])
    assert (after["guests"], after["changed"]) == (0, 1)


def test_stopped_maintenance_puts_the_task_off(orders: ExpiringLake) -> None:
    stop_maintenance(orders.store, read_scope(orders.store, "acme", "lake"), by="ada")
    claim, files = claimed(orders.store, asked(orders)), orders.files()

    with pytest.raises(TaskNotReadyError, match="headwater maintenance resume acme/lake"):
        run_expiry(orders.store, claim)

    assert orders.files() == files


def test_catalog_that_was_created_anew_is_refused(orders: ExpiringLake) -> None:
    claim = claimed(orders.store, asked(orders))
    Catalogs(orders.rows).delete_catalog("lake")
    Catalogs(orders.rows).create_catalog("lake", base_location="file:///elsewhere")

    with pytest.raises(RefusedError, match="was created anew"):
        run_expiry(orders.store, claim)


def test_task_waits_while_its_realm_is_inactive(orders: ExpiringLake) -> None:
    claim = claimed(orders.store, asked(orders))
    realms = RealmRegistry(orders.store)
    realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)

    with pytest.raises(TaskNotReadyError):
        run_expiry(orders.store, claim)


def test_run_whose_worker_stops_writes_nothing(orders: ExpiringLake) -> None:
    claim, files = claimed(orders.store, asked(orders)), orders.files()
    claim.request_stop("its worker stops")

    with pytest.raises(TaskStoppedError):
        run_expiry(orders.store, claim)

    assert (orders.files(), orders.snapshots("orders")) == (files, [1, 2, 3])
