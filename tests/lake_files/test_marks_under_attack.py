"""Marks of files among commits, other stores and other reports that try to slip past them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reported_lake import DAY, ROWS, ReportedLake, open_reported_lake

from fake_clock import FakeClock
from headwater.catalogs import Catalogs
from headwater.catalogs.catalog_definition import CatalogFiles
from headwater.errors import ConflictError
from headwater.lake_files import FileReason, LakeFileReport, report_files
from headwater.lake_files.dead_files import DeadFilesResult
from headwater.lake_files.report_run import FileReportRun

pytestmark = pytest.mark.long


@pytest.fixture
def lake(clock: FakeClock, tmp_path: Path) -> Iterator[ReportedLake]:
    with open_reported_lake(f"sqlite:///{tmp_path}/headwater.db", clock, tmp_path / "warehouse") as opened:
        yield opened


def test_commit_takes_up_a_marked_file_of_a_prefix(lake: ReportedLake) -> None:
    pool = lake.folder / "pool"
    Catalogs(lake.rows).update_catalog(lake.definition, files=CatalogFiles(places=(pool.as_uri(),)))
    pool.mkdir(parents=True)
    pooled = pool / "pooled.parquet"
    pq.write_table(ROWS, pooled)
    table = lake.make_table("orders", appends=1)
    table.add_files([pooled.as_uri()])
    table.overwrite(pa.table({"id": [3]}))
    lake.report()
    lake.expire("orders")
    lake.report()
    assert lake.explain(pooled).code is FileReason.IN_GRACE
    lake.client.load_table("sales.orders").add_files([pooled.as_uri()])
    lake.client.load_table("sales.orders").overwrite(pa.table({"id": [4]}))
    lake.expire("orders")
    lake.clock.advance(9 * DAY)
    lake.report()

    assert lake.codes()["pooled.parquet"] is FileReason.IN_GRACE


def test_report_that_another_one_overtook_is_refused(lake: ReportedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.make_table("orders")
    lake.report()
    lake.expire("orders")
    overtaking = iter([lake.report])
    begin = FileReportRun.begin

    def begin_slowly(run: FileReportRun, **options: bool) -> None:
        begin(run, **options)
        for report in overtaking:
            report()

    monkeypatch.setattr(FileReportRun, "begin", begin_slowly)
    with pytest.raises(ConflictError, match="another report of the files of catalog 'lake' of realm 'acme' ended meanwhile"):
        lake.report()

    assert {mark.runs for mark in lake.marks().values()} == {1}


def test_catalogs_of_one_base_location_report_apart(lake: ReportedLake) -> None:
    second = Catalogs(lake.rows).create_catalog("second", base_location=lake.folder.as_uri())
    lake.make_table("orders")
    lake.report()
    lake.expire("orders")
    lake.report()
    marks = lake.marks()
    report_files(lake.store, lake.rows, second)

    assert lake.marks() == marks != {}


def test_commit_during_a_report_keeps_its_files_from_the_plan(lake: ReportedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.make_table("orders", appends=1)
    other = lake.place("orders") / "data" / "other.parquet"
    pq.write_table(ROWS, other)
    table.add_files([other.as_uri()])
    table.overwrite(pa.table({"id": [3]}))
    lake.report()
    lake.expire("orders")
    lake.report()
    lake.clock.advance(9 * DAY)
    mark = FileReportRun.mark_and_plan

    def mark_late(run: FileReportRun, result: DeadFilesResult, **options: bool) -> LakeFileReport:
        lake.client.load_table("sales.orders").add_files([other.as_uri()])
        return mark(run, result, **options)

    monkeypatch.setattr(FileReportRun, "mark_and_plan", mark_late)
    lake.report()

    assert lake.codes()["other.parquet"] is FileReason.IN_GRACE
    assert FileReason.DUE in lake.codes().values()


@pytest.mark.parametrize("harmed", ["manifest", "list"])
def test_new_referrer_that_cannot_be_read_may_name_any_file(lake: ReportedLake, harmed: str) -> None:
    table = lake.make_table("orders", appends=1)
    other = lake.make_table("copies", appends=1)
    shared = lake.place("orders") / "data" / "shared.parquet"
    pq.write_table(ROWS, shared)
    table.add_files([shared.as_uri()])
    lake.report()
    other.add_files([shared.as_uri()])
    snapshot = other.current_snapshot()
    added = next(each for each in snapshot.manifests(other.io) if each.added_snapshot_id == snapshot.snapshot_id)
    table.overwrite(pa.table({"id": [3]}))
    lake.expire("orders")
    broken = added.manifest_path if harmed == "manifest" else snapshot.manifest_list
    Path(broken.removeprefix("file://")).write_bytes(b"broken")
    read = lake.report()

    assert "shared.parquet" not in lake.codes()
    assert {str(each.code) for each in read.report.blocked} == {"ReferrerUnreadable"}
