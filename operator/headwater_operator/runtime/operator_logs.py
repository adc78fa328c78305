"""Logging of the operator: that of all long-lived processes, and what kopf and others need besides."""

from __future__ import annotations

import logging

from headwater.logs import log_to_stderr
from headwater.settings import Settings

WATCHES = "kopf"
QUIET = ("urllib3", "aiohttp.access", "asyncio")


def configure_operator_logs(settings: Settings, *, level: int = logging.INFO) -> None:
    """Set up this process. Lines carry kind, namespace and name of the resource; other libraries never tell what they send."""
    log_to_stderr(settings, package="headwater_operator", level=level)
    for other in QUIET:  # at their lowest level they tell headers
        logging.getLogger(other).setLevel(logging.WARNING)
    logging.getLogger(WATCHES).setLevel(logging.WARNING)
    for handler in logging.getLogger().handlers:  # a filter of a logger does not see what the loggers below it say
        handler.addFilter(_is_news)


def hush_watches() -> None:
    """At the end: requests of watches that are cut off are no errors."""
    logging.getLogger(WATCHES).setLevel(logging.CRITICAL)


def _is_news(record: logging.LogRecord) -> bool:
    """The watches run in a thread, and signals are taken care of elsewhere."""
    return not (record.name.startswith(WATCHES) and "signals are ignored" in record.getMessage())
