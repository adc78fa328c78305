"""A gate that many threads pass at once, and that can be shut when nobody is inside."""

from __future__ import annotations

import threading

__all__ = ["Turnstile"]


class Turnstile:
    """``with turnstile:`` waits while it is shut. Not to be entered twice by one thread."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin anew in a forked child, whatever a thread of the parent was doing here."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._inside = 0
        self._is_shut = False

    def __enter__(self) -> None:
        with self._lock:  # every call on a database passes here: a bare lock costs a fifth of a condition
            while self._is_shut:
                self._changed.wait()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._is_shut:
                self._changed.notify_all()

    def shut(self) -> None:
        """Let nobody in any more, and wait until all are out."""
        with self._lock:
            self._is_shut = True
            self._changed.wait_for(lambda: not self._inside)

    def open(self) -> None:
        with self._lock:
            self._is_shut = False
            self._changed.notify_all()
