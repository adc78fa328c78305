"""A name leaves its list only after its tombstone is gone, and only if nobody listed it anew; a deleted catalog goes entirely."""

from __future__ import annotations

import itertools
from uuid import UUID, uuid4

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import CATALOGS, CLAIMS, HOMES, Catalog, Catalogs, ContentKey, TableClaim, TableClaims, reference_names
from headwater.commits import read_head
from headwater.errors import HeadwaterError
from headwater.gc import collect_realm
from headwater.policies import MetadataFileRule, PolicyKind, StoredPolicy, list_policies, set_policy
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore, Store
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, make_lake, make_realm, meetings, open_on, put, rows_of
from lakes import lake as open_lake
from tiers import Sample


def names(rows: RealmStore, suffix: str = "") -> list[str]:
    return [entry.name for entry in reference_names(rows) if entry.name.endswith(suffix)]


def row_names(rows: RealmStore, suffix: str = "") -> list[str]:
    return [row.name for row in rows.scan_references() if row.name.endswith(suffix)]


@pytest.fixture
def deleted_branch(lake: Catalog, old_commits: list[ObjectId]) -> str:
    lake.create_branch("dev")
    lake.delete_branch("dev")
    return "heads/dev"


def test_tombstone_stays_for_the_grace_and_its_name_with_it(store: Store, realm_rows: RealmStore, deleted_branch: str) -> None:
    done = collect_realm(store, "acme")

    assert done.tombstones_removed == 0
    assert names(realm_rows, deleted_branch) == row_names(realm_rows, deleted_branch) != []


def test_tombstone_and_name_are_gone_after_the_grace(
    store: Store, realm_rows: RealmStore, deleted_branch: str, clock: FakeClock
) -> None:
    clock.advance(HOUR)
    done = collect_realm(store, "acme")

    assert done.tombstones_removed == 1
    assert names(realm_rows, deleted_branch) == row_names(realm_rows, deleted_branch) == []


def test_name_stays_when_the_collector_dies_between_tombstone_and_list(
    store: Store, realm_rows: RealmStore, deleted_branch: str, clock: FakeClock
) -> None:
    clock.advance(HOUR)
    backend = FaultyBackend(store.backend)
    backend.intervene("remove_reference", lambda: backend.fail("*", fault=KeyboardInterrupt(), before=False))
    with pytest.raises(KeyboardInterrupt):
        collect_realm(open_on(backend, store.settings, clock), "acme")

    assert row_names(realm_rows, deleted_branch) == []
    assert names(realm_rows, deleted_branch) != []


def test_listed_name_without_a_row_is_buried_and_released(
    store: Store, realm_rows: RealmStore, lake: Catalog, deleted_branch: str, clock: FakeClock
) -> None:
    [name] = row_names(realm_rows, deleted_branch)
    realm_rows.remove_tombstone(realm_rows.find_row(name))
    clock.advance(HOUR)
    collect_realm(store, "acme")
    assert len(row_names(realm_rows, deleted_branch)) == 1
    clock.advance(HOUR)
    collect_realm(store, "acme")

    assert names(realm_rows, deleted_branch) == row_names(realm_rows, deleted_branch) == []


def test_branch_made_again_during_a_collection_is_listed_afterwards(
    settings: Settings, clock: FakeClock, sample: Sample
) -> None:
    backend = MemoryBackend()
    store = open_on(backend, settings, clock)
    make_realm(store)
    catalog = make_lake(store)
    put(catalog, 1)
    catalog.create_branch("dev")
    catalog.delete_branch("dev")
    clock.advance(HOUR)

    calls = sample.one_in(3, itertools.count(1))
    for met in meetings(backend, settings, clock.now(), lambda other: open_lake(other).create_branch("dev"), calls):
        rows = rows_of(met.open())
        assert not isinstance(met.acted[0], HeadwaterError)
        assert len(names(rows, "heads/dev")) == len(row_names(rows, "heads/dev")) == 1
        met.collect_again()
        assert names(rows, "heads/dev")
        assert met.faults == []


def test_deleted_catalog_goes_entirely_in_the_end(
    store: Store, realm_rows: RealmStore, deleted_branch: str, clock: FakeClock
) -> None:
    Catalogs(realm_rows).delete_catalog("lake")
    Catalogs(realm_rows).purge_catalog("lake")
    for _ in range(4):
        clock.advance(HOUR)
        collect_realm(store, "acme")
    store.cache.clear()

    assert names(realm_rows) == []
    assert not any(name.startswith("cat/") for name in row_names(realm_rows))
    assert {key.type for batch in realm_rows.scan_objects() for key in batch} <= {
        "commit",
        "catalog",
        "collection",
        "cuts",
        "marks",
    }


