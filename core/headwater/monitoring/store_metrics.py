"""Metrics of what a store holds, for Prometheus, whichever process reads them: the operator, a worker, or `headwater up`.

Every process that shows them reads them from the store itself, so they are the same in all: an expression takes their maximum, and never
their sum. `STORE_CATALOGUE` has all of them, with what each one means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from headwater.clock import Micros
from headwater.monitoring.metric_tallies import CatalogKey, ImportTallies, RealmTallies
from headwater.monitoring.store_figures import StoreFigures
from headwater.reconcile import CatalogDescription, RealmDescription

METRICS_CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
METRIC_PREFIX = "headwater_"
MetricValues = Mapping[Any, float]
"""MetricValues by labels, in the order of the catalogue."""


@dataclass(frozen=True, slots=True)
class MetricDescription:
    """A metric as `/metrics` shows it; a histogram's samples add ``_bucket``, ``_sum`` and ``_count`` to its name."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str


def describe_metric(name: str, kind: Literal["counter", "gauge", "histogram"], labels: str, text: str) -> MetricDescription:
    return MetricDescription(METRIC_PREFIX + name, kind, tuple(labels.split()), text)


STORE_CATALOGUE = (
    describe_metric("store_up", "gauge", "", "1 when the store answered this process at its last try, else 0."),
    describe_metric(
        "realms",
        "gauge",
        "state",
        "Realms in the store by state, also those that no resource manages.",
    ),
    describe_metric("tasks", "gauge", "kind state", "Active tasks in the store."),
    describe_metric("tasks_due", "gauge", "kind", "Tasks that are due and that no worker does yet."),
    describe_metric(
        "task_oldest_due_seconds",
        "gauge",
        "kind",
        "How long the task has waited that is due longest.",
    ),
    describe_metric(
        "task_dead_letters",
        "gauge",
        "kind",
        "Tasks that were given up, and that nothing has followed.",
    ),
    describe_metric(
        "tasks_unreadable",
        "gauge",
        "kind",
        "Tasks that are listed and cannot be read: run headwater fsck.",
    ),
    describe_metric("task_retries", "gauge", "kind", "Attempts that failed or were lost, of active tasks."),
    describe_metric(
        "task_seconds",
        "gauge",
        "kind",
        "Mean duration of the last tasks that succeeded, one a subject.",
    ),
    describe_metric("task_longest_seconds", "gauge", "kind", "The longest of these durations."),
    describe_metric(
        "maintenance_last_success_timestamp_seconds",
        "gauge",
        "realm",
        "When a collection of the realm last succeeded; the earliest for `_others_`.",
    ),
    describe_metric(
        "maintenance_next_due_timestamp_seconds",
        "gauge",
        "realm",
        "When the next collection is due; the earliest for `_others_`.",
    ),
    describe_metric(
        "maintenance_objects_deleted_total",
        "counter",
        "realm",
        "Rows that collections deleted, counted since this process began to: each collection once, as its end is seen.",
    ),
    describe_metric(
        "maintenance_bytes_reclaimed_total",
        "counter",
        "realm",
        "Bytes that collections deleted, at least; counted like the rows.",
    ),
    describe_metric(
        "purge_rows_remaining",
        "gauge",
        "realm",
        "Rows that a purge has left; summed for `_others_`.",
    ),
    describe_metric(
        "import_tables_total",
        "counter",
        "realm outcome",
        "Tables that imports imported, updated, found unchanged or quarantined, counted since this process began to: each run once, as its "
        "end is seen.",
    ),
    describe_metric(
        "import_quarantined_tables",
        "gauge",
        "realm",
        "Tables that the last run of each import left alone, summed.",
    ),
    describe_metric(
        "import_last_success_timestamp_seconds",
        "gauge",
        "realm",
        "When the import last succeeded that succeeded longest ago.",
    ),
)
_BY_NAME = {entry.name: entry for entry in STORE_CATALOGUE}


