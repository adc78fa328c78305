"""pyiceberg against a server that asks who calls: what it needs, how it goes on when its token ends, and what it is refused."""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from client_texts import run_program
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchTableError,
    OAuthError,
    RESTError,
    UnauthorizedError,
)

from guarded_realms import GuardedLake, seconds_until

pytestmark = pytest.mark.long

ROWS = pa.table({"id": [3], "city": ["Lyon"]})
TOKEN_SECONDS = 3
LIST_NAMESPACES = """
import json, sys
from pyiceberg.catalog import load_catalog
print(load_catalog("lake", type="rest", **json.loads(sys.argv[1])).list_namespaces())
"""


def test_reader_of_a_namespace_reads_it_alone(guarded_lake: GuardedLake) -> None:
    client = guarded_lake.connect()

    assert client.list_namespaces() == [("sales",)]
    assert client.list_tables("sales") == [("sales", "orders")]
    assert client.load_table("sales.orders").scan().to_arrow()["city"].to_pylist() == ["Bern", "Graz"]
    assert not client.namespace_exists("hidden") and not client.table_exists("hidden.orders")
    for missing in ("hidden", "nowhere"):
        with pytest.raises(NoSuchNamespaceError, match=f"Namespace does not exist: {missing}"):
            client.list_tables(missing)
        with pytest.raises(NoSuchTableError, match=f"Table does not exist: {missing}.orders"):
            client.load_table(f"{missing}.orders")


def test_reader_changes_nothing(guarded_lake: GuardedLake) -> None:
    client, before, commits = guarded_lake.connect(), guarded_lake.metadata_files(), guarded_lake.commits()
    orders = client.load_table("sales.orders")
    changes = {
        "TABLE_WRITE_DATA": lambda: orders.append(ROWS),
        "TABLE_WRITE_PROPERTIES": lambda: orders.transaction().set_properties(owner="ann").commit_transaction(),
        "TABLE_CREATE": lambda: client.create_table("sales.more", ROWS.schema),
        "TABLE_DROP": lambda: client.drop_table("sales.orders"),
        "NAMESPACE_CREATE": lambda: client.create_namespace("hidden"),
        "NAMESPACE_WRITE_PROPERTIES": lambda: client.update_namespace_properties("sales", updates={"owner": "ann"}),
    }
    for privilege, change in changes.items():
        with pytest.raises(ForbiddenError, match=f"this needs {privilege} on"):
            change()

    assert (guarded_lake.metadata_files(), guarded_lake.commits(), guarded_lake.ids()) == (before, commits, [1, 2])


def test_refused_append_leaves_files_that_nothing_refers_to(guarded_lake: GuardedLake) -> None:
    """pyiceberg writes the rows and two lists before it asks the server: whoever can write to the storage can leave files there."""
    before = set(guarded_lake.folder.rglob("*.*"))
    with pytest.raises(ForbiddenError):
        guarded_lake.connect().load_table("sales.orders").append(ROWS)

    left = sorted(file.suffix for file in set(guarded_lake.folder.rglob("*.*")) - before)
    assert left == [".avro", ".avro", ".parquet"]


def test_token_that_ends_during_work_is_renewed(hasty_lake: GuardedLake) -> None:
    client = hasty_lake.connect()
    orders = client.load_table("sales.orders")
    time.sleep(TOKEN_SECONDS + 1)

    assert orders.refresh().scan().to_arrow().num_rows == 2
    time.sleep(TOKEN_SECONDS + 1)
    assert client.list_tables("sales") == [("sales", "orders")]


def test_token_alone_works_until_it_ends(hasty_lake: GuardedLake) -> None:
    client = hasty_lake.connect(token=hasty_lake.token(), **{"oauth2-server-uri": hasty_lake.token_uri})

    assert client.list_namespaces() == [("sales",)]
    time.sleep(TOKEN_SECONDS + 1)
    with pytest.raises(UnauthorizedError, match="the token has expired: get another one"):
        client.list_namespaces()


def test_auth_of_type_oauth2_works(hasty_lake: GuardedLake) -> None:
    """It gets a token anew for each request here: it renews a token a minute before its end."""
    client_id, _, secret = hasty_lake.reader.partition(":")
    login = {"client_id": client_id, "client_secret": secret, "token_url": hasty_lake.token_uri}
    properties = {"uri": hasty_lake.uri, "warehouse": hasty_lake.warehouse, "auth": {"type": "oauth2", "oauth2": login}}

    assert run_program(sys.executable, "-c", LIST_NAMESPACES, json.dumps(properties)) == "[('sales',)]\n"


def test_credential_without_a_token_uri_works_with_a_warning(guarded_lake: GuardedLake) -> None:
    with pytest.warns(DeprecationWarning, match="missing the OAuth2 server URI"):
        client = RestCatalog("lake", uri=guarded_lake.uri, warehouse=guarded_lake.warehouse, credential=guarded_lake.reader)

    assert client.list_namespaces() == [("sales",)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda credential: credential + "x", "the client is unknown or disabled, or the secret is not its own"),
        (lambda credential: credential.partition(".")[2], "a client id reads REALM.ID"),
        (lambda credential: credential.partition(":")[2], "a client id reads REALM.ID"),
    ],
    ids=["wrong secret", "without the realm", "secret alone"],
)
def test_wrong_credential_is_told_what_is_wrong(guarded_lake: GuardedLake, change, told: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(OAuthError, match=f"invalid_client: {told}"):
        guarded_lake.connect(credential=change(guarded_lake.reader))


def test_rights_taken_back_end_within_five_seconds(revocable_lake: GuardedLake) -> None:
    client = revocable_lake.connect()
    assert client.table_exists("sales.orders")
    revocable_lake.revoke()

    seconds_until(lambda: not client.table_exists("sales.orders"))
    with pytest.raises(RESTError, match="NoSuchWarehouseException"), closing(revocable_lake.connect()):
        pass


def test_command_line_reads_its_credential_from_the_environment(guarded_lake: GuardedLake, tmp_path: Path) -> None:
    lines = [
        "catalog:",
        "  lake:",
        "    type: rest",
        f"    uri: {guarded_lake.uri}",
        f"    warehouse: {guarded_lake.warehouse}",
    ]
    (tmp_path / ".pyiceberg.yaml").write_text("\n".join(lines), encoding="utf-8")
    program = str(Path(sys.executable).with_name("pyiceberg"))
    listed = run_program(
        program,
        *("--catalog", "lake", "list", "sales"),
        PYICEBERG_HOME=str(tmp_path),
        PYICEBERG_CATALOG__LAKE__CREDENTIAL=guarded_lake.reader,
        PYTHONWARNINGS="ignore",
    )

    assert "sales.orders" in listed
