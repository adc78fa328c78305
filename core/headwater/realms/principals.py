"""The principals of a realm, their roles, grants and credentials: from the bootstrap of its root to log-in and rotation.

The bootstrap makes the named references, a root principal who may do everything, and the role that allows it. Every step looks before
it writes and leaves existing objects alone, so that an interrupted bootstrap resumes where it was.

Credentials are made here, given to a person once, and stored only as a salted hash. An entity keeps its ``entity`` number through every
change of its object; grants name their two ends by it.

principals    index `by-name`: the name        → object `principal`
              index `by-client`: a client's id → the same, for the credentials now and the former ones while they hold
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import msgspec

from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, complete_operation, read_head
from headwater.errors import CorruptionError, NotFoundError, RefusedError, SwapConflictError
from headwater.index import Index, IndexValue
from headwater.realms.realm_definition import Realm, RealmState
from headwater.realms.realm_registry import REALM_REFERENCES, RealmRegistry
from headwater.settings import check_seconds
from headwater.store import ObjectId, RealmReader, RealmStore, StoredObject, object_type

# scrypt with 16 MiB and about 50 ms a try; each hash carries its own cost, so that later releases can raise it
_COST, _BLOCK, _PARALLEL = 2**14, 8, 1


@dataclass(frozen=True, slots=True)
class Credentials:
    """The id and the secret with which a client logs in. The secret never appears in the text form."""

    client_id: str
    client_secret: str = field(repr=False)


class CredentialsHash(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials as a store keeps them: the client's id, and a scrypt digest of the secret with its salt and costs."""

    known_by: ClassVar[tuple[str, ...]] = ("client_id", "digest")

    client_id: str
    salt: bytes
    digest: bytes
    cost: int = _COST
    block: int = _BLOCK
    parallel: int = _PARALLEL


def new_credentials() -> Credentials:
    """Fresh random credentials: an id of 16 hex digits, and a secret of 256 bits."""
    return Credentials(client_id=secrets.token_hex(8), client_secret=secrets.token_urlsafe(32))


def hash_credentials(credentials: Credentials) -> CredentialsHash:
    """The salted hash of credentials; every call uses another salt and gives another hash."""
    salt = secrets.token_bytes(16)
    digest = _digest(credentials.client_secret, salt=salt, cost=_COST, block=_BLOCK, parallel=_PARALLEL)
    return CredentialsHash(
        client_id=credentials.client_id, salt=salt, digest=digest, cost=_COST, block=_BLOCK, parallel=_PARALLEL
    )


def verify_secret(stored: CredentialsHash, credentials: Credentials) -> bool:
    """Whether the hash was made from these credentials."""
    digest = _digest(
        credentials.client_secret, salt=stored.salt, cost=stored.cost, block=stored.block, parallel=stored.parallel
    )
    return hmac.compare_digest(digest, stored.digest) and hmac.compare_digest(
        stored.client_id.encode(), credentials.client_id.encode()
    )


