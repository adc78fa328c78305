"""What a long-lived process tells of itself and of its store: health for probes, metrics for Prometheus.

This package knows neither Kubernetes nor Celery, and changes nothing. It needs the library `prometheus_client`.
"""

from headwater.monitoring.metric_tallies import OTHERS
from headwater.monitoring.probe_server import Health, ProbeServer, parse_probe_address
from headwater.monitoring.store_figures import FiguresReader, StoreFigures
from headwater.monitoring.store_metrics import (
    METRIC_PREFIX,
    METRICS_CONTENT_TYPE,
    STORE_CATALOGUE,
    MetricDescription,
    MetricValues,
    ScrapedMetrics,
    StoreMetrics,
    describe_metric,
    gauge,
)

__all__ = [
    "METRICS_CONTENT_TYPE",
    "METRIC_PREFIX",
    "OTHERS",
    "STORE_CATALOGUE",
    "FiguresReader",
    "Health",
    "MetricDescription",
    "MetricValues",
    "ProbeServer",
    "ScrapedMetrics",
    "StoreFigures",
    "StoreMetrics",
    "describe_metric",
    "gauge",
    "parse_probe_address",
]
