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

    kept          rows that stay, by reason
    types         rows by object type and reason; "garbage" is one of the reasons
    leftover_parts  garbage rows that are parts which an interrupted rewriting left; their object itself may stay
    deleted       rows that the database confirmed deleted; 0 in a dry run, where ``garbage`` counts what would go
    deleted_bytes, deleted_types  at least: they count the rows whose deletion is certain; by type (rows, bytes)
    marks         objects that were marked; the part that a filter holds is estimated
    filter_bytes, filter_fpp  the filter's size and the share of garbage that it keeps by mistake; 0 where the marks are exact
    seconds       by phase: note, mark, plan (a whole scan), raise, save, sweep (another scan), delete (a part of the sweep);
                  where splits are swept side by side, a split's share
    resumed       how often an interrupted sweep was resumed; every count is the sum over all attempts
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
        """The result as plain data, for a task's outcome and a run's record."""
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
        """The counts as plain data that a resumed run reads with ``restored``."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> CollectionResult:
        """The counts that ``saved`` gave. Raises CorruptionError when another release wrote them in another form."""
        try:
            return msgspec.convert(saved, cls)
        except msgspec.ValidationError as fault:
            raise CorruptionError(f"the counts of an interrupted collection cannot be read: {fault}") from fault

    def count_scanned(self, batch: Sequence[ObjectKey], reasons: Sequence[KeepReason | None]) -> None:
        """Count a batch of scanned rows, each with its reason; None is garbage."""
        self.scanned += len(batch)
        self.scanned_bytes += sum(map(_bytes, batch))
        for (kind, why), rows in Counter(zip(map(_type, batch), reasons, strict=True)).items():
            name = "garbage" if why is None else why.value
            counts = self.types.setdefault(kind, {})
            counts[name] = counts.get(name, 0) + rows
            if why is None:
                self.garbage += rows
            else:
                self.kept[name] = self.kept.get(name, 0) + rows
        if None in reasons:
            garbage = [key for key, why in zip(batch, reasons, strict=True) if why is None]
            self.garbage_bytes += sum(map(_bytes, garbage))
            _add(self.garbage_types, garbage)

    def count_deleted(self, rows: int, gone: Sequence[ObjectKey]) -> None:
        """Count deleted rows: how many the database says, and which ones, as far as that is certain."""
        self.deleted += rows
        self.deleted_bytes += sum(map(_bytes, gone))
        _add(self.deleted_types, gone)


class PhaseTimer:
    """Adds up how long each phase takes, on the monotonic clock. Safe for several threads."""

    def __init__(self, clock: Clock, seconds: dict[str, float]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()

    @contextmanager
    def time_phase(self, name: str, *, share: int = 1) -> Iterator[None]:
        """Time the body. ``share`` is how many threads do it side by side."""
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
