"""Imports of a location again, where branches of the catalog have written, restored and dropped since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from synced_lakes import Synced

from headwater import Settings, Store, open_store
from headwater.catalogs import Catalog
from headwater.catalogs.known_metadata import KnownMetadata
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.clock import FakeClock

OpenClient = Callable[..., HeadwaterCatalog]


@pytest.fixture
def store(clock: FakeClock, settings: Settings) -> Iterator[Store]:
    """Under a clock that stands still until it is moved."""
    with open_store("memory://", settings=settings, clock=clock) as opened:
        yield opened


@pytest.fixture
def trial(synced: Synced, open_client: OpenClient) -> HeadwaterCatalog:
    synced.lake.create_branch("trial")
    return open_client(branch="trial")


def test_an_unmerged_append_stays_on_its_branch(synced: Synced, trial: HeadwaterCatalog) -> None:
    before = synced.now()
    synced.append(trial)

    row = synced.sync()

    assert (synced.now(), row.outcome) == (before, "unchanged")
    assert "known from branch trial" in row.message


def test_appends_on_two_branches_are_no_news(synced: Synced, trial: HeadwaterCatalog, client: HeadwaterCatalog) -> None:
    synced.append(trial, client)
    before = synced.now()

    assert synced.sync().outcome == "unchanged"
    assert synced.now() == before


def test_a_restored_table_stays_as_restored(synced: Synced, client: HeadwaterCatalog) -> None:
    old = synced.lake.resolve()
    before = synced.now()
    assert old is not None
    synced.append(client)
    synced.lake.assign_branch("main", old.id)

    row = synced.sync()

    assert (synced.now(), row.outcome) == (before, "unchanged")
    assert "known from branch main" in row.message


def test_a_dropped_table_stays_dropped(synced: Synced, client: HeadwaterCatalog) -> None:
    client.drop_table("sales.orders")

    row = synced.sync()

    assert (synced.now(), row.outcome) == (None, "unchanged")
    assert "known from branch main" in row.message


def test_a_branch_that_was_deleted_and_collected_is_still_known(synced: Synced, trial: HeadwaterCatalog) -> None:
    before = synced.now()
    synced.append(trial)
    synced.lake.delete_branch("trial")
    synced.collect()

    row = synced.sync()

    assert (synced.now(), row.outcome) == (before, "unchanged")
    assert "known from branch trial" in row.message


def test_a_restoration_is_kept_when_what_it_left_was_collected(synced: Synced, client: HeadwaterCatalog) -> None:
    old, before = synced.lake.resolve(), synced.now()
    assert old is not None
    synced.append(client)
    synced.lake.assign_branch("main", old.id)
    synced.collect()
    synced.collect()

    assert synced.sync().outcome == "unchanged"
    assert synced.now() == before


def test_a_drop_is_kept_when_it_was_collected(synced: Synced, client: HeadwaterCatalog) -> None:
    client.drop_table("sales.orders")
    synced.collect()
    synced.collect()

    assert synced.sync().outcome == "unchanged"
    assert synced.now() is None


def test_an_import_once_brings_a_dropped_table_back(synced: Synced, client: HeadwaterCatalog) -> None:
    before = synced.now()
    client.drop_table("sales.orders")

    assert synced.sync("once").outcome == "imported"
    assert synced.now() == before


def test_a_new_version_from_outside_is_taken(synced: Synced) -> None:
    synced.append(synced.outside)

    assert synced.sync().outcome == "updated"
    assert synced.now() == synced.latest_outside


def test_a_new_version_from_outside_is_taken_beside_a_branch(synced: Synced, trial: HeadwaterCatalog) -> None:
    synced.append(trial, trial, trial, synced.outside)

    assert synced.sync().outcome == "updated"
    assert synced.now() == synced.latest_outside


def test_versions_that_were_skipped_are_no_news_after_a_restoration(synced: Synced) -> None:
    old, before = synced.lake.resolve(), synced.now()
    assert old is not None
    synced.append(synced.outside, synced.outside, synced.outside)
    synced.sync()
    synced.lake.assign_branch("main", old.id)

    row = synced.sync()

    assert (synced.now(), row.outcome) == (before, "unchanged")


@pytest.mark.parametrize("ahead", [1, 2])
def test_a_table_that_moved_on_here_and_outside_is_a_conflict(synced: Synced, client: HeadwaterCatalog, ahead: int) -> None:
    synced.append(*[client] * ahead, synced.outside)
    before = synced.now()

    row = synced.sync()

    assert (synced.now(), row.code) == (before, "Diverged")
    assert row.metadata_location == synced.latest_outside
    assert "exclude the table" in row.message


def test_a_restored_table_whose_writer_went_on_is_a_conflict(synced: Synced) -> None:
    old, before = synced.lake.resolve(), synced.now()
    assert old is not None
    synced.append(synced.outside)
    synced.sync()
    synced.lake.assign_branch("main", old.id)
    synced.append(synced.outside)

    assert synced.sync().code == "Diverged"
    assert synced.now() == before


def test_a_dropped_table_whose_writer_went_on_is_reported(synced: Synced, client: HeadwaterCatalog) -> None:
    client.drop_table("sales.orders")
    synced.append(synced.outside)

    row = synced.sync()

    assert (synced.now(), row.code) == (None, "Dropped")


def test_a_merged_branch_is_known_from_where_it_was_written(synced: Synced, trial: HeadwaterCatalog) -> None:
    synced.append(trial)
    synced.lake.merge("trial")
    after = synced.now()

    assert synced.sync().outcome == "unchanged"
    assert synced.now() == after == synced.now("trial")


def test_a_dry_run_says_the_same_of_what_is_known(synced: Synced, trial: HeadwaterCatalog) -> None:
    synced.append(trial)

    row = synced.sync(dry_run=True)

    assert (synced.report.known, row.outcome) == (1, "unchanged")


def test_what_a_branch_commits_while_a_sync_looks_is_no_news(
    synced: Synced, trial: HeadwaterCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = synced.now()
    synced.append(trial)
    looked = Catalog.known_metadata

    def look(catalog: Catalog, **options: Any) -> KnownMetadata:
        known = looked(catalog, **options)
        if trial.load_table("sales.orders").metadata.last_sequence_number < 3:
            synced.append(trial)  # after what is known was looked up, and before the folder is listed again
        return known

    monkeypatch.setattr(Catalog, "known_metadata", look)

    assert synced.sync().outcome == "unchanged"
    assert synced.now() == before