def test_deleted_catalog_is_listed_until_its_last_reference_goes(
    store: Store, realm_rows: RealmStore, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    Catalogs(realm_rows).delete_catalog("lake")
    Catalogs(realm_rows).purge_catalog("lake")
    while names(realm_rows):
        unlisted = set(row_names(realm_rows)) - set(names(realm_rows))
        assert not any(name.startswith("cat/") for name in unlisted)
        clock.advance(HOUR)
        collect_realm(store, "acme")

    assert CATALOGS in row_names(realm_rows)


def content_id(lake: Catalog) -> UUID:
    found = lake.get_content(None, ContentKey.of("orders"))
    assert found is not None
    assert found.id is not None
    return found.id


def test_claim_of_living_content_stays(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    TableClaims(realm_rows).take_claims([TableClaim(lake.definition.id, content_id(lake), "s3://lake/orders", uuid4())])
    clock.advance(HOUR)
    done = collect_realm(store, "acme")

    assert done.claims_released == 0
    assert TableClaims(realm_rows).find_location("s3://lake/orders") is not None


def test_released_place_is_forgotten_with_its_content(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    gone, kept, claims = uuid4(), content_id(lake), TableClaims(realm_rows)
    claims.take_claims([TableClaim(lake.definition.id, each, f"s3://lake/{each}") for each in (gone, kept)])
    for each in (gone, kept):
        owner = claims.find_location(f"s3://lake/{each}")
        assert owner is not None and claims.announce_release({f"s3://lake/{each}": owner})
        assert claims.release_places({f"s3://lake/{each}": owner})
    assert claims.find_released(lake.definition.id) == {gone, kept}

    clock.advance(HOUR)
    collect_realm(store, "acme")

    assert claims.find_released(lake.definition.id) == {kept}


def test_claim_of_no_content_is_released_after_the_grace(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    TableClaims(realm_rows).take_claims([TableClaim(lake.definition.id, uuid4(), "s3://lake/lost", uuid4())])
    assert collect_realm(store, "acme").claims_released == 0
    clock.advance(HOUR)

    assert collect_realm(store, "acme").claims_released == 2  # the uuid and the location
    assert TableClaims(realm_rows).find_location("s3://lake/lost") is None


def test_home_goes_with_the_claim(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    kept = TableClaim(lake.definition.id, content_id(lake), "s3://lake/orders", uuid4(), is_home=True)
    TableClaims(realm_rows).take_claims(
        [kept, TableClaim(lake.definition.id, uuid4(), "s3://lake/lost", uuid4(), is_home=True)]
    )
    clock.advance(HOUR)
    done = collect_realm(store, "acme")

    claims = read_head(realm_rows, CLAIMS, fresh=True)
    assert claims is not None and done.claims_released == 2
    assert [bytes(key)[16:] for key, _ in claims.index(HOMES).range()] == [kept.content_id.bytes]


def test_claim_taken_again_stays(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    claim = TableClaim(lake.definition.id, uuid4(), "s3://lake/slow", uuid4())
    TableClaims(realm_rows).take_claims([claim])
    clock.advance(HOUR)
    TableClaims(realm_rows).take_claims([claim])

    assert collect_realm(store, "acme").claims_released == 0


def test_policies_of_gone_tables_and_catalogs_are_released(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    def put(table: UUID | None) -> None:
        policy = StoredPolicy(
            kind=PolicyKind.METADATA_FILES, catalog_id="", content_id=table, metadata_files=MetadataFileRule(keep=9)
        )
        set_policy(realm_rows, lake.definition, policy)

    def tables() -> list[UUID | None]:
        return [policy.content_id for policy in list_policies(realm_rows, lake.definition.id)]

    kept, lost = content_id(lake), uuid4()
    for table in (None, kept, lost):
        put(table)
    assert collect_realm(store, "acme") and set(tables()) == {None, kept, lost}, "a commit may be under way"
    clock.advance(HOUR)
    put(late := uuid4())
    assert collect_realm(store, "acme") and set(tables()) == {None, kept, late}

    Catalogs(realm_rows).delete_catalog("lake")
    clock.advance(HOUR)
    assert collect_realm(store, "acme") and set(tables()) >= {None, kept}, "it can be undeleted"
    Catalogs(realm_rows).purge_catalog("lake")
    for _ in range(3):
        clock.advance(HOUR)
        collect_realm(store, "acme")
    assert tables() == []


def test_claims_of_a_deleted_catalog_are_released(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    TableClaims(realm_rows).take_claims([TableClaim(lake.definition.id, content_id(lake), "s3://lake/orders", uuid4())])
    Catalogs(realm_rows).delete_catalog("lake")
    Catalogs(realm_rows).purge_catalog("lake")
    for _ in range(2):
        clock.advance(HOUR)
        collect_realm(store, "acme")

    assert TableClaims(realm_rows).find_location("s3://lake/orders") is None
