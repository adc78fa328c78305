from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwater.catalogs import CATALOGS, CLAIMS, Catalogs, TableClaims
from headwater.catalogs.catalog_definition import ImportSpec
from headwater.catalogs.importer.import_commit import import_tables, survey_scope
from headwater.iceberg import AcceptedTable, QuarantinedTable, SurveyOutcome, SurveyScope, survey_in_process
from headwater.store import RealmStore

SCRIPT = Path(__file__).parents[2] / "examples" / "warehouse.py"
MARK = ".made-by-headwater-example"


@pytest.fixture
def outcomes(warehouse: Path) -> list[SurveyOutcome]:
    return survey_in_process(SurveyScope(locations=[str(warehouse)], allowed=[str(warehouse)]).checked())


def make(directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), str(directory)], check=False, capture_output=True, text=True)


def test_eleven_of_its_twelve_tables_are_sound(outcomes: list[SurveyOutcome]) -> None:
    assert len([outcome for outcome in outcomes if isinstance(outcome, AcceptedTable)]) == 11


def test_other_two_folders_are_quarantined_for_their_reasons(outcomes: list[SurveyOutcome]) -> None:
    codes = {".".join(row.key): str(row.code) for row in outcomes if isinstance(row, QuarantinedTable)}

    assert codes == {"finance.ledger": "Corrupt", "finance.budget_2023": "NoMetadata"}


@pytest.mark.long
def test_imported_tables_can_be_opened_by_pyiceberg(outcomes: list[SurveyOutcome]) -> None:
    from pyiceberg.table import StaticTable

    found = next(outcome for outcome in outcomes if isinstance(outcome, AcceptedTable))
    snapshot = StaticTable.from_metadata(found.metadata_location).current_snapshot()

    assert snapshot is not None
    assert snapshot.snapshot_id == found.snapshot_id


@pytest.mark.long
def test_catalog_takes_it_in_by_its_own_specification(warehouse: Path, rows: RealmStore) -> None:
    for name in (CATALOGS, CLAIMS):
        rows.ensure_reference(name)
    definition = Catalogs(rows).create_catalog("lake", base_location=warehouse.as_uri())
    scope = survey_scope(definition, ImportSpec(name="initial", locations=(str(warehouse),), exclude=("web.*",)))

    report = import_tables(Catalogs(rows).open_catalog("lake"), TableClaims(rows), survey_in_process(scope))

    assert (report.imported, report.namespaces, report.codes()) == (7, 2, {"Corrupt": 1, "NoMetadata": 1})


@pytest.mark.long
def test_warehouse_is_made_anew_only_where_made_before(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()

    assert make(tmp_path).returncode == 5
    assert (tmp_path / "precious").exists()
    (tmp_path / MARK).touch()
    assert make(tmp_path).returncode == 0
    assert not (tmp_path / "precious").exists()