class StoreMetrics:
    """The figures of a store, of its realms and of their imports. Thread-safe.

    realms        how many realms have metrics of their own
    """

    def __init__(self, *, realms: int) -> None:
        self._tallies = RealmTallies(realms)
        self._imports = ImportTallies(realms)
        self._figures = StoreFigures(is_up=False)

    def count_from(self, now: Micros) -> None:
        """Count only collections and imports that end later: earlier ones were counted by another process."""
        self._tallies.count_from(now)
        self._imports.count_from(now)

    def set_figures(self, figures: StoreFigures) -> None:
        self._figures = figures

    def set_realm(self, realm: RealmDescription) -> None:
        """Update the metrics of a realm from its description."""
        self._tallies.set_realm(realm)

    def forget_realm(self, realm_id: str) -> None:
        self._tallies.forget_realm(realm_id)

    def set_catalog(self, catalog: CatalogKey, realm_id: str, description: CatalogDescription) -> None:
        """Update the metrics of a catalog from its description."""
        self._imports.set_catalog(catalog, realm_id, description)

    def forget_catalog(self, catalog: CatalogKey) -> None:
        self._imports.forget_catalog(catalog)

    def is_up(self) -> Metric:
        """Whether the store answered at the last try."""
        return _store_gauge("store_up", {(): float(self._figures.is_up)})

    def collect(self) -> Iterator[Metric]:
        """Everything else."""
        yield from self._of_store()
        yield from self._of_realms()
        yield from self._of_imports()

    def _of_store(self) -> Iterator[Metric]:
        figures = self._figures
        if figures.realms is not None:
            yield _store_gauge("realms", _labelled(figures.realms))
        if (tasks := figures.tasks) is not None:
            yield _store_gauge("tasks", {(kind, state.value): count for (kind, state), count in tasks.active.items()})
            yield _store_gauge("tasks_due", _labelled(tasks.due))
            yield _store_gauge("task_oldest_due_seconds", _labelled(tasks.oldest_due_seconds))
            yield _store_gauge("task_dead_letters", _labelled(tasks.dead_letters))
            yield _store_gauge("tasks_unreadable", _labelled(tasks.unreadable))
            yield _store_gauge("task_retries", _labelled(tasks.retries))
            yield _store_gauge("task_seconds", _labelled(tasks.seconds))
            yield _store_gauge("task_longest_seconds", _labelled(tasks.longest_seconds))

    def _of_realms(self) -> Iterator[Metric]:
        tallies = self._tallies.by_label()
        for name, values in (
            ("maintenance_last_success_timestamp_seconds", {realm: tally.last_success for realm, tally in tallies.items()}),
            ("maintenance_next_due_timestamp_seconds", {realm: tally.next_due for realm, tally in tallies.items()}),
            ("purge_rows_remaining", {realm: tally.purge_rows_remaining for realm, tally in tallies.items()}),
        ):
            yield _store_gauge(name, {(realm,): value for realm, value in values.items() if value is not None})
        yield _store_total(
            "maintenance_objects_deleted_total", {(realm,): tally.objects_deleted for realm, tally in tallies.items()}
        )
        yield _store_total(
            "maintenance_bytes_reclaimed_total", {(realm,): tally.bytes_reclaimed for realm, tally in tallies.items()}
        )

    def _of_imports(self) -> Iterator[Metric]:
        tallies = self._imports.by_label()
        tables = {(realm, outcome): count for realm, tally in tallies.items() for outcome, count in tally.tables.items()}
        yield _store_total("import_tables_total", tables)
        yield _store_gauge("import_quarantined_tables", {(realm,): tally.quarantined for realm, tally in tallies.items()})
        times = {(realm,): tally.last_success for realm, tally in tallies.items() if tally.last_success is not None}
        yield _store_gauge("import_last_success_timestamp_seconds", times)


class ScrapedMetrics(Collector):
    """A collector of the figures that are read when somebody scrapes."""

    def __init__(self, collected: Callable[[], Iterator[Metric]]) -> None:
        self._collected = collected

    def collect(self) -> Iterator[Metric]:
        return self._collected()

    def describe(self) -> Iterator[Metric]:
        return iter(())  # skip reading before there is something to read


def gauge(entry: MetricDescription, values: MetricValues) -> Metric:
    family = GaugeMetricFamily(entry.name, entry.help, labels=entry.labels)
    return _filled(family, values)


def _total(entry: MetricDescription, values: MetricValues) -> Metric:
    family = CounterMetricFamily(entry.name, entry.help, labels=entry.labels)
    return _filled(family, values)


def _filled(family: Any, values: MetricValues) -> Metric:
    for labels, value in sorted(values.items()):
        family.add_metric(labels, value)
    filled: Metric = family
    return filled


def _labelled(values: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    return {(label,): value for label, value in values.items()}


def _store_gauge(name: str, values: MetricValues) -> Metric:
    return gauge(_BY_NAME[METRIC_PREFIX + name], values)


def _store_total(name: str, values: MetricValues) -> Metric:
    return _total(_BY_NAME[METRIC_PREFIX + name], values)
