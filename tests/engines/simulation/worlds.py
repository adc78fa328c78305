"""A world of one process: a database, a clock that is moved, and actors of whom one runs at a time. The seed decides who, and what fails.

Every call to the database is a point where another actor may go on, where the answer or the request may be lost, where the caller may be
stopped for hours, or where its process dies. Threads only carry the actors: they pass one baton, so that a seed always ends the same way.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ledgers import Ledger

from headwater.clock import Micros
from headwater.errors import UnavailableError, UnknownOutcomeError
from headwater.settings import Settings
from headwater.store import ObjectRow, ReferenceRow, Store
from headwater.store.backends.memory import MemoryBackend

__all__ = ["Actor", "DiedError", "Luck", "World"]

START = 1_780_000_000_000_000
_READS = ("read_references", "read_objects", "scan_references", "scan_objects", "split_references", "split_objects")
_BULK = ("write_objects", "delete_objects")
_LATE_SECONDS = 30.0
_STOPS = (5.0, 70.0, 400.0, 1500.0, 7200.0)
_NAP_SECONDS = 1.0
_LINES = 400


class DiedError(BaseException):
    """The process is gone. Nothing may catch it but who starts the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Luck:
    """How likely each thing is at a call to the database.

    stays         that the same actor goes on
    fails         that a write fails in one of its ways; reads do a quarter as often
    stops         that the caller is stopped before it, and as likely after it
    naps          that the caller is held up for a moment before it writes, as long as others need for many calls: what it decided by
                  may not hold any more
    """

    stays: float
    fails: float
    dies: float
    stops: float
    naps: float


class World:
    """Holds the baton, the time and the truth.

    is_atomic     the database writes and swaps in one call
    """

    def __init__(self, seed: int, backend: MemoryBackend, settings: Settings, *, is_atomic: bool, luck: Luck) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.backend = backend
        self.settings = settings
        self.is_atomic = is_atomic
        self.luck = luck
        self.steps = 0
        self.now = START
        self.actors: list[Actor] = []
        self.lines: list[str] = []
        self.ledger = Ledger(backend, settings)
        self._late: list[tuple[int, Callable[[], object]]] = []
        self._over = threading.Lock()
        self._over.acquire()

    def tick(self) -> int:
        """The number of the step: a clock for journals on which no two moments are the same."""
        self.steps += 1
        return self.steps

    def note(self, line: str) -> None:
        self.lines.append(f"{self.steps:>6} {(self.now - START) / 1e6:>10.3f}s {line}")

    def run(self) -> None:
        """Until all actors are done."""
        for actor in self.actors:
            actor.start()
        self._next().go.release()
        self._over.acquire()
        for actor in self.actors:
            actor.join()
        self.settle()

    def settle(self) -> None:
        """What is still on its way arrives; from now on nothing fails."""
        self.luck = Luck(stays=1, fails=0, dies=0, stops=0, naps=0)
        self._arrive(at=self.now + 10**15)

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * 1e6)

    def pass_on(self, actor: Actor) -> None:
        """A point where another may go on."""
        self.steps += 1
        following = self._next(actor)
        if following is not actor:
            following.go.release()
            actor.go.acquire()

    def leave(self, actor: Actor) -> None:
        """This one has nothing more to do."""
        actor.is_done = True
        if all(one.is_done for one in self.actors):
            self._over.release()
        else:
            self._next().go.release()

    def _next(self, current: Actor | None = None) -> Actor:
        alive = [actor for actor in self.actors if not actor.is_done]
        if current is not None and current.wakes <= self.now and self.rng.random() < self.luck.stays:
            return current
        self.now = max(self.now, min(actor.wakes for actor in alive))
        self._arrive(at=self.now)
        return self.rng.choice([actor for actor in alive if actor.wakes <= self.now])

    def _arrive(self, *, at: int) -> None:
        """What was sent long ago, and given up by its sender, takes effect."""
        due = [late for late in self._late if late[0] <= at]
        self._late = [late for late in self._late if late[0] > at]
        for _, effect in sorted(due, key=lambda late: late[0]):
            effect()

    # the database

    def call(self, actor: Actor, name: str, arguments: tuple[Any, ...]) -> Any:
        """One call of an actor, and what may become of it."""
        actor.require_alive()
        self.now += self.rng.randrange(500, 20_000)
        if self.rng.random() < self.luck.stops:
            seconds = self.rng.choice(_STOPS)
            self.note(f"{actor.name} is stopped for {seconds:g} s before {name}")
            actor.wakes = self.now + round(seconds * 1e6)
        elif name not in _READS and self.rng.random() < self.luck.naps:
            actor.wakes = self.now + round(self.rng.expovariate(1 / _NAP_SECONDS) * 1e6)
        self.pass_on(actor)
        if self.rng.random() < self.luck.dies:
            self._die(actor, name, arguments)
        if self.rng.random() * (4 if name in _READS else 1) < self.luck.fails:
            self._fail(actor, name, arguments)
        answer = self._apply(actor, name, arguments)
        if self.rng.random() < self.luck.stops:  # the answer lies there unread
            actor.wakes = self.now + round(self.rng.choice(_STOPS) * 1e6)
            self.pass_on(actor)
        return answer

    def _apply(self, actor: Actor, name: str, arguments: tuple[Any, ...]) -> Any:
        if name == "write_objects":
            rows, *are_new = arguments
            answer = self.backend.write_objects(rows, are_new=are_new == [True])
        else:
            answer = getattr(self.backend, name)(*arguments)
        if name not in _READS:
            line = self.ledger.record(name, arguments, self.now)
            if line:
                self.note(f"{actor.name} {line}")
        return answer

    def _die(self, actor: Actor, name: str, arguments: tuple[Any, ...]) -> None:
        is_done = name not in _READS and self.rng.random() < 0.5
        self.note(f"{actor.name} dies {'after' if is_done else 'before'} {name}")
        actor.is_dead = True
        if is_done:
            self._apply_quietly(actor, name, arguments)
        raise DiedError

    def _fail(self, actor: Actor, name: str, arguments: tuple[Any, ...]) -> None:
        if name in _READS:
            raise UnavailableError("the simulated database does not answer")
        kind = self.rng.choice(("away", "request", "answer", "answer", "late", "torn"))
        self.note(f"{actor.name} {name}: {kind}")
        if kind == "away":
            raise UnavailableError("the simulated database is away")
        if kind == "torn" and name in _BULK and len(arguments[0]) > 1:
            some = [one for one in arguments[0] if self.rng.random() < 0.5]
            self._apply_quietly(actor, name, (some, *arguments[1:]))
        elif kind == "late" and not _has_tokens(name, arguments):
            at = self.now + round(self.rng.uniform(0.1, _LATE_SECONDS) * 1e6)
            self._late.append((at, partial(self._apply_quietly, actor, name, arguments)))
        elif kind == "answer":
            self._apply_quietly(actor, name, arguments)
        raise UnknownOutcomeError(f"the simulated database lost {kind}")

    def _apply_quietly(self, actor: Actor, name: str, arguments: tuple[Any, ...]) -> None:
        try:
            self._apply(actor, name, arguments)
        except Exception as fault:  # noqa: BLE001  told to nobody: the sender has given up
            self.note(f"{actor.name} {name} had no effect: {fault}")

    def story(self) -> str:
        left_out = len(self.lines) - _LINES
        return "\n".join([f"seed {self.seed}"] + ([f"... {left_out} lines"] if left_out > 0 else []) + self.lines[-_LINES:])


