"""What becomes of SQLite's faults: what a caller may try again, what a person must change, what nobody knows, what cannot be ours."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forked_children import run_forked
from headwater.errors import (
    CorruptionError,
    HeadwaterError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.store import ScanSplit, open_store
from headwater.store.backends.sqlite import SqliteBackend
from headwater.store.backends.sqlite.database_file import WriterTurns
from specimens import LARGE, REALM, find_reference, in_parts, read_back, read_object, reference, row, scan, scan_names


@pytest.fixture
def backend(path: Path) -> Iterator[SqliteBackend]:
    """One that waits for a tenth of a second."""
    made = SqliteBackend(path, timeout_seconds=0.1)
    yield made
    made.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach; those of pytest are for its own user alone."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-"))
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


def told(work: Callable[[], Any]) -> tuple[str, str]:
    """The kind and the words of the error that it raises, for a child to tell its parent."""
    try:
        work()
    except HeadwaterError as fault:
        return type(fault).__name__, str(fault)
    return "", ""


def execute(path: Path, *statements: str) -> None:
    """What another program does to the file."""
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


class TestBusy:
    def test_file_that_another_process_locks_is_unavailable_and_nothing_happened(
        self, backend: SqliteBackend, path: Path
    ) -> None:
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnavailableError, match="locked"):
            backend.write_objects([row(1)])
        blocker.close()

        assert scan(backend) == []
        backend.write_objects([row(1)])

    def test_commit_to_a_locked_file_is_unavailable_and_does_nothing(self, backend: SqliteBackend, path: Path) -> None:
        backend.create_reference(reference())
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnavailableError, match="locked"):
            backend.write_and_swap([row(1)], reference(), reference(pointer=1, version=6))
        blocker.close()

        assert (scan(backend), find_reference(backend)) == ([], reference())
        backend.write_and_swap([row(1)], reference(), reference(pointer=1, version=6))

    def test_readers_are_not_held_up_by_a_writer(self, backend: SqliteBackend, path: Path) -> None:
        backend.write_objects([row(1)])
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        found = read_object(backend, 1)
        blocker.close()

        assert found == row(1)

    def test_thread_that_waits_too_long_for_the_others_is_told(self, backend: SqliteBackend) -> None:
        inside, leave = threading.Event(), threading.Event()

        def write_slowly(connection: sqlite3.Connection) -> None:
            inside.set()
            leave.wait(10)

        thread = threading.Thread(target=backend._file.write, args=("wait", write_slowly))
        thread.start()
        inside.wait(10)
        with pytest.raises(UnavailableError, match=r"other threads were writing for 0\.1 seconds"):
            backend.write_objects([row(1)])
        leave.set()
        thread.join()

        backend.write_objects([row(1)])

    @pytest.mark.parametrize("text", ["never", "0s", "-1s", ""])
    def test_time_that_is_none_is_refused(self, path: Path, text: str) -> None:
        with pytest.raises(RefusedError, match="'timeout'"):
            open_store(f"sqlite:///{path}?timeout={text}")

    def test_url_says_how_long_to_wait(self, path: Path) -> None:
        with open_store(f"sqlite:///{path}?timeout=50ms") as store:
            blocker = sqlite3.connect(path, isolation_level=None)
            blocker.execute("BEGIN IMMEDIATE")
            with pytest.raises(UnavailableError):
                store.backend.write_objects([row(1)])
            blocker.close()

            assert isinstance(store.backend, SqliteBackend) and store.backend._file._timeout == 0.05


class TestFull:
    def test_full_database_is_unavailable_and_nothing_happened(self, backend: SqliteBackend) -> None:
        backend.write_objects([row(1)])
        backend._file.read("limit", lambda connection: connection.execute("PRAGMA max_page_count = 10").fetchall())
        with pytest.raises(UnavailableError, match="full"):
            backend.write_objects(LARGE)

        assert [found.id for found in scan(backend)] == [1]
        backend.write_objects(LARGE)  # by a new connection, which knows of no limit
        assert read_back(backend, LARGE) == LARGE

    @pytest.mark.parametrize("spare", [0, 5_000, 100_000])
    def test_commit_that_fails_is_unknown_and_whole_or_nothing(self, path: Path, spare: int) -> None:
        first = SqliteBackend(path)
        first.write_objects([row(1)])

        def write(_: int) -> tuple[str, str]:
            backend = SqliteBackend(path)
            size = path.with_name("store.db-wal").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + spare, size + spare))
            return told(lambda: backend.write_objects(LARGE))

        first.close()
        [(kind, text)] = run_forked(1, write)
        again = SqliteBackend(path)
        there = [found for found in read_back(again, LARGE) if found is not None]

        assert (kind, there in ([], LARGE)) == ("UnknownOutcomeError", True)
        assert "store.db: write objects: commit" in text
        again.write_objects(LARGE)
        again.close()

    def test_log_that_cannot_grow_before_the_commit_is_unavailable(self, path: Path) -> None:
        def write(_: int) -> tuple[str, str]:
            backend = SqliteBackend(path)
            backend.write_objects([row(1)])
            backend._file.read("spill", lambda connection: connection.execute("PRAGMA cache_size = 10").fetchall())
            size = path.with_name("store.db-wal").stat().st_size + 5_000
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            return told(lambda: backend.write_objects(LARGE))

        assert run_forked(1, write)[0][0] == "UnavailableError"
        again = SqliteBackend(path)
        assert [found.id for found in scan(again)] == [1]
        again.close()

    def test_too_many_open_files_may_pass(self, path: Path) -> None:
        SqliteBackend(path).close()

        def work(_: int) -> tuple[str, str]:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
            return told(lambda: SqliteBackend(path))

        [(kind, text)] = run_forked(1, work)
        assert (kind, "too many files open" in text) == ("UnavailableError", True)


class TestRights:
    """Root may do everything, so a child becomes somebody else."""

    def as_nobody(self, work: Callable[[], Any]) -> tuple[str, str]:
        def child(_: int) -> tuple[str, str]:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            return told(work)

        [answer] = run_forked(1, child)
        return answer

    def open_and_write(self, path: Path) -> None:
        backend = SqliteBackend(path, timeout_seconds=0.2)
        backend.write_objects([row(2)])

    @pytest.mark.parametrize(
        ("file_mode", "folder_mode", "reason"),
        [
            (0o444, 0o777, "may not read and write it"),
            (0o000, 0o777, "may not read and write it"),
            (0o666, 0o555, "may not write to its folder, where the log stands beside the file"),
        ],
    )
    def test_file_without_the_rights_is_refused_with_what_to_change(
        self, open_folder: Path, file_mode: int, folder_mode: int, reason: str
    ) -> None:
        path = open_folder / "store.db"
        made = SqliteBackend(path)
        made.write_objects([row(1)])
        made.close()
        path.chmod(file_mode)
        open_folder.chmod(folder_mode)
        kind, text = self.as_nobody(lambda: self.open_and_write(path))

        assert kind == "RefusedError"
        assert f"{reason}: change its owner or mode" in text

    def test_folder_that_takes_no_new_file_is_refused(self, open_folder: Path) -> None:
        open_folder.chmod(0o555)
        kind, text = self.as_nobody(lambda: self.open_and_write(open_folder / "store.db"))

        assert (kind, "may not write to its folder" in text) == ("RefusedError", True)

    def test_folder_in_place_of_the_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(RefusedError, match="it is a folder"):
            SqliteBackend(tmp_path)


class TestForeignFiles:
    def test_file_that_is_no_database_is_unreadable_and_left_alone(self, path: Path) -> None:
        path.write_bytes(b"These are not the bytes of a database. " * 100)
        with pytest.raises(CorruptionError, match=r"store\.db"):
            SqliteBackend(path)

        assert path.read_bytes().startswith(b"These are not")

    def test_another_programs_database_is_refused_and_left_alone(self, path: Path) -> None:
        execute(path, "CREATE TABLE refs (a)", "CREATE TABLE songs (b)")
        with pytest.raises(RefusedError, match="tables: refs, songs"):
            SqliteBackend(path)

        connection = sqlite3.connect(path)
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (2,)
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)
        connection.close()

    def test_database_that_only_has_our_version_number_is_refused(self, path: Path) -> None:
        execute(path, "CREATE TABLE songs (b)", "PRAGMA user_version = 1")
        with pytest.raises(RefusedError, match="another program"):
            SqliteBackend(path)

    def test_tables_with_other_columns_are_unreadable(self, path: Path) -> None:
        execute(path, "CREATE TABLE refs (a)", "CREATE TABLE objs (b)", "PRAGMA user_version = 1")
        backend = SqliteBackend(path)
        with pytest.raises(CorruptionError, match="no such column"):
            find_reference(backend)
        backend.close()

    def test_schema_from_the_future_is_refused_and_left_alone(self, path: Path) -> None:
        SqliteBackend(path).close()
        execute(path, "PRAGMA user_version = 99")
        before = path.read_bytes()
        with pytest.raises(RefusedError, match=r"schema 99, this one knows 1\): upgrade"):
            SqliteBackend(path)

        assert path.read_bytes() == before

    def test_damaged_file_is_unreadable(self, path: Path) -> None:
        made = SqliteBackend(path)
        made.write_objects(LARGE)
        made.close()
        content = path.read_bytes()
        path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
        backend = SqliteBackend(path)
        for call in (lambda: scan(backend), lambda: read_back(backend, LARGE), lambda: backend.write_objects([row(1)])):
            with pytest.raises(CorruptionError, match=r"store\.db"):
                call()
        backend.close()

    def test_file_that_was_cut_off_is_unreadable(self, path: Path) -> None:
        made = SqliteBackend(path)
        made.write_objects(LARGE)
        made.close()
        os.truncate(path, 20_480)
        with pytest.raises(CorruptionError, match=r"store\.db"):
            SqliteBackend(path)


class TestForeignRows:
    @pytest.mark.parametrize(
        "change",
        [
            "recent = x'000102'",
            "moves = x'0001020304050607'",
            "recent = 'words'",
            "pointer = 'words'",
            "pointer = 1.5",
            "version = x'01'",
            "created = 'now'",
            "deleted = 'never'",
        ],
    )
    def test_reference_with_foreign_values_is_unreadable(self, backend: SqliteBackend, path: Path, change: str) -> None:
        backend.create_references([reference("a"), reference("main")])
        execute(path, f"UPDATE refs SET {change} WHERE name = 'main'")
        with pytest.raises(CorruptionError, match=r"store\.db: table refs: the row of realm key 10, 'main' was not written"):
            find_reference(backend)

        assert find_reference(backend, "a") == reference("a")

    @pytest.mark.parametrize("change", ["pointer = 'words'", "version = 2.5", "created = x'00'", "name = x'6d61'"])
    def test_scan_of_references_tells_foreign_values(self, backend: SqliteBackend, path: Path, change: str) -> None:
        backend.create_references([reference("a"), reference("main"), reference("z")])
        execute(path, f"UPDATE refs SET {change} WHERE name = 'main'")
        with pytest.raises(CorruptionError, match="table refs: the row of realm key 10"):
            scan_names(backend)

    @pytest.mark.parametrize("change", ["value = 'text'", "type = x'00'", "created = 'now'", "token = x'00'", "parts = 'many'"])
    def test_object_with_foreign_values_is_unreadable(self, backend: SqliteBackend, path: Path, change: str) -> None:
        backend.write_objects([row(1), row(2), row(3)])
        execute(path, f"UPDATE objs SET {change} WHERE id = 2")
        for call in (lambda: read_object(backend, 2), lambda: read_back(backend, [row(1), row(2)])):
            with pytest.raises(CorruptionError, match="table objs: the row of realm key 10, 2 was not written"):
                call()

        assert read_back(backend, [row(1), row(3)]) == [row(1), row(3)]

    @pytest.mark.parametrize("change", ["type = x'00'", "created = 'now'", "token = x'00'", "parts = 'many'", "part = 'first'"])
    def test_scan_of_objects_tells_foreign_values(self, backend: SqliteBackend, path: Path, change: str) -> None:
        backend.write_objects([row(1), row(2), row(3)])
        execute(path, f"UPDATE objs SET {change} WHERE id = 2")
        with pytest.raises(CorruptionError, match="table objs: the row of realm key 10, 2"):
            scan(backend)

    def test_text_that_is_no_utf_8_is_unreadable(self, backend: SqliteBackend, path: Path) -> None:
        backend.write_objects([row(1)])
        execute(path, "UPDATE objs SET type = CAST(x'ff' AS TEXT)")
        with pytest.raises(CorruptionError):
            read_object(backend, 1)


def test_killed_writer_leaves_whole_calls(path: Path) -> None:
    SqliteBackend(path).close()
    started = threading.Event()

    def write(_: int) -> None:
        backend = SqliteBackend(path)
        for number in range(1_000_000):
            backend.write_objects(in_parts(number, *[b"x" * 900] * 20))

    child = os.fork()
    if not child:
        try:
            write(0)
        finally:
            os._exit(0)
    while not started.wait(0.05):
        backend = SqliteBackend(path)
        if len(backend.scan_objects(ScanSplit(REALM), None, 200)) == 200:
            started.set()
        backend.close()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    backend = SqliteBackend(path)

    assert len(scan(backend)) % 20 == 0
    backend.write_objects([row(1 << 40)])
    backend.close()


def test_killed_committer_leaves_whole_commits(path: Path) -> None:
    first = SqliteBackend(path)
    first.create_reference(reference(pointer=None, version=1))
    first.close()

    def commit_for_ever() -> None:
        backend, seen = SqliteBackend(path), reference(pointer=None, version=1)
        for number in range(1, 1_000_000):
            new = reference(pointer=number, version=number + 1)
            backend.write_and_swap([*in_parts(number, b"x" * 3000, b"y" * 3000), row(number + (1 << 40))], seen, new)
            seen = new

    child = os.fork()
    if not child:
        try:
            commit_for_ever()
        finally:
            os._exit(0)
    backend = SqliteBackend(path)
    while (find_reference(backend) or reference()).version < 50:
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = find_reference(backend)
    objects = {(made.id, made.part) for made in scan(backend)}

    assert found is not None
    assert found.version == (found.pointer or 0) + 1
    assert objects == {
        place for number in range(1, found.version) for place in ((number, 0), (number, 1), (number + (1 << 40), 0))
    }
    backend.close()


class TestTurns:
    def test_waiter_goes_on_as_soon_as_the_other_is_done(self, path: Path) -> None:
        backend = SqliteBackend(path, timeout_seconds=20)
        blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        blocker.execute("BEGIN IMMEDIATE")
        threading.Timer(0.05, lambda: blocker.execute("ROLLBACK")).start()
        backend.write_objects([row(1)])
        blocker.close()
        backend.close()

    def test_waiter_lets_others_go_first_only_once(self, path: Path) -> None:
        turns = WriterTurns(timeout_seconds=0.001)
        mine, other = (sqlite3.connect(path, isolation_level=None, timeout=0) for _ in range(2))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            turns.begin_turn(mine)
        other.execute("ROLLBACK")
        courtesies = []
        for has_written in (False, True, True, True):
            turns.begin_turn(mine)
            mine.execute("ROLLBACK")
            turns.end_turn(has_written=has_written)
            courtesies.append(turns.is_courteous)
        mine.close()
        other.close()

        assert courtesies == [False, True, False, False]


class TestCost:
    def test_page_costs_the_same_everywhere_in_a_realm(self, backend: SqliteBackend) -> None:
        for realm in (REALM - 1, REALM, REALM + 1):
            backend.write_objects([row(number, realm=realm, value=b"") for number in range(5000)])
        steps = 0

        def count() -> None:
            nonlocal steps
            steps += 1

        def cost(split: ScanSplit[Any], after: Any) -> int:
            nonlocal steps
            steps = 0
            assert len(backend.scan_objects(split, after, 10)) == 10
            return steps

        backend._file.read("watch", lambda connection: connection.set_progress_handler(count, 10))
        for split in (ScanSplit(REALM), ScanSplit(REALM, (REALM, 10, 0), (REALM, 4990, 0)), ScanSplit()):
            assert cost(split, (REALM, 4900, 0)) < 2 * cost(split, (REALM, 20, 0)) + 5

    def test_new_rows_pay_for_one_look_at_what_they_replace(self, backend: SqliteBackend) -> None:
        statements: list[str] = []
        backend._file.read("watch", lambda connection: connection.set_trace_callback(statements.append))
        backend.write_objects([row(number) for number in range(100)])
        fresh = [statement.split()[0] for statement in statements]
        statements.clear()
        backend.write_objects([row(number) for number in range(100)])

        assert fresh == ["BEGIN", "SELECT", "INSERT", "COMMIT"]
        assert {statement.split()[0] for statement in statements} == {"BEGIN", "SELECT", "INSERT", "DELETE", "COMMIT"}


def test_commit_is_one_transaction_and_who_is_beaten_writes_nothing(backend: SqliteBackend) -> None:
    statements: list[str] = []
    backend.create_reference(reference())
    backend._file.read("watch", lambda connection: connection.set_trace_callback(statements.append))
    backend.write_and_swap([row(1), row(2)], reference(), reference(pointer=2, version=6))
    made = [statement.split()[0] for statement in statements]
    statements.clear()
    with pytest.raises(SwapConflictError):
        backend.write_and_swap([row(3), row(4)], reference(), reference(pointer=4, version=6))

    assert made == ["BEGIN", "UPDATE", "SELECT", "INSERT", "COMMIT"]
    assert [statement.split()[0] for statement in statements] == ["BEGIN", "UPDATE", "COMMIT"]


def test_unknown_outcome_is_settled_by_looking(path: Path) -> None:
    """A COMMIT that fails in this process: the next call has a connection that works."""
    backend = SqliteBackend(path)
    backend.write_objects([row(1)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.with_name("store.db-wal").stat().st_size + 1000, hard))
    try:
        with pytest.raises(UnknownOutcomeError):
            backend.write_objects(LARGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert [found.id for found in scan(backend)] in ([1], [1, *(made.id for made in LARGE)])
    backend.write_objects(LARGE)
    backend.close()


def test_file_that_was_removed_is_not_written_until_back(backend: SqliteBackend, path: Path) -> None:
    away = path.with_name("away.db")
    path.rename(away)
    with pytest.raises(RefusedError, match="the file was removed while this store was open"):
        backend.write_objects([row(1)])
    away.rename(path)
    backend.write_objects([row(2)])

    assert (read_object(backend, 1), read_object(backend, 2)) == (None, row(2))


def test_file_that_was_replaced_is_not_written(backend: SqliteBackend, path: Path) -> None:
    shutil.copy(path, path.with_name("copy.db"))
    path.with_name("copy.db").replace(path)

    with pytest.raises(RefusedError, match="the file was replaced while this store was open"):
        backend.write_objects([row(1)])


def test_file_removed_in_the_middle_takes_no_commit(backend: SqliteBackend, path: Path) -> None:
    def work(connection: sqlite3.Connection) -> None:
        path.rename(path.with_name("away.db"))

    with pytest.raises(RefusedError, match="the file was removed"):
        backend._file.write("write", work)


def test_late_thread_does_not_read_the_file_in_its_place(backend: SqliteBackend, path: Path) -> None:
    backend.write_objects([row(1)])
    path.rename(path.with_name("away.db"))
    answers: list[tuple[str, str]] = []
    thread = threading.Thread(target=lambda: answers.append(told(lambda: read_object(backend, 1))))
    thread.start()
    thread.join()

    assert [kind for kind, _ in answers] == ["RefusedError"]
