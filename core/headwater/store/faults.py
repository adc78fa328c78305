"""A backend that fails on demand: for tests of everything above it, ours and those of whoever writes a backend."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from headwater.errors import UnavailableError, UnknownOutcomeError
from headwater.store.backend import Backend

__all__ = ["FaultyBackend"]


class FaultyBackend:
    """Wraps a backend; each planned fault hits one call of one method, before or after its effect.

    Not ``before=True`` means: the effect took place, and the answer was lost.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.calls: list[str] = []
        self._lock = threading.Lock()
        self._plans: list[tuple[Callable[[str], bool], Callable[[Callable[[], Any]], Any]]] = []

    def fail(
        self, method: str = "*", *, at: int = 1, times: int = 1, before: bool = True, fault: Exception | None = None
    ) -> None:
        """Let the ``at``-th call from now of ``method`` (``*``: of any) raise, and ``times - 1`` calls after it.

        before        True: without effect, UnavailableError; False: after its effect, UnknownOutcomeError
        fault         another error instead; an UnknownOutcomeError with ``before`` is a call that was lost on its way
        """
        error = fault or (UnavailableError("injected") if before else UnknownOutcomeError("injected"))

        def act(call: Callable[[], Any]) -> Any:
            if not before:
                call()
            raise error

        self._plan(method, at, times, act)

    def intervene(self, method: str, action: Callable[[], None], *, at: int = 1) -> None:
        """Run ``action`` just before the ``at``-th call from now of ``method``: what another process does in between."""

        def act(call: Callable[[], Any]) -> Any:
            action()
            return call()

        self._plan(method, at, 1, act)

    def heal(self) -> None:
        """Forget all plans."""
        with self._lock:
            self._plans.clear()

    def _plan(self, method: str, at: int, times: int, act: Callable[[Callable[[], Any]], Any]) -> None:
        hits = 0

        def is_hit(name: str) -> bool:
            nonlocal hits
            if method not in ("*", name):
                return False
            hits += 1
            return at <= hits < at + times

        with self._lock:
            self._plans.append((is_hit, act))

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.backend, name)
        if not callable(attribute) or name in ("close", "before_fork", "after_fork"):
            return attribute

        def call(*arguments: Any) -> Any:
            with self._lock:
                self.calls.append(name)
                hit = [act for is_hit, act in list(self._plans) if is_hit(name)]
            return hit[0](lambda: attribute(*arguments)) if hit else attribute(*arguments)

        return call
