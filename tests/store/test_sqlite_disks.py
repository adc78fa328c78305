"""SQLite's log and its disk: a log that somebody removed is noticed, and a disk that is full is no riddle."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import RefusedError, UnavailableError
from headwater.store.backends.sqlite import SqliteBackend
from specimens import LARGE, read_object, row, scan


@pytest.fixture
def backend(path: Path) -> Iterator[SqliteBackend]:
    made = SqliteBackend(path)
    yield made
    made.close()


class TestLog:
    def test_log_that_was_removed_is_noticed_before_the_next_write(self, backend: SqliteBackend, path: Path) -> None:
        backend.write_objects([row(1)])
        log_of(path).unlink()
        with pytest.raises(RefusedError, match=r"store\.db-wal: the log was removed or replaced while this store was open"):
            backend.write_objects([row(2)])

        assert read_object(backend, 1) == row(1)

    def test_log_that_was_removed_is_saved_by_a_normal_end(self, backend: SqliteBackend, path: Path) -> None:
        backend.write_objects([row(1)])
        log_of(path).unlink()
        backend.close()

        with closing(SqliteBackend(path)) as again:
            assert read_object(again, 1) == row(1)

    def test_log_that_was_replaced_is_noticed(self, backend: SqliteBackend, path: Path) -> None:
        backend.write_objects([row(1)])
        shutil.copy(log_of(path), path.with_name("copy"))
        path.with_name("copy").replace(log_of(path))

        with pytest.raises(RefusedError, match="removed or replaced"):
            backend.write_objects([row(2)])

    def test_log_that_was_removed_after_a_kill_is_noticed(self, path: Path) -> None:
        leave_behind(path)
        log_of(path).unlink()
        with pytest.raises(RefusedError, match=r"store\.db-wal: the log is not there, though .* remove store\.db-shm"):
            SqliteBackend(path)
        path.with_name("store.db-shm").unlink()

        with closing(SqliteBackend(path)) as again:
            assert read_object(again, 1) is None

    def test_store_whose_process_was_killed_opens_with_its_log(self, path: Path) -> None:
        leave_behind(path)

        with closing(SqliteBackend(path)) as again:
            assert read_object(again, 1) == row(1)

    def test_threads_and_processes_that_pass_are_no_removed_log(self, path: Path) -> None:
        with closing(SqliteBackend(path)) as first:
            for number in range(1, 6):
                with closing(SqliteBackend(path)) as second:
                    second.write_objects([row(number)])
                thread = threading.Thread(target=first.write_objects, args=([row(number + 100)],))
                thread.start()
                thread.join()

            assert len(scan(first)) == 10


class TestFullDisk:
    @pytest.mark.long
    @pytest.mark.parametrize("write", ["commit", "task"])
    def test_full_disk_says_at_once_that_nothing_happened(self, tmp_path: Path, write: str) -> None:
        told = on_a_small_disk(FILL.format(write=write), tmp_path)

        assert told["error"] == "StoreFullError", told
        assert "full: nothing was written; make room on the disk of" in told["text"]
        assert told["code"] == 4
        assert told["seconds"] < 15 / 2
        assert told["after"] == told["before"] == told["after a crash"]

    def test_database_that_may_not_grow_says_that_nothing_happened(self, backend: SqliteBackend) -> None:
        backend._file.read("limit", lambda connection: connection.execute("PRAGMA max_page_count = 10").fetchone())
        with pytest.raises(UnavailableError, match="full"):
            backend.write_objects(LARGE)

        assert scan(backend) == []
        backend.write_objects([row(1)])


FILL = """
import json, os, shutil, sys, time
from pathlib import Path
from headwater.commits import commit_change, read_head
from headwater.errors import HeadwaterError
from headwater.exits import exit_code
from headwater.index import IndexValue
from headwater.store import RealmId, RealmKey, open_store
from headwater.tasks import TaskQueue

folder, copy = Path(sys.argv[1]), Path(sys.argv[2])
def count(path):
    with open_store(f"sqlite:///{{path}}") as store:
        rows = store.rows(RealmId("acme"), RealmKey(7))
        found = read_head(rows, "main", fresh=True)
        return len(found.index("all")), [seen.value.beat for seen in TaskQueue(store).list_tasks()]

store = open_store(f"sqlite:///{{folder}}/store.db")
rows = store.rows(RealmId("acme"), RealmKey(7))
rows.ensure_reference("main")
claim = TaskQueue(store).claim_task(TaskQueue(store).submit_task("gc", realm="acme").id, "worker")
def fill(number):
    if "{write}" == "task" and number > 10:
        return claim.heartbeat()
    return commit_change(rows, "main", lambda tx: tx.index("all").put(os.urandom(400), IndexValue(None, os.urandom(4000))))
for number in range(10**6):
    began, before = time.monotonic(), (len(read_head(rows, "main").index("all")) if number else 0, [claim.task.beat])
    try:
        fill(number)
    except HeadwaterError as raised:
        fault = raised
        break
seconds = time.monotonic() - began
after = len(read_head(rows, "main", fresh=True).index("all")), [seen.value.beat for seen in TaskQueue(store).list_tasks()]
for file in folder.iterdir():
    shutil.copy(file, copy / file.name)
print(json.dumps({{"error": type(fault).__name__, "text": str(fault), "code": exit_code(fault), "seconds": seconds,
    "before": before, "after": after,    "after a crash": count(copy / "store.db")}}), flush=True)
os._exit(0)
"""


def on_a_small_disk(script: str, folder: Path) -> dict[str, Any]:
    """What a process says whose database lies on a disk of a few megabytes that this test mounts for it alone."""
    disk, copy = folder / "disk", folder / "copy"
    disk.mkdir()
    copy.mkdir()
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    command = f'mount -t tmpfs -o size=2m none "{disk}" && exec "$@"'
    if (
        shutil.which("unshare") is None
        or subprocess.run([*mount, command, "sh", "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("this machine lets nobody mount a disk of his own")
    done = subprocess.run(
        [*mount, command, "sh", sys.executable, "-c", script, str(disk), str(copy)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def leave_behind(path: Path) -> None:
    """What a process leaves that writes, and dies before it closes anything."""
    pid = os.fork()
    if not pid:
        try:
            SqliteBackend(path).write_objects([row(1)])
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
