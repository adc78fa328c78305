"""The operator's metrics, for Prometheus. `CATALOGUE` has all of them, with what each one means.

Only the leader reports what all replicas would report alike: the figures of the store, of realms and of resources. Of realms and
their imports a bounded number has labels of its own; the others are reported together.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from headwater.clock import Micros
from headwater.reconcile import CatalogDescription, ImportDescription, RealmDescription, TaskDescription
from headwater.tasks import TaskState
from headwater_operator.metrics.store_metrics import StoreFigures
from headwater_operator.resource.conditions import quarantined
from headwater_operator.runtime.informer_cache import ResourceKey

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
PREFIX = "headwater_"
_disable_created_metrics: Any = disable_created_metrics  # the library has types only in parts
NO_ANSWER = "none"
Values = Mapping[Any, float]
"""Values by labels, in the order of the catalogue."""


@dataclass(frozen=True, slots=True)
class MetricDescription:
    """A metric as `/metrics` shows it; a histogram's samples add ``_bucket``, ``_sum`` and ``_count`` to its name."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str


def _metric(name: str, kind: Literal["counter", "gauge", "histogram"], labels: str, text: str) -> MetricDescription:
    return MetricDescription(PREFIX + name, kind, tuple(labels.split()), text)


CATALOGUE = (
    _metric("operator_leader", "gauge", "", "1 while this process holds the Lease and acts, else 0."),
    _metric("operator_reconcile_total", "counter", "kind outcome", "Looks at resources that ended, by how they ended."),
    _metric("operator_reconcile_seconds", "histogram", "kind", "How long a look at a resource took, with all that it did."),
    _metric("operator_queue_depth", "gauge", "", "Resources that are to be looked at now and wait for a thread."),
    _metric("operator_queue_oldest_seconds", "gauge", "", "How long the one among them has waited that waits longest."),
    _metric("operator_retries_total", "counter", "kind", "Looks that failed and were put off."),
    _metric("operator_drift_total", "counter", "kind action", "Drift that was seen, and whether it was corrected or reported."),
    _metric(
        "operator_api_requests_total", "counter", "verb code", "Requests to the Kubernetes API; code `none`: no answer came."
    ),
    _metric("operator_api_request_seconds", "histogram", "verb", "How long the Kubernetes API took to answer."),
    _metric("operator_watch_age_seconds", "gauge", "kind", "Since when the watch of a kind gave no sign of life. Leader only."),
    _metric("operator_resources", "gauge", "kind condition status", "Resources by the status of each condition. Leader only."),
    _metric("operator_events_total", "counter", "reason", "Kubernetes Events that were posted."),
    _metric("store_up", "gauge", "", "1 when the store answered this process at its last try, else 0."),
    _metric("realms", "gauge", "state", "Realms in the store by state, also those that no resource manages. Leader only."),
    _metric("tasks", "gauge", "kind state", "Active tasks in the store. Leader only."),
    _metric("tasks_due", "gauge", "kind", "Tasks that are due and that no worker does yet. Leader only."),
    _metric("task_oldest_due_seconds", "gauge", "kind", "How long the task has waited that is due longest. Leader only."),
    _metric("task_dead_letters", "gauge", "kind", "Tasks that were given up, and that nothing has followed. Leader only."),
    _metric("tasks_unreadable", "gauge", "kind", "Tasks that are listed and cannot be read: run headwater fsck. Leader only."),
    _metric("task_retries", "gauge", "kind", "Attempts that failed or were lost, of active tasks. Leader only."),
    _metric("task_seconds", "gauge", "kind", "Mean duration of the last tasks that succeeded, one a subject. Leader only."),
    _metric("task_longest_seconds", "gauge", "kind", "The longest of these durations. Leader only."),
    _metric(
        "maintenance_last_success_timestamp_seconds",
        "gauge",
        "realm",
        "When a collection of the realm last succeeded; the earliest for `_others_`. Leader only.",
    ),
    _metric(
        "maintenance_next_due_timestamp_seconds",
        "gauge",
        "realm",
        "When the next collection is due; the earliest for `_others_`. Leader only.",
    ),
    _metric(
        "maintenance_objects_deleted_total",
        "counter",
        "realm",
        "Rows that collections deleted, counted since this process leads: each collection once, as its end is seen. Leader only.",
    ),
    _metric(
        "maintenance_bytes_reclaimed_total",
        "counter",
        "realm",
        "Bytes that collections deleted, at least; counted like the rows. Leader only.",
    ),
    _metric("purge_rows_remaining", "gauge", "realm", "Rows that a purge has left; summed for `_others_`. Leader only."),
    _metric(
        "import_tables_total",
        "counter",
        "realm outcome",
        "Tables that imports imported, updated, found unchanged or quarantined, counted since this process leads: each run once, as its "
        "end is seen. Leader only.",
    ),
    _metric(
        "import_quarantined_tables",
        "gauge",
        "realm",
        "Tables that the last run of each import left alone, summed. Leader only.",
    ),
    _metric(
        "import_last_success_timestamp_seconds",
        "gauge",
        "realm",
        "When the import last succeeded that succeeded longest ago. Leader only.",
    ),
)
_BY_NAME = {entry.name: entry for entry in CATALOGUE}
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


