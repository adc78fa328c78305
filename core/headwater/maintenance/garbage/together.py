"""A set of realms collected together: in one scan of everything where a database keeps no order of keys, else one after the other.

Each realm has marks, cut-offs, a record and a fate of its own; only the scans are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from headwater.commits import SweptSplit
from headwater.errors import FencedError, HeadwaterError
from headwater.maintenance.garbage.collecting import Collected, Collecting
from headwater.maintenance.garbage.listing import scope_of
from headwater.maintenance.garbage.pacing import Fence, Pacing
from headwater.maintenance.garbage.sweeping import SplitSweep
from headwater.maintenance.garbage.turns import scan_turn
from headwater.store import ObjectKey, ObjectPosition, RealmKey, Split, Store
from headwater.tasks import StoppedError

__all__ = ["collect_together"]

_SCAN_ROWS = 600


def collect_together(
    store: Store, realm_ids: Sequence[str], *, fence: Fence = lambda: None, owner: str = "", dry_run: bool = False
) -> dict[str, Collected | HeadwaterError]:
    """Collect realms; says of each what was done, or why nothing more was: one that cannot be collected hinders no other.

    raises        FencedError and StoppedError, which are meant for all · UnavailableError when another scan of the store is on
    """
    together = _Together(store, fence, owner)
    for realm_id in dict.fromkeys(realm_ids):
        with together.alone(realm_id):
            together.runs[realm_id] = Collecting(
                store, scope_of(store, realm_id), fence=fence, progress=lambda *_: None, owner=owner
            )
    if store.backend.capabilities.ordered_keys:
        for realm_id, run in list(together.runs.items()):
            with together.alone(realm_id):
                together.fates[realm_id] = run.run(dry_run=dry_run)
    else:
        together.collect(dry_run=dry_run)
    return together.fates


class _Together:
    def __init__(self, store: Store, fence: Fence, owner: str) -> None:
        self._store = store
        self._pacing = Pacing(store.settings, store.clock, fence)
        self._owner = owner
        self._beat: Callable[[], None] = lambda: None
        self.runs: dict[str, Collecting] = {}
        self.fates: dict[str, Collected | HeadwaterError] = {}

    @contextmanager
    def alone(self, realm_id: str) -> Iterator[None]:
        """What goes wrong in here is this realm's fate."""
        try:
            yield
        except (FencedError, StoppedError):
            raise
        except HeadwaterError as fault:
            self.runs.pop(realm_id, None)
            self.fates[realm_id] = fault

    def collect(self, *, dry_run: bool) -> None:
        with scan_turn(self._store, self._owner, self._pacing.watch) as turn:
            self._beat = turn.beat
            for realm_id, run in list(self.runs.items()):
                with self.alone(realm_id):
                    if not dry_run and run.go_on():  # by a scan of its own, from where it stood
                        self.fates[realm_id] = self.runs.pop(realm_id).result
                    else:
                        run.result.dry_run = dry_run
                        run.begin()
            for by_realm, _ in self._scan():
                for realm_id, run in list(self.runs.items()):
                    if run.key in by_realm:
                        with self.alone(realm_id):
                            run.plan(by_realm[run.key])
            if not dry_run:
                self._sweep()
            self.fates |= {realm_id: run.result for realm_id, run in self.runs.items()}

    def _sweep(self) -> None:
        sweeps: dict[str, SplitSweep] = {}
        for realm_id, run in list(self.runs.items()):
            with self.alone(realm_id):
                sweeper = run.sweeper()
                sweeper.begin(run.publish((SweptSplit(),)), lambda *_: None)
                sweeps[realm_id] = sweeper.split(0)
        for by_realm, position in self._scan():
            for realm_id, run in list(self.runs.items()):
                with self.alone(realm_id):
                    sweeps[realm_id].take(by_realm.get(run.key, ()), position)
        for realm_id, run in list(self.runs.items()):
            with self.alone(realm_id):
                run.finish(sweeps[realm_id].end)

    def _scan(self) -> Iterator[tuple[Mapping[RealmKey, list[ObjectKey]], ObjectPosition]]:
        """Every row of the store, page by page: each realm's rows of a page, and the position that the page ends at."""
        after: ObjectPosition | None = None
        while page := self._store.backend.scan_objects(Split(), after, _SCAN_ROWS):
            after = page[-1].position
            by_realm: dict[RealmKey, list[ObjectKey]] = {}
            for key in page:
                by_realm.setdefault(key.realm, []).append(key)
            yield by_realm, after
            self._beat()
            self._pacing.before_scanning_on(len(page))
