"""Definitions: created once, changed as a whole, deleted for good."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from headwater.commits import commit_change, read_head
from headwater.errors import NotFoundError, RefusedError, SwapConflictError
from headwater.index import IndexValue
from headwater.realms import REALMS, Realm, RealmRegistry, RealmState
from headwater.store import StoredObject, object_type


@object_type("test-row")
class Row(StoredObject):
    text: str = ""


def test_new_realm_is_created_and_nothing_else(realms: RealmRegistry) -> None:
    realm = realms.create_realm("acme", properties={"team": "lake"})

    assert realm.state is RealmState.CREATED
    assert realm.properties == {"team": "lake"}
    assert realm.entered == {"CREATED": realm.created}
    assert realms.read_realm("acme") == realm


def test_second_realm_of_the_same_id_is_beaten(realms: RealmRegistry) -> None:
    realms.create_realm("acme")

    with pytest.raises(SwapConflictError, match="there is a realm 'acme' already; it is CREATED"):
        realms.create_realm("acme")


@pytest.mark.parametrize("realm_id", ["", "a b", "é", "a/b", "x" * 129, "a\n"])
def test_malformed_id_is_refused(realms: RealmRegistry, realm_id: str) -> None:
    with pytest.raises(RefusedError, match="is not a realm id"):
        realms.create_realm(realm_id)


@pytest.mark.parametrize("realm_id", ["::system::", "::mine", "a::b"])
def test_reserved_id_is_refused_with_its_own_sentence(realms: RealmRegistry, realm_id: str) -> None:
    with pytest.raises(RefusedError, match="is reserved"):
        realms.create_realm(realm_id)


def test_store_without_realms_lists_none(realms: RealmRegistry) -> None:
    assert realms.list_realms() == []
    assert realms.find_realm("acme") is None
    assert realms.purged_keys() == {}


def test_entry_without_a_definition_hides_no_other_realm(realms: RealmRegistry) -> None:
    for realm_id in ("a", "c", "d"):
        realms.create_realm(realm_id)
    commit_change(realms.store.system, REALMS, lambda tx: tx.index("by-id").put(b"b", IndexValue(None, b"")))
    listed = realms.list_realms()

    assert [realm.id for realm in listed] == ["a", "c", "d"]
    assert [row.realm for row in listed.unreadable] == ["b"]


def test_realms_are_listed_by_id(realms: RealmRegistry) -> None:
    for realm_id in ("b", "a", "c"):
        realms.create_realm(realm_id)

    assert [realm.id for realm in realms.list_realms()] == ["a", "b", "c"]


def test_missing_realm_is_named(realms: RealmRegistry) -> None:
    with pytest.raises(NotFoundError, match="there is no realm 'acme'"):
        realms.read_realm("acme")


def test_update_keeps_key_and_creation_time(realms: RealmRegistry, clock: FakeClock) -> None:
    realm = realms.create_realm("acme")
    clock.advance(5)

    updated = realms.update_realm(realm, drift_policy="Report")

    assert (updated.key, updated.created) == (realm.key, realm.created)
    assert updated.updated > realm.updated


def test_update_that_changes_nothing_makes_no_commit(realms: RealmRegistry) -> None:
    realm = realms.create_realm("acme", properties={"a": "b"})
    before = read_head(realms.store.system, "realms", fresh=True)

    assert realms.update_realm(realm, properties={"a": "b"}) == realm
    assert read_head(realms.store.system, "realms", fresh=True).id == before.id


def test_update_of_something_else_is_beaten(realms: RealmRegistry) -> None:
    seen = realms.create_realm("acme")
    realms.update_realm(seen, properties={"a": "b"})

    with pytest.raises(SwapConflictError, match="was changed meanwhile"):
        realms.update_realm(seen, drift_policy="Report")


def test_update_cannot_give_a_realm_another_key(realms: RealmRegistry) -> None:
    realm = realms.create_realm("acme")

    with pytest.raises(RefusedError, match="no field key"):
        realms.update_realm(realm, key=7)  # type: ignore[call-arg]


def test_concurrent_moves_have_one_winner(realms: RealmRegistry, make_realm: Callable[..., Realm]) -> None:
    seen = make_realm(state=RealmState.INITIALIZING)
    outcomes: list[str] = []

    def move(to: RealmState) -> None:
        try:
            outcomes.append(realms.move_realm(seen, to).state)
        except SwapConflictError:
            outcomes.append("beaten")

    threads = [
        threading.Thread(target=move, args=[to]) for to in (RealmState.ACTIVE, RealmState.INACTIVE, RealmState.PURGING) * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert outcomes.count("beaten") == len(threads) - 1
    assert realms.read_realm("acme").state in outcomes


@pytest.mark.parametrize("state", [state for state in RealmState if state is not RealmState.PURGED])
def test_purged_realms_alone_are_deleted(realms: RealmRegistry, make_realm: Callable[..., Realm], state: RealmState) -> None:
    with pytest.raises(RefusedError, match="only a PURGED realm"):
        realms.remove_realm(make_realm(state=state))


def test_deleted_realm_leaves_its_key_among_the_purged(realms: RealmRegistry, make_realm: Callable[..., Realm]) -> None:
    realm = make_realm(state=RealmState.PURGED)

    realms.remove_realm(realm)

    assert realms.find_realm("acme") is None
    assert list(realms.purged_keys()) == [realm.key]


def test_realm_with_a_row_left_is_not_deleted(realms: RealmRegistry, make_realm: Callable[..., Realm]) -> None:
    realm = make_realm(state=RealmState.PURGED)
    late = realms.store.rows(realm.id, realm.key)
    late.write_objects([(late.new_id(), Row())])

    with pytest.raises(RefusedError, match="has rows again"):
        realms.remove_realm(realm)

    assert realms.read_realm("acme") == realm


def test_forgotten_purged_key_is_gone(realms: RealmRegistry, make_realm: Callable[..., Realm]) -> None:
    realm = make_realm(state=RealmState.PURGED)
    realms.remove_realm(realm)

    assert realms.forget_purged_keys([realm.key]) == 1
    assert realms.purged_keys() == {}


def test_realm_created_again_has_another_key(realms: RealmRegistry, make_realm: Callable[..., Realm]) -> None:
    earlier = make_realm(state=RealmState.PURGED)
    realms.remove_realm(earlier)

    assert realms.create_realm("acme").key != earlier.key


def test_fenced_move_changes_nothing(realms: RealmRegistry, make_realm: Callable[..., Realm]) -> None:
    realm = make_realm()

    def fence() -> None:
        raise SwapConflictError("taken over")

    with pytest.raises(SwapConflictError, match="taken over"):
        realms.move_realm(realm, RealmState.INACTIVE, fence=fence)
    assert realms.read_realm("acme") == realm
