"""Roles of a realm or a catalog: who has them, and what they may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwater.access import PRIVILEGES, Privilege, Securable, SecurableKind, checked_pattern, parse_privilege, parse_securable
from headwater.api.access_reasons import explain_rights
from headwater.api.api_values import RoleInfo
from headwater.api.role_owners import RoleOwner, RoleRow, RoleScope, open_roles, read_role_row
from headwater.api.store_session import StoreSession
from headwater.clock import as_datetime
from headwater.errors import NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivilegeInfo:
    """What can be granted to a role.

    granted_on    on what kinds of things
    includes      what whoever has it may do, too
    """

    name: str
    summary: str
    granted_on: tuple[str, ...]
    includes: tuple[str, ...]

    @classmethod
    def of(cls, privilege: Privilege) -> PrivilegeInfo:
        """The values of a privilege."""
        rule = PRIVILEGES[privilege]
        return cls(
            name=privilege.value,
            summary=rule.summary,
            granted_on=tuple(kind.value for kind in SecurableKind if kind in rule.kinds),
            includes=tuple(each.value for each in rule.includes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessInfo:
    """Whether a principal may do something through a server, and why.

    on            on what, seen through which branch
    why           the reasons, in sentences
    rule          the grant that allows it, with the roles through which it comes; None: none does
    near          where it is not allowed: grants that allow something else there, or this elsewhere
    roles         the principal roles that count
    """

    allowed: bool
    principal: str
    privilege: str
    on: str
    why: tuple[str, ...]
    rule: str | None
    near: tuple[str, ...]
    roles: tuple[str, ...]


class RoleClient:
    """A role of a realm or a catalog. Nothing is read before a method is called.

    scope         of a realm's role, the realm's id; of a catalog's role, REALM/CATALOG
    """

    def __init__(self, session: StoreSession, scope: RoleScope, name: str) -> None:
        self._session = session
        self._scope = scope
        self.scope = str(scope)
        self.name = name

    def info(self) -> RoleInfo:
        """Read the role; raises NotFoundError with the roles that there are."""
        return role_info(read_role_row(self._roles(), self.name))

    def assign(self, *holders: str) -> RoleInfo:
        """Give the role to principals; of a catalog's role, to principal roles. Who has it already keeps it."""
        roles = self._roles()
        read_role_row(roles, self.name)
        for holder in holders:
            roles.check_holder(holder)
        for holder in holders:
            roles.assign_role(self.name, holder)
        return self.info()

    def unassign(self, holder: str) -> RoleInfo:
        """Take the role from somebody; raises NotFoundError for who does not have it. Servers believe what they read for 5 seconds."""
        roles = self._roles()
        row = read_role_row(roles, self.name)
        if holder not in row.assigned_to:
            names = ", ".join(row.assigned_to) or "nobody"
            raise NotFoundError(f"{holder} does not have role {self.name} of {self._scope}; it is assigned to {names}")
        roles.unassign_role(self.name, holder)
        return self.info()

    def grant(self, *privileges: str, on: str | None = None, branches: str | None = None) -> RoleInfo:
        """Let the role do something on a realm or catalog, or on what ``on`` names in the catalog, with all that is below it.

        on            ``namespace:KEY``, ``table:KEY``, ``view:KEY`` or ``reference:PATTERN``, or ``table:id=UUID``; None: all
        branches      a pattern of branches on which it holds; None: the default branch
        raises        RefusedError for a privilege that cannot be granted there
        """
        roles, (securable, where) = self._roles(), self._target(on, branches)
        read_role_row(roles, self.name)
        wanted = [parse_privilege(privilege) for privilege in privileges]
        roles.make_rows(self.name, wanted, securable, where)
        roles.put_grants(self.name, wanted, securable, where)
        return self.info()

    def revoke(self, *privileges: str, on: str | None = None, branches: str | None = None) -> RoleInfo:
        """Take grants back, named as they were made; raises NotFoundError where none of them is there."""
        roles, (securable, where) = self._roles(), self._target(on, branches)
        wanted = [parse_privilege(privilege) for privilege in privileges]
        held = read_role_row(roles, self.name).grants
        if not any(row in held for row in roles.make_rows(self.name, wanted, securable, where)):
            has = "; ".join(row.told for row in held) or "nothing"
            raise NotFoundError(f"role {self.name} of {self._scope} is not granted {', '.join(privileges)} there; it has {has}")
        roles.remove_grants(self.name, wanted, securable, where)
        return self.info()

    def drop(self) -> None:
        """Take the role from everybody who has it, and drop it with its grants."""
        roles = self._roles()
        read_role_row(roles, self.name)
        roles.drop_role(self.name)

    def _roles(self) -> RoleOwner:
        return open_roles(self._session.store, self._scope)

    def _target(self, on: str | None, branches: str | None) -> tuple[Securable, str]:
        securable = parse_securable(on, catalog=self._scope.name or None)
        return securable, "" if branches is None else checked_pattern(branches)


def tell_access(
    session: StoreSession,
    scope: RoleScope,
    principal: str,
    privilege: str,
    *,
    on: str | None,
    ref: str | None = None,
    roles: Iterable[str] = (),
) -> AccessInfo:
    """Whether a principal may do something in a realm or a catalog, and why."""
    securable = parse_securable(on, catalog=scope.name or None)
    wanted = parse_privilege(privilege)
    told = explain_rights(session.store, scope, principal, wanted, securable, ref=ref, roles=tuple(roles))
    return AccessInfo(
        allowed=told.is_allowed,
        principal=told.principal,
        privilege=told.privilege.value,
        on=told.on,
        why=tuple(told.why),
        rule=None if told.explanation.rule is None else str(told.explanation.rule),
        near=tuple(map(str, told.explanation.near)),
        roles=tuple(told.roles),
    )


def list_role_infos(session: StoreSession, scope: RoleScope) -> list[RoleInfo]:
    """The roles of a realm or a catalog, in the order of their names."""
    return [role_info(row) for row in open_roles(session.store, scope).list_roles()]


def create_role(session: StoreSession, scope: RoleScope, name: str, holders: Iterable[str]) -> RoleClient:
    """Create a role that may do nothing yet; one that is there stays as it is."""
    roles, given = open_roles(session.store, scope), list(holders)
    for holder in given:
        roles.check_holder(holder)
    roles.create_role(name)
    for holder in given:
        roles.assign_role(name, holder)
    return RoleClient(session, scope, name)


def role_info(row: RoleRow) -> RoleInfo:
    """The values of a role."""
    return RoleInfo(
        realm=row.scope.realm,
        catalog=row.scope.name or None,
        name=row.name,
        created=as_datetime(row.created),
        assigned_to=tuple(row.assigned_to),
        catalog_roles=tuple(row.catalog_roles),
        grants=_told(row),
    )


def _told(row: RoleRow) -> tuple[str, ...]:
    return tuple(grant.told for grant in row.grants)
