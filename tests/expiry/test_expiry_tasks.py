from __future__ import annotations

import pytest
from msgspec.structs import replace

from expiring_lake import ExpiringLake
from headwater import Store
from headwater.errors import RefusedError
from headwater.expiry import ExpiryRequest, dry_expiry, request_of, run_expiry, submit_expiry
from headwater.jobs import EXPIRE_SNAPSHOTS, list_runs
from headwater.realms import RealmRegistry, RealmState
from headwater.tasks import LeaseWatch, TaskLease, TaskNotReadyError, TaskQueue, TaskStoppedError


@pytest.fixture
def orders(lake: ExpiringLake) -> ExpiringLake:
    """The lake with a table of three snapshots, a minute apart."""
    lake.create("orders", snapshots=3)
    return lake


def asked(lake: ExpiringLake) -> ExpiryRequest:
    return request_of(lake.store, "acme", "lake", older_than=lake.clock.now(), keep=1)


def claimed(store: Store, request: ExpiryRequest) -> TaskLease:
    submitted = submit_expiry(store, "acme", request)
    claim = TaskQueue(store).claim_task(submitted.id, "test", LeaseWatch(store.clock, 60.0))
    assert claim is not None
    return claim


def test_request_survives_as_arguments_of_a_task(orders: ExpiringLake) -> None:
    request = replace(asked(orders), keys=(("sales", "orders"),), branches="etl/*")

    claim = claimed(orders.store, request)

    assert ExpiryRequest.from_task(claim.task) == request
    assert (claim.task.kind, claim.task.subject) == (EXPIRE_SNAPSHOTS, "lake")


def test_task_expires_and_leaves_a_record(orders: ExpiringLake) -> None:
    dry = dry_expiry(orders.store, "acme", asked(orders))
    claim = claimed(orders.store, asked(orders))

    outcome = run_expiry(orders.store, claim)

    assert (orders.snapshots("orders"), outcome["snapshots"], outcome["commits"]) == ([3], 2, 1)
    assert outcome | {"dryRun": True, "commits": 0} == dry.as_plain()
    run = next(iter(list_runs(orders.store, kind=EXPIRE_SNAPSHOTS)))
    assert (run.subject, run.counts["snapshots"], run.error) == ("lake", 2, "")
    assert claim.progress is not None and (claim.progress.done, claim.progress.total) == (2, 2)


def test_nothing_goes_where_no_policy_says_so(orders: ExpiringLake) -> None:
    outcome = run_expiry(orders.store, claimed(orders.store, request_of(orders.store, "acme", "lake")))

    assert (outcome["looked"], outcome["changed"]) == (1, 0)


def test_catalog_that_was_created_anew_is_refused(orders: ExpiringLake) -> None:
    request = replace(asked(orders), catalog_id="0123456789abcdef")

    with pytest.raises(RefusedError, match="was created anew"):
        dry_expiry(orders.store, "acme", request)


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
