"""The operator's metrics, for Prometheus. `CATALOGUE` has all of them, with what each one means.

Only the leader reports what all replicas would report alike: the figures of the store, of realms and of resources. Of realms and
their imports a bounded number has labels of its own; the others are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest

from headwater.clock import Micros
from headwater.monitoring import (
    METRIC_PREFIX,
    STORE_CATALOGUE,
    MetricValues,
    ScrapedMetrics,
    StoreFigures,
    StoreMetrics,
    describe_metric,
    gauge,
)
from headwater.reconcile import CatalogDescription, RealmDescription
from headwater_operator.runtime.informer_cache import ResourceKey

_disable_created_metrics: Any = disable_created_metrics  # the library has types only in parts
NO_ANSWER = "none"
CATALOGUE = (
    describe_metric("operator_leader", "gauge", "", "1 while this process holds the Lease and acts, else 0."),
    describe_metric("operator_reconcile_total", "counter", "kind outcome", "Looks at resources that ended, by how they ended."),
    describe_metric(
        "operator_reconcile_seconds", "histogram", "kind", "How long a look at a resource took, with all that it did."
    ),
    describe_metric("operator_queue_depth", "gauge", "", "Resources that are to be looked at now and wait for a thread."),
    describe_metric("operator_queue_oldest_seconds", "gauge", "", "How long the one among them has waited that waits longest."),
    describe_metric("operator_retries_total", "counter", "kind", "Looks that failed and were put off."),
    describe_metric(
        "operator_drift_total", "counter", "kind action", "Drift that was seen, and whether it was corrected or reported."
    ),
    describe_metric(
        "operator_api_requests_total", "counter", "verb code", "Requests to the Kubernetes API; code `none`: no answer came."
    ),
    describe_metric("operator_api_request_seconds", "histogram", "verb", "How long the Kubernetes API took to answer."),
    describe_metric(
        "operator_watch_age_seconds", "gauge", "kind", "Since when the watch of a kind gave no sign of life. Leader only."
    ),
    describe_metric(
        "operator_resources", "gauge", "kind condition status", "Resources by the status of each condition. Leader only."
    ),
    describe_metric(
        "operator_schema_older",
        "gauge",
        "kind",
        "1 while the API server drops fields of a kind that this operator knows, else 0.",
    ),
    describe_metric("operator_events_total", "counter", "reason", "Kubernetes Events that were posted."),
    *STORE_CATALOGUE,
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
    schema_faults: Callable[[], Mapping[str, str]] = field(default=dict)


class OperatorMetrics:
    """One registry with all metrics; thread-safe.

    realms        how many realms have metrics of their own
    """

    def __init__(self, *, realms: int = 200) -> None:
        _disable_created_metrics()  # twice the series for no use
        self.registry = CollectorRegistry()
        self.sources = MetricSources()
        self._store = StoreMetrics(realms=realms)
        ProcessCollector(registry=self.registry)
        self._reconciles = self._counter("operator_reconcile_total")
        self._reconcile_seconds = self._histogram("operator_reconcile_seconds")
        self._retries = self._counter("operator_retries_total")
        self._drifts = self._counter("operator_drift_total")
        self._requests = self._counter("operator_api_requests_total")
        self._request_seconds = self._histogram("operator_api_request_seconds")
        self._events = self._counter("operator_events_total")
        self.registry.register(ScrapedMetrics(self._scraped))

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
        self._store.count_from(now)

    def set_realm(self, realm: RealmDescription) -> None:
        """Update the metrics of a realm from its description."""
        self._store.set_realm(realm)

    def forget_realm(self, realm_id: str) -> None:
        self._store.forget_realm(realm_id)

    def set_catalog(self, catalog: ResourceKey, realm_id: str, description: CatalogDescription) -> None:
        """Update the metrics of a catalog from its description."""
        self._store.set_catalog(catalog, realm_id, description)

    def forget_catalog(self, catalog: ResourceKey) -> None:
        self._store.forget_catalog(catalog)

    def set_store_figures(self, figures: StoreFigures) -> None:
        self._store.set_figures(figures)

    def render(self) -> bytes:
        """All metrics as text."""
        return generate_latest(self.registry)

    def _scraped(self) -> Iterator[Metric]:
        sources = self.sources
        is_leading = sources.is_leading()
        yield _gauge("operator_leader", {(): float(is_leading)})
        yield self._store.is_up()
        yield _gauge("operator_queue_depth", {(): sources.queue_depth()})
        yield _gauge("operator_queue_oldest_seconds", {(): sources.queue_oldest_seconds()})
        faults = sources.schema_faults()
        yield _gauge("operator_schema_older", {(kind,): float(bool(fault)) for kind, fault in faults.items()})
        if not is_leading:
            return
        yield _gauge("operator_watch_age_seconds", {(kind,): age for kind, age in sources.watch_ages().items()})
        yield _gauge("operator_resources", sources.standings())
        yield from self._store.collect()

    def _counter(self, name: str) -> Counter:
        entry = _BY_NAME[METRIC_PREFIX + name]
        return Counter(entry.name, entry.help, entry.labels, registry=self.registry)

    def _histogram(self, name: str) -> Histogram:
        entry = _BY_NAME[METRIC_PREFIX + name]
        return Histogram(entry.name, entry.help, entry.labels, registry=self.registry, buckets=_SECONDS)


def _gauge(name: str, values: MetricValues) -> Metric:
    return gauge(_BY_NAME[METRIC_PREFIX + name], values)
