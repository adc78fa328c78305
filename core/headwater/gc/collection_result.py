"""What a collection counts: rows that it saw, why they stayed, what was deleted, and how long each phase took."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import msgspec

from headwater.clock import Clock, Micros, as_text
from headwater.errors import CorruptionError
from headwater.gc.retention import KeepReason
from headwater.store import ObjectKey

_type = itemgetter(ObjectKey._fields.index("type"))
_bytes = itemgetter(ObjectKey._fields.index("bytes"))


@dataclass(slots=True, kw_only=True)
class CollectionResult:
    """What a collection saw and did, counted in rows (an object may have several).

    kept          by reason; ``types`` the same by object type, with what is "garbage" beside it
    leftover_parts  of the garbage: parts that an interrupted rewriting left of an object that itself may stay
    deleted       rows that the database confirmed gone; in a dry run 0, and ``garbage`` says what would go
    deleted_bytes, deleted_types  of rows of which it is certain that they were among these: at least so many; by type (rows, bytes)
    marks         objects that were marked; what a filter holds of them is estimated
    filter_bytes, filter_fpp  of the filter, and the share of garbage that it keeps by mistake; 0 where the marks are exact
    seconds       by phase: note, mark, plan (a whole scan), raise, sweep (another one), and of the sweep what deletions took;
                  of splits that are swept at the same time, a split's share
    resumed       how often an interrupted sweep was gone on with; all counts are of all attempts together
    """

    realm: str
    dry_run: bool
    writer_cutoff: Micros
    reader_cutoff: Micros
    references: int = 0
    scanned: int = 0
    scanned_bytes: int = 0
    garbage: int = 0
    garbage_bytes: int = 0
    leftover_parts: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    types: dict[str, dict[str, int]] = field(default_factory=dict)
    garbage_types: dict[str, tuple[int, int]] = field(default_factory=dict)
    deleted_types: dict[str, tuple[int, int]] = field(default_factory=dict)
    tombstones_removed: int = 0
    claims_released: int = 0
    pins_released: int = 0
    late_rows_deleted: int = 0
    marks: int = 0
    filter_bytes: int = 0
    filter_fpp: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    resumed: int = 0
    notes: list[str] = field(default_factory=list)

    def as_plain(self) -> dict[str, Any]:
        """For a task's outcome and a run's record."""
        return {
            "realm": self.realm,
            "dryRun": self.dry_run,
            "writerCutoff": as_text(self.writer_cutoff),
            "readerCutoff": as_text(self.reader_cutoff),
            "references": self.references,
            "scanned": self.scanned,
            "scannedBytes": self.scanned_bytes,
            "kept": dict(self.kept),
            "garbage": self.garbage,
            "garbageBytes": self.garbage_bytes,
            "leftoverParts": self.leftover_parts,
            "deleted": self.deleted,
            "deletedBytes": self.deleted_bytes,
            "types": {name: dict(reasons) for name, reasons in self.types.items()},
            "garbageTypes": _by_type(self.garbage_types),
            "deletedTypes": _by_type(self.deleted_types),
            "tombstonesRemoved": self.tombstones_removed,
            "claimsReleased": self.claims_released,
            "pinsReleased": self.pins_released,
            "lateRowsDeleted": self.late_rows_deleted,
            "marks": self.marks,
            "filterBytes": self.filter_bytes,
            "filterFpp": self.filter_fpp,
            "seconds": {name: round(seconds, 3) for name, seconds in self.seconds.items()},
            "resumed": self.resumed,
            "notes": list(self.notes),
        }

    def saved(self) -> dict[str, Any]:
        """For whoever goes on with this run; ``restored`` reads it."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> CollectionResult:
        """What ``saved`` told. CorruptionError when another release meant something else by it."""
        try:
            return msgspec.convert(saved, cls)
        except msgspec.ValidationError as fault:
            raise CorruptionError(f"the counts of an interrupted collection cannot be read: {fault}") from fault

    def count_scanned(self, batch: Sequence[ObjectKey], judged: Sequence[KeepReason | None]) -> None:
        """Add what was decided of a batch of rows."""
        self.scanned += len(batch)
        self.scanned_bytes += sum(map(_bytes, batch))
        for (kind, why), rows in Counter(zip(map(_type, batch), judged, strict=True)).items():
            name = "garbage" if why is None else why.value
            reasons = self.types.setdefault(kind, {})
            reasons[name] = reasons.get(name, 0) + rows
            if why is None:
                self.garbage += rows
            else:
                self.kept[name] = self.kept.get(name, 0) + rows
        if None in judged:
            garbage = [key for key, why in zip(batch, judged, strict=True) if why is None]
            self.garbage_bytes += sum(map(_bytes, garbage))
            _add(self.garbage_types, garbage)

    def count_deleted(self, rows: int, gone: Sequence[ObjectKey]) -> None:
        """Add what the database says went, and which rows these were as far as that is certain."""
        self.deleted += rows
        self.deleted_bytes += sum(map(_bytes, gone))
        _add(self.deleted_types, gone)


class PhaseTimer:
    """Adds up how long each phase takes, on a clock that does not step. For several threads."""

    def __init__(self, clock: Clock, seconds: dict[str, float]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()

    @contextmanager
    def time_phase(self, name: str, *, share: int = 1) -> Iterator[None]:
        """Time what stands inside. ``share``: so many do it side by side."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            taken = (self._clock.monotonic() - began) / share
            with self._lock:
                self._seconds[name] = self._seconds.get(name, 0.0) + taken


def _add(types: dict[str, tuple[int, int]], keys: Sequence[ObjectKey]) -> None:
    for kind, rows in Counter(map(_type, keys)).items():
        before, size = types.get(kind, (0, 0))
        types[kind] = (before + rows, size)
    for key in keys:
        rows, size = types[key.type]
        types[key.type] = (rows, size + key.bytes)


def _by_type(types: dict[str, tuple[int, int]]) -> dict[str, dict[str, int]]:
    return {name: {"rows": rows, "bytes": size} for name, (rows, size) in types.items()}
