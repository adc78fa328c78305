"""The operator's metrics, for Prometheus. `CATALOGUE` has all of them, with what each one means.

Only the leader reports what all replicas would report alike: the figures of the store, of realms and of resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from headwater.clock import Micros
from headwater.reconcile import CatalogDescription, RealmDescription
from headwater_operator.metrics.metric_labels import ImportTallies, RealmTallies
from headwater_operator.metrics.store_metrics import StoreFigures
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

    def set_catalog(self, catalog: ResourceKey, realm_id: str, seen: CatalogDescription) -> None:
        """Update the metrics of a catalog from its description."""
        self._imports.set_catalog(catalog, realm_id, seen)

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
        rows = self._tallies.rows()
        for name, values in (
            ("maintenance_last_success_timestamp_seconds", {realm: row.last_success for realm, row in rows.items()}),
            ("maintenance_next_due_timestamp_seconds", {realm: row.next_due for realm, row in rows.items()}),
            ("purge_rows_remaining", {realm: row.purge_rows_remaining for realm, row in rows.items()}),
        ):
            yield _gauge(name, {(realm,): value for realm, value in values.items() if value is not None})
        yield _total("maintenance_objects_deleted_total", {(realm,): row.objects_deleted for realm, row in rows.items()})
        yield _total("maintenance_bytes_reclaimed_total", {(realm,): row.bytes_reclaimed for realm, row in rows.items()})

    def _of_imports(self) -> Iterator[Metric]:
        rows = self._imports.rows()
        tables = {(realm, outcome): count for realm, row in rows.items() for outcome, count in row.tables.items()}
        yield _total("import_tables_total", tables)
        yield _gauge("import_quarantined_tables", {(realm,): row.quarantined for realm, row in rows.items()})
        times = {(realm,): row.last_success for realm, row in rows.items() if row.last_success is not None}
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
