"""One process that serves a store to all tests of a run, and a catalog of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from client_lakes import ClientLake, client_server, storage_options
from installed_engines import import_engine
from pyarrow.fs import S3FileSystem

from guarded_realms import GuardedLake, GuardedRealm, guarding_server, make_guarded_lake
from headwater import open_store
from headwater.catalogs import Catalogs
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from pynessie_env import Pynessie, pynessie_process
from servers.s3 import S3_LOGIN
from servers.seaweedfs import seaweedfs_server

NUMBERS = count(1)
MakeLake = Callable[[str, str], ClientLake]
_BUCKET = "lake"


@pytest.fixture(scope="session")
def storage_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server looks for the ways to storages; the bucket's comes when a test asks for buckets."""
    return tmp_path_factory.mktemp("served") / "storages"


@pytest.fixture(scope="session")
def make_lake(storage_folder: Path) -> Iterator[MakeLake]:
    """A new catalog whose tables lie below a location, and what clients bring to read there."""
    storage_folder.mkdir()
    store_url, numbers = f"sqlite:///{storage_folder.parent}/store.db", count(1)
    with open_store(store_url) as store:
        realms = RealmRegistry(store)
        realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
        realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
        realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
        catalogs = Catalogs(realms.open_realm("acme"))
        with client_server(store_url, storage_folder) as uri:

            def make(location: str, endpoint: str) -> ClientLake:
                name = f"lake{next(numbers)}"
                catalogs.create_catalog(name, base_location=f"{location}/{name}")
                return ClientLake(uri, f"acme/{name}", catalogs.open_catalog(name), endpoint)

            yield make


@pytest.fixture(scope="session")
def s3_endpoint(storage_folder: Path) -> Iterator[str]:
    """A storage with a bucket that the server reaches by credentials of its own."""
    with seaweedfs_server() as endpoint:
        login = {"access_key": S3_LOGIN["access-key-id"], "secret_key": S3_LOGIN["secret-access-key"]}
        S3FileSystem(endpoint_override=endpoint, region="us-east-1", allow_bucket_creation=True, **login).create_dir(_BUCKET)
        (storage_folder / "bucket.json").write_text(storage_options(_BUCKET, endpoint))
        yield endpoint


@pytest.fixture
def lake(make_lake: MakeLake, tmp_path: Path) -> ClientLake:
    """A catalog with its files on the disk."""
    return make_lake(tmp_path.as_uri(), "")


@pytest.fixture
def s3_lake(make_lake: MakeLake, s3_endpoint: str) -> ClientLake:
    """A catalog with its files in a bucket."""
    return make_lake(f"s3://{_BUCKET}", s3_endpoint)


@pytest.fixture(scope="session")
def any_pynessie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pynessie]:
    with pynessie_process(tmp_path_factory.mktemp("pynessie")) as process:
        yield process


@pytest.fixture
def pynessie(any_pynessie: Pynessie, lake: ClientLake) -> Pynessie:
    """pynessie for the catalog with its files on the disk."""
    return any_pynessie.at(lake.uri.removesuffix("/iceberg"), lake.warehouse)


@pytest.fixture
def polars(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Polars, which needs no package of its own for Iceberg."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # else it warns that its own would be faster
    return import_engine("polars")


@pytest.fixture(scope="session")
def guarding_urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GuardedRealm, str, str, str]]:
    """The realm ``acme``, root's credential, and two servers that ask who calls: tokens of the second one hold for three seconds."""
    folder = tmp_path_factory.mktemp("guarded")
    store_url = f"sqlite:///{folder}/store.db"
    with open_store(store_url) as store:
        realm = GuardedRealm(store)
        root = realm.create()
        with (
            guarding_server(store_url, folder / "first") as url,
            guarding_server(store_url, folder / "second", token_lifetime="3s") as hasty_url,
        ):
            yield realm, root, url, hasty_url


@pytest.fixture(scope="session")
def guarded_lake(guarding_urls: tuple[GuardedRealm, str, str, str], tmp_path_factory: pytest.TempPathFactory) -> GuardedLake:
    """A catalog of which its reader may read one namespace. Nobody may change it."""
    realm, root, url, _ = guarding_urls
    return make_guarded_lake(realm, url, root=root, name="guarded", folder=tmp_path_factory.mktemp("warehouse"))


@pytest.fixture
def hasty_lake(guarded_lake: GuardedLake, guarding_urls: tuple[GuardedRealm, str, str, str]) -> GuardedLake:
    """That catalog at a server whose tokens hold for three seconds."""
    return guarded_lake.at(guarding_urls[3])


@pytest.fixture
def revocable_lake(guarding_urls: tuple[GuardedRealm, str, str, str], tmp_path: Path) -> GuardedLake:
    """Another such catalog, whose reader a test may take the rights from."""
    realm, root, url, _ = guarding_urls
    return make_guarded_lake(realm, url, root=root, name=f"revocable{next(NUMBERS)}", folder=tmp_path / "warehouse")
