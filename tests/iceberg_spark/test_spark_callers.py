"""Spark with Iceberg's own engine against a server that asks who calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_sql import SparkFault, SparkSql

from guarded_realms import GuardedLake, GuardedRealm, guarding_server, make_guarded_lake, seconds_until
from headwater import open_store

pytestmark = pytest.mark.long

ROWS = [(1, "Bern"), (2, "Graz")]
TOKEN_SECONDS = 5
READ = "SELECT * FROM lake.sales.orders ORDER BY id"


@pytest.fixture(scope="module")
def guarded_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedLake]:
    """A catalog of which its reader may read one namespace, at a server whose tokens hold for five seconds."""
    folder = tmp_path_factory.mktemp("guarded")
    store_url = f"sqlite:///{folder}/store.db"
    with open_store(store_url) as store:
        realm = GuardedRealm(store)
        root = realm.create()
        with guarding_server(store_url, folder / "server", token_lifetime=f"{TOKEN_SECONDS}s") as url:
            yield make_guarded_lake(realm, url, root=root, name="guarded", folder=folder / "warehouse")


@pytest.fixture
def reader_sql(sql: SparkSql, guarded_lake: GuardedLake) -> SparkSql:
    """Spark, which knows the catalog as ``lake`` and shows the reader's credential."""
    return with_options(sql, guarded_lake, credential=guarded_lake.reader)


def with_options(sql: SparkSql, lake: GuardedLake, name: str = "lake", **options: str) -> SparkSql:
    sql.add_catalog(name, lake.url, lake.warehouse)
    for option, value in {"oauth2-server-uri": lake.token_uri, **options}.items():
        sql.set_option(f"spark.sql.catalog.{name}.{option}", value)
    return sql


def files_of(lake: GuardedLake) -> set[Path]:
    return set(lake.folder.rglob("*.*"))


def test_reader_of_a_namespace_reads_it_alone(reader_sql: SparkSql) -> None:
    assert reader_sql(READ) == ROWS
    assert reader_sql("SHOW NAMESPACES IN lake") == [("sales",)]
    for missing in ("hidden", "nowhere"):
        with pytest.raises(SparkFault, match="TABLE_OR_VIEW_NOT_FOUND"):
            reader_sql(f"SELECT * FROM lake.{missing}.orders")
        with pytest.raises(SparkFault, match=f"Namespace does not exist: {missing}"):
            reader_sql(f"SHOW TABLES IN lake.{missing}")


@pytest.mark.parametrize(
    ("statement", "privilege"),
    [
        ("INSERT INTO lake.sales.orders VALUES (3, 'Lyon')", "TABLE_WRITE_DATA"),
        ("DELETE FROM lake.sales.orders WHERE id = 1", "TABLE_WRITE_DATA"),
        ("ALTER TABLE lake.sales.orders SET TBLPROPERTIES ('team' = 'eu')", "TABLE_WRITE_PROPERTIES"),
        ("CREATE TABLE lake.sales.more (id BIGINT)", "TABLE_CREATE"),
        ("CREATE TABLE lake.sales.more AS SELECT * FROM lake.sales.orders", "TABLE_CREATE"),
        ("DROP TABLE lake.sales.orders", "TABLE_DROP"),
        ("CREATE NAMESPACE lake.hidden", "NAMESPACE_CREATE"),
    ],
)
def test_reader_changes_nothing_and_leaves_no_file(
    reader_sql: SparkSql, guarded_lake: GuardedLake, statement: str, privilege: str
) -> None:
    before, commits = files_of(guarded_lake), guarded_lake.commits()
    with pytest.raises(SparkFault, match=f"ForbiddenException: .*this needs {privilege} on"):
        reader_sql(statement)

    assert (files_of(guarded_lake), guarded_lake.commits(), guarded_lake.ids()) == (before, commits, [1, 2])


def test_spark_with_a_credential_renews_its_token_by_itself(reader_sql: SparkSql) -> None:
    began = time.monotonic()
    while time.monotonic() < began + 3 * TOKEN_SECONDS:
        assert reader_sql(READ) == ROWS
        time.sleep(1)


def test_spark_with_a_token_alone_renews_it_once(reader_sql: SparkSql, guarded_lake: GuardedLake) -> None:
    """Iceberg 1.10.2 goes on holding the end of the first token for that of the next one, and has no secret to show then."""
    assert reader_sql(READ) == ROWS  # the first time takes long
    with_options(reader_sql, guarded_lake, "token", token=guarded_lake.token())
    read = READ.replace("lake.", "token.")
    assert reader_sql(read) == ROWS
    time.sleep(1.4 * TOKEN_SECONDS)
    assert reader_sql(read) == ROWS
    time.sleep(TOKEN_SECONDS)

    with pytest.raises(SparkFault, match="the token has expired: get another one"):
        reader_sql(read)


def test_spark_that_may_not_renew_loses_its_token(sql: SparkSql, guarded_lake: GuardedLake) -> None:
    with_options(sql, guarded_lake, **{"credential": guarded_lake.reader, "token-refresh-enabled": "false"})
    assert sql(READ) == ROWS
    time.sleep(TOKEN_SECONDS + 1)

    with pytest.raises(SparkFault, match="the token has expired: get another one"):
        sql(READ)


def test_wrong_secret_is_told_what_is_wrong(sql: SparkSql, guarded_lake: GuardedLake) -> None:
    with_options(sql, guarded_lake, credential=guarded_lake.reader + "x")

    with pytest.raises(SparkFault, match="invalid_client: the client is unknown or disabled, or the secret is not its own"):
        sql(READ)


def test_rights_taken_back_end_within_five_seconds(reader_sql: SparkSql, guarded_lake: GuardedLake) -> None:
    lake = make_guarded_lake(
        guarded_lake.realm,
        guarded_lake.url,
        root=guarded_lake.root,
        name="revocable",
        folder=guarded_lake.folder.with_name("revocable"),
    )
    with_options(reader_sql, lake, credential=lake.reader)
    reader_sql.set_option("spark.sql.catalog.lake.warehouse", lake.warehouse)
    assert reader_sql(READ) == ROWS
    lake.revoke()

    def is_refused() -> bool:
        try:
            reader_sql(READ)
        except SparkFault as fault:
            return "TABLE_OR_VIEW_NOT_FOUND" in fault.text
        return False

    seconds_until(is_refused)
