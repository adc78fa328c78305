"""A gate that many threads pass at once, and that can be shut when nobody is inside."""

from __future__ import annotations

import threading

__all__ = ["Turnstile"]


class Turnstile:
    """``with turnstile:`` waits while it is shut. Not to be entered twice by one thread.

    Ctrl-C can hit the thread that passes at any moment, also between the turnstile and the block that it guards, and would leave a
    mere count too high for good. So those inside are known by name: a thread that comes again, or that shuts the turnstile, is
    not inside, whatever is noted.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin anew in a forked child, whatever a thread of the parent was doing here."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._inside: set[int] = set()
        self._is_shut = False

    def __enter__(self) -> None:
        with self._lock:  # every call on a database passes here: a bare lock costs a fifth of a condition
            while self._is_shut:
                self._changed.wait()
            self._inside.add(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside.discard(threading.get_ident())
            if self._is_shut:
                self._changed.notify_all()

    def shut(self, *, wait_seconds: float | None = None) -> bool:
        """Let nobody in any more, and wait until all are out; returns whether they are."""
        with self._lock:
            self._is_shut = True
            self._inside.discard(threading.get_ident())
            return self._changed.wait_for(lambda: not self._inside, wait_seconds)

    def open(self) -> None:
        with self._lock:
            self._is_shut = False
            self._changed.notify_all()
