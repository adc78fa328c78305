"""Logging of long-lived processes: structlog on standard error, in colour for a person or as JSON for a collector of logs."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import threading
import traceback
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO

import structlog

from headwater.redaction import printable
from headwater.settings import Settings, variable_of

__all__ = ["LEVELS", "is_log_json", "log_to_stderr"]

log = structlog.get_logger(__name__)

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}


def is_log_json() -> bool:
    """Whether standard error is a log in JSON. Reads the environment itself, because wrong settings are logged, too."""
    return os.environ.get(variable_of("log_format")) == "json"


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
    handler = _LineHandler(sys.stderr) if settings.log_format == "json" else logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(settings, shared))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for ours in ("headwater", package):
        logging.getLogger(ours).setLevel(level)
    logging.captureWarnings(True)
    if settings.log_format == "json":
        _log_what_nobody_caught()


class _LineHandler(logging.StreamHandler[TextIO]):
    """Tells a record that cannot be formatted in one line, where `logging` would print a traceback on many."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class names it so
        event = f"a line of {record.name} could not be logged"
        line = {"event": event, "level": "error", "exception": traceback.format_exc()}
        with suppress(Exception):  # where the stream is gone nothing can be told
            self.stream.write(json.dumps(line) + self.terminator)


def _log_what_nobody_caught() -> None:
    """Log errors that Python would print itself, on many lines that a collector takes for many entries."""

    def log_error(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None, event: str) -> None:
        log.error(event, exc_info=(kind, error, trace))

    def log_unraisable(unraisable: Any) -> None:
        event = f"{unraisable.err_msg or 'an error was ignored'}: {unraisable.object!r}"
        log_error(unraisable.exc_type, unraisable.exc_value, unraisable.exc_traceback, event)

    def log_thread(args: threading.ExceptHookArgs) -> None:
        if not issubclass(args.exc_type, SystemExit):
            name = args.thread.name if args.thread is not None else "unknown"
            log_error(args.exc_type, args.exc_value, args.exc_traceback, f"the thread {name} ended by an error")

    sys.excepthook = lambda kind, error, trace: log_error(kind, error, trace, f"{kind.__name__}: {error}")
    sys.unraisablehook = log_unraisable
    threading.excepthook = log_thread


def _escape_texts(_logger: Any, _method: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Escape what a terminal would obey: many values are what a client sent, such as its User-Agent.

    JSON escapes it by itself, and so does the representation of other values.
    """
    return {name: _printable_lines(value) if isinstance(value, str) else value for name, value in line.items()}


def _printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def _write_traceback(output: TextIO, trace: Any) -> None:
    """Write a traceback line by line, without the values of variables, which would show secrets: the default where `rich` is installed."""
    text = io.StringIO()
    structlog.dev.plain_traceback(text, trace)
    output.write(_printable_lines(text.getvalue()))


def _formatter(settings: Settings, shared: list[structlog.typing.Processor]) -> logging.Formatter:
    last: list[structlog.typing.Processor]
    if settings.log_format == "json":
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        last = [_escape_texts, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=_write_traceback)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
    )
