"""Another Python process that makes ids as it is told, line by line: run as a program, and steered from here.

It starts from nothing, as a process in another container does, and shares only the database.
"""

from __future__ import annotations

import array
import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from headwater.errors import UnavailableError
from headwater.settings import Settings
from headwater.store import ObjectId, Store, open_store

PATIENCE = 60.0
"""Seconds within which an answer comes, unless something is broken."""


class IdMaker:
    """A process with a store open at the URL, and leases of ``lease_seconds``."""

    def __init__(self, url: str, *, lease_seconds: float = 3600.0, file: Path | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, url, str(lease_seconds), str(file or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")},
        )
        self._file = file
        assert self.answer() == "open"

    def ask(self, what: str) -> str:
        self.tell(what)
        return self.answer()

    def tell(self, what: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        assert ready, "the process says nothing"
        return self._process.stdout.readline().rstrip("\n")

    def stop(self) -> None:
        """Let it lie still, wherever it is, until ``go_on``."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._end()

    def close(self) -> None:
        """Let it close its store and end."""
        self.tell("end")
        assert self._end() == 0

    def ids(self) -> list[ObjectId]:
        """What it made and wrote into its file."""
        assert self._file is not None
        made = array.array("q")
        made.frombytes(self._file.read_bytes())
        return list(made)

    def _end(self) -> int:
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        return self._process.wait(PATIENCE)


def main(url: str, lease_seconds: float, file: str) -> None:
    settings = Settings(node_lease_seconds=lease_seconds, node_renew_seconds=lease_seconds / 4)
    with open_store(url, settings=settings) as store:
        _say("open")
        for line in sys.stdin:
            word, *rest = line.split()
            if word == "end":
                return
            try:
                done = {"one": _one, "many": _many, "ever": _ever}[word](store, file, *rest)
            except UnavailableError as fault:
                done = f"unavailable: {fault}"
            _say(done)


def _one(store: Store, file: str, at: str = "0") -> str:
    """One id, at a moment in seconds since 1970."""
    time.sleep(max(0.0, float(at) - time.time()))
    return str(store.new_id())


def _many(store: Store, file: str, count: str) -> str:
    """So many ids, half of them one by one, into the file."""
    half = int(count) // 2
    _append(file, [store.new_id() for _ in range(half)] + store.new_ids(int(count) - half))
    return count


def _ever(store: Store, file: str, seconds: str) -> str:
    """Ids without a pause, into the file, until the next line or the end of that time; says how often it got none."""
    _say("begun")
    made, refusals, end = list[ObjectId](), 0, time.monotonic() + float(seconds)
    while time.monotonic() < end and not select.select([sys.stdin], [], [], 0)[0]:
        try:
            for _ in range(1000):
                made.append(store.new_id())
        except UnavailableError:
            refusals += 1
            time.sleep(0.02)
    if time.monotonic() < end:
        sys.stdin.readline()
    _append(file, made)
    return str(refusals)


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _append(file: str, made: list[ObjectId]) -> None:
    with Path(file).open("ab") as ids:
        array.array("q", made).tofile(ids)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
