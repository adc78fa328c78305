"""Logging of the operator: the setup of all long-lived processes, with adjustments for kopf and other libraries."""

from __future__ import annotations

import logging

from headwater.logs import log_to_stderr
from headwater.settings import Settings

WATCHES = "kopf"
QUIET = ("urllib3", "aiohttp.access", "asyncio")


def configure_operator_logs(settings: Settings, *, level: int = logging.INFO) -> None:
    """Set up logging. Lines carry kind, namespace and name of the resource; other libraries never log what they send."""
    log_to_stderr(settings, package="headwater_operator", level=level)
    for other in QUIET:  # at their lowest level they log headers
        logging.getLogger(other).setLevel(logging.WARNING)
    logging.getLogger(WATCHES).setLevel(logging.WARNING)
    for handler in logging.getLogger().handlers:  # a filter of a logger does not apply to the loggers below it
        handler.addFilter(_is_news)


def hush_watches() -> None:
    """Silence the watches at the end: requests that are cut off are no errors."""
    logging.getLogger(WATCHES).setLevel(logging.CRITICAL)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record is worth logging: the watches run in a thread, and signals are handled elsewhere."""
    return not (record.name.startswith(WATCHES) and "signals are ignored" in record.getMessage())
