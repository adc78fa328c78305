"""One client in a process of its own: ``python history_process.py URL CLIENT SEED OPERATIONS JOURNAL``.

Says ``ready`` once its store is open, begins when it is sent a line, and writes its journal entry by entry, so that what a killed
process leaves says everything up to the call that it was in.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from cas_clients import Entry, Work, run_client

from headwater.store import open_backend
from headwater.store.urls import parse_url

__all__ = ["begin", "journal_of", "start"]

TESTS = Path(__file__).parents[2]
"""Where ``engines`` is imported from."""


def start(url: str, client: int, work: Work, journal: Path) -> subprocess.Popen[bytes]:
    """A client's process, which waits for ``begin``."""
    words = [url, str(client), str(work.seed), str(work.operations), str(journal)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))}
    return subprocess.Popen([sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def begin(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Let all of them begin together."""
    there = list(processes)
    for process in there:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", "the process ended before it was ready"
    for process in there:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()


def journal_of(path: Path) -> list[Entry]:
    """What was noted; the last entry may be cut off where its writer was killed."""
    entries: list[Entry] = []
    with path.open("rb") as file:
        while True:
            try:
                entries.append(pickle.load(file))
            except (EOFError, pickle.UnpicklingError):
                return entries


def main(url: str, client: str, seed: str, operations: str, journal: str) -> None:
    backend = open_backend(parse_url(url))
    with Path(journal).open("ab", buffering=0) as file:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        run_client(backend, int(client), Work(int(seed), int(operations)), lambda entry: _append(file, entry))
    backend.close()


def _append(file: object, entry: Entry) -> None:
    file.write(pickle.dumps(entry))  # type: ignore[attr-defined]  one write: what a killed process wrote stays


if __name__ == "__main__":
    main(*sys.argv[1:])
