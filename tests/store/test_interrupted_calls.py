"""Ctrl-C in the middle of a call on the store: wherever it hits, others go on, and the store can be closed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from headwater.store.backends.sqlite.file import SqliteFile
from headwater.store.turnstile import Turnstile

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


def pass_through(turnstile: Turnstile) -> None:
    with turnstile:
        pass


def test_turnstile_shuts_after_an_interruption_anywhere() -> None:
    for at in range(1, places_of(lambda: pass_through(Turnstile())) + 1):
        turnstile = Turnstile()
        with suppress(CtrlC), interruption(at) as places:
            pass_through(turnstile)

        assert turnstile.shut(wait_seconds=0), places


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
