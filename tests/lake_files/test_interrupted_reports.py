"""A report that dies, or whose database fails, at any call: no file of the lake is touched, and the next reports come to the same end."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from reported_lake import DAY, ReportedLake, open_reported_lake

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.errors import HeadwaterError
from headwater.fsck import check_store
from headwater.lake_files import FileReason
from headwater.settings import Settings
from lakes import copied, open_on
from tiers import Sample

SETTINGS = Settings(unsafe_short_graces=True, writer_grace_seconds=60, reader_grace_seconds=60)
MOST_REPORTS = 4


class Killed(BaseException):
    """Nothing may catch it: the process is gone."""


@pytest.fixture
def marked(clock: FakeClock, tmp_path: Path) -> Iterator[ReportedLake]:
    """A lake with marked files whose grace and delay are over."""
    with open_reported_lake("memory://", clock, tmp_path / "warehouse") as lake:
        lake.make_table("orders")
        lake.report()
        lake.expire("orders")
        lake.report()
        clock.advance(9 * DAY)
        yield lake


def beside(lake: ReportedLake, backend: FaultyBackend) -> ReportedLake:
    """The lake as another process has it, on a copy of the rows."""
    clock = FakeClock(lake.clock.now())
    store = open_on(backend, SETTINGS, clock)
    return ReportedLake(store, clock, lake.folder, HeadwaterCatalog.on(store, realm="acme", catalog="lake", branch="main"))


def lake_files(lake: ReportedLake) -> dict[str, bytes]:
    """The files that are not our own, with what they hold."""
    files = (file for file in lake.folder.rglob("*") if file.is_file() and "_headwater" not in file.as_posix())
    return {str(file): file.read_bytes() for file in files}


@pytest.mark.long
@pytest.mark.parametrize("is_dead", [True, False], ids=["dies", "fails once"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_report_is_made_up_for_by_the_next(
    marked: ReportedLake, before: bool, is_dead: bool, sample: Sample, tmp_path: Path
) -> None:
    saved, files = tmp_path / "saved", lake_files(marked)
    shutil.copytree(marked.folder, saved)
    for call in sample.one_in(29, itertools.count(1)):
        shutil.rmtree(marked.folder)
        shutil.copytree(saved, marked.folder)
        faulty = FaultyBackend(copied(marked.store.backend))
        lake = beside(marked, faulty)
        faulty.fail("*", at=call, times=1_000_000 if is_dead else 1, before=before, fault=Killed() if is_dead else None)
        calls = len(faulty.calls)
        with suppress(Killed, HeadwaterError):
            lake.report()
        is_over = len(faulty.calls) - calls < call
        assert lake_files(lake) == files

        after = beside(lake, FaultyBackend(faulty.backend))
        for _ in range(MOST_REPORTS):
            after.clock.advance(9 * DAY)
            after.report()
            if set(after.codes().values()) == {FileReason.DUE}:
                break
        assert set(after.codes().values()) == {FileReason.DUE}, call
        assert lake_files(after) == files
        assert check_store(after.store) == []
        if is_over:
            break
