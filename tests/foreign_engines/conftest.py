"""Catalogs for engines of others: one with files in folders that nobody has to log in to, one in a bucket that hands out credentials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from engine_tools import CLIENT_ID, CLIENT_SECRET, OpenLake
from trino_server import Trino, trino_server

from headwater import open_store
from headwater.catalogs import Catalogs
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from rest_server import serve_store
from vending_lake import VendingLake, vending_lake


@pytest.fixture(scope="session")
def _open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Catalogs, str]]:
    with open_store(f"sqlite:///{tmp_path_factory.mktemp('open')}/store.db") as store:
        realms = RealmRegistry(store)
        realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
        realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
        realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
        with serve_store(store) as url:
            yield Catalogs(realms.open_realm("acme")), url


_numbers = count(1)


@pytest.fixture
def open_lake(_open_server: tuple[Catalogs, str], tmp_path: Path) -> OpenLake:
    catalogs, url = _open_server
    name, folder = f"lake{next(_numbers)}", tmp_path / "warehouse"
    catalogs.create_catalog(name, base_location=folder.as_uri())
    return OpenLake(url, f"acme/{name}", catalogs.open_catalog(name), folder)


@pytest.fixture(scope="session")
def bucket_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VendingLake]:
    """The catalog ``acme/lake`` in a bucket of SeaweedFS, whose server gives clients credentials."""
    with vending_lake(tmp_path_factory.mktemp("bucket"), session="1h") as lake:
        yield lake


@pytest.fixture(scope="session")
def root_file(bucket_lake: VendingLake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The credentials of root of that lake, as Headwater writes them."""
    client_id, _, secret = bucket_lake.root.partition(":")
    file = tmp_path_factory.mktemp("credentials") / "root.json"
    file.write_text(json.dumps({"realm": "acme", "clientId": client_id.partition(".")[2], "clientSecret": secret}))
    return file


@pytest.fixture(scope="session")
def trino(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    """Trino, in whose environment the login of Keycloak's client is."""
    with trino_server(tmp_path_factory.mktemp("trino"), ICEBERG_CREDENTIAL=f"{CLIENT_ID}:{CLIENT_SECRET}") as server:
        yield server
