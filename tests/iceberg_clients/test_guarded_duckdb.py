"""DuckDB with its iceberg extension against a server that asks who calls."""

from __future__ import annotations

import time
from typing import Any

import pytest
from installed_engines import connect_duckdb, import_engine

from guarded_realms import GuardedLake, seconds_until

pytestmark = pytest.mark.long

ROWS = [(1, "Bern"), (2, "Graz")]
TOKEN_SECONDS = 3


def attach(lake: GuardedLake, **options: str) -> Any:
    """A connection with the lake attached, by a secret that has the reader's id and secret, or these options."""
    client_id, _, secret = lake.reader.partition(":")
    login = {"client_id": client_id, "client_secret": secret, "oauth2_server_uri": lake.token_uri}
    told = ", ".join(f"{name} '{value}'" for name, value in {**({} if "token" in options else login), **options}.items())
    connection = connect_duckdb()
    connection.execute(f"create secret login (type iceberg, {told})")
    words = f"type iceberg, endpoint '{lake.uri}', secret login, access_delegation_mode 'none'"
    connection.execute(f"attach '{lake.warehouse}' as lake ({words})")
    return connection


def test_reader_of_a_namespace_reads_it_alone(guarded_lake: GuardedLake) -> None:
    connection = attach(guarded_lake)

    assert connection.execute("from lake.sales.orders").fetchall() == ROWS
    tables = "select table_schema, table_name from information_schema.tables"
    assert connection.execute(tables).fetchall() == [("sales", "orders")]
    for missing in ("hidden", "nowhere"):
        with pytest.raises(import_engine("duckdb").CatalogException, match=f'because schema "{missing}" does not exist'):
            connection.execute(f"from lake.{missing}.orders")


@pytest.mark.parametrize(
    ("statement", "privilege"),
    [
        ("insert into lake.sales.orders values (3, 'Lyon')", "TABLE_WRITE_DATA"),
        ("update lake.sales.orders set city = 'Lyon'", "TABLE_WRITE_DATA"),
        ("create table lake.sales.more (id bigint)", "TABLE_CREATE"),
        ("drop table lake.sales.orders", "TABLE_DROP"),
        ("create schema lake.more", "NAMESPACE_CREATE"),
        ("create schema lake.hidden", "NAMESPACE_CREATE"),
    ],
)
def test_reader_changes_nothing(guarded_lake: GuardedLake, statement: str, privilege: str) -> None:
    before, commits = guarded_lake.metadata_files(), guarded_lake.commits()
    with pytest.raises(import_engine("duckdb").Error, match=f"this needs {privilege} on"):
        attach(guarded_lake).execute(statement)

    assert (guarded_lake.metadata_files(), guarded_lake.commits(), guarded_lake.ids()) == (before, commits, [1, 2])


def test_refused_insert_leaves_lists_and_no_rows(guarded_lake: GuardedLake) -> None:
    """DuckDB takes the file of rows back, and not the manifest and the manifest list."""
    before = set(guarded_lake.folder.rglob("*.*"))
    with pytest.raises(import_engine("duckdb").Error):
        attach(guarded_lake).execute("insert into lake.sales.orders values (3, 'Lyon')")

    assert [file.suffix for file in set(guarded_lake.folder.rglob("*.*")) - before] == [".avro", ".avro"]


def test_token_that_ends_during_work_is_renewed(hasty_lake: GuardedLake) -> None:
    connection = attach(hasty_lake)
    assert connection.execute("from lake.sales.orders").fetchall() == ROWS
    time.sleep(TOKEN_SECONDS + 1)

    assert connection.execute("from lake.sales.orders").fetchall() == ROWS
    connection.execute("begin")
    time.sleep(TOKEN_SECONDS + 1)
    assert connection.execute("select count(*) from lake.sales.orders").fetchall() == [(2,)]


def test_token_alone_works_until_it_ends(hasty_lake: GuardedLake) -> None:
    connection = attach(hasty_lake, token=hasty_lake.token())

    assert connection.execute("from lake.sales.orders").fetchall() == ROWS
    time.sleep(TOKEN_SECONDS + 1)
    with pytest.raises(import_engine("duckdb").Error, match="the token has expired: get another one"):
        connection.execute("from lake.sales.orders")


@pytest.mark.parametrize("scope", ["catalog", "PRINCIPAL_ROLE:guarded", ""])
def test_scope_is_taken(guarded_lake: GuardedLake, scope: str) -> None:
    assert attach(guarded_lake, oauth2_scope=scope).execute("from lake.sales.orders").fetchall() == ROWS


def test_wrong_secret_is_told_what_is_wrong(guarded_lake: GuardedLake) -> None:
    with pytest.raises(import_engine("duckdb").Error, match="the client is unknown or disabled, or the secret is not its own"):
        attach(guarded_lake, client_secret="wrong")


def test_rights_taken_back_end_within_five_seconds(revocable_lake: GuardedLake) -> None:
    connection = attach(revocable_lake)
    assert connection.execute("from lake.sales.orders").fetchall() == ROWS
    revocable_lake.revoke()

    def is_refused() -> bool:
        try:
            connection.execute("from lake.sales.orders")
        except import_engine("duckdb").Error:
            return True
        return False

    seconds_until(is_refused)
    with pytest.raises(import_engine("duckdb").CatalogException, match='because schema "sales" does not exist'):
        connection.execute("from lake.sales.orders")
