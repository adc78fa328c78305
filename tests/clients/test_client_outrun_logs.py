"""Tables whose writer commits more often between two imports than its metadata log holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import Table
from synced_lakes import Synced


@pytest.fixture
def outrun(synced: Synced) -> Synced:
    """The table, seven versions ahead of the catalog, with a log of two."""
    table: Table = synced.outside.load_table("sales.orders")
    with table.transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "2"})
    synced.append(*[synced.outside] * 6)
    return synced


def files_between(synced: Synced) -> list[Path]:
    """The metadata files that are neither the catalog's nor in the log of the latest."""
    latest = synced.outside.load_table("sales.orders")
    kept = {synced.now(), latest.metadata_location, *(entry.metadata_file for entry in latest.metadata.metadata_log)}
    folder = Path(latest.location().removeprefix("file://")) / "metadata"
    return [file for file in folder.glob("*.metadata.json") if file.as_uri() not in kept]


def test_logs_of_files_between_prove_that_it_is_forward(outrun: Synced) -> None:
    row = outrun.sync()

    assert (row.outcome, outrun.now()) == ("updated", outrun.latest_outside)
    assert any("earlier files lead back" in sentence for sentence in row.evidence)


def test_snapshots_prove_it_where_those_files_are_gone(outrun: Synced) -> None:
    for file in files_between(outrun):
        file.unlink()

    row = outrun.sync()

    assert (row.outcome, outrun.now()) == ("updated", outrun.latest_outside)
    assert any("is an ancestor" in sentence for sentence in row.evidence)


def test_table_without_either_is_quarantined_with_what_is_missing(outrun: Synced) -> None:
    before = outrun.now()
    old = outrun.outside.load_table("sales.orders").metadata.snapshots[0].snapshot_id
    outrun.outside.load_table("sales.orders").maintenance.expire_snapshots().by_id(old).commit()
    for file in files_between(outrun):
        file.unlink()

    row = outrun.sync()

    assert (row.code, outrun.now()) == ("NotForward", before)
    assert f"snapshot {old} is not among its" in row.message


def test_restored_table_is_not_moved_by_its_snapshots(outrun: Synced) -> None:
    old, before = outrun.lake.resolve(), outrun.now()
    assert old is not None
    outrun.sync()
    outrun.lake.assign_branch("main", old.id)
    outrun.append(*[outrun.outside] * 6)
    for file in files_between(outrun):
        file.unlink()

    assert outrun.sync().code == "Diverged"
    assert outrun.now() == before
