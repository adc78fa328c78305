"""Ctrl-C and SIGTERM for a long-running program: recorded at any moment, obeyed between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interruption", "TerminatedError"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class TerminatedError(KeyboardInterrupt):
    """SIGTERM was received; the counterpart of KeyboardInterrupt."""


class Interruption:
    """Takes SIGINT and SIGTERM over while it is entered.

    Python raises KeyboardInterrupt wherever the main thread happens to be: in the middle of a call on the store, where it would
    leave half-taken locks for the clean-up to wait for, or in a callback, where it is printed and forgotten. So the first signal is
    only noted, and raised by ``check`` and ``pause``. The second one is raised at once, for a person who will not wait.
    """

    def __init__(self) -> None:
        self._asked: signal.Signals | None = None
        self._is_pausing = False
        self._before: list[tuple[signal.Signals, Any]] = []

    @property
    def is_asked(self) -> bool:
        """Whether a signal has asked the program to end."""
        return self._asked is not None

    def check(self) -> None:
        """Pass unless the program has to end.

        raises        KeyboardInterrupt after SIGINT, TerminatedError after SIGTERM
        """
        if self._asked is not None:
            raise _error_of(self._asked)

    def pause(self, sleep: Callable[[float], None], seconds: float) -> None:
        """Sleep; raises like ``check`` as soon as a signal arrives."""
        try:
            self._is_pausing = True
            self.check()
            sleep(seconds)
        finally:
            self._is_pausing = False

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = [(number, signal.signal(number, self._note)) for number in _SIGNALS]
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        is_first, self._asked = self._asked is None, signal.Signals(number)
        if self._is_pausing or not is_first:
            raise _error_of(self._asked)


def _error_of(number: signal.Signals) -> KeyboardInterrupt:
    return TerminatedError() if number is signal.SIGTERM else KeyboardInterrupt()