@dataclass(slots=True)
class MetricSources:
    """The functions that a scrape calls. Each may be replaced while the process starts."""

    is_leading: Callable[[], bool] = lambda: False
    queue_depth: Callable[[], int] = lambda: 0
    queue_oldest_seconds: Callable[[], float] = lambda: 0.0
    watch_ages: Callable[[], Mapping[str, float]] = field(default=dict)
    standings: Callable[[], Mapping[tuple[str, str, str], int]] = field(default=dict)
    """Numbers by kind, condition and its status."""


class OperatorMetrics:
    """One registry with all metrics; thread-safe.

    realms        how many realms have metrics of their own
    """

    def __init__(self, *, realms: int = 200) -> None:
        _disable_created_metrics()  # twice the series for no use
        self.registry = CollectorRegistry()
        self.sources = MetricSources()
        self._tallies = RealmTallies(realms)
        self._imports = ImportTallies(realms)
        self._figures = StoreFigures(is_up=False)
        ProcessCollector(registry=self.registry)
        self._reconciles = self._counter("operator_reconcile_total")
        self._reconcile_seconds = self._histogram("operator_reconcile_seconds")
        self._retries = self._counter("operator_retries_total")
        self._drifts = self._counter("operator_drift_total")
        self._requests = self._counter("operator_api_requests_total")
        self._request_seconds = self._histogram("operator_api_request_seconds")
        self._events = self._counter("operator_events_total")
        self.registry.register(_Scraped(self._scraped))

    def reconciled(self, kind: str, outcome: str, seconds: float) -> None:
        """Record the end of a pass over a resource. ``outcome`` is one of a handful of words, ``error`` among them."""
        self._reconciles.labels(kind, outcome).inc()
        self._reconcile_seconds.labels(kind).observe(seconds)

    def retried(self, kind: str) -> None:
        self._retries.labels(kind).inc()

    def drifted(self, kind: str, action: str) -> None:
        """Record a drift. ``action``: ``corrected`` or ``reported``."""
        self._drifts.labels(kind, action).inc()

    def event_posted(self, reason: str) -> None:
        self._events.labels(reason).inc()

    def api_request(self, verb: str, code: int, seconds: float) -> None:
        """Record a request; for ``KubeApi(observe=…)``."""
        self._requests.labels(verb, str(code) if code else NO_ANSWER).inc()
        self._request_seconds.labels(verb).observe(seconds)

    def lead_from(self, now: Micros) -> None:
        """Start to count as the leader: collections and imports that ended earlier were counted by another."""
        self._tallies.count_from(now)
        self._imports.count_from(now)

    def set_realm(self, realm: RealmDescription) -> None:
        """Update the metrics of a realm from its description."""
        self._tallies.set_realm(realm)

    def delete_realm(self, realm_id: str) -> None:
        self._tallies.delete_realm(realm_id)

    def set_catalog(self, catalog: ResourceKey, realm_id: str, description: CatalogDescription) -> None:
        """Update the metrics of a catalog from its description."""
        self._imports.set_catalog(catalog, realm_id, description)

    def delete_catalog(self, catalog: ResourceKey) -> None:
        self._imports.delete_catalog(catalog)

    def set_store_figures(self, figures: StoreFigures) -> None:
        self._figures = figures

    def render(self) -> bytes:
        """All metrics as text."""
        return generate_latest(self.registry)

    def _scraped(self) -> Iterator[Metric]:
        sources = self.sources
        is_leading = sources.is_leading()
        yield _gauge("operator_leader", {(): float(is_leading)})
        yield _gauge("store_up", {(): float(self._figures.is_up)})
        yield _gauge("operator_queue_depth", {(): sources.queue_depth()})
        yield _gauge("operator_queue_oldest_seconds", {(): sources.queue_oldest_seconds()})
        if not is_leading:
            return
        yield _gauge("operator_watch_age_seconds", {(kind,): age for kind, age in sources.watch_ages().items()})
        yield _gauge("operator_resources", sources.standings())
        yield from self._of_store()
        yield from self._of_realms()
        yield from self._of_imports()

    def _of_store(self) -> Iterator[Metric]:
        figures = self._figures
        if figures.realms is not None:
            yield _gauge("realms", _labelled(figures.realms))
        if (tasks := figures.tasks) is not None:
            yield _gauge("tasks", {(kind, state.value): count for (kind, state), count in tasks.active.items()})
            yield _gauge("tasks_due", _labelled(tasks.due))
            yield _gauge("task_oldest_due_seconds", _labelled(tasks.oldest_due_seconds))
            yield _gauge("task_dead_letters", _labelled(tasks.dead_letters))
            yield _gauge("tasks_unreadable", _labelled(tasks.unreadable))
            yield _gauge("task_retries", _labelled(tasks.retries))
            yield _gauge("task_seconds", _labelled(tasks.seconds))
            yield _gauge("task_longest_seconds", _labelled(tasks.longest_seconds))

    def _of_realms(self) -> Iterator[Metric]:
        tallies = self._tallies.by_label()
        for name, values in (
            ("maintenance_last_success_timestamp_seconds", {realm: tally.last_success for realm, tally in tallies.items()}),
            ("maintenance_next_due_timestamp_seconds", {realm: tally.next_due for realm, tally in tallies.items()}),
            ("purge_rows_remaining", {realm: tally.purge_rows_remaining for realm, tally in tallies.items()}),
        ):
            yield _gauge(name, {(realm,): value for realm, value in values.items() if value is not None})
        yield _total("maintenance_objects_deleted_total", {(realm,): tally.objects_deleted for realm, tally in tallies.items()})
        yield _total("maintenance_bytes_reclaimed_total", {(realm,): tally.bytes_reclaimed for realm, tally in tallies.items()})

    def _of_imports(self) -> Iterator[Metric]:
        tallies = self._imports.by_label()
        tables = {(realm, outcome): count for realm, tally in tallies.items() for outcome, count in tally.tables.items()}
        yield _total("import_tables_total", tables)
        yield _gauge("import_quarantined_tables", {(realm,): tally.quarantined for realm, tally in tallies.items()})
        times = {(realm,): tally.last_success for realm, tally in tallies.items() if tally.last_success is not None}
        yield _gauge("import_last_success_timestamp_seconds", times)

    def _counter(self, name: str) -> Counter:
        entry = _BY_NAME[PREFIX + name]
        return Counter(entry.name, entry.help, entry.labels, registry=self.registry)

    def _histogram(self, name: str) -> Histogram:
        entry = _BY_NAME[PREFIX + name]
        return Histogram(entry.name, entry.help, entry.labels, registry=self.registry, buckets=_SECONDS)


