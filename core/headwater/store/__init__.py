"""Rows of realms in a database that can compare-and-swap one row: backends, ids, typed objects, references, a cache.

Knows nothing of commits, indexes, catalogs or what a realm's state means.
"""

from headwater.store.backend import (
    BULK_BYTES,
    ROW_BYTES,
    Backend,
    Capabilities,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferenceMove,
    ReferencePosition,
    ReferenceRow,
    ScanSplit,
)
from headwater.store.cache import CacheStatistics
from headwater.store.clock_check import DoubtfulClockError, check_clock, confirm_clock
from headwater.store.id_generator import NodeLease, node_lease_id
from headwater.store.ids import (
    SYSTEM_KEY,
    SYSTEM_REALM,
    ObjectId,
    RealmId,
    RealmKey,
    checked_realm_id,
    fixed_id,
    id_of,
    id_text,
    id_time,
    is_fixed,
)
from headwater.store.realm_objects import ObjectBatch, Pointers, is_leaf, unknown_pointers_reason
from headwater.store.realm_refs import Reference, StoreContext, WriteGuard, is_note
from headwater.store.realm_store import ReadableRows, RealmReader, RealmStore, UnreadableRow
from headwater.store.stored_objects import (
    StoredObject,
    StoredPart,
    UnknownFields,
    UnknownObject,
    Versioned,
    object_type,
    registered_type,
)
from headwater.store.stores import Store, StoreCompanion, open_backend, open_store
from headwater.store.urls import BackendKind, StoreUrl, UrlOption, as_count, as_seconds, one_of, parse_url

__all__ = [
    "BULK_BYTES",
    "ROW_BYTES",
    "SYSTEM_KEY",
    "SYSTEM_REALM",
    "Backend",
    "BackendKind",
    "CacheStatistics",
    "Capabilities",
    "DoubtfulClockError",
    "NodeLease",
    "ObjectBatch",
    "ObjectId",
    "ObjectKey",
    "ObjectPosition",
    "ObjectRow",
    "Pointers",
    "ReadableRows",
    "RealmId",
    "RealmKey",
    "RealmReader",
    "RealmStore",
    "Reference",
    "ReferenceKey",
    "ReferenceMove",
    "ReferencePosition",
    "ReferenceRow",
    "ScanSplit",
    "Store",
    "StoreCompanion",
    "StoreContext",
    "StoreUrl",
    "StoredObject",
    "StoredPart",
    "UnknownFields",
    "UnknownObject",
    "UnreadableRow",
    "UrlOption",
    "Versioned",
    "WriteGuard",
    "as_count",
    "as_seconds",
    "check_clock",
    "checked_realm_id",
    "confirm_clock",
    "fixed_id",
    "id_of",
    "id_text",
    "id_time",
    "is_fixed",
    "is_leaf",
    "is_note",
    "node_lease_id",
    "object_type",
    "one_of",
    "open_backend",
    "open_store",
    "parse_url",
    "registered_type",
    "unknown_pointers_reason",
]
