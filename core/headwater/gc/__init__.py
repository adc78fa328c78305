"""Garbage collection by mark and sweep: which rows of a realm nothing keeps, why the others stay, and how the former are deleted.

    retention          which references a realm has, and how much of their history stays
    mark_phase         marks every object that stays; live_set and bloom_filter hold the marks
    live_set           also says of a scanned row why it stays, or that it is garbage
    sweep              deletes the garbage rows at a limited rate, and counts them; then tombstones, names, pins, rows of purged realms
    collector          runs one collection from its beginning to its end; shared_scan: several realms in one scan

This package knows what references, commits and catalogs keep. It must not know the inside of tasks, who asks, or when.
"""

from headwater.gc.collector import Collector, abandon_sweep, collect_realm, open_marker
from headwater.gc.live_set import LeftoverParts
from headwater.gc.mark_phase import LiveMarker, check_not_ahead
from headwater.gc.retention import (
    RUNS,
    CollectionScope,
    KeepReason,
    ReferenceOrigin,
    RetentionPolicy,
    ScopeEntry,
    check_collectable,
    open_scope,
)
from headwater.gc.shared_scan import collect_realms
from headwater.gc.sweep import (
    CollectionResult,
    PhaseTimer,
    keys_in_use,
    keys_with_rows,
)

__all__ = [
    "RUNS",
    "CollectionResult",
    "CollectionScope",
    "Collector",
    "KeepReason",
    "LeftoverParts",
    "LiveMarker",
    "PhaseTimer",
    "ReferenceOrigin",
    "RetentionPolicy",
    "ScopeEntry",
    "abandon_sweep",
    "check_collectable",
    "check_not_ahead",
    "collect_realm",
    "collect_realms",
    "keys_in_use",
    "keys_with_rows",
    "open_marker",
    "open_scope",
]
