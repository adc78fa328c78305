"""Two processes on one database in memory, in every order of their calls that makes a difference.

Calls that touch no row in common, or only read, may change places: of the orders that differ by no more than that, one is followed to
its end. Who has just let the other go first, though the order of their next calls does not matter, sleeps until the other does something
that matters to it (sleep sets). And what a process does next follows from the answers that it got: two orders that have led to the same
answers and the same rows go on alike.

source        P. Godefroid, Partial-Order Methods for the Verification of Concurrent Systems, 1996: sleep sets, with states that are kept
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from fake_clock import FakeClock
from headwater.settings import Settings
from headwater.store import Store
from headwater.store.backends.memory import MemoryBackend

__all__ = ["Ending", "Work", "draw_the_same", "every_order"]

Work = Callable[[Store], Any]
_Turns = tuple[int, ...]
_NOBODY = frozenset[int]()
_chance = threading.local()


@dataclass(frozen=True, slots=True)
class Ending:
    """What one order came to: what each process returned or raised, and the store, opened anew."""

    order: _Turns
    answers: tuple[Any, Any]
    store: Store


def draw_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a process the same random numbers in each order: otherwise no state is seen twice."""
    for name in ("secrets.token_hex", "secrets.token_urlsafe"):
        monkeypatch.setattr(name, lambda size: _drawn().randbytes(size).hex())
    monkeypatch.setattr("secrets.token_bytes", lambda size: _drawn().randbytes(size))
    monkeypatch.setattr("secrets.randbelow", lambda limit: _drawn().randrange(limit))
    monkeypatch.setattr("random.uniform", lambda low, high: _drawn().uniform(low, high))


def _drawn() -> random.Random:
    if not hasattr(_chance, "source"):
        _chance.source = random.Random(threading.current_thread().name)
    source: random.Random = _chance.source
    return source


def every_order(settings: Settings, prepare: Work, make_works: Callable[[], tuple[Work, Work]]) -> Iterator[Ending]:
    """The ends of all orders.

    prepare       makes what both find
    make_works    what the two do, made anew for each order
    """
    base = MemoryBackend()
    with Store(base, url="memory://", settings=settings, clock=FakeClock()) as store:
        prepare(store)
        search = _Search()
        while search.todo:
            run = _Run(_copy(base), settings, make_works())
            if search.follow(run):
                yield Ending(tuple(run.order), run.answers, run.open())


def _copy(backend: MemoryBackend) -> MemoryBackend:
    copied = MemoryBackend()
    for row in backend._references.rows.values():
        copied.create_reference(row)
    copied.write_objects(list(backend._objects.rows.values()))
    return copied


@dataclass(slots=True)
class _Search:
    """
    todo          orders to be followed: the first turns, and who sleeps after the last of them
    known         of each state, who slept when it was come to
    """

    todo: list[tuple[_Turns, frozenset[int]]] = field(default_factory=lambda: [((), _NOBODY)])
    known: dict[int, list[frozenset[int]]] = field(default_factory=dict)

    def follow(self, run: _Run) -> bool:
        """The turns of an order that is to be followed, and then the first who is awake. False: it goes on as others did."""
        told, asleep = self.todo.pop()
        for number in told:
            run.step(number)
        while not run.is_over:
            ready = run.ready()
            if self._is_known(run.state(), asleep) or not ready - asleep:
                run.leave_out()
                return False
            number = min(ready - asleep)
            if len(ready - asleep) > 1:
                other = max(ready)
                self.todo.append(((*run.order, other), run.unmoved({number}, by=other)))
            asleep = run.unmoved(asleep, by=number)
            run.step(number)
        return True

    def _is_known(self, state: int, asleep: frozenset[int]) -> bool:
        """Whether it was come to before, with nobody asleep who is awake now."""
        before = self.known.setdefault(state, [])
        if any(slept <= asleep for slept in before):
            return True
        before.append(asleep)
        return False


