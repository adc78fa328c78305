"""What others wrote is shown, and acts on nobody: in logs for a terminal, and in cells of CSV."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable, Iterator

import pytest
import structlog

from headwater.console import csv_text
from headwater.logs import log_to_stderr
from headwater.redaction import inert_cell, printable
from headwater.settings import Settings

EVIL = "a\x1b]0;x\x07b\x9b31mc\u202ed"
SHOWN = r"a\x1b]0;x\x07b\x9b31mc\u202ed"


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    output = io.StringIO()
    monkeypatch.setattr(sys, "stderr", output)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    log_to_stderr(Settings(), package="headwater_server")
    yield output.getvalue
    logging.captureWarnings(False)
    structlog.reset_defaults()
    root.handlers, root.level = handlers, level


def test_controls_of_all_kinds_are_shown() -> None:
    assert printable(EVIL) == SHOWN


def test_log_shows_what_a_terminal_would_obey(logged: Callable[[], str]) -> None:
    log = structlog.get_logger("headwater_server")
    log.warning(f"request {EVIL}", agent=EVIL, several=[EVIL], named={EVIL: 1})
    logging.getLogger("headwater_server").warning(EVIL)

    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*logged()}
    assert logged().count(SHOWN.partition("]")[0]) >= 5


def test_traceback_shows_what_a_terminal_would_obey(logged: Callable[[], str]) -> None:
    try:
        raise ValueError(EVIL)
    except ValueError:
        structlog.get_logger("headwater_server").exception("failed")

    assert "\x1b" not in logged()
    assert f"ValueError: {SHOWN}" in logged()
    assert len(logged().splitlines()) > 3


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1", "\r=1"])
def test_cell_like_a_formula_is_a_text(text: str) -> None:
    assert inert_cell(text) == f"'{text}"
    assert csv_text([{"name": text}], ["name"], has_heads=False).lstrip('"').startswith("'")


@pytest.mark.parametrize("text", ["", "plain", "a=b", "-1", "+2.5", "1-2"])
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert inert_cell(text) == text
