"""Principal roles: made, given and taken, with their rights on the whole realm; also in realms that an older release made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faulty_backend import FaultyBackend
from headwater.commits import Transaction, commit_change
from headwater.errors import NotFoundError, RefusedError, UnknownOutcomeError
from headwater.realms import (
    CredentialsHash,
    RealmGrants,
    RealmRegistry,
    assign_principal_role,
    bootstrap,
    create_principal,
    create_principal_role,
    drop_principal,
    drop_principal_role,
    find_principal,
    grant_on_realm,
    list_principal_roles,
    read_realm_grants,
    revoke_on_realm,
    unassign_principal_role,
)
from headwater.store import Backend, ObjectId, Store
from headwater.store.backends.memory import MemoryBackend


@pytest.fixture
def acme(realms: RealmRegistry, credentials_hash: CredentialsHash) -> RealmRegistry:
    realms.create_realm("acme")
    bootstrap(realms, "acme", credentials_hash)
    create_principal(realms, "acme", "etl", CredentialsHash(client_id="etl", salt=b"", digest=b""))
    return realms


def grants(realms: RealmRegistry) -> RealmGrants:
    return read_realm_grants(realms.open_realm("acme"))


def entity(realms: RealmRegistry, name: str) -> ObjectId:
    found = find_principal(realms, "acme", name)
    assert found is not None
    return found.entity


def roles_of(realms: RealmRegistry, name: str) -> list[str]:
    return [role.name for role in grants(realms).roles_of(entity(realms, name))]


def privileges_of(realms: RealmRegistry, role: str) -> list[str]:
    found = grants(realms).named(role)
    assert found is not None
    return grants(realms).privileges_of(found.entity)


def test_root_has_the_role_that_manages_the_realm(acme: RealmRegistry) -> None:
    assert roles_of(acme, "root") == ["service_admin"]
    assert privileges_of(acme, "service_admin") == ["SERVICE_MANAGE_ACCESS"]
    assert roles_of(acme, "etl") == []


def test_role_is_made_once_and_listed(acme: RealmRegistry) -> None:
    made = create_principal_role(acme, "acme", "loaders")

    assert create_principal_role(acme, "acme", "loaders") == made
    assert [role.name for role in list_principal_roles(acme, "acme")] == ["loaders", "service_admin"]


def test_role_with_an_odd_name_is_refused(acme: RealmRegistry) -> None:
    for name in ("", "a b", "x" * 129, "-a", "a\n"):
        with pytest.raises(RefusedError, match="is no name for a role"):
            create_principal_role(acme, "acme", name)


def test_role_is_not_called_like_all_of_them(acme: RealmRegistry) -> None:
    with pytest.raises(RefusedError, match="PRINCIPAL_ROLE:ALL means every role"):
        create_principal_role(acme, "acme", "ALL")


def test_role_is_given_and_taken(acme: RealmRegistry) -> None:
    role = create_principal_role(acme, "acme", "loaders")
    assign_principal_role(acme, "acme", "loaders", "etl")
    assign_principal_role(acme, "acme", "loaders", "etl")

    assert roles_of(acme, "etl") == ["loaders"]
    assert grants(acme).members_of(role.entity) == [entity(acme, "etl")]
    unassign_principal_role(acme, "acme", "loaders", "etl")
    unassign_principal_role(acme, "acme", "loaders", "etl")
    assert roles_of(acme, "etl") == []
    assert grants(acme).members_of(role.entity) == []


def test_right_on_the_realm_is_granted_and_revoked(acme: RealmRegistry) -> None:
    create_principal_role(acme, "acme", "loaders")
    grant_on_realm(acme, "acme", "loaders", "TASK_READ")
    grant_on_realm(acme, "acme", "loaders", "CATALOG_CREATE")

    assert privileges_of(acme, "loaders") == ["CATALOG_CREATE", "TASK_READ"]
    revoke_on_realm(acme, "acme", "loaders", "TASK_READ")
    assert privileges_of(acme, "loaders") == ["CATALOG_CREATE"]


def test_dropped_role_leaves_nothing(acme: RealmRegistry) -> None:
    role = create_principal_role(acme, "acme", "loaders")
    assign_principal_role(acme, "acme", "loaders", "etl")
    grant_on_realm(acme, "acme", "loaders", "TASK_READ")
    drop_principal_role(acme, "acme", "loaders")
    create_principal_role(acme, "acme", "loaders")

    assert roles_of(acme, "etl") == []
    assert privileges_of(acme, "loaders") == []
    assert grants(acme).members_of(role.entity) == []


def test_dropped_principal_leaves_its_roles(acme: RealmRegistry) -> None:
    role = create_principal_role(acme, "acme", "loaders")
    assign_principal_role(acme, "acme", "loaders", "etl")
    drop_principal(acme, "acme", "etl")

    assert grants(acme).members_of(role.entity) == []
    assert roles_of(acme, "root") == ["service_admin"]


def test_management_of_a_realm_cannot_be_taken_from_root(acme: RealmRegistry) -> None:
    with pytest.raises(RefusedError, match="root of realm 'acme' keeps role service_admin"):
        unassign_principal_role(acme, "acme", "service_admin", "root")
    with pytest.raises(RefusedError, match="keeps SERVICE_MANAGE_ACCESS"):
        revoke_on_realm(acme, "acme", "service_admin", "SERVICE_MANAGE_ACCESS")
    with pytest.raises(RefusedError, match="service_admin of realm 'acme' stays"):
        drop_principal_role(acme, "acme", "service_admin")


def test_unknown_role_or_principal_is_told(acme: RealmRegistry) -> None:
    create_principal_role(acme, "acme", "loaders")

    with pytest.raises(NotFoundError, match="has no principal 'nobody'"):
        assign_principal_role(acme, "acme", "loaders", "nobody")
    for change in (assign_principal_role, unassign_principal_role):
        with pytest.raises(NotFoundError, match="has no principal role 'writers'"):
            change(acme, "acme", "writers", "etl")
    with pytest.raises(NotFoundError, match="has no principal role 'writers'"):
        grant_on_realm(acme, "acme", "writers", "TASK_READ")


def test_grants_of_an_older_release_hold_and_can_be_added_to(acme: RealmRegistry) -> None:
    def forget_way_back(tx: Transaction) -> None:
        for key, _ in list(tx.index("by-grantee").range()):
            tx.index("by-grantee").remove(key)

    commit_change(acme.open_realm("acme"), "grants", forget_way_back)
    assert roles_of(acme, "root") == ["service_admin"]
    assert privileges_of(acme, "service_admin") == ["SERVICE_MANAGE_ACCESS"]

    create_principal_role(acme, "acme", "loaders")
    assign_principal_role(acme, "acme", "loaders", "etl")
    assert (roles_of(acme, "root"), roles_of(acme, "etl")) == (["service_admin"], ["loaders"])
    assert privileges_of(acme, "service_admin") == ["SERVICE_MANAGE_ACCESS"]


@pytest.mark.parametrize("drop", [drop_principal, drop_principal_role], ids=["principal", "role"])
def test_drop_that_the_database_interrupts_does_not_claim_that_nothing_happened(
    make_store: Callable[[Backend], Store], credentials_hash: CredentialsHash, drop: Callable[..., None]
) -> None:
    faults = FaultyBackend(MemoryBackend())
    with make_store(faults) as store:
        realms = RealmRegistry(store)
        realms.create_realm("acme")
        bootstrap(realms, "acme", credentials_hash)
        create_principal(realms, "acme", "etl", CredentialsHash(client_id="etl", salt=b"", digest=b""))
        create_principal_role(realms, "acme", "etl")
        assign_principal_role(realms, "acme", "etl", "etl")
        faults.fail("swap_reference", at=2, times=100_000)  # after the first commit, which takes the roles back

        with pytest.raises(UnknownOutcomeError, match="drop it again"):
            drop(realms, "acme", "etl")

        assert grants(realms).roles_of(entity(realms, "etl")) == []
        faults.heal()
        drop(realms, "acme", "etl")
        with pytest.raises(NotFoundError):
            drop(realms, "acme", "etl")
