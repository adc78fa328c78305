"""Objects that are written before the commit that adds them, in batches, so that a large change holds few of them at a time.

Nothing points to them before that commit's swap: no reader sees any, and of a commit that does not happen they are garbage. The
collector takes no row that is younger than the writer's grace when it begins, and raises the version of every reference after it
has begun. So the commit is safe as long as its head was read when the objects were young::

    stage   T objects
    commit                              R reads its head           swap
    collection            S takes rows from before S - grace               raises the versions

A swap before the versions are raised is seen, and what it points to is kept. A swap after that is beaten, unless R comes after
it too. Then R > S, and T > R - grace > S - grace: the objects are too young for this collection.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from headwater.clock import Micros
from headwater.errors import StoreFullError, UnavailableError, UnknownOutcomeError
from headwater.index import IndexContainer, IndexEditor, IndexLimits, NewIndex
from headwater.store import ObjectId, RealmReader, RealmStore, StoredObject


class _Moment(NamedTuple):
    monotonic: float
    time: Micros


class StagedObjects:
    """Adds objects of a commit to come. It has the methods of a ``Transaction`` that add objects, and ``reader`` reads the store.

    One commit takes them, at any of its runs; a run that is beaten leaves them to the next. What is never taken is left to the collector.
    """

    def __init__(self, rows: RealmStore) -> None:
        self._rows = rows
        self._waiting: list[tuple[ObjectId, StoredObject]] = []
        self._written: set[ObjectId] = set()
        self._first: _Moment | None = None
        """When the oldest was written, or a moment before."""

    @property
    def reader(self) -> RealmReader:
        return self._rows

    @property
    def ids(self) -> Collection[ObjectId]:
        """The ids of what was written."""
        return self._written

    def add_object(self, value: StoredObject) -> ObjectId:
        """Add an object to the next batch."""
        object_id = self._rows.new_id()
        self._waiting.append((object_id, value))
        return object_id

    def add_index(self, index: IndexEditor | NewIndex, limits: IndexLimits) -> IndexContainer:
        """Store an index that is to lie in an object which is added; what it spills into is added, too."""
        stored = index.stored(self._rows.new_ids, limits)
        self._waiting += stored.objects
        return stored.container

    def write_batch(self) -> None:
        """Write what was added since the last batch, in one bulk write.

        raises        UnavailableError when the database stays away for the commit time-out: nothing has become visible ·
                      StoreFullError · what ``write_objects`` raises otherwise
        """
        if not self._waiting:
            return
        if self._first is None:
            self._first = self._now()
        self._write_waiting()
        self._written.update(object_id for object_id, _ in self._waiting)
        self._waiting = []

    def are_young(self) -> bool:
        """Whether a commit whose head is read from now on may take them: no collection can take them before its swap."""
        if self._first is None:
            return True
        # Both clocks: one stands still while the machine sleeps, the other may be set.
        now, settings = self._now(), self._rows.settings
        age = max(now.monotonic - self._first.monotonic, (now.time - self._first.time) / 1_000_000)
        # The collector's clock may be ahead of the one that dated the rows. Half of what is left, for pauses between here and there.
        return age < (settings.writer_grace_seconds - settings.clock_bound_seconds) / 2

    def _write_waiting(self) -> None:
        clock, settings = self._rows.clock, self._rows.settings
        ends, wait = clock.monotonic() + settings.commit_timeout_seconds, settings.commit_backoff_seconds
        while True:
            try:
                self._rows.write_objects(self._waiting, are_new=True)
            except StoreFullError:
                raise
            except (UnavailableError, UnknownOutcomeError) as fault:
                if clock.monotonic() >= ends:
                    raise UnavailableError(
                        f"objects for a commit in realm {self._rows.realm!r} could not be written, and nothing was changed"
                        f" ({fault}): try again later"
                    ) from fault
            else:
                return
            # Written once more with the same ids and values, which is the same write.
            clock.sleep(wait)
            wait = min(2 * wait, settings.commit_backoff_limit_seconds)

    def _now(self) -> _Moment:
        return _Moment(self._rows.clock.monotonic(), self._rows.clock.now())
