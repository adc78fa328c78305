"""The reconciler: one pass over one resource observes, acts, observes again, and writes the status, whatever may have happened."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import structlog

from headwater.errors import (
    ConflictError,
    FencedError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
)
from headwater.reconcile import (
    CatalogDescription,
    ContentCounts,
    ManagerIdentity,
    ManifestError,
    RealmDescription,
    ReconcileOutcome,
)
from headwater.settings import Settings
from headwater.store import Store
from headwater_operator.kube import ApiUnavailableError, KubeApi, resource_path
from headwater_operator.resource.conditions import FOREIGN, find_condition, realm_id_of
from headwater_operator.resource.credentials_secret import ForeignSecretError
from headwater_operator.resource.events import Event, EventPoster, events_for, is_drift_corrected
from headwater_operator.resource.finalizers import FINALIZER, HeldResources, add_finalizer, remove_finalizer
from headwater_operator.resource.resource_status import StatusWriter, is_written
from headwater_operator.resource.store_pass import (
    CatalogPass,
    ObservedStatus,
    PassResult,
    RealmPass,
    may_go,
)
from headwater_operator.resource.waiting_resources import STORE, Contention, StoreOutage
from headwater_operator.runtime.informer_cache import CachedResource, ResourceCache, ResourceKey
from headwater_operator.runtime.operator_settings import OperatorSettings
from headwater_operator.runtime.served_schema import SchemaOlderError, ServedSchemas
from headwater_operator.runtime.workqueue import RequeuePace, WorkQueue, seconds_until_next_look

log = structlog.get_logger(__name__)

COUNT_SECONDS = 2.0
"""How long after a change of a Catalog its Realm counts Catalogs again: many change at once."""
OLDER_SECONDS = 60.0
"""How often to look again whether the API server still serves an older schema."""
SCHEMA_SECONDS = 1.0
"""How old that result may be when a resource is written; before each step the schema is checked again."""
SECRET_SECONDS = 20.0
"""How often to check whether a foreign Secret is still in the way, which no watch reports."""


class ReconcileMetrics(Protocol):
    """The metrics that a pass updates."""

    def reconciled(self, kind: str, outcome: str, seconds: float) -> None: ...
    def retried(self, kind: str) -> None: ...
    def drifted(self, kind: str, action: str) -> None: ...
    def event_posted(self, reason: str) -> None: ...
    def set_realm(self, realm: RealmDescription) -> None: ...
    def forget_realm(self, realm_id: str) -> None: ...
    def set_catalog(self, catalog: ResourceKey, realm_id: str, description: CatalogDescription) -> None: ...
    def forget_catalog(self, catalog: ResourceKey) -> None: ...


class Reconciler:
    """Keeps realms and catalogs as their resources declare. Thread-safe as long as no two threads have the same key.

    fence         called before each step; an exception of it ends the pass
    schemas       what the API server keeps of a resource; with an older schema nothing is done about it
    chance        from 0 to 1, for the jitter of the resync
    """

    def __init__(
        self,
        store: Store,
        api: KubeApi,
        cache: ResourceCache,
        queue: WorkQueue[ResourceKey],
        settings: Settings,
        operator_settings: OperatorSettings,
        metrics: ReconcileMetrics,
        fence: Callable[[], None],
        *,
        schemas: ServedSchemas | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._clock = store.clock
        self._schemas = schemas or ServedSchemas(api, store.clock)
        self._api = api
        self._cache = cache
        self._queue = queue
        self._resync_seconds = operator_settings.resync_seconds
        self._metrics = metrics
        self._fence = fence
        self._chance = chance
        self._statuses = StatusWriter(api, cache, store.clock)
        self._events = EventPoster(
            api,
            component="headwater-operator",
            instance=operator_settings.identity,
            clock=store.clock,
            observe=metrics.event_posted,
        )
        cluster = ManagerIdentity(cluster=operator_settings.cluster_name, is_cluster_named=operator_settings.is_cluster_named)
        counts = ContentCounts()
        self._passes: dict[str, RealmPass | CatalogPass] = {
            "Realm": RealmPass(store, settings, cluster, self._fence_of("Realm"), api, counts),
            "Catalog": CatalogPass(
                store, settings, cluster, self._fence_of("Catalog"), api, cache, counts, server_url=operator_settings.server_url
            ),
        }
        self._known = HeldResources()
        self._outage = StoreOutage(store, queue)
        self._contention = Contention()

    def reconcile(self, key: ResourceKey) -> None:
        """Make a pass over one resource, and enqueue the next one. Every failure is recorded and retried.

        raises        FencedError, and nothing else, when this process may not act any more
        """
        started = self._clock.monotonic()
        if key == STORE:
            self._fence()
            self._outage.ask()
            return
        with structlog.contextvars.bound_contextvars(kind=key.kind, namespace=key.namespace, name=key.name):
            try:
                word = self._pass(key, started)
            except FencedError:
                raise
            except SchemaOlderError as older:
                word = "refused"
                self._stand_still(key, older)
            except Exception as fault:  # noqa: BLE001 - the door: one resource's trouble is not that of the others
                word = "error"
                self._put_off(key, fault)
        self._metrics.reconciled(key.kind, word, self._clock.monotonic() - started)

    def _pass(self, key: ResourceKey, began: float) -> str:
        """Make one pass; returns its outcome in one word."""
        self._fence()
        resource = self._cache.find_resource(key)
        if resource is None:
            return self._forget(key)
        resource = self._held(resource)
        if resource is None:
            return "unchanged"
        passing = self._passes[key.kind]
        with self._contention.record_look() as since:
            acted = passing.reconcile_store(resource)
            self._contend(resource, acted, since)
        if isinstance(acted.error, SchemaOlderError) and not acted.is_shrunk:
            raise acted.error
        if resource.is_deleted and may_go(resource, acted.outcome, acted.belonging):
            return self._let_go(resource, acted)
        sight = passing.read_status(resource, acted)
        self._outage.record_outage(key, is_away=sight.is_away, began=began)
        return self._write_down(resource, acted, sight)

    def _held(self, resource: CachedResource) -> CachedResource | None:
        """Add the operator's finalizer; returns the resource, or None when there is nothing to do for it any more."""
        if FINALIZER in resource.finalizers:
            self._known.hold(resource)
            return resource
        self._known.let_go(resource.key)
        if resource.is_deleted:
            self._queue.forget_failures(resource.key)
            return None  # others hold it
        self._schemas.check(resource.kind, max_age_seconds=SCHEMA_SECONDS)
        body = add_finalizer(self._api, resource)
        if body is None:
            raise SwapConflictError(f"{resource.key} is gone, or going, since it was seen")
        self._cache.learn(body)
        held = self._cache.find_resource(resource.key)
        if held is not None:
            self._known.hold(held)
        return held

    def _let_go(self, resource: CachedResource, acted: PassResult) -> str:
        """Remove the finalizer: nothing is left to do."""
        self._fence()
        self._schemas.check(resource.kind, max_age_seconds=SCHEMA_SECONDS)
        self._known.let_go(resource.key)
        body = remove_finalizer(self._api, resource)
        _log_pass(acted.outcome, "released")
        self._events.post(resource, events_for(resource, resource.status, resource.status, acted.steps))
        self._events.post(resource, [Event("Warning", refusal.reason, refusal.message) for refusal in acted.refused])
        if body is not None:
            self._cache.learn(body)
        self._queue.forget_failures(resource.key)
        self._outage.forget_resource(resource.key)
        self._tell_no_more(resource.key)
        self._tell_the_others(resource, None)
        self._contention.forget_resource(resource.key)
        self._wake_rivals(resource, acted)
        return "released"

    def _write_down(self, resource: CachedResource, acted: PassResult, sight: ObservedStatus) -> str:
        before, after = resource.status, sight.status
        try:
            self._publish(resource, after)
        except (SchemaOlderError, UnavailableError):
            # report what was done now, because the next pass will not know of it
            self._events.post(resource, events_for(resource, before, before, acted.steps))
            raise
        word = self._look_again(resource, sight)
        _log_pass(sight.outcome, word, is_news=before != after)
        self._events.post(resource, events_for(resource, before, after, acted.steps))
        self._count(resource, before, acted, sight)
        self._tell_the_others(resource, after)
        return word

    def _publish(self, resource: CachedResource, status: Mapping[str, Any]) -> None:
        pause = self._statuses.pause(resource, status)
        if pause:
            log.warning("somebody else writes the status, too", pause_seconds=round(pause, 1))
            self._queue.enqueue_after(resource.key, pause)
            return
        if not is_written(resource, status):
            self._schemas.check(resource.kind, max_age_seconds=SCHEMA_SECONDS)
        if self._statuses.write_status(resource, status):
            self._queue.enqueue(resource.key)  # another change came meanwhile

    def _fence_of(self, kind: str) -> Callable[[], None]:
        """What is called before each step: it may take something away because a field is missing."""

        def fence() -> None:
            self._fence()
            self._schemas.check(kind)

        return fence

    def _stand_still(self, key: ResourceKey, older: SchemaOlderError) -> None:
        """Do nothing about a resource while the API server drops fields of it, and write nothing to it: that would make the loss last."""
        log.error("nothing is done: the API server serves an older schema", error=str(older))
        resource = self._cache.find_resource(key)
        if resource is not None:
            self._events.post(resource, [Event("Warning", "SchemaOlder", str(older))])
        self._queue.forget_failures(key)
        self._queue.enqueue_after(key, OLDER_SECONDS * (0.9 + 0.2 * self._chance()))

    def _tell_the_others(self, resource: CachedResource, status: Mapping[str, Any] | None) -> None:
        """Wake the Realm or the Catalogs that show something of this resource. ``status``: the current one; None: it was released."""
        if status is not None and not self._known.has_news(resource, status):
            return
        if resource.kind == "Realm":
            self._wake_catalogs(resource.key)
            return
        realm = ResourceKey("Realm", resource.namespace, resource.realm)
        if self._cache.find_resource(realm) is not None:
            self._queue.enqueue_after(realm, COUNT_SECONDS)

    def _count(self, resource: CachedResource, before: Mapping[str, Any], acted: PassResult, sight: ObservedStatus) -> None:
        if sight.realm is not None:
            former = self._known.keeps(resource.key, sight.realm.id)
            if former is not None:
                self._queue.enqueue(former)  # the realm was taken over, and this Realm shows it as its own until its next pass
            self._metrics.set_realm(sight.realm)
        elif sight.catalog is not None:
            self._metrics.set_catalog(resource.key, sight.realm_id, sight.catalog)
        elif sight.is_seen:
            self._tell_no_more(resource.key)
        if is_drift_corrected(resource, before, acted.steps):
            self._metrics.drifted(resource.kind, "corrected")
        elif _is_drifted(sight.status) and not _is_drifted(before):
            self._metrics.drifted(resource.kind, "reported")

    def _look_again(self, resource: CachedResource, sight: ObservedStatus) -> str:
        """Enqueue the next pass; returns the outcome of this one in one word."""
        outcome = sight.outcome
        error = outcome if isinstance(outcome, Exception) else outcome.error
        if isinstance(error, RefusedError) and (sight.is_seen or isinstance(error, ManifestError)):
            # a person has to change something; the watch reports that, if it happens in this cluster
            self._queue.forget_failures(resource.key)
            seconds = self._resync_seconds
            if isinstance(error, ForeignSecretError):
                seconds = min(seconds, SECRET_SECONDS)
            self._queue.enqueue_after(resource.key, seconds * (0.9 + 0.2 * self._chance()))
            return "refused"
        if error is not None:
            self._retry(resource.key, error)
            return "error"
        if isinstance(outcome, Exception) or not sight.is_seen:
            self._retry(resource.key)
            return "error"
        self._queue.forget_failures(resource.key)
        pace = RequeuePace(self._resync_seconds, crowd=sum(self._cache.counts().values()), chance=self._chance())
        seconds = seconds_until_next_look(outcome, sight.tasks, now=self._clock.now(), pace=pace)
        if _is_kept_off(outcome):
            seconds = min(seconds, self._contention.seconds_between_looks * (0.9 + 0.2 * self._chance()))
        self._queue.enqueue_after(resource.key, seconds)
        if outcome.refused:
            return "refused"
        return "waiting" if outcome.waits else "changed" if outcome.steps else "unchanged"

    def _put_off(self, key: ResourceKey, fault: Exception) -> None:
        """Retry a pass whose result could not even be written."""
        if isinstance(fault, NotFoundError) and self._has_left(key):
            self._queue.enqueue(key)
        elif isinstance(fault, HeadwaterError):
            log.warning("put off", error=str(fault))
            self._retry(key, fault)
        else:
            log.error("put off because of a bug", error=type(fault).__name__, exc_info=fault)
            self._retry(key, fault)

    def _has_left(self, key: ResourceKey) -> bool:
        """Whether it was deleted and the watch has not reported it yet. The server may also not have found its path, or it was
        recreated since.
        """
        cached = self._cache.find_resource(key)
        try:
            if self._api.find_resource(resource_path(key.kind, key.namespace, key.name)) is not None:
                return False
        except HeadwaterError as fault:
            log.warning("it is not known whether it is still there", error=str(fault))
            return False
        if cached is not None:
            self._cache.remove_resource(key, uid=cached.uid)
        return True

    def _retry(self, key: ResourceKey, error: Exception | None = None) -> None:
        asked = error.retry_after if isinstance(error, ApiUnavailableError) else None
        self._queue.retry(key, least_seconds=asked or 0.0)
        self._metrics.retried(key.kind)

    def _forget(self, key: ResourceKey) -> str:
        """Forget a deleted resource."""
        self._queue.drop(key)
        self._outage.forget_resource(key)
        self._contention.forget_resource(key)
        if self._cache.find_resource(key) is not None:
            self._queue.enqueue(key)  # it was recreated just now, and its new events were dropped
        self._statuses.forget_resource(key)
        self._tell_no_more(key)
        held = self._known.forget_resource(key)
        if held is not None:
            log.warning("gone without its deletion policy: somebody took the finalizer away")
            self._events.post(held, [_RELEASED_BY_HAND])
        if key.kind == "Realm":
            self._wake_catalogs(key)
        return "gone"

    def _tell_no_more(self, key: ResourceKey) -> None:
        """Delete the metrics of a realm or catalog that no resource manages any more: frozen values would look like trouble."""
        self._metrics.forget_catalog(key)
        realm_id = self._known.keeps_none(key)
        if realm_id is not None:
            self._metrics.forget_realm(realm_id)

    def _contend(self, resource: CachedResource, acted: PassResult, since: int) -> None:
        if acted.steps:
            self._wake_rivals(resource, acted)
        is_kept_off = _is_kept_off(acted.outcome)
        if self._contention.record_contention(resource.key, _realm_id(resource, acted), is_kept_off=is_kept_off, since=since):
            self._queue.enqueue(resource.key)

    def _wake_rivals(self, resource: CachedResource, acted: PassResult) -> None:
        """Wake the resources that this one may have kept off, after it did something or was released."""
        for rival in self._contention.change(resource.key, _realm_id(resource, acted)):
            self._queue.enqueue(rival)

    def _wake_catalogs(self, realm: ResourceKey) -> None:
        for catalog in self._cache.catalogs_of(realm.namespace, realm.name):
            self._queue.enqueue(catalog)


