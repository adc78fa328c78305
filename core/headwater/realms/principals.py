"""The principals of a realm, and the credentials with which they log in: creation, log-in, rotation, reset, and a lock.

An entity keeps its ``entity`` number through every change of its object; grants name their two ends by it.

principals    index `by-name`: the name        → object `principal`
              index `by-client`: a client's id → the same, for the credentials now and the former ones while they hold
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

from headwater.clock import Micros
from headwater.commits import Head, Transaction, commit_change, read_head
from headwater.errors import CorruptionError, NotFoundError, RefusedError, SwapConflictError, UnavailableError
from headwater.index import Index, IndexValue
from headwater.realms.client_credentials import NOBODY, ROOT_PRINCIPAL, Credentials, CredentialsHash, verify_secret
from headwater.realms.realm_registry import RealmRegistry
from headwater.settings import check_seconds
from headwater.store import ObjectId, RealmReader, RealmStore, StoredObject, object_type

PRINCIPALS = "principals"
BY_NAME = "by-name"
BY_CLIENT = "by-client"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")


@object_type("principal")
class Principal(StoredObject, frozen=True, kw_only=True):
    """An account that can log in.

    former        the previous credentials, as long as they are valid; ``former_until`` is when that ends
    renewed       when the credentials last changed; None: they are the first
    generation    counts from 0 with the credentials, and twice more with each enabling; what was issued names it, and ends with it
    disabled      since when it cannot log in; None: it can
    revoked       sign-ins that were ended before their time, each with the second since 1970 at which it ends anyhow
    """

    entity: ObjectId
    name: str
    credentials: CredentialsHash
    created: Micros = Micros(0)
    former: CredentialsHash | None = None
    former_until: Micros | None = None
    renewed: Micros | None = None
    generation: int = 0
    disabled: Micros | None = None
    revoked: tuple[tuple[str, int], ...] = ()

    @property
    def clients(self) -> tuple[str, ...]:
        """The client ids with which the principal may log in."""
        return (self.credentials.client_id, *((self.former.client_id,) if self.former else ()))

    def find_hash(self, client_id: str, *, now: Micros) -> CredentialsHash | None:
        """The credentials with which a client may log in at a time, those of now or the former ones; None: it may not."""
        held = (self.credentials, self.former if self._has_former(now) else None)
        found = (hashed for hashed in held if hashed is not None and hashed.client_id == client_id)
        return next(found, None) if self.disabled is None else None

    def honors(self, generation: int, *, now: Micros) -> bool:
        """Whether what was issued for credentials of a generation still holds at a time."""
        is_held = generation == self.generation or (generation == self.generation - 1 and self._has_former(now))
        return self.disabled is None and is_held

    def has_revoked(self, sign_in: str) -> bool:
        """Whether a sign-in was ended before its time."""
        return any(each == sign_in for each, _ in self.revoked)

    def generation_of(self, client_id: str) -> int:
        """The generation of the credentials with this client id, which are one of ``clients``."""
        return self.generation if client_id == self.credentials.client_id else self.generation - 1

    def _has_former(self, now: Micros) -> bool:
        return self.former is not None and (self.former_until is None or now < self.former_until)


T = TypeVar("T", bound=StoredObject)


def find_principal(realms: RealmRegistry, realm_id: str, name: str) -> Principal | None:
    """A principal of a realm in any state; None if there is none of this name, as in a realm whose bootstrap did not come that far."""
    realm = realms.read_realm(realm_id)
    realm_store = realms.store.rows(realm.id, realm.key)
    index = _index(realm_store, BY_NAME)
    return None if index is None else find_named(realm_store, index, name, Principal)


def read_principals(realm_store: RealmStore) -> Head | None:
    """The commit that lists a realm's principals now; None before the first. ``find_listed_principal`` reads from it."""
    try:
        return read_head(realm_store, PRINCIPALS, fresh=True)
    except NotFoundError:
        return None


def find_listed_principal(realm_store: RealmStore, head: Head | None, name: str) -> Principal | None:
    """A principal as a commit of ``read_principals`` has it, in any state; None if it lists none of this name."""
    return None if head is None else find_named(realm_store, head.index(BY_NAME), name, Principal)


def read_principal(realms: RealmRegistry, realm_id: str, name: str) -> Principal:
    """A principal of a realm in any state; raises NotFoundError for an unknown realm, and if there is none of this name."""
    held = find_principal(realms, realm_id, name)
    if held is None:
        raise NotFoundError(f"realm {realm_id!r} has no principal {name[:200]!r}")
    return held


def find_root(realms: RealmRegistry, realm_id: str) -> Principal | None:
    """The root principal of a realm, or None as long as its bootstrap did not come that far."""
    return find_principal(realms, realm_id, ROOT_PRINCIPAL)


