"""The rules of a caller, read from where roles and grants are kept, and remembered as long as nothing of that has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from headwater.access.access_rules import AccessRule, AccessRules, ReferenceName, Securable
from headwater.access.privileges import Privilege, SecurableKind
from headwater.catalogs import CatalogAccess, CatalogDefinition, CatalogGrant, CatalogRoles, parse_revspec
from headwater.realms import PrincipalRole, RealmGrants, read_realm_grants
from headwater.store import ObjectId, RealmStore

_RULES_LIMIT = 200_000
"""Rules that a reader keeps, of all sets of roles and all catalogs, about 1 KB each; the sets that were used least recently go."""
_SETS_LIMIT = 2000
_HOLDERS_LIMIT = 5000
_DEFAULT = "-"
_REALM = Securable(kind=SecurableKind.REALM)
_PRIVILEGES = {privilege.value: privilege for privilege in Privilege}
_KINDS = {kind.value: kind for kind in SecurableKind}
"""By name: an enumeration would be searched again for each of thousands of grants."""


@dataclass(frozen=True, slots=True)
class RoleHolder:
    """Whose rules are asked for: a principal by its entity number, or somebody whom an identity provider vouches for.

    principal     None: no principal of the realm
    only          of the principal's own roles, those that count; None: all of them
    added         names of principal roles that the caller has beside its own
    """

    principal: ObjectId | None
    only: frozenset[str] | None = None
    added: frozenset[str] = frozenset()


class AccessReader:
    """The rules of callers in one realm. Thread-safe.

    Rules are kept for a set of roles, whoever has them: a caller chooses the roles that its token names, and could name others each time.

    max_age_seconds  for how long what was read is believed before the database is asked again
    rules_limit      how many rules are kept; those that are read last are, however many they are
    """

    def __init__(self, rows: RealmStore, *, max_age_seconds: float = 0.0, rules_limit: int = _RULES_LIMIT) -> None:
        self._rows = rows
        self._max_age_seconds = max_age_seconds
        self._rules_limit = rules_limit
        self._lock = threading.Lock()
        self._realm: tuple[float, RealmGrants] | None = None
        self._catalogs: dict[str, tuple[float, CatalogAccess]] = {}
        self._rules: OrderedDict[tuple[object, ...], AccessRules] = OrderedDict()
        self._roles: OrderedDict[tuple[object, ...], tuple[PrincipalRole, ...]] = OrderedDict()
        self._kept_count = 0

    @property
    def kept_count(self) -> int:
        """How many rules are kept."""
        return self._kept_count

    def read_rules(self, holder: RoleHolder, catalog: CatalogDefinition | None = None) -> AccessRules:
        """The rules of a caller on the realm, and in one catalog of it."""
        grants = self._realm_grants()
        access = None if catalog is None else self._catalog_access(catalog)
        roles = self._roles_of(holder, grants)
        entities = tuple(role.entity for role in roles)
        key = (entities, grants.version, None if access is None else (access.catalog.id, access.catalog.name, access.version))
        with self._lock:
            rules = self._rules.get(key)
            if rules is not None:
                self._rules.move_to_end(key)
                return rules
        rules = AccessRules(list(rules_of(roles, grants, access)))
        self._keep(key, rules)
        return rules

    def read_roles(self, holder: RoleHolder) -> Sequence[PrincipalRole]:
        """The principal roles that count for a caller."""
        return self._roles_of(holder, self._realm_grants())

    def _keep(self, key: tuple[object, ...], rules: AccessRules) -> None:
        with self._lock:
            before = self._rules.pop(key, None)
            self._rules[key] = rules
            self._kept_count += len(rules.rules) - (0 if before is None else len(before.rules))
            while len(self._rules) > 1 and (self._kept_count > self._rules_limit or len(self._rules) > _SETS_LIMIT):
                _, gone = self._rules.popitem(last=False)
                self._kept_count -= len(gone.rules)

    def _roles_of(self, holder: RoleHolder, grants: RealmGrants) -> tuple[PrincipalRole, ...]:
        key = (holder, grants.version)
        roles = self._roles.get(key)
        if roles is None:
            roles = tuple(roles_of(holder, grants))
            with self._lock:
                self._roles[key] = roles
                while len(self._roles) > _HOLDERS_LIMIT:
                    self._roles.popitem(last=False)
        return roles

    def _realm_grants(self) -> RealmGrants:
        now = self._rows.clock.monotonic()
        kept = self._realm
        if kept is None or now - kept[0] > self._max_age_seconds:
            kept = self._realm = (now, read_realm_grants(self._rows))
        return kept[1]

    def _catalog_access(self, catalog: CatalogDefinition) -> CatalogAccess:
        now = self._rows.clock.monotonic()
        kept = self._catalogs.get(catalog.id)
        if kept is None or now - kept[0] > self._max_age_seconds or kept[1].catalog != catalog:
            kept = self._catalogs[catalog.id] = (now, CatalogRoles(self._rows, catalog).read_access())
        return kept[1]


def reference_of(text: str | None, catalog: CatalogDefinition) -> ReferenceName:
    """The reference that rights are sought on, of a branch, tag or commit as a caller names it; None or ``-``: the default branch.

    A commit that is named by its hash is on none, whatever name stands before it.
    """
    return _reference_named(text or _DEFAULT, catalog.default_branch)


@lru_cache(maxsize=4096)
def _reference_named(text: str, default_branch: str) -> ReferenceName:
    spec = parse_revspec(text)
    if spec.commit is not None:
        return ReferenceName(None)
    name = default_branch if spec.name in (None, _DEFAULT) else spec.name
    return ReferenceName(name, is_default=name == default_branch)


def roles_of(holder: RoleHolder, grants: RealmGrants) -> list[PrincipalRole]:
    """The principal roles that count for a caller, each once, in the order of their names."""
    own = [] if holder.principal is None else grants.roles_of(holder.principal)
    counted = [role for role in own if holder.only is None or role.name in holder.only]
    added = [role for role in grants.roles.values() if role.name in holder.added]
    return sorted({role.entity: role for role in (*counted, *added)}.values(), key=lambda role: role.name)


def rules_of(roles: Iterable[PrincipalRole], grants: RealmGrants, access: CatalogAccess | None) -> Iterable[AccessRule]:
    """The rules that reach whoever has some principal roles, on the realm and in a catalog of it.

    A privilege that this release does not know allows nothing.
    """
    for role in roles:
        for name in grants.privileges_of(role.entity):
            if (privilege := _PRIVILEGES.get(name)) is not None:
                yield AccessRule(privilege=privilege, on=_REALM, references="*", roles=(role.name,))
        for catalog_role in () if access is None else access.roles_of(role.entity):
            for grant in access.grants_of(catalog_role) if access is not None else ():
                rule = rule_of(grant, access.catalog.name, (role.name, catalog_role)) if access is not None else None
                if rule is not None:
                    yield rule


def rule_of(grant: CatalogGrant, catalog: str, roles: tuple[str, ...]) -> AccessRule | None:
    """The rule that a grant in a catalog makes; None for one of a newer release, which allows nothing here."""
    privilege, kind = _PRIVILEGES.get(grant.privilege), _KINDS.get(grant.on)
    if privilege is None or kind is None:
        return None
    is_reference = kind is SecurableKind.REFERENCE
    on = Securable(
        kind=kind,
        catalog=catalog,
        path=grant.path,
        content_id=grant.content_id,
        pattern=grant.references if is_reference else "",
    )
    return AccessRule(privilege=privilege, on=on, references="" if is_reference else grant.references, roles=roles)
