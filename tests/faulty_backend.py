"""A backend that fails on demand: for tests of everything above it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from headwater.errors import HeadwaterError, UnavailableError, UnknownOutcomeError
from headwater.store.backend import Backend, ObjectRow, ReferenceRow

_HANG_SECONDS = 30.0
_UNHINDERED = ("close", "before_fork", "after_fork")
_WRITES = (
    "create_reference",
    "create_references",
    "swap_reference",
    "write_and_swap",
    "remove_reference",
    "write_objects",
    "insert_object",
    "update_object",
    "delete_objects",
    "delete_realm",
)


class Hang:
    """A call that does not come back until it is let go. Made by ``FaultyBackend.hang``."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._reached = threading.Event()
        self._released = threading.Event()
        self._fault: Exception | None = None

    def reached(self, timeout_seconds: float = _HANG_SECONDS) -> None:
        """Wait until a call hangs here.

        raises        TimeoutError when none came
        """
        if not self._reached.wait(timeout_seconds):
            raise TimeoutError(f"no call hung within {timeout_seconds:g} seconds")

    def release(self, fault: Exception | None = None) -> None:
        """Let the call go on, or raise ``fault``. Whoever comes only now does not hang. What was released first holds."""
        if not self._released.is_set():
            self._fault = fault
            self._released.set()

    def wait(self, lapse: HeadwaterError) -> None:
        """What the call does that hangs; ``lapse`` is raised when nobody lets it go."""
        self._reached.set()
        if not self._released.wait(self._seconds):
            raise lapse
        if self._fault is not None:
            raise self._fault


class FaultyBackend:
    """Wraps a backend; each planned fault hits one call of one method, before or after its effect. Thread-safe.

    Not ``before=True`` means: the effect took place, and the answer was lost. What networks do is told like this:

    the server is away           ``fail(method)``: UnavailableError, no effect
    the request is lost          ``fail(method, fault=UnknownOutcomeError(...))``: no effect, but who asked cannot know
    the answer is lost           ``fail(method, before=False)``: UnknownOutcomeError after the effect; of a read, UnavailableError
    the server restarts          ``fail(method, before=False)`` and ``fail(times=n)``: the answer is lost, and n calls find nobody
    the call lasts too long      ``hang(method, seconds=0.1)``, ``hang(method, before=False, seconds=0.1)``: it ends as a
                                 time-out does, with UnknownOutcomeError where it writes and UnavailableError where it reads
    the call lasts, and is told  ``hang(method)``, then ``release()`` or ``release(fault)`` when others have done their part

    is_atomic     ``write_and_swap`` is one call of the backend; otherwise it is ``write_objects`` and ``swap_reference``, each with
                  its faults, as on a database that cannot do both at once
    """

    def __init__(self, backend: Backend, *, is_atomic: bool = False) -> None:
        self.backend = backend
        self.capabilities = backend.capabilities._replace(atomic_commits=is_atomic and backend.capabilities.atomic_commits)
        self._is_atomic = is_atomic
        self.calls: list[str] = []
        self._lock = threading.Lock()
        self._plans: list[tuple[Callable[[str], bool], Callable[[str, Callable[[], Any]], Any]]] = []
        self._hangs: list[Hang] = []

    def fail(
        self, method: str = "*", *, at: int = 1, times: int = 1, before: bool = True, fault: BaseException | None = None
    ) -> None:
        """Let the ``at``-th call from now of ``method`` (``*``: of any) raise, and ``times - 1`` calls after it.

        before        True: without effect, UnavailableError; False: after its effect, UnknownOutcomeError where it writes
        fault         another error instead; an UnknownOutcomeError with ``before`` is a call that was lost on its way
        """

        def act(name: str, call: Callable[[], Any]) -> Any:
            if not before:
                call()
            raise fault or (UnavailableError("injected") if before else _lost(name))

        self._plan(method, at, times, act)

    def hang(self, method: str = "*", *, at: int = 1, before: bool = True, seconds: float = _HANG_SECONDS) -> Hang:
        """Let the ``at``-th call from now of ``method`` (``*``: of any) hang, before its effect or after it, until it is released.

        seconds       then it ends by itself, as by a time-out: UnknownOutcomeError where it writes, UnavailableError where it reads
        """
        hang = Hang(seconds)

        def act(name: str, call: Callable[[], Any]) -> Any:
            if before:
                hang.wait(_lost(name))
                return call()
            answer = call()
            hang.wait(_lost(name))
            return answer

        self._plan(method, at, 1, act)
        with self._lock:
            self._hangs.append(hang)
        return hang

    def intervene(self, method: str, action: Callable[[], None], *, at: int = 1) -> None:
        """Run ``action`` just before the ``at``-th call from now of ``method``: what another process does in between."""

        def act(name: str, call: Callable[[], Any]) -> Any:
            action()
            return call()

        self._plan(method, at, 1, act)

    def heal(self) -> None:
        """Forget all plans, and let go of every call that hangs."""
        with self._lock:
            self._plans.clear()
            hangs, self._hangs = self._hangs, []
        for hang in hangs:
            hang.release()

    def _plan(self, method: str, at: int, times: int, act: Callable[[str, Callable[[], Any]], Any]) -> None:
        hits = 0

        def is_hit(name: str) -> bool:
            nonlocal hits
            if method not in ("*", name):
                return False
            hits += 1
            return at <= hits < at + times

        with self._lock:
            self._plans.append((is_hit, act))

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        if self._is_atomic:
            self._call("write_and_swap", rows, seen, new)
        else:
            self.write_objects(rows, are_new=True)
            self.swap_reference(seen, new)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.backend, name)
        if not callable(attribute) or name in _UNHINDERED:
            return attribute

        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        with self._lock:
            self.calls.append(name)
            hit = [act for is_hit, act in list(self._plans) if is_hit(name)]
        call = partial(getattr(self.backend, name), *arguments, **named)
        return hit[0](name, call) if hit else call()


def _lost(method: str) -> HeadwaterError:
    """What a call raises whose answer did not come."""
    return UnknownOutcomeError("injected") if method in _WRITES else UnavailableError("injected")
