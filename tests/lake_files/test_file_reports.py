"""A report of a catalog's files: what is dead is marked, due after grace and delay, planned, and explained. Nothing is deleted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from reported_lake import DAY, ROWS, ReportedLake, open_reported_lake

from fake_clock import FakeClock
from headwater.catalogs import Catalogs, ContentKey, Put
from headwater.catalogs.content import IcebergTable
from headwater.catalogs.file_marks import FILE_MARKS, TAKEN
from headwater.commits import commit_change, read_head
from headwater.errors import NotFoundError
from headwater.iceberg.metadata_json import split_metadata
from headwater.iceberg.table_storage import TableStorage
from headwater.iceberg_catalog.file_takes import FileTakes
from headwater.iceberg_catalog.lake_catalog import open_session
from headwater.lake_files import FileReason, find_report
from headwater.lake_files.file_report import put_report


@pytest.fixture
def lake(clock: FakeClock, tmp_path: Path) -> Iterator[ReportedLake]:
    with open_reported_lake(f"sqlite:///{tmp_path}/headwater.db", clock, tmp_path / "warehouse") as opened:
        yield opened


def everything(lake: ReportedLake) -> dict[Path, bytes]:
    """All files of the lake but our own, with their contents."""
    return {
        file: file.read_bytes() for file in lake.folder.rglob("*") if file.is_file() and "_headwater" not in file.as_posix()
    }


def test_lake_in_which_everything_is_live_has_no_marks(lake: ReportedLake) -> None:
    lake.make_table("orders")
    read = lake.report()

    assert lake.marks() == {}
    assert read.report.files["Live"] == len(everything(lake))
    assert read.report.blocked == ()


def test_files_of_expired_snapshots_are_due_after_grace_and_delay(lake: ReportedLake) -> None:
    lake.make_table("orders").overwrite(pa.table({"id": [3]}))
    lake.report()
    before = lake.data_files("orders")
    lake.expire("orders")
    lake.report()
    dead = {name for name in lake.codes() if name.endswith(".parquet")}

    assert len(dead) == 2 < len(before)
    assert set(lake.codes().values()) == {FileReason.IN_GRACE}
    lake.clock.advance(8 * DAY)
    lake.report()
    assert {lake.codes()[name] for name in dead} == {FileReason.DUE}
    assert dead < lake.data_files("orders")


def test_reports_change_no_file_of_the_lake(lake: ReportedLake) -> None:
    lake.make_table("orders")
    lake.expire("orders")
    before = everything(lake)
    for _ in range(3):
        lake.report()
        lake.clock.advance(9 * DAY)

    assert before == {file: data for file, data in everything(lake).items() if not file.name.startswith("_headwater")}


def test_dry_run_writes_nothing(lake: ReportedLake) -> None:
    lake.make_table("orders")
    lake.expire("orders")
    before, head = everything(lake), lake.rows.find_reference(FILE_MARKS, fresh=True)
    read = lake.report(is_dry=True)

    assert read.report.files["NeverHeld"] > 0
    assert everything(lake) == before
    assert not (lake.folder / "_headwater").exists()
    assert lake.rows.find_reference(FILE_MARKS, fresh=True) == head
    with pytest.raises(NotFoundError, match=r"run `headwater files report acme/lake --run`"):
        lake.marks()


def test_file_that_nobody_ever_named_is_only_reported(lake: ReportedLake) -> None:
    lake.make_table("orders")
    stray = lake.place("orders") / "data" / "stray.parquet"
    stray.write_bytes(b"a writer died")
    for _ in range(3):
        lake.report()
        lake.clock.advance(30 * DAY)

    assert lake.codes() == {"stray.parquet": FileReason.NEVER_HELD}


def test_plan_has_what_is_due_and_never_changes(lake: ReportedLake) -> None:
    lake.make_table("orders").overwrite(pa.table({"id": [3]}))
    lake.report()
    lake.expire("orders")
    lake.report()
    lake.clock.advance(9 * DAY)
    read = lake.report()
    plan = read.report.plan
    assert plan is not None
    folder = Path(read.folder.removeprefix("file://"))
    data = (folder / plan.document.name).read_bytes()
    document = json.loads(data)
    parts = [folder / part["name"] for part in document["parts"]]
    due = {name for name, code in lake.codes().items() if code is FileReason.DUE}

    assert hashlib.sha256(data).hexdigest() == plan.document.sha256
    assert [hashlib.sha256(part.read_bytes()).hexdigest() for part in parts] == [part["sha256"] for part in document["parts"]]
    planned = [path for part in parts for path in pq.read_table(part).column("path").to_pylist()]
    assert {path.rpartition("/")[2] for path in planned} == due
    assert (document["files"], document["realm"], document["catalog"]) == (len(due), "acme", "lake")
    assert plan.expires - plan.created == 7 * 24 * 3_600_000_000
    assert any(name.endswith("heads/main") for name in document["references"])


def test_manifest_that_cannot_be_read_is_told_with_its_table(lake: ReportedLake) -> None:
    lake.make_table("orders", appends=1)
    (manifest,) = (file for file in (lake.place("orders") / "metadata").glob("*-m0.avro"))
    manifest.write_bytes(b"damaged")
    read = lake.report()

    assert read.report.blocked[0].detail.startswith(
        f"table sales.orders of catalog 'lake' of realm 'acme': manifest {manifest.as_uri()} cannot be read"
    )
    assert lake.marks() == {}


def test_commit_that_names_a_marked_file_takes_it_up(lake: ReportedLake) -> None:
    table = lake.make_table("orders", appends=1)
    data = next((lake.place("orders") / "data").rglob("*.parquet"))
    other = lake.place("orders") / "data" / "other.parquet"
    other.write_bytes(data.read_bytes())
    table.add_files([other.as_uri()])
    table.overwrite(pa.table({"id": [3]}))
    lake.report()
    lake.expire("orders")
    lake.report()
    assert lake.explain(other).code is FileReason.IN_GRACE
    lake.client.load_table("sales.orders").add_files([other.as_uri()])
    taken = read_head(lake.rows, FILE_MARKS, fresh=True)

    assert taken is not None
    assert len(taken.index(TAKEN)) == 1
    assert lake.explain(other).code is FileReason.LIVE
    lake.client.load_table("sales.orders").overwrite(pa.table({"id": [4]}))
    lake.expire("orders")
    assert lake.explain(other).code is FileReason.TAKEN_UP
    lake.clock.advance(9 * DAY)
    lake.report()
    marks = lake.marks()
    assert marks["other.parquet"].code is FileReason.IN_GRACE
    assert marks[data.name].code is FileReason.DUE


def test_version_whose_log_names_a_marked_metadata_file_takes_it_up(lake: ReportedLake) -> None:
    table = lake.make_table("orders", appends=0)
    first = table.metadata_location
    table.transaction().set_properties({"write.metadata.previous-versions-max": "1"}).commit_transaction()
    for _ in range(3):
        table.append(ROWS)
    lake.report()
    lake.collect()
    lake.report()
    assert lake.codes()[first.rpartition("/")[2]] is FileReason.IN_GRACE
    session, key = open_session(lake.store, "acme", "lake", "main"), ContentKey.of("sales", "orders")
    content = session.state().find_content(key)
    assert isinstance(content, IcebergTable)
    stored = session.state().find_metadata(content.id)
    assert stored is not None
    document = json.loads(stored) | {"metadata-log": [{"timestamp-ms": 1, "metadata-file": first}]}
    restored = replace(content, metadata_location=f"{table.location()}/metadata/restored.metadata.json")
    put = Put(key, restored, metadata=split_metadata(json.dumps(document).encode()))
    FileTakes(lake.rows, lake.definition.id, TableStorage()).take_up({content.id: put}, session.state)

    assert lake.explain(Path(first.removeprefix("file://"))).code is FileReason.TAKEN_UP


def test_commit_without_a_look_takes_up_all_marks_of_its_table(lake: ReportedLake) -> None:
    lake.make_table("orders")
    lake.report()
    lake.expire("orders")
    lake.report()
    catalog, key = Catalogs(lake.rows).open_catalog("lake"), ContentKey.of("sales", "orders")
    content = catalog.get_content("main", key)
    assert content is not None
    catalog.commit("main", [Put(key, replace(content, schema_id=7))])
    lake.clock.advance(9 * DAY)
    lake.report()

    assert set(lake.codes().values()) == {FileReason.IN_GRACE}


def test_commits_to_other_tables_take_up_nothing(lake: ReportedLake) -> None:
    lake.make_table("orders")
    other = lake.make_table("customers")
    lake.report()
    lake.expire("orders")
    lake.report()
    other.append(pa.table({"id": [5]}))
    marks = read_head(lake.rows, FILE_MARKS, fresh=True)

    assert marks is not None
    assert len(marks.index(TAKEN)) == 0


def test_report_that_died_within_its_publication_lets_all_begin_anew(lake: ReportedLake) -> None:
    lake.make_table("orders")
    lake.report()
    lake.expire("orders")
    lake.report()
    record = find_report(lake.rows, lake.definition.id)
    assert record is not None
    commit_change(
        lake.rows, FILE_MARKS, lambda tx: put_report(tx, lake.definition.id, replace(record, publishing=True)), message="died"
    )
    lake.clock.advance(9 * DAY)
    lake.report()

    assert set(lake.codes().values()) == {FileReason.IN_GRACE}
    assert {mark.runs for mark in lake.marks().values()} == {1}


def test_marks_that_somebody_deleted_begin_anew(lake: ReportedLake) -> None:
    lake.make_table("orders")
    lake.report()
    lake.expire("orders")
    lake.report()
    for part in (lake.folder / "_headwater").rglob("marks/*.parquet"):
        part.unlink()
    lake.clock.advance(9 * DAY)
    lake.report()

    assert set(lake.codes().values()) == {FileReason.IN_GRACE}


def test_explanation_names_who_refers_to_a_file(lake: ReportedLake) -> None:
    table = lake.make_table("orders")
    snapshots = tuple(snapshot.snapshot_id for snapshot in table.snapshots())
    (first,) = [task.file.file_path for task in table.scan(snapshot_id=snapshots[0]).plan_files()]
    explained = lake.explain(first)

    assert explained.code is FileReason.LIVE
    at_head = [each for each in explained.referrers if each.where]
    assert [(each.key, each.where) for each in at_head] == [("sales.orders", ("branch main",))]
    assert set(at_head[0].snapshots) == set(snapshots)


def test_explanation_of_a_dead_file_says_since_when_and_until(lake: ReportedLake) -> None:
    lake.make_table("orders").overwrite(pa.table({"id": [3]}))
    lake.report()
    lake.expire("orders")
    now = lake.clock.now()
    lake.report()
    mark = next(mark for name, mark in lake.marks().items() if name.endswith(".parquet"))
    explained = lake.explain(mark.path)

    assert (explained.code, explained.since, explained.due) == (FileReason.IN_GRACE, now, now + 8 * 86_400_000_000)
    assert (explained.table, explained.report, explained.is_there) == ("sales.orders", 2, True)


def test_explanation_of_another_spelling_tells_that_it_stays(lake: ReportedLake) -> None:
    table = lake.make_table("orders", appends=1)
    (path,) = [task.file.file_path for task in table.scan().plan_files()]
    folder, _, name = path.rpartition("/")
    shouted = Path(f"{folder}/{name.upper()}".removeprefix("file://"))
    shouted.write_bytes(b"x")
    explained = lake.explain(shouted)

    assert explained.code is FileReason.LOOSELY_LIVE
    assert path in explained.sentence


def test_explanation_tells_what_could_not_be_read(lake: ReportedLake) -> None:
    lake.make_table("orders", appends=1)
    (manifest,) = (file for file in (lake.place("orders") / "metadata").glob("*-m0.avro"))
    data = next((lake.place("orders") / "data").rglob("*.parquet"))
    manifest.write_bytes(b"damaged")
    explained = lake.explain(data)

    assert not explained.referrers
    assert f"1 of the files that may refer to it cannot be read ({manifest.as_uri()}: " in explained.sentence


def test_folder_of_a_table_is_explained(lake: ReportedLake) -> None:
    lake.make_table("orders", appends=1)
    for folder in (lake.place("orders"), lake.place("orders") / "data"):
        told = lake.explain(folder)
        assert (told.code, told.table, told.is_there) == ("LiveTable", "sales.orders", True)
        assert [(each.key, each.where) for each in told.tables] == [("sales.orders", ("branch main",))]
    above = lake.explain(lake.place("orders").parent)
    assert (above.code, [each.key for each in above.tables]) == ("TablesBelow", ["sales.orders"])


def test_folder_of_a_dropped_table_is_explained_with_the_drop(lake: ReportedLake) -> None:
    lake.make_table("orders", appends=1)
    place = lake.place("orders")
    lake.client.drop_table("sales.orders")
    told = lake.explain(place)
    [table] = told.tables

    assert (told.code, table.key, table.where) == ("HistoricTable", "sales.orders", ())
    assert table.dropped is not None
    assert table.dropped_by


def test_folder_tells_what_the_last_report_lists_below_it(lake: ReportedLake) -> None:
    lake.make_table("orders").overwrite(pa.table({"id": [3]}))
    lake.report()
    lake.expire("orders")
    lake.report()
    told = lake.explain(lake.place("orders"))
    marks = [mark for mark in lake.marks().values() if mark.path.startswith(lake.place("orders").as_uri())]

    assert [(each.code, each.files) for each in told.unreferenced] == [("InGrace", len(marks))]
    assert sum(each.size_bytes for each in told.unreferenced) == sum(mark.size_bytes for mark in marks)
    assert (told.since, told.report) == (min(mark.first_listed for mark in marks), 2)
    assert f"report 2 lists {len(marks)} files below it that nobody refers to" in told.sentence


def test_folder_without_a_table_is_explained(lake: ReportedLake) -> None:
    lake.make_table("orders", appends=1)
    other = lake.folder / "loose"
    other.mkdir()
    (other / "x.csv").write_text("1")

    assert (lake.explain(other).code, lake.explain(other).is_there) == ("NoTable", True)
    assert lake.explain(lake.place("orders") / "data" / "gone.parquet").code == "NotThere"


def test_file_outside_of_all_catalogs_has_no_place(lake: ReportedLake, tmp_path: Path) -> None:
    assert lake.explain(tmp_path / "elsewhere" / "x.parquet").code == "NoPlace"


def test_file_that_is_not_there_is_said_not_to_be(lake: ReportedLake) -> None:
    assert lake.explain(lake.folder / "gone.parquet").code == "NotThere"
