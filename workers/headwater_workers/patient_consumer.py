"""The loop of a worker that reads messages: it waits out a broker that is reached and does nothing that it is asked."""

from __future__ import annotations

import time
from typing import Any

from celery.worker import state
from celery.worker.consumer import Consumer

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 16.0
"""As long as Celery waits between two attempts to connect; doubles while the broker stays as it is."""
STABLE_SECONDS = 60.0
"""A broker that worked for this long has recovered."""
CHECK_SECONDS = 0.2


class PatientConsumer(Consumer):  # type: ignore[misc]  # Celery has no types
    """Waits before it connects again to a broker that refused a command: a Redis that is a replica, loads, or wants a password.

    Celery waits only where a connection cannot be made, and would begin again dozens of times a second.
    """

    _pause_seconds = FIRST_PAUSE_SECONDS
    _began_again = 0.0

    def on_connection_error_before_connected(self, exc: Exception) -> None:
        super().on_connection_error_before_connected(exc)
        self._pause()

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        super().on_connection_error_after_connected(exc)
        self._pause()

    def call_soon_ack(self, acknowledge: Any, *args: Any, **kwargs: Any) -> Any:
        """Acknowledge a message, and connect again where that fails.

        Celery logs the failure and goes on. But a message that is not acknowledged counts as work in hand: with as many of them as
        there are children, the worker takes no message any more.
        """
        logger, _errors_to_swallow = args
        return super().call_soon_ack(acknowledge, logger, (), **kwargs)

    def _pause(self) -> None:
        if time.monotonic() - self._began_again > STABLE_SECONDS:
            self._pause_seconds = FIRST_PAUSE_SECONDS
        end = time.monotonic() + self._pause_seconds
        while (left := end - time.monotonic()) > 0:
            state.maybe_shutdown()
            time.sleep(min(left, CHECK_SECONDS))
        self._pause_seconds = min(2 * self._pause_seconds, LONGEST_PAUSE_SECONDS)
        self._began_again = time.monotonic()
