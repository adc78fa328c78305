"""The bootstrap of a realm: its named references, a root principal who may do everything, and the role that allows it.

Every step looks before it writes and leaves existing objects alone, so that an interrupted bootstrap resumes where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, complete_operation
from headwater.errors import CorruptionError, NotFoundError, RefusedError, SwapConflictError
from headwater.index import IndexValue
from headwater.realms.client_credentials import ROOT_PRINCIPAL, CredentialsHash
from headwater.realms.principal_roles import (
    GRANTS,
    MANAGE_REALM,
    PRINCIPAL_ROLES,
    ROLE_USAGE,
    SERVICE_ADMIN,
    Grant,
    PrincipalRole,
    put_grant,
)
from headwater.realms.principals import BY_CLIENT, BY_NAME, PRINCIPALS, Principal, find_named
from headwater.realms.realm_definition import Realm, RealmState
from headwater.realms.realm_registry import REALM_REFERENCES, RealmRegistry
from headwater.store import ObjectId, RealmStore, StoredObject, object_type

ROOT_CONTAINER = "root_container"


@object_type("container")
class Container(StoredObject, frozen=True, kw_only=True):
    """The securable that grants for a whole realm refer to."""

    entity: ObjectId
    name: str
    created: Micros = Micros(0)


_Entity = TypeVar("_Entity", Container, Principal, PrincipalRole)


def bootstrap(
    realms: RealmRegistry,
    realm_id: str,
    credentials: CredentialsHash,
    *,
    seen: Realm | None = None,
    replaces: str | None = None,
) -> Realm:
    """Take a realm from CREATED (or an interrupted INITIALIZING) to ACTIVE; one that was bootstrapped before is returned as is.

    credentials   of the root principal; one that exists already keeps its own (compare with ``find_root``)
    seen          the realm as the caller read it; None: any realm of that id
    replaces      the client id of the root's credentials that these replace all the same, because nobody was given them
    raises        RefusedError for a realm that is loading or being purged; NotFoundError if there is none;
                  SwapConflictError if another process changes the realm, or it is not as seen; UnknownOutcomeError if it may be
                  incomplete: look, and call again
    """
    realm = realms.read_realm(realm_id)
    if realm.state in (RealmState.ACTIVE, RealmState.INACTIVE):
        return realm
    check_bootstrap(realm)
    if seen is not None and realm != seen:
        raise SwapConflictError(f"realm {realm_id!r} was changed meanwhile; it is {realm.state}: read it again")
    if realm.state is RealmState.CREATED:
        realm = realms.move_realm(realm, RealmState.INITIALIZING)

    def finish() -> Realm:
        _fill(realms, realm, credentials, replaces)
        return realms.move_realm(realm, RealmState.ACTIVE)

    done = f"realm {realm_id!r} is INITIALIZING and may be incomplete: bootstrap it again"
    try:
        return complete_operation(
            realms.store.system, finish, done=done, passed_on=(SwapConflictError, NotFoundError, RefusedError)
        )
    except (SwapConflictError, NotFoundError, RefusedError, CorruptionError) as fault:
        current = complete_operation(realms.store.system, lambda: realms.find_realm(realm_id), done=done)
        if current is None or current.key != realm.key:
            raise RefusedError(f"realm {realm_id!r} was purged while it was being bootstrapped") from fault
        if current.state is RealmState.ACTIVE:
            return current  # another process brought the same bootstrap to its end
        check_bootstrap(current)  # objects that a purge has deleted are no damage
        raise


def check_bootstrap(realm: Realm) -> None:
    """Pass unless an import fills the realm, or it is being purged; raises RefusedError with the reason."""
    if realm.state in _REASONS:
        raise RefusedError(f"realm {realm.id!r} cannot be bootstrapped: {_REASONS[realm.state]}")


_REASONS = {
    RealmState.LOADING: "it is LOADING, an import fills it",
    RealmState.PURGING: "it is PURGING, everything in it is being deleted",
    RealmState.PURGED: "it is PURGED; delete it, then create it anew",
}


def _fill(realms: RealmRegistry, realm: Realm, credentials: CredentialsHash, replaces: str | None) -> None:
    realm_store = realms.open_realm_for(realm.id, RealmState.INITIALIZING)
    realm_store.ensure_references(REALM_REFERENCES)
    container = _ensure_named(realm_store, "root", ROOT_CONTAINER, Container, _make_container)
    if replaces is not None:
        _replace_root(realms, realm, realm_store, credentials, replaces)
    principal = _ensure_named(realm_store, PRINCIPALS, ROOT_PRINCIPAL, Principal, lambda tx: _make_principal(tx, credentials))
    role = _ensure_named(realm_store, PRINCIPAL_ROLES, SERVICE_ADMIN, PrincipalRole, _make_role)
    usage = Grant(securable=role.entity, grantee=principal.entity, privilege=ROLE_USAGE)
    access = Grant(securable=container.entity, grantee=role.entity, privilege=MANAGE_REALM)
    commit_change(
        realm_store, GRANTS, lambda tx: _ensure_grants(tx, usage, access), message=f"bootstrap: grants of {SERVICE_ADMIN}"
    )


def _ensure_named(
    realm_store: RealmStore, reference: str, name: str, cls: type[_Entity], make: Callable[[Transaction], _Entity]
) -> _Entity:
    """Returns the entity of that name under the reference; makes it if it is absent."""

    def change(tx: Transaction) -> _Entity:
        index = tx.index(BY_NAME)
        existing = find_named(tx.reader, index, name, cls)
        if existing is not None:
            return existing
        entity = make(tx)
        object_id = tx.add_object(entity)
        index.put(name.encode(), IndexValue(object_id, b""))
        if isinstance(entity, Principal):
            tx.index(BY_CLIENT).put(entity.credentials.client_id.encode(), IndexValue(object_id, b""))
        return entity

    return commit_change(realm_store, reference, change, message=f"bootstrap: {name}").result


def _replace_root(
    realms: RealmRegistry, realm: Realm, realm_store: RealmStore, credentials: CredentialsHash, replaces: str
) -> None:
    """Replace the root's credentials if they are those of ``replaces`` and the realm has not changed since."""

    def change(tx: Transaction) -> None:
        root = find_named(tx.reader, tx.index(BY_NAME), ROOT_PRINCIPAL, Principal)
        if root is not None and root.credentials == credentials:
            return  # an earlier try did it
        if root is None or root.credentials.client_id != replaces or realms.find_realm(realm.id) != realm:
            raise SwapConflictError(f"realm {realm.id!r} was changed while it was being bootstrapped: read it again")
        value = IndexValue(tx.add_object(msgspec.structs.replace(root, credentials=credentials, renewed=tx.time)), b"")
        tx.index(BY_NAME).put(ROOT_PRINCIPAL.encode(), value)
        tx.index(BY_CLIENT).remove(replaces.encode())
        tx.index(BY_CLIENT).put(credentials.client_id.encode(), value)

    commit_change(realm_store, PRINCIPALS, change, message="bootstrap: other credentials of root")


def _ensure_grants(tx: Transaction, *grants: Grant) -> None:
    for grant in grants:
        put_grant(tx, grant)


def _make_container(tx: Transaction) -> Container:
    return Container(entity=tx.new_id(), name=ROOT_CONTAINER, created=tx.time)


def _make_principal(tx: Transaction, credentials: CredentialsHash) -> Principal:
    return Principal(entity=tx.new_id(), name=ROOT_PRINCIPAL, credentials=credentials, created=tx.time)


def _make_role(tx: Transaction) -> PrincipalRole:
    return PrincipalRole(entity=tx.new_id(), name=SERVICE_ADMIN, created=tx.time)