def list_principals(realms: RealmRegistry, realm_id: str) -> list[Principal]:
    """All principals of a realm, in the order of their names, root among them.

    raises        NotFoundError for an unknown realm; CorruptionError when one is listed and not there
    """
    realm = realms.read_realm(realm_id)
    realm_store = realms.store.rows(realm.id, realm.key)
    index = _index(realm_store, BY_NAME)
    if index is None:
        return []
    entries = list(index.range())
    found = realm_store.read_many([value.object_id or ObjectId(0) for _, value in entries], Principal)
    return [existing_entity(each, key.decode(), realm_store) for (key, _), each in zip(entries, found, strict=True)]


def create_principal(realms: RealmRegistry, realm_id: str, name: str, credentials: CredentialsHash) -> Principal:
    """Create a principal that may do nothing yet. One that has just these credentials already is returned: an earlier call made it.

    raises        RefusedError for a name that is taken or not allowed, for a client id that another principal has, and for a realm
                  that is not ACTIVE; NotFoundError for an unknown realm
    """
    checked_principal_name(name)

    def change(tx: Transaction) -> Principal:
        existing = find_named(tx.reader, tx.index(BY_NAME), name, Principal)
        if existing is not None and existing.credentials == credentials:
            return existing
        if existing is not None:
            raise RefusedError(f"realm {realm_id!r} has a principal {name!r} already: name another, or rotate its credentials")
        principal = Principal(entity=tx.new_id(), name=name, credentials=credentials, created=tx.time)
        _put(tx, None, principal)
        return principal

    return commit_change(realms.open_realm(realm_id), PRINCIPALS, change, message=f"create principal {name}").result


def checked_principal_name(name: str) -> str:
    """Check the name of a principal and return it; raises RefusedError that says which names are valid."""
    if not _NAME.fullmatch(name):
        raise RefusedError(
            f"{name[:200]!r} is no name for a principal: up to 128 letters, digits and . _ @ - that begin with a letter or a digit"
        )
    return name


def log_in(realms: RealmRegistry, realm_id: str, credentials: Credentials) -> Principal:
    """Whoever has these credentials in an ACTIVE realm: those of now, or the former ones as long as they hold.

    raises        RefusedError, which does not tell whether client or secret is wrong or the principal is disabled, neither by its words
                  nor by its time; or that the realm is not ACTIVE
    """
    realm_store = realms.open_realm(realm_id)
    realm_store.check_write()  # only ACTIVE serves users
    index = _index(realm_store, BY_CLIENT)
    value = None if index is None else index.get(credentials.client_id.encode())
    principal = None if value is None or value.object_id is None else realm_store.find_object(value.object_id, Principal)
    hashed = None if principal is None else principal.find_hash(credentials.client_id, now=realms.store.clock.now())
    is_right = verify_secret(hashed or NOBODY, credentials)  # also where it cannot be: nobody learns by the time who is there
    if principal is None or hashed is None or not is_right:
        raise RefusedError(
            f"realm {realm_id!r} refuses client {credentials.client_id!r}: unknown, disabled, or the secret is not its own"
        )
    return principal


def waste_login(credentials: Credentials) -> None:
    """Take as long as a log-in does, for a realm that there is not: nobody learns by the time which realms there are."""
    verify_secret(NOBODY, credentials)


def rotate_principal(
    realms: RealmRegistry,
    realm_id: str,
    name: str,
    credentials: CredentialsHash,
    *,
    replaces: str | None = None,
    overlap_seconds: float | None = None,
) -> Principal:
    """Give a principal of an ACTIVE realm other credentials; the former ones hold for a while, those before them no more.

    replaces         the client id that it must have now; None: whichever it has
    overlap_seconds  for how long the former ones hold; None: until the next rotation
    raises           RefusedError for a realm in another state, and for a client id that another principal has; NotFoundError if there is
                     no such realm or principal; SwapConflictError when it has another client id than ``replaces``: somebody else gave it
                     other credentials meanwhile
    """
    check_seconds(overlap_seconds, "overlap_seconds of a rotation")

    def renew(held: Principal, now: Micros) -> Principal:
        until = None if overlap_seconds is None else Micros(now + round(overlap_seconds * 1_000_000))
        return _with_credentials(held, credentials, now, former=held.credentials, former_until=until)

    return _change_principal(realms, realm_id, name, renew, f"rotate the credentials of {name}", replaces=replaces)


def reset_principal(
    realms: RealmRegistry, realm_id: str, name: str, credentials: CredentialsHash, *, replaces: str | None = None
) -> Principal:
    """Replace credentials as ``rotate_principal`` does, and refuse all former ones from now on: they may have leaked."""

    def renew(held: Principal, now: Micros) -> Principal:
        return _with_credentials(held, credentials, now)

    return _change_principal(realms, realm_id, name, renew, f"reset the credentials of {name}", replaces=replaces)


def disable_principal(realms: RealmRegistry, realm_id: str, name: str) -> Principal:
    """Refuse a principal from now on, whatever it was issued; its credentials and grants stay. Raises as ``rotate_principal`` does."""

    def disable(held: Principal, now: Micros) -> Principal:
        return held if held.disabled is not None else msgspec.structs.replace(held, disabled=now)

    return _change_principal(realms, realm_id, name, disable, f"disable principal {name}")


