"""Tables that are dropped where they come from, with their files, and imported again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from synced_lakes import KEY, Synced

from headwater.catalogs import IcebergTable, Put


@pytest.fixture
def folder(synced: Synced) -> Path:
    """Where the table lies; beside it another one."""
    schema = synced.outside.load_table("sales.orders").schema()
    synced.outside.create_table("sales.items", schema)
    synced.sync()
    return Path(synced.outside.load_table("sales.orders").location().removeprefix("file://"))


def row_of(synced: Synced, **options: bool) -> tuple[str, str]:
    synced.sync(**options)
    row = next(row for row in synced.rows_told if row.key == KEY.elements)
    return row.outcome, row.message


@pytest.mark.parametrize("part", ["", "metadata"])
def test_a_table_whose_metadata_is_gone_is_reported(synced: Synced, folder: Path, part: str) -> None:
    shutil.rmtree(folder / part)
    before = synced.now()

    outcome, message = row_of(synced)

    assert (outcome, synced.report.gone, synced.report.surveyed) == ("gone", 1, 1)
    assert "stays in the catalog" in message
    assert synced.now() == before


@pytest.mark.parametrize("part", ["", "metadata"])
def test_it_is_dropped_where_that_is_asked_for(synced: Synced, folder: Path, part: str) -> None:
    shutil.rmtree(folder / part)

    outcome, _ = row_of(synced, drops_gone=True)

    assert (outcome, synced.report.dropped, synced.now()) == ("dropped", 1, None)
    assert len(synced.report.commits) == 1


def test_a_dry_run_drops_nothing(synced: Synced, folder: Path) -> None:
    shutil.rmtree(folder)
    before = synced.now()

    assert row_of(synced, drops_gone=True, dry_run=True)[0] == "dropped"
    assert synced.now() == before


def test_nothing_is_dropped_of_a_place_that_is_empty(synced: Synced, folder: Path) -> None:
    for table in folder.parent.iterdir():
        shutil.rmtree(table)

    outcome, message = row_of(synced, drops_gone=True)

    assert (outcome, synced.report.gone, synced.report.dropped) == ("gone", 2, 0)
    assert "no table at all was found" in message


def test_a_table_that_only_a_branch_has_is_not_gone(synced: Synced, folder: Path) -> None:
    synced.lake.create_branch("trial")

    synced.sync()

    assert (synced.report.gone, synced.report.unchanged) == (0, 2)


def test_a_table_with_its_metadata_elsewhere_is_not_gone(synced: Synced, folder: Path) -> None:
    table = synced.lake.get(None, KEY)
    elsewhere = folder.parent / "elsewhere.metadata.json"
    shutil.copy(folder / "metadata" / Path(str(synced.now())).name, elsewhere)
    assert isinstance(table, IcebergTable)
    moved = IcebergTable(id=table.id, metadata_location=elsewhere.as_uri(), table_uuid=table.table_uuid)
    synced.lake.commit(None, [Put(KEY, moved)])
    shutil.rmtree(folder / "metadata")

    outcome, message = row_of(synced)

    assert (outcome, synced.report.gone) == ("unchanged", 0)
    assert "lies elsewhere" in message
