"""Which metadata files commits of a catalog have named, noted and not."""

from __future__ import annotations

from typing import Any

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog, CommitMeta, ContentKey, IcebergTable, IcebergView, Put, known_metadata
from headwater.catalogs.history.commit_meta import is_by_import
from headwater.catalogs.known_metadata import KEPT, KnownMetadata, note_known
from headwater.clock import Micros
from headwater.commits import Commit, read_head
from headwater.errors import ExpiredError
from headwater.store import ObjectId, RealmStore

FOLDER = "s3://lake/t/metadata"


DAY = 24 * 3600


def commit(catalog: Catalog, *names: str, branch: str | None = None, **options: Any) -> ObjectId:
    """A commit of which each table has a file of the folder."""
    puts = [Put(ContentKey.of(f"t{name}"), IcebergTable(metadata_location=f"{FOLDER}/{name}")) for name in names]
    done = catalog.commit(branch, puts, **options)
    assert done.commit_id is not None
    return done.commit_id


def forget(rows: RealmStore, commit_id: ObjectId) -> None:
    """What a collection of an earlier release does: it deletes, and notes nothing."""
    keys = [key for batch in rows.scan_objects() for key in batch if key.id == commit_id]
    assert rows.delete_unchanged(keys)
    rows.store.cache.clear()


def test_metadata_that_is_not_noted_is_read_from_commits(catalog: Catalog) -> None:
    commit(catalog, "v1")

    found = catalog.known_metadata().known_folder(FOLDER).find_origin(f"{FOLDER}/v1")

    assert found is not None
    assert (found.branch, found.is_own) == ("main", True)


def test_metadata_that_an_import_brought_is_known_as_such(catalog: Catalog) -> None:
    commit(catalog, "v1", is_import=True)

    found = catalog.known_metadata().find_many([f"{FOLDER}/v1", f"{FOLDER}/v2"])

    assert [(location, origin.is_own) for location, origin in found.items()] == [(f"{FOLDER}/v1", False)]


def test_word_of_a_caller_makes_no_import(catalog: Catalog) -> None:
    commit(catalog, "v1", properties={"import": "nightly"})
    commit(catalog, "v2", meta=CommitMeta(properties={"import": ("nightly",)}))

    found = catalog.known_metadata().find_many([f"{FOLDER}/v1", f"{FOLDER}/v2"])

    assert [origin.is_own for origin in found.values()] == [True, True]


@pytest.mark.parametrize(
    ("properties", "is_imported"), [({"import": ["nightly"]}, True), ({"task": ["1"]}, False), (["import"], False)]
)
def test_imports_of_earlier_releases_are_told_by_their_words(properties: Any, is_imported: bool) -> None:
    assert is_by_import(Commit(seq=1, time=Micros(1), properties={"properties": properties})) == is_imported


def test_views_are_known_as_well(catalog: Catalog) -> None:
    catalog.commit(None, [Put(ContentKey.of("v"), IcebergView(metadata_location=f"{FOLDER}/v1"))])

    assert catalog.known_metadata().known_folder(FOLDER).find_origin(f"{FOLDER}/v1")


@pytest.mark.parametrize("spelled", ["s3a://lake/t/metadata", "S3://lake/t/metadata/"])
def test_folder_is_known_under_all_its_spellings(catalog: Catalog, spelled: str) -> None:
    commit(catalog, "v1")

    assert catalog.known_metadata().known_folder(spelled.rstrip("/")).find_origin(f"{spelled.rstrip('/')}/v1")


def test_noting_again_writes_nothing(realm: RealmStore, catalog: Catalog) -> None:
    commit(catalog, "v1", "v2")
    reference = f"cat/{catalog.definition.id}/refs"
    assert note_known(realm, catalog.definition) == 2
    before = read_head(realm, reference, fresh=True)

    assert note_known(realm, catalog.definition) == 0
    assert read_head(realm, reference, fresh=True) == before


def test_looking_writes_nothing(realm: RealmStore, catalog: Catalog) -> None:
    commit(catalog, "v1")
    reference = f"cat/{catalog.definition.id}/refs"
    before = read_head(realm, reference, fresh=True)

    catalog.known_metadata(note=True)

    assert read_head(realm, reference, fresh=True) == before


def test_branch_that_begins_anew_hides_nothing(realm: RealmStore, catalog: Catalog) -> None:
    commit(catalog, "v1")
    catalog.create_branch("trial")
    commit(catalog, "v2", branch="trial")
    catalog.delete_branch("trial")

    catalog.create_branch("trial", "main")

    noted = KnownMetadata(realm, catalog.definition).known_folder(FOLDER).find_origin(f"{FOLDER}/v2")
    assert noted is not None and noted.branch == "trial"


def test_first_commit_that_named_a_file_counts(realm: RealmStore, catalog: Catalog, clock: FakeClock) -> None:
    commit(catalog, "v1")
    note_known(realm, catalog.definition)
    since = catalog.known_metadata().known_folder(FOLDER).find_origin(f"{FOLDER}/v1")
    clock.advance(60)
    commit(catalog, "v2")
    catalog.create_branch("trial")

    assert catalog.known_metadata().known_folder(FOLDER).find_origin(f"{FOLDER}/v1") == since


def test_metadata_that_histories_hold_is_known_of_an_older_store(realm: RealmStore, catalog: Catalog) -> None:
    first = commit(catalog, "v1")
    commit(catalog, "v2")
    commit(catalog, "v3")
    forget(realm, first)

    found = catalog.known_metadata().known_folder(FOLDER)

    assert all(found.find_origin(f"{FOLDER}/{name}") for name in ("v1", "v2", "v3"))


