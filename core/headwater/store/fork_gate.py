"""A gate that many threads pass at once, and that can be shut when nobody is inside."""

from __future__ import annotations

import threading
from sys import _getframe
from threading import get_ident
from types import FrameType


class ForkGate:
    """``with turnstile:`` waits while it is shut.

    Ctrl-C can hit the thread that passes at any moment, also between the turnstile and the block that it guards, and would leave a
    mere count too high for good. So those inside are known by thread and frame: a thread that comes again, or that shuts the
    turnstile, is not inside, whatever is noted, unless the frame that is noted still runs. Then it is the handler of a signal that
    comes again, and it passes as a part of what it interrupts.
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
        """Whether the caller runs within what is inside already: it is the handler of a signal."""
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
        """Let nobody in any more, and wait until all are out."""
        with self._lock:
            self._is_shut = True
            self._inside.pop(get_ident(), None)
            self._changed.wait_for(lambda: not self._inside)

    def open_gate(self) -> None:
        with self._lock:
            self._is_shut = False
            self._changed.notify_all()


def _runs_in(outer: FrameType, frame: FrameType | None) -> bool:
    """Whether a frame is the outer one, or was called by it."""
    while frame is not None and frame is not outer:
        frame = frame.f_back
    return frame is not None
