"""The realm that a request for management names, with the rights of its caller.

The realm itself is no secret: whoever calls has proved to belong to it. A catalog that the caller may not see is told as missing, in the
words that a missing one is told in.

A plug-in that decides is asked about catalogs. About the realm and about grants, which nobody shall be locked out of, the grants decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.access import (
    AccessDecisions,
    AccessReader,
    AccessRules,
    ForbiddenError,
    PluginDecisions,
    Privilege,
    ReferenceName,
    Securable,
    SecurableKind,
)
from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.errors import NotFoundError
from headwater.realms import Realm, RealmRegistry
from headwater.store import RealmStore, Store
from headwater_server.audit_trail import current_trail
from headwater_server.call import Call, ServedStore
from headwater_server.caller import Caller
from headwater_server.realm_directory import RealmDirectory, access_plugin, subject_of

REALM = Securable(kind=SecurableKind.REALM)
_ANYWHERE = ReferenceName("", is_default=True)
"""A realm is on no reference."""
_SHOWN = 200


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
    def changed_by(self) -> str:
        """What is recorded of whoever changes something."""
        return "somebody through the server" if self.caller is None else self.caller.name

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

    def is_allowed(self, privilege: Privilege, definition: CatalogDefinition | None = None) -> bool:
        """Whether the caller has a privilege on the realm, or on a catalog."""
        decisions = self._decisions(privilege, definition)
        return decisions is None or decisions.allows(privilege, _securable(definition), _reference(definition))

    def check_right(self, privilege: Privilege, definition: CatalogDefinition | None = None) -> None:
        """Check that the caller has a privilege on the realm, or on a catalog; raises ForbiddenError."""
        is_held = self.is_allowed(privilege, definition)
        self._note(privilege, None if definition is None else definition.name, is_held=is_held)
        if not is_held:
            raise ForbiddenError.lacking(privilege, _securable(definition), _reference(definition))

    def is_seen(self, definition: CatalogDefinition) -> bool:
        """Whether the caller may know of a catalog: by the right to list it, by any right in it, or by that to manage its grants."""
        decisions, reference = self._decisions(Privilege.CATALOG_LIST, definition), _reference(definition)
        if decisions is None or decisions.allows(Privilege.CATALOG_LIST, _securable(definition), reference):
            return True
        if decisions.reaches(reference):
            return True
        if isinstance(decisions, AccessRules):
            return any(rule.on.kind is not SecurableKind.REALM for rule in decisions.rules)
        return self.is_allowed(Privilege.CATALOG_MANAGE_ACCESS, definition)

    def seen_catalog(self, name: str) -> CatalogDefinition:
        """A live catalog that the caller may know of; raises NotFoundError."""
        definition = self.catalogs.find_catalog(name)
        if definition is None or not self.is_seen(definition):
            self._note(Privilege.CATALOG_LIST, name, is_held=False)
            raise self.no_catalog(name)
        return definition

    def allowed_catalog(self, name: str, privilege: Privilege) -> CatalogDefinition:
        """A live catalog on which the caller has a privilege; raises NotFoundError, or ForbiddenError where the caller may know of it."""
        definition = self.seen_catalog(name)
        self.check_right(privilege, definition)
        return definition

    def no_catalog(self, name: str) -> NotFoundError:
        return NotFoundError(f"realm {self.id!r} has no catalog {name[:200]!r}")

    def decisions_in(self, definition: CatalogDefinition) -> AccessDecisions | None:
        """What decides about the caller in a catalog; None: everything is allowed."""
        return self._decisions(Privilege.CATALOG_LIST, definition)

    def is_explained_by_grants(self, privilege: Privilege, definition: CatalogDefinition | None) -> bool:
        """Whether grants decide, and no plug-in."""
        return not self._asks_plugin(privilege, definition)

    def is_caller(self, principal: str) -> bool:
        """Whether the caller is this principal of the realm."""
        return self.caller is not None and self.caller.holder.principal is not None and self.caller.name == principal

    def _asks_plugin(self, privilege: Privilege, definition: CatalogDefinition | None) -> bool:
        is_of_grants = definition is None or privilege is Privilege.CATALOG_MANAGE_ACCESS
        return not is_of_grants and self._served.part(access_plugin) is not None

    def _decisions(self, privilege: Privilege, definition: CatalogDefinition | None) -> AccessDecisions | None:
        """What decides about a privilege of the caller; None: everything is allowed."""
        if self.caller is None or self._access is None:
            return None
        plugin = self._served.part(access_plugin)
        if plugin is not None and definition is not None and self._asks_plugin(privilege, definition):
            return PluginDecisions(plugin, subject_of(self.caller, self._access), definition.name)
        return self._access.read_rules(self.caller.holder, definition)

    def _note(self, privilege: Privilege, catalog: str | None, *, is_held: bool) -> None:
        """Note a check for the audit log."""
        if self.caller is not None:
            on = self.id if catalog is None else f"{self.id}/{catalog[:_SHOWN]}"
            current_trail().note_check(privilege, on, is_held=is_held)


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


def _reference(definition: CatalogDefinition | None) -> ReferenceName:
    return _ANYWHERE if definition is None else ReferenceName(definition.default_branch, is_default=True)
