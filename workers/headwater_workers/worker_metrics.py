"""The metrics of a worker and of `headwater up`, for Prometheus: those of the store, and a few of the process.

A worker is several processes. What they do is counted in the store, where the main process reads it: so nothing has to be gathered from
children, and nothing is lost when one is replaced.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest

from headwater.catalogs import Catalogs
from headwater.errors import HeadwaterError
from headwater.monitoring import METRICS_CONTENT_TYPE as CONTENT_TYPE
from headwater.monitoring import (
    STORE_CATALOGUE,
    FiguresReader,
    Health,
    ProbeServer,
    ScrapedMetrics,
    StoreFigures,
    StoreMetrics,
    describe_metric,
    gauge,
    parse_probe_address,
)
from headwater.realms import Realm, RealmRegistry
from headwater.reconcile import READABLE, UncountedContents, describe_catalog, describe_realm
from headwater.settings import Settings, variable_of
from headwater.store import Store

log = structlog.get_logger(__name__)

CONCURRENCY: Final = describe_metric(
    "worker_concurrency", "gauge", "", "Tasks that this worker does at the same time, at most."
)
STOPPING: Final = describe_metric("worker_stopping", "gauge", "", "1 from SIGTERM on, else 0.")
MANIFEST_FAULTS: Final = describe_metric(
    "worker_manifest_faults",
    "gauge",
    "",
    "1 while `headwater up` keeps an earlier state of its manifests, because their files have faults, else 0.",
)
WORKER_CATALOGUE: Final = (CONCURRENCY, STOPPING, MANIFEST_FAULTS, *STORE_CATALOGUE)
_disable_created_metrics: Any = disable_created_metrics  # the library has types only in parts


class WorkerMetrics:
    """One registry with all metrics of a worker or of `headwater up`; thread-safe.

    is_stopping   asked at each scrape, as is ``has_faulty_manifests``
    """

    def __init__(
        self,
        store: Store,
        *,
        concurrency: int,
        is_stopping: Callable[[], bool],
        realms: int,
        has_faulty_manifests: Callable[[], bool] = lambda: False,
    ) -> None:
        _disable_created_metrics()  # twice the series for no use
        self._store = store
        self._concurrency = concurrency
        self._is_stopping = is_stopping
        self._has_faulty_manifests = has_faulty_manifests
        self._figures = StoreMetrics(realms=realms)
        self._figures.count_from(store.clock.now())
        self._counts = UncountedContents()
        self._catalogs: dict[str, set[tuple[str, str]]] = {}
        """The catalogs with imports that were described last, by realm."""
        self.has_met_store = False
        self._is_up = False
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(ScrapedMetrics(self._scraped))

    def render(self) -> bytes:
        """All metrics as text."""
        return generate_latest(self._registry)

    def take_figures(self, figures: StoreFigures) -> None:
        """Take a reading of the store, and describe its realms: called by the reader, in its thread."""
        self._figures.set_figures(figures)
        self._is_up = figures.is_up
        if not figures.is_up:
            return
        self.has_met_store = True
        try:
            self._describe_realms()
        except HeadwaterError as fault:  # the next reading tries again
            log.warning("the realms cannot be read for the metrics", error=str(fault))

    @property
    def store_fault(self) -> str:
        """What is wrong with the store, or nothing."""
        if self._is_up:
            return ""
        return "it does not answer" if self.has_met_store else "it has not answered yet"

    def _scraped(self) -> Iterator[Metric]:
        yield gauge(CONCURRENCY, {(): float(self._concurrency)})
        yield gauge(STOPPING, {(): float(self._is_stopping())})
        yield gauge(MANIFEST_FAULTS, {(): float(self._has_faulty_manifests())})
        yield self._figures.is_up()
        yield from self._figures.collect()

    def _describe_realms(self) -> None:
        realms = {realm.id: realm for realm in RealmRegistry(self._store).list_realms()}
        for gone in self._catalogs.keys() - realms.keys():
            self._forget_catalogs(gone, set())
            self._figures.forget_realm(gone)
            del self._catalogs[gone]
        for realm in realms.values():
            description = describe_realm(self._store, realm.id, counts=self._counts)
            if description is not None:
                self._figures.set_realm(description)
            now = self._describe_imports(realm) if realm.state in READABLE else set()
            self._forget_catalogs(realm.id, now)
            self._catalogs[realm.id] = now

    def _describe_imports(self, realm: Realm) -> set[tuple[str, str]]:
        described: set[tuple[str, str]] = set()
        for definition in Catalogs(RealmRegistry(self._store).open_realm(realm.id)).list_catalogs():
            if not definition.imports:
                continue
            description = describe_catalog(self._store, realm.id, definition.name, counts=self._counts)
            if description is not None:
                described.add((realm.id, definition.name))
                self._figures.set_catalog((realm.id, definition.name), realm.id, description)
        return described

    def _forget_catalogs(self, realm_id: str, kept: set[tuple[str, str]]) -> None:
        for catalog in self._catalogs.get(realm_id, set()) - kept:
            self._figures.forget_catalog(catalog)


class WorkerProbes:
    """Health and metrics of a process, at the address that HEADWATER_WORKER_PROBES names; nothing without one. A context manager.

    health        asked for what is wrong, by what it is about; readiness adds the store to it
    raises        RefusedError for an address that is none; UnavailableError for one that cannot be listened on
    """

    def __init__(self, settings: Settings, metrics: WorkerMetrics, store: Store, health: Health) -> None:
        self._server: ProbeServer | None = None
        # A pool's child must not be forked while the store is read: it would inherit locks that nobody ever releases.
        reading = threading.Lock()
        self._reader = FiguresReader(
            store, store.clock, settings.worker_figures_seconds, lambda: True, metrics.take_figures, guard=reading
        )
        if settings.worker_probes:
            host, port = parse_probe_address(variable_of("worker_probes"), settings.worker_probes)
            ready = health.ready
            health = Health(health.alive, lambda: {**ready(), "store": metrics.store_fault})
            os.register_at_fork(before=reading.acquire, after_in_parent=reading.release, after_in_child=reading.release)
            self._server = ProbeServer(host, port, health=health, render=metrics.render, content_type=CONTENT_TYPE)

    def __enter__(self) -> WorkerProbes:
        if self._server is not None:
            self._server.start()
            self._reader.start()
            log.info("health and metrics are served", port=self._server.port)
        return self

    @property
    def port(self) -> int | None:
        """Where they are served; None where they are not."""
        return self._server.port if self._server is not None else None

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._reader.stop()
            self._server.stop()
