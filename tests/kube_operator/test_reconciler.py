"""A pass over a resource: what it does in the store, what it writes down, and when it looks again."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from desks import Desk, make_catalog, make_realm

from headwater.catalogs import Catalogs
from headwater.realms import Realms, RealmState
from headwater.store import RealmId


def state_of(desk: Desk, realm: str = "acme") -> RealmState | None:
    found = Realms(desk.store).find(realm)
    return found.state if found else None


def find_catalog(desk: Desk, name: str = "sales", realm: str = "acme") -> object | None:
    return Catalogs(Realms(desk.store).open(RealmId(realm))).find(name)


@pytest.fixture
def ready(desk: Desk) -> Desk:
    """A Realm and a Catalog, both ready."""
    desk.apply(make_realm(), make_catalog())
    desk.work()
    assert desk.is_ready("Realm", "acme")
    assert desk.is_ready("Catalog", "sales")
    return desk


def test_a_realm_and_its_catalog_become_ready(desk: Desk) -> None:
    desk.apply(make_realm(), make_catalog())

    desk.work()

    assert state_of(desk) is RealmState.ACTIVE
    assert find_catalog(desk) is not None
    assert desk.is_ready("Realm", "acme")
    assert desk.is_ready("Catalog", "sales")