def test_folder_has_its_last_files_noted(realm: RealmStore, catalog: Catalog, clock: FakeClock) -> None:
    commit(catalog, *(f"a{number}" for number in range(KEPT)))
    clock.advance(60)
    commit(catalog, *(f"b{number}" for number in range(KEPT + 2)))
    first = min(origin.time for origin in catalog.known_metadata().known_folder(FOLDER).files.values())
    note_known(realm, catalog.definition)

    found = catalog.known_metadata().known_folder(FOLDER)

    assert KEPT <= len(found.files) <= 2 * KEPT
    assert found.forgotten >= first
    assert sum(found.find_origin(f"{FOLDER}/b{number}") is not None for number in range(KEPT + 2)) >= KEPT


def test_forgetting_many_at_once_never_makes_them_news(
    realm: RealmStore, catalog: Catalog, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_metadata, "KEPT", 10)
    monkeypatch.setattr(known_metadata, "_WRITTEN_AT_ONCE", 20)
    for number in range(10):
        commit(catalog, *(f"{number}-{name}" for name in range(10)))
        clock.advance(60)
    files = catalog.known_metadata().known_folder(FOLDER).files
    note_known(realm, catalog.definition)

    found = catalog.known_metadata().known_folder(FOLDER)

    assert 10 <= len(found.files) <= 20
    assert all(name in found.files or origin.time <= found.forgotten for name, origin in files.items())
    assert all(origin.time > found.forgotten for origin in found.files.values())


def test_few_commits_of_many_files_are_noted_by_an_import(realm: RealmStore, catalog: Catalog) -> None:
    commit(catalog, *(f"v{number}" for number in range(1000)))

    catalog.known_metadata(note=True)

    assert note_known(realm, catalog.definition) == 0


def test_looking_again_sees_what_was_committed_since(catalog: Catalog) -> None:
    known = catalog.known_metadata()
    commit(catalog, "v1")
    own = commit(catalog, "v2")

    known.look_again({own})

    assert list(known.find_many([f"{FOLDER}/v1", f"{FOLDER}/v2"])) == [f"{FOLDER}/v1"]


# a head that is lost


@pytest.fixture
def lost(realm: RealmStore, catalog: Catalog) -> ObjectId:
    """The first commit of main, and of ``broken``, whose third one is lost."""
    first = commit(catalog, "v1")
    for name in ("apart", "broken"):
        catalog.create_branch(name)
    commit(catalog, "v2", branch="broken")
    forget(realm, commit(catalog, "v3", branch="broken"))
    return first


def test_lost_head_stops_no_assignment(catalog: Catalog, lost: ObjectId) -> None:
    commit(catalog, "v4", branch="apart")

    assert catalog.assign_branch("apart", lost).head == lost


def test_branch_whose_head_is_lost_can_be_put_back(realm: RealmStore, catalog: Catalog, lost: ObjectId) -> None:
    catalog.assign_branch("broken", lost)

    assert note_known(realm, catalog.definition) > 0


def test_lost_head_stops_no_branch_over_a_tombstone(catalog: Catalog, lost: ObjectId) -> None:
    catalog.delete_branch("apart")

    assert catalog.create_branch("apart").head == lost


def test_metadata_before_a_lost_head_is_known(catalog: Catalog, lost: ObjectId) -> None:
    found = catalog.known_metadata().known_folder(FOLDER)

    assert [bool(found.find_origin(f"{FOLDER}/{name}")) for name in ("v1", "v2", "v3")] == [True, True, False]


def test_collector_does_not_pass_over_a_lost_head(realm: RealmStore, catalog: Catalog, lost: ObjectId) -> None:
    with pytest.raises(ExpiredError, match="branch 'broken' of catalog 'lake'"):
        note_known(realm, catalog.definition)


# what a branch has left


def test_assignment_notes_nothing(realm: RealmStore, catalog: Catalog) -> None:
    first = commit(catalog, "v1")
    commit(catalog, "v2")
    reference = f"cat/{catalog.definition.id}/refs"
    before = read_head(realm, reference, fresh=True)

    catalog.assign_branch("main", first)

    assert read_head(realm, reference, fresh=True) == before
    assert catalog.known_metadata().known_folder(FOLDER).find_origin(f"{FOLDER}/v2")


@pytest.mark.parametrize("again", ["assign", "create", "undelete"])
def test_metadata_that_a_branch_left_is_noted_in_time(
    realm: RealmStore, catalog: Catalog, clock: FakeClock, again: str
) -> None:
    first = commit(catalog, "v1")
    catalog.create_branch("trial")
    left = commit(catalog, "v2", branch="trial")
    catalog.assign_branch("trial", first)
    clock.advance(DAY)
    commit(catalog, "v3", branch="trial")
    if again == "assign":
        catalog.assign_branch("trial", first)
    else:
        catalog.delete_branch("trial")
        catalog.create_branch("trial") if again == "create" else catalog.undelete_branch("trial")
    assert left not in [move.pointer for move in realm.read_reference(f"cat/{catalog.definition.id}/heads/trial").moves]
    forget(realm, left)

    assert catalog.known_metadata().known_folder(FOLDER).find_origin(f"{FOLDER}/v2")


def test_metadata_a_branch_left_is_read_as_needed(realm: RealmStore, catalog: Catalog, clock: FakeClock) -> None:
    for number in range(60):
        base = commit(catalog, f"a{number}")
    for number in range(3):
        commit(catalog, f"b{number}")
    catalog.assign_branch("main", base)
    clock.advance(DAY)
    commit(catalog, "c")
    row = realm.read_reference(f"cat/{catalog.definition.id}/heads/main", fresh=True)

    noted = known_metadata.note_forgotten(realm, catalog.definition, row, base)

    assert 3 <= noted <= 3 + 20
