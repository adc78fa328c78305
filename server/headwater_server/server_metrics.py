"""The server's metrics, for Prometheus. `SERVER_CATALOGUE` has all of them, with what each one means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from headwater.commits import PUBLISHED
from headwater_server.access_log import RequestRecord

METRICS_CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
NO_ROUTE: Final = "none"
_PREFIX: Final = "headwater_server_"
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_disable_created_metrics: Any = disable_created_metrics  # the library has types only in parts


@dataclass(frozen=True, slots=True)
class ServerMetric:
    """A metric as `/metrics` shows it; a histogram's samples add ``_bucket``, ``_sum`` and ``_count`` to its name."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str


def _metric(name: str, kind: Literal["counter", "gauge", "histogram"], labels: str, text: str) -> ServerMetric:
    return ServerMetric(_PREFIX + name, kind, tuple(labels.split()), text)


_REQUESTS = _metric("requests_total", "counter", "route code", "Requests that were answered; route `none`: no route was found.")
_REQUEST_SECONDS = _metric("request_seconds", "histogram", "route", "How long requests took, from their head to their answer.")
_COMMITS = _metric(
    "commits_total",
    "counter",
    "outcome",
    "Requests for a change: done, conflict (lost a race), refused, unavailable (did not happen), unknown (may have happened).",
)
_GROUPS = _metric("commit_groups_total", "counter", "", "Swaps by which this process published commits.")
_GROUPED = _metric(
    "grouped_commits_total",
    "counter",
    "",
    "Commits that they published; more than swaps where many change one branch at a time.",
)
_BYTES = _metric("bytes_total", "counter", "direction", "Bytes of bodies, received and sent.")
_RUNNING = _metric("requests_running", "gauge", "", "Requests that a thread works on.")
_WAITING = _metric("requests_waiting", "gauge", "", "Requests that wait for a thread.")
_OLDEST = _metric("request_oldest_seconds", "gauge", "", "How long the request has been here that has been here longest.")
_CONNECTIONS = _metric("connections", "gauge", "", "Open connections, idle ones among them.")
_BODIES = _metric("body_bytes", "gauge", "", "Bytes of bodies in memory.")
_DRAINING = _metric("draining", "gauge", "", "1 from SIGTERM on, else 0.")
SERVER_CATALOGUE: Final = (
    _REQUESTS,
    _REQUEST_SECONDS,
    _COMMITS,
    _GROUPS,
    _GROUPED,
    _BYTES,
    _RUNNING,
    _WAITING,
    _OLDEST,
    _CONNECTIONS,
    _BODIES,
    _DRAINING,
)
_OUTCOMES: Final[Mapping[int, str]] = {409: "conflict", 500: "unknown", 429: "unavailable", 503: "unavailable"}
_ALL_OUTCOMES: Final = ("done", "conflict", "refused", "unavailable", "unknown")


def _zero() -> float:
    return 0.0


@dataclass(slots=True)
class ServerGauges:
    """The functions that a scrape calls. Each may be replaced while the process starts."""

    running: Callable[[], float] = _zero
    waiting: Callable[[], float] = _zero
    oldest_seconds: Callable[[], float] = _zero
    connections: Callable[[], float] = _zero
    body_bytes: Callable[[], float] = _zero
    draining: Callable[[], float] = _zero

    def read_gauge(self, name: str) -> float:
        return float(getattr(self, name)())


_GAUGES: Final[Mapping[str, ServerMetric]] = {
    "running": _RUNNING,
    "waiting": _WAITING,
    "oldest_seconds": _OLDEST,
    "connections": _CONNECTIONS,
    "body_bytes": _BODIES,
    "draining": _DRAINING,
}


@dataclass
class ServerMetrics:
    """One registry with all metrics of a server; thread-safe."""

    gauges: ServerGauges = field(default_factory=ServerGauges)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        _disable_created_metrics()  # twice the series for no use
        ProcessCollector(registry=self.registry)
        self._requests = Counter(_REQUESTS.name, _REQUESTS.help, _REQUESTS.labels, registry=self.registry)
        self._commits = Counter(_COMMITS.name, _COMMITS.help, _COMMITS.labels, registry=self.registry)
        self._bytes = Counter(_BYTES.name, _BYTES.help, _BYTES.labels, registry=self.registry)
        self._seconds = Histogram(
            _REQUEST_SECONDS.name, _REQUEST_SECONDS.help, _REQUEST_SECONDS.labels, registry=self.registry, buckets=_SECONDS
        )
        self._groups = Counter(_GROUPS.name, _GROUPS.help, _GROUPS.labels, registry=self.registry)
        self._grouped = Counter(_GROUPED.name, _GROUPED.help, _GROUPED.labels, registry=self.registry)
        # From the start: Prometheus sees no increase in a series that begins with 1, and one unknown outcome is one to alert about.
        for outcome in _ALL_OUTCOMES:
            self._commits.labels(outcome)
        for direction in ("received", "sent"):
            self._bytes.labels(direction)
        self._told_groups = self._told_commits = 0
        for name, metric in _GAUGES.items():
            gauge = Gauge(metric.name, metric.help, metric.labels, registry=self.registry)
            gauge.set_function(partial(self.gauges.read_gauge, name))

    def count_request(self, record: RequestRecord) -> None:
        route = record.route or NO_ROUTE
        self._requests.labels(route, str(record.status)).inc()
        self._seconds.labels(route).observe(record.seconds)
        self._bytes.labels("received").inc(record.received_bytes)
        self._bytes.labels("sent").inc(record.sent_bytes)
        if record.is_change:
            self._commits.labels(_outcome_of(record.status)).inc()

    def render(self) -> bytes:
        """All metrics as text. Called by the event loop alone."""
        groups, commits = PUBLISHED.groups, PUBLISHED.commits
        self._groups.inc(groups - self._told_groups)
        self._grouped.inc(commits - self._told_commits)
        self._told_groups, self._told_commits = groups, commits
        return generate_latest(self.registry)


def _outcome_of(status: int) -> str:
    """How a change ended. A client that was gone before it was answered (0) does not know."""
    if 200 <= status < 400:
        return "done"
    return _OUTCOMES.get(status, "refused" if status >= 400 else "unknown")
