"""The realm that a request for management names, with the rights of its caller.

The realm itself is no secret: whoever calls has proved to belong to it. A catalog that the caller may not see is told as missing, in the
words that a missing one is told in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.access import AccessReader, AccessRules, ForbiddenError, Privilege, ReferenceName, Securable, SecurableKind
from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.errors import NotFoundError
from headwater.realms import Realm, RealmRegistry
from headwater.store import RealmStore, Store
from headwater_server.call import Call, ServedStore
from headwater_server.caller import Caller
from headwater_server.realm_directory import RealmDirectory

REALM = Securable(kind=SecurableKind.REALM)
_ANYWHERE = ReferenceName("", is_default=True)
"""Realms and catalogs are on no reference."""


@dataclass(frozen=True, slots=True)
class ManagedRealm:
    """A realm that is served here, to be read and changed for one caller.

    caller        None: nobody has to prove who it is, and everything is allowed
    """

    id: str
    caller: Caller | None
    _served: ServedStore
    _access: AccessReader | None

    @property
    def store(self) -> Store:
        return self._served.store

    @property
    def registry(self) -> RealmRegistry:
        return RealmRegistry(self.store)

    @property
    def rows(self) -> RealmStore:
        return self.registry.open_realm(self.id)

    @property
    def catalogs(self) -> Catalogs:
        return Catalogs(self.rows)

    @property
    def served(self) -> ServedStore:
        return self._served

    def read_realm(self) -> Realm:
        """The realm as it is now; raises NotFoundError."""
        return self.registry.read_realm(self.id)

    def rules(self, definition: CatalogDefinition | None = None) -> AccessRules | None:
        """The caller's rules on the realm and in a catalog; None: everything is allowed."""
        if self.caller is None or self._access is None:
            return None
        return self._access.read_rules(self.caller.holder, definition)

    def is_allowed(self, privilege: Privilege, definition: CatalogDefinition | None = None) -> bool:
        """Whether the caller has a privilege on the realm, or on a catalog."""
        rules = self.rules(definition)
        return rules is None or rules.allows(privilege, _securable(definition), _ANYWHERE)

    def check_right(self, privilege: Privilege, definition: CatalogDefinition | None = None) -> None:
        """Check that the caller has a privilege on the realm, or on a catalog; raises ForbiddenError."""
        if not self.is_allowed(privilege, definition):
            raise ForbiddenError.lacking(privilege, _securable(definition), _ANYWHERE)

    def is_seen(self, definition: CatalogDefinition) -> bool:
        """Whether the caller may know of a catalog: by the right to list it, or by any right in it."""
        rules = self.rules(definition)
        if rules is None or rules.allows(Privilege.CATALOG_LIST, _securable(definition), _ANYWHERE):
            return True
        default = ReferenceName(definition.default_branch, is_default=True)
        return rules.reaches(default) or any(rule.on.kind is not SecurableKind.REALM for rule in rules.rules)

    def seen_catalog(self, name: str) -> CatalogDefinition:
        """A live catalog that the caller may know of; raises NotFoundError."""
        definition = self.catalogs.find_catalog(name)
        if definition is None or not self.is_seen(definition):
            raise self.no_catalog(name)
        return definition

    def allowed_catalog(self, name: str, privilege: Privilege) -> CatalogDefinition:
        """A live catalog on which the caller has a privilege; raises NotFoundError, or ForbiddenError where the caller may know of it."""
        definition = self.seen_catalog(name)
        self.check_right(privilege, definition)
        return definition

    def no_catalog(self, name: str) -> NotFoundError:
        return NotFoundError(f"realm {self.id!r} has no catalog {name[:200]!r}")

    def is_caller(self, principal: str) -> bool:
        """Whether the caller is this principal of the realm."""
        return self.caller is not None and self.caller.holder.principal is not None and self.caller.name == principal


def managed_realm(call: Call[Any, Any]) -> ManagedRealm:
    """The realm that a call's path names; raises NotFoundError where it is not served, or its caller has gone with it."""
    realm = call.path["realm"]
    if not call.served.serves(realm):
        raise NotFoundError(f"there is no realm {realm[:200]!r}")
    access = None if call.caller is None else call.served.part(RealmDirectory).open_realm(realm).access
    return ManagedRealm(realm, call.caller, call.served, access)


def realm_under_right(call: Call[Any, Any], privilege: Privilege) -> ManagedRealm:
    """The realm that a call's path names, in which its caller has a privilege; raises NotFoundError and ForbiddenError."""
    realm = managed_realm(call)
    realm.check_right(privilege)
    return realm


def realm_of_path(path: Mapping[str, str], query: object) -> str:
    """The realm that a path names."""
    return path["realm"]


def _securable(definition: CatalogDefinition | None) -> Securable:
    return REALM if definition is None else Securable(kind=SecurableKind.CATALOG, catalog=definition.name)
