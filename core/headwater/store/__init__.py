"""Rows of realms in a database that can compare-and-swap one row: backends, ids, typed objects, references, a cache.

Knows nothing of commits, indexes, catalogs or what a realm's state means.
"""

from headwater.store.backend import (
    BULK_BYTES,
    ROW_BYTES,
    Backend,
    Capabilities,
    Move,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    Split,
)
from headwater.store.cache import CacheStatistics
from headwater.store.clock_evidence import DoubtfulClockError, check_clock, confirm_clock
from headwater.store.identity import (
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
from headwater.store.ids import NodeLease, node_lease_id
from headwater.store.listings import ReadableRows, UnreadableRow
from headwater.store.objects import StoredObject, UnknownObject, Versioned, object_type, registered_type
from headwater.store.pointing import Pointing, is_leaf, why_untold
from headwater.store.realm_reader import RealmReader
from headwater.store.realm_rows import Batch, Gate, RealmStore, Whole
from headwater.store.references import Reference, is_note
from headwater.store.stores import Store, open_backend, open_store
from headwater.store.unknown_fields import StoredPart, UnknownFields
from headwater.store.urls import BackendKind, Option, StoreUrl, as_count, as_seconds, one_of, parse_url

__all__ = [
    "BULK_BYTES",
    "ROW_BYTES",
    "SYSTEM_KEY",
    "SYSTEM_REALM",
    "Backend",
    "BackendKind",
    "Batch",
    "CacheStatistics",
    "Capabilities",
    "DoubtfulClockError",
    "Gate",
    "Move",
    "NodeLease",
    "ObjectId",
    "ObjectKey",
    "ObjectPosition",
    "ObjectRow",
    "Option",
    "Pointing",
    "ReadableRows",
    "RealmId",
    "RealmKey",
    "RealmReader",
    "RealmStore",
    "Reference",
    "ReferenceKey",
    "ReferencePosition",
    "ReferenceRow",
    "Split",
    "Store",
    "StoreUrl",
    "StoredObject",
    "StoredPart",
    "UnknownFields",
    "UnknownObject",
    "UnreadableRow",
    "Versioned",
    "Whole",
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
    "why_untold",
]
