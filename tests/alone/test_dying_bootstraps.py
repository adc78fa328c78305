"""A realm's bootstrap that dies at any of its calls; run again it ends in the same realm, with one set of credentials."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from deaths import deaths, open_on
from grounds_of_work import HOUR, ROOT, faults_of_store

from fake_clock import FakeClock
from headwater.catalogs import Catalogs
from headwater.commits import read_head
from headwater.errors import NotFoundError, RefusedError
from headwater.realms import RealmRegistry, RealmState, bootstrap, find_root, hash_credentials, new_credentials
from headwater.store import Store
from headwater.store.backends.memory import MemoryBackend

pytestmark = pytest.mark.long

OTHER = hash_credentials(new_credentials())


def create(store: Store) -> None:
    """As a person would type it, again and again."""
    realms = RealmRegistry(store)
    if realms.find_realm("acme") is None:
        realms.create_realm("acme")
    bootstrap(realms, "acme", ROOT)


def test_bootstrap_that_died_anywhere_is_ended_by_the_next_one() -> None:
    met = 0
    for widow in deaths(MemoryBackend(), FakeClock().now(), create):
        store = widow.open()
        began = RealmRegistry(store).find_realm("acme")
        create(store)
        realm = RealmRegistry(store).read_realm("acme")
        assert realm.state is RealmState.ACTIVE, widow.call
        assert began is None or began.key == realm.key, widow.call
        assert faults_of_store(store) == [], widow.call
        met += 1
    assert met > 30


def test_bootstrap_that_died_keeps_the_credentials_that_came_first() -> None:
    for widow in deaths(MemoryBackend(), FakeClock().now(), create):
        store = widow.open()
        realms = RealmRegistry(store)
        before = None if realms.find_realm("acme") is None else find_root(realms, "acme")
        if realms.find_realm("acme") is None:
            realms.create_realm("acme")
        bootstrap(realms, "acme", OTHER)
        root = find_root(realms, "acme")
        assert root is not None
        assert root.credentials == (OTHER if before is None else before.credentials), widow.call
        principals = read_head(realms.open_realm("acme"), "principals", fresh=True)
        assert principals is not None
        assert [len(principals.index(name)) for name in ("by-name", "by-client")] == [1, 1], widow.call


def purging(realms: RealmRegistry, clock: FakeClock) -> None:
    create(realms.store)
    inactive = realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    clock.advance(HOUR)
    realms.move_realm(inactive, RealmState.PURGING)


def purged(realms: RealmRegistry, clock: FakeClock) -> None:
    purging(realms, clock)
    while realms.open_realm_for("acme", RealmState.PURGING).delete_rows(100):
        pass
    realms.move_realm(realms.read_realm("acme"), RealmState.PURGED)


@pytest.mark.parametrize("prepare", [purging, purged])
def test_realm_on_its_way_out_refuses_a_bootstrap(
    prepare: Callable[[RealmRegistry, FakeClock], None],
) -> None:
    clock = FakeClock()
    realms = RealmRegistry(open_on(MemoryBackend(), clock))
    prepare(realms, clock)

    with pytest.raises(RefusedError, match=f"cannot be bootstrapped: it is {prepare.__name__.upper()}"):
        bootstrap(realms, "acme", OTHER)


def test_realm_made_again_sees_nothing_of_the_old_one() -> None:
    clock = FakeClock()
    realms = RealmRegistry(open_on(MemoryBackend(), clock))
    create(realms.store)
    old = realms.open_realm("acme")
    Catalogs(old).create_catalog("lake", base_location="s3://lake/")
    former = realms.read_realm("acme").key
    purged_again(realms, clock)
    create(realms.store)

    assert realms.read_realm("acme").key != former
    assert Catalogs(realms.open_realm("acme")).list_catalogs() == []
    with pytest.raises((RefusedError, NotFoundError)):
        Catalogs(old).create_catalog("late", base_location="s3://late/")


def purged_again(realms: RealmRegistry, clock: FakeClock) -> None:
    inactive = realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    clock.advance(HOUR)
    realms.move_realm(inactive, RealmState.PURGING)
    while realms.open_realm_for("acme", RealmState.PURGING).delete_rows(100):
        pass
    realms.remove_realm(realms.move_realm(realms.read_realm("acme"), RealmState.PURGED))
