"""The principal roles of a realm: who has them, and what they may do in the whole realm. What they may do in a catalog lies with it.

principal-roles   index `by-name`: the name → object `principal-role`
grants            index `by-grantee`: 8 bytes grantee, 8 bytes securable, the privilege → object `grant`
                  index `by-securable`: the same with the two ends exchanged; realms of older releases have only this one, until the
                  first change

A principal that has a role is the grantee of ``PRINCIPAL_ROLE_USAGE`` on it. The securable of all other grants is the realm's container.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from headwater.clock import Micros
from headwater.commits import Head, Transaction, commit_change, complete_operation, read_head
from headwater.errors import NotFoundError, RefusedError
from headwater.index import Index, IndexValue
from headwater.realms.client_credentials import ROOT_PRINCIPAL
from headwater.realms.principals import (
    BY_NAME,
    PRINCIPALS,
    existing_entity,
    find_named,
    read_principal,
    remove_principal,
)
from headwater.realms.realm_registry import RealmRegistry
from headwater.store import ObjectId, RealmStore, StoredObject, object_type

PRINCIPAL_ROLES = "principal-roles"
GRANTS = "grants"
BY_SECURABLE = "by-securable"
BY_GRANTEE = "by-grantee"
SERVICE_ADMIN = "service_admin"
ROLE_USAGE = "PRINCIPAL_ROLE_USAGE"
MANAGE_REALM = "SERVICE_MANAGE_ACCESS"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]{0,127}")
_ENTITY_BYTES = 8


@object_type("principal-role")
class PrincipalRole(StoredObject, frozen=True, kw_only=True):
    """A role that is given to principals."""

    entity: ObjectId
    name: str
    created: Micros = Micros(0)


@object_type("grant")
class Grant(StoredObject, frozen=True, kw_only=True):
    """``grantee`` holds ``privilege`` on ``securable``; both are entity numbers: names, so a grant keeps no object alive."""

    securable: ObjectId
    grantee: ObjectId
    privilege: str
    created: Micros = Micros(0)


@dataclass(frozen=True, slots=True)
class RealmGrants:
    """Who has which role, and which privileges on the whole realm, as one moment had it.

    version       another one for another moment
    roles         all principal roles, by entity
    """

    version: tuple[ObjectId | None, ObjectId | None]
    roles: Mapping[ObjectId, PrincipalRole]
    _grants: Head | None

    def roles_of(self, principal: ObjectId) -> list[PrincipalRole]:
        """The roles that a principal has, in the order of their names."""
        held = (securable for securable, privilege in self._held(principal) if privilege == ROLE_USAGE)
        found = (self.roles.get(role) for role in held)
        return sorted((role for role in found if role is not None), key=lambda role: role.name)

    def privileges_of(self, role: ObjectId) -> list[str]:
        """What a role may do in the whole realm."""
        return sorted(privilege for _, privilege in self._held(role) if privilege != ROLE_USAGE)

    def members_of(self, role: ObjectId) -> list[ObjectId]:
        """The principals that have a role."""
        index = None if self._grants is None else self._grants.index(BY_SECURABLE)
        entries = () if index is None else index.prefix(_bytes(role))
        return [_entity(key[_ENTITY_BYTES:]) for key, _ in entries if key[2 * _ENTITY_BYTES :].decode() == ROLE_USAGE]

    def named(self, name: str) -> PrincipalRole | None:
        """The role of a name."""
        return next((role for role in self.roles.values() if role.name == name), None)

    def _held(self, grantee: ObjectId) -> Iterator[tuple[ObjectId, str]]:
        """The securables and privileges of a grantee."""
        if self._grants is None:
            return
        index = self._grants.index(BY_GRANTEE)
        if _is_empty(index):  # of an older release, which wrote the two grants of the bootstrap and no other
            for key, _ in self._grants.index(BY_SECURABLE).range():
                if _entity(key[_ENTITY_BYTES:]) == grantee:
                    yield _entity(key), key[2 * _ENTITY_BYTES :].decode()
            return
        for key, _ in index.prefix(_bytes(grantee)):
            yield _entity(key[_ENTITY_BYTES:]), key[2 * _ENTITY_BYTES :].decode()


def read_realm_grants(realm_store: RealmStore, *, fresh: bool = True) -> RealmGrants:
    """Read the roles of a realm and who has them.

    fresh         ask the database; otherwise both references may be as old as their time to live in the cache
    """
    roles, grants = (_find_head(realm_store, name, fresh=fresh) for name in (PRINCIPAL_ROLES, GRANTS))
    by_entity = {role.entity: role for role in ([] if roles is None else _listed(realm_store, roles))}
    return RealmGrants((None if roles is None else roles.id, None if grants is None else grants.id), by_entity, grants)


def list_principal_roles(realms: RealmRegistry, realm_id: str) -> list[PrincipalRole]:
    """All principal roles of a realm, in the order of their names; raises NotFoundError for an unknown realm."""
    return sorted(_grants_of(realms, realm_id).roles.values(), key=lambda role: role.name)


def read_principal_role(realms: RealmRegistry, realm_id: str, name: str) -> PrincipalRole:
    """A principal role of a realm in any state; raises NotFoundError for an unknown realm or role."""
    role = _grants_of(realms, realm_id).named(name)
    if role is None:
        raise NotFoundError(f"realm {realm_id!r} has no principal role {name[:200]!r}")
    return role


def create_principal_role(realms: RealmRegistry, realm_id: str, name: str) -> PrincipalRole:
    """Create a role that nobody has and that may do nothing yet; one of this name is returned as it is.

    raises        RefusedError for a name that is not allowed, and for a realm that is not ACTIVE; NotFoundError for an unknown realm
    """
    if name == "ALL":
        raise RefusedError(f"no role of realm {realm_id!r} is called ALL: a token's scope PRINCIPAL_ROLE:ALL means every role")
    if not _NAME.fullmatch(name):
        raise RefusedError(
            f"{name[:200]!r} is no name for a role of realm {realm_id!r}: up to 128 letters, digits and . _ @ - that begin with a"
            " letter, a digit or _"
        )

    def change(tx: Transaction) -> PrincipalRole:
        held = find_named(tx.reader, tx.index(BY_NAME), name, PrincipalRole)
        if held is not None:
            return held
        role = PrincipalRole(entity=tx.new_id(), name=name, created=tx.time)
        tx.index(BY_NAME).put(name.encode(), IndexValue(tx.add_object(role), b""))
        return role

    return commit_change(realms.open_realm(realm_id), PRINCIPAL_ROLES, change, message=f"create principal role {name}").result


def drop_principal_role(realms: RealmRegistry, realm_id: str, name: str) -> None:
    """Take a role from everybody who has it, and remove it. What catalogs grant to it is granted to nobody from then on.

    raises        RefusedError for the role by which root manages the realm; NotFoundError for an unknown realm or role
    """
    if name == SERVICE_ADMIN:
        raise RefusedError(f"role {SERVICE_ADMIN} of realm {realm_id!r} stays: without it nobody could manage the realm")
    role = read_principal_role(realms, realm_id, name)
    realm_store = realms.open_realm(realm_id)
    commit_change(realm_store, GRANTS, lambda tx: _remove_grants(tx, role.entity), message=f"take back principal role {name}")

    def remove_role(tx: Transaction) -> None:
        held = find_named(tx.reader, tx.index(BY_NAME), name, PrincipalRole)
        if held is not None and held.entity == role.entity:
            tx.index(BY_NAME).remove(name.encode())

    complete_operation(
        realm_store,
        lambda: commit_change(realm_store, PRINCIPAL_ROLES, remove_role, message=f"drop principal role {name}"),
        done=f"principal role {name!r} of realm {realm_id!r} was taken from everybody, and may be there still: drop it again",
    )


def drop_principal(realms: RealmRegistry, realm_id: str, name: str) -> None:
    """Take all roles from a principal, and remove it: its credentials open nothing from then on. Done again, it goes on where it stopped.

    raises        RefusedError for root; NotFoundError for an unknown realm or principal
    """
    if name == ROOT_PRINCIPAL:
        raise RefusedError(
            f"root of realm {realm_id!r} stays, for nobody else manages a new realm: disable it if nobody should use it"
        )
    principal = read_principal(realms, realm_id, name)
    realm_store = realms.open_realm(realm_id)
    # the roles first: what is left of it after a crash may do nothing, and can be dropped by its name
    commit_change(
        realm_store, GRANTS, lambda tx: _remove_grants(tx, principal.entity), message=f"take all roles from principal {name}"
    )
    complete_operation(
        realm_store,
        lambda: commit_change(
            realm_store,
            PRINCIPALS,
            lambda tx: remove_principal(tx, principal.entity, name),
            message=f"drop principal {name}",
        ),
        done=f"principal {name!r} of realm {realm_id!r} has no role any more, and may be there still: drop it again",
    )


def assign_principal_role(realms: RealmRegistry, realm_id: str, role: str, principal: str) -> None:
    """Give a principal a role, which it may have already; raises NotFoundError for an unknown realm, role or principal."""
    grant = _usage(realms, realm_id, role, principal)
    realm_store = realms.open_realm(realm_id)
    commit_change(realm_store, GRANTS, lambda tx: put_grant(tx, grant), message=f"assign principal role {role} to {principal}")


def unassign_principal_role(realms: RealmRegistry, realm_id: str, role: str, principal: str) -> None:
    """Take a role from a principal, which need not have it.

    raises        RefusedError for the role by which root manages the realm; NotFoundError for an unknown realm, role or principal
    """
    if (role, principal) == (SERVICE_ADMIN, ROOT_PRINCIPAL):
        raise RefusedError(f"root of realm {realm_id!r} keeps role {SERVICE_ADMIN}: disable root if nobody should use it")
    grant = _usage(realms, realm_id, role, principal)
    realm_store = realms.open_realm(realm_id)
    commit_change(
        realm_store, GRANTS, lambda tx: _remove_grant(tx, grant), message=f"take principal role {role} from {principal}"
    )


def grant_on_realm(realms: RealmRegistry, realm_id: str, role: str, privilege: str) -> None:
    """Let a role do something in the whole realm; raises NotFoundError for an unknown realm or role."""
    grant = _on_realm(realms, realm_id, role, privilege)
    commit_change(
        realms.open_realm(realm_id),
        GRANTS,
        lambda tx: put_grant(tx, grant),
        message=f"grant {privilege} to principal role {role}",
    )


def revoke_on_realm(realms: RealmRegistry, realm_id: str, role: str, privilege: str) -> None:
    """Take back what ``grant_on_realm`` gave.

    raises        RefusedError for the grant by which root manages the realm; NotFoundError for an unknown realm or role
    """
    if (role, privilege) == (SERVICE_ADMIN, MANAGE_REALM):
        raise RefusedError(
            f"role {SERVICE_ADMIN} of realm {realm_id!r} keeps {MANAGE_REALM}: without it nobody could manage the realm"
        )
    grant = _on_realm(realms, realm_id, role, privilege)
    commit_change(
        realms.open_realm(realm_id),
        GRANTS,
        lambda tx: _remove_grant(tx, grant),
        message=f"revoke {privilege} of principal role {role}",
    )


def put_grant(tx: Transaction, grant: Grant) -> None:
    """Add a grant to both indexes of the reference ``grants``; one that is there stays as it is."""
    by_securable, by_grantee = tx.index(BY_SECURABLE), tx.index(BY_GRANTEE)
    if _is_empty(by_grantee):
        for key, value in list(by_securable.range()):
            by_grantee.put(_turned(key), value)
    key = _key(grant)
    if key not in by_grantee:
        value = IndexValue(tx.add_object(msgspec.structs.replace(grant, created=tx.time)), b"")
        by_grantee.put(key, value)
        by_securable.put(_turned(key), value)


def _remove_grant(tx: Transaction, grant: Grant) -> None:
    tx.index(BY_GRANTEE).remove(_key(grant))
    tx.index(BY_SECURABLE).remove(_turned(_key(grant)))


def _remove_grants(tx: Transaction, entity: ObjectId) -> None:
    """Remove every grant of which an entity is one of the two ends."""
    for near, far in ((BY_SECURABLE, BY_GRANTEE), (BY_GRANTEE, BY_SECURABLE)):
        for key in [key for key, _ in tx.index(near).prefix(_bytes(entity))]:
            tx.index(near).remove(key)
            tx.index(far).remove(_turned(key))


def _usage(realms: RealmRegistry, realm_id: str, role: str, principal: str) -> Grant:
    held = read_principal(realms, realm_id, principal)
    return Grant(securable=read_principal_role(realms, realm_id, role).entity, grantee=held.entity, privilege=ROLE_USAGE)


def _on_realm(realms: RealmRegistry, realm_id: str, role: str, privilege: str) -> Grant:
    realm_store = realms.open_realm(realm_id)
    return Grant(
        securable=_container(realm_store), grantee=read_principal_role(realms, realm_id, role).entity, privilege=privilege
    )


def _container(realm_store: RealmStore) -> ObjectId:
    """The entity number of the realm itself: the securable of the grant that every bootstrap makes."""
    head = _find_head(realm_store, GRANTS, fresh=True)
    index = None if head is None else head.index(BY_SECURABLE)
    keys = () if index is None else index.keys()
    found = next((_entity(key) for key in keys if key[2 * _ENTITY_BYTES :].decode() == MANAGE_REALM), None)
    if found is None:
        raise NotFoundError(f"realm {realm_store.realm!r} has no grants: its bootstrap did not come that far; run it again")
    return found


def _grants_of(realms: RealmRegistry, realm_id: str) -> RealmGrants:
    realm = realms.read_realm(realm_id)
    return read_realm_grants(realms.store.rows(realm.id, realm.key))


def _listed(realm_store: RealmStore, head: Head) -> list[PrincipalRole]:
    entries = list(head.index(BY_NAME).range())
    found = realm_store.read_many([value.object_id or ObjectId(0) for _, value in entries], PrincipalRole)
    return [existing_entity(each, key.decode(), realm_store) for (key, _), each in zip(entries, found, strict=True)]


def _find_head(realm_store: RealmStore, name: str, *, fresh: bool) -> Head | None:
    try:
        return read_head(realm_store, name, fresh=fresh)
    except NotFoundError:
        return None


def _key(grant: Grant) -> bytes:
    return _bytes(grant.grantee) + _bytes(grant.securable) + grant.privilege.encode()


def _turned(key: bytes) -> bytes:
    """The key in the other index."""
    return key[_ENTITY_BYTES : 2 * _ENTITY_BYTES] + key[:_ENTITY_BYTES] + key[2 * _ENTITY_BYTES :]


def _bytes(entity: ObjectId) -> bytes:
    return entity.to_bytes(_ENTITY_BYTES, "big")


def _entity(key: bytes) -> ObjectId:
    return ObjectId(int.from_bytes(key[:_ENTITY_BYTES], "big"))


def _is_empty(index: Index) -> bool:
    return next(iter(index.keys(limit=1)), None) is None
