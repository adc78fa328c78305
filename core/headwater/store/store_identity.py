"""The identity of a store, and the least release that may maintain it.

The identity is made once, for people who meet a file of the store in a bucket. A copy of the database has the same one.

``RELEASE`` counts what releases know of references. Whoever makes a reference of a kind that earlier releases do not know first raises
the number of the store. A release with a lower number reads and writes the store as before, and refuses to maintain it: it would take
for garbage, or leave out of an archive, what such a reference holds. Release 0.1.0 does not know the number.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Final

import msgspec

from headwater.errors import RefusedError, SwapConflictError
from headwater.store.ids import SYSTEM_KEY, SYSTEM_REALM, fixed_id
from headwater.store.realm_refs import StoreContext
from headwater.store.realm_store import RealmStore
from headwater.store.stored_objects import StoredObject, Versioned, object_type
from headwater.store.stores import Store

_IDENTITY_ID = fixed_id(7)
RELEASE: Final = 1
"""This release's number: it keeps every reference, also those that it does not know, and lists those of extensions. Raise it with each
new kind of reference, and call ``raise_least_release`` before the first one is made."""
RELEASE_NAME: Final = "0.2.0"
"""The first release with that number."""
_TRIES = 20


@object_type("store-identity", updateable=True)
class StoreIdentity(StoredObject, frozen=True, kw_only=True):
    """``text`` is 32 hex digits.

    least_release  the number of the least release that may maintain the store; 0: any
    least_name     the first release that has this number, for messages
    """

    text: str
    least_release: int = 0
    least_name: str = ""


def read_identity(store: Store) -> str:
    """The identity of a store, made now if it has none."""
    return _identity(store.system).value.text


def read_least_release(store: StoreContext) -> tuple[int, str]:
    """The number and the name of the least release that may maintain a store; 0: any."""
    seen = _system(store).find_versioned(_IDENTITY_ID, StoreIdentity)
    return (0, "") if seen is None else (seen.value.least_release, seen.value.least_name)


def raise_least_release(store: StoreContext, number: int = RELEASE, name: str = RELEASE_NAME) -> None:
    """Let no release with a lower number maintain the store from now on. A number that is high enough already stays.

    raises        SwapConflictError when others change the object all the time
    """
    system = _system(store)
    for _ in range(_TRIES):
        seen = _identity(system)
        if seen.value.least_release >= number:
            return
        with suppress(SwapConflictError):
            system.update_object(seen, msgspec.structs.replace(seen.value, least_release=number, least_name=name))
            return
    raise SwapConflictError("the identity of the store changes too fast: try again")


def check_may_maintain(store: StoreContext, what: str) -> None:
    """Pass if this release may maintain the store.

    what          what is refused otherwise, such as "a collection"
    raises        RefusedError that names the release that is needed
    """
    number, name = read_least_release(store)
    if number > RELEASE:
        raise RefusedError(
            f"this store has references of a kind that release {name or 'a later one'} brought (number {number}; this release has"
            f" {RELEASE}): {what} by this release could lose what they hold, and changes nothing; use release {name or 'that one'} or a"
            " later one"
        )


def _system(store: StoreContext) -> RealmStore:
    return RealmStore(store, SYSTEM_REALM, SYSTEM_KEY, None)


def _identity(system: RealmStore) -> Versioned[StoreIdentity]:
    seen = system.find_versioned(_IDENTITY_ID, StoreIdentity)
    if seen is None:
        with suppress(SwapConflictError):
            seen = system.insert_object(_IDENTITY_ID, StoreIdentity(text=secrets.token_hex(16)))
    return system.read_versioned(_IDENTITY_ID, StoreIdentity) if seen is None else seen
