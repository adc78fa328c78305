"""Ctrl-C in the middle of a call on the store: wherever it hits, others go on, and the store can be closed."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from headwater.errors import UnavailableError
from headwater.store.backends.sqlite.database_file import SqliteFile
from headwater.store.stores import ForkGate

HOUSE = ("turnstile.py", "file.py", "turns.py")


class CtrlC(KeyboardInterrupt):
    """Raised where Python handles signals: at the beginning of a function, and after the call of one that is written in C."""


@contextmanager
def interruption(at: int) -> Iterator[list[str]]:
    """Raise at the ``at``-th such place in the house's code; yields the places that were passed."""
    places: list[str] = []

    def profile(frame: FrameType, event: str, called: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.endswith(HOUSE):
            places.append(f"{frame.f_code.co_qualname}:{frame.f_lineno} {getattr(called, '__name__', '')}")
            if len(places) == at:
                raise CtrlC

    sys.setprofile(profile)
    try:
        yield places
    finally:
        sys.setprofile(None)


def places_of(work: Callable[[], object]) -> int:
    with interruption(0) as places:
        work()
    return len(places)


def pass_through(turnstile: ForkGate) -> None:
    with turnstile:
        pass


def pass_and_shut(at: int) -> None:
    turnstile = ForkGate()
    with suppress(CtrlC), interruption(at):
        pass_through(turnstile)
    turnstile.shut_gate()


def test_turnstile_shuts_after_an_interruption_anywhere() -> None:
    for at in range(1, places_of(lambda: pass_through(ForkGate())) + 1):
        thread = threading.Thread(target=pass_and_shut, args=(at,), daemon=True)
        thread.start()
        thread.join(10)

        assert not thread.is_alive(), at


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SqliteFile]:
    file = SqliteFile(tmp_path / "file.db", timeout_seconds=0.5)
    file.write("set up", lambda connection: connection.execute("CREATE TABLE t (n INTEGER)"))
    yield file
    file.close()


def test_interrupted_write_leaves_the_file_to_others(file: SqliteFile) -> None:
    def write() -> None:
        file.write("insert", lambda connection: connection.execute("INSERT INTO t VALUES (1)"))

    for at in range(1, places_of(write) + 1):
        with suppress(CtrlC), interruption(at):
            write()
        failures: list[BaseException] = []

        def write_too(failures: list[BaseException] = failures) -> None:
            try:
                write()
            except BaseException as fault:  # noqa: BLE001 - whatever it is, the test shows it
                failures.append(fault)

        other = threading.Thread(target=write_too)
        other.start()
        other.join()
        assert not failures, f"after the place {at}"


def test_signal_handler_does_not_write_into_an_interrupted_write(file: SqliteFile) -> None:
    def insert(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")

    def work(connection: sqlite3.Connection) -> None:
        insert(connection)
        for handler in (file.write, file.read):
            with pytest.raises(UnavailableError, match="this thread is writing already"):
                handler("handle", insert)

    file.write("insert", work)
    file.write("insert", insert)

    assert file.read("count", lambda connection: connection.execute("SELECT count(*) FROM t").fetchone()) == (2,)


def test_transaction_that_was_left_open_ends_with_the_next_call(file: SqliteFile) -> None:
    file.read("begin", lambda connection: connection.execute("BEGIN IMMEDIATE"))

    file.write("insert", lambda connection: connection.execute("INSERT INTO t VALUES (1)"))
