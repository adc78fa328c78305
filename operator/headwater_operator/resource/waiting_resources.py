"""Resources that wait: for a realm or catalog that another resource owns, and for a store that does not answer.

They are woken when the owner changes something, and when the store is back.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import structlog

from headwater.errors import HeadwaterError
from headwater.realms import RealmRegistry
from headwater.store import Store
from headwater_operator.runtime.informer_cache import ResourceKey
from headwater_operator.runtime.workqueue import WorkQueue

KEPT_OFF_SECONDS = 20.0
"""How often a blocked resource is visited: releases by another operator or the command line cause no event here."""
_LOOKS_PER_SECOND = 2.0
"""How often all blocked resources together are visited: a forgotten copy of a cluster has thousands."""


class Contention:
    """Knows which resources are kept off a realm by its owner. Thread-safe.

    changed       of each realm, the number of its last change, as long as a look is under way that began before it
    looks         of each look that is under way, how many changes there were when it began
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes = 0
        self._changed: dict[str, int] = {}
        self._looks: list[int] = []
        self._kept_off: dict[str, set[ResourceKey]] = {}
        self._realms: dict[ResourceKey, str] = {}

    @property
    def seconds_between_looks(self) -> float:
        """The pause between two visits of a blocked resource: longer, the more there are."""
        with self._lock:
            return max(KEPT_OFF_SECONDS, len(self._realms) / _LOOKS_PER_SECOND)

    @contextlib.contextmanager
    def record_look(self) -> Iterator[int]:
        """Wraps a pass over a resource, and yields the number that ``record_contention`` needs after it."""
        with self._lock:
            since = self._changes
            self._looks.append(since)
        try:
            yield since
        finally:
            with self._lock:
                self._looks.remove(since)
                oldest = min(self._looks, default=self._changes)
                self._changed = {realm_id: change for realm_id, change in self._changed.items() if change > oldest}

    def change(self, key: ResourceKey, realm_id: str | None) -> list[ResourceKey]:
        """Record that this resource changed or released something in the realm. Returns the others that are kept off it."""
        if realm_id is None:
            return []
        with self._lock:
            self._changes += 1
            self._changed[realm_id] = self._changes
            return sorted(self._kept_off.get(realm_id, set()) - {key})

    def record_contention(self, key: ResourceKey, realm_id: str | None, *, is_kept_off: bool, since: int) -> bool:
        """Record the end of a pass over this resource, for a realm of this id. Returns whether it is outdated already:

        this look    sees that another has the realm ........ is noted as kept off
        the other    ................ lets the realm go, and finds nobody to wake
        """
        with self._lock:
            self._leave(key)
            if realm_id is None or not is_kept_off:
                return False
            self._realms[key] = realm_id
            self._kept_off.setdefault(realm_id, set()).add(key)
            return self._changed.get(realm_id, 0) > since

    def forget_resource(self, key: ResourceKey) -> None:
        with self._lock:
            self._leave(key)

    def _leave(self, key: ResourceKey) -> None:
        realm_id = self._realms.pop(key, None)
        if realm_id is None:
            return
        self._kept_off[realm_id].discard(key)
        if not self._kept_off[realm_id]:
            del self._kept_off[realm_id]


log = structlog.get_logger(__name__)

STORE = ResourceKey("Store", "", "")
"""The key in the queue that stands for the question whether the store is back."""
ASK_SECONDS = 5.0
_NOBODY = "store-probe"


class StoreOutage:
    """Knows which resources wait for the store. Thread-safe.

    A resource whose pass fails while the store answers others keeps its own pauses: it is woken only after the store was seen
    to be unreachable, or it would be visited all the time.
    """

    def __init__(self, store: Store, queue: WorkQueue[ResourceKey]) -> None:
        self._store = store
        self._queue = queue
        self._lock = threading.Lock()
        self._waiting: set[ResourceKey] = set()
        self._is_asking = False
        self._was_away = False
        self._back_at = float("-inf")

    def record_outage(self, key: ResourceKey, *, is_away: bool, began: float) -> None:
        """Record the result of a pass over this resource, which began at this time of the monotonic clock."""
        with self._lock:
            if not is_away:
                self._waiting.discard(key)
                return
            if began < self._back_at:
                self._queue.enqueue(
                    key
                )  # the store came back while it waited for an answer, and the others were woken without it
                return
            self._waiting.add(key)
            if not self._is_asking:
                self._is_asking = True
                self._queue.enqueue(STORE)

    def forget_resource(self, key: ResourceKey) -> None:
        """Forget a deleted resource."""
        with self._lock:
            self._waiting.discard(key)

    def ask(self) -> None:
        """Check whether the store answers. If not, check again in a few seconds; if so, wake all who wait for it."""
        answers = self._answers()
        with self._lock:
            self._is_asking = not answers
            woken = self._waiting if answers and self._was_away else set()
            if woken:
                self._back_at = self._store.clock.monotonic()
                self._waiting = set()
            self._was_away = not answers
            if not answers:
                self._queue.enqueue_after(STORE, ASK_SECONDS)
        if woken:
            log.info("the store answers again: everything that waited for it is looked at", resources=len(woken))
        for key in sorted(woken):
            self._queue.enqueue(key)

    def _answers(self) -> bool:
        try:
            RealmRegistry(self._store).find_realm(_NOBODY)
        except HeadwaterError:
            return False
        except Exception as fault:  # noqa: BLE001 - the door: a bug must not end the asking, and its text may hold anything
            log.error("asking for the store ended in a bug", error=type(fault).__name__)
            return False
        return True
