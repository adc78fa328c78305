"""The root principal of a realm: found, logged in as, and given other credentials.

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
from headwater.quantities import check_seconds
from headwater.realms.grants import Container, Principal, PrincipalRole
from headwater.realms.realm_registry import RealmRegistry
from headwater.realms.root_credentials import Credentials, CredentialsHash
from headwater.store import RealmReader, RealmStore

PRINCIPALS = "principals"
ROOT = "root"
BY_NAME = "by-name"
BY_CLIENT = "by-client"

_Entity = TypeVar("_Entity", Container, Principal, PrincipalRole)


def find_root(realms: RealmRegistry, realm_id: str) -> Principal | None:
    """The root principal of a realm, or None as long as its bootstrap did not come that far."""
    realm = realms.read_realm(realm_id)
    rows = realms.store.rows(realm.id, realm.key)
    index = _index(rows, BY_NAME)
    return None if index is None else find_named(rows, index, ROOT, Principal)


def log_in(realms: RealmRegistry, realm_id: str, credentials: Credentials) -> Principal:
    """Whoever has these credentials in an ACTIVE realm: those of now, or the former ones as long as they hold.

    raises        RefusedError, which does not tell whether client or secret is wrong; or that the realm is not ACTIVE
    """
    rows = realms.open_realm(realm_id)
    rows.check_write()  # only ACTIVE serves users
    index = _index(rows, BY_CLIENT)
    value = None if index is None else index.get(credentials.client_id.encode())
    found = None if value is None or value.object_id is None else rows.find_object(value.object_id, Principal)
    if found is None or not found.accepts(credentials, now=realms.store.clock.now()):
        raise RefusedError(
            f"realm {realm_id!r} refuses client {credentials.client_id!r}: unknown, or the secret is not its own"
        )
    return found


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
    """As ``rotate_root``, and all former credentials are refused from now on: they may have leaked."""

    def renew(root: Principal, now: Micros) -> Principal:
        return msgspec.structs.replace(root, credentials=credentials, former=None, former_until=None, renewed=now)

    return _renew(realms, realm_id, renew, replaces, "reset the credentials of root")


def find_named(rows: RealmReader, index: Index, name: str, cls: type[_Entity]) -> _Entity | None:
    """The entity that an index lists under a name; raises CorruptionError when it is listed and not there."""
    value = index.get(name.encode())
    if value is None:
        return None
    entity = None if value.object_id is None else rows.find_object(value.object_id, cls)
    if entity is None:
        raise CorruptionError(f"{name!r} is listed in realm {rows.realm!r}, but its object is missing: run `headwater fsck`")
    return entity


def _renew(
    realms: RealmRegistry, realm_id: str, renew: Callable[[Principal, Micros], Principal], replaces: str | None, message: str
) -> Principal:
    rows = realms.open_realm(realm_id)

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

    return commit_change(rows, PRINCIPALS, change, message=message).result


def _index(rows: RealmStore, name: str) -> Index | None:
    try:
        found = read_head(rows, PRINCIPALS, fresh=True)
    except NotFoundError:
        return None
    return None if found is None else found.index(name)
