"""Which moves are legal, as a table of every pair."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from fake_clock import FakeClock
from headwater.errors import FencedError, RefusedError
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import Store

LEGAL = """
CREATED      -> INITIALIZING
CREATED      -> LOADING
CREATED      -> PURGING
INITIALIZING -> ACTIVE
INITIALIZING -> INACTIVE
INITIALIZING -> PURGING
LOADING      -> ACTIVE
LOADING      -> INACTIVE
LOADING      -> PURGING
ACTIVE       -> INACTIVE
INACTIVE     -> ACTIVE
INACTIVE     -> PURGING
PURGING      -> PURGED
"""
LEGAL_PAIRS = {tuple(line.replace("->", " ").split()) for line in LEGAL.strip().splitlines()}
PAIRS = [pair for pair in product(RealmState, RealmState) if pair[0] is not pair[1]]


@pytest.mark.parametrize(("source", "to"), [pair for pair in PAIRS if pair in LEGAL_PAIRS])
def test_legal_move_is_stored(
    realms: RealmRegistry, make_realm: Callable[..., Realm], clock: FakeClock, source: RealmState, to: RealmState
) -> None:
    realm = make_realm(state=source)
    clock.advance(48 * 3600)

    moved = realms.move_realm(realm, to)

    assert moved.state is to
    assert realms.read_realm("acme") == moved
    assert moved.entered[to] > realm.entered[source]


@pytest.mark.parametrize(("source", "to"), [pair for pair in PAIRS if pair not in LEGAL_PAIRS])
def test_illegal_move_is_refused_and_changes_nothing(
    realms: RealmRegistry, make_realm: Callable[..., Realm], source: RealmState, to: RealmState
) -> None:
    realm = make_realm(state=source)

    with pytest.raises(RefusedError, match=f"cannot go from {source} to {to}"):
        realms.move_realm(realm, to)

    assert realms.read_realm("acme") == realm


def test_refused_move_names_the_legal_ones(realms: RealmRegistry, make_realm: Callable[..., Realm]) -> None:
    with pytest.raises(RefusedError, match="from INACTIVE it can go to ACTIVE or PURGING"):
        realms.move_realm(make_realm(state=RealmState.INACTIVE), RealmState.CREATED)


def test_purged_realm_can_only_be_deleted(realms: RealmRegistry, make_realm: Callable[..., Realm]) -> None:
    with pytest.raises(RefusedError, match="a PURGED realm can only be deleted"):
        realms.move_realm(make_realm(state=RealmState.PURGED), RealmState.ACTIVE)


def test_move_to_the_present_state_changes_nothing(realms: RealmRegistry, make_realm: Callable[..., Realm]) -> None:
    realm = make_realm()

    assert realms.move_realm(realm, RealmState.ACTIVE) == realm


def test_purge_waits_for_the_hold(realms: RealmRegistry, make_realm: Callable[..., Realm], clock: FakeClock) -> None:
    realm = make_realm(state=RealmState.INACTIVE)
    clock.advance(24 * 3600 - 60)

    with pytest.raises(RefusedError, match="is held until 20"):
        realms.move_realm(realm, RealmState.PURGING)

    clock.advance(61)
    assert realms.move_realm(realm, RealmState.PURGING).state is RealmState.PURGING


def test_hold_of_a_realm_wins_over_the_setting(
    realms: RealmRegistry, make_realm: Callable[..., Realm], clock: FakeClock
) -> None:
    realm = realms.update_realm(make_realm(state=RealmState.INACTIVE), purge_hold_seconds=600.0)
    clock.advance(601)

    assert realms.move_realm(realm, RealmState.PURGING).state is RealmState.PURGING


def test_hold_is_as_long_as_writers_believe_in_the_realm(
    realms: RealmRegistry, make_realm: Callable[..., Realm], clock: FakeClock
) -> None:
    realm = realms.update_realm(make_realm(state=RealmState.INACTIVE), purge_hold_seconds=1.0)
    clock.advance(74)

    with pytest.raises(RefusedError, match="held until"):
        realms.move_realm(realm, RealmState.PURGING)


def test_protected_realm_is_not_purged(realms: RealmRegistry, make_realm: Callable[..., Realm]) -> None:
    realm = realms.update_realm(make_realm(state=RealmState.CREATED), deletion_protection=True)

    with pytest.raises(RefusedError, match="deletionProtection"):
        realms.move_realm(realm, RealmState.PURGING)


@pytest.fixture
def deactivated_ahead(realms: RealmRegistry, make_realm: Callable[..., Realm], clock: FakeClock) -> Realm:
    """An INACTIVE realm whose hold began by a clock five days ahead."""
    store, realm = realms.store, make_realm()
    ahead = FakeClock(clock.now() + 5 * 86_400_000_000)
    return RealmRegistry(Store(store.backend, url="memory://", settings=store.settings, clock=ahead)).move_realm(
        realm, RealmState.INACTIVE
    )


def test_hold_of_a_protected_realm_is_left_alone(realms: RealmRegistry, deactivated_ahead: Realm) -> None:
    realm = realms.update_realm(deactivated_ahead, deletion_protection=True)
    with pytest.raises(RefusedError, match="is protected from deletion"):
        realms.move_realm(realm, RealmState.PURGING)

    assert realms.read_realm("acme") == realm


def test_hold_is_left_alone_by_who_was_fenced(realms: RealmRegistry, deactivated_ahead: Realm) -> None:
    def fence() -> None:
        raise FencedError("another one does it")

    with pytest.raises(FencedError):
        realms.move_realm(deactivated_ahead, RealmState.PURGING, fence=fence)

    assert realms.read_realm("acme") == deactivated_ahead
