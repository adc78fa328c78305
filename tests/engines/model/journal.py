"""What clients asked for and what they were told, written down as it happens: in memory, or in a file that outlives its process.

An operation that was begun and has no end (its process was killed) has the outcome UNKNOWN, like one whose answer was lost.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from headwater.errors import (
    ConflictError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)

COMMIT, LOOK = "commit", "look"
_MARK = "m-"
DID_NOT_HAPPEN = (UnavailableError, RefusedError, ConflictError, NotFoundError)

R = TypeVar("R")


class Outcome(StrEnum):
    """What an operation's caller knows of it."""

    OK = "ok"
    REFUSED = "refused"
    """It did not happen, and why was said: refused, missing, in conflict, away."""
    BEATEN = "beaten"
    UNKNOWN = "unknown"
    BROKEN = "broken"
    """An error that no caller must ever see: something unreadable, or no error of ours."""


class Event(msgspec.Struct, kw_only=True):
    """One operation of one client.

    key           the realm's key, as the client knew it; 0 where no realm is meant
    reference     the reference as the store names it
    marker        of a commit: the key that it alone puts, from ``marker_of``
    called, returned    by a clock that all clients share; ``returned`` None: no answer ever came
    found         what a look saw: {"markers": how many there were, "seq": of the head, "commit": its id}, the last two where they are
                  known; of a commit {"commit": its id, "number": how many there were with it}, the last where it is known
    """

    client: str
    number: int
    action: str
    key: int = 0
    reference: str = ""
    marker: str = ""
    called: int = 0
    returned: int | None = None
    outcome: Outcome = Outcome.UNKNOWN
    found: dict[str, Any] = {}
    fault: str = ""

    def __str__(self) -> str:
        end = "..." if self.returned is None else self.returned
        what = " ".join(filter(None, (self.action, self.reference, self.marker)))
        found = " ".join(f"{name}={value}" for name, value in self.found.items())
        return f"[{self.called:>6} .. {end:>6}] {self.client}: {what} -> {self.outcome} {found} {self.fault}".rstrip()


class Journal:
    """The operations of one or several clients. Thread-safe; ``path`` keeps them through a SIGKILL, one file a process."""

    def __init__(self, *, now: Callable[[], int] = time.monotonic_ns, path: Path | None = None) -> None:
        self.events: list[Event] = []
        self._now = now
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._file = None if path is None else path.open("ab", buffering=0)

    def act(
        self,
        client: str,
        action: str,
        work: Callable[[dict[str, Any]], R],
        *,
        key: int = 0,
        reference: str = "",
        marker: str = "",
    ) -> R | None:
        """Run the work and write down what came of it; returns what it returned, or None after any error of ours.

        work          is given the event's ``found``, to write into
        raises        whatever is not an Exception: then the event stays without an end, as if its process had been killed
        """
        event = Event(client=client, number=next(self._numbers), action=action, key=key, reference=reference, marker=marker)
        with self._lock:
            self.events.append(event)
            event.called = self._now()
            self._write(event)
        result: R | None = None
        found: dict[str, Any] = {}
        try:
            result = work(found)
            outcome = Outcome.OK
        except Exception as fault:  # noqa: BLE001  judged by the checker
            outcome, event.fault = outcome_of(fault), f"{type(fault).__name__}: {fault}"
        with self._lock:
            event.found, event.outcome, event.returned = found, outcome, self._now()
            self._write(event)
        return result

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _write(self, event: Event) -> None:
        if self._file is not None:
            self._file.write(msgspec.json.encode(event) + b"\n")


def read_journals(paths: Iterable[Path]) -> list[Event]:
    """All operations that processes wrote down, by the time of their call. A last line that a kill has cut short does not count."""
    events: dict[tuple[Path, str, int], Event] = {}
    for path in paths:
        for line in path.read_bytes().split(b"\n")[:-1]:
            event = msgspec.json.decode(line, type=Event)
            events[path, event.client, event.number] = event
    return sorted(events.values(), key=lambda event: event.called)


def outcome_of(fault: Exception) -> Outcome:
    """What an error tells its caller. One that tells nothing of the outcome must never be met."""
    if isinstance(fault, UnknownOutcomeError):
        return Outcome.UNKNOWN
    if isinstance(fault, SwapConflictError) and not isinstance(fault, UnavailableError):
        return Outcome.BEATEN
    return Outcome.REFUSED if isinstance(fault, DID_NOT_HAPPEN) else Outcome.BROKEN


def marker_of(*parts: object) -> str:
    """A key that says what it is; whoever makes one sees that the parts are used once."""
    return _MARK + "-".join(map(str, parts))


def is_marker(key: str) -> bool:
    """Whether a key is one of ours. Content ids are keys, too: one of 65,536 begins like a marker, and goes on with any bytes."""
    return key.startswith(_MARK) and key.isascii()
