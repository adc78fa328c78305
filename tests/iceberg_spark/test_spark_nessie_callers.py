"""Spark by Nessie's API against a server that asks who calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from nessie_lake import NessieLake
from spark_sql import Row, SparkFault, SparkSql

from guarded_realms import GuardedLake, GuardedRealm, guarding_server, make_guarded_lake
from headwater import open_store
from headwater.catalogs import Catalogs
from headwater.cli import main
from headwater.realms import RealmRegistry

pytestmark = pytest.mark.long

ROWS = [(1, "Bern"), (2, "Graz")]
TOKEN_SECONDS = 10
READ = "SELECT * FROM {}.sales.orders ORDER BY id"


@pytest.fixture(scope="module")
def guarded_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedLake]:
    """A catalog of which its reader may read one namespace, at a server whose tokens hold for ten seconds."""
    folder = tmp_path_factory.mktemp("guarded")
    store_url = f"sqlite:///{folder}/store.db"
    with open_store(store_url) as store:
        realm = GuardedRealm(store)
        root = realm.create()
        with guarding_server(store_url, folder / "server", token_lifetime=f"{TOKEN_SECONDS}s") as url:
            yield make_guarded_lake(realm, url, root=root, name="guarded", folder=folder / "warehouse")


@pytest.fixture
def callers(sql: SparkSql, guarded_lake: GuardedLake) -> SparkSql:
    """Spark, which knows the catalog as ``reader`` and as ``root``; each shows credentials of its own."""
    catalogs = Catalogs(RealmRegistry(guarded_lake.realm.store).open_realm(guarded_lake.realm.id))
    lake = NessieLake(
        catalogs.open_catalog(guarded_lake.name), guarded_lake.warehouse, guarded_lake.url, guarded_lake.folder, sql
    )
    for name, credential in (("reader", guarded_lake.reader), ("root", guarded_lake.root)):
        client_id, _, secret = credential.partition(":")
        login = {
            "authentication.type": "OAUTH2",
            "authentication.oauth2.token-endpoint": guarded_lake.token_uri,
            "authentication.oauth2.client-id": client_id,
            "authentication.oauth2.client-secret": secret,
            "authentication.oauth2.client-scopes": "catalog",
        }
        sql.set_catalog(name, lake.options() | login)
    sql.set_catalog("token", lake.options() | {"authentication.type": "BEARER", "authentication.token": guarded_lake.token()})
    return sql


def test_reader_of_a_namespace_reads_it_alone(callers: SparkSql) -> None:
    assert callers(READ.format("reader")) == ROWS
    assert callers("SHOW NAMESPACES IN reader") == [("sales",)]
    for missing in ("hidden", "nowhere"):
        with pytest.raises(SparkFault, match="TABLE_OR_VIEW_NOT_FOUND"):
            callers(f"SELECT * FROM reader.{missing}.orders")
    assert callers("SHOW TABLES IN reader.hidden") == []


@pytest.mark.parametrize(
    ("statement", "privilege"),
    [
        ("INSERT INTO reader.sales.orders VALUES (3, 'Lyon')", "TABLE_WRITE_PROPERTIES"),  # asked before the file is read
        ("ALTER TABLE reader.sales.orders SET TBLPROPERTIES ('team' = 'eu')", "TABLE_WRITE_PROPERTIES"),
        ("CREATE TABLE reader.sales.more (id BIGINT)", "TABLE_CREATE"),
    ],
)
def test_reader_changes_nothing(callers: SparkSql, guarded_lake: GuardedLake, statement: str, privilege: str) -> None:
    """What else is refused, such as a drop, the client tries again for half a minute before it says so."""
    before = guarded_lake.commits()
    with pytest.raises(SparkFault, match=f"this needs {privilege} on") as fault:
        callers(statement)

    assert "NessieForbiddenException" in fault.value.kinds
    assert (guarded_lake.commits(), guarded_lake.ids()) == (before, [1, 2])


def test_committer_is_the_principal(callers: SparkSql, guarded_lake: GuardedLake) -> None:
    callers("CREATE NAMESPACE root.more")
    callers("DROP NAMESPACE root.more")

    catalogs = Catalogs(RealmRegistry(guarded_lake.realm.store).open_realm(guarded_lake.realm.id))
    dropped, created, *_ = catalogs.open_catalog(guarded_lake.name).log()
    assert dropped.meta.committer == created.meta.committer == "root"


def test_printed_configuration_reads_the_table(sql: SparkSql, guarded_lake: GuardedLake, tmp_path: Path) -> None:
    words = ["client-config", "spark-nessie", guarded_lake.warehouse, "--url", guarded_lake.url, "--form", "conf"]
    file = guarded_lake.write_credentials(tmp_path / "reader.json")
    told = CliRunner().invoke(main, [*words, "--credentials", str(file), "--show-secret"], prog_name="headwater")
    assert told.exit_code == 0, told.output
    for line in told.stdout.replace("BASE_LOCATION", guarded_lake.folder.as_uri()).splitlines():
        name, _, value = line.partition(" ")
        if name.startswith("spark.sql.catalog."):
            sql.set_option(name, value)

    assert sql(READ.format("guarded")) == ROWS


def as_reader(callers: SparkSql) -> list[Row]:
    """Read; once more where Java's client asked for a token over a connection that the server had closed for its silence."""
    try:
        return callers(READ.format("reader"))
    except SparkFault as fault:
        if "IOException: closed" not in str(fault):
            raise
        return callers(READ.format("reader"))


def test_client_renews_its_token_by_itself(callers: SparkSql) -> None:
    assert callers(READ.format("token")) == as_reader(callers) == ROWS
    time.sleep(TOKEN_SECONDS + 1)

    assert as_reader(callers) == ROWS
    with pytest.raises(SparkFault, match="the token has expired: get another one"):
        callers(READ.format("token"))
