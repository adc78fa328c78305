"""The truth that no client sees: every pointer that a reference ever had, and whether what may be read now can be read.

It is told of every write that took effect. After each deletion it walks, by itself and straight over the rows, what is HEAD and what was
HEAD until lately: all of that must be there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headwater.commits import Commit
from headwater.index.index_nodes import Stripe, StripeList
from headwater.settings import Settings
from headwater.store import ObjectId, ObjectKey, ObjectRow, RealmKey, ReferenceRow, id_text
from headwater.store.backends.memory import MemoryBackend
from headwater.store.stored_objects import StoredObject, decode_object

__all__ = ["Ledger", "Stay"]

_AT_ONCE = 60_000_000
_LATE = 120_000_000
"""More than a commit's time-out and what clocks differ by."""


@dataclass(slots=True)
class Stay:
    """A pointer while a reference had it. ``until`` None: it has it still."""

    realm: RealmKey
    name: str
    pointer: ObjectId
    since: int
    until: int | None = None


@dataclass
class Ledger:
    """What was, and what must never be.

    times         of every commit that was a head, its time
    late          those that became one long after it
    """

    backend: MemoryBackend
    settings: Settings
    faults: list[str] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)
    times: dict[ObjectId, int] = field(default_factory=dict)
    late: set[ObjectId] = field(default_factory=set)
    deletions: int = 0
    deleted_rows: int = 0
    _current: dict[tuple[RealmKey, str], Stay] = field(default_factory=dict)
    _versions: dict[tuple[RealmKey, str], int] = field(default_factory=dict)
    _below: dict[tuple[RealmKey, ObjectId], tuple[ObjectId, ...]] = field(default_factory=dict)
    _lines: dict[tuple[RealmKey, str], list[ObjectId]] = field(default_factory=dict)
    _purging: set[RealmKey] = field(default_factory=set)

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
            self._leave(row, now)
            self._take_back(row, now)
            return f"removes {row.name}"
        if name == "delete_objects":
            return self._deleted(arguments[0], now)
        if name == "delete_realm":
            self._purging.add(arguments[0])
            for stay in [stay for stay in self._current.values() if stay.realm == arguments[0]]:
                del self._current[stay.realm, stay.name]
            self.stays = [stay for stay in self.stays if stay.realm != arguments[0]]
            return f"deletes up to {arguments[1]} rows of realm key {arguments[0]}"
        return ""

    def begin(self, now: int) -> None:
        """Note what is there before anything happens."""
        for (realm, name), row in list(self.backend._references.rows.items()):
            self._versions[realm, name] = row.version
            self._stay(row, now)

    def _created(self, row: ReferenceRow, now: int) -> str:
        found = self.backend.read_references(row.realm, [row.name])[0]
        if found != row:
            return ""  # another one was there
        self._versions[row.realm, row.name] = row.version
        self._stay(row, now)
        return f"creates {row.name} at {_shown(row.pointer)}"

    def _moved(self, seen: ReferenceRow, new: ReferenceRow, now: int) -> str:
        key = (new.realm, new.name)
        if new.version <= self._versions.get(key, 0):
            self.faults.append(f"reference {new.name} went from version {self._versions[key]} to {new.version}")
        self._versions[key] = new.version
        if new.pointer == seen.pointer and (new.deleted is None) == (seen.deleted is None):
            return f"raises {new.name} to version {new.version}"
        self._leave(seen, now)
        self._stay(new, now)
        return f"moves {new.name} from {_shown(seen.pointer)} to {_shown(new.pointer)}" + (
            " and buries it" if new.deleted else ""
        )

    def _stay(self, row: ReferenceRow, now: int) -> None:
        if row.pointer is not None and row.deleted is None:
            stay = Stay(row.realm, row.name, row.pointer, now)
            self._current[row.realm, row.name] = stay
            self._time(row.realm, row.pointer)
            self.stays.append(stay)
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

    def _leave(self, row: ReferenceRow, now: int) -> None:
        stay = self._current.pop((row.realm, row.name), None)
        if stay is not None:
            stay.until = now

    def _take_back(self, row: ReferenceRow, now: int) -> None:
        """Whoever made it under a name that was given up meanwhile takes it away at once, and tells nobody of it."""
        self.stays = [
            stay for stay in self.stays if (stay.realm, stay.name) != (row.realm, row.name) or now - stay.since > _AT_ONCE
        ]

    def _deleted(self, keys: list[ObjectKey], now: int) -> str:
        self.deletions += 1
        self.deleted_rows += len(keys)
        for key in keys:
            self._below.pop((key.realm, key.id), None)
        for realm in {key.realm for key in keys} - self._purging:
            self.check(realm, now)
        return "deletes " + ", ".join(f"{key.type} {id_text(key.id)}" for key in keys)

    def check(self, realm: RealmKey, now: int) -> None:
        """All that is HEAD, and what was until a grace ago, less what clocks may differ by and what a commit may take, is whole."""
        settings = self.settings
        promised = settings.reader_grace_seconds - settings.clock_bound_seconds
        since = now - round(promised * 1e6)
        self.stays = [stay for stay in self.stays if stay.until is None or stay.until >= since]
        seen: set[ObjectId] = set()
        for stay in self.stays:
            if stay.realm == realm:
                missing = self._missing(realm, stay.pointer, seen)
                if missing is not None:
                    when = "is" if stay.until is None else f"was {(now - stay.until) / 1e6:.0f} s ago"
                    where = f"{stay.name} of realm key {realm}, whose head commit {id_text(stay.pointer)} {when}"
                    fault = f"{where}: object {id_text(missing)} is gone"
                    if fault not in self.faults:
                        self.faults.append(fault)

    def _missing(self, realm: RealmKey, root: ObjectId, seen: set[ObjectId]) -> ObjectId | None:
        waiting = [root]
        while waiting:
            object_id = waiting.pop()
            if object_id in seen:
                continue
            row = self.backend._objects.rows.get((realm, object_id, 0))
            if row is None:
                return object_id
            seen.add(object_id)
            waiting += self._targets(row)
        return None

    def _targets(self, row: ObjectRow) -> tuple[ObjectId, ...]:
        key = (row.realm, row.id)
        if row.token is not None or key not in self._below:
            body = b"".join(self.backend._objects.rows[row.realm, row.id, part].value for part in range(row.parts))
            found = decode_object(row.id, row.type, body, StoredObject, realm=str(row.realm), token=row.token)
            self._below[key] = _targets_of(found)
        return self._below[key]


def _targets_of(found: StoredObject) -> tuple[ObjectId, ...]:
    """What an object needs. Commits and stripes are taken apart here, by their entries; all else is asked."""
    if isinstance(found, Commit):
        put = [operation.object_id for operation in found.operations if found.depth and not operation.removed]
        below = list(found.beneath()) if found.depth else []
        for container in found.indexes.values():
            put += [container.page.value(at).object_id for at in range(container.page.count) if container.page.value(at)]  # type: ignore[union-attr]
            below += container.children.object_ids
        return tuple(one for one in (*put, *below) if one is not None)
    if isinstance(found, Stripe | StripeList):
        return tuple(found.points_to())
    return tuple(found.points_to())


def _shown(pointer: ObjectId | None) -> str:
    return "nothing" if pointer is None else id_text(pointer)
