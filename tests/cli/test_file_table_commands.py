"""``headwater file-table``: what a person does with a file table, from its first row to its last file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import CommandLine

from headwater import Store
from headwater.files import FileScope, list_file_tables
from headwater.files.open_references import open_file_references
from headwater.jobs import COLLECT_FILES
from headwater.realms import RealmRegistry
from headwater.tasks import TaskQueue, TaskState

COLUMNS = ("--column", "id=long", "--column", "name=string", "--key", "id")
Write = Callable[..., Path]


@pytest.fixture
def table(headwater: CommandLine, realm: str, tmp_path: Path) -> str:
    """A file table of two leaves, below and from 100."""
    headwater.ok("file-table", "create", f"{realm}/orders", "--location", tmp_path / "lake", *COLUMNS, "--split-point", "100")
    return "orders"


@pytest.fixture
def write_rows(tmp_path: Path) -> Write:
    """Write a Parquet file with rows of these ids."""

    def write(*ids: int) -> Path:
        path = tmp_path / f"rows-{ids[0]}-{len(ids)}.parquet"
        pq.write_table(pa.table({"id": list(ids), "name": [f"n{each}" for each in ids]}), path)
        return path

    return write


@pytest.fixture
def unreferenced(headwater: CommandLine, table: str, write_rows: Write) -> list[str]:
    """Two files that were merged into another one."""
    files = []
    for ids in ((1, 2), (2, 3)):
        files += [file["file"] for file in headwater.data("file-table", "ingest", "acme/orders", write_rows(*ids))]
    headwater.ok("file-table", "compact", "acme/orders", "--strategy", "all")
    return files


@pytest.fixture
def impatient(url: str) -> CommandLine:
    """The same store, where unreferenced files stay for a millisecond."""
    return CommandLine(url, {"HEADWATER_FILES_DELETE_DELAY": "1ms"})


def test_created_table_is_listed_and_shown(headwater: CommandLine, table: str) -> None:
    (listed,) = headwater.data("file-table", "list", "acme")
    shown = headwater.data("file-table", "show", "acme/orders")

    assert (listed["name"], listed["state"], listed["keyColumn"]) == ("orders", "ACTIVE", "id")
    assert (shown["leaves"], shown["depth"], shown["rows"], shown["files"]) == (2, 1, 0, 0)
    assert {name: shown[name] for name in listed} == listed


def test_key_column_is_never_null(headwater: CommandLine, table: str) -> None:
    (listed,) = headwater.data("file-table", "list", "acme")

    assert {column["name"]: column["nullable"] for column in listed["columns"]} == {"id": False, "name": True}


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (("--column", "id=long", "--key", "key"), 5, "there is no column 'key' for the key; columns are id"),
        (("--column", "id=double", "--key", "id"), 5, "column 'id' of type double cannot be the key"),
        (("--column", "id=long", "--column", "at=varchar", "--key", "id"), 5, "varchar"),
        (("--column", "id=long", "--column", "at=double", "--key", "id", "--sort", "at"), 5, "at"),
        (("--column", "id=long", "--key", "id", "--sort", "at"), 5, "there is no column 'at' to sort by"),
        (("--column", "id", "--key", "id"), 2, "'id' is not of the form NAME=VALUE"),
        (("--column", "id=long", "--key", "id", "--split-point", "many"), 5, "'many' is not a row key of type long"),
    ],
)
def test_table_without_a_sound_key_is_refused(
    headwater: CommandLine, store: Store, realm: str, tmp_path: Path, options: tuple[str, ...], code: int, reason: str
) -> None:
    result = headwater("file-table", "create", f"{realm}/orders", "--location", tmp_path, *options)

    assert (result.exit_code, reason in result.stderr) == (code, True)
    assert list_file_tables(RealmRegistry(store).open_realm(realm)) == []


def test_ingested_rows_are_found_by_key(headwater: CommandLine, table: str, write_rows: Write) -> None:
    (file,) = headwater.data("file-table", "ingest", "acme/orders", write_rows(150, 3, 99))

    assert (file["rows"], file["partitions"]) == (3, 2)
    assert headwater.data("file-table", "query", "acme/orders", "--key", "99") == [{"id": 99, "name": "n99"}]
    ranged = headwater.data("file-table", "query", "acme/orders", "--from", "99", "--column", "id")
    assert ranged == [{"id": 99}, {"id": 150}]


def test_ingest_that_was_done_before_adds_nothing(headwater: CommandLine, table: str, write_rows: Write) -> None:
    ingest = ("file-table", "ingest", "acme/orders", write_rows(1), "--request", "monday")
    headwater.ok(*ingest)
    repeated = headwater(*ingest)

    assert "the ingest 'monday' was done before: nothing was added" in repeated.stderr
    assert headwater.data("file-table", "show", "acme/orders")["rows"] == 1


def test_ingest_of_no_parquet_file_is_refused(headwater: CommandLine, table: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no rows")
    result = headwater("file-table", "ingest", "acme/orders", tmp_path / "notes.txt")

    assert result.exit_code == 5
    assert "notes.txt is no Parquet file" in result.stderr


def test_ingest_of_a_missing_file_is_not_found(headwater: CommandLine, table: str, tmp_path: Path) -> None:
    result = headwater("file-table", "ingest", "acme/orders", tmp_path / "nothing.parquet")

    assert (result.exit_code, result.stderr) == (3, f"headwater: there is no file file://{tmp_path}/nothing.parquet\n")


def test_query_tells_of_rows_beyond_its_limit(headwater: CommandLine, table: str, write_rows: Write, tmp_path: Path) -> None:
    headwater.ok("file-table", "ingest", "acme/orders", write_rows(*range(10)))
    result = headwater("file-table", "query", "acme/orders", "--limit", "4")

    assert result.stdout.splitlines()[0].split() == ["id", "name"]
    assert len(result.stdout.splitlines()) == 5
    assert "6 more rows" in result.stderr
    headwater.ok("file-table", "query", "acme/orders", "--into", tmp_path / "all.parquet")
    assert pq.read_table(tmp_path / "all.parquet").num_rows == 10


def test_large_leaf_is_split_as_the_plan_says(headwater: CommandLine, table: str, write_rows: Write) -> None:
    headwater.ok("file-table", "ingest", "acme/orders", write_rows(*range(40)))
    split = ("file-table", "split", "acme/orders", "--leaf-rows", "20")
    plan, done = headwater.data(*split, "--dry-run"), headwater.data(*split)

    assert (plan["dryRun"], plan["leaves"], plan["large"]) == (True, 2, done["large"])
    assert [(leaf["leaf"], leaf["unsplit"]) for leaf in done["large"]] == [("r0", None)]
    assert done["leaves"] > 2
    assert len(headwater.data("file-table", "query", "acme/orders")) == 40


def test_compaction_keeps_every_row(headwater: CommandLine, unreferenced: list[str]) -> None:
    rows = headwater.data("file-table", "query", "acme/orders", "--column", "id")
    shown = headwater.data("file-table", "show", "acme/orders")

    assert [row["id"] for row in rows] == [1, 2, 2, 3]
    assert (shown["files"], shown["unreferencedFiles"]) == (1, 2)
    assert [file["file"] for file in shown["unreferenced"]] == sorted(unreferenced)


def test_show_lists_no_more_than_its_limit(headwater: CommandLine, unreferenced: list[str]) -> None:
    shown = headwater.data("file-table", "show", "acme/orders", "--unreferenced", "1")

    assert (shown["unreferencedFiles"], len(shown["unreferenced"])) == (2, 1)


def test_collection_is_planned_and_done(
    headwater: CommandLine, impatient: CommandLine, unreferenced: list[str], tmp_path: Path
) -> None:
    collect = ("file-table", "collect", "acme/orders")
    plan, marked = headwater.data(*collect, "--dry-run"), headwater.data(*collect)
    deleted = impatient.data(*collect)

    assert (plan["dryRun"], plan["marked"], marked["marked"], marked["waiting"]) == (True, 2, 2, 2)
    assert (deleted["deleted"], deleted["waiting"]) == (2, 0)
    assert len(list((tmp_path / "lake").rglob("*.parquet"))) == 1
    assert len(headwater.data("file-table", "query", "acme/orders")) == 4


def test_collection_is_a_task_and_leaves_a_run(headwater: CommandLine, unreferenced: list[str]) -> None:
    headwater.ok("file-table", "collect", "acme/orders")
    (task,) = headwater.data("task", "list")
    (run,) = headwater.data("gc", "log", "--kind", "file-gc")

    assert (task["kind"], task["subject"], task["state"]) == ("file-gc", "orders", "SUCCEEDED")
    assert (run["subject"], run["counts"]["marked"]) == ("orders", 2)
    assert headwater.data("file-table", "show", "acme/orders")["lastCollection"] == run["finished"]


def test_idle_collection_by_hand_succeeds(headwater: CommandLine, table: str) -> None:
    assert headwater.data("file-table", "collect", "acme/orders")["marked"] == 0


def test_detached_collection_is_left_to_a_worker(headwater: CommandLine, store: Store, unreferenced: list[str]) -> None:
    headwater.ok("file-table", "collect", "acme/orders", "--detach")
    (waiting,) = TaskQueue(store).list_tasks(kind=COLLECT_FILES)

    assert waiting.value.state is TaskState.WAITING
    assert headwater.data("file-table", "show", "acme/orders")["nextCollection"] is not None


def test_file_is_explained_by_its_name(headwater: CommandLine, impatient: CommandLine, unreferenced: list[str]) -> None:
    name = unreferenced[0].rpartition("/")[2]
    explain = ("file-table", "explain", "acme/orders", name)

    assert headwater.data(*explain)["state"] == "unreferenced"
    headwater.ok("file-table", "collect", "acme/orders")
    marked = headwater.data(*explain)
    assert (marked["file"], marked["state"], marked["goes"] is not None) == (unreferenced[0], "marked", True)
    impatient.ok("file-table", "collect", "acme/orders")
    assert headwater(*explain).exit_code == 3


def test_export_has_the_tree_and_every_reference(headwater: CommandLine, unreferenced: list[str], tmp_path: Path) -> None:
    headwater.ok("file-table", "export", "acme/orders", tmp_path / "orders.jsonl")
    said = headwater.ok("file-table", "export", "acme/orders", tmp_path / "orders.parquet")
    about, *rows = map(json.loads, (tmp_path / "orders.jsonl").read_text().splitlines())
    parquet = pq.read_table(tmp_path / "orders.parquet")

    assert (about["table"], about["splits"]) == ("orders", {"r": "100"})
    assert [(row["partition"], row["low"], row["high"], row["rows"]) for row in rows] == [("r0", None, "100", 4)]
    assert parquet.to_pylist() == rows
    assert json.loads(parquet.schema.metadata[b"headwater.file-table"]) == about
    assert said == f"1 reference of file table 'orders' written to {tmp_path / 'orders.parquet'}\n"


def test_export_to_another_kind_of_file_is_a_usage_error(headwater: CommandLine, table: str, tmp_path: Path) -> None:
    assert headwater("file-table", "export", "acme/orders", tmp_path / "orders.csv").exit_code == 2


@pytest.mark.parametrize("command", [("show",), ("ingest", "rows"), ("query",), ("collect",), ("explain", "x"), ("compact",)])
def test_table_that_is_not_there_is_not_found(
    headwater: CommandLine, realm: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    result = headwater("file-table", command[0], f"{realm}/orders", *command[1:])

    assert result.exit_code == 3
    assert "realm 'acme' has no file table 'orders'" in result.stderr


def test_scope_of_the_references_is_made(headwater: CommandLine, store: Store, table: str) -> None:
    rows = RealmRegistry(store).open_realm("acme")
    (definition,) = list_file_tables(rows)

    assert open_file_references(store, FileScope(rows.key, definition.id)).is_empty()


def test_deletion_is_shown_and_confirmed(headwater: CommandLine, table: str, write_rows: Write, tmp_path: Path) -> None:
    headwater.ok("file-table", "ingest", "acme/orders", write_rows(1, 200))
    refused = headwater("file-table", "delete", "acme/orders")

    assert (refused.exit_code, "--confirm acme/orders" in refused.stderr) == (5, True)
    assert len(headwater.data("file-table", "query", "acme/orders")) == 2
    done = headwater.data("file-table", "delete", "acme/orders", "--confirm", "acme/orders")
    assert (done["tables"], done["files"], done["kept"]) == (1, 1, 0)
    assert list((tmp_path / "lake").rglob("*.parquet")) == []
    assert headwater.data("file-table", "list", "acme") == []


def test_name_of_a_deleted_table_is_free(headwater: CommandLine, table: str, tmp_path: Path) -> None:
    headwater.ok("file-table", "delete", "acme/orders", "--confirm", "acme/orders")
    headwater.ok("file-table", "create", "acme/orders", "--location", tmp_path / "lake", *COLUMNS)

    assert headwater.data("file-table", "show", "acme/orders")["leaves"] == 1
