"""Handles: who may write into a realm, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from headwater.commits import commit_change
from headwater.errors import MissingError, RefusedError
from headwater.realms import CredentialsHash, Realm, Realms, RealmState, bootstrap
from headwater.store import RealmStore, Reference

TTL_SECONDS = 60


def write(rows: RealmStore) -> Reference:
    return rows.create_reference(f"test-{rows.new_id()}")


@pytest.fixture
def served(realms: Realms, credentials_hash: CredentialsHash) -> Realm:
    realms.create("acme")
    return bootstrap(realms, "acme", credentials_hash)


def purge(realms: Realms, clock: FakeClock) -> None:
    realm = realms.move(realms.read("acme"), RealmState.INACTIVE)
    clock.advance(24 * 3600 + 1)
    realm = realms.move(realm, RealmState.PURGING)
    realms.open_for("acme", RealmState.PURGING).delete_rows(10_000)
    realms.remove(realms.move(realm, RealmState.PURGED))


def test_a_user_writes_into_an_active_realm(realms: Realms, served: Realm) -> None:
    rows = realms.open("acme")

    assert rows.find_reference(write(rows).name)


def test_a_user_reads_an_inactive_realm_and_cannot_write(realms: Realms, served: Realm) -> None:
    realms.move(served, RealmState.INACTIVE)
    rows = realms.open("acme")

    assert rows.read_reference("root").pointer is not None
    with pytest.raises(RefusedError, match="is INACTIVE: it serves users only while it is ACTIVE"):
        write(rows)


def test_a_handle_notices_within_its_ttl_that_the_realm_went_inactive(realms: Realms, served: Realm, clock: FakeClock) -> None:
    rows = realms.open("acme")
    realms.move(served, RealmState.INACTIVE)
    clock.advance(TTL_SECONDS)

    with pytest.raises(RefusedError, match="is INACTIVE"):
        write(rows)


def test_a_handle_looks_again_at_the_edge_of_its_ttl_and_not_before(realms: Realms, served: Realm, clock: FakeClock) -> None:
    rows = realms.open("acme")
    realms.move(served, RealmState.INACTIVE)
    clock.advance(TTL_SECONDS - 0.001)
    assert write(rows).realm == served.key
    clock.advance(0.001)

    with pytest.raises(RefusedError, match="is INACTIVE"):
        write(rows)


def test_a_handle_from_before_a_purge_reads_that_nothing_is_there(realms: Realms, served: Realm, clock: FakeClock) -> None:
    late = realms.open("acme")
    assert late.find_reference("root") is not None
    purge(realms, clock)

    assert late.find_reference("root") is None


def test_a_handle_serves_a_realm_that_was_activated_again(realms: Realms, served: Realm, clock: FakeClock) -> None:
    rows = realms.open("acme")
    inactive = realms.move(served, RealmState.INACTIVE)
    clock.advance(TTL_SECONDS)
    with pytest.raises(RefusedError):
        write(rows)

    realms.move(inactive, RealmState.ACTIVE)

    assert rows.find_reference(write(rows).name)


def test_a_handle_from_before_a_purge_writes_nothing_into_the_realm_created_again(
    realms: Realms, served: Realm, clock: FakeClock, credentials_hash: CredentialsHash
) -> None:
    late = realms.open("acme")
    purge(realms, clock)
    realms.create("acme")
    bootstrap(realms, "acme", credentials_hash)

    with pytest.raises(RefusedError, match="created again"):
        write(late)
    assert late.is_empty()


def test_a_commit_prepared_before_a_purge_lands_nowhere(realms: Realms, served: Realm, clock: FakeClock) -> None:
    late = realms.open("acme")
    purge(realms, clock)

    with pytest.raises(MissingError):
        commit_change(late, "catalogs", lambda tx: tx.set_message("late"))
    assert late.is_empty()


def test_a_handle_on_a_deleted_realm_says_so(realms: Realms, served: Realm, clock: FakeClock) -> None:
    late = realms.open("acme")
    purge(realms, clock)

    with pytest.raises(RefusedError, match="was deleted"):
        write(late)


def test_a_maintenance_handle_is_refused_in_another_state(realms: Realms, served: Realm) -> None:
    with pytest.raises(RefusedError, match="is ACTIVE: this handle writes only while it is PURGING"):
        realms.open_for("acme", RealmState.PURGING)


def test_a_maintenance_handle_looks_before_every_write(realms: Realms, make_realm: Callable[..., Realm]) -> None:
    realm = make_realm(state=RealmState.INITIALIZING)
    rows = realms.open_for("acme", RealmState.INITIALIZING)
    rows.create_reference("one")
    realms.move(realm, RealmState.ACTIVE)

    with pytest.raises(RefusedError, match="is ACTIVE"):
        rows.create_reference("two")
