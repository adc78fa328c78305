"""Logging of long-lived processes: structlog on standard error, in colour for a person or as JSON for a collector of logs."""

from __future__ import annotations

import logging
import sys

import structlog

from headwater.settings import Settings

__all__ = ["LEVELS", "log_to_stderr"]

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}


def log_to_stderr(settings: Settings, *, package: str, level: int = logging.INFO) -> None:
    """Set up this process. Lines carry what is bound by ``structlog.contextvars``.

    package       the package that runs here: its lines and those of the core are logged from ``level`` on, all others from WARNING on
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
    for ours in ("headwater", package):
        logging.getLogger(ours).setLevel(level)
    logging.captureWarnings(True)


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
