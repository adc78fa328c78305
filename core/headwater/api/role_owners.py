"""The roles of a realm and of a catalog, and what they may do: one way to read and change both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headwater.access import Privilege, Securable, SecurableKind, check_grantable, make_grant, rule_of, securable_text
from headwater.catalogs import Catalog, CatalogGrant, CatalogRoles, Catalogs
from headwater.clock import Micros
from headwater.errors import NotFoundError
from headwater.realms import (
    RealmGrants,
    RealmRegistry,
    assign_principal_role,
    create_principal_role,
    drop_principal_role,
    find_principal,
    grant_on_realm,
    list_principals,
    read_principal,
    read_principal_role,
    read_realm_grants,
    revoke_on_realm,
    unassign_principal_role,
)
from headwater.store import ObjectId, RealmStore, Store

_REALM = Securable(kind=SecurableKind.REALM)


@dataclass(frozen=True, slots=True)
class RoleScope:
    """Whose roles are meant: a realm's, or with the name of a catalog that catalog's."""

    realm: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.realm}/{self.name}" if self.name else self.realm


@dataclass(frozen=True, slots=True)
class GrantRow:
    """A grant to a role.

    on            as ``--on`` takes it
    key           of a grant by content id: where that is on the default branch now
    branches      a pattern; None: the default branch, or what ``on`` says
    """

    scope: RoleScope
    role: str
    privilege: str
    on: str
    branches: str | None = None
    key: str | None = None

    @property
    def told(self) -> str:
        """The grant in one line."""
        where = "" if self.branches in (None, "*") else f" on branches {self.branches}"
        return f"{self.privilege} on {self.on}{where}"


@dataclass(frozen=True, slots=True)
class RoleRow:
    """A role with who has it and what it may do.

    assigned_to   principals, or of a catalog's role principal roles
    catalog_roles of a principal role: the roles of catalogs that it has, as CATALOG/ROLE
    """

    scope: RoleScope
    name: str
    created: Micros
    assigned_to: Sequence[str]
    catalog_roles: Sequence[str]
    grants: Sequence[GrantRow]


class RoleOwner(Protocol):
    """The roles of a realm, or of a catalog. What is not there raises NotFoundError."""

    @property
    def scope(self) -> RoleScope: ...

    def list_roles(self) -> list[RoleRow]:
        """All roles, in the order of their names."""
        ...

    def create_role(self, name: str) -> None:
        """Create a role, unless it is there."""
        ...

    def drop_role(self, name: str) -> None:
        """Take a role from everybody, and remove it."""
        ...

    def check_holder(self, holder: str) -> None:
        """Check that somebody is there whom roles are given to."""
        ...

    def assign_role(self, name: str, holder: str) -> None:
        """Give a role to somebody who may have it already."""
        ...

    def unassign_role(self, name: str, holder: str) -> None:
        """Take a role from somebody who need not have it."""
        ...

    def make_rows(self, role: str, privileges: Iterable[Privilege], on: Securable, references: str) -> list[GrantRow]:
        """The grants that are meant; raises RefusedError for one that means nothing."""
        ...

    def put_grants(self, role: str, privileges: Iterable[Privilege], on: Securable, references: str) -> None:
        """Make these grants, all or, in a realm, one after the other."""
        ...

    def remove_grants(self, role: str, privileges: Iterable[Privilege], on: Securable, references: str) -> None:
        """Take these grants back, where they are there."""
        ...


def open_roles(store: Store, scope: RoleScope) -> RoleOwner:
    """The roles of a realm or a catalog, for a user: they can be read, and changed while the realm is ACTIVE."""
    realms = RealmRegistry(store)
    rows = realms.open_realm(scope.realm)
    if not scope.name:
        return RealmRoleOwner(realms, rows, scope)
    return CatalogRoleOwner(realms, Catalog.open(rows, scope.name), rows, scope)


def read_role_row(roles: RoleOwner, name: str) -> RoleRow:
    """One role of a realm or a catalog; raises NotFoundError with what there is."""
    listed = roles.list_roles()
    row = next((row for row in listed if row.name == name), None)
    if row is None:
        names = ", ".join(each.name for each in listed) or "none"
        raise NotFoundError(f"{roles.scope} has no role {name[:200]!r}; its roles: {names}")
    return row


class RealmRoleOwner:
    """The principal roles of a realm, which principals have."""

    def __init__(self, realms: RealmRegistry, rows: RealmStore, scope: RoleScope) -> None:
        self._realms = realms
        self._rows = rows
        self.scope = scope

    def list_roles(self) -> list[RoleRow]:
        grants = read_realm_grants(self._rows)
        names = {principal.entity: principal.name for principal in list_principals(self._realms, self.scope.realm)}
        held = self._catalog_roles(grants)
        return [
            RoleRow(
                self.scope,
                role.name,
                role.created,
                assigned_to=_named(names, grants.members_of(role.entity)),
                catalog_roles=held[role.entity],
                grants=[self._row(role.name, privilege) for privilege in grants.privileges_of(role.entity)],
            )
            for role in sorted(grants.roles.values(), key=lambda role: role.name)
        ]

    def create_role(self, name: str) -> None:
        create_principal_role(self._realms, self.scope.realm, name)

    def drop_role(self, name: str) -> None:
        drop_principal_role(self._realms, self.scope.realm, name)

    def check_holder(self, holder: str) -> None:
        read_principal(self._realms, self.scope.realm, holder)

    def assign_role(self, name: str, holder: str) -> None:
        assign_principal_role(self._realms, self.scope.realm, name, holder)

    def unassign_role(self, name: str, holder: str) -> None:
        unassign_principal_role(self._realms, self.scope.realm, name, holder)

    def make_rows(self, role: str, privileges: Iterable[Privilege], on: Securable, references: str) -> list[GrantRow]:
        listed = list(privileges)
        for privilege in listed:
            check_grantable(privilege, on.kind)
        return [self._row(role, privilege) for privilege in listed]

    def put_grants(self, role: str, privileges: Iterable[Privilege], on: Securable, references: str) -> None:
        read_principal_role(self._realms, self.scope.realm, role)
        for privilege in privileges:
            grant_on_realm(self._realms, self.scope.realm, role, privilege)

    def remove_grants(self, role: str, privileges: Iterable[Privilege], on: Securable, references: str) -> None:
        for privilege in privileges:
            revoke_on_realm(self._realms, self.scope.realm, role, privilege)

    def _row(self, role: str, privilege: str) -> GrantRow:
        return GrantRow(self.scope, role, privilege, securable_text(_REALM), "*")

    def _catalog_roles(self, grants: RealmGrants) -> Mapping[ObjectId, list[str]]:
        held: dict[ObjectId, list[str]] = {entity: [] for entity in grants.roles}
        for definition in Catalogs(self._rows).list_catalogs():
            access = CatalogRoles(self._rows, definition).read_access()
            for entity, names in held.items():
                names += [f"{definition.name}/{name}" for name in access.roles_of(entity)]
        return held


class CatalogRoleOwner:
    """The roles of a catalog, which principal roles have."""

    def __init__(self, realms: RealmRegistry, catalog: Catalog, rows: RealmStore, scope: RoleScope) -> None:
        self._realms = realms
        self._catalog = catalog
        self._rows = rows
        self.scope = scope
        self._roles = CatalogRoles(rows, catalog.definition)

    def list_roles(self) -> list[RoleRow]:
        access = self._roles.read_access()
        names = {entity: role.name for entity, role in read_realm_grants(self._rows).roles.items()}
        return [
            RoleRow(
                self.scope,
                role.name,
                role.created,
                assigned_to=_named(names, access.grantees_of(role.name)),
                catalog_roles=(),
                grants=self._grant_rows(role.name, access.grants_of(role.name)),
            )
            for role in self._roles.list_roles()
        ]

    def create_role(self, name: str) -> None:
        self._roles.create_role(name)

    def drop_role(self, name: str) -> None:
        self._roles.drop_role(name)

    def check_holder(self, holder: str) -> None:
        self._principal_role(holder)

    def assign_role(self, name: str, holder: str) -> None:
        self._roles.assign_role(name, self._principal_role(holder))

    def unassign_role(self, name: str, holder: str) -> None:
        self._roles.unassign_role(name, self._principal_role(holder))

    def make_rows(self, role: str, privileges: Iterable[Privilege], on: Securable, references: str) -> list[GrantRow]:
        return self._grant_rows(role, [make_grant(privilege, on, references=references) for privilege in privileges])

    def put_grants(self, role: str, privileges: Iterable[Privilege], on: Securable, references: str) -> None:
        self._roles.put_grants(role, [make_grant(privilege, on, references=references) for privilege in privileges])

    def remove_grants(self, role: str, privileges: Iterable[Privilege], on: Securable, references: str) -> None:
        self._roles.remove_grants(role, [make_grant(privilege, on, references=references) for privilege in privileges])

    def _grant_rows(self, role: str, grants: Sequence[CatalogGrant]) -> list[GrantRow]:
        ids = {grant.content_id for grant in grants if grant.content_id is not None}
        entries = self._catalog.find_by_id(None, ids) if ids else {}
        keys = {content_id: str(entry.key) for content_id, entry in entries.items()}
        rows = [self._grant_row(role, grant, keys.get(grant.content_id) if grant.content_id else None) for grant in grants]
        return sorted(rows, key=lambda row: (row.on, row.branches or "", row.privilege))

    def _grant_row(self, role: str, grant: CatalogGrant, key: str | None) -> GrantRow:
        rule = rule_of(grant, self._catalog.definition.name, ())
        if rule is None:  # a newer release's, told as it is stored
            return GrantRow(self.scope, role, grant.privilege, grant.on, grant.references or None, key)
        where = None if rule.on.kind is SecurableKind.REFERENCE else rule.where or None
        return GrantRow(self.scope, role, grant.privilege, securable_text(rule.on), where, key)

    def _principal_role(self, name: str) -> ObjectId:
        role = read_realm_grants(self._rows).named(name)
        if role is not None:
            return role.entity
        is_principal = find_principal(self._realms, self.scope.realm, name) is not None
        hint = (
            f"; there is a principal {name!r}, which has roles of catalogs through a principal role:"
            f" `headwater role create {self.scope.realm} ROLE --to {name}`"
            if is_principal
            else f": `headwater role create {self.scope.realm} {name}` creates it"
        )
        raise NotFoundError(f"realm {self.scope.realm!r} has no principal role {name[:200]!r}{hint}")


def _named(names: Mapping[ObjectId, str], entities: Iterable[ObjectId]) -> list[str]:
    """The names of entities, in order. One that has none was dropped meanwhile."""
    return sorted(names[entity] for entity in entities if entity in names)
