"""Whether a concurrent history of one row can be told as a sequence in which every operation happened at one instant.

The method is Lowe's just-in-time linearization ("Testing for linearizability", 2017), a refinement of Wing and Gong's search: go through
calls and returns in time order with the set of everything that may be the case (the row's value, and which operations have happened
by now), and let an operation happen as late as its return or another's makes necessary. Rows are independent, and linearizability
composes, so each row's history is judged alone. No maintained Python library for this was found on the package index in 2026;
those kept are for Go, Rust and Clojure.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

__all__ = ["HARD", "Anomaly", "History", "Model", "Operation", "TooHardError", "find_anomaly"]

HARD = 200_000
"""So many possibilities at a time are given up on."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What one client asked of one row, and when. Times are of one clock, in nanoseconds, and belong to the operation's time.

    returned      None when no answer ever came: it may have happened at any time after the call, or never
    answer        what came back; means nothing where ``returned`` is None
    """

    client: Hashable
    call: Hashable
    called: int
    returned: int | None = None
    answer: Hashable = None

    def __str__(self) -> str:
        end = "..." if self.returned is None else f"{self.returned}"
        answer = "no answer" if self.returned is None else f"{self.answer!r}"
        return f"[{self.called} .. {end}] {self.client}: {self.call!r} -> {answer}"


History = Sequence[Operation]


class Model(Protocol):
    """The sequential truth: one value, hashable, and what an operation makes of it. ``initial`` is what a history begins with."""

    initial: Hashable

    def apply(self, value: Hashable, call: Hashable) -> tuple[Hashable, Hashable]:
        """The value after the call, and its answer."""
        ...


@dataclass(frozen=True, slots=True)
class Anomaly:
    """The first return that nothing explains, and what can be known about it."""

    operation: Operation
    before: frozenset[Hashable]
    """What the row may have been when it was called."""
    beside: tuple[Operation, ...]
    """The operations that may have happened during it."""

    def __str__(self) -> str:
        values = "\n".join(f"    {value!r}" for value in sorted(self.before, key=repr))
        others = "\n".join(f"    {operation}" for operation in self.beside) or "    none"
        return (
            f"not linearizable:\n    {self.operation}\n  when it was called, the row was one of\n{values}\n"
            f"  and what may have happened during it\n{others}"
        )


class TooHardError(Exception):
    """More possibilities than ``HARD``: use more rows, or fewer clients or operations."""


class Possibility(NamedTuple):
    """What may be the case: the row's value, which open operations have happened whose answers are to come, and which of those without."""

    value: Hashable
    happened: frozenset[int]
    used: frozenset[int]


def find_anomaly(history: Iterable[Operation], model: Model, *, hard: int = HARD) -> Anomaly | None:
    """None when the history is linearizable; else the first operation whose answer nothing explains.

    history       operations of one row in any order. A call at the same time as another's return counts as beside it
    raises        TooHardError after ``hard`` possibilities at one time
    """
    operations = sorted(history, key=lambda operation: operation.called)
    search = _Search(operations, model, hard)
    before: dict[int, frozenset[Hashable]] = {}
    for is_return, number in _events(operations):
        if not is_return:
            before[number] = search.values()
            search.open(number)
        elif not search.finish(number):
            return Anomaly(operations[number], before[number], _beside(operations, number))
    return None


def _events(operations: Sequence[Operation]) -> list[tuple[bool, int]]:
    """Calls (False) and returns (True) in time order, calls first where times are equal."""
    events = [(operation.called, False, number) for number, operation in enumerate(operations)]
    events += [
        (operation.returned, True, number) for number, operation in enumerate(operations) if operation.returned is not None
    ]
    return [(is_return, number) for _, is_return, number in sorted(events)]


class _Search:
    """Everything that may be the case at one moment of a history."""

    def __init__(self, operations: Sequence[Operation], model: Model, hard: int) -> None:
        self._operations = operations
        self._model = model
        self._hard = hard
        self._possible = [Possibility(model.initial, frozenset(), frozenset())]
        self._open: set[int] = set()
        self._unclear: list[int] = []
        self._effects: dict[Hashable, list[tuple[int, Hashable]]] = {}

    def values(self) -> frozenset[Hashable]:
        return frozenset(possibility.value for possibility in self._possible)

    def open(self, number: int) -> None:
        if self._operations[number].returned is None:
            self._unclear.append(number)
            self._effects.clear()
        else:
            self._open.add(number)

    def finish(self, returned: int) -> bool:
        """Keep what may be the case once ``returned`` has happened, with its answer; False when that is nothing."""
        after = _Least()
        seen = _Least()
        waiting = deque(self._possible)  # from few operations to many, so that what says less is there before what says more
        while waiting:
            now = waiting.popleft()
            if returned in now.happened:
                after.add(now._replace(happened=now.happened - {returned}))
                continue  # the others may happen later: as late as possible is never worse
            for new in self._next(now):
                if seen.add(new):
                    waiting.append(new)
            if seen.count > self._hard:
                raise TooHardError(f"more than {self._hard} possibilities at the return of {self._operations[returned]}")
        self._possible = after.all()
        self._open.discard(returned)
        return bool(self._possible)

    def _next(self, now: Possibility) -> Iterator[Possibility]:
        """What can be the case after one more operation, with the answer that it got."""
        for number in self._open - now.happened:
            value, answer = self._model.apply(now.value, self._operations[number].call)
            if answer == self._operations[number].answer:
                yield Possibility(value, now.happened | {number}, now.used)
        for number, value in self._effects_of_unclear(now.value):
            if number not in now.used:
                yield Possibility(value, now.happened, now.used | {number})

    def _effects_of_unclear(self, value: Hashable) -> list[tuple[int, Hashable]]:
        """One that changes nothing may as well not have happened. Remembered, for they stay open to the end."""
        if value not in self._effects:
            results = [(number, self._model.apply(value, self._operations[number].call)[0]) for number in self._unclear]
            self._effects[value] = [(number, new) for number, new in results if new != value]
        return self._effects[value]


class _Least:
    """Possibilities without those that say the same but for more operations without an answer: those may still happen, or never."""

    def __init__(self) -> None:
        self.count = 0
        self._used: dict[tuple[Hashable, frozenset[int]], list[frozenset[int]]] = defaultdict(list)

    def add(self, new: Possibility) -> bool:
        """False when one that is there makes it needless."""
        known = self._used[new.value, new.happened]
        if any(used <= new.used for used in known):
            return False
        kept = [used for used in known if not new.used < used]
        self.count += 1 + len(kept) - len(known)
        self._used[new.value, new.happened] = [*kept, new.used]
        return True

    def all(self) -> list[Possibility]:
        return [Possibility(*place, used) for place, known in self._used.items() for used in known]


def _beside(operations: Sequence[Operation], number: int) -> tuple[Operation, ...]:
    operation = operations[number]
    assert operation.returned is not None
    return tuple(
        other
        for other in operations
        if other is not operation
        and other.called <= operation.returned
        and (other.returned is None or other.returned >= operation.called)
    )