def _has_tokens(name: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a call writes updateable objects without a condition: that must not arrive later than its repetition."""
    return name in ("write_objects", "write_and_swap") and any(row.token is not None for row in arguments[0])


class Actor(threading.Thread):
    """A machine that goes through its work, with one process after another: when one dies, the next begins with the next piece."""

    def __init__(self, world: World, name: str, work: Callable[[Actor], None], *, shift_seconds: float = 0.0) -> None:
        super().__init__(name=name, daemon=True)
        self.world = world
        self.clock = ActorClock(self, shift_seconds)
        self.go = threading.Lock()
        self.go.acquire()
        self.wakes = world.now
        self.is_dead = False
        self.is_done = False
        self.deaths = 0
        self.bug: BaseException | None = None
        self._work = work
        self._store: Store | None = None
        world.actors.append(self)

    @property
    def store(self) -> Store:
        """The process' own; another one after each death."""
        if self._store is None:
            backend: Any = Wire(self)
            self._store = Store(backend, url="memory://", settings=self.world.settings, clock=self.clock)
        return self._store

    def run(self) -> None:
        self.go.acquire()
        try:
            self._work(self)
        except BaseException as bug:  # noqa: BLE001  told by the test
            self.bug = bug
        self.world.leave(self)

    def attempt(self, piece: Callable[[], object]) -> bool:
        """One piece of work; False when the process died in it."""
        try:
            piece()
        except DiedError:
            self.is_dead = False
            self.deaths += 1
            self._store = None
            return False
        return True

    def rest(self, seconds: float) -> None:
        self.wakes = self.world.now + round(seconds * 1e6)
        self.world.pass_on(self)

    def require_alive(self) -> None:
        if self.is_dead:
            raise DiedError


class ActorClock:
    """The world's time, shifted; its steps back are hidden by ``now``, as a machine's clock does."""

    def __init__(self, actor: Actor, shift_seconds: float) -> None:
        self._actor = actor
        self.shift = round(shift_seconds * 1e6)
        self._last = 0

    def now(self) -> Micros:
        self._last = max(self._last, self.wall())
        return Micros(self._last)

    def wall(self) -> Micros:
        return Micros(self._actor.world.now + self.shift)

    def monotonic(self) -> float:
        return (self._actor.world.now - START) / 1e6

    def sleep(self, seconds: float) -> None:
        self._actor.require_alive()
        self._actor.rest(seconds)


class Wire:
    """A process' way to the database."""

    def __init__(self, actor: Actor) -> None:
        world = actor.world
        self.capabilities = world.backend.capabilities._replace(atomic_commits=world.is_atomic)
        self._actor = actor
        self._alone = threading.Lock()

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        if self._actor.world.is_atomic:
            self._call("write_and_swap", rows, seen, new)
        else:
            self.write_objects(rows, are_new=True)
            self._call("swap_reference", seen, new)

    def write_objects(self, rows: Sequence[ObjectRow], *, are_new: bool = False) -> None:
        self._call("write_objects", rows, are_new)

    def close(self) -> None:
        """The database stays."""

    def before_fork(self) -> None:
        """A process that forks, perhaps in another test, does not wait for actors whose play is over."""

    def after_fork(self, *, is_child: bool) -> None:
        """As above."""

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> Any:
        with self._alone:  # several threads of one process make one call after the other
            return self._actor.world.call(self._actor, name, arguments)
