"""What a task does when the world around it has moved on: its realm is gone or sleeps, its catalog was made anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from fake_clock import FakeClock
from headwater import iceberg
from headwater.catalogs import CatalogDefinition, Catalogs, ImportSpec
from headwater.errors import HeadwaterError, NotFoundError, UnavailableError
from headwater.jobs import run_collection, run_import, run_purge
from headwater.jobs.task_runs import list_runs
from headwater.purge.realm_purge import purge_realm
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import Store
from headwater.tasks import TaskLease, TaskQueue
from lakes import FOUND, HOUR, HandmadeSurvey, lake, make_realm, rows_of

SPEC = ImportSpec(name="initial", locations=("s3://lake/",))


def claim_of(store: Store, kind: str, realm: Realm, **arguments: Any) -> TaskLease:
    tasks = TaskQueue(store)
    claim = tasks.claim_task(tasks.submit_task(kind, realm=realm.id, realm_key=realm.key, arguments=arguments).id, "worker")
    assert claim is not None
    return claim


def arguments_of(catalog: CatalogDefinition) -> dict[str, str]:
    return {"catalog": catalog.name, "catalogId": catalog.id, "import": SPEC.name, "digest": SPEC.digest()}


def make_catalog(store: Store) -> CatalogDefinition:
    return Catalogs(rows_of(store)).create_catalog("lake", base_location="s3://lake/", imports=(SPEC,))


@pytest.fixture
def purged(store: Store, clock: FakeClock) -> Realm:
    realms = RealmRegistry(store)
    inactive = realms.move_realm(make_realm(store), RealmState.INACTIVE)
    clock.advance(HOUR)
    realms.move_realm(inactive, RealmState.PURGING)
    purge_realm(store, "acme")
    return realms.read_realm("acme")


@pytest.mark.parametrize("is_recreated", [False, True])
def test_purge_killed_before_its_end_succeeds_without_its_entry(store: Store, purged: Realm, is_recreated: bool) -> None:
    claim = claim_of(store, "purge", purged)
    RealmRegistry(store).remove_realm(purged)
    if is_recreated:
        make_realm(store)

    assert run_purge(store, claim)["rowsDeleted"] == 0


def test_purge_of_a_realm_that_never_was_is_refused(store: Store, purged: Realm) -> None:
    claim = claim_of(store, "purge", purged)
    RealmRegistry(store).remove_realm(purged)
    RealmRegistry(store).forget_purged_keys([purged.key])

    with pytest.raises(NotFoundError):
        run_purge(store, claim)


def test_collection_whose_realm_falls_asleep_is_tried_again(store: Store) -> None:
    claim = claim_of(store, "gc", make_realm(store))
    check = claim.check_stop

    def fall_asleep() -> None:
        check()
        RealmRegistry(store).move_realm(RealmRegistry(store).read_realm("acme"), RealmState.INACTIVE)

    claim.check_stop = fall_asleep  # type: ignore[method-assign]
    with pytest.raises(UnavailableError, match="INACTIVE"):
        run_collection(store, claim)


def test_import_whose_realm_falls_asleep_is_tried_again(store: Store, clock: FakeClock) -> None:
    realm = make_realm(store)
    claim = claim_of(store, "import", realm, **arguments_of(make_catalog(store)))

    def survey(scope: iceberg.SurveyScope, progress: object) -> Iterable[iceberg.SurveyOutcome]:
        RealmRegistry(store).move_realm(realm, RealmState.INACTIVE)
        clock.advance(61)
        return [FOUND]

    with pytest.raises(UnavailableError, match="INACTIVE"):
        run_import(store, claim, survey=HandmadeSurvey(survey))


def test_import_never_fills_a_later_catalog_of_the_name(store: Store) -> None:
    realm = make_realm(store)
    claim = claim_of(store, "import", realm, **arguments_of(make_catalog(store)))

    def survey(scope: iceberg.SurveyScope, progress: object) -> Iterable[iceberg.SurveyOutcome]:
        Catalogs(rows_of(store)).delete_catalog("lake")
        make_catalog(store)
        return [FOUND]

    with pytest.raises(HeadwaterError):
        run_import(store, claim, survey=HandmadeSurvey(survey))

    assert lake(store).count() == 0
    assert list_runs(store, kind="import")[0].error
