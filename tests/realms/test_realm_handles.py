"""Handles: who may write into a realm, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from headwater.commits import commit_change
from headwater.errors import NotFoundError, RefusedError
from headwater.realms import CredentialsHash, Realm, RealmRegistry, RealmState, bootstrap
from headwater.store import RealmStore, Reference

TTL_SECONDS = 60


def write(rows: RealmStore) -> Reference:
    return rows.create_reference(f"test-{rows.new_id()}")


@pytest.fixture
def served(realms: RealmRegistry, credentials_hash: CredentialsHash) -> Realm:
    realms.create_realm("acme")
    return bootstrap(realms, "acme", credentials_hash)


def purge(realms: RealmRegistry, clock: FakeClock) -> None:
    realm = realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)
    clock.advance(24 * 3600 + 1)
    realm = realms.move_realm(realm, RealmState.PURGING)
    realms.open_realm_for("acme", RealmState.PURGING).delete_rows(10_000)
    realms.remove_realm(realms.move_realm(realm, RealmState.PURGED))


def test_user_writes_into_an_active_realm(realms: RealmRegistry, served: Realm) -> None:
    rows = realms.open_realm("acme")

    assert rows.find_reference(write(rows).name)


def test_user_reads_an_inactive_realm_and_cannot_write(realms: RealmRegistry, served: Realm) -> None:
    realms.move_realm(served, RealmState.INACTIVE)
    rows = realms.open_realm("acme")

    assert rows.read_reference("root").pointer is not None
    with pytest.raises(RefusedError, match="is INACTIVE: it serves users only while it is ACTIVE"):
        write(rows)


def test_handle_notices_within_its_ttl_that_the_realm_went_inactive(
    realms: RealmRegistry, served: Realm, clock: FakeClock
) -> None:
    rows = realms.open_realm("acme")
    realms.move_realm(served, RealmState.INACTIVE)
    clock.advance(TTL_SECONDS)

    with pytest.raises(RefusedError, match="is INACTIVE"):
        write(rows)


def test_handle_looks_again_at_the_edge_of_its_ttl(realms: RealmRegistry, served: Realm, clock: FakeClock) -> None:
    rows = realms.open_realm("acme")
    realms.move_realm(served, RealmState.INACTIVE)
    clock.advance(TTL_SECONDS - 0.001)
    assert write(rows).realm == served.key
    clock.advance(0.001)

    with pytest.raises(RefusedError, match="is INACTIVE"):
        write(rows)


def test_handle_from_before_a_purge_reads_that_nothing_is_there(realms: RealmRegistry, served: Realm, clock: FakeClock) -> None:
    late = realms.open_realm("acme")
    assert late.find_reference("root") is not None
    purge(realms, clock)

    assert late.find_reference("root") is None


def test_handle_serves_a_realm_that_was_activated_again(realms: RealmRegistry, served: Realm, clock: FakeClock) -> None:
    rows = realms.open_realm("acme")
    inactive = realms.move_realm(served, RealmState.INACTIVE)
    clock.advance(TTL_SECONDS)
    with pytest.raises(RefusedError):
        write(rows)

    realms.move_realm(inactive, RealmState.ACTIVE)

    assert rows.find_reference(write(rows).name)


def test_handle_from_before_a_purge_writes_nothing_after_it(
    realms: RealmRegistry, served: Realm, clock: FakeClock, credentials_hash: CredentialsHash
) -> None:
    late = realms.open_realm("acme")
    purge(realms, clock)
    realms.create_realm("acme")
    bootstrap(realms, "acme", credentials_hash)

    with pytest.raises(RefusedError, match="created again"):
        write(late)
    assert late.is_empty()


def test_commit_prepared_before_a_purge_lands_nowhere(realms: RealmRegistry, served: Realm, clock: FakeClock) -> None:
    late = realms.open_realm("acme")
    purge(realms, clock)

    with pytest.raises(NotFoundError):
        commit_change(late, "catalogs", lambda tx: tx.set_message("late"))
    assert late.is_empty()


def test_handle_on_a_deleted_realm_says_so(realms: RealmRegistry, served: Realm, clock: FakeClock) -> None:
    late = realms.open_realm("acme")
    purge(realms, clock)

    with pytest.raises(RefusedError, match="was deleted"):
        write(late)


def test_maintenance_handle_is_refused_in_another_state(realms: RealmRegistry, served: Realm) -> None:
    with pytest.raises(RefusedError, match="is ACTIVE: this handle writes only while it is PURGING"):
        realms.open_realm_for("acme", RealmState.PURGING)


def test_maintenance_handle_looks_before_every_write(realms: RealmRegistry, make_realm: Callable[..., Realm]) -> None:
    realm = make_realm(state=RealmState.INITIALIZING)
    rows = realms.open_realm_for("acme", RealmState.INITIALIZING)
    rows.create_reference("one")
    realms.move_realm(realm, RealmState.ACTIVE)

    with pytest.raises(RefusedError, match="is ACTIVE"):
        rows.create_reference("two")
