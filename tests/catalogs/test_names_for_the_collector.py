"""Every reference name is listed for the collector, and given up only when nobody wants it any more."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog, CatalogDefinition, Catalogs, RefKind, finish_deletions, reference_names, release_name
from headwater.catalogs.registry import OwnRefKind, content_reference, own_reference
from headwater.clock import Micros
from headwater.errors import NotFoundError
from headwater.store import ObjectId, RealmStore

DEV = (RefKind.BRANCH, "dev")


def later(clock: FakeClock) -> Micros:
    clock.advance(60)
    return clock.now()


def remove_row(rows: RealmStore, name: str) -> None:
    """What the collector does to an old tombstone."""
    row = rows.find_row(name)
    assert row is not None
    rows.remove_tombstone(row)


def names(rows: RealmStore) -> list[str]:
    return [entry.name for entry in reference_names(rows)]


def test_all_names_are_listed_with_their_kind(catalog: Catalog, realm: RealmStore, first: ObjectId) -> None:
    catalog.create_branch("dev")
    catalog.create_tag("v1")
    found = {entry.name.split("/", 2)[2]: entry.is_content for entry in reference_names(realm)}

    assert found == {"refs": False, "roles": False, "grants": False, "heads/dev": True, "heads/main": True, "tags/v1": True}


def test_realm_without_catalogs_lists_nothing(catalogs: Catalogs, realm: RealmStore) -> None:
    assert reference_names(realm) == []


def test_realm_without_its_list_is_an_error_and_never_empty(rows: RealmStore) -> None:
    with pytest.raises(NotFoundError, match="not bootstrapped"):
        reference_names(rows)


def test_name_is_released_after_its_tombstone_is_removed(
    catalog: Catalog, realm: RealmStore, first: ObjectId, clock: FakeClock
) -> None:
    name = content_reference(catalog.definition.id, *DEV)
    catalog.create_branch("dev")
    catalog.delete_branch("dev")
    assert not release_name(realm, name, older_than=later(clock))
    remove_row(realm, name)

    assert release_name(realm, name, older_than=clock.now())
    assert name not in names(realm)
    assert not release_name(realm, name, older_than=clock.now())


def test_name_that_was_listed_anew_stays(catalog: Catalog, realm: RealmStore, clock: FakeClock) -> None:
    name = content_reference(catalog.definition.id, *DEV)
    catalog.create_branch("dev")
    cutoff = clock.now()
    catalog.delete_branch("dev")
    remove_row(realm, name)

    assert not release_name(realm, name, older_than=cutoff)
    assert name in names(realm)


def test_no_name_with_a_row_is_released(catalog: Catalog, realm: RealmStore) -> None:
    assert not any(release_name(realm, name, older_than=Micros(2**62)) for name in names(realm))


def test_own_references_of_a_live_catalog_stay(catalog: Catalog, realm: RealmStore, clock: FakeClock) -> None:
    assert not any(release_name(realm, name, older_than=later(clock)) for name in names(realm))


@pytest.mark.parametrize("name", ["root", "catalogs", "cat/0000000000000001/refs", "cat/0000000000000001/heads/main"])
def test_name_of_no_catalog_is_not_released(catalog: Catalog, realm: RealmStore, clock: FakeClock, name: str) -> None:
    assert not release_name(realm, name, older_than=later(clock))


def collect(rows: RealmStore, clock: FakeClock) -> None:
    """One collection, as far as names go: every tombstone is old enough, and so is every entry."""
    finish_deletions(rows)
    cutoff = later(clock)
    for name in names(rows):
        row = rows.find_row(name)
        if row is not None and row.deleted is not None:
            rows.remove_tombstone(row)
        if rows.find_row(name) is None:
            release_name(rows, name, older_than=cutoff)


def deleted(catalogs: Catalogs) -> CatalogDefinition:
    catalogs.open_catalog("lake").create_branch("dev")
    catalogs.delete_catalog("lake")
    return catalogs.purge_catalog("lake")


def test_deleted_catalog_stays_listed_until_its_names_are_gone(
    catalog: Catalog, catalogs: Catalogs, realm: RealmStore, clock: FakeClock
) -> None:
    definition = deleted(catalogs)
    own = {own_reference(definition.id, part) for part in OwnRefKind}
    heads = {content_reference(definition.id, RefKind.BRANCH, name) for name in ("main", "dev")}
    assert set(names(realm)) == own | heads
    collect(realm, clock)
    assert set(names(realm)) == own
    collect(realm, clock)

    assert names(realm) == []
    assert [row.name for row in realm.scan_references() if row.name.startswith("cat/")] == []


def test_own_references_that_go_one_by_one_all_go(
    catalog: Catalog, catalogs: Catalogs, realm: RealmStore, clock: FakeClock
) -> None:
    deleted(catalogs)
    collect(realm, clock)
    finish_deletions(realm)
    cutoff = later(clock)
    for name in names(realm):
        remove_row(realm, name)
        assert release_name(realm, name, older_than=cutoff)
        assert name not in names(realm)

    assert names(realm) == []


def test_catalog_purged_just_now_keeps_its_names(
    catalog: Catalog, catalogs: Catalogs, realm: RealmStore, clock: FakeClock
) -> None:
    cutoff = clock.now()
    definition = deleted(catalogs)
    name = own_reference(definition.id, OwnRefKind.ROLES)
    row = realm.read_reference(name)
    realm.delete_reference(row)
    remove_row(realm, name)

    assert not release_name(realm, name, older_than=cutoff)


def test_catalog_that_can_come_back_keeps_its_names(
    catalog: Catalog, catalogs: Catalogs, realm: RealmStore, clock: FakeClock
) -> None:
    name = own_reference(catalogs.delete_catalog("lake").id, OwnRefKind.ROLES)
    realm.delete_reference(realm.read_reference(name))
    remove_row(realm, name)

    assert not any(release_name(realm, name, older_than=later(clock)) for name in names(realm))


def test_list_of_branches_is_buried_last(catalog: Catalog, catalogs: Catalogs, realm: RealmStore) -> None:
    definition = deleted(catalogs)
    finish_deletions(realm)

    assert realm.find_reference(own_reference(definition.id, OwnRefKind.REFS), fresh=True) is not None
