"""A resource that is made again has another uid, and goes on with what it had: a prune and a synchronisation, a restored cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from desks import Desk, make_catalog, make_realm

from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.realms import Realm, RealmManager, RealmRegistry


def realm_of(desk: Desk) -> Realm:
    return RealmRegistry(desk.store).read_realm("acme")


def catalog_of(desk: Desk) -> CatalogDefinition:
    return Catalogs(RealmRegistry(desk.store).open_realm("acme")).read_catalog("sales")


def made_ready(desk: Desk) -> Desk:
    desk.apply(make_realm(), make_catalog())
    desk.work()
    assert desk.is_ready("Catalog", "sales")
    return desk


@pytest.fixture
def ready(desk: Desk) -> Desk:
    """A Realm and a Catalog, both ready."""
    return made_ready(desk)


@pytest.fixture
def nameless(make_desk: Callable[..., Desk]) -> Desk:
    """The same in a cluster that nobody gave a name."""
    return made_ready(make_desk(cluster=""))


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
        desk.namespace.cluster.api.patch_resource(path, {"metadata": {"finalizers": None}}, kind="merge", manager="a-fire")
        desk.delete(kind, name)
    desk.work()


def test_resource_pruned_and_applied_again_is_ready(ready: Desk) -> None:
    before = catalog_of(ready)
    prune(ready)
    assert realm_of(ready).manager is None

    ready.apply(make_realm(), make_catalog())
    ready.work()

    assert ready.is_ready("Realm", "acme")
    assert ready.is_ready("Catalog", "sales")
    assert catalog_of(ready).id == before.id


def test_resource_restored_with_its_cluster_is_ready(ready: Desk) -> None:
    lose(ready)
    ready.apply(make_catalog(), make_realm())
    ready.work()

    assert ready.is_ready("Realm", "acme")
    assert ready.is_ready("Catalog", "sales")
    assert "RealmAdopted" in [reason for reason, _ in ready.namespace.events("acme")]


def test_nameless_cluster_leaves_a_live_realm_alone(nameless: Desk) -> None:
    before = realm_of(nameless), catalog_of(nameless)
    lose(nameless)
    nameless.apply(make_catalog(), make_realm())
    nameless.go_on(60, step=10)

    assert nameless.reason("Realm", "acme", "Accepted") == ("False", "ManagedByAnother")
    assert nameless.reason("Realm", "acme", "Stalled") == ("True", "ManagedByAnother")
    assert nameless.reason("Catalog", "sales", "RealmReady") == ("False", "RealmManagedByAnother")
    assert (realm_of(nameless), catalog_of(nameless)) == before


def test_nameless_cluster_takes_all_back_by_one_annotation(nameless: Desk) -> None:
    lose(nameless)
    nameless.apply(make_catalog(), make_realm(annotations={"headwater.dev/adopt": "acme"}))
    nameless.work()

    assert nameless.is_ready("Realm", "acme")
    assert nameless.is_ready("Catalog", "sales")


def test_nameless_cluster_takes_back_what_was_pruned(nameless: Desk) -> None:
    prune(nameless)
    nameless.apply(make_realm(), make_catalog())
    nameless.work()

    assert nameless.is_ready("Realm", "acme")
    assert nameless.is_ready("Catalog", "sales")


def test_refused_catalog_of_a_nameless_cluster_goes_without_harm(nameless: Desk) -> None:
    before = catalog_of(nameless)
    lose(nameless)
    nameless.apply(make_catalog(), make_realm())
    nameless.work()
    nameless.delete("Realm", "acme")
    nameless.work()
    nameless.delete("Catalog", "sales")
    nameless.work()

    assert nameless.namespace.find("Catalog", "sales") is None
    assert catalog_of(nameless) == before


def test_copy_of_a_succeeded_cluster_leaves_everything_alone(ready: Desk) -> None:
    realms, realm = RealmRegistry(ready.store), realm_of(ready)
    assert realm.manager is not None
    successor = RealmManager(cluster="tests", namespace=realm.manager.namespace, name="acme", uid="made-later")
    acted = {**realm.acted, "headwater.dev/succeeded-uids": realm.manager.uid}
    realms.update_realm(realm, manager=successor, acted=acted)
    ready.go_on(700, step=100)

    assert ready.reason("Realm", "acme", "Accepted") == ("False", "ManagedByAnother")
    assert ready.reason("Catalog", "sales", "RealmReady") == ("False", "RealmManagedByAnother")
    assert realm_of(ready).manager == successor


def test_catalog_that_one_resource_left_waits_for_it(ready: Desk) -> None:
    ready.delete("Catalog", "sales")
    ready.work()
    ready.apply(make_rival())
    ready.work()
    assert ready.reason("Catalog", "rival", "Accepted") == ("False", "ManagedByAnother")

    ready.apply(make_catalog())
    ready.work()
    assert ready.is_ready("Catalog", "sales")


def test_catalog_that_one_resource_left_passes_to_another_that_asks(ready: Desk) -> None:
    ready.delete("Catalog", "sales")
    ready.work()
    ready.apply(make_rival({"headwater.dev/adopt": "acme/sales"}))
    ready.work()

    assert ready.is_ready("Catalog", "rival")
