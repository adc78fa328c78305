"""The identity of a store: made once, for people who meet a file of it in a bucket. A copy of the database has the same one."""

from __future__ import annotations

import secrets
from contextlib import suppress

from headwater.errors import SwapConflictError
from headwater.store.ids import fixed_id
from headwater.store.stored_objects import StoredObject, object_type
from headwater.store.stores import Store

_IDENTITY_ID = fixed_id(7)


@object_type("store-identity", updateable=True)
class StoreIdentity(StoredObject, frozen=True, kw_only=True):
    """``text`` is 32 hex digits."""

    text: str


def read_identity(store: Store) -> str:
    """The identity of a store, made now if it has none."""
    seen = store.system.find_versioned(_IDENTITY_ID, StoreIdentity)
    if seen is None:
        with suppress(SwapConflictError):
            seen = store.system.insert_object(_IDENTITY_ID, StoreIdentity(text=secrets.token_hex(16)))
    if seen is None:
        seen = store.system.read_versioned(_IDENTITY_ID, StoreIdentity)
    return seen.value.text
