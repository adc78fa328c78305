"""``headwater import``: tables of a folder, put into a catalog by hand."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from uuid import uuid4
from xml.etree import ElementTree

import pyarrow.parquet
import pytest
from commandline import CommandLine

from headwater import Store
from headwater.api import catalog_imports as importing
from headwater.store import id_of
from headwater.tasks import TaskQueue


def write_table(folder: Path, *, location: str | None = None) -> None:
    """An Iceberg table without snapshots."""
    (folder / "metadata").mkdir(parents=True)
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
    metadata = {
        "format-version": 2,
        "table-uuid": str(uuid4()),
        "location": location or folder.as_uri(),
        "last-sequence-number": 0,
        "last-updated-ms": 1_780_000_000_000,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [schema],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
    }
    (folder / "metadata" / f"00000-{uuid4()}.metadata.json").write_text(json.dumps(metadata))


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Two tables in one namespace."""
    folder = tmp_path / "warehouse"
    for name in ("orders", "items"):
        write_table(folder / "sales" / name)
    return folder


@pytest.fixture
def lake(headwater: CommandLine, realm: str, warehouse: Path) -> str:
    """The address of a catalog whose tables may lie in the warehouse."""
    headwater.ok("catalog", "create", f"{realm}/lake", "--base-location", warehouse.as_uri())
    return f"{realm}/lake"


def test_name_of_a_folder_is_taken_as_it_is(headwater: CommandLine, realm: str, tmp_path: Path) -> None:
    folder = tmp_path / "my-lake-é" / "50%20"
    write_table(folder / "sales" / "orders", location=f"file://{folder}/sales/orders")
    headwater.ok("catalog", "create", f"{realm}/lake", "--base-location", f"file://{folder}")

    assert headwater.data("import", f"{realm}/lake", folder)["imported"] == 1


