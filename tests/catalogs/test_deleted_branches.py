"""A deleted branch or tag comes back to where it was, as long as its tombstone stands."""

from __future__ import annotations

import pytest

from headwater.catalogs import Catalog, RefKind
from headwater.catalogs.registry import content_reference
from headwater.errors import ConflictError, NotFoundError
from headwater.store import ObjectId, RealmStore


def test_undeleted_branch_is_where_it_was(catalog: Catalog, first: ObjectId) -> None:
    catalog.create_branch("dev")
    catalog.delete_branch("dev")

    assert catalog.undelete_branch("dev").head == first
    assert catalog.branch("dev").head == first


def test_undeleted_tag_is_where_it_was(catalog: Catalog, first: ObjectId) -> None:
    catalog.create_tag("v1")
    catalog.delete_tag("v1")

    assert catalog.undelete_tag("v1").head == first


def test_branch_without_a_commit_comes_back_without_one(catalog: Catalog) -> None:
    catalog.create_branch("dev")
    catalog.delete_branch("dev")

    assert catalog.undelete_branch("dev").head is None


def test_branch_that_is_there_is_not_undeleted(catalog: Catalog, first: ObjectId) -> None:
    catalog.create_branch("dev")

    with pytest.raises(ConflictError, match="has a branch"):
        catalog.undelete_branch("dev")


def test_branch_whose_tombstone_is_gone_cannot_come_back(catalog: Catalog, realm: RealmStore) -> None:
    catalog.create_branch("dev")
    catalog.delete_branch("dev")
    tombstone = realm.find_row(content_reference(catalog.definition.id, RefKind.BRANCH, "dev"))
    assert tombstone is not None
    realm.remove_tombstone(tombstone)

    with pytest.raises(NotFoundError, match="collected after its grace"):
        catalog.undelete_branch("dev")


def test_deleted_branches_are_listed_with_the_time_of_their_deletion(catalog: Catalog, realm: RealmStore) -> None:
    catalog.create_branch("dev")
    catalog.delete_branch("dev")

    assert [(named.name, time) for named, time in catalog.deleted_branches()] == [("dev", realm.clock.now())]
