"""Actors: processes of their own with a store of their own, a shifted clock and a bad line to the database. They can be killed and stopped.

What an actor does and is told stands in its journal, line by line, before and after; a line that its death cut in two is none.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torture_clock import FastClock, Timeline

from faulty_backend import FaultyBackend
from headwater.errors import CorruptionError, HeadwaterError, UnknownOutcomeError
from headwater.realms import CredentialsHash
from headwater.settings import Settings
from headwater.store import Store, open_backend
from headwater.store.urls import parse_url

__all__ = ["Actor", "ActorProcess", "Note", "Role", "Stage", "notes_of"]

Note = dict[str, Any]

LOST_ANSWER: dict[str, Any] = {"before": False}
LOST_REQUEST: dict[str, Any] = {"fault": UnknownOutcomeError("injected: the request was lost")}
AWAY: dict[str, Any] = {"before": True}
WRITES = ("write_and_swap", "swap_reference", "write_objects", "insert_object", "update_object", "delete_objects", "*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What all actors of one torture share.

    root          hashed credentials for the realms that are made on the way: hashing them is slow on purpose
    fault_share   how many of an actor's steps meet a fault of the database
    """

    url: str
    folder: Path
    seed: int
    timeline: Timeline
    settings: Settings
    root: CredentialsHash
    fault_share: float = 0.15


class Actor:
    """The inside of an actor's process."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.name = name
        self.chance = random.Random(f"{stage.seed} {name}")
        self.clock = FastClock(stage.timeline, shift_seconds=self.chance.uniform(0, 0.95) * stage.settings.clock_bound_seconds)
        self.faults = FaultyBackend(open_backend(parse_url(stage.url)), is_atomic=self.chance.random() < 0.5)
        self.store = Store(self.faults, url=stage.url, settings=stage.settings, clock=self.clock)  # type: ignore[arg-type]
        self.is_ending = False
        self._parent = os.getppid()
        self._journal = os.open(stage.folder / f"{name}.journal", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        signal.signal(signal.SIGTERM, self._end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    def goes_on(self, *, pause_seconds: float) -> bool:
        """Whether there is another step to take, after a rest of about so many seconds of the machine."""
        self.is_ending |= os.getppid() != self._parent  # the tests are gone: nobody else would end it
        if not self.is_ending:
            time.sleep(self.chance.uniform(0.2, 1.8) * pause_seconds)
        return not self.is_ending

    def note(self, what: str, **values: Any) -> None:
        os.write(
            self._journal, json.dumps({"actor": self.name, "time": self.clock.now(), "what": what, **values}).encode() + b"\n"
        )

    @contextlib.contextmanager
    def trying(self, what: str, *, may_be_gone: bool = False) -> Iterator[None]:
        """A step that may fail in every way that the house knows, and in no other; what it met is noted.

        may_be_gone   what is read may be deleted meanwhile: then damage is none
        """
        self._disturb()
        try:
            yield
        except CorruptionError as fault:
            self.note("refused" if may_be_gone else "damage", step=what, fault=str(fault))
        except HeadwaterError as fault:
            self.note("refused", step=what, kind=type(fault).__name__, fault=str(fault))
        except Exception:  # noqa: BLE001 - the parent reads of it, and fails
            self.note("bug", step=what, fault=traceback.format_exc())

    def in_threads(self, count: int, work: Callable[[int], None]) -> None:
        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):  # short waits: a signal is heard between them
            threads[0].join(0.1) if threads[0].is_alive() else time.sleep(0.05)

    def _disturb(self) -> None:
        if self.chance.random() < self.stage.fault_share:
            kind = self.chance.choice((LOST_ANSWER, LOST_REQUEST, AWAY))
            self.faults.fail(self.chance.choice(WRITES), at=self.chance.randint(1, 4), **kind)
        self.faults.calls.clear()

    def _end(self, number: int, frame: object) -> None:
        self.is_ending = True


Role = Callable[[Actor], None]


class ActorProcess:
    """The outside: a process that plays a role, and another one after its death."""

    def __init__(self, stage: Stage, role: Role, name: str) -> None:
        self._stage = stage
        self._role = role
        self._name = name
        self._lives = 0
        self.pid = 0

    def __str__(self) -> str:
        return f"{self._name}.{self._lives} (process {self.pid})"

    def start(self) -> None:
        """Begin another life."""
        self._lives += 1
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until the child can hear it
        self.pid = os.fork()
        if not self.pid:
            self._play(f"{self._name}.{self._lives}")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def end(self, *, until: float) -> str:
        """Wait for its end, which it was asked for; what was wrong with it, or an empty text."""
        while time.monotonic() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return "" if status == 0 else f"{self} ended with status {status}: see {self.log}"
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGUSR1)  # tells where its threads are
        time.sleep(0.3)
        self.kill()
        return f"{self} hung; its threads were at:\n{self.log.read_text()[-6000:]}"

    def ask_to_end(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    @property
    def log(self) -> Path:
        return self._stage.folder / f"{self._name}.{self._lives}.log"

    def _play(self, name: str) -> None:
        """In the child, which must not run the rest of the tests."""
        status = 1
        try:
            self.pid = os.getpid()
            out = os.open(self.log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            sys.stdout = sys.stderr = os.fdopen(os.dup(out), "w", buffering=1)
            os.dup2(out, 1)
            os.dup2(out, 2)
            faulthandler.enable(file=out)
            faulthandler.register(signal.SIGUSR1, file=out, all_threads=True)
            actor = Actor(self._stage, name)
            self._role(actor)
            actor.store.close()
            status = 0
        except BaseException:  # noqa: BLE001
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)


def notes_of(folder: Path) -> Sequence[Note]:
    """Everything that was written down in any life, by file; without lines that a death cut in two."""
    lines = [line for path in sorted(folder.glob("*.journal")) for line in path.read_bytes().split(b"\n")[:-1]]
    return [json.loads(line) for line in lines]
