"""What a terminal can show: its width, colors for states, and one line that tells how far long work is.

Pipes and files get none of it. ``NO_COLOR`` and ``TERM=dumb`` are respected.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
import unicodedata
from collections.abc import Callable
from typing import TextIO

NARROWEST = 20
"""A terminal that says that it is narrower is taken for one that does not know its width."""
_RED, _GREEN, _YELLOW, _CYAN = 31, 32, 33, 36
_STATE_COLORS = {
    _GREEN: ("ACTIVE", "SUCCEEDED", "SERVING"),
    _CYAN: ("RUNNING", "LOADING", "INITIALIZING", "CREATED", "WAITING"),
    _YELLOW: ("INACTIVE", "PURGING", "CANCELLED", "TROUBLE", "LOST", "PUT_OFF", "HANDED_BACK", "QUARANTINED", "DELETED"),
    _RED: ("FAILED", "DAMAGE", "PURGED", "GONE", "UNREADABLE"),
}
_COLORS = {state: color for color, states in _STATE_COLORS.items() for state in states}
_REDRAW_SECONDS = 0.1
_PLAIN_SECONDS = 10.0
_QUIET_SECONDS = 0.3
_ERASE = "\r\x1b[K"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at this stream; None stands for one that was closed before the process began."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def is_dumb() -> bool:
    """Whether the terminal neither moves its cursor nor knows colors."""
    return os.environ.get("TERM", "") == "dumb"


def has_colors(stream: TextIO | None) -> bool:
    return is_terminal(stream) and not is_dumb() and not os.environ.get("NO_COLOR")


def columns_of(stream: TextIO) -> int:
    """The width of the terminal behind a stream in characters; ``COLUMNS`` wins, and 80 is taken where neither says it."""
    try:
        known = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        known = 80
    told = os.environ.get("COLUMNS", "")
    width = int(told) if told.isdecimal() else known
    return width if width >= NARROWEST else 80


def paint_state(state: str) -> str:
    """A state in its color; any other text as it is."""
    color = _COLORS.get(state.upper())
    return f"\x1b[{color}m{state}\x1b[0m" if color else state


def text_width(text: str) -> int:
    """How many columns of a terminal a text takes: two for a wide character as of Chinese or an emoji, none for an accent by itself."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def shortened(text: str, width: int) -> str:
    """A text that fits a width: what is too much is replaced by one ``…``."""
    if text_width(text) <= width:
        return text
    room = max(width - 1, 0)
    ends = itertools.accumulate(map(_character_width, text))
    return "".join(character for character, end in zip(text, ends, strict=True) if end <= room) + "…"


def span_text(seconds: float) -> str:
    """A duration for people: ``8 s``, ``2 min 05 s``, ``1 h 03 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"


class ProgressLine:
    """One line on a terminal that is rewritten while work goes on, and erased before anything else is printed there.

    A dumb terminal gets a line of its own for each phase, and from time to time. Safe for several threads.

    title         what is being done, such as ``gc of realm 'acme'``
    """

    def __init__(self, stream: TextIO, title: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._title = title
        self._monotonic = monotonic
        self._lock = threading.RLock()
        self._begun = monotonic()
        self._unit: str | None = None
        # Of the present phase: when it began, and at which count, for its rate.
        self._since = self._begun
        self._base = 0
        self._drawn_at: float | None = None
        self._is_shown = False

    def update(self, done: int, total: int, unit: str) -> None:
        """Tell how far the work is: ``ProgressCallback``. Most calls draw nothing."""
        with self._lock:
            now = self._monotonic()
            is_new = unit != self._unit or done < self._base
            if is_new:
                self._unit, self._since, self._base = unit, now, done
            if self._is_time(now, is_new):
                self._draw(self._text(done, total, unit, now - self._since))
                self._drawn_at = now

    def erase(self) -> None:
        """Leave the terminal as if the line had never been there. The next update draws it again."""
        with self._lock:
            if self._is_shown:
                self._stream.write(_ERASE)
                self._stream.flush()
                self._is_shown = False

    def _is_time(self, now: float, is_new: bool) -> bool:
        if self._drawn_at is None:
            return now - self._begun >= _QUIET_SECONDS  # work that is over at once needs no line
        if is_dumb():
            return is_new or now - self._drawn_at >= _PLAIN_SECONDS
        return now - self._drawn_at >= _REDRAW_SECONDS

    def _draw(self, text: str) -> None:
        if is_dumb():
            self._stream.write(f"{text}\n")
        else:
            # One less than the width: a line that fills it may wrap, and could not be erased.
            self._stream.write(_ERASE + shortened(text, columns_of(self._stream) - 1))
            self._is_shown = True
        self._stream.flush()

    def _text(self, done: int, total: int, unit: str, seconds: float) -> str:
        parts = [f"{self._title}: {progress_words(done, total or None, unit, is_grouped=True)}"]
        if total:
            parts.append(f"{100 * min(done, total) // total} %")
        rate = (done - self._base) / seconds if seconds >= 1 else 0
        if rate:
            parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if rate and total > done:
            parts.append(f"{span_text((total - done) / rate)} left")
        return ", ".join(parts)


def progress_words(done: int, total: int | None, unit: str, *, is_grouped: bool = False) -> str:
    """How far work is, in words: ``1200 of 5000 rows deleted``.

    is_grouped    with commas between thousands, for people only
    """
    grouping = "," if is_grouped else ""
    of = "" if total is None else f" of {total:{grouping}}"
    return f"{done:{grouping}}{of} {unit}".rstrip()


_lines: list[ProgressLine] = []
"""The line on standard error, if there is one: it has to go before anything else is printed."""


def show_line(title: str) -> ProgressLine:
    """Begin a progress line on standard error; `end_line` ends it."""
    end_line()
    _lines.append(ProgressLine(sys.stderr, title))
    return _lines[-1]


def erase_line() -> None:
    """Erase the progress line, if there is one, because something is printed now. The next progress draws it again."""
    for line in _lines:
        line.erase()


def end_line() -> None:
    """Erase the progress line for good."""
    erase_line()
    _lines.clear()
