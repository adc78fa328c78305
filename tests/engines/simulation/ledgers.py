"""The truth that no client sees: every pointer that a reference ever had, and whether what may be read now can be read.

It is told of every write that took effect. After each deletion it walks, by itself and straight over the rows, what is HEAD and what was
HEAD until lately: all of that must be there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engines.model import HeadSpan, RowWalk, readable_seconds, recent_heads_are_whole, versions_go_up
from headwater.commits import Commit
from headwater.settings import Settings
from headwater.store import ObjectId, ObjectKey, RealmKey, ReferenceRow, id_text
from headwater.store.backends.memory import MemoryBackend
from headwater.store.stored_objects import decode_object

__all__ = ["Ledger"]

_AT_ONCE = 60_000_000
_LATE = 120_000_000
"""More than a commit's time-out and what clocks differ by."""


@dataclass
class Ledger:
    """What was, and what must never be.

    times         of every commit that was a head, its time
    late          those that became one long after it
    """

    backend: MemoryBackend
    settings: Settings
    faults: list[str] = field(default_factory=list)
    spans: list[HeadSpan] = field(default_factory=list)
    times: dict[ObjectId, int] = field(default_factory=dict)
    late: set[ObjectId] = field(default_factory=set)
    deletions: int = 0
    deleted_rows: int = 0
    _current: dict[tuple[RealmKey, str], HeadSpan] = field(default_factory=dict)
    _versions: dict[tuple[RealmKey, str], int] = field(default_factory=dict)
    _lines: dict[tuple[RealmKey, str], list[ObjectId]] = field(default_factory=dict)
    _purging: set[RealmKey] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._walk = RowWalk(self.backend)

    def record(self, name: str, arguments: tuple[Any, ...], now: int) -> str:
        """Note an effect; returns a line for the story, or nothing."""
        if name in ("swap_reference", "write_and_swap"):
            return self._moved(arguments[-2], arguments[-1], now)
        if name in ("create_reference", "create_references"):
            rows = [arguments[0]] if name == "create_reference" else arguments[0]
            return "; ".join(filter(None, (self._created(row, now) for row in rows)))
        if name == "remove_reference":
            row: ReferenceRow = arguments[0]
            self._versions.pop((row.realm, row.name), None)
            self._end_span(row, now)
            self._take_back(row, now)
            return f"removes {row.name}"
        if name == "delete_objects":
            return self._deleted(arguments[0], now)
        if name == "delete_realm":
            self._purging.add(arguments[0])
            for span in [span for span in self._current.values() if span.realm == arguments[0]]:
                del self._current[span.realm, span.name]
            self.spans = [span for span in self.spans if span.realm != arguments[0]]
            return f"deletes up to {arguments[1]} rows of realm key {arguments[0]}"
        return ""

    def begin(self, now: int) -> None:
        """Note what is there before anything happens."""
        for (realm, name), row in list(self.backend._references.rows.items()):
            self._versions[realm, name] = row.version
            self._begin_span(row, now)

    def _created(self, row: ReferenceRow, now: int) -> str:
        found = self.backend.read_references(row.realm, [row.name])[0]
        if found != row:
            return ""  # another one was there
        self._versions[row.realm, row.name] = row.version
        self._begin_span(row, now)
        return f"creates {row.name} at {_shown(row.pointer)}"

    def _moved(self, seen: ReferenceRow, new: ReferenceRow, now: int) -> str:
        key = (new.realm, new.name)
        self.faults += versions_go_up(new, self._versions.get(key, 0))
        self._versions[key] = new.version
        if new.pointer == seen.pointer and (new.deleted is None) == (seen.deleted is None):
            return f"raises {new.name} to version {new.version}"
        self._end_span(seen, now)
        self._begin_span(new, now)
        return f"moves {new.name} from {_shown(seen.pointer)} to {_shown(new.pointer)}" + (
            " and buries it" if new.deleted else ""
        )

    def _begin_span(self, row: ReferenceRow, now: int) -> None:
        if row.pointer is not None and row.deleted is None:
            span = HeadSpan(row.realm, row.name, row.pointer, now)
            self._current[row.realm, row.name] = span
            self._time(row.realm, row.pointer)
            self.spans.append(span)
            self._lines.setdefault((row.realm, row.name), []).append(row.pointer)
            if now - self.times.get(row.pointer, now) > _LATE:
                self.late.add(row.pointer)

    def _time(self, realm: RealmKey, commit_id: ObjectId) -> None:
        row = self.backend._objects.rows.get((realm, commit_id, 0))
        if commit_id not in self.times and row is not None and row.parts == 1:
            found = decode_object(row.id, row.type, row.value, Commit, realm=str(realm))
            self.times[commit_id] = found.time

    def heads(self, realm: RealmKey, name: str) -> list[ObjectId]:
        """Every pointer that a reference ever had, in order."""
        return self._lines.get((realm, name), [])

    def _end_span(self, row: ReferenceRow, now: int) -> None:
        span = self._current.pop((row.realm, row.name), None)
        if span is not None:
            span.until = now

    def _take_back(self, row: ReferenceRow, now: int) -> None:
        """Whoever made it under a name that was given up meanwhile takes it away at once, and tells nobody of it."""
        self.spans = [
            span for span in self.spans if (span.realm, span.name) != (row.realm, row.name) or now - span.since > _AT_ONCE
        ]

    def _deleted(self, keys: list[ObjectKey], now: int) -> str:
        self.deletions += 1
        self.deleted_rows += len(keys)
        self._walk.begin(keys)
        self._judge({key.realm for key in keys} - self._purging, now)
        return "deletes " + ", ".join(f"{key.type} {id_text(key.id)}" for key in keys)

    def _judge(self, realms: set[RealmKey], now: int) -> None:
        """All that is HEAD in these realms, and what was until lately; of each fault one line, however often it is found."""
        since = now - round(readable_seconds(self.settings) * 1e6)
        self.spans = [span for span in self.spans if span.until is None or span.until >= since]
        spans = [span for span in self.spans if span.realm in realms]
        self.faults += [fault for fault in recent_heads_are_whole(self._walk, spans, now) if fault not in self.faults]


def _shown(pointer: ObjectId | None) -> str:
    return "nothing" if pointer is None else id_text(pointer)