_RELEASED_BY_HAND = Event(
    "Warning",
    "ReleasedByHand",
    "the operator's finalizer was taken away by somebody else: the deletion policy was not followed",
)


def _is_drifted(status: Mapping[str, Any]) -> bool:
    drifted = find_condition(status.get("conditions") or (), "Drifted")
    return drifted is not None and drifted.get("status") == "True"


def _realm_id(resource: CachedResource, acted: PassResult) -> str | None:
    """The id of the realm that the resource is about; None for a Catalog whose realm is unknown."""
    return realm_id_of(resource) if acted.belonging is None else acted.belonging.realm_id


def _is_kept_off(outcome: ReconcileOutcome | Exception) -> bool:
    """Whether something stands in the way that may belong to another resource."""
    error = outcome if isinstance(outcome, Exception) else outcome.error
    if error is not None:
        return isinstance(error, RefusedError | ConflictError) and not isinstance(error, ManifestError)
    return isinstance(outcome, ReconcileOutcome) and any(refusal.reason in FOREIGN for refusal in outcome.refused)


def _log_pass(outcome: ReconcileOutcome | Exception, word: str, *, is_news: bool = True) -> None:
    """Log one line with the steps and obstacles. A pass without news is logged at a lower level."""
    if isinstance(outcome, Exception):
        log.warning("reconciled", outcome=word, error=f"{type(outcome).__name__}: {outcome}")
        return
    notices = {
        "steps": outcome.done,
        "waits": [f"{notice.reason}: {notice.message}" for notice in outcome.waits],
        "refused": [f"{notice.reason}: {notice.message}" for notice in outcome.refused],
        "reports": [f"{notice.reason}: {notice.message}" for notice in outcome.reports],
    }
    told: dict[str, Any] = {name: list(lines) for name, lines in notices.items() if lines}
    if outcome.error is not None:
        told["error"] = f"{type(outcome.error).__name__}: {outcome.error}"
    if outcome.more_errors:
        told["more_errors"] = [f"{type(error).__name__}: {error}" for error in outcome.more_errors]
    tell = log.info if (told and is_news) or outcome.steps or word == "released" else log.debug
    tell("reconciled", outcome=word, **told)
