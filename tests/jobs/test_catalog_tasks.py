"""Tasks on a catalog's lake: what a person asks for runs at once, also where it waits for its time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.clock import Micros
from headwater.errors import ConflictError, RefusedError
from headwater.jobs import REPORT_FILES, catalog_of_task, lake_arguments, submit_catalog_task
from headwater.realms import RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.store import ObjectId, Versioned
from headwater.tasks import Task, TaskQueue

_HASH = hash_credentials(new_credentials())


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory://", settings=Settings(), clock=FakeClock()) as opened:
        RealmRegistry(opened).create_realm("acme")
        bootstrap(RealmRegistry(opened), "acme", _HASH)
        yield opened


@pytest.fixture
def lake(store: Store) -> CatalogDefinition:
    return catalogs(store).create_catalog("lake", base_location="s3://lake/")


def catalogs(store: Store) -> Catalogs:
    return Catalogs(RealmRegistry(store).open_realm("acme"))


def scheduled(store: Store, lake: CatalogDefinition) -> ObjectId:
    """A task that waits for tomorrow."""
    tomorrow = Micros(store.clock.now() + 86_400_000_000)
    key, arguments = RealmRegistry(store).read_realm("acme").key, lake_arguments(lake)
    made = TaskQueue(store).submit_task(
        REPORT_FILES, realm="acme", realm_key=key, subject="lake", arguments=arguments, due=tomorrow
    )
    return made.id


def ask(store: Store) -> Versioned[Task]:
    return TaskQueue(store).read_task(submit_catalog_task(store, REPORT_FILES, "acme", "lake").id)


def test_asked_for_task_is_due_at_once(store: Store, lake: CatalogDefinition) -> None:
    task = ask(store)

    assert task.value.due <= store.clock.now()
    assert task.value.arguments == lake_arguments(lake)
    assert ask(store).id == task.id


def test_scheduled_task_runs_now(store: Store, lake: CatalogDefinition) -> None:
    waiting = scheduled(store, lake)
    task = ask(store)

    assert task.id == waiting
    assert task.value.due <= store.clock.now()


def test_task_of_an_earlier_catalog_is_not_taken_for_its_own(store: Store, lake: CatalogDefinition) -> None:
    task = ask(store)
    catalogs(store).delete_catalog("lake")
    catalogs(store).create_catalog("lake", base_location="s3://lake/")

    with pytest.raises(ConflictError, match="is about an earlier catalog 'lake'"):
        ask(store)
    with pytest.raises(RefusedError, match="was created anew since this was asked for"):
        catalog_of_task(RealmRegistry(store).open_realm("acme"), task.value)
