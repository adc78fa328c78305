"""The rows of a report: one for every table, as they come, whatever became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from headwater.catalogs import Catalog, ImportOptions, ImportReport, ParquetReport, ReportRow, TableClaims, import_tables
from headwater.catalogs.importer.import_report import REPORT_COLUMNS
from headwater.iceberg import AcceptedTable, QuarantineCode, QuarantinedTable, SurveyOutcome

MakeFound = Callable[..., AcceptedTable]
Import = Callable[..., tuple[ImportReport, list[ReportRow]]]


@pytest.fixture
def run(catalog: Catalog, claims: TableClaims) -> Import:
    def run(*outcomes: SurveyOutcome, **options: Any) -> tuple[ImportReport, list[ReportRow]]:
        rows: list[ReportRow] = []
        return import_tables(catalog, claims, outcomes, options=ImportOptions(**options), write=rows.append), rows

    return run


def broken(name: str) -> QuarantinedTable:
    return QuarantinedTable(directory=f"s3://lake/wh/{name}", key=(name,), code=QuarantineCode.CORRUPT, message="broken")


def test_tables_have_a_row_in_the_surveys_order(run: Import, make_found: MakeFound) -> None:
    report, rows = run(make_found("b"), broken("c"), make_found("a"), broken("d"), batch=1)

    assert [(row.key[0], row.outcome) for row in rows] == [
        ("b", "imported"),
        ("c", "quarantined"),
        ("a", "imported"),
        ("d", "quarantined"),
    ]
    assert [row.commit for row in rows if row.commit] == list(report.commits)


def test_row_tells_what_the_survey_found(run: Import, make_found: MakeFound) -> None:
    found = make_found("sales.orders", version=3)

    _, (row,) = run(found)

    assert (row.metadata_location, row.uuid, row.version, row.snapshot) == (found.metadata_location, found.uuid, 2, 3)
    assert (row.rule, row.evidence, row.kind) == ("highest number", found.evidence, "table")


def test_table_that_the_catalog_refuses_keeps_what_was_found(run: Import, make_found: MakeFound) -> None:
    run(make_found("t", version=1))

    _, (row,) = run(make_found("t", version=2))

    assert (row.outcome, row.code, row.commit) == ("quarantined", "Differs", "")
    assert row.metadata_location.endswith("v2.metadata.json")


def test_dry_run_has_the_same_rows_but_for_the_commits(run: Import, catalog: Catalog, make_found: MakeFound) -> None:
    run(make_found("t", version=1))
    outcomes = [
        make_found("sales.orders"),
        make_found("t", version=2),
        broken("x"),
        make_found("inner", place="s3://lake/wh/t/deep"),
    ]

    _, planned = run(*outcomes, dry_run=True, batch=2)
    _, done = run(*outcomes, batch=2)

    assert [(row.key, row.outcome, row.code, row.message) for row in planned] == [
        (row.key, row.outcome, row.code, row.message) for row in done
    ]
    assert [row.code for row in done] == ["", "Differs", "Corrupt", "Claimed"]
    assert not any(row.commit for row in planned)


def test_tables_are_read_a_batch_at_a_time(catalog: Catalog, claims: TableClaims, make_found: MakeFound) -> None:
    read, most = 0, 0

    def tables() -> Iterator[AcceptedTable]:
        nonlocal read
        for number in range(20):
            read += 1
            yield make_found(f"t{number:02}")

    def write(row: ReportRow) -> None:
        nonlocal read, most
        most, read = max(most, read), read - 1

    report = import_tables(catalog, claims, tables(), options=ImportOptions(batch=5), write=write)

    assert (report.imported, len(report.commits)) == (20, 4)
    assert most <= 5


def test_parquet_report_has_every_row_and_the_stated_columns(tmp_path: Path, run: Import, make_found: MakeFound) -> None:
    _, rows = run(make_found("a"), broken("c"))
    with ParquetReport(tmp_path / "report.parquet") as parquet:
        for row in rows:
            parquet.add_row(row)

    table = pyarrow.parquet.read_table(tmp_path / "report.parquet")

    assert [(field.name, str(field.type).replace("element: ", "")) for field in table.schema] == [
        (name, kind) for name, kind, _ in REPORT_COLUMNS
    ]
    assert table.column("key").to_pylist() == [["a"], ["c"]]
    assert table.column("version").to_pylist() == [2, None]


def test_parquet_report_without_rows_is_a_parquet_file(tmp_path: Path) -> None:
    with ParquetReport(tmp_path / "report.parquet"):
        pass

    assert pyarrow.parquet.read_table(tmp_path / "report.parquet").num_rows == 0
