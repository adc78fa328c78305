"""Bootstrap: what a fresh realm starts with, and that no interruption changes it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import pytest

from faulty_backend import FaultyBackend
from headwater.commits import read_head
from headwater.errors import HeadwaterError, RefusedError
from headwater.realms import (
    REALM_REFERENCES,
    Credentials,
    CredentialsHash,
    Realm,
    RealmRegistry,
    RealmState,
    bootstrap,
    find_root,
    hash_credentials,
    new_credentials,
    verify_secret,
)
from headwater.store import Backend, Store
from headwater.store.backends.memory import MemoryBackend

MakeStore = Callable[[Backend], Store]


def test_bootstrapped_realm_is_active_and_has_its_references(realms: RealmRegistry, credentials_hash: CredentialsHash) -> None:
    realms.create_realm("acme")

    realm = bootstrap(realms, "acme", credentials_hash)

    assert realm.state is RealmState.ACTIVE
    rows = realms.open_realm("acme")
    assert all(rows.find_reference(name, fresh=True) for name in REALM_REFERENCES)


def test_root_principal_keeps_the_hash_and_not_the_secret(
    realms: RealmRegistry, credentials: Credentials, credentials_hash: CredentialsHash
) -> None:
    realms.create_realm("acme")
    bootstrap(realms, "acme", credentials_hash)

    root = find_root(realms, "acme")

    assert root is not None
    assert verify_secret(root.credentials, credentials)
    assert credentials.client_secret not in repr(root)


def test_service_admin_is_given_to_root_and_manages_access(realms: RealmRegistry, credentials_hash: CredentialsHash) -> None:
    realms.create_realm("acme")
    bootstrap(realms, "acme", credentials_hash)

    grants = read_head(realms.open_realm("acme"), "grants").index("by-securable")

    assert sorted(key[16:].decode() for key, _ in grants.range()) == ["PRINCIPAL_ROLE_USAGE", "SERVICE_MANAGE_ACCESS"]


def test_second_bootstrap_changes_nothing(realms: RealmRegistry, credentials_hash: CredentialsHash) -> None:
    realms.create_realm("acme")
    realm = bootstrap(realms, "acme", credentials_hash)

    assert bootstrap(realms, "acme", hash_credentials(new_credentials())) == realm
    assert find_root(realms, "acme").credentials == credentials_hash


@pytest.mark.parametrize("state", [RealmState.LOADING, RealmState.PURGING, RealmState.PURGED])
def test_realm_that_is_not_fresh_is_refused_with_its_reason(
    realms: RealmRegistry, make_realm: Callable[..., Realm], credentials_hash: CredentialsHash, state: RealmState
) -> None:
    make_realm(state=state)

    with pytest.raises(RefusedError, match=f"cannot be bootstrapped: it is {state}"):
        bootstrap(realms, "acme", credentials_hash)


def bootstrap_until_done(realms: RealmRegistry, credentials_hash: CredentialsHash) -> Realm:
    """Run again after each failure, as a person or an operator does."""
    for _ in range(3):
        try:
            return bootstrap(realms, "acme", credentials_hash)
        except HeadwaterError:
            continue
    raise AssertionError("the bootstrap does not converge")


def roots(realms: RealmRegistry) -> list[str]:
    """The client ids that the realm knows."""
    return [
        key.decode() for key, _ in read_head(realms.open_realm("acme"), "principals", fresh=True).index("by-client").range()
    ]


@pytest.mark.parametrize("before", [True, False], ids=["call lost", "answer lost"])
def test_bootstrap_interrupted_anywhere_ends_with_one_set_of_credentials(
    make_store: MakeStore, credentials_hash: CredentialsHash, before: bool
) -> None:
    for step in itertools.count(1):
        backend = FaultyBackend(MemoryBackend())
        with make_store(backend) as store:
            realms = RealmRegistry(store)
            created = realms.create_realm("acme")
            calls_before = len(backend.calls)
            backend.fail(at=step, before=before)
            realm = bootstrap_until_done(realms, credentials_hash)
            is_through = len(backend.calls) < calls_before + step
            backend.heal()

            assert (realm.key, realm.state) == (created.key, RealmState.ACTIVE)
            assert roots(realms) == [credentials_hash.client_id]
            if is_through:
                assert step > 30, "the fault did not travel through the whole bootstrap"
                return


def test_bootstrap_killed_at_every_step_keeps_one_set_of_credentials(
    make_store: MakeStore,
) -> None:
    database = MemoryBackend()
    for step in itertools.count(1):
        dying = FaultyBackend(database)
        dying.fail(at=step, times=10**6, fault=KeyboardInterrupt())
        try:
            realms = RealmRegistry(make_store(dying))
            if realms.find_realm("acme") is None:
                realms.create_realm("acme")
            bootstrap(realms, "acme", CredentialsHash(client_id=f"client-{step}", salt=b"", digest=b""))
            break
        except KeyboardInterrupt:
            continue

    assert step > 20, "the fault did not travel through the whole bootstrap"
    assert len(roots(RealmRegistry(make_store(database)))) == 1


def test_bootstraps_at_once_both_end_in_the_same_realm(realms: RealmRegistry) -> None:
    realms.create_realm("acme")
    ended: list[Realm] = []

    def run() -> None:
        ended.append(bootstrap_until_done(realms, hash_credentials(new_credentials())))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [realm.state for realm in ended] == [RealmState.ACTIVE] * 3
    assert len(roots(realms)) == 1


def test_references_of_a_realm_are_made_in_one_round_trip(make_store: MakeStore, credentials_hash: CredentialsHash) -> None:
    faults = FaultyBackend(MemoryBackend())
    realms = RealmRegistry(make_store(faults))
    realms.create_realm("acme")
    before = len(faults.calls)
    bootstrap(realms, "acme", credentials_hash)

    made = faults.calls[before:]
    assert (made.count("create_references"), made.count("create_reference")) == (1, 0)
