"""The operator's process: waits for leadership, then watches and reconciles until it is stopped or loses leadership."""

from __future__ import annotations

import os
import secrets
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NoReturn

import structlog

from headwater.clock import Clock, SystemClock
from headwater.errors import HeadwaterError
from headwater.monitoring import METRICS_CONTENT_TYPE, FiguresReader, Health, ProbeServer, StoreFigures
from headwater.settings import Settings
from headwater.store import Store, open_store
from headwater_operator.kube import KubeApi, KubeConnection, KubeTimeouts, connect_cluster
from headwater_operator.metrics.operator_metrics import OperatorMetrics
from headwater_operator.resource.reconciler import Reconciler
from headwater_operator.runtime.health import KINDS, LookTimes, ProcessHealth
from headwater_operator.runtime.informer_cache import ResourceCache, ResourceKey
from headwater_operator.runtime.leader_election import Leadership, LeadHolder, LeaseTiming, UncontestedLead
from headwater_operator.runtime.operator_logs import hush_watches
from headwater_operator.runtime.operator_settings import OperatorSettings
from headwater_operator.runtime.rate_limit import TokenBucket
from headwater_operator.runtime.served_schema import SchemaOlderError, ServedSchemas
from headwater_operator.runtime.watch import ResourceWatch, WatchScope
from headwater_operator.runtime.workqueue import WorkerThreads, WorkQueue

log = structlog.get_logger(__name__)

LOST_LEAD = 6
"""The exit code of a process that has lost the Lease: another one acts now."""
LEASE_TIMEOUTS = KubeTimeouts(connect_seconds=2.0, read_seconds=3.0)
TICK_SECONDS = 0.25
LAST_SECONDS = 2.0


def serve_operator(settings: Settings, operator_settings: OperatorSettings, stop: threading.Event) -> int:
    """Run until ``stop`` is set, which may have happened before.

    returns       the exit code
    raises        RefusedError when there is no cluster or no store of that kind; NotFoundError when the custom resources are not served;
                  UnavailableError when a watch ended for good
    """
    if stop.is_set():
        log.info("operator stopped before it began", pid=os.getpid())
        return 0
    clock = SystemClock()
    with ExitStack() as closing:
        store = closing.enter_context(open_store(settings.store, settings=settings, clock=clock))
        connection = connect_cluster()
        closing.callback(connection.close)
        return _Process(settings, operator_settings, store, connection, clock, stop).run()


