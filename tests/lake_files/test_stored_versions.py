"""The scan of a store for every version of a table or view that is stored in it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from searched_lake import SearchedLake

from faulty_backend import FaultyBackend
from headwater.catalogs import ContentKey, DeltaLakeTable, Put
from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.stored_versions import StoredContent, VersionScan, realm_buckets
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from headwater.store import Store
from headwater.store.ids import RealmKey
from lakes import REALM, open_on


def scanned(store: Store) -> tuple[VersionScan, list[bytes], list[StoredContent]]:
    contents: list[StoredContent] = []
    scan = VersionScan(store, on_content=contents.append)
    texts = [version.read_text() for version in scan if version.read_text is not None]
    return scan, texts, contents


def test_every_version_is_met_once(lake: SearchedLake) -> None:
    files = [lake.put_table("orders", lake.write(f"orders/data/{number}")) for number in range(5)]

    scan, texts, contents = scanned(lake.store)

    assert len(texts) == 5
    assert {content.metadata_location for content in contents} == set(files)
    assert scan.blocked == []


def test_documents_are_read_many_in_a_trip(lake: SearchedLake) -> None:
    for number in range(40):
        lake.put_table(f"t{number}")
    backend = FaultyBackend(lake.store.backend)
    _, texts, _ = scanned(open_on(backend, lake.store.settings, lake.store.clock))

    assert len(texts) == 40
    assert backend.calls.count("read_objects") < 20


def test_version_has_the_same_id_with_every_scan(lake: SearchedLake) -> None:
    lake.put_table("orders")

    assert [version.version_id for version in VersionScan(lake.store)] == [
        version.version_id for version in VersionScan(lake.store)
    ]


@pytest.mark.parametrize("state", [RealmState.INACTIVE, RealmState.PURGING])
def test_realm_that_serves_nobody_is_met(lake: SearchedLake, state: RealmState) -> None:
    lake.put_table("orders")
    realms = RealmRegistry(lake.store)
    realm = realms.move_realm(realms.read_realm(REALM), RealmState.INACTIVE)
    if state is RealmState.PURGING:
        lake.store.clock.advance(3600.0)  # type: ignore[attr-defined]
        realms.move_realm(realm, RealmState.PURGING)

    assert len(scanned(lake.store)[1]) == 1


def damage(lake: SearchedLake, type_name: str, *, as_type: str | None = None) -> None:
    """Alter a row of a type, or give it another one."""
    backend, rows = lake.store.backend, lake.rows
    head = lake.catalog.resolve()
    assert head is not None
    ids = (key.id for batch in rows.scan_objects() for key in batch if key.type == type_name)
    damaged = head.id if type_name == "commit" else next(ids)  # other commits tell which buckets the realm has
    [row] = backend.read_objects(rows.key, [(damaged, 0)])
    assert row is not None
    backend.write_objects([msgspec.structs.replace(row, value=row.value[:-1] + b"?", type=as_type or row.type)])
    lake.store.cache.clear()


@pytest.mark.parametrize("type_name", ["iceberg-table", "commit"])
def test_row_that_cannot_be_read_blocks_the_buckets_of_its_realm(lake: SearchedLake, type_name: str) -> None:
    lake.put_table("orders")
    damage(lake, type_name)

    assert [(block.location, block.code) for block in scanned(lake.store)[0].blocked] == [
        ("file://", PlaceReason.REFERRER_UNREADABLE)
    ]


def test_type_of_a_later_release_blocks_the_buckets_of_its_realm(lake: SearchedLake) -> None:
    lake.put_table("orders")
    damage(lake, "iceberg-table", as_type="iceberg-index")

    assert [(block.location, block.code) for block in scanned(lake.store)[0].blocked] == [
        ("file://", PlaceReason.REFERRER_TOO_NEW)
    ]


def test_rows_of_no_listed_realm_block_everything(lake: SearchedLake) -> None:
    lake.put_table("orders")
    key = next(key for batch in lake.rows.scan_objects() for key in batch if key.type == "iceberg-table")
    [row] = lake.store.backend.read_objects(lake.rows.key, [(key.id, 0)])
    assert row is not None
    lake.store.backend.write_objects([msgspec.structs.replace(row, realm=RealmKey(12345))])

    assert [block.location for block in scanned(lake.store)[0].blocked] == [""]


def test_delta_table_blocks_its_folder(lake: SearchedLake) -> None:
    path = f"{lake.location('delta')}/_delta_log/00000000000000000000.json"
    lake.catalog.commit(None, [Put(ContentKey.of("delta"), DeltaLakeTable(metadata_location_history=(path,)))])

    assert [(block.location, block.code) for block in scanned(lake.store)[0].blocked] == [
        (lake.location("delta"), PlaceReason.WRITTEN_ELSEWHERE)
    ]


def test_buckets_of_a_realm_are_those_of_catalogs_and_claims(lake: SearchedLake, tmp_path: Path) -> None:
    assert realm_buckets(lake.rows) == ["file://"]


def test_other_realm_is_met(lake: SearchedLake, tmp_path: Path) -> None:
    realms = RealmRegistry(lake.store)
    realm = realms.move_realm(realms.create_realm("beta"), RealmState.INITIALIZING)
    for name in REALM_REFERENCES:
        realms.open_realm_for("beta", RealmState.INITIALIZING).ensure_reference(name)
    realms.move_realm(realm, RealmState.ACTIVE)
    other = SearchedLake(lake.store, tmp_path / "beta", rows=realms.open_realm("beta"))
    other.put_table("theirs")

    assert len(scanned(lake.store)[1]) == 1