class _Run:
    """One order. A process rests before each of its calls until it is let go."""

    def __init__(self, backend: MemoryBackend, settings: Settings, works: tuple[Work, Work]) -> None:
        self.backend = backend
        self._settings = settings
        self.order: list[int] = []
        self._processes = [_Process(self, number, work) for number, work in enumerate(works)]
        self._rows = _hash_rows(backend)
        for process in self._processes:
            process.start()
            process.rested.acquire()

    @property
    def is_over(self) -> bool:
        return not self.ready()

    @property
    def answers(self) -> tuple[Any, Any]:
        first, second = self._processes
        return first.answer, second.answer

    def open(self, wire: _Wire | None = None) -> Store:
        backend: Any = wire or self.backend
        return Store(backend, url="memory://", settings=self._settings, clock=FakeClock())

    def ready(self) -> frozenset[int]:
        return frozenset(process.number for process in self._processes if process.next is not None)

    def state(self) -> int:
        return hash((self._rows, *(process.heard for process in self._processes)))

    def step(self, number: int) -> None:
        """Let a process make its next call, and go on to the one after it."""
        self.order.append(number)
        process = self._processes[number]
        writes = process.next is not None and process.next.is_write
        process.turn.release()
        process.rested.acquire()
        if writes:
            self._rows = _hash_rows(self.backend)

    def unmoved(self, asleep: frozenset[int] | set[int], *, by: int) -> frozenset[int]:
        """Those who may sleep on when another makes its next call."""
        call = self._processes[by].next
        assert call is not None
        nexts = {number: self._processes[number].next for number in asleep}
        return frozenset(number for number, seen in nexts.items() if seen is not None and not seen.meets(call))

    def leave_out(self) -> None:
        for process in self._processes:
            process.is_left_out = True
            process.turn.release()
        for process in self._processes:
            process.join()


@dataclass(frozen=True, slots=True)
class _Call:
    """``rows``: what it touches; None: perhaps any."""

    name: str
    arguments: tuple[Any, ...]
    rows: frozenset[Any] | None

    @property
    def is_write(self) -> bool:
        return not self.name.startswith(("read_", "scan_", "split_"))

    def meets(self, other: _Call) -> bool:
        """Whether it matters which of the two comes first."""
        if not (self.is_write or other.is_write):
            return False
        return self.rows is None or other.rows is None or not self.rows.isdisjoint(other.rows)


def _call_of(name: str, arguments: tuple[Any, ...]) -> _Call:
    return _Call(name, arguments, _ROWS[name](*arguments) if name in _ROWS else None)


_ROWS: dict[str, Callable[..., frozenset[Any]]] = {
    "read_references": lambda realm, names: frozenset((realm, name) for name in names),
    "read_objects": lambda realm, keys: frozenset((realm, key[0]) for key in keys),
    "create_reference": lambda row: frozenset([(row.realm, row.name)]),
    "create_references": lambda rows: frozenset((row.realm, row.name) for row in rows),
    "swap_reference": lambda seen, new: frozenset([(seen.realm, seen.name)]),
    "write_objects": lambda rows: frozenset((row.realm, row.id) for row in rows),
    "write_and_swap": lambda rows, seen, new: frozenset([(seen.realm, seen.name), *((row.realm, row.id) for row in rows)]),
    "insert_object": lambda row: frozenset([(row.realm, row.id)]),
    "update_object": lambda row, token: frozenset([(row.realm, row.id)]),
}


class _LeftOutError(BaseException):
    """This order goes on as another one did."""


class _Process(threading.Thread):
    """
    next          the call that it rests before; None: it is done
    heard         a hash of each call with its answer so far
    """

    def __init__(self, run: _Run, number: int, work: Work) -> None:
        super().__init__(name=f"process {number}", daemon=True)
        self.number = number
        self.next: _Call | None = None
        self.heard = 0
        self.answer: Any = None
        self.is_left_out = False
        self.turn = threading.Semaphore(0)
        self.rested = threading.Semaphore(0)
        self._run_of = run
        self._work = work

    def run(self) -> None:
        wire = _Wire(self)
        store = self._run_of.open(wire)
        store.new_id()  # who has which node is no question here
        wire.is_governed = True
        try:
            self.answer = self._work(store)
        except _LeftOutError:
            return
        except Exception as fault:  # noqa: BLE001  told by the test
            self.answer = fault
        self.next = None
        self.rested.release()

    def call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        self.next = _call_of(name, arguments)
        self.rested.release()
        self.turn.acquire()
        if self.is_left_out:
            raise _LeftOutError
        try:
            answer = self.apply(name, arguments)
        except Exception as fault:
            self.heard = hash((self.heard, name, repr(fault)))
            raise
        self.heard = hash((self.heard, name, repr(answer)))
        return answer

    def apply(self, name: str, arguments: tuple[Any, ...]) -> Any:
        return getattr(self._run_of.backend, name)(*arguments)


class _Wire:
    """A process' way to the database. A commit is one call, as it is on most databases."""

    def __init__(self, process: _Process) -> None:
        self.capabilities = MemoryBackend.capabilities
        self.is_governed = False
        self._process = process

    def close(self) -> None:
        """The database stays."""

    def before_fork(self) -> None:
        """Nothing is under way but by turns."""

    def after_fork(self, *, is_child: bool) -> None:
        """As above."""

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> Any:
        return (self._process.call if self.is_governed else self._process.apply)(name, arguments)


def _hash_rows(backend: MemoryBackend) -> int:
    return hash((frozenset(backend._references.rows.items()), frozenset(backend._objects.rows.items())))
