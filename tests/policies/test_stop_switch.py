"""Maintenance is stopped for a store, a realm or a catalog, until somebody resumes it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.errors import MaintenanceStoppedError, NotFoundError, RefusedError
from headwater.policies import (
    StopScope,
    check_not_stopped,
    find_stops_around,
    list_stops,
    read_scope,
    resume_maintenance,
    stop_maintenance,
)
from headwater.purge import purge_realm
from headwater.realms import RealmRegistry, RealmState, bootstrap, hash_credentials, new_credentials

_HASH = hash_credentials(new_credentials())
LAKE, REALM, STORE = ("acme", "lake"), ("acme", ""), ("", "")


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory://", settings=Settings(), clock=FakeClock()) as opened:
        yield opened


@pytest.fixture
def lake(store: Store) -> CatalogDefinition:
    """In realm ``acme``, beside the catalog ``other``."""
    realms = RealmRegistry(store)
    realms.create_realm("acme")
    bootstrap(realms, "acme", _HASH)
    catalogs = Catalogs(realms.open_realm("acme"))
    catalogs.create_catalog("other", base_location="s3://other/")
    return catalogs.create_catalog("lake", base_location="s3://lake/")


def is_stopped(store: Store, catalog: CatalogDefinition | None = None) -> bool:
    key = RealmRegistry(store).read_realm("acme").key
    try:
        check_not_stopped(store, "acme", key, "" if catalog is None else catalog.id)
    except MaintenanceStoppedError:
        return True
    return False


@pytest.mark.parametrize("scope", [STORE, REALM, LAKE])
def test_stop_holds_for_all_that_lies_in_it(store: Store, lake: CatalogDefinition, scope: tuple[str, str]) -> None:
    other = Catalogs(RealmRegistry(store).open_realm("acme")).read_catalog("other")
    stop_maintenance(store, read_scope(store, *scope), by="ann")

    assert is_stopped(store, lake)
    assert is_stopped(store, other) == (scope != LAKE)
    assert is_stopped(store) == (scope != LAKE)

    resume_maintenance(store, read_scope(store, *scope))

    assert not is_stopped(store, lake) and not is_stopped(store)


def test_refusal_says_who_stopped_it_and_how_it_goes_on(store: Store, lake: CatalogDefinition) -> None:
    scope = read_scope(store, *LAKE)
    stop_maintenance(store, scope, by="ann", why="an audit")

    with pytest.raises(MaintenanceStoppedError) as told:
        check_not_stopped(store, "acme", scope.realm_key, lake.id, catalog="lake")

    assert str(told.value).startswith("maintenance of catalog acme/lake was stopped by ann at 20")
    assert str(told.value).endswith(": an audit; `headwater maintenance resume acme/lake` ends that")


def test_first_stop_stays_until_it_is_resumed(store: Store, lake: CatalogDefinition) -> None:
    first = stop_maintenance(store, StopScope(), by="ann", why="an audit")

    assert stop_maintenance(store, StopScope(), by="bob") == first
    assert resume_maintenance(store, StopScope()) == first
    assert resume_maintenance(store, StopScope()) is None


def test_stops_are_listed_from_the_widest_on(store: Store, lake: CatalogDefinition) -> None:
    for scope in (LAKE, STORE, REALM):
        stop_maintenance(store, read_scope(store, *scope), by="ann")

    listed = ["the store", "realm acme", "catalog acme/lake"]
    assert [str(stop.scope) for stop in list_stops(store)] == listed
    assert [str(stop.scope) for stop in find_stops_around(store, read_scope(store, *LAKE))] == listed
    assert [str(stop.scope) for stop in list_stops(store, realm="none")] == ["the store"]


def test_store_without_a_realm_can_be_stopped(store: Store) -> None:
    assert list_stops(store) == [] and find_stops_around(store, StopScope()) == []

    stop_maintenance(store, StopScope(), by="ann")

    assert len(list_stops(store)) == 1


def test_unknown_names_and_long_words_are_refused(store: Store, lake: CatalogDefinition) -> None:
    with pytest.raises(NotFoundError):
        read_scope(store, "acme", "missing")
    with pytest.raises(NotFoundError):
        read_scope(store, "missing")
    with pytest.raises(RefusedError, match="at most 300 characters"):
        stop_maintenance(store, StopScope(), by="ann", why="x" * 301)


def test_stops_go_with_their_realm(store: Store, lake: CatalogDefinition) -> None:
    stop_maintenance(store, read_scope(store, *LAKE), by="ann")
    realms = RealmRegistry(store)
    realms.update_realm(realms.read_realm("acme"), purge_hold_seconds=0.0)
    realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    store.clock.sleep(3600)
    realms.move_realm(realms.read_realm("acme"), RealmState.PURGING)
    purge_realm(store, "acme")
    realms.remove_realm(realms.read_realm("acme"))

    assert list_stops(store) == []
