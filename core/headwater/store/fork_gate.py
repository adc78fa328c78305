"""A gate that many threads pass at once, and that can be shut when nobody is inside."""

from __future__ import annotations

import threading
from sys import _getframe
from threading import get_ident
from types import FrameType


class ForkGate:
    """``with gate:`` waits while the gate is shut.

    Ctrl-C can interrupt a thread at any moment, even between entering the gate and the guarded block, and would leave a plain
    counter too high for good. So threads inside are recorded by thread and frame: a thread that enters again, or that shuts the
    gate, is not inside, whatever the record says, unless the recorded frame still runs. In that case a signal handler is
    entering again, and it passes as a part of the code that it interrupts.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin anew in a forked child, whatever a thread of the parent was doing here."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._inside: dict[int, FrameType] = {}
        self._is_shut = False

    def __enter__(self) -> bool:
        """Enter. Returns whether the caller already is inside: it is a signal handler."""
        thread, frame = get_ident(), _getframe(1)
        with self._lock:  # every call on a database passes here: a bare lock costs a fifth of a condition
            if thread in self._inside and _runs_in(self._inside[thread], frame):
                return True
            while self._is_shut:
                self._changed.wait()
            self._inside[thread] = frame
            return False

    def __exit__(self, *_: object) -> None:
        thread, frame = get_ident(), _getframe(1)
        with self._lock:
            if self._inside.get(thread) is frame:
                del self._inside[thread]
            if self._is_shut:
                self._changed.notify_all()

    def shut_gate(self) -> None:
        """Let no thread enter, and wait until all have left."""
        with self._lock:
            self._is_shut = True
            self._inside.pop(get_ident(), None)
            self._changed.wait_for(lambda: not self._inside)

    def open_gate(self) -> None:
        with self._lock:
            self._is_shut = False
            self._changed.notify_all()


def _runs_in(outer: FrameType, frame: FrameType | None) -> bool:
    """Whether a frame is ``outer``, or was called by it."""
    while frame is not None and frame is not outer:
        frame = frame.f_back
    return frame is not None
