"""Open catalogs that requests share, and what clients are told of the way to the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fake_clock import FakeClock
from headwater import Settings, Store
from headwater.catalogs import Catalog
from headwater_server.call import ServedStore
from headwater_server.lake_sessions import LakeSession, LakeSessions
from headwater_server.warehouse_address import WarehouseAddress

ADDRESS = WarehouseAddress("acme", "lake")
DOCUMENT = b'{"format-version": 2, "location": "s3://lake/sales/orders", "properties": {}}'


@pytest.fixture
def options(tmp_path: Path) -> Path:
    file = tmp_path / "storages.json"
    entry = {"location": "s3://lake", "endpoint": "http://s3:8333", "access-key-id": "id", "secret-access-key": "geheim"}
    file.write_text(json.dumps({"storages": [entry]}))
    return file


@pytest.fixture
def session(options: Path, clock: FakeClock, store: Store, lake: Catalog) -> LakeSession:
    settings = Settings(storage_file=str(options))
    configured = Store(store.backend, url="memory://", settings=settings, clock=clock)
    return LakeSessions(ServedStore(configured)).open_session(ADDRESS)


def test_requests_share_an_open_catalog(store: Store, lake: Catalog) -> None:
    sessions = LakeSessions(ServedStore(store))

    assert sessions.open_session(ADDRESS) is sessions.open_session(WarehouseAddress("acme", "lake"))
    assert sessions.open_session(ADDRESS) is not sessions.open_session(WarehouseAddress("acme", "lake", "main"))


def test_catalog_is_opened_anew_after_a_while(store: Store, lake: Catalog, clock: FakeClock) -> None:
    sessions = LakeSessions(ServedStore(Store(store.backend, url="memory://", settings=store.settings, clock=clock)))
    first = sessions.open_session(ADDRESS)

    clock.advance(store.settings.realm_handle_ttl_seconds)

    assert sessions.open_session(ADDRESS) is not first
    assert sessions.open_session(ADDRESS).storage is first.storage


def test_catalog_that_was_used_least_recently_is_closed(store: Store, lake: Catalog) -> None:
    sessions = LakeSessions(ServedStore(store), limit=2)
    first, second, third = (WarehouseAddress("acme", "lake", name) for name in ("a", "b", "c"))
    kept, gone = sessions.open_session(first), sessions.open_session(second)

    sessions.open_session(first)
    sessions.open_session(third)

    assert sessions.open_session(first) is kept
    assert sessions.open_session(second) is not gone


def test_client_is_told_the_address_of_a_storage_and_no_secret(session: LakeSession) -> None:
    config = session.config_of(DOCUMENT)

    assert config["s3.endpoint"] == "http://s3:8333"
    assert "geheim" not in str(config) and session.config_of(DOCUMENT.replace(b"s3://lake", b"s3://pond")) == {}


def test_versions_are_told_apart_by_the_way_to_their_files(session: LakeSession, options: Path) -> None:
    before = session.config_digest
    options.write_text(options.read_text().replace("8333", "9000"))

    assert before != "" and session.config_digest not in ("", before)
