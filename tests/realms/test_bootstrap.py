"""Bootstrap: what a fresh realm starts with, and that no interruption changes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.commits import head
from headwater.errors import RefusedError
from headwater.realms import (
    REALM_REFERENCES,
    Credentials,
    CredentialsHash,
    Realm,
    Realms,
    RealmState,
    bootstrap,
    find_root,
    hash_credentials,
    new_credentials,
    verify,
)


def test_a_bootstrapped_realm_is_active_and_has_its_references(realms: Realms, credentials_hash: CredentialsHash) -> None:
    realms.create("acme")

    realm = bootstrap(realms, "acme", credentials_hash)

    assert realm.state is RealmState.ACTIVE
    rows = realms.open("acme")
    assert all(rows.find_reference(name, fresh=True) for name in REALM_REFERENCES)


def test_the_root_principal_keeps_the_hash_and_not_the_secret(
    realms: Realms, credentials: Credentials, credentials_hash: CredentialsHash
) -> None:
    realms.create("acme")
    bootstrap(realms, "acme", credentials_hash)

    root = find_root(realms, "acme")

    assert root is not None
    assert verify(root.credentials, credentials)
    assert credentials.client_secret not in repr(root)


def test_service_admin_is_given_to_root_and_manages_access(realms: Realms, credentials_hash: CredentialsHash) -> None:
    realms.create("acme")
    bootstrap(realms, "acme", credentials_hash)

    grants = head(realms.open("acme"), "grants").index("by-securable")

    assert sorted(key[16:].decode() for key, _ in grants.range()) == ["PRINCIPAL_ROLE_USAGE", "SERVICE_MANAGE_ACCESS"]


def test_a_second_bootstrap_changes_nothing(realms: Realms, credentials_hash: CredentialsHash) -> None:
    realms.create("acme")
    realm = bootstrap(realms, "acme", credentials_hash)

    assert bootstrap(realms, "acme", hash_credentials(new_credentials())) == realm
    assert find_root(realms, "acme").credentials == credentials_hash


@pytest.mark.parametrize("state", [RealmState.LOADING, RealmState.PURGING, RealmState.PURGED])
def test_a_realm_that_is_not_fresh_is_refused_with_its_reason(
    realms: Realms, make_realm: Callable[..., Realm], credentials_hash: CredentialsHash, state: RealmState
) -> None:
    make_realm(state=state)

    with pytest.raises(RefusedError, match=f"cannot be bootstrapped: it is {state}"):
        bootstrap(realms, "acme", credentials_hash)
