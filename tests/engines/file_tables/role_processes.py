"""Processes that play roles on one file table, write down what they do and what they are told, and can be killed at any moment."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from table_stage import ShiftedClock, TableStage, open_orders, use_crowded_storage

from engines.model import Fault, tables_are_not_damaged
from headwater.errors import CorruptionError, HeadwaterError, UnavailableError
from headwater.files import FileTable
from headwater.store import Store, open_store

__all__ = ["RolePlayer", "RoleProcess", "TableNote", "TableRole", "notes_in"]

TableNote = dict[str, Any]
OPEN_SECONDS = 60.0


class RolePlayer:
    """The inside of such a process."""

    def __init__(self, stage: TableStage, name: str, life: int) -> None:
        self.stage = stage
        self.name = name
        self.life = life
        self.chance = random.Random(f"{stage.seed} {name} {life}")
        self.is_ending = False
        self._parent = os.getppid()
        self._journal = os.open(stage.folder / f"{name}.{life}.journal", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        use_crowded_storage(self.chance)
        if stage.mutant is not None:
            stage.mutant.infect()
        signal.signal(signal.SIGTERM, self._end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    def open_table(self) -> tuple[Store, FileTable]:
        """The store with this process' clock, and the table; waits for a database that is away."""
        clock = ShiftedClock(self.stage.shift_of(self.name, self.life))
        until = time.monotonic() + OPEN_SECONDS
        while True:
            try:
                store = open_store(self.stage.url, settings=self.stage.settings, clock=clock, create=False)
                return store, open_orders(store)
            except UnavailableError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def goes_on(self, *, pause_seconds: float) -> bool:
        """Whether there is another step to take, after a rest of about so long."""
        self.is_ending |= os.getppid() != self._parent  # the tests are gone: nobody else would end it
        if not self.is_ending:
            time.sleep(self.chance.uniform(0.5, 1.5) * pause_seconds)
        return not self.is_ending

    def note(self, what: str, **values: Any) -> None:
        os.write(self._journal, json.dumps({"player": self.name, "life": self.life, "what": what, **values}).encode() + b"\n")

    def note_faults(self, step: str, faults: Sequence[Fault]) -> None:
        for fault in faults:
            self.note("damage", step=step, fault=fault, promise=fault.promise)

    @contextlib.contextmanager
    def trying(self, step: str) -> Iterator[None]:
        """A step that may be refused in every way that the house knows, but must find no damage; what it met is noted."""
        try:
            yield
        except CorruptionError as fault:
            self.note_faults(step, tables_are_not_damaged(fault))
        except HeadwaterError as fault:
            self.note("refused", step=step, kind=type(fault).__name__, fault=str(fault)[:300])
        except Exception:  # noqa: BLE001 - the parent reads of it, and fails
            self.note("bug", step=step, fault=traceback.format_exc())

    def _end(self, number: int, frame: object) -> None:
        self.is_ending = True


TableRole = Callable[[RolePlayer], None]


class RoleProcess:
    """The outside: a process that plays a role, and another one after its death."""

    def __init__(self, stage: TableStage, role: TableRole, name: str) -> None:
        self._stage = stage
        self._role = role
        self._life = 0
        self.name = name
        self.pid = 0

    def start(self) -> None:
        """Begin another life."""
        self._life += 1
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until the child can hear it
        self.pid = os.fork()
        if not self.pid:
            self._play()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    def kill(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0

    def has_ended(self) -> bool:
        """Whether it came to an end by itself, which none does."""
        pid, _ = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.pid = 0
        return bool(pid)

    def ask_to_end(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGTERM)

    def end(self, *, until: float) -> str:
        """Wait for its end, which it was asked for; what was wrong with it, or an empty text."""
        while self.pid and time.monotonic() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return "" if status == 0 else f"{self.name} ended with status {status}: {self.said()}"
            time.sleep(0.02)
        if not self.pid:
            return ""
        os.kill(self.pid, signal.SIGUSR1)  # tells where its threads are
        time.sleep(0.3)
        self.kill()
        return f"{self.name} hung; its threads were at:\n{self.said()}"

    def said(self) -> str:
        return self._log.read_text()[-6000:]

    @property
    def _log(self) -> Path:
        return self._stage.folder / f"{self.name}.{self._life}.log"

    def _play(self) -> None:
        """In the child, which must not run the rest of the tests."""
        status = 1
        try:
            out = os.open(self._log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            sys.stdout = sys.stderr = os.fdopen(os.dup(out), "w", buffering=1)
            os.dup2(out, 1)
            os.dup2(out, 2)
            faulthandler.enable(file=out)
            faulthandler.register(signal.SIGUSR1, file=out, all_threads=True)
            self._role(RolePlayer(self._stage, self.name, self._life))
            status = 0
        except BaseException:  # noqa: BLE001
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)


def notes_in(folder: Path) -> Sequence[TableNote]:
    """Everything that was written down in any life; without lines that a death cut in two."""
    lines = [line for path in sorted(folder.glob("*.journal")) for line in path.read_bytes().split(b"\n")[:-1]]
    return [json.loads(line) for line in lines]