@dataclass
class _Process:
    """All parts of the process, created at the start so that a standby can begin at once."""

    settings: Settings
    operator: OperatorSettings
    store: Store
    connection: KubeConnection
    clock: Clock
    stop: threading.Event
    watch_fault: BaseException | None = None
    watch_ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        operator = self.operator
        self.metrics = OperatorMetrics(realms=operator.metrics_realms)
        self.lead = self._lead()
        self.bucket = TokenBucket(operator.writes_per_second, operator.write_burst)
        self.api = KubeApi(
            self.connection,
            bucket=self.bucket,
            fence=self.lead.fence,
            observe=self.metrics.api_request,
            timeouts=KubeTimeouts(operator.connect_timeout_seconds, operator.request_timeout_seconds),
        )
        self.schemas = ServedSchemas(self.api, self.clock)
        self.cache = ResourceCache()
        self.queue = WorkQueue[ResourceKey](self.clock)
        self.vitals = ProcessHealth(self.lead, operator, self.clock, schema_faults=self.schemas.faults)
        self.reader = FiguresReader(
            self.store, self.clock, operator.figures_seconds, lambda: self.lead.is_held, self._take_figures
        )
        self.probes = ProbeServer(
            operator.address,
            operator.port,
            health=Health(self.vitals.alive, self.vitals.ready),
            render=self.metrics.render,
            content_type=METRICS_CONTENT_TYPE,
        )
        self.metrics.sources.is_leading = lambda: self.lead.is_held
        self.metrics.sources.schema_faults = self.schemas.faults

    def run(self) -> int:
        self.probes.start()
        self.reader.start()
        log.info(
            "operator started",
            identity=self.operator.identity,
            namespaces=list(self.operator.namespaces) or "all",
            store=self.store.url,
            port=self.probes.port,
            pid=os.getpid(),
        )
        if self.settings.unsafe_short_graces:
            log.warning("UNSAFE: graces and holds are lowered: for tests and demonstrations, never where others write")
        try:
            if self.lead.acquire(self.stop):
                self._act()
        finally:
            self.reader.stop()
            self.probes.stop()
            self.bucket.close()
        if self.watch_fault is not None:
            raise self.watch_fault
        log.info("operator stopped", pid=os.getpid())
        return 0

    def _act(self) -> None:
        """Watch and reconcile; at the end release the lead, once it is certain that nothing acts any more."""
        operator = self.operator
        self.metrics.lead_from(self.clock.now())
        self.reader.wake()
        watch = ResourceWatch(
            self.cache,
            self.queue,
            self.api,
            clock=self.clock,
            scope=WatchScope(tuple(operator.namespaces), operator.label_selector),
            identity=operator.identity,
            on_listed=self._check_schema,
        )
        reconciler = Reconciler(
            self.store,
            self.api,
            self.cache,
            self.queue,
            self.settings,
            operator,
            self.metrics,
            self.lead.fence,
            schemas=self.schemas,
        )
        looks = LookTimes(reconciler.reconcile, self.clock)
        workers = WorkerThreads(self.queue, looks, count=operator.concurrency, on_fenced=_end_without_lead)
        sources = self.metrics.sources
        sources.queue_depth, sources.queue_oldest_seconds = lambda: self.queue.depth, lambda: self.queue.oldest_seconds
        sources.watch_ages, sources.standings = watch.ages, self.cache.standings
        self.vitals.begin_leading(watch, looks)
        threading.Thread(target=self._watch, args=(watch,), name="watch", daemon=True).start()
        self._mind(watch, workers)
        self._end(watch, workers)

    def _mind(self, watch: ResourceWatch, workers: WorkerThreads) -> None:
        """Wait for the end; start the workers once every existing resource was seen."""
        have_begun = False
        while not self.stop.wait(TICK_SECONDS if have_begun else TICK_SECONDS / 10) and not self.watch_ended.is_set():
            self.lead.check_lead()
            if watch.is_listed and not have_begun:
                workers.start()
                have_begun = True
                log.info("everything was listed", **self.cache.counts())

    def _end(self, watch: ResourceWatch, workers: WorkerThreads) -> None:
        self.vitals.is_stopping = True
        log.info("operator stopping", in_work=self.queue.in_work)
        hush_watches()
        watch.stop()
        is_quiet = workers.stop(seconds=self.operator.shutdown_seconds)
        self.bucket.close()  # whatever still runs ends at its next write
        if is_quiet or workers.stop(seconds=LAST_SECONDS):
            self.lead.release_lead()
        else:
            log.warning("a reconcile does not end: the Lease is not given back, and runs out by itself")

    def _watch(self, watch: ResourceWatch) -> None:
        try:
            watch.run()
        except Exception as fault:
            self.watch_fault = fault
            if not isinstance(fault, HeadwaterError):
                log.exception("the watches ended in a bug")
        finally:
            self.watch_ended.set()

    def _check_schema(self, kind: str) -> None:
        """Look whether the API server keeps all fields of a kind; what is wrong shows in /readyz and in the metrics."""
        try:
            self.schemas.check(kind)
        except SchemaOlderError as older:
            log.error("the API server serves an older schema: nothing is done", error=str(older))
        except HeadwaterError as fault:
            log.warning("the API server does not say which schema it serves", kind=kind, error=str(fault))

    def _take_figures(self, figures: StoreFigures) -> None:
        if not self.lead.is_held:  # a leader looks at each list; a standby must be able to take over
            for kind in KINDS:
                self._check_schema(kind)
        self.vitals.has_met_store = self.vitals.has_met_store or figures.is_up
        self.metrics.set_store_figures(figures)

    def _lead(self) -> LeadHolder:
        operator = self.operator
        if not operator.leader_election:
            return UncontestedLead()
        return Leadership(
            KubeApi(self.connection, observe=self.metrics.api_request, timeouts=LEASE_TIMEOUTS),
            namespace=operator.namespace,
            name=operator.lease_name,
            identity=f"{operator.identity}_{secrets.token_hex(4)}",
            timing=LeaseTiming(
                duration=operator.lease_duration_seconds,
                renew_deadline=operator.lease_renew_deadline_seconds,
                renew=operator.lease_renew_seconds,
                retry=operator.lease_retry_seconds,
            ),
            on_lost=_end_without_lead,
        )


def _end_without_lead(why: str) -> NoReturn:
    """Exit at once, from whichever thread noticed the loss: nothing is written any more, and nothing is tidied up."""
    log.error("this process does not lead any more, and ends at once", why=why)
    sys.stderr.flush()
    os._exit(LOST_LEAD)
