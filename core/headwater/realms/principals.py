"""The principals of a realm, and the credentials with which they log in, from the first ones through rotations to a reset.

An entity keeps its ``entity`` number through every change of its object; grants name their two ends by it.

principals    index `by-name`: the name        → object `principal`
              index `by-client`: a client's id → the same, for the credentials now and the former ones while they hold
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, read_head
from headwater.errors import CorruptionError, NotFoundError, RefusedError, SwapConflictError
from headwater.index import Index, IndexValue
from headwater.realms.client_credentials import Credentials, CredentialsHash, verify_secret
from headwater.realms.realm_registry import RealmRegistry
from headwater.settings import check_seconds
from headwater.store import ObjectId, RealmReader, RealmStore, StoredObject, object_type

PRINCIPALS = "principals"
ROOT = "root"
BY_NAME = "by-name"
BY_CLIENT = "by-client"


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


T = TypeVar("T", bound=StoredObject)


def find_root(realms: RealmRegistry, realm_id: str) -> Principal | None:
    """The root principal of a realm, or None as long as its bootstrap did not come that far."""
    realm = realms.read_realm(realm_id)
    realm_store = realms.store.rows(realm.id, realm.key)
    index = _index(realm_store, BY_NAME)
    return None if index is None else find_named(realm_store, index, ROOT, Principal)


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


def find_named(reader: RealmReader, index: Index, name: str, cls: type[T]) -> T | None:
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
        root = find_named(tx.reader, tx.index(BY_NAME), ROOT, Principal)
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
