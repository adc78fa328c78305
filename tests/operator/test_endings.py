"""Resources that are deleted and never made anything go at once, whatever kept them from making it, and whatever their policy says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from desks import Desk, make_catalog, make_realm

from faulty_backend import FaultyBackend
from headwater.catalogs import Catalogs
from headwater.jobs import PURGE
from headwater.realms import RealmRegistry, RealmState
from headwater.settings import Settings
from headwater.store import RealmId, Store
from headwater.tasks import TaskQueue

POLICIES = ["Retain", "Purge"]
INVALID = {"headwater.dev/unheard-of": "yes"}


def no_realm(desk: Desk) -> None:
    """Nobody ever declared its Realm."""


def a_realm_that_is_refused(desk: Desk) -> None:
    desk.apply(make_realm(annotations=INVALID))


def a_realm_that_cannot_keep_its_credentials(desk: Desk) -> None:
    desk.put_in_the_way()
    desk.apply(make_realm())


def a_realm_that_sleeps(desk: Desk) -> None:
    desk.apply(make_realm(state="Inactive"))


def a_realm_of_another(desk: Desk) -> None:
    desk.apply(make_realm("theirs", realmId="acme"))
    desk.work()
    desk.apply(make_realm())


def a_realm_that_is_being_deleted(desk: Desk) -> None:
    desk.apply(make_realm(deletionPolicy="Purge"))
    desk.work()
    desk.delete("Realm", "acme")


def a_realm_that_was_purged_by_hand(desk: Desk) -> None:
    desk.apply(make_realm())
    desk.work()
    realms = RealmRegistry(desk.store)
    realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    desk.clock.advance(61)
    realms.move_realm(realms.read_realm("acme"), RealmState.PURGING)
    TaskQueue(desk.store).submit_task(
        PURGE, realm=RealmId("acme"), realm_key=realms.read_realm("acme").key, due=desk.clock.now()
    )
    desk.work_off()


def a_catalog_of_another(desk: Desk) -> None:
    theirs = make_catalog("theirs")
    theirs["spec"]["name"] = "sales"
    desk.apply(make_realm(), theirs)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "prepare",
    [
        no_realm,
        a_realm_that_is_refused,
        a_realm_that_cannot_keep_its_credentials,
        a_realm_that_sleeps,
        a_realm_of_another,
        a_realm_that_is_being_deleted,
        a_realm_that_was_purged_by_hand,
        a_catalog_of_another,
    ],
    ids=lambda prepare: prepare.__name__,
)
def test_catalog_that_made_nothing_is_let_go(desk: Desk, prepare: Callable[[Desk], None], policy: str) -> None:
    prepare(desk)
    desk.work()
    desk.apply(make_catalog(deletionPolicy=policy))
    desk.work()

    desk.delete("Catalog", "sales")
    desk.work()

    assert desk.namespace.find("Catalog", "sales") is None


@pytest.mark.parametrize("policy", POLICIES)
def test_catalog_whose_spec_was_refused_is_let_go(desk: Desk, policy: str) -> None:
    desk.apply(make_realm(), make_catalog(deletionPolicy=policy, annotations=INVALID))
    desk.work()
    assert desk.reason("Catalog", "sales") == ("False", "SpecInvalid")

    desk.delete("Catalog", "sales")
    desk.work()

    assert desk.namespace.find("Catalog", "sales") is None


def test_catalog_of_another_is_left_alone_by_a_purge(desk: Desk) -> None:
    a_catalog_of_another(desk)
    desk.work()
    desk.apply(make_catalog(deletionPolicy="Purge", annotations={"headwater.dev/confirm-purge": "acme/sales"}))
    desk.work()

    desk.delete("Catalog", "sales")
    desk.work()

    assert desk.namespace.find("Catalog", "sales") is None
    assert [reason for reason, _ in desk.namespace.events("sales", kind="Catalog")][-1] == "ManagedByAnother"
    assert Catalogs(RealmRegistry(desk.store).open_realm(RealmId("acme"))).find_catalog("sales") is not None


def test_catalog_that_is_its_own_waits_for_its_confirmation(desk: Desk) -> None:
    desk.apply(make_realm(), make_catalog(deletionPolicy="Purge"))
    desk.work()
    desk.apply(make_realm(state="Inactive"))
    desk.work()

    desk.delete("Catalog", "sales")
    desk.work()

    assert desk.reason("Catalog", "sales", "Deleting") == ("True", "RealmNotActive")


@pytest.fixture
def faults(memory_store: Store) -> FaultyBackend:
    return FaultyBackend(memory_store.backend)


@pytest.fixture
def faulty_desk(faults: FaultyBackend, memory_store: Store, make_desk: Callable[..., Desk]) -> Desk:
    return make_desk(Store(faults, url=memory_store.url, settings=memory_store.settings, clock=memory_store.clock))


def test_catalog_without_a_realm_goes_while_the_store_is_away(faulty_desk: Desk, faults: FaultyBackend) -> None:
    faulty_desk.apply(make_catalog(deletionPolicy="Purge"))
    faulty_desk.work()
    faults.fail(times=10_000)

    faulty_desk.delete("Catalog", "sales")
    faulty_desk.work()

    assert faulty_desk.namespace.find("Catalog", "sales") is None


def test_catalog_that_may_exist_stays_until_the_store_returns(faulty_desk: Desk, faults: FaultyBackend) -> None:
    faulty_desk.apply(make_realm())
    faulty_desk.work()
    faults.fail(times=10_000)
    faulty_desk.apply(make_catalog())
    faulty_desk.work()
    faulty_desk.delete("Catalog", "sales")
    faulty_desk.go_on(60)
    assert faulty_desk.reason("Catalog", "sales", "Deleting") == ("True", "StoreUnavailable")

    faults.heal()
    faulty_desk.go_on(60)

    assert faulty_desk.namespace.find("Catalog", "sales") is None


@pytest.fixture
def strict_desk(memory_store: Store, make_desk: Callable[..., Desk]) -> Desk:
    """Of an operator that refuses holds which its API server takes."""
    strict = Settings(commit_timeout_seconds=300)
    return make_desk(Store(memory_store.backend, url=memory_store.url, settings=strict, clock=memory_store.clock))


def test_realm_whose_spec_was_refused_is_let_go(strict_desk: Desk) -> None:
    strict_desk.apply(make_realm(deletionPolicy="Purge", purgeHold="2m"))
    strict_desk.work()
    assert strict_desk.reason("Realm", "acme") == ("False", "SpecInvalid")

    strict_desk.delete("Realm", "acme")
    strict_desk.work()

    assert strict_desk.namespace.find("Realm", "acme") is None


def test_realm_that_was_made_before_its_spec_was_refused_stays(strict_desk: Desk) -> None:
    strict_desk.apply(make_realm(deletionPolicy="Purge"))
    strict_desk.work()
    strict_desk.apply(make_realm(deletionPolicy="Purge", purgeHold="2m"))

    strict_desk.delete("Realm", "acme")
    strict_desk.work()

    assert strict_desk.reason("Realm", "acme", "Deleting") == ("True", "SpecInvalid")
