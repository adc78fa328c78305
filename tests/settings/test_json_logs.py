"""With logs in JSON, everything that a process says by itself is a line of JSON: warnings, tracebacks, lines of libraries."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from headwater.logs import log_to_stderr
from headwater.settings import Settings

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    """Sets up logs in JSON; returns what was logged. All that is changed is as before at the end."""
    for owner, hook in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
        monkeypatch.setattr(owner, hook, getattr(owner, hook))
    output = io.StringIO()
    monkeypatch.setattr(sys, "stderr", output)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    log_to_stderr(Settings(log_format="json"), package="headwater_workers")
    yield lambda: [json.loads(line) for line in output.getvalue().splitlines()]
    logging.captureWarnings(False)
    structlog.reset_defaults()
    root.handlers, root.level = handlers, level


def raise_error() -> None:
    raise ValueError("a\nb")


def test_errors_that_nobody_caught_are_one_line(lines: Lines) -> None:
    try:
        raise_error()
    except ValueError:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]

    [line] = lines()
    assert (line["event"], line["level"]) == ("ValueError: a\nb", "error")
    assert "in raise_error" in line["exception"]


def test_thread_that_ends_by_an_error_is_one_line(lines: Lines) -> None:
    thread = threading.Thread(target=raise_error, name="figures")
    thread.start()
    thread.join()

    [line] = lines()
    assert line["event"] == "the thread figures ended by an error"
    assert "in raise_error" in line["exception"]


def test_error_that_python_ignores_is_one_line(lines: Lines) -> None:
    class Ends:
        def __del__(self) -> None:
            raise_error()

    Ends()

    [line] = lines()
    assert "__del__" in line["event"]
    assert line["level"] == "error"


def test_warnings_and_lines_of_libraries_are_lines(lines: Lines) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    logging.captureWarnings(False)
    logging.getLogger("kombu").warning("lost %s", "it")
    old, lost = lines()

    assert "DeprecationWarning: old" in old["event"]
    assert (lost["event"], lost["level"]) == ("lost it", "warning")


def test_line_that_cannot_be_logged_is_told_in_one_line(lines: Lines) -> None:
    handler = logging.getLogger().handlers[0]
    handler.handle(logging.LogRecord("kombu", logging.WARNING, __file__, 1, "lost %s and %s", ("one",), None))
    [line] = lines()

    assert line["event"] == "a line of kombu could not be logged"
    assert "not enough arguments" in line["exception"]
