"""What the SQLite backend promises beyond the contract: one file, many threads, many processes."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from notes import Counter, Note

from faulty_backend import FaultyBackend
from forked_children import run_forked
from headwater.clock import SystemClock
from headwater.errors import RefusedError, SwapConflictError
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Store, open_store
from headwater.store.backends.sqlite import SqliteBackend

ACME = RealmId("acme"), RealmKey(5)


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


def pragma(store: Store, name: str) -> object:
    assert isinstance(store.backend, SqliteBackend)
    return store.backend._file.read("look", lambda connection: connection.execute(f"PRAGMA {name}").fetchone()[0])


def count_up(rows: RealmStore, times: int) -> None:
    """Increment the counter by compare-and-swap, however often others are faster."""
    done = 0
    while done < times:
        seen = rows.read_versioned(ObjectId(1), Counter)
        try:
            rows.update_object(seen, Counter(count=seen.value.count + 1))
            done += 1
        except SwapConflictError:
            continue


def test_store_survives_being_closed(url: str) -> None:
    with open_store(url) as store:
        store.rows(*ACME).write_objects([(ObjectId(1), Note(text="hello"))])
    with open_store(url) as store:
        assert store.rows(*ACME).read_object(ObjectId(1), Note) == Note(text="hello")


def test_only_the_owner_may_read_a_new_file_and_its_log(url: str, path: Path) -> None:
    before = os.umask(0o022)
    try:
        with open_store(url) as store:
            store.rows(*ACME).write_objects([(ObjectId(1), Note(text="hello"))])
            assert {oct(file.stat().st_mode & 0o777) for file in path.parent.glob(f"{path.name}*")} == {"0o600"}
    finally:
        os.umask(before)


def test_mode_that_a_person_gave_a_file_stays(url: str, path: Path) -> None:
    path.touch(mode=0o640)
    path.chmod(0o640)
    with open_store(url):
        assert path.stat().st_mode & 0o777 == 0o640


def test_writes_are_synced_and_go_through_a_log(url: str) -> None:
    with open_store(url) as store:
        assert (pragma(store, "journal_mode"), pragma(store, "synchronous")) == ("wal", 2)


def test_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="does not exist"):
        open_store(f"sqlite:///{tmp_path}/absent/store.db")


def test_connections_of_ended_threads_are_closed(url: str) -> None:
    with open_store(url) as store:
        for _ in range(20):
            thread = threading.Thread(target=store.system.is_empty)
            thread.start()
            thread.join()

        assert isinstance(store.backend, SqliteBackend)
        assert len(store.backend._file._open) <= 2


@pytest.mark.long
def test_ten_processes_set_the_same_file_up_at_once(url: str) -> None:
    def work(number: int) -> None:
        with open_store(url) as store:
            store.rows(*ACME).write_objects([(ObjectId(number + 1), Note(number=number))])

    run_forked(10, work)
    with open_store(url) as store:
        found = store.rows(*ACME).read_many([ObjectId(number + 1) for number in range(10)], Note)

    assert found == [Note(number=number) for number in range(10)]


def test_file_set_up_by_another_between_two_looks_is_ours(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(sqlite3.Connection):
        """Somebody else sets the file up after the first look at its version."""

        def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
            found = super().execute(statement, values)
            if "user_version" in statement:
                monkeypatch.undo()
                SqliteBackend(path).close()
            return found

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Slow))
    SqliteBackend(path).close()

    assert path.stat().st_size


def test_parent_and_children_lose_nothing_after_a_fork(url: str) -> None:
    with open_store(url) as store:
        rows = store.rows(*ACME)
        rows.insert_object(ObjectId(1), Counter())
        run_forked(3, lambda _: count_up(rows, 30), meanwhile=lambda: count_up(rows, 30))

        assert rows.read_versioned(ObjectId(1), Counter).value.count == 120


def test_forked_child_inherits_no_connection_and_its_parent_goes_on(url: str) -> None:
    with open_store(url) as store:
        assert isinstance(store.backend, SqliteBackend)
        store.system.is_empty()
        inherited = run_forked(1, lambda _: len(store.backend._file._open))

        assert inherited == [0]
        assert store.system.is_empty()


def test_forked_child_starts_with_an_empty_cache(url: str) -> None:
    with open_store(url) as store:
        rows = store.rows(*ACME)
        keys = rows.write_objects([(ObjectId(1), Note())])
        rows.delete_unchanged(keys)
        store.cache.put_object(rows.key, [(ObjectId(1), Note())], store.cache.ticket())  # as a thread might that read it before

        assert rows.find_object(ObjectId(1), Note) == Note()
        assert run_forked(1, lambda _: rows.find_object(ObjectId(1), Note) is None) == [True]


def test_child_that_closes_the_store_does_not_disturb_the_parent(url: str) -> None:
    with open_store(url) as store:
        rows = store.rows(*ACME)
        rows.write_objects([(store.new_id(), Note())])
        run_forked(2, lambda _: (store.new_id(), store.close())[1])
        rows.write_objects([(store.new_id(), Note())])

        assert sum(len(batch) for batch in rows.scan_objects()) == 2


def test_parent_that_closes_the_store_keeps_its_childs_writes(url: str) -> None:
    store = open_store(url)
    rows = store.rows(*ACME)
    rows.write_objects([(ObjectId(1), Note())])
    closed_read, closed_write = os.pipe()

    def work(_: int) -> None:
        rows.write_objects([(ObjectId(2), Note())])
        os.read(closed_read, 1)
        rows.write_objects([(ObjectId(3), Note())])

    def close_and_tell() -> None:
        store.close()
        os.write(closed_write, b"!")

    run_forked(1, work, meanwhile=close_and_tell)
    with open_store(url) as again:
        assert None not in again.rows(*ACME).read_many([ObjectId(1), ObjectId(2), ObjectId(3)], Note)


def test_fork_waits_for_a_store_that_another_thread_is_opening(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up, has_begun = SqliteBackend._set_up, threading.Event()

    def set_up_slowly(backend: SqliteBackend, connection: sqlite3.Connection) -> None:
        set_up(backend, connection)
        has_begun.set()
        time.sleep(0.3)

    monkeypatch.setattr(SqliteBackend, "_set_up", set_up_slowly)
    thread = threading.Thread(target=lambda: open_store(url).close())
    thread.start()
    has_begun.wait(10)

    def write(number: int) -> int:
        with open_store(f"{url}?timeout=5s") as store:
            return int(store.new_id())

    ids = run_forked(2, write)
    thread.join()

    assert len(set(ids)) == 2


def test_fork_waits_for_the_writes_of_other_threads(url: str) -> None:
    with open_store(url) as store:
        rows = store.rows(*ACME)
        rows.insert_object(ObjectId(1), Counter())
        threads = [threading.Thread(target=count_up, args=(rows, 25)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            run_forked(1, lambda _: count_up(rows, 5))
        for thread in threads:
            thread.join()

        assert rows.read_versioned(ObjectId(1), Counter).value.count == 75


def test_stores_that_share_a_backend_can_fork(faults: FaultyBackend, settings: Settings) -> None:
    stores = [Store(faults, url="memory://", settings=settings, clock=SystemClock()) for _ in range(2)]

    assert run_forked(1, lambda _: [store.new_id() > 0 for store in stores]) == [[True, True]]
