"""Tables that are dropped where they come from, with their files, and imported again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from synced_lakes import KEY, Synced

from headwater.catalogs import IcebergTable, ImportSpec, Put


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
def test_table_whose_metadata_is_gone_is_reported(synced: Synced, folder: Path, part: str) -> None:
    shutil.rmtree(folder / part)
    before = synced.now()

    outcome, message = row_of(synced)

    assert (outcome, synced.report.gone, synced.report.surveyed) == ("gone", 1, 1)
    assert "stays in the catalog" in message
    assert synced.now() == before


def test_gone_table_is_dropped_where_that_is_asked_for(synced: Synced, folder: Path) -> None:
    shutil.rmtree(folder)

    outcome, message = row_of(synced, drops_gone=True)

    assert (outcome, synced.report.dropped, synced.now()) == ("dropped", 1, None)
    assert "it was dropped from the catalog as well" in message
    assert len(synced.report.commits) == 1


def test_table_that_left_data_is_never_dropped(synced: Synced, folder: Path) -> None:
    shutil.rmtree(folder / "metadata")
    before = synced.now()

    outcome, message = row_of(synced, drops_gone=True)

    assert (outcome, synced.report.dropped, synced.now()) == ("gone", 0, before)
    assert f"because {folder.as_uri()} still has data files" in message


def test_dry_run_drops_nothing(synced: Synced, folder: Path) -> None:
    shutil.rmtree(folder)
    before = synced.now()

    assert row_of(synced, drops_gone=True, dry_run=True)[0] == "dropped"
    assert synced.now() == before


def test_empty_place_drops_nothing(synced: Synced, folder: Path) -> None:
    for table in folder.parent.iterdir():
        shutil.rmtree(table)

    outcome, message = row_of(synced, drops_gone=True)

    assert (outcome, synced.report.gone, synced.report.dropped) == ("gone", 2, 0)
    assert "no table at all was found" in message


def test_table_that_only_a_branch_has_is_not_gone(synced: Synced, folder: Path) -> None:
    synced.lake.create_branch("trial")

    synced.sync()

    assert (synced.report.gone, synced.report.unchanged) == (0, 2)


def moved(synced: Synced, folder: Path, place: Path) -> Path:
    """The table with its metadata in another place, where the catalog has it from there on."""
    table, elsewhere = synced.lake.get_content(None, KEY), place / "00001-a.metadata.json"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / "metadata" / Path(str(synced.now())).name, elsewhere)
    assert isinstance(table, IcebergTable)
    there = IcebergTable(id=table.id, metadata_location=elsewhere.as_uri(), table_uuid=table.table_uuid)
    synced.lake.commit(None, [Put(KEY, there)])
    shutil.rmtree(folder / "metadata")
    return elsewhere


def test_table_with_its_metadata_elsewhere_is_not_gone(synced: Synced, folder: Path) -> None:
    moved(synced, folder, folder.parent)

    outcome, message = row_of(synced)

    assert (outcome, synced.report.gone) == ("unchanged", 0)
    assert "lies elsewhere" in message


@pytest.mark.parametrize(("other", "is_dropped"), [("00002-b", False), ("v9", False), ("00000-b", True)])
def test_table_whose_engine_deleted_old_metadata_is_not_gone(
    synced: Synced, folder: Path, other: str, is_dropped: bool
) -> None:
    elsewhere = moved(synced, folder, folder.parent / "logs")
    shutil.rmtree(folder)
    elsewhere.rename(elsewhere.with_name(f"{other}.metadata.json"))
    before = synced.now()

    outcome, message = row_of(synced, drops_gone=True)

    assert (synced.now() != before) == (outcome == "dropped") == is_dropped
    assert ("register it again" in message) == (not is_dropped)


def test_table_outside_of_the_import_s_location_is_told(synced: Synced, folder: Path) -> None:
    elsewhere = moved(synced, folder, folder.parent.parent / "logs")
    elsewhere.unlink()
    spec = ImportSpec(name="nightly", locations=(folder.parent.as_uri(),), namespace=("sales",), mode="sync")

    synced.sync_by(spec)

    assert [(row.key, row.outcome) for row in synced.rows_told] == [(("sales", "items"), "unchanged"), (KEY.elements, "gone")]
