"""Logging of the operator: structlog on standard error, in colour for a person or as JSON for a collector of logs."""

from __future__ import annotations

import logging
import sys

import structlog

from headwater.settings import Settings

__all__ = ["LEVELS", "configure_logs", "hush_watches"]

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
OURS = ("headwater", "headwater_operator")
WATCHES = "kopf"
QUIET = ("urllib3", "aiohttp.access", "asyncio")


def configure_logs(settings: Settings, *, level: int = logging.INFO) -> None:
    """Set up this process. Lines carry what is bound by ``structlog.contextvars``: kind, namespace, name.

    level         of our own lines; other libraries speak from WARNING on, and never of what they send
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(settings, shared))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for ours in OURS:
        logging.getLogger(ours).setLevel(level)
    for other in QUIET:  # at their lowest level they tell headers
        logging.getLogger(other).setLevel(logging.WARNING)
    logging.getLogger(WATCHES).setLevel(logging.WARNING)
    logging.getLogger(f"{WATCHES}._core.reactor.running").addFilter(_is_news)
    logging.captureWarnings(True)


def hush_watches() -> None:
    """At the end: requests of watches that are cut off are no errors."""
    logging.getLogger(WATCHES).setLevel(logging.CRITICAL)


def _is_news(record: logging.LogRecord) -> bool:
    """The watches run in a thread, and signals are taken care of elsewhere."""
    return "signals are ignored" not in record.getMessage()


def _formatter(settings: Settings, shared: list[structlog.typing.Processor]) -> logging.Formatter:
    last: list[structlog.typing.Processor]
    if settings.log_format == "json":
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        # a traceback that shows the values of variables would show secrets; it is the default where `rich` is installed
        plain = structlog.dev.plain_traceback
        last = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
    )
