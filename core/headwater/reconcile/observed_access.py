"""The principals, roles and grants of a realm or a catalog, as the store has them: plain values for the planners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from headwater.catalogs import CatalogAccess, CatalogDefinition, CatalogGrant, CatalogRoles
from headwater.clock import Micros
from headwater.realms import Realm, RealmGrants, RealmRegistry, find_principal, hold_micros, list_principals, read_realm_grants
from headwater.reconcile.declared_access import connection_name
from headwater.store import RealmStore

_NEVER = Micros(0)


@dataclass(frozen=True, slots=True)
class SeenPrincipal:
    """A principal, and the principal roles that it has."""

    roles: frozenset[str] = frozenset()
    is_disabled: bool = False


@dataclass(frozen=True, slots=True)
class SeenRealmAccess:
    """All principals of a realm by name, and all principal roles with their privileges on the realm.

    keep_until    how long credentials are kept that cease to be declared now
    """

    principals: Mapping[str, SeenPrincipal] = field(default_factory=dict)
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    keep_until: Micros = _NEVER


@dataclass(frozen=True, slots=True)
class SeenCatalogRole:
    """What a role of a catalog may do, and the principal roles that have it."""

    grants: frozenset[CatalogGrant] = frozenset()
    granted_to: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SeenCatalogAccess:
    """All roles of a catalog, all principal roles of its realm with their privileges there, and the principal of its connection.

    keep_until    as for a realm
    """

    roles: Mapping[str, SeenCatalogRole] = field(default_factory=dict)
    principal_roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    connection: SeenPrincipal | None = None
    keep_until: Micros = _NEVER


def observe_realm_access(realms: RealmRegistry, realm: Realm) -> SeenRealmAccess:
    """Read the principals and roles of a realm."""
    principals = list_principals(realms, realm.id)
    grants = read_realm_grants(realms.store.rows(realm.id, realm.key))
    seen = {
        principal.name: SeenPrincipal(
            frozenset(role.name for role in grants.roles_of(principal.entity)), principal.disabled is not None
        )
        for principal in principals
    }
    return SeenRealmAccess(seen, _privileges(grants), _keep_until(realms, realm))


def observe_catalog_access(
    realms: RealmRegistry, realm: Realm, rows: RealmStore, catalog: CatalogDefinition
) -> SeenCatalogAccess:
    """Read the roles of a catalog, and of its realm what they are given to."""
    grants = read_realm_grants(rows)
    roles = CatalogRoles(rows, catalog)
    access = roles.read_access()
    principal = find_principal(realms, rows.realm, connection_name(catalog.name))
    connection = None
    if principal is not None:
        held = frozenset(role.name for role in grants.roles_of(principal.entity))
        connection = SeenPrincipal(held, principal.disabled is not None)
    seen = {role.name: _catalog_role(access, grants, role.name) for role in roles.list_roles()}
    return SeenCatalogAccess(seen, _privileges(grants), connection, _keep_until(realms, realm))


def _keep_until(realms: RealmRegistry, realm: Realm) -> Micros:
    store = realms.store
    return Micros(store.clock.now() + hold_micros(realm, store.settings))


def _catalog_role(access: CatalogAccess, grants: RealmGrants, name: str) -> SeenCatalogRole:
    given = frozenset(msgspec.structs.replace(grant, created=Micros(0)) for grant in access.grants_of(name))
    holders = (grants.roles.get(entity) for entity in access.grantees_of(name))
    return SeenCatalogRole(given, frozenset(role.name for role in holders if role is not None))


def _privileges(grants: RealmGrants) -> dict[str, frozenset[str]]:
    return {role.name: frozenset(grants.privileges_of(role.entity)) for role in grants.roles.values()}
