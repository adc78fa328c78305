"""Roles of a catalog: what they may do, and to which principal roles they are given."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from faulty_backend import FaultyBackend
from headwater import Store
from headwater.catalogs import CatalogGrant, CatalogRoles, Catalogs
from headwater.errors import NotFoundError, RefusedError, UnknownOutcomeError
from headwater.store import ObjectId, RealmStore

LOADERS, READERS = ObjectId(7), ObjectId(8)
ON_SALES = CatalogGrant(privilege="TABLE_READ_DATA", on="namespace", path=("sales",))
ON_ONE = CatalogGrant(privilege="TABLE_READ_DATA", on="table", content_id=UUID(int=1), references="*")


@pytest.fixture
def roles(catalogs: Catalogs, realm: RealmStore) -> CatalogRoles:
    return CatalogRoles(realm, catalogs.create_catalog("lake", base_location="s3://lake/"))


def granted(roles: CatalogRoles, role: str) -> set[tuple[object, ...]]:
    return {
        (grant.privilege, grant.on, grant.path, grant.content_id, grant.references)
        for grant in roles.read_access().grants_of(role)
    }


def plain(*grants: CatalogGrant) -> set[tuple[object, ...]]:
    return {(grant.privilege, grant.on, grant.path, grant.content_id, grant.references) for grant in grants}


def test_admin_of_a_catalog_has_its_rights_from_the_start(roles: CatalogRoles) -> None:
    assert [role.name for role in roles.list_roles()] == ["catalog_admin"]
    assert {grant.privilege for grant in roles.read_access().grants_of("catalog_admin")} == {
        "CATALOG_MANAGE_ACCESS",
        "CATALOG_MANAGE_CONTENT",
        "CATALOG_MANAGE_METADATA",
    }


def test_right_from_the_start_can_be_taken_back(roles: CatalogRoles) -> None:
    assert roles.remove_grants("catalog_admin", [CatalogGrant(privilege="CATALOG_MANAGE_ACCESS")]) == 1
    assert {grant.privilege for grant in roles.read_access().grants_of("catalog_admin")} == {
        "CATALOG_MANAGE_CONTENT",
        "CATALOG_MANAGE_METADATA",
    }


def test_grants_are_made_once_and_taken_back_once(roles: CatalogRoles) -> None:
    roles.create_role("analyst")
    roles.put_grants("analyst", [ON_SALES, ON_ONE])
    roles.put_grants("analyst", [ON_SALES])

    assert granted(roles, "analyst") == plain(ON_SALES, ON_ONE)
    assert [roles.remove_grants("analyst", [ON_SALES]) for _ in range(2)] == [1, 0]
    assert granted(roles, "analyst") == plain(ON_ONE)


def test_roles_whose_names_begin_alike_share_no_grants(roles: CatalogRoles) -> None:
    for name in ("a", "ab"):
        roles.create_role(name)
    roles.put_grants("ab", [ON_SALES])

    assert granted(roles, "a") == set()


def test_role_is_given_to_principal_roles_and_taken_back(roles: CatalogRoles) -> None:
    roles.create_role("analyst")
    roles.assign_role("analyst", LOADERS)
    roles.assign_role("catalog_admin", LOADERS)
    roles.assign_role("analyst", READERS)

    access = roles.read_access()
    assert access.roles_of(LOADERS) == ["analyst", "catalog_admin"]
    assert access.grantees_of("analyst") == [LOADERS, READERS]
    roles.unassign_role("analyst", LOADERS)
    assert roles.read_access().roles_of(LOADERS) == ["catalog_admin"]


def test_dropped_role_takes_its_grants_and_holders_along(roles: CatalogRoles) -> None:
    roles.create_role("analyst")
    roles.put_grants("analyst", [ON_SALES])
    roles.assign_role("analyst", LOADERS)
    roles.drop_role("analyst")
    roles.create_role("analyst")

    assert (granted(roles, "analyst"), roles.read_access().roles_of(LOADERS)) == (set(), [])


def test_role_inherits_nothing_of_a_dropped_one_of_its_name(
    roles: CatalogRoles, catalogs: Catalogs, realm: RealmStore, store: Store
) -> None:
    backend = FaultyBackend(store.backend)
    other = Store(backend, url="memory://", settings=store.settings, clock=store.clock)  # type: ignore[arg-type]  # any backend
    dropped = CatalogRoles(other.rows(realm.realm, realm.key), catalogs.open_catalog("lake").definition)
    roles.create_role("analyst")
    backend.intervene("swap_reference", lambda: give(roles, "analyst"))
    dropped.drop_role("analyst")
    roles.create_role("analyst")

    assert (granted(roles, "analyst"), roles.read_access().roles_of(LOADERS)) == (set(), [])


def give(roles: CatalogRoles, role: str) -> None:
    roles.put_grants(role, [ON_SALES])
    roles.assign_role(role, LOADERS)


def test_unknown_role_is_told_and_an_odd_name_refused(roles: CatalogRoles) -> None:
    with pytest.raises(NotFoundError, match=r"catalog 'lake' of realm .* has no role 'writer'"):
        roles.put_grants("writer", [ON_SALES])
    with pytest.raises(RefusedError, match="is no name for a role"):
        roles.create_role("a/b")


def test_role_is_read_by_its_name(roles: CatalogRoles) -> None:
    made = roles.create_role("reader")

    assert roles.read_role("reader") == made
    with pytest.raises(NotFoundError, match="has no role 'writer'"):
        roles.read_role("writer")


def test_role_that_is_dropped_while_it_is_granted_leaves_nothing(roles: CatalogRoles) -> None:
    holder = ObjectId(7)
    roles.create_role("reader")
    roles.assign_role("reader", holder)

    def grants_of_a_slow_request() -> Iterator[CatalogGrant]:
        roles.drop_role("reader")
        yield CatalogGrant(privilege="TABLE_READ_DATA")

    with pytest.raises(NotFoundError, match="has no role 'reader'"):
        roles.put_grants("reader", grants_of_a_slow_request())
    roles.create_role("reader")

    assert roles.read_access().grants_of("reader") == []
    assert roles.read_access().roles_of(holder) == []


def test_drop_that_the_database_interrupts_does_not_claim_that_nothing_happened(roles: CatalogRoles, realm: RealmStore) -> None:
    faults = FaultyBackend(realm.store.backend)
    store = Store(faults, url="memory://", settings=realm.settings, clock=realm.clock)
    interrupted = CatalogRoles(store.rows(realm.realm, realm.key), Catalogs(realm).read_catalog("lake"))
    roles.create_role("analyst")
    roles.put_grants("analyst", [ON_SALES])
    faults.fail("swap_reference", at=2, times=100_000)

    with pytest.raises(UnknownOutcomeError, match="drop it again"):
        interrupted.drop_role("analyst")

    assert granted(roles, "analyst") == set()
    roles.drop_role("analyst")
    assert "analyst" not in [role.name for role in roles.list_roles()]
