"""What the server says of itself: paths beside the tables of routes, which need no thread and answer while all of them are busy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headwater_server.server_metrics import METRICS_CONTENT_TYPE

HEALTH_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ServerProbe:
    """A path that is asked by GET, and its answers.

    name          its operationId
    """

    path: str
    name: str
    summary: str
    media_type: str
    statuses: tuple[int, ...] = (200,)


SERVER_PROBES: Final = (
    ServerProbe("/healthz", "getHealth", "Say whether the process is alive.", HEALTH_TEXT, (200, 503)),
    ServerProbe("/readyz", "getReadiness", "Say whether the process can do its part.", HEALTH_TEXT, (200, 503)),
    ServerProbe("/metrics", "getMetrics", "Count what was done, for Prometheus.", METRICS_CONTENT_TYPE),
    ServerProbe("/openapi.json", "getOpenApi", "Describe what is served: this document.", "application/json"),
)
