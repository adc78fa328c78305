"""Branches and tags: listed before they are made, moved by condition, deleted to a tombstone."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs, ContentKey, Delete, IcebergTable, Put, RefKind
from headwater.catalogs.registry import REFS_INDEX, ListedRef, OwnRefKind, content_reference, own_reference, ref_key
from headwater.clock import Micros
from headwater.commits import commit_change, read_head
from headwater.commits.gc_record import COLLECTION_ID, CollectionRecord
from headwater.errors import ConflictError, ExpiredError, NotFoundError, RefusedError, UnavailableError
from headwater.store import ObjectId, RealmStore, id_text

TABLE = IcebergTable(metadata_location="s3://lake/x.json")


def listed(rows: RealmStore, catalog: Catalog, kind: RefKind, name: str) -> Micros | None:
    names = read_head(rows, own_reference(catalog.definition.id, OwnRefKind.REFS), fresh=True)
    key = ref_key(kind, name)
    value = None if names is None else names.index(REFS_INDEX).get(key)
    return None if value is None else ListedRef.from_entry(key, value).listed


def second(catalog: Catalog, name: str = "second") -> ObjectId:
    done = catalog.commit("main", [Put(ContentKey.of(name), TABLE)])
    assert done.commit_id is not None
    return done.commit_id


def sweep(rows: RealmStore) -> None:
    rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=True))


def test_branch_starts_at_the_head_of_the_default_branch(catalog: Catalog, first: ObjectId) -> None:
    assert catalog.create_branch("dev").head == first


def test_branch_of_an_empty_branch_is_empty(catalog: Catalog) -> None:
    assert catalog.create_branch("dev").head is None


def test_branch_starts_at_another_branch(catalog: Catalog, first: ObjectId) -> None:
    catalog.create_branch("dev")
    second(catalog)

    assert catalog.create_branch("feature/x", "dev").head == first


def test_tag_starts_at_an_older_commit(catalog: Catalog, first: ObjectId) -> None:
    second(catalog)

    assert catalog.create_tag("v1", at=first).hash == id_text(first)
    assert [(tag.kind, tag.name) for tag in catalog.tags()] == [(RefKind.TAG, "v1")]


def test_branches_and_tags_are_listed_apart_and_by_name(catalog: Catalog, first: ObjectId) -> None:
    for name in ("b", "a"):
        catalog.create_branch(name)
    catalog.create_tag("t")

    assert [branch.name for branch in catalog.branches()] == ["a", "b", "main"]
    assert [tag.name for tag in catalog.tags()] == ["t"]


def test_commit_that_is_not_in_the_source_is_refused(catalog: Catalog, first: ObjectId) -> None:
    catalog.create_branch("dev")
    other = second(catalog)

    with pytest.raises(RefusedError, match="is not in the history of 'dev' of catalog"):
        catalog.create_branch("x", "dev", at=other)


def test_commit_of_another_catalog_is_no_target(catalog: Catalog, catalogs: Catalogs, first: ObjectId) -> None:
    catalogs.create_catalog("other", base_location="s3://other/")

    with pytest.raises(NotFoundError, match="is not one of catalog 'other'"):
        catalogs.open_catalog("other").create_branch("x", at=first)


def test_commit_that_never_was_is_no_target(catalog: Catalog, first: ObjectId) -> None:
    with pytest.raises(ExpiredError):
        catalog.create_branch("x", at=ObjectId(12345))


@pytest.mark.parametrize("name", ["dev", "v1"])
def test_name_is_taken_once(catalog: Catalog, first: ObjectId, name: str) -> None:
    catalog.create_branch("dev")
    catalog.create_tag("v1")

    for create in (catalog.create_branch, catalog.create_tag):
        with pytest.raises(ConflictError, match="has a"):
            create(name)


def test_bad_name_is_refused(catalog: Catalog) -> None:
    with pytest.raises(RefusedError, match="is not a name for a branch"):
        catalog.create_branch("a..b")


def test_branch_moves_by_commits_of_its_own(catalog: Catalog, first: ObjectId) -> None:
    catalog.create_branch("dev")
    catalog.commit("dev", [Put(ContentKey.of("x"), TABLE)])

    assert (catalog.branch("main").head, catalog.count("main"), catalog.count("dev")) == (first, 2, 3)


def test_assigned_branch_leaves_a_recorded_move(catalog: Catalog, realm: RealmStore, first: ObjectId) -> None:
    left = second(catalog)
    assert catalog.assign_branch("main", first, expected=left).head == first

    row = realm.read_reference(content_reference(catalog.definition.id, RefKind.BRANCH, "main"))
    assert [move.pointer for move in row.moves] == [left]
    assert catalog.assign_branch("main", left).head == left


def test_assignment_from_another_head_is_a_conflict(catalog: Catalog, first: ObjectId) -> None:
    second(catalog)

    with pytest.raises(ConflictError, match="expected"):
        catalog.assign_branch("main", first, expected=first)


def test_tag_is_assigned(catalog: Catalog, first: ObjectId) -> None:
    catalog.create_tag("v1")
    later = second(catalog)

    assert catalog.assign_tag("v1", later, expected=first).head == later


def test_deleted_branch_is_hidden_and_its_name_stays_listed(catalog: Catalog, realm: RealmStore, first: ObjectId) -> None:
    catalog.create_branch("dev")
    assert catalog.delete_branch("dev", expected=first).head == first

    assert [branch.name for branch in catalog.branches()] == ["main"]
    assert listed(realm, catalog, RefKind.BRANCH, "dev") is not None
    with pytest.raises(NotFoundError):
        catalog.branch("dev")


def test_deletion_from_another_head_is_a_conflict(catalog: Catalog, first: ObjectId) -> None:
    catalog.create_branch("dev")
    catalog.commit("dev", [Delete(ContentKey.of("sales", "orders"))])

    with pytest.raises(ConflictError, match="expected"):
        catalog.delete_branch("dev", expected=first)


def test_default_branch_is_not_deleted(catalog: Catalog) -> None:
    with pytest.raises(RefusedError, match="default branch"):
        catalog.delete_branch("main")


def test_default_branch_of_now_is_not_deleted(catalog: Catalog, catalogs: Catalogs) -> None:
    catalog.create_branch("dev")
    catalogs.update_catalog(catalog.definition, default_branch="dev")

    with pytest.raises(RefusedError, match="default branch"):
        catalog.delete_branch("dev")
    assert catalog.delete_branch("main").name == "main"


def test_tag_is_deleted(catalog: Catalog, first: ObjectId) -> None:
    catalog.create_tag("v1")
    catalog.delete_tag("v1")

    assert catalog.tags() == []


def test_deleted_branch_is_created_again_with_a_new_time(
    catalog: Catalog, realm: RealmStore, first: ObjectId, clock: FakeClock
) -> None:
    catalog.create_branch("dev")
    catalog.delete_branch("dev")
    before = listed(realm, catalog, RefKind.BRANCH, "dev")
    clock.advance(60)
    assert catalog.create_branch("dev").head == first

    after = listed(realm, catalog, RefKind.BRANCH, "dev")
    assert before is not None
    assert after is not None
    assert after > before + 59_000_000


def test_name_that_is_only_listed_is_no_branch(catalog: Catalog, realm: RealmStore) -> None:
    entry = ListedRef(RefKind.BRANCH, "ghost", Micros(1))
    reference = own_reference(catalog.definition.id, OwnRefKind.REFS)
    commit_change(realm, reference, lambda tx: tx.index(REFS_INDEX).put(entry.key, entry.to_value()))

    assert [branch.name for branch in catalog.branches()] == ["main"]
    assert catalog.create_branch("ghost").head is None


def test_head_alone_is_a_target_during_a_sweep(catalog: Catalog, realm: RealmStore, first: ObjectId) -> None:
    later = second(catalog)
    sweep(realm)

    with pytest.raises(UnavailableError, match="sweeping"):
        catalog.create_branch("old", at=first)
    with pytest.raises(UnavailableError, match="sweeping"):
        catalog.assign_branch("main", first)
    assert catalog.create_branch("new", at=later).head == later