def test_tables_of_a_folder_are_imported(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    shown = headwater.data("import", lake, warehouse)

    assert (shown["imported"], shown["quarantined"]["total"]) == (2, 0)
    keys = [entry["key"] for entry in headwater.items("catalog", "tables", lake)]
    assert keys == ["sales", "sales.items", "sales.orders"]


def test_second_import_finds_everything_unchanged(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    headwater.ok("import", lake, warehouse)

    shown = headwater.data("import", lake, warehouse)

    assert (shown["imported"], shown["unchanged"], shown["commits"]["total"]) == (0, 2, 0)


def test_dry_run_writes_nothing(headwater: CommandLine, store: Store, lake: str, warehouse: Path) -> None:
    shown = headwater.data("import", lake, warehouse, "--dry-run")

    assert (shown["dryRun"], shown["imported"]) == (True, 2)
    assert headwater.ok("catalog", "tables", lake) == ""
    assert TaskQueue(store).list_tasks() == []


def test_quarantined_table_is_a_finding_with_code_8(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    (broken,) = (warehouse / "sales" / "orders" / "metadata").iterdir()
    broken.write_text("{")

    result = headwater("-o", "json", "import", lake, warehouse)

    assert result.exit_code == 8
    assert json.loads(result.stdout)["quarantined"]["shown"][0]["table"] == "sales.orders"
    assert json.loads(result.stdout)["imported"] == 1


def test_place_without_tables_is_told(headwater: CommandLine, lake: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    result = headwater("import", lake, tmp_path / "empty")

    assert result.exit_code == 0
    assert "no Iceberg table was found below file:///" in result.stderr


def test_folder_is_named_from_where_one_stands(
    headwater: CommandLine, lake: str, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(warehouse / "sales")

    assert headwater.data("import", lake, "../../warehouse")["imported"] == 2


def test_folder_beside_a_link_is_where_the_link_leads(
    headwater: CommandLine, lake: str, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "some" / "where" / "else"
    folder.mkdir(parents=True)
    (folder / "link").symlink_to(warehouse / "sales")
    monkeypatch.chdir(folder)

    assert headwater.data("import", lake, f"link/../../{warehouse.name}")["imported"] == 2


def test_patterns_choose_the_tables(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    assert headwater.data("import", lake, warehouse, "--exclude", "sales.items")["imported"] == 1


def test_patterns_that_fit_nothing_are_told_what_keys_look_like(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    told = headwater("import", lake, warehouse, "--include", "sales.*", "--namespace", "raw")

    assert "held against whole keys, such as raw.table" in told.stderr


def test_detached_import_is_a_task_that_carries_what_was_asked(
    headwater: CommandLine, store: Store, lake: str, warehouse: Path
) -> None:
    headwater.ok("import", lake, warehouse, "--detach")

    (task,) = headwater.data("task", "list", "--kind", "import")
    assert task["state"] == "WAITING"
    assert task["arguments"]["spec"]["locations"] == [warehouse.as_uri()]


def test_import_stands_in_the_log_of_runs(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    headwater.ok("import", lake, warehouse)

    (run,) = headwater.data("gc", "log", "--kind", "import")
    assert "imported 2" in run["result"]


def test_log_of_runs_tells_how_many_tables_were_quarantined(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    (broken,) = (warehouse / "sales" / "orders" / "metadata").iterdir()
    broken.write_text("{")
    headwater("import", lake, warehouse)

    (run,) = headwater.data("gc", "log", "--kind", "import")
    assert run["result"].endswith("quarantined 1")


def test_location_that_is_missing_is_not_tried_again(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    assert headwater("import", lake, warehouse / "nothing").exit_code == 3
    assert [task["state"] for task in headwater.data("task", "list")] == ["FAILED"]


def test_outcome_of_each_table_is_written_to_a_file(headwater: CommandLine, lake: str, warehouse: Path, tmp_path: Path) -> None:
    (warehouse / "sales" / "bad<b>" / "metadata").mkdir(parents=True)
    (warehouse / "sales" / "bad<b>" / "metadata" / "v1.metadata.json").write_text("{")
    (warehouse / "<script>" / "t" / "metadata").mkdir(parents=True)
    (warehouse / "<script>" / "t" / "metadata" / "v1.metadata.json").write_text('{"format-version": "<script>alert(1)"}')
    headwater("import", lake, warehouse)

    headwater.ok("import-report", lake, tmp_path / "report.parquet")
    headwater.ok("import-report", lake, tmp_path / "report.html")

    rows = pyarrow.parquet.read_table(tmp_path / "report.parquet").to_pylist()
    page = (tmp_path / "report.html").read_text()
    assert sorted(row["outcome"] for row in rows) == ["imported", "imported", "quarantined", "quarantined"]
    assert "sales.bad&lt;b&gt;" in page
    assert "bad<b>" not in page and "<script" not in page
    ElementTree.fromstring(page.partition("\n")[2])


def test_dry_run_can_leave_a_report(headwater: CommandLine, lake: str, warehouse: Path, tmp_path: Path) -> None:
    headwater.ok("import", lake, warehouse, "--dry-run", "--report", tmp_path / "report.html")

    assert "<p>realm acme · by hand · dry run: nothing was written · page made 2" in (tmp_path / "report.html").read_text()
    assert headwater.items("catalog", "tables", lake) == []


def test_report_says_whose_import_it_was(headwater: CommandLine, lake: str, warehouse: Path, tmp_path: Path) -> None:
    headwater.ok("import", lake, warehouse, "--report", tmp_path / "report.html")

    assert "<h1>Import into lake</h1>\n<p>realm acme · by hand · run of 2" in (tmp_path / "report.html").read_text()


def test_report_of_no_import_is_missing(headwater: CommandLine, lake: str, tmp_path: Path) -> None:
    assert headwater("import-report", lake, tmp_path / "report.html").exit_code == 3
    assert headwater("import-report", lake, tmp_path / "report.txt").exit_code == 2


def test_folders_are_mapped_to_keys(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    headwater.ok("import", lake, warehouse, "--path", "{schema}/{table}", "--namespace", "raw.eu")

    keys = [entry["key"] for entry in headwater.items("catalog", "tables", lake)]
    assert keys == ["raw", "raw.eu", "raw.eu.sales", "raw.eu.sales.items", "raw.eu.sales.orders"]


def test_spark_is_asked_for_by_an_option(headwater: CommandLine, store: Store, catalog: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    task = headwater.data("import", catalog, tmp_path / "empty", "--detach", "--spark")["id"]

    assert TaskQueue(store).read_task(id_of(task)).value.arguments["engine"] == "spark"


def test_import_names_who_asked_for_it(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    headwater.ok("import", lake, str(warehouse), "--author", "ada")

    newest = headwater.data("catalog", "log", lake)[0]
    assert newest["authors"] == ["ada"]
    assert set(newest["properties"]) == {"import", "task"}


def test_spark_that_cannot_run_is_refused_before_anything_is_submitted(
    url: str, store: Store, lake: str, warehouse: Path
) -> None:
    refused = CommandLine(url, {"HEADWATER_SPARK_MASTER": "off"})("import", lake, warehouse, "--spark")

    assert (refused.exit_code, "spark_master is off" in refused.stderr) == (5, True)
    assert TaskQueue(store).list_tasks() == []


@pytest.mark.parametrize(
    ("first", "second", "how"), [([], ["--spark"], "without --spark"), (["--spark"], [], "with --spark")], ids=["on", "off"]
)
def test_import_that_is_under_way_otherwise_is_refused(
    headwater: CommandLine, lake: str, warehouse: Path, first: list[str], second: list[str], how: str
) -> None:
    headwater.ok("import", lake, warehouse, "--detach", *first)

    refused = headwater("import", lake, warehouse, "--detach", *second)

    assert refused.exit_code == 5
    assert f"is under way {how}: wait for it, or cancel it" in refused.stderr


def test_fault_is_tolerated_by_its_name(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    headwater.ok("import", lake, warehouse, "--tolerate", "Inconsistent", "--dry-run")

    assert headwater("import", lake, warehouse, "--tolerate", "Unreadable").exit_code == 2


def test_import_that_another_user_asked_for_is_the_same(headwater: CommandLine, lake: str, warehouse: Path) -> None:
    words = ("import", lake, warehouse, "--detach", "--author")

    assert headwater.data(*words, "ada")["id"] == headwater.data(*words, "grace")["id"]


def test_fault_of_the_pipeline_is_no_missing_extra(
    headwater: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faulty_survey.py").write_text("from headwater.settings import nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("spark", "faulty_survey:make", importing.ENTRY_POINTS)
    monkeypatch.setattr(importing, "entry_points", lambda **_: [point])

    told = headwater("import", "acme/lake", "warehouse", "--spark")

    assert (told.exit_code, "pip install" in told.stderr) == (1, False)
    assert "cannot import name 'nothing'" in told.stderr


def test_dry_run_on_a_worker_is_usage(headwater: CommandLine) -> None:
    assert headwater("import", "acme/lake", "warehouse", "--dry-run", "--detach").exit_code == 2
