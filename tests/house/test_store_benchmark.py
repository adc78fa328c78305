"""The suite of the store works, and its floor does what a store does. How fast anything is, no test asks."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from headwater.store import open_store

ROOT = Path(__file__).parents[2]


@pytest.fixture
def floors(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import floor

    return floor


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import places

    return places


@pytest.fixture(params=["memory", "sqlite", "postgresql", "mongodb"])
def floor(request: pytest.FixtureRequest, floors: ModuleType, tmp_path: Path) -> Iterator[Any]:
    if request.param == "memory":
        made = floors.MemoryFloor()
    elif request.param == "sqlite":
        made = floors.SqliteFloor(tmp_path / "floor.db")
    elif request.param == "mongodb":
        url = request.getfixturevalue("mongodb_server").url("admin")
        made = floors.MongodbFloor(url, "headwater_test_floor")
        request.addfinalizer(lambda: floors.drop_database(url, "headwater_test_floor"))
    else:
        url = request.getfixturevalue("postgresql_server").url()
        made = floors.PostgresqlFloor(url, "headwater_test_floor")
        request.addfinalizer(lambda: floors.drop_schema(url, "headwater_test_floor"))
    with closing(made):
        yield made


def test_floor_writes_reads_and_deletes_rows(floors: ModuleType, floor: Any) -> None:
    rows = [floors.object_values(7, number) for number in range(1000)]
    floor.write(rows)

    assert floor.scan() == len(floor.read(7, list(range(1000)))) == 1000
    assert rows[3][-1] in floor.read_one(7, 3)
    assert floor.delete([(7, number, 0, floors.CREATED, None) for number in range(400)]) == 400
    assert floor.delete_realm(7) == 600
    assert floor.scan() == 0


def test_floor_changes_only_what_was_seen(floors: ModuleType, floor: Any) -> None:
    floor.insert(floors.object_values(7, 1, token="old"))
    floor.update(floors.object_values(7, 1, token="new"), "old")
    floor.create_reference(7, "main", (1, 1))
    floor.swap(7, "main", (1, 1), (2, 2))

    with pytest.raises(AssertionError):
        floor.update(floors.object_values(7, 1, token="newer"), "old")
    with pytest.raises(AssertionError):
        floor.swap(7, "main", (1, 1), (3, 3))


def test_floor_on_sqlite_has_the_tables_of_a_store(floors: ModuleType, tmp_path: Path) -> None:
    floors.SqliteFloor(tmp_path / "floor.db").close()
    open_store(f"sqlite:///{tmp_path / 'store.db'}").close()

    assert sqlite_shape(tmp_path / "floor.db") == sqlite_shape(tmp_path / "store.db")


def sqlite_shape(path: Path) -> list[Any]:
    """Names, types and place in the key of all columns, and which tables are clustered by their key."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute(
            "SELECT name, wr FROM pragma_table_list WHERE name IN ('refs', 'objs') ORDER BY name"
        ).fetchall()
        return [
            (name, is_clustered, connection.execute(f"PRAGMA table_info({name})").fetchall()) for name, is_clustered in tables
        ]


def test_floor_on_postgresql_has_the_tables_of_a_store(
    floors: ModuleType, postgresql_server: Any, request: pytest.FixtureRequest
) -> None:
    for schema in ("headwater_test_floor", "headwater_test_store"):
        request.addfinalizer(lambda schema=schema: postgresql_server.drop(schema))
    floors.PostgresqlFloor(postgresql_server.url(), "headwater_test_floor").close()
    open_store(postgresql_server.url("headwater_test_store")).close()

    assert postgresql_shape(postgresql_server, "floor") == postgresql_shape(postgresql_server, "store")


def postgresql_shape(server: Any, which: str) -> list[Any]:
    """Columns with types and collation, and the columns of each index, in the order of the key."""
    schema = f"headwater_test_{which}"
    columns = server.execute(
        "SELECT table_name, column_name, data_type, is_nullable, collation_name FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name IN ('refs', 'objs') ORDER BY 1, 2",
        (schema,),
    )
    keys = server.execute(
        "SELECT tablename, replace(indexdef, schemaname, '') FROM pg_indexes WHERE schemaname = %s", (schema,)
    )
    return [columns, sorted(keys)]


def test_benchmarks_refuse_a_folder_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import disk

    partitions = [SimpleNamespace(mountpoint="/", fstype="ext4"), SimpleNamespace(mountpoint=str(tmp_path), fstype="tmpfs")]
    monkeypatch.setattr(disk.psutil, "disk_partitions", lambda **_: partitions)
    disk.require_disk(tmp_path.parent)
    with pytest.raises(SystemExit, match=r"lies on tmpfs, which is memory: benchmarks need a disk"):
        disk.require_disk(tmp_path / "work")


def test_run_says_that_mongodb_is_left_out(
    places: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADWATER_BENCH_MONGODB", raising=False)
    with places.open_places(tmp_path, ["memory", "mongodb"]) as found:
        names = [place.name for place in found]

    assert names == ["memory"]
    assert "mongodb is left out" in capsys.readouterr().out


@pytest.mark.rare(3)
@pytest.mark.long
def test_quick_run_of_the_suite_measures_every_case(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.store", "--quick", "--backends=memory,sqlite", f"--into={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows = json.loads((tmp_path / "store.json").read_text())["rows"]

    cases = {backend: {row["case"] for row in rows if row["backend"] == backend} for backend in ("memory", "sqlite", "any")}
    on_disk = {"row of 300 bytes on disk, with its key", "Backend: scan 20,000 keys in 4 splits, a process each"}
    assert cases["sqlite"] - cases["memory"] == on_disk
    assert {len(cases["sqlite"]), len(cases["any"])} == {23, 7}
    assert all(row["value"] > 0 or row["unit"] == "MiB" for row in rows)
    assert f"written to {tmp_path}" in done.stdout