class _Scraped(Collector):
    """A collector of the figures that are read when somebody scrapes."""

    def __init__(self, collected: Callable[[], Iterator[Metric]]) -> None:
        self._collected = collected

    def collect(self) -> Iterator[Metric]:
        return self._collected()

    def describe(self) -> Iterator[Metric]:
        return iter(())  # skip reading before there is something to read


def _gauge(name: str, values: Values) -> Metric:
    entry = _BY_NAME[PREFIX + name]
    family = GaugeMetricFamily(entry.name, entry.help, labels=entry.labels)
    return _filled(family, values)


def _total(name: str, values: Values) -> Metric:
    entry = _BY_NAME[PREFIX + name]
    family = CounterMetricFamily(entry.name, entry.help, labels=entry.labels)
    return _filled(family, values)


def _filled(family: Any, values: Values) -> Metric:
    for labels, value in sorted(values.items()):
        family.add_metric(labels, value)
    filled: Metric = family
    return filled


def _labelled(values: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    return {(label,): value for label, value in values.items()}


OTHERS = "_others_"
MICROS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RealmTally:
    """The figures of one or several realms. Times are in seconds since 1970, the earliest of several; counts are sums; None: unknown.

    objects_deleted, bytes_reclaimed  only ever grow while the realm has this name in the metrics
    """

    last_success: float | None = None
    next_due: float | None = None
    purge_rows_remaining: int | None = None
    objects_deleted: int = 0
    bytes_reclaimed: int = 0


class RealmTallies:
    """Collects the descriptions of realms that passes produce. Thread-safe.

    limit         realms with a name in the metrics; a realm gets it at its first description, if one is left, and keeps it until it is
                  deleted, so that no counter ever moves from one name to another

    A collection is counted once, after its end; those that ended before ``count_from`` were counted by the previous leader.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._named: set[str] = set()
        self._tallies: dict[str, RealmTally] = {}
        self._counted: dict[str, str] = {}
        self._count_from = Micros(0)
        self._others_deleted = 0
        self._others_reclaimed = 0

    def count_from(self, now: Micros) -> None:
        self._count_from = now

    def set_realm(self, realm: RealmDescription) -> None:
        with self._lock:
            if realm.id not in self._tallies and len(self._named) < self._limit and realm.id != OTHERS:
                self._named.add(realm.id)
            deleted, reclaimed = self._newly_collected(realm)
            former = self._tallies.get(realm.id, RealmTally())
            if realm.id not in self._named:
                self._others_deleted += deleted
                self._others_reclaimed += reclaimed
            self._tallies[realm.id] = RealmTally(
                last_success=_seconds(realm.last_success) or former.last_success,
                next_due=_seconds(realm.next_collection),
                purge_rows_remaining=_remaining(realm.purge),
                objects_deleted=former.objects_deleted + deleted,
                bytes_reclaimed=former.bytes_reclaimed + reclaimed,
            )

    def delete_realm(self, realm_id: str) -> None:
        """Forget a realm that was deleted or is no longer managed."""
        with self._lock:
            self._named.discard(realm_id)
            self._tallies.pop(realm_id, None)
            self._counted.pop(realm_id, None)

    def by_label(self) -> dict[str, RealmTally]:
        """The tallies by name in the metrics, ``_others_`` for those without one."""
        with self._lock:
            named = {realm_id: tally for realm_id, tally in self._tallies.items() if realm_id in self._named}
            others = [tally for realm_id, tally in self._tallies.items() if realm_id not in self._named]
            if others or self._others_deleted:
                named[OTHERS] = self._together(others)
        return named

    def _together(self, others: list[RealmTally]) -> RealmTally:
        remaining = [tally.purge_rows_remaining for tally in others if tally.purge_rows_remaining is not None]
        return RealmTally(
            last_success=_earliest(tally.last_success for tally in others),
            next_due=_earliest(tally.next_due for tally in others),
            purge_rows_remaining=sum(remaining) if remaining else None,
            objects_deleted=self._others_deleted,
            bytes_reclaimed=self._others_reclaimed,
        )

    def _newly_collected(self, realm: RealmDescription) -> tuple[int, int]:
        """Rows and bytes that a collection deleted, if it was not counted yet."""
        last = realm.last_collection
        if last is None or last.finished is None or self._counted.get(realm.id) == last.id:
            return 0, 0
        self._counted[realm.id] = last.id
        if last.finished < self._count_from:
            return 0, 0
        return _count(last, "deleted"), _count(last, "deletedBytes")


def _count(task: TaskDescription, name: str) -> int:
    value = task.outcome.get(name)
    return value if isinstance(value, int) else 0


def _remaining(purge: TaskDescription | None) -> int | None:
    """The rows that an active purge has left; 0 when it is done; None where unknown."""
    if purge is None:
        return None
    if purge.state is TaskState.SUCCEEDED:
        return 0
    return None if purge.total is None else max(purge.total - purge.done, 0)


def _seconds(time: Micros | None) -> float | None:
    return None if time is None else time / MICROS


def _earliest(times: Iterable[float | None]) -> float | None:
    return min((time for time in times if time is not None), default=None)


OUTCOMES = ("imported", "updated", "unchanged", "quarantined")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTally:
    """The figures of the imports of one or several realms.

    last_success  the earliest of the times, in seconds since 1970, at which its imports last succeeded; None: none of them ever has
    quarantined   tables that the last runs left alone
    tables        what became of the tables of runs, by outcome; only ever grows while the realm has this name in the metrics
    """

    last_success: float | None
    quarantined: int
    tables: Mapping[str, int]


@dataclass(slots=True)
class ImportTallies:
    """Collects the descriptions of catalogs that passes produce. Thread-safe.

    limit         realms with a name in the metrics; a realm gets it with its first import, if one is left, and keeps it as long as it
                  has any, so that no counter ever moves from one name to another

    A run is counted once, after its end; those that ended before ``count_from`` were counted by the previous leader.
    """

    limit: int
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _realms: dict[str, dict[ResourceKey, tuple[ImportDescription, ...]]] = field(default_factory=dict)
    """The imports last seen, by realm id and Catalog."""
    _homes: dict[ResourceKey, str] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)
    _totals: dict[str, collections.Counter[str]] = field(default_factory=dict)
    _count_from: Micros = field(default=Micros(0))

    def count_from(self, now: Micros) -> None:
        self._count_from = now

    def set_catalog(self, catalog: ResourceKey, realm_id: str, description: CatalogDescription) -> None:
        if not description.imports or self._homes.get(catalog, realm_id) != realm_id:
            self.delete_catalog(catalog)
        if not description.imports:
            return
        with self._lock:
            if realm_id not in self._realms and len(self._named) < self.limit and realm_id != OTHERS:
                self._named.add(realm_id)
            catalogs = self._realms.setdefault(realm_id, {})
            counted = {entry.name: entry.succeeded.id for entry in catalogs.get(catalog, ()) if entry.succeeded is not None}
            total = self._totals.setdefault(self._name(realm_id), collections.Counter())
            for entry in description.imports:
                if entry.succeeded is not None and self._is_new(entry.succeeded, counted.get(entry.name)):
                    total.update(_counts(entry, entry.succeeded))
            catalogs[catalog] = description.imports
            self._homes[catalog] = realm_id

    def delete_catalog(self, catalog: ResourceKey) -> None:
        """Forget a Catalog that was deleted or has no imports any more."""
        with self._lock:
            realm_id = self._homes.pop(catalog, None)
            if realm_id is None:
                return
            del self._realms[realm_id][catalog]
            if not self._realms[realm_id]:
                del self._realms[realm_id]
                self._named.discard(realm_id)
                self._totals.pop(realm_id, None)

    def by_label(self) -> dict[str, ImportTally]:
        """The tallies by name in the metrics, ``_others_`` for those without one."""
        with self._lock:
            imports_of: dict[str, list[ImportDescription]] = {name: [] for name in self._totals}
            for realm_id, catalogs in self._realms.items():
                imports_of[self._name(realm_id)] += (entry for imports in catalogs.values() for entry in imports)
            return {name: _row(imports, self._totals[name]) for name, imports in imports_of.items()}

    def _name(self, realm_id: str) -> str:
        return realm_id if realm_id in self._named else OTHERS

    def _is_new(self, run: TaskDescription, counted: str | None) -> bool:
        """Whether the run was counted neither here nor by the previous leader."""
        return counted != run.id and run.finished is not None and run.finished >= self._count_from


def _row(imports: Sequence[ImportDescription], total: collections.Counter[str]) -> ImportTally:
    ended = [
        entry.succeeded.finished for entry in imports if entry.succeeded is not None and entry.succeeded.finished is not None
    ]
    return ImportTally(
        last_success=min(ended) / MICROS if ended else None,
        quarantined=sum(map(quarantined, imports)),
        tables={outcome: total[outcome] for outcome in OUTCOMES},
    )


def _counts(entry: ImportDescription, run: TaskDescription) -> dict[str, int]:
    counts = {name: run.outcome.get(name) for name in OUTCOMES[:-1]}
    return {name: count for name, count in counts.items() if isinstance(count, int)} | {"quarantined": quarantined(entry)}
