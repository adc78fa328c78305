"""Rows of realms in a database that can compare-and-swap one row: backends, ids, typed objects, references, a cache.

Knows nothing of commits, indexes, catalogs or what a realm's state means.
"""

from headwater.store.backend import ROW_BYTES, Backend, Capabilities, Move, ObjectKey, ObjectRow, ReferenceRow
from headwater.store.faults import FaultyBackend
from headwater.store.identity import (
    SYSTEM_KEY,
    SYSTEM_REALM,
    ObjectId,
    RealmId,
    RealmKey,
    fixed_id,
    id_of,
    id_text,
    id_time,
    is_fixed,
)
from headwater.store.ids import NodeLease, node_lease_id
from headwater.store.objects import StoredObject, UnknownObject, Versioned, object_type, registered_type
from headwater.store.realm_rows import Gate, RealmStore
from headwater.store.references import Reference
from headwater.store.stores import Store, open_store

__all__ = [
    "ROW_BYTES",
    "SYSTEM_KEY",
    "SYSTEM_REALM",
    "Backend",
    "Capabilities",
    "FaultyBackend",
    "Gate",
    "Move",
    "NodeLease",
    "ObjectId",
    "ObjectKey",
    "ObjectRow",
    "RealmId",
    "RealmKey",
    "RealmStore",
    "Reference",
    "ReferenceRow",
    "Store",
    "StoredObject",
    "UnknownObject",
    "Versioned",
    "fixed_id",
    "id_of",
    "id_text",
    "id_time",
    "is_fixed",
    "node_lease_id",
    "object_type",
    "open_store",
    "registered_type",
]
