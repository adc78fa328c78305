"""A process that reconciles and is killed at any call of the database, as if by SIGKILL."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store, open_store
from headwater.realms import RealmRegistry, RealmState
from headwater.reconcile import FileCredentials, ManagerIdentity, Manifest, reconcile
from headwater.store import Backend
from headwater.tasks import LeaseWatch, TaskQueue, TaskState
from tiers import Sample

__all__ = ["KilledError", "Process", "until_it_lives"]


class KilledError(BaseException):
    """Stands for SIGKILL: nothing catches it."""


class Process:
    """A process that reconciles, on a store that outlives it. It can be killed at its n-th call of the database."""

    def __init__(self, settings: Settings, clock: FakeClock, sink: FileCredentials, *, backend: Backend | None = None) -> None:
        self.backend = FaultyBackend(backend or open_store("memory://").backend)
        self.clock = clock
        self._settings = settings
        self._sink = sink

    def beside(self) -> Process:
        """Another process on the same database."""
        return Process(self._settings, self.clock, self._sink, backend=self.backend.backend)

    @property
    def store(self) -> Store:
        return Store(self.backend, url="memory://", settings=self._settings, clock=self.clock)

    def run(self, manifests: Sequence[Manifest], *, killed_at: int | None = None) -> bool:
        """One pass in a new process; whether it came to its end."""
        if killed_at is not None:
            self.backend.intervene("*", _kill, at=killed_at)
        try:
            reconcile(self.store, manifests, credentials=self._sink, manager=ManagerIdentity(cluster="here"))
        except KilledError:
            return False
        finally:
            self.backend.heal()
        return True

    def purge(self) -> None:
        """What a worker does when there is a purge to be done."""
        tasks = TaskQueue(self.store)
        for task in tasks.list_tasks(kind="purge", state=TaskState.WAITING):
            claim = tasks.claim_task(task.id, "worker", LeaseWatch(self.clock, 60))
            realm = RealmRegistry(self.store).find_realm("acme")
            if realm is not None and realm.state is RealmState.PURGING:
                while self.backend.delete_realm(realm.key, 1000):
                    pass
                RealmRegistry(self.store).move_realm(realm, RealmState.PURGED)
            if claim is not None:
                claim.finish_task({})


def _kill() -> None:
    raise KilledError


def until_it_lives(run: Callable[[int], bool], sample: Sample) -> int:
    """Kill it at one call after the other, of which the quick tests try some; returns how many it has come through at the end."""
    return next(call for call in sample.one_in(6, itertools.count(1)) if run(call)) - 1
