"""A deleted catalog can come back until its hold is over; then it is purged."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog, CatalogDefinition, Catalogs, ContentKey, Namespace, Put, RefKind, finish_deletions
from headwater.catalogs.registry import content_reference
from headwater.errors import ConflictError, NotFoundError, RefusedError
from headwater.store import ObjectId, RealmStore

HOLD = 24 * 3600


def make(catalogs: Catalogs, name: str = "lake", **fields: float) -> CatalogDefinition:
    return catalogs.create_catalog(name, base_location=f"s3://{name}/", **fields)  # type: ignore[arg-type]


def main_of(definition: CatalogDefinition) -> str:
    return content_reference(definition.id, RefKind.BRANCH, "main")


def test_undeleted_catalog_is_as_it_was(catalogs: Catalogs, catalog: Catalog, first: ObjectId) -> None:
    catalogs.delete_catalog("lake")
    back = catalogs.undelete_catalog("lake")

    assert back.id == catalog.definition.id
    assert catalogs.open_catalog("lake").branch("main").head == first


def test_deletion_buries_nothing_before_its_hold_is_over(catalogs: Catalogs, realm: RealmStore, clock: FakeClock) -> None:
    made = make(catalogs)
    catalogs.delete_catalog("lake")
    clock.advance(HOLD - 1)

    assert finish_deletions(realm) == 0
    assert realm.find_reference(main_of(made), fresh=True) is not None


def test_catalog_is_purged_when_its_hold_is_over(catalogs: Catalogs, realm: RealmStore, clock: FakeClock) -> None:
    made = make(catalogs)
    catalogs.delete_catalog("lake")
    clock.advance(HOLD + 1)

    assert finish_deletions(realm) == 1
    assert realm.find_reference(main_of(made), fresh=True) is None


def test_catalog_may_have_a_hold_of_its_own(catalogs: Catalogs) -> None:
    make(catalogs, hold_seconds=60)
    deleted = catalogs.delete_catalog("lake")

    assert deleted.held_until == deleted.updated + 60_000_000


def test_negative_hold_is_refused(catalogs: Catalogs) -> None:
    with pytest.raises(RefusedError, match="hold_seconds of a catalog"):
        make(catalogs, hold_seconds=-1)


def test_catalog_that_is_being_purged_cannot_come_back(catalogs: Catalogs) -> None:
    make(catalogs)
    catalogs.delete_catalog("lake")
    catalogs.purge_catalog("lake")

    with pytest.raises(RefusedError, match="being purged"):
        catalogs.undelete_catalog("lake")


def test_catalog_past_its_hold_comes_back_until_purged(catalogs: Catalogs, clock: FakeClock) -> None:
    made = make(catalogs)
    catalogs.delete_catalog("lake")
    clock.advance(2 * HOLD)

    assert catalogs.undelete_catalog("lake").id == made.id


def test_catalog_that_is_not_deleted_is_not_purged(catalogs: Catalogs) -> None:
    make(catalogs)

    with pytest.raises(RefusedError, match="ACTIVE"):
        catalogs.purge_catalog("lake")


def test_catalog_that_is_not_deleted_is_not_undeleted(catalogs: Catalogs) -> None:
    make(catalogs)

    with pytest.raises(RefusedError, match="it was not deleted"):
        catalogs.undelete_catalog("lake")


def test_name_of_a_deleted_catalog_is_free(catalogs: Catalogs) -> None:
    make(catalogs)
    catalogs.delete_catalog("lake")
    new = make(catalogs)
    with pytest.raises(ConflictError, match="another catalog 'lake'"):
        catalogs.undelete_catalog("lake")

    assert catalogs.read_catalog("lake") == new


def test_catalog_comes_back_under_another_name(catalogs: Catalogs, catalog: Catalog, first: ObjectId) -> None:
    catalogs.delete_catalog("lake")
    new = make(catalogs)
    catalogs.undelete_catalog(catalog.definition.id, new_name="old-lake")

    assert catalogs.open_catalog("old-lake").branch("main").head == first
    assert catalogs.read_catalog("lake") == new


def test_purge_of_a_deleted_catalog_leaves_its_namesake_alone(catalogs: Catalogs) -> None:
    make(catalogs)
    catalogs.delete_catalog("lake")
    new = make(catalogs)
    catalogs.purge_catalog("lake")

    assert catalogs.list_catalogs() == [new]
    assert catalogs.open_catalog("lake").branches()


def test_catalog_deleted_last_of_several_comes_back(catalogs: Catalogs, clock: FakeClock) -> None:
    for _ in range(2):
        last = make(catalogs)
        catalogs.delete_catalog("lake")
        clock.advance(1)

    assert catalogs.undelete_catalog("lake").id == last.id


def test_repeated_purge_leaves_a_namesake_deleted_before_alone(catalogs: Catalogs, clock: FakeClock) -> None:
    for _ in range(2):
        make(catalogs)
        catalogs.delete_catalog("lake")
        clock.advance(1)
    catalogs.purge_catalog("lake")
    catalogs.purge_catalog("lake")

    assert [deleted.is_held for deleted in catalogs.list_deleted()] == [True, False]


def test_purged_catalogs_leftovers_are_buried_by_the_next_look(catalogs: Catalogs, realm: RealmStore) -> None:
    made = make(catalogs)
    catalogs.delete_catalog("lake")
    catalogs.purge_catalog("lake")
    realm.create_reference(main_of(made))

    assert finish_deletions(realm) == 1
    assert realm.find_reference(main_of(made), fresh=True) is None


def test_deleted_catalog_tells_until_when_it_can_come_back(catalogs: Catalogs) -> None:
    make(catalogs)
    catalogs.delete_catalog("lake")

    with pytest.raises(NotFoundError, match="can be undeleted until 20"):
        catalogs.read_catalog("lake")


def test_deleted_catalog_is_not_changed(catalogs: Catalogs) -> None:
    make(catalogs)
    deleted = catalogs.delete_catalog("lake")

    with pytest.raises(RefusedError, match="undelete it first"):
        catalogs.update_catalog(deleted, properties={"a": "b"})


def test_handle_on_a_catalog_that_was_deleted_commits_no_more(catalogs: Catalogs, catalog: Catalog, first: ObjectId) -> None:
    catalogs.delete_catalog("lake")

    with pytest.raises(NotFoundError, match="was deleted"):
        catalog.commit("main", [Put(ContentKey.of("late"), Namespace())])


def test_handle_looks_again_after_a_while(catalog: Catalog, realm: RealmStore, clock: FakeClock, first: ObjectId) -> None:
    Catalogs(realm.without_cache()).delete_catalog("lake")
    clock.advance(61)

    with pytest.raises(NotFoundError, match="was deleted"):
        catalog.commit("main", [Put(ContentKey.of("late"), Namespace())])
