"""A table or view has the same content id wherever and however often it is created, so its claims are its own."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from headwater.catalogs import (
    PURGING,
    Catalog,
    Catalogs,
    ConflictKind,
    ContentKey,
    Delete,
    IcebergTable,
    MergeConflictError,
    Put,
    TableClaim,
    TableClaims,
    derive_content_id,
)
from headwater.errors import ConflictError, RefusedError
from headwater.store import RealmStore

UUID_OF_T = UUID("7e0b3f9e-6d0b-4c55-8f0e-3e2d8a5a1c11")
T, U = ContentKey.of("t"), ContentKey.of("u")
PLACE = "s3://lake/t"


@pytest.fixture
def store_url() -> str:
    return "memory://"


@pytest.fixture
def claims(realm: RealmStore) -> TableClaims:
    return TableClaims(realm)


def claim_of(catalog: Catalog, claims: TableClaims, location: str = PLACE, table_uuid: UUID = UUID_OF_T) -> TableClaim:
    return TableClaim(catalog.definition.id, claims.find_content_id(catalog.definition.id, table_uuid), location, table_uuid)


def create(catalog: Catalog, claims: TableClaims, key: ContentKey = T, *, branch: str = "main", version: int = 1) -> UUID:
    """What a client does: claim, then commit. Returns the content id."""
    claim = claim_of(catalog, claims)
    assert claims.take_claims([claim]) == ()
    table = IcebergTable(metadata_location=f"{PLACE}/v{version}.json", table_uuid=str(UUID_OF_T))
    catalog.commit(branch, [Put(key, table)], content_ids={key: claim.content_id})
    return claim.content_id


def test_content_id_is_derived_in_the_same_way_for_good() -> None:
    assert str(derive_content_id(UUID_OF_T)) == "838a366a-c803-5cde-85f4-0030616f3d1a"
    assert derive_content_id(UUID_OF_T).version == 5
    assert derive_content_id(UUID_OF_T) != derive_content_id(uuid4())


def test_creation_that_was_broken_off_can_be_repeated(catalog: Catalog, claims: TableClaims) -> None:
    assert claims.take_claims([claim_of(catalog, claims)]) == ()

    assert create(catalog, claims) == derive_content_id(UUID_OF_T)


def test_dropped_table_can_be_registered_again_where_it_lies(catalog: Catalog, claims: TableClaims) -> None:
    before = create(catalog, claims)
    catalog.commit("main", [Delete(T)])

    assert create(catalog, claims, U) == before
    assert catalog.find_by_id("main", [before])[before].key == U


def test_table_registered_on_another_branch_is_the_same(catalog: Catalog, claims: TableClaims) -> None:
    catalog.commit("main", [Put(U, IcebergTable(metadata_location="s3://lake/u/v1.json"))])
    catalog.create_branch("dev")
    create(catalog, claims)
    create(catalog, claims, branch="dev")

    assert catalog.diff("main", "dev").changes == ()
    assert not catalog.merge("dev", "main").is_applied


def test_versions_of_a_table_on_two_branches_conflict_in_a_merge(catalog: Catalog, claims: TableClaims) -> None:
    catalog.commit("main", [Put(U, IcebergTable(metadata_location="s3://lake/u/v1.json"))])
    catalog.create_branch("dev")
    create(catalog, claims)
    create(catalog, claims, branch="dev", version=2)

    with pytest.raises(MergeConflictError):
        catalog.merge("dev", "main")


def test_table_cannot_stand_under_two_keys_of_a_branch(catalog: Catalog, claims: TableClaims) -> None:
    content_id = create(catalog, claims)
    table = IcebergTable(metadata_location=f"{PLACE}/v1.json", table_uuid=str(UUID_OF_T))

    with pytest.raises(ConflictError) as conflict:
        catalog.commit("main", [Put(U, table)], content_ids={U: content_id})
    assert [found.kind for found in conflict.value.details] == [ConflictKind.KEY_CONFLICT]  # type: ignore[attr-defined]  # its conflicts


def test_table_cannot_be_created_twice_in_one_commit(catalog: Catalog, claims: TableClaims) -> None:
    content_id = claims.find_content_id(catalog.definition.id, UUID_OF_T)
    table = IcebergTable(metadata_location=f"{PLACE}/v1.json", table_uuid=str(UUID_OF_T))

    with pytest.raises(RefusedError, match="u would be the same content as t"):
        catalog.commit("main", [Put(T, table), Put(U, table)], content_ids={T: content_id, U: content_id})
    assert catalog.count("main") == 0


def test_table_of_another_catalog_stays_with_it(catalogs: Catalogs, catalog: Catalog, claims: TableClaims) -> None:
    create(catalog, claims)
    catalogs.create_catalog("pond", base_location="s3://pond/")
    pond = catalogs.open_catalog("pond")

    assert claim_of(pond, claims).content_id == derive_content_id(UUID_OF_T)
    assert len(claims.take_claims([claim_of(pond, claims)])) == 1


def test_table_with_an_id_by_chance_keeps_it(catalog: Catalog, claims: TableClaims) -> None:
    """Of an earlier release, or of an import."""
    by_chance = uuid4()
    claims.take_claims([TableClaim(catalog.definition.id, by_chance, PLACE, UUID_OF_T)])

    assert create(catalog, claims) == by_chance


def test_table_that_is_being_purged_cannot_be_registered(catalog: Catalog, claims: TableClaims) -> None:
    content_id = derive_content_id(UUID_OF_T)
    claims.take_claims([TableClaim(PURGING, content_id, PLACE, UUID_OF_T)])

    [conflict, *_] = claims.find_conflicts([claim_of(catalog, claims)])
    assert "is being purged" in str(conflict)
