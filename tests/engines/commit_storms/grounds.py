"""Where storms happen: one database that fails on demand and notes what is deleted, with as many stores on it as a test wants."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

from faulty_backend import FaultyBackend
from headwater.clock import SystemClock
from headwater.errors import UnknownOutcomeError
from headwater.settings import Settings
from headwater.store import Backend, ObjectId, ObjectKey, RealmId, RealmKey, RealmStore, Store
from headwater.store.backends.memory import MemoryBackend

__all__ = ["HASTY", "LENGTH", "LOST_ANSWER", "LOST_REQUEST", "PATIENT", "REALM", "Ground", "Witness", "both_ways"]

LENGTH = 20 if os.environ.get("HEADWATER_SOAK") == "1" else 1
"""How many times as long storms are as in a quick run."""
REALM = RealmKey(5)
PATIENT = Settings(commit_timeout_seconds=20, commit_member_seconds=60)
HASTY = Settings(commit_timeout_seconds=0.4, commit_member_seconds=60)
LOST_ANSWER: dict[str, Any] = {"before": False}
LOST_REQUEST: dict[str, Any] = {"before": True, "fault": UnknownOutcomeError("lost on its way")}
both_ways = pytest.mark.parametrize("fault", [LOST_REQUEST, LOST_ANSWER], ids=["not applied", "applied"])


class Witness:
    """A backend that outlives the stores on it, and remembers every object that anybody deleted."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.deleted: list[ObjectId] = []

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        self.deleted += [key.id for key in keys]
        return self.backend.delete_objects(keys)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def close(self) -> None:
        """Others go on with it."""


class Ground:
    """``faults`` is what can be made to fail; ``swap`` the call of it by which a commit becomes the head."""

    def __init__(self, backend: Backend | None = None, *, is_atomic: bool = False, settings: Settings = PATIENT) -> None:
        self.witness = Witness(MemoryBackend() if backend is None else backend)
        self.faults = FaultyBackend(self.witness, is_atomic=is_atomic)  # type: ignore[arg-type]  # it is any backend
        self.settings = settings
        self.swap = "write_and_swap" if is_atomic else "swap_reference"
        self._stores: list[Store] = []
        self.rows = self.open()

    def open(self, *, settings: Settings | None = None, is_safe: bool = False) -> RealmStore:
        """Rows of one more store with the reference ``main``; ``is_safe``: no fault that is planned meets it."""
        store = Store(
            self.witness if is_safe else self.faults,  # type: ignore[arg-type]
            url="memory://",
            settings=settings or self.settings,
            clock=SystemClock(),
        )
        self._stores.append(store)
        store.new_id()  # leases its node, which is not what shall fail
        rows = store.rows(RealmId("acme"), REALM)
        rows.ensure_reference("main")
        return rows

    def swaps(self) -> int:
        """How often it was tried to move a reference by a commit."""
        return self.faults.calls.count(self.swap)

    def close(self) -> None:
        self.faults.heal()
        for store in self._stores:
            store.close()
        self.witness.backend.close()
