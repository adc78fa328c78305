"""Lists that check the watch: whether it delivered everything, what was deleted without an event, and whether it is alive.

kopf delivers each resource of the list at a watch's start, and each change after it. It does not report when that list is complete,
what it lacks, or that a silent watch is alive. So the same resources are listed once more here, by name and version, and
compared with
what the watch has brought. Nothing here fills the cache: what a list shows and the watch has not brought is waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import structlog

from headwater.clock import Clock
from headwater.errors import HeadwaterError, NotFoundError, UnavailableError
from headwater_operator.kube import KubeApi, resource_path
from headwater_operator.runtime.informer_cache import DELETED_EVENT, ResourceKey

log = structlog.get_logger(__name__)

QUIET_SECONDS = 1.0
"""A watch that delivers nothing for this long has delivered everything."""
STOP_SECONDS = 2.0


class WatchTarget(NamedTuple):
    """The target of one watch stream of kopf: a kind, in one namespace or in all of them (None)."""

    kind: str
    namespace: str | None

    def __str__(self) -> str:
        return resource_path(self.kind, self.namespace, None)


class Sighting(NamedTuple):
    """One state of one resource."""

    uid: str
    version: str

    def reaches(self, other: Sighting) -> bool:
        """Whether this is the same resource, not older. Versions are growing numbers; one that is no number counts as new enough."""
        numbers = (self.version, other.version)
        is_newer = not all(map(str.isdecimal, numbers)) or int(self.version) >= int(other.version)
        return self.uid == other.uid and is_newer


@dataclass(frozen=True, slots=True)
class ListBegun:
    """A list that is being read. It proves deletion only for resources that the watch had delivered when it began."""

    target: WatchTarget
    began_at: float
    brought_before: Mapping[ResourceKey, Sighting]


@dataclass
class _TargetProgress:
    """Resources in ``awaited`` are not reached by those in ``brought``."""

    brought: dict[ResourceKey, Sighting] = field(default_factory=dict)
    awaited: dict[ResourceKey, Sighting] = field(default_factory=dict)
    heard_at: float | None = None
    is_complete: bool = False

    def hear(self, at: float) -> None:
        self.heard_at = at if self.heard_at is None else max(self.heard_at, at)

    def bring(self, key: ResourceKey, sighting: Sighting) -> None:
        self.brought[key] = sighting
        if key in self.awaited and self.has_reached(key, self.awaited[key]):
            del self.awaited[key]

    def remove(self, key: ResourceKey, uid: str) -> None:
        """Remove a deleted resource. An event about an earlier resource of this name does not affect its successor."""
        for sightings in (self.brought, self.awaited):
            if key in sightings and sightings[key].uid == uid:
                del sightings[key]

    def holds(self, key: ResourceKey, uid: str) -> bool:
        return key in self.brought and self.brought[key].uid == uid

    def has_reached(self, key: ResourceKey, sighting: Sighting) -> bool:
        return key in self.brought and self.brought[key].reaches(sighting)


class WatchProgress:
    """What the watch has delivered for each target, and what is missing. Thread-safe: each call is atomic."""

    def __init__(self, targets: Iterable[WatchTarget], clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._states = {target: _TargetProgress() for target in targets}

    @property
    def targets(self) -> list[WatchTarget]:
        return list(self._states)

    @property
    def is_complete(self) -> bool:
        """Whether the watch has delivered everything that a list showed, for each target."""
        with self._lock:
            return all(state.is_complete for state in self._states.values())

    def ages(self) -> dict[str, float]:
        """Seconds since the last sign of life of each kind; with several targets, of the most silent one.

        A sign of life is a change that the watch delivered, or a list without anything that the watch had not delivered.
        """
        now, ages = self._clock.monotonic(), dict[str, float]()
        with self._lock:
            for target, state in self._states.items():
                if state.heard_at is not None:
                    ages[target.kind] = max(ages.get(target.kind, 0.0), now - state.heard_at)
        return ages

    def note_event(self, event: str | None, body: Mapping[str, Any]) -> bool:
        """Record an event of the watch. Call it after the cache stored it: once all is complete, the cache must have it.

        event         ADDED, MODIFIED or DELETED; None for a resource of the list that a watch begins with
        returns       whether this watch was complete before, and has begun anew
        """
        key, sighting = resource_key_of(body), _sighting_of(body)
        with self._lock:
            state = self._states.get(WatchTarget(key.kind, None)) or self._states[WatchTarget(key.kind, key.namespace)]
            has_begun_anew = event is None and state.is_complete
            was_behind = bool(state.awaited)
            if event == DELETED_EVENT:
                state.remove(key, sighting.uid)
            else:
                state.bring(key, sighting)
            has_caught_up = was_behind and not state.awaited
            if event is not None or has_caught_up:
                state.hear(self._clock.monotonic())
            state.is_complete = state.is_complete or has_caught_up
        return has_begun_anew

    def begin_list(self, target: WatchTarget) -> ListBegun:
        """Begin a list. Call it before the first page is requested: what the watch delivers later may be newer than the list."""
        with self._lock:
            return ListBegun(target, self._clock.monotonic(), dict(self._states[target].brought))

    def end_list(self, begun: ListBegun, listed: Mapping[ResourceKey, Sighting]) -> dict[ResourceKey, str]:
        """Compare a complete list with what the watch has delivered. Returns what was deleted without an event, with its uid."""
        with self._lock:
            state = self._states[begun.target]
            gone = {
                key: held.uid
                for key, held in begun.brought_before.items()
                if (key not in listed or listed[key].uid != held.uid) and state.holds(key, held.uid)
            }
            for key in gone:
                del state.brought[key]
            state.awaited = {key: owed for key, owed in listed.items() if not state.has_reached(key, owed)}
            if not state.awaited:
                state.hear(begun.began_at)
                state.is_complete = True
        return gone

    def owed(self, targets: Iterable[WatchTarget]) -> int:
        """The number of resources that a list showed in a state that the watch has not delivered."""
        with self._lock:
            return sum(len(self._states[target].awaited) for target in targets)


class Relister:
    """A thread that lists every target at its start, then periodically, and soon after a watch has restarted.

    seconds       from one round of lists to the next
    waits         seconds between lists of what could not be listed, or is owed; each iteration begins them anew
    on_vanished   called with the key and the uid of a resource that was deleted without an event
    on_ended      called with the reason why no watch can continue
    on_listed     called with the kind after each list
    """

    def __init__(
        self,
        api: KubeApi,
        progress: WatchProgress,
        *,
        label_selector: str,
        seconds: float,
        waits: Iterable[float],
        on_vanished: Callable[[ResourceKey, str], None],
        on_ended: Callable[[HeadwaterError], None],
        on_listed: Callable[[str], None] = lambda kind: None,
    ) -> None:
        self._api = api
        self._progress = progress
        self._label_selector = label_selector
        self._seconds = seconds
        self._waits = waits
        self._on_vanished = on_vanished
        self._on_ended = on_ended
        self._on_listed = on_listed
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relister", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """List soon: a watch has restarted, and a deletion may have been missed in between."""
        self._woken.set()

    def stop(self) -> None:
        """Stop the thread without waiting for a pending request."""
        self._stopped.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopped.is_set():
            waits, targets = iter(self._waits), self._progress.targets
            while (targets := self._list_all(targets)) and not self._stopped.is_set():
                self._sleep(next(waits))
            self._sleep(self._seconds)

    def _list_all(self, targets: Iterable[WatchTarget]) -> list[WatchTarget]:
        """List these targets, and wait for the watch. Returns those that could not be listed or are still incomplete."""
        listed = {target: self._list(target) for target in targets}
        self._wait_for_owed(listed)
        return [target for target, is_listed in listed.items() if not is_listed or self._progress.owed([target])]

    def _list(self, target: WatchTarget) -> bool:
        """List a target, and report what was deleted. Returns whether that was possible."""
        begun = self._progress.begin_list(target)
        try:
            listed = dict(self._sightings(target))
        except NotFoundError as error:
            self._on_ended(UnavailableError(f"the watch of realms and catalogs ended: {error}"))
            return False
        except HeadwaterError as error:
            if not self._stopped.is_set():
                log.warning("the watch cannot be compared with a list", error=str(error))
            return False
        for key, uid in self._progress.end_list(begun, listed).items():
            self._on_vanished(key, uid)
        self._on_listed(target.kind)
        return True

    def _sightings(self, target: WatchTarget) -> Iterator[tuple[ResourceKey, Sighting]]:
        path = resource_path(target.kind, target.namespace, None)
        for page in self._api.pages(path, label_selector=self._label_selector or None, metadata_only=True):
            for body in page:
                yield resource_key_of({**body, "kind": target.kind}), _sighting_of(body)

    def _wait_for_owed(self, targets: Iterable[WatchTarget]) -> None:
        """Wait until the watch has delivered everything, or delivers nothing more."""
        owed = self._progress.owed(targets)
        while owed and not self._stopped.wait(QUIET_SECONDS):
            before, owed = owed, self._progress.owed(targets)
            if owed >= before:
                return

    def _sleep(self, seconds: float) -> None:
        """Sleep until the time is over, or a restarted watch has delivered its list."""
        is_woken = self._woken.wait(seconds)
        while is_woken and not self._stopped.is_set():
            self._woken.clear()
            is_woken = self._woken.wait(QUIET_SECONDS)


def resource_key_of(body: Mapping[str, Any]) -> ResourceKey:
    metadata = body["metadata"]
    return ResourceKey(body["kind"], metadata.get("namespace") or "", metadata["name"])


def _sighting_of(body: Mapping[str, Any]) -> Sighting:
    metadata = body["metadata"]
    return Sighting(str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or ""))
