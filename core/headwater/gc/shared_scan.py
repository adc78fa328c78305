"""Collect a set of realms: in one scan of the whole store where a database keeps no order of keys, otherwise one after the other.

Each realm has a live set, cut-offs, a record and a result of its own. Only the scans are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from headwater.commits import SweptSplit
from headwater.errors import FencedError, HeadwaterError
from headwater.gc.collection_result import CollectionResult
from headwater.gc.collector import Collector
from headwater.gc.retention import open_scope
from headwater.gc.scan_lock import hold_scan_lock
from headwater.gc.sweep import SplitSweep
from headwater.gc.throttle import Fence, Throttle
from headwater.store import ObjectKey, ObjectPosition, RealmKey, ScanSplit, Store
from headwater.tasks import TaskStoppedError

_SCAN_ROWS = 600


def collect_realms(
    store: Store, realm_ids: Sequence[str], *, fence: Fence = lambda: None, owner: str = "", dry_run: bool = False
) -> dict[str, CollectionResult | HeadwaterError]:
    """Collect realms. Returns each realm's result, or the error that ended its collection; one that fails hinders no other.

    raises        FencedError and TaskStoppedError, which end the collection of all · UnavailableError when another scan of the store is on
    """
    together = _SharedCollection(store, fence, owner)
    for realm_id in dict.fromkeys(realm_ids):
        with together.alone(realm_id):
            together.runs[realm_id] = Collector(
                store, open_scope(store, realm_id), fence=fence, progress=lambda *_: None, owner=owner
            )
    if store.backend.capabilities.ordered_keys:
        for realm_id, run in list(together.runs.items()):
            with together.alone(realm_id):
                together.fates[realm_id] = run.collect(dry_run=dry_run)
    else:
        together.collect(dry_run=dry_run)
    return together.fates


class _SharedCollection:
    def __init__(self, store: Store, fence: Fence, owner: str) -> None:
        self._store = store
        self._pacing = Throttle(store.settings, store.clock, fence)
        self._owner = owner
        self._beat: Callable[[], None] = lambda: None
        # Invariant: a realm leaves ``runs`` with its first error, and no further step is done for it.
        self.runs: dict[str, Collector] = {}
        self.fates: dict[str, CollectionResult | HeadwaterError] = {}

    @contextmanager
    def alone(self, realm_id: str) -> Iterator[None]:
        """Turn an error of the body into this realm's outcome, and drop its run."""
        try:
            yield
        except (FencedError, TaskStoppedError):
            raise
        except HeadwaterError as fault:
            self.runs.pop(realm_id, None)
            self.fates[realm_id] = fault

    def collect(self, *, dry_run: bool) -> None:
        with hold_scan_lock(self._store, self._owner, self._pacing.watch) as lock:
            self._beat = lock.heartbeat
            for realm_id, run in list(self.runs.items()):
                with self.alone(realm_id):
                    if not dry_run and run.resume():  # by a scan of its own, from where it stood
                        self.fates[realm_id] = self.runs.pop(realm_id).result
                    else:
                        run.result.dry_run = dry_run
                        run.mark()
            for by_realm, _ in self._scan():
                for realm_id, run in list(self.runs.items()):
                    if run.key in by_realm:
                        with self.alone(realm_id):
                            run.plan_batch(by_realm[run.key])
            if not dry_run:
                self._sweep()
            self.fates |= {realm_id: run.result for realm_id, run in self.runs.items()}

    def _sweep(self) -> None:
        # Every realm publishes its sweep before the one scan begins: a row that the scan passes is judged by a saved live set.
        sweeps: dict[str, SplitSweep] = {}
        for realm_id, run in list(self.runs.items()):
            with self.alone(realm_id):
                sweeper = run.sweeper()
                sweeper.set_splits(run.publish_sweep((SweptSplit(),)), lambda *_: None)
                sweeps[realm_id] = sweeper.split(0)
        for by_realm, position in self._scan():
            for realm_id, run in list(self.runs.items()):
                with self.alone(realm_id):
                    sweeps[realm_id].sweep_batch(by_realm.get(run.key, ()), position)
        for realm_id, run in list(self.runs.items()):
            with self.alone(realm_id):
                run.finish_sweep(sweeps[realm_id].finish)

    def _scan(self) -> Iterator[tuple[Mapping[RealmKey, list[ObjectKey]], ObjectPosition]]:
        """Scan the store page by page. Yields the rows of each page by realm, and the position at which the page ends."""
        after: ObjectPosition | None = None
        while page := self._store.backend.scan_objects(ScanSplit(), after, _SCAN_ROWS):
            after = page[-1].position
            by_realm: dict[RealmKey, list[ObjectKey]] = {}
            for key in page:
                by_realm.setdefault(key.realm, []).append(key)
            yield by_realm, after
            self._beat()
            self._pacing.before_scanning_on(len(page))