def enable_principal(realms: RealmRegistry, realm_id: str, name: str) -> Principal:
    """Let a disabled principal log in again, with the credentials that it had. What was issued before it was disabled stays refused.

    Raises as ``rotate_principal`` does.
    """

    def enable(held: Principal, now: Micros) -> Principal:
        if held.disabled is None:
            return held
        # by two: what the present credentials were given must not count as the former ones'
        return msgspec.structs.replace(held, disabled=None, generation=held.generation + 2)

    return _change_principal(realms, realm_id, name, enable, f"enable principal {name}")


_REVOKED_LIMIT = 1000
"""Sign-ins of one principal that are remembered as revoked at the same time: some 30 kB."""


def revoke_sign_in(realms: RealmRegistry, realm_id: str, name: str, sign_in: str, *, until: int) -> Principal:
    """End a sign-in before its time: no token of it holds any more.

    until         the second since 1970 after which none would hold anyhow
    raises        as ``rotate_principal`` does · UnavailableError while as many sign-ins are revoked as are remembered
    """

    def revoke(held: Principal, now: Micros) -> Principal:
        if held.has_revoked(sign_in):
            return held
        left = tuple(each for each in held.revoked if each[1] * 1_000_000 > now)
        if len(left) >= _REVOKED_LIMIT:
            raise UnavailableError(
                f"{_REVOKED_LIMIT:,} sign-ins of {name} of realm {realm_id!r} are revoked, and no more are remembered: try again later,"
                " or reset its credentials, which ends all of its tokens"
            )
        return msgspec.structs.replace(held, revoked=(*left, (sign_in, until)))

    return _change_principal(realms, realm_id, name, revoke, f"revoke a sign-in of {name}")


def remove_principal(tx: Transaction, entity: ObjectId, name: str) -> None:
    """Take a principal out of both indexes of the reference ``principals``; one that is not there, or another of its name, stays so."""
    held = find_named(tx.reader, tx.index(BY_NAME), name, Principal)
    if held is not None and held.entity == entity:
        tx.index(BY_NAME).remove(name.encode())
        for client in held.clients:
            tx.index(BY_CLIENT).remove(client.encode())


def _with_credentials(
    held: Principal,
    credentials: CredentialsHash,
    now: Micros,
    *,
    former: CredentialsHash | None = None,
    former_until: Micros | None = None,
) -> Principal:
    return msgspec.structs.replace(
        held,
        credentials=credentials,
        former=former,
        former_until=former_until,
        renewed=now,
        generation=held.generation + 1,
        revoked=tuple(each for each in held.revoked if each[1] * 1_000_000 > now),
    )


def find_named(reader: RealmReader, index: Index, name: str, cls: type[T]) -> T | None:
    """The entity that an index lists under a name; raises CorruptionError when it is listed and not there."""
    value = index.get(name.encode())
    if value is None:
        return None
    return existing_entity(None if value.object_id is None else reader.find_object(value.object_id, cls), name, reader)


def existing_entity(entity: T | None, name: str, reader: RealmReader) -> T:
    """The entity; raises CorruptionError where it is listed under a name and not there."""
    if entity is None:
        raise CorruptionError(f"{name!r} is listed in realm {reader.realm!r}, but its object is missing: run `headwater fsck`")
    return entity


def _change_principal(
    realms: RealmRegistry,
    realm_id: str,
    name: str,
    renew: Callable[[Principal, Micros], Principal],
    message: str,
    *,
    replaces: str | None = None,
) -> Principal:
    realm_store = realms.open_realm(realm_id)

    def change(tx: Transaction) -> Principal:
        held = find_named(tx.reader, tx.index(BY_NAME), name, Principal)
        if held is None and name == ROOT_PRINCIPAL:
            raise CorruptionError(f"realm {realm_id!r} has no root principal: run `headwater fsck`")
        if held is None:
            raise NotFoundError(f"realm {realm_id!r} has no principal {name[:200]!r}")
        if replaces not in (None, held.credentials.client_id):
            raise SwapConflictError(
                f"{name} of realm {realm_id!r} has the credentials of client {held.credentials.client_id}, and no longer those of"
                f" {replaces}: somebody else renewed them meanwhile"
            )
        renewed = renew(held, tx.time)
        if renewed != held:
            _put(tx, held, renewed)
        return renewed

    return commit_change(realm_store, PRINCIPALS, change, message=message).result


def _put(tx: Transaction, held: Principal | None, principal: Principal) -> None:
    """Put a principal in the place of what it was, and list it by its name and its clients."""
    clients = tx.index(BY_CLIENT)
    for gone in () if held is None else held.clients:
        clients.remove(gone.encode())
    value = IndexValue(tx.add_object(principal), b"")
    for client in dict.fromkeys(principal.clients):
        if client.encode() in clients:
            raise RefusedError(f"client {client} is another principal's already: make new credentials")
        clients.put(client.encode(), value)
    tx.index(BY_NAME).put(principal.name.encode(), value)


def _index(realm_store: RealmStore, name: str) -> Index | None:
    head = read_principals(realm_store)
    return None if head is None else head.index(name)
