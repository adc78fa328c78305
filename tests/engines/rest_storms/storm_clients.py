"""Clients of a storm: each has tables of its own, and all append to one table together. What they asked and were told is kept."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from replicas import PREFIX, SCHEMA, Replica, ReplicaAnswer, append_body, identified, new_key

from engines.model import KeyNote, Operation, Step, Told

__all__ = ["SHARED", "StormClient", "StormRecord"]

SHARED = "shared"
TABLES = "namespaces/sales/tables"
TRIES = 12


@dataclass
class StormRecord:
    """What all clients were told: of the tables' names, of the appends to the shared table, and of those to their own.

    appended      by snapshot id: True where it was acknowledged, False where it was refused, None where nobody knows
    """

    notes: list[KeyNote] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    appended: dict[int, bool | None] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))


@dataclass
class StormClient:
    """One client on one branch, by the prefix. Repeats what it was not told the end of, at whichever server it meets."""

    name: str
    replicas: Sequence[Replica]
    record: StormRecord
    chance: random.Random
    branch: str = ""
    mine: list[str] = field(default_factory=list)

    def run(self, until: float) -> None:
        try:
            while time.monotonic() < until:
                self.chance.choice(
                    (self._create, self._append, self._append, self._rename, self._drop, self._together, self._share)
                )()
        except Exception as fault:  # noqa: BLE001 - the storm fails by it
            self.record.faults.append(f"{self.name}: {fault!r}")

    def _ask(self, method: str, path: str, body: Any = None) -> tuple[ReplicaAnswer, bool]:
        """Send until there is an end, with a key or without; also tells whether it may have happened before the last answer."""
        key, prefix = new_key() if self.chance.random() < 0.5 else None, PREFIX + (f"~{self.branch}" if self.branch else "")
        may_have_happened = False
        for _ in range(TRIES):
            answer = self.chance.choice(self.replicas).send(method, path, body, key=key, prefix=prefix)
            with self.record.lock:
                self.record.statuses[answer.status] = self.record.statuses.get(answer.status, 0) + 1
            if answer.is_final:
                break
            may_have_happened |= answer.status in (0, 500)
            time.sleep(self.chance.uniform(0, 0.2))
        return answer, may_have_happened

    def _load(self, name: str) -> Any:
        answer, _ = self._ask("GET", f"{TABLES}/{name}")
        return answer.data["metadata"] if answer.is_done else None

    def _note(self, name: str, step: Step, told: Told) -> None:
        self.record.notes.append(KeyNote(f"{self.branch}/{name}", step, told, time.monotonic_ns()))

    def _change(
        self, changes: Sequence[tuple[str, Step]], method: str, path: str, body: Any = None, *, already: int = 0
    ) -> bool:
        """A change of names that nobody else uses. ``already``: what its repeat is told without a key once it has happened."""
        for name, step in changes:
            self._note(name, step, Told.CALLED)
        answer, may_have_happened = self._ask(method, path, body)
        is_done = answer.is_done or (may_have_happened and answer.status == already)
        if answer.is_final and not is_done:
            self.record.faults.append(f"{self.name} was refused {method} {path}: {answer.status} {answer.content[:300]!r}")
        for name, step in changes:
            self._note(
                name,
                step,
                Told.DONE if is_done else Told.NOT_DONE if answer.status == 503 and not may_have_happened else Told.OPEN,
            )
        return is_done

    def _create(self) -> None:
        name = f"{self.name}-{next(self.record.numbers)}"
        if self._change([(name, Step.PUT)], "POST", TABLES, {"name": name, "schema": SCHEMA}, already=409):
            self.mine.append(name)

    def _taken(self) -> str | None:
        return self.mine.pop(self.chance.randrange(len(self.mine))) if self.mine else None

    def _drop(self) -> None:
        if name := self._taken():
            self._change([(name, Step.DELETE)], "DELETE", f"{TABLES}/{name}", already=404)

    def _rename(self) -> None:
        if name := self._taken():
            other = f"{self.name}-{next(self.record.numbers)}"
            body = {"source": identified(name), "destination": identified(other)}
            if self._change([(name, Step.DELETE), (other, Step.PUT)], "POST", "tables/rename", body, already=404):
                self.mine.append(other)

    def _append(self) -> None:
        if self.mine:
            self._append_to([self.chance.choice(self.mine)])

    def _together(self) -> None:
        if len(self.mine) > 1:
            self._append_to(self.chance.sample(self.mine, 2))

    def _append_to(self, names: Sequence[str]) -> None:
        """Appends to own tables, in one commit: nobody is faster, so it is done sooner or later."""
        documents = [self._load(name) for name in names]
        if None in documents:
            return
        ids = [next(self.record.numbers) for _ in names]
        bodies = [append_body(document, number) for document, number in zip(documents, ids, strict=True)]
        changes = [{"identifier": identified(name), **body} for name, body in zip(names, bodies, strict=True)]
        if len(names) == 1:
            answer, _ = self._ask("POST", f"{TABLES}/{names[0]}", bodies[0])
        else:
            answer, _ = self._ask("POST", "transactions/commit", {"table-changes": changes})
        if answer.is_final and not answer.is_done:
            self.record.faults.append(f"{self.name} was refused an append: {answer.status} {answer.content[:300]!r}")
        self.record.appended.update(dict.fromkeys(ids, True if answer.is_done else None))

    def _share(self) -> None:
        """An append that others may beat: done, in conflict, or unknown; and looks in between."""
        called = time.monotonic_ns()
        document = self._load(SHARED)
        if document is None:
            return
        before = document.get("refs", {}).get("main", {}).get("snapshot-id")
        self._kept(("look",), called, before)
        number, called = next(self.record.numbers), time.monotonic_ns()
        answer, may_have_happened = self._ask("POST", f"{TABLES}/{SHARED}", append_body(document, number))
        if answer.is_done or answer.status == 409:
            self._kept(("append", before, number), called, "done" if answer.is_done else "conflict")
            self.record.appended[number] = answer.is_done
        elif answer.status == 503 and not may_have_happened:
            self.record.appended[number] = False
        else:
            if answer.is_final:
                self.record.faults.append(f"{self.name} was told {answer.status} {answer.content[:300]!r}")
            self._kept(("append", before, number), called, None)
            self.record.appended[number] = None

    def _kept(self, call: Any, called: int, answer: Any) -> None:
        """An operation on the shared table of this branch; ``answer`` None of an append: there never was one."""
        returned = None if call[0] == "append" and answer is None else time.monotonic_ns()
        self.record.operations.append(Operation(self.name, (self.branch, *call), called, returned, answer))
