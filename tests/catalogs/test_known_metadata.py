"""Which metadata files commits of a catalog have named, noted and not."""

from __future__ import annotations

import pytest

from headwater.catalogs import Catalog, ContentKey, IcebergTable, IcebergView, Put
from headwater.catalogs.known_metadata import KEPT, KnownMetadata, note_known
from headwater.clock import FakeClock
from headwater.commits import head
from headwater.store import ObjectId, RealmStore

FOLDER = "s3://lake/t/metadata"


def commit(catalog: Catalog, *names: str, branch: str | None = None, **words: dict[str, str]) -> ObjectId:
    """A commit of which each table has a file of the folder."""
    puts = [Put(ContentKey.of(f"t{name}"), IcebergTable(metadata_location=f"{FOLDER}/{name}")) for name in names]
    done = catalog.commit(branch, puts, **words)  # type: ignore[arg-type]
    assert done.commit_id is not None
    return done.commit_id


def forget(rows: RealmStore, commit_id: ObjectId) -> None:
    """What a collection of an earlier release does: it deletes, and notes nothing."""
    keys = [key for batch in rows.scan_objects() for key in batch if key.id == commit_id]
    assert rows.delete_unchanged(keys)
    rows.store.cache.clear()


def test_what_is_not_noted_is_read_from_commits(catalog: Catalog) -> None:
    commit(catalog, "v1")

    found = catalog.known_metadata().of(FOLDER).find(f"{FOLDER}/v1")

    assert found is not None
    assert (found.branch, found.is_own) == ("main", True)


def test_what_an_import_brought_is_known_as_such(catalog: Catalog) -> None:
    commit(catalog, "v1", properties={"import": "nightly"})

    found = catalog.known_metadata().find_many([f"{FOLDER}/v1", f"{FOLDER}/v2"])

    assert [(location, origin.is_own) for location, origin in found.items()] == [(f"{FOLDER}/v1", False)]


def test_views_are_known_as_well(catalog: Catalog) -> None:
    catalog.commit(None, [Put(ContentKey.of("v"), IcebergView(metadata_location=f"{FOLDER}/v1"))])

    assert catalog.known_metadata().of(FOLDER).find(f"{FOLDER}/v1")


@pytest.mark.parametrize("spelled", ["s3a://lake/t/metadata", "S3://lake/t/metadata/"])
def test_a_folder_is_known_under_all_its_spellings(catalog: Catalog, spelled: str) -> None:
    commit(catalog, "v1")

    assert catalog.known_metadata().of(spelled.rstrip("/")).find(f"{spelled.rstrip('/')}/v1")


def test_noting_again_writes_nothing(realm: RealmStore, catalog: Catalog) -> None:
    commit(catalog, "v1", "v2")
    reference = f"cat/{catalog.definition.id}/refs"
    assert note_known(realm, catalog.definition) == 2
    before = head(realm, reference, fresh=True)

    assert note_known(realm, catalog.definition) == 0
    assert head(realm, reference, fresh=True) == before


def test_looking_writes_nothing(realm: RealmStore, catalog: Catalog) -> None:
    commit(catalog, "v1")
    reference = f"cat/{catalog.definition.id}/refs"
    before = head(realm, reference, fresh=True)

    catalog.known_metadata(note=True)

    assert head(realm, reference, fresh=True) == before


def test_a_branch_that_begins_anew_hides_nothing(realm: RealmStore, catalog: Catalog) -> None:
    commit(catalog, "v1")
    catalog.create_branch("trial")
    commit(catalog, "v2", branch="trial")
    catalog.delete_branch("trial")

    catalog.create_branch("trial", "main")

    noted = KnownMetadata(realm, catalog.definition).of(FOLDER).find(f"{FOLDER}/v2")
    assert noted is not None and noted.branch == "trial"


def test_the_first_commit_that_named_a_file_counts(realm: RealmStore, catalog: Catalog, clock: FakeClock) -> None:
    commit(catalog, "v1")
    note_known(realm, catalog.definition)
    since = catalog.known_metadata().of(FOLDER).find(f"{FOLDER}/v1")
    clock.advance(60)
    commit(catalog, "v2")
    catalog.create_branch("trial")

    assert catalog.known_metadata().of(FOLDER).find(f"{FOLDER}/v1") == since


def test_what_histories_still_hold_is_known_of_an_older_store(realm: RealmStore, catalog: Catalog) -> None:
    first = commit(catalog, "v1")
    commit(catalog, "v2")
    commit(catalog, "v3")
    forget(realm, first)

    found = catalog.known_metadata().of(FOLDER)

    assert all(found.find(f"{FOLDER}/{name}") for name in ("v1", "v2", "v3"))


def test_of_a_folder_the_last_files_stay_noted(realm: RealmStore, catalog: Catalog, clock: FakeClock) -> None:
    commit(catalog, *(f"a{number}" for number in range(KEPT)))
    clock.advance(60)
    commit(catalog, *(f"b{number}" for number in range(KEPT + 2)))
    first = min(origin.time for origin in catalog.known_metadata().of(FOLDER).files.values())
    note_known(realm, catalog.definition)

    found = catalog.known_metadata().of(FOLDER)

    assert KEPT <= len(found.files) <= 2 * KEPT
    assert found.forgotten >= first
    assert sum(found.find(f"{FOLDER}/b{number}") is not None for number in range(KEPT + 2)) >= KEPT
