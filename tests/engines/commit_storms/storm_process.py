"""Processes of their own that add on one reference from several threads, and write down what they were told. Some are killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from callers import at_once
from counters import ADD, Answer, killed, tell
from grounds import REALM

from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmStore, Store, open_store

__all__ = ["THREADS", "StormingProcess", "rows_in"]

THREADS = 3
_PATIENT = Settings(commit_timeout_seconds=60)


def rows_in(store: Store) -> RealmStore:
    rows = store.rows(RealmId("acme"), REALM)
    rows.ensure_reference("main")
    return rows


class StormingProcess:
    """A forked child with a store of its own; each of its threads adds so often. What it was told is in ``journal``, line by line."""

    def __init__(self, url: str, journal: Path, name: str, commits: int) -> None:
        self._journal = journal
        self._name = name
        self._begun = time.monotonic_ns()
        self.pid = os.fork()
        if not self.pid:
            self._run(url, commits)

    def _run(self, url: str, commits: int) -> None:
        """In the child, which must not run the rest of the tests."""
        status = 1
        try:
            with open_store(url, settings=_PATIENT) as store:
                rows = rows_in(store)
                out = os.open(self._journal, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

                def work(thread: int) -> None:
                    for _ in range(commits):
                        told = tell(rows, thread)
                        os.write(
                            out, f"{thread} {told.called} {told.returned} {told.kind} {told.number} {told.commit_id}\n".encode()
                        )

                at_once([lambda thread=thread: work(thread) for thread in range(THREADS)])  # type: ignore[misc]
                status = 0
        except BaseException as fault:  # noqa: BLE001
            print(f"{self._name}: {fault!r}", file=sys.stderr)  # noqa: T201
        finally:
            os._exit(status)

    def answers(self) -> list[Answer]:
        """What was written down so far, without a line that the end cut in two."""
        if not self._journal.exists():
            return []
        lines = self._journal.read_bytes().split(b"\n")[:-1]
        fields = [line.decode().split() for line in lines]
        return [
            Answer(f"{self._name}/{thread}", ADD, int(called), int(returned), kind, int(number), ObjectId(int(commit_id)))
            for thread, called, returned, kind, number, commit_id in fields
        ]

    def kill_after(self, answers: int) -> None:
        """Kill it, as kill -9 does, once it has been told so much."""
        deadline = time.monotonic() + 30
        while len(self.answers()) < answers and time.monotonic() < deadline:
            time.sleep(0.0005)
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> list[Answer]:
        """What its callers were told; each thread of one that was killed may have added one more."""
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status):
            return [*self.answers(), *(killed(f"{self._name}/{thread}", self._begun) for thread in range(THREADS))]
        assert os.WEXITSTATUS(status) == 0, f"{self._name} failed"
        return self.answers()