def _digest(secret: str, *, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    return hashlib.scrypt(secret.encode(), salt=salt, n=cost, r=block, p=parallel, dklen=32)


@object_type("container")
class Container(StoredObject, frozen=True, kw_only=True):
    """The securable that grants for a whole realm refer to."""

    entity: ObjectId
    name: str
    created: Micros = Micros(0)


@object_type("principal")
class Principal(StoredObject, frozen=True, kw_only=True):
    """An account that can log in.

    former        the previous credentials, as long as they are valid; ``former_until`` is when that ends
    renewed       when the credentials last changed; None: they are the first
    """

    entity: ObjectId
    name: str
    credentials: CredentialsHash
    created: Micros = Micros(0)
    former: CredentialsHash | None = None
    former_until: Micros | None = None
    renewed: Micros | None = None

    @property
    def clients(self) -> tuple[str, ...]:
        """The client ids with which the principal may log in."""
        return (self.credentials.client_id, *((self.former.client_id,) if self.former else ()))

    def accepts(self, credentials: Credentials, *, now: Micros) -> bool:
        """Whether these credentials are valid at a time."""
        is_over = self.former_until is not None and now >= self.former_until
        held = (self.credentials, None if is_over else self.former)
        return any(
            hashed is not None and hashed.client_id == credentials.client_id and verify_secret(hashed, credentials)
            for hashed in held
        )


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


def _grant_key(securable: ObjectId, grantee: ObjectId, privilege: str) -> bytes:
    """Eight bytes each for securable and grantee, then the privilege: a prefix finds all grants on a securable."""
    return securable.to_bytes(8, "big") + grantee.to_bytes(8, "big") + privilege.encode()


PRINCIPALS = "principals"
ROOT = "root"
BY_NAME = "by-name"
BY_CLIENT = "by-client"
ROOT_CONTAINER = "root_container"
SERVICE_ADMIN = "service_admin"
BY_SECURABLE = "by-securable"

_Entity = TypeVar("_Entity", Container, Principal, PrincipalRole)


def find_root(realms: RealmRegistry, realm_id: str) -> Principal | None:
    """The root principal of a realm, or None as long as its bootstrap did not come that far."""
    realm = realms.read_realm(realm_id)
    realm_store = realms.store.rows(realm.id, realm.key)
    index = _index(realm_store, BY_NAME)
    return None if index is None else _find_named(realm_store, index, ROOT, Principal)


def log_in(realms: RealmRegistry, realm_id: str, credentials: Credentials) -> Principal:
    """Whoever has these credentials in an ACTIVE realm: those of now, or the former ones as long as they hold.

    raises        RefusedError, which does not tell whether client or secret is wrong; or that the realm is not ACTIVE
    """
    realm_store = realms.open_realm(realm_id)
    realm_store.check_write()  # only ACTIVE serves users
    index = _index(realm_store, BY_CLIENT)
    value = None if index is None else index.get(credentials.client_id.encode())
    principal = None if value is None or value.object_id is None else realm_store.find_object(value.object_id, Principal)
    if principal is None or not principal.accepts(credentials, now=realms.store.clock.now()):
        raise RefusedError(
            f"realm {realm_id!r} refuses client {credentials.client_id!r}: unknown, or the secret is not its own"
        )
    return principal


def rotate_root(
    realms: RealmRegistry,
    realm_id: str,
    credentials: CredentialsHash,
    *,
    replaces: str | None = None,
    overlap_seconds: float | None = None,
) -> Principal:
    """Give the root principal of an ACTIVE realm other credentials; the former ones hold for a while, those before them no more.

    replaces         the client id that root must have now; None: whichever it has
    overlap_seconds  for how long the former ones hold; None: until the next rotation
    raises           RefusedError for a realm in another state; NotFoundError if there is none; SwapConflictError when root has another
                     client id than ``replaces``: somebody else gave it other credentials meanwhile
    """

    check_seconds(overlap_seconds, "overlap_seconds of a rotation")

    def renew(root: Principal, now: Micros) -> Principal:
        until = None if overlap_seconds is None else Micros(now + round(overlap_seconds * 1_000_000))
        return msgspec.structs.replace(root, credentials=credentials, former=root.credentials, former_until=until, renewed=now)

    return _renew(realms, realm_id, renew, replaces, "rotate the credentials of root")


def reset_root(realms: RealmRegistry, realm_id: str, credentials: CredentialsHash, *, replaces: str | None = None) -> Principal:
    """Replace the root's credentials like ``rotate_root``, and refuse all former ones from now on: they may have leaked."""

    def renew(root: Principal, now: Micros) -> Principal:
        return msgspec.structs.replace(root, credentials=credentials, former=None, former_until=None, renewed=now)

    return _renew(realms, realm_id, renew, replaces, "reset the credentials of root")


def _find_named(reader: RealmReader, index: Index, name: str, cls: type[_Entity]) -> _Entity | None:
    """The entity that an index lists under a name; raises CorruptionError when it is listed and not there."""
    value = index.get(name.encode())
    if value is None:
        return None
    entity = None if value.object_id is None else reader.find_object(value.object_id, cls)
    if entity is None:
        raise CorruptionError(f"{name!r} is listed in realm {reader.realm!r}, but its object is missing: run `headwater fsck`")
    return entity


def _renew(
    realms: RealmRegistry, realm_id: str, renew: Callable[[Principal, Micros], Principal], replaces: str | None, message: str
) -> Principal:
    realm_store = realms.open_realm(realm_id)

    def change(tx: Transaction) -> Principal:
        root = _find_named(tx.reader, tx.index(BY_NAME), ROOT, Principal)
        if root is None:
            raise CorruptionError(f"realm {realm_id!r} has no root principal: run `headwater fsck`")
        if replaces not in (None, root.credentials.client_id):
            raise SwapConflictError(
                f"root of realm {realm_id!r} has the credentials of client {root.credentials.client_id}, and no longer those of"
                f" {replaces}: somebody else renewed them meanwhile"
            )
        renewed = renew(root, tx.time)
        value = IndexValue(tx.add_object(renewed), b"")
        tx.index(BY_NAME).put(ROOT.encode(), value)
        for gone in root.clients:
            tx.index(BY_CLIENT).remove(gone.encode())
        for client in renewed.clients:
            tx.index(BY_CLIENT).put(client.encode(), value)
        return renewed

    return commit_change(realm_store, PRINCIPALS, change, message=message).result


def _index(realm_store: RealmStore, name: str) -> Index | None:
    try:
        head = read_head(realm_store, PRINCIPALS, fresh=True)
    except NotFoundError:
        return None
    return None if head is None else head.index(name)


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
    principal = _ensure_named(realm_store, PRINCIPALS, ROOT, Principal, lambda tx: _make_principal(tx, credentials))
    role = _ensure_named(realm_store, "principal-roles", SERVICE_ADMIN, PrincipalRole, _make_role)
    usage = (role.entity, principal.entity, "PRINCIPAL_ROLE_USAGE")
    access = (container.entity, role.entity, "SERVICE_MANAGE_ACCESS")
    commit_change(
        realm_store, "grants", lambda tx: _ensure_grants(tx, usage, access), message=f"bootstrap: grants of {SERVICE_ADMIN}"
    )


def _ensure_named(
    realm_store: RealmStore, reference: str, name: str, cls: type[_Entity], make: Callable[[Transaction], _Entity]
) -> _Entity:
    """Returns the entity of that name under the reference; makes it if it is absent."""

    def change(tx: Transaction) -> _Entity:
        index = tx.index(BY_NAME)
        existing = _find_named(tx.reader, index, name, cls)
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
        root = _find_named(tx.reader, tx.index(BY_NAME), ROOT, Principal)
        if root is not None and root.credentials == credentials:
            return  # an earlier try did it
        if root is None or root.credentials.client_id != replaces or realms.find_realm(realm.id) != realm:
            raise SwapConflictError(f"realm {realm.id!r} was changed while it was being bootstrapped: read it again")
        value = IndexValue(tx.add_object(msgspec.structs.replace(root, credentials=credentials, renewed=tx.time)), b"")
        tx.index(BY_NAME).put(ROOT.encode(), value)
        tx.index(BY_CLIENT).remove(replaces.encode())
        tx.index(BY_CLIENT).put(credentials.client_id.encode(), value)

    commit_change(realm_store, PRINCIPALS, change, message="bootstrap: other credentials of root")


def _ensure_grants(tx: Transaction, *grants: tuple[ObjectId, ObjectId, str]) -> None:
    index = tx.index(BY_SECURABLE)
    for securable, grantee, privilege in grants:
        key = _grant_key(securable, grantee, privilege)
        if key not in index:
            grant = Grant(securable=securable, grantee=grantee, privilege=privilege, created=tx.time)
            index.put(key, IndexValue(tx.add_object(grant), b""))


def _make_container(tx: Transaction) -> Container:
    return Container(entity=tx.new_id(), name=ROOT_CONTAINER, created=tx.time)


def _make_principal(tx: Transaction, credentials: CredentialsHash) -> Principal:
    return Principal(entity=tx.new_id(), name=ROOT, credentials=credentials, created=tx.time)


def _make_role(tx: Transaction) -> PrincipalRole:
    return PrincipalRole(entity=tx.new_id(), name=SERVICE_ADMIN, created=tx.time)
