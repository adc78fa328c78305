"""One JVM with Spark for all processes of a run, one server for each of them, a catalog for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_process import shared_engine, skip_without_engine, spark_of
from nessie_lake import NessieLake
from py4j import java_gateway, protocol
from served_lake import ServedLake, headwater_server
from spark_sql import SparkSql

from headwater import Store, open_store
from headwater.catalogs import Catalogs
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState
from pynessie_env import Pynessie, pynessie_process

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    skip_without_engine()
    base = tmp_path_factory.getbasetemp()
    with shared_engine((base.parent if "HEADWATER_TEST_PROCESS" in os.environ else base) / "iceberg-engine") as gateway:
        yield spark_of(gateway)


@pytest.fixture(scope="session")
def store_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('served')}/store.db"


@pytest.fixture(scope="session")
def served_store(store_url: str) -> Iterator[Store]:
    """A store with the empty realm ``acme``."""
    with open_store(store_url) as opened:
        realms = RealmRegistry(opened)
        realms.move_realm(realms.create_realm("acme"), RealmState.INITIALIZING)
        realms.open_realm_for("acme", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
        realms.move_realm(realms.read_realm("acme"), RealmState.ACTIVE)
        yield opened


@pytest.fixture(scope="session")
def server_url(store_url: str, served_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with headwater_server(store_url, tmp_path_factory.mktemp("server") / "log") as url:
        yield url


@pytest.fixture(autouse=True)
def plain_py4j(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own Spark, which other tests of this process have used, converts what py4j raises and needs a JVM of its own for it."""
    monkeypatch.setattr(java_gateway, "get_return_value", protocol.get_return_value)


@pytest.fixture
def sql(spark: Any) -> SparkSql:
    return SparkSql(spark)


@pytest.fixture
def lake(sql: SparkSql, served_store: Store, server_url: str, tmp_path: Path) -> ServedLake:
    """An empty catalog, which Spark knows as ``lake``, with the namespace ``sales``."""
    name = f"lake{next(NUMBERS)}"
    catalogs = Catalogs(RealmRegistry(served_store).open_realm("acme"))
    catalogs.create_catalog(name, base_location=tmp_path.as_uri())
    sql.add_catalog("lake", server_url, f"acme/{name}")
    sql("CREATE NAMESPACE lake.sales")
    return ServedLake(catalogs.open_catalog(name), f"acme/{name}", server_url, sql)


@pytest.fixture
def orders(lake: ServedLake) -> ServedLake:
    """The lake with a table of two rows."""
    lake.sql("CREATE TABLE lake.sales.orders (id BIGINT, city STRING)")
    lake.sql("INSERT INTO lake.sales.orders VALUES (1, 'Bern'), (2, 'Graz')")
    return lake


@pytest.fixture
def nessie(sql: SparkSql, served_store: Store, server_url: str, tmp_path: Path) -> NessieLake:
    """An empty catalog, which Spark knows as ``nessie`` by Nessie's API, with the namespace ``sales``."""
    name = f"nessie{next(NUMBERS)}"
    catalogs = Catalogs(RealmRegistry(served_store).open_realm("acme"))
    catalogs.create_catalog(name, base_location=(tmp_path / "lake").as_uri())
    lake = NessieLake(catalogs.open_catalog(name), f"acme/{name}", server_url, tmp_path / "lake", sql)
    lake.add("nessie")
    sql("CREATE NAMESPACE nessie.sales")
    return lake


@pytest.fixture
def versioned(nessie: NessieLake) -> NessieLake:
    """The lake with a table of two rows."""
    nessie.sql("CREATE TABLE nessie.sales.orders (id BIGINT, city STRING)")
    nessie.sql("INSERT INTO nessie.sales.orders VALUES (1, 'Bern'), (2, 'Graz')")
    return nessie


@pytest.fixture(scope="session")
def any_pynessie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pynessie]:
    with pynessie_process(tmp_path_factory.mktemp("pynessie")) as process:
        yield process


@pytest.fixture
def pynessie(any_pynessie: Pynessie, nessie: NessieLake) -> Pynessie:
    """pynessie for the catalog that Spark knows as ``nessie``."""
    return any_pynessie.at(nessie.url, nessie.warehouse)
