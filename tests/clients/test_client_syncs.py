"""Imports of a location again, where branches of the catalog have written, restored and dropped since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import CommitStateUnknownException
from synced_lakes import KEY, Synced

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.catalogs import Catalog, IcebergTable, Put
from headwater.catalogs.known_metadata import KnownMetadata
from headwater.errors import UnknownOutcomeError
from headwater.store import open_backend, parse_url

OpenClient = Callable[..., IcebergCatalog]
FOREVER = 10**9


@pytest.fixture
def backend() -> FaultyBackend:
    return FaultyBackend(open_backend(parse_url("memory://")))


@pytest.fixture
def store(backend: FaultyBackend, clock: FakeClock, settings: Settings) -> Iterator[Store]:
    """Fails when told to, under a clock that stands still until it is moved."""
    with Store(backend, url="memory://", settings=settings, clock=clock) as opened:
        yield opened


@pytest.fixture
def trial(synced: Synced, open_client: OpenClient) -> IcebergCatalog:
    synced.lake.create_branch("trial")
    return open_client(branch="trial")


def test_unmerged_append_stays_on_its_branch(synced: Synced, trial: IcebergCatalog) -> None:
    before = synced.now()
    synced.append(trial)

    row = synced.sync()

    assert (synced.now(), row.outcome) == (before, "unchanged")
    assert "from branch trial (since" in row.message


def test_appends_on_two_branches_are_no_news(synced: Synced, trial: IcebergCatalog, client: IcebergCatalog) -> None:
    synced.append(trial, client)
    before = synced.now()

    assert synced.sync().outcome == "unchanged"
    assert synced.now() == before


def test_restored_table_stays_as_restored(synced: Synced, client: IcebergCatalog) -> None:
    old = synced.lake.resolve()
    before = synced.now()
    assert old is not None
    synced.append(client)
    synced.lake.assign_branch("main", old.id)

    row = synced.sync()

    assert (synced.now(), row.outcome) == (before, "unchanged")
    assert "from branch main (since" in row.message


def test_dropped_table_stays_dropped(synced: Synced, client: IcebergCatalog) -> None:
    client.drop_table("sales.orders")

    row = synced.sync()

    assert (synced.now(), row.outcome) == (None, "unchanged")
    assert "from branch main (since" in row.message


def test_branch_that_was_deleted_and_collected_is_still_known(synced: Synced, trial: IcebergCatalog) -> None:
    before = synced.now()
    synced.append(trial)
    synced.lake.delete_branch("trial")
    synced.collect()

    row = synced.sync()

    assert (synced.now(), row.outcome) == (before, "unchanged")
    assert "from branch trial (since" in row.message


def test_restoration_is_kept_when_what_it_left_was_collected(synced: Synced, client: IcebergCatalog) -> None:
    old, before = synced.lake.resolve(), synced.now()
    assert old is not None
    synced.append(client)
    synced.lake.assign_branch("main", old.id)
    synced.collect()
    synced.collect()

    assert synced.sync().outcome == "unchanged"
    assert synced.now() == before


def test_drop_is_kept_when_it_was_collected(synced: Synced, client: IcebergCatalog) -> None:
    client.drop_table("sales.orders")
    synced.collect()
    synced.collect()

    assert synced.sync().outcome == "unchanged"
    assert synced.now() is None


def test_import_once_brings_a_dropped_table_back(synced: Synced, client: IcebergCatalog) -> None:
    before = synced.now()
    client.drop_table("sales.orders")

    assert synced.sync("once").outcome == "imported"
    assert synced.now() == before


def test_new_version_from_outside_is_taken(synced: Synced) -> None:
    synced.append(synced.outside)

    assert synced.sync().outcome == "updated"
    assert synced.now() == synced.latest_outside


def test_new_version_from_outside_is_taken_beside_a_branch(synced: Synced, trial: IcebergCatalog) -> None:
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
def test_table_that_moved_on_here_and_outside_is_a_conflict(synced: Synced, client: IcebergCatalog, ahead: int) -> None:
    synced.append(*[client] * ahead, synced.outside)
    before = synced.now()

    row = synced.sync()

    assert (synced.now(), row.code) == (before, "Diverged")
    assert row.metadata_location == synced.latest_outside
    assert "exclude the table" in row.message


def test_restored_table_whose_writer_went_on_is_a_conflict(synced: Synced) -> None:
    old, before = synced.lake.resolve(), synced.now()
    assert old is not None
    synced.append(synced.outside)
    synced.sync()
    synced.lake.assign_branch("main", old.id)
    synced.append(synced.outside)

    assert synced.sync().code == "Diverged"
    assert synced.now() == before


def test_dropped_table_whose_writer_went_on_is_reported(synced: Synced, client: IcebergCatalog) -> None:
    client.drop_table("sales.orders")
    synced.append(synced.outside)

    row = synced.sync()

    assert (synced.now(), row.code) == (None, "Dropped")


def test_merged_branch_is_known_from_where_it_was_written(synced: Synced, trial: IcebergCatalog) -> None:
    synced.append(trial)
    synced.lake.merge("trial")
    after = synced.now()

    assert synced.sync().outcome == "unchanged"
    assert synced.now() == after == synced.now("trial")


def test_dry_run_says_the_same_of_what_is_known(synced: Synced, trial: IcebergCatalog) -> None:
    synced.append(trial)

    row = synced.sync(dry_run=True)

    assert (synced.report.known, row.outcome) == (1, "unchanged")


def test_commit_to_a_branch_during_a_sync_is_no_news(
    synced: Synced, trial: IcebergCatalog, monkeypatch: pytest.MonkeyPatch
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


def test_commit_to_a_branch_after_the_survey_is_no_news(synced: Synced, monkeypatch: pytest.MonkeyPatch) -> None:
    synced.lake.create_branch("trial")
    before, table = synced.now(), synced.lake.get_content(None, KEY)
    assert isinstance(table, IcebergTable)
    synced.append(synced.outside)
    looked = Catalog.known_metadata

    def look(catalog: Catalog, **options: Any) -> KnownMetadata:
        known = looked(catalog, **options)
        taken = IcebergTable(id=table.id, metadata_location=synced.latest_outside, table_uuid=table.table_uuid)
        synced.lake.commit("trial", [Put(KEY, taken, table)])
        return known

    monkeypatch.setattr(Catalog, "known_metadata", look)

    assert "from branch trial (since" in synced.sync().message
    assert synced.now() == before


# files of commits that did not happen


@pytest.fixture
def unfinished(synced: Synced, trial: IcebergCatalog, backend: FaultyBackend) -> Synced:
    """An append to ``trial`` of which nobody knows whether it happened; it did not."""
    backend.fail("swap_reference", times=FOREVER, fault=UnknownOutcomeError("lost on the way"))
    with pytest.raises(CommitStateUnknownException):
        synced.append(trial)
    backend.heal()
    return synced


def test_file_of_an_undone_commit_is_no_news(unfinished: Synced) -> None:
    before = unfinished.now()

    row = unfinished.sync()

    assert (unfinished.now(), row.outcome) == (before, "unchanged")
    assert "no commit names it" in row.message


def test_sync_takes_news_beside_the_file_of_a_failed_commit(unfinished: Synced) -> None:
    unfinished.append(unfinished.outside)

    assert unfinished.sync().outcome == "updated"
    assert unfinished.now() == unfinished.latest_outside


def test_table_that_was_never_created_is_no_news(synced: Synced, client: IcebergCatalog, backend: FaultyBackend) -> None:
    schema = synced.outside.load_table("sales.orders").schema()
    staged = client.create_table_transaction("sales.lines", schema)
    backend.fail("swap_reference", at=2, times=FOREVER, fault=UnknownOutcomeError("lost on the way"))
    with pytest.raises(CommitStateUnknownException):
        staged.commit_transaction()
    backend.heal()

    synced.sync()

    assert [row.outcome for row in synced.rows_told] == ["unchanged", "unchanged"]
    assert len(synced.lake.entries().entries) == 2


def test_file_of_another_catalog_is_news(
    synced: Synced, client: IcebergCatalog, settings: Settings, make_lake: Callable[[Store], Catalog]
) -> None:
    synced.append(client)
    # an id is a time, a node that chance chooses and a number: at the same time one in a thousand catalogs would have the id of ours
    later = FakeClock(synced.store.clock.now() + 1_000_000)
    with Store(open_backend(parse_url("memory://")), url="memory://", settings=settings, clock=later) as store:
        other = synced.seen_by(store, make_lake(store))

        assert other.sync().outcome == "imported"
        assert other.now() == synced.now()


def test_sync_leaves_changes_on_top_of_ours_to_a_person(synced: Synced) -> None:
    synced.append(synced.outside)
    table, newer = synced.lake.get_content(None, KEY), synced.latest_outside
    assert isinstance(table, IcebergTable)
    own = IcebergTable(id=table.id, metadata_location=newer, table_uuid=table.table_uuid)
    synced.lake.commit(None, [Put(KEY, own, table)])
    synced.append(synced.outside)

    row = synced.sync()

    assert (synced.now(), row.code) == (newer, "Diverged")
    assert "a client of an earlier release" in row.message
