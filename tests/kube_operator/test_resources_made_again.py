"""A resource that is made again has another uid, and goes on with what it had: a prune and a synchronisation, a restored cluster."""

from __future__ import annotations

from typing import Any

import pytest
from desks import Desk, make_catalog, make_realm

from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.realms import Manager, Realm, Realms


def realm_of(desk: Desk) -> Realm:
    return Realms(desk.store).read("acme")


def catalog_of(desk: Desk) -> CatalogDefinition:
    return Catalogs(Realms(desk.store).open("acme")).read("sales")


@pytest.fixture
def ready(desk: Desk) -> Desk:
    """A Realm and a Catalog, both ready."""
    desk.apply(make_realm(), make_catalog())
    desk.work()
    assert desk.is_ready("Catalog", "sales")
    return desk


def make_rival(annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """Another resource for the same catalog."""
    body = make_catalog("rival", annotations=annotations)
    body["spec"] |= {"name": "sales"}
    return body


def prune(desk: Desk) -> None:
    desk.delete("Catalog", "sales")
    desk.delete("Realm", "acme")
    desk.work()


def lose(desk: Desk) -> None:
    """The resources go with the cluster, and the store is not told."""
    for kind, name in (("Catalog", "sales"), ("Realm", "acme")):
        path = desk.namespace.path(kind, name)
        desk.namespace.cluster.api.patch(path, {"metadata": {"finalizers": None}}, kind="merge", manager="a-fire")
        desk.delete(kind, name)
    desk.work()


def test_what_was_pruned_and_applied_again_is_ready(ready: Desk) -> None:
    before = catalog_of(ready)
    prune(ready)
    assert realm_of(ready).manager is None

    ready.apply(make_realm(), make_catalog())
    ready.work()

    assert ready.is_ready("Realm", "acme")
    assert ready.is_ready("Catalog", "sales")
    assert catalog_of(ready).id == before.id


def test_what_is_restored_with_its_cluster_is_ready(ready: Desk) -> None:
    lose(ready)
    ready.apply(make_catalog(), make_realm())
    ready.work()

    assert ready.is_ready("Realm", "acme")
    assert ready.is_ready("Catalog", "sales")
    assert "RealmAdopted" in [reason for reason, _ in ready.namespace.events("acme")]


def test_a_copy_of_a_cluster_that_was_succeeded_leaves_realm_and_catalogs_alone(ready: Desk) -> None:
    realms, realm = Realms(ready.store), realm_of(ready)
    assert realm.manager is not None
    successor = Manager(cluster="tests", namespace=realm.manager.namespace, name="acme", uid="made-later")
    acted = {**realm.acted, "headwater.dev/succeeded-uids": realm.manager.uid}
    realms.update(realm, manager=successor, acted=acted)
    ready.go_on(700, step=100)

    assert ready.reason("Realm", "acme", "Accepted") == ("False", "ManagedByAnother")
    assert ready.reason("Catalog", "sales", "RealmReady") == ("False", "RealmManagedByAnother")
    assert realm_of(ready).manager == successor


def test_a_catalog_that_one_resource_left_waits_for_it(ready: Desk) -> None:
    ready.delete("Catalog", "sales")
    ready.work()
    ready.apply(make_rival())
    ready.work()
    assert ready.reason("Catalog", "rival", "Accepted") == ("False", "ManagedByAnother")

    ready.apply(make_catalog())
    ready.work()
    assert ready.is_ready("Catalog", "sales")


def test_a_catalog_that_one_resource_left_passes_to_another_that_asks(ready: Desk) -> None:
    ready.delete("Catalog", "sales")
    ready.work()
    ready.apply(make_rival({"headwater.dev/adopt": "acme/sales"}))
    ready.work()

    assert ready.is_ready("Catalog", "rival")
