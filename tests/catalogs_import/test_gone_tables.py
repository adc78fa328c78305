"""Tables whose files are gone, dropped from the catalog by an import, while others change it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.catalogs import Catalog, ContentKey, IcebergTable, ImportOptions, ImportReport, Put, ReportRow, TableClaims
from headwater.catalogs.importer.import_commit import import_tables
from headwater.errors import HeadwaterError
from headwater.iceberg import AcceptedTable, SurveyScope

MakeFound = Callable[..., AcceptedTable]
GONE = [ContentKey.of(f"t{number}") for number in range(4)]


class StopError(HeadwaterError):
    """Somebody cancelled."""


@pytest.fixture
def lake(tmp_path: Path, catalog: Catalog, make_found: MakeFound) -> AcceptedTable:
    """Four tables whose files are gone, in a place with one that is there: that one."""
    place = tmp_path.as_uri()
    there = [Put(key, IcebergTable(metadata_location=f"{place}/{key}/metadata/v1.metadata.json")) for key in GONE]
    catalog.commit(None, there)
    return make_found("alive", place=place)


@pytest.fixture
def sync(lake: AcceptedTable, tmp_path: Path, catalog: Catalog, claims: TableClaims) -> Callable[..., ImportReport]:
    """Imports, and drops what is gone; ``rows`` gets what it tells."""

    def run(rows: list[ReportRow], *, batch: int = 500, **calls: Callable[..., None]) -> ImportReport:
        scope = SurveyScope(locations=[tmp_path.as_uri()], allowed=[tmp_path.as_uri()]).checked()
        options = ImportOptions(mode="sync", scope=scope, drops_gone=True, batch=batch)
        return import_tables(catalog, claims, [lake], options=options, write=rows.append, **calls)  # type: ignore[arg-type]

    return run


Sync = Callable[..., ImportReport]


@pytest.mark.parametrize("at", ["before the head is read", "within the commit"])
def test_table_changed_meanwhile_keeps_no_other_table(sync: Sync, catalog: Catalog, at: str) -> None:
    rows: list[ReportRow] = []
    calls = iter([at == "before the head is read", at == "within the commit"])
    held = catalog.get_content(None, GONE[1])
    assert isinstance(held, IcebergTable)
    changed = IcebergTable(id=held.id, metadata_location="s3://lake/t/v2.metadata.json")

    def change() -> None:
        if len(rows) == 1 and next(calls, False):
            catalog.commit(None, [Put(GONE[1], changed, held)])

    report = sync(rows, fence=change)

    assert [row.outcome for row in rows] == ["imported", "dropped", "gone", "dropped", "dropped"]
    assert "because it changed while the import ran" in rows[2].message
    assert (report.dropped, catalog.get_content(None, GONE[0])) == (3, None)


def test_drop_is_of_bounded_size(sync: Sync) -> None:
    rows: list[ReportRow] = []

    report = sync(rows, batch=3)

    assert (report.dropped, len(report.commits)) == (4, 3)
    assert len({row.commit for row in rows}) == 3


def test_progress_report_may_stop_a_drop(sync: Sync, catalog: Catalog) -> None:
    def stop(done: int, total: int, unit: str) -> None:
        if catalog.get_content(None, GONE[0]) is None:
            raise StopError

    with pytest.raises(StopError):
        sync([], batch=3, progress=stop)

    assert [catalog.get_content(None, key) is None for key in GONE] == [True, True, True, False]
