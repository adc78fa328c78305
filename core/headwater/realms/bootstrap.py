"""What a fresh realm starts with: its named pointers, a root principal who may do everything, and the role by which it may.

Every step looks before it writes and leaves alone what is there, so that an interrupted bootstrap goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from headwater.commits import Transaction, commit, ensure_references, head
from headwater.errors import BeatenError, MissingError, RefusedError, UnreadableError
from headwater.index import Index, Value
from headwater.realms.credentials import CredentialsHash
from headwater.realms.definitions import Realm
from headwater.realms.entities import Container, Grant, Principal, PrincipalRole, grant_key
from headwater.realms.realms import REALM_REFERENCES, Realms
from headwater.realms.states import RealmState
from headwater.store import ObjectId, RealmStore

__all__ = ["bootstrap", "find_root", "rotate_root"]

ROOT_CONTAINER = "root_container"
ROOT_PRINCIPAL = "root"
SERVICE_ADMIN = "service_admin"
BY_NAME = "by-name"
BY_CLIENT = "by-client"
BY_SECURABLE = "by-securable"

_Entity = TypeVar("_Entity", Container, Principal, PrincipalRole)


def bootstrap(realms: Realms, realm_id: str, credentials: CredentialsHash) -> Realm:
    """Take a realm from CREATED (or an interrupted INITIALIZING) to ACTIVE; one that was bootstrapped before is returned as is.

    credentials   of the root principal; where it exists already, its own stay (compare with ``find_root``)
    raises        RefusedError for a realm that is loading or on its way out; MissingError if there is none;
                  BeatenError if somebody else moves the realm meanwhile: call again
    """
    realm = realms.read(realm_id)
    if realm.state in (RealmState.ACTIVE, RealmState.INACTIVE):
        return realm
    if realm.state not in (RealmState.CREATED, RealmState.INITIALIZING):
        raise RefusedError(f"realm {realm_id!r} cannot be bootstrapped: {_REASONS[realm.state]}")
    if realm.state is RealmState.CREATED:
        realm = realms.move(realm, RealmState.INITIALIZING)
    try:
        _fill(realms.open_for(realm_id, RealmState.INITIALIZING), credentials)
        return realms.move(realm, RealmState.ACTIVE)
    except (BeatenError, RefusedError):
        found = realms.find(realm_id)
        if found is not None and found.key == realm.key and found.state is RealmState.ACTIVE:
            return found  # another process brought the same bootstrap to its end
        raise


_REASONS = {
    RealmState.LOADING: "it is LOADING, an import fills it",
    RealmState.PURGING: "it is PURGING, everything in it is being deleted",
    RealmState.PURGED: "it is PURGED; delete it, then create it anew",
}


def find_root(realms: Realms, realm_id: str) -> Principal | None:
    """The root principal of a realm, or None as long as its bootstrap did not come that far."""
    realm = realms.read(realm_id)
    rows = realms.store.rows(realm.id, realm.key)
    try:
        found = head(rows, "principals", fresh=True)
    except MissingError:
        return None
    return None if found is None else _find_named(rows, found.index(BY_NAME), ROOT_PRINCIPAL, Principal)


def rotate_root(realms: Realms, realm_id: str, credentials: CredentialsHash) -> Principal:
    """Give the root principal of an ACTIVE realm other credentials; the former ones are refused from then on.

    raises        RefusedError for a realm in another state; MissingError if there is none
    """
    rows = realms.open(realm_id)

    def change(tx: Transaction) -> Principal:
        index = tx.index(BY_NAME)
        root = _find_named(tx.rows, index, ROOT_PRINCIPAL, Principal)
        if root is None:
            raise UnreadableError(f"realm {realm_id!r} has no root principal: run `headwater fsck`")
        renewed = msgspec.structs.replace(root, credentials=credentials)
        object_id = tx.add(renewed)
        index.put(ROOT_PRINCIPAL.encode(), Value(object_id, b""))
        tx.index(BY_CLIENT).remove(root.credentials.client_id.encode())
        tx.index(BY_CLIENT).put(credentials.client_id.encode(), Value(object_id, b""))
        return renewed

    return commit(rows, "principals", change, message="rotate the credentials of root").result


def _fill(rows: RealmStore, credentials: CredentialsHash) -> None:
    ensure_references(rows, REALM_REFERENCES)
    container = _ensure_named(rows, "root", ROOT_CONTAINER, Container, _make_container)
    principal = _ensure_named(rows, "principals", ROOT_PRINCIPAL, Principal, lambda tx: _make_principal(tx, credentials))
    role = _ensure_named(rows, "principal-roles", SERVICE_ADMIN, PrincipalRole, _make_role)
    usage = (role.entity, principal.entity, "PRINCIPAL_ROLE_USAGE")
    access = (container.entity, role.entity, "SERVICE_MANAGE_ACCESS")
    commit(rows, "grants", lambda tx: _ensure_grants(tx, usage, access), message=f"bootstrap: grants of {SERVICE_ADMIN}")


def _ensure_named(
    rows: RealmStore, reference: str, name: str, cls: type[_Entity], make: Callable[[Transaction], _Entity]
) -> _Entity:
    """The entity of that name under the reference; made now if it is not there."""

    def change(tx: Transaction) -> _Entity:
        index = tx.index(BY_NAME)
        found = _find_named(tx.rows, index, name, cls)
        if found is not None:
            return found
        entity = make(tx)
        object_id = tx.add(entity)
        index.put(name.encode(), Value(object_id, b""))
        if isinstance(entity, Principal):
            tx.index(BY_CLIENT).put(entity.credentials.client_id.encode(), Value(object_id, b""))
        return entity

    return commit(rows, reference, change, message=f"bootstrap: {name}").result


def _find_named(rows: RealmStore, index: Index, name: str, cls: type[_Entity]) -> _Entity | None:
    value = index.get(name.encode())
    if value is None:
        return None
    entity = None if value.object_id is None else rows.find(value.object_id, cls)
    if entity is None:
        raise UnreadableError(f"{name!r} is listed in realm {rows.realm!r}, but its object is missing: run `headwater fsck`")
    return entity


def _ensure_grants(tx: Transaction, *grants: tuple[ObjectId, ObjectId, str]) -> None:
    index = tx.index(BY_SECURABLE)
    for securable, grantee, privilege in grants:
        key = grant_key(securable, grantee, privilege)
        if key not in index:
            grant = Grant(securable=securable, grantee=grantee, privilege=privilege, created=tx.time)
            index.put(key, Value(tx.add(grant), b""))


def _make_container(tx: Transaction) -> Container:
    return Container(entity=tx.rows.new_id(), name=ROOT_CONTAINER, created=tx.time)


def _make_principal(tx: Transaction, credentials: CredentialsHash) -> Principal:
    return Principal(entity=tx.rows.new_id(), name=ROOT_PRINCIPAL, credentials=credentials, created=tx.time)


def _make_role(tx: Transaction) -> PrincipalRole:
    return PrincipalRole(entity=tx.rows.new_id(), name=SERVICE_ADMIN, created=tx.time)
