"""The way to the end: from SIGTERM on no change begins, what runs may end, and then the connections are closed."""

from __future__ import annotations

from collections.abc import Callable

from headwater.clock import Clock
from headwater_server.error_answers import DrainingError


class ServerDrain:
    """Whether the server is about to stop, and whether it may. Used by the event loop, but for ``begin``, which a signal calls.

    seconds       how long running requests may take to end
    changes       how many requests for a change were begun and have not ended
    """

    def __init__(self, clock: Clock, *, seconds: float, changes: Callable[[], int]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._changes = changes
        self._since: float | None = None

    @property
    def is_draining(self) -> bool:
        return self._since is not None

    @property
    def left_seconds(self) -> float:
        """How much of the time is left that running requests have."""
        spent = 0.0 if self._since is None else self._clock.monotonic() - self._since
        return max(0.0, self._seconds - spent)

    @property
    def may_stop(self) -> bool:
        """Whether the server may stop to listen: nothing that changes anything runs, or it has had its time."""
        return self.is_draining and (self._changes() == 0 or self.left_seconds == 0)

    def begin(self) -> None:
        if self._since is None:
            self._since = self._clock.monotonic()

    def check_change(self) -> None:
        """raises DrainingError once the server drains: a change that has not begun yet does not begin any more"""
        if self.is_draining:
            raise DrainingError("the server stops, and begins no change any more; send the request again, to its successor")
