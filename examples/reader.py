"""A principal's view of a server that asks who calls, with DuckDB: ``python examples/reader.py URL WAREHOUSE CREDENTIALS``.

URL is that of `headwater serve`, WAREHOUSE is REALM/CATALOG, and CREDENTIALS a file that Headwater wrote for a principal. Reads what the
principal may see, and tries to take more. Needs ``pip install duckdb``, and DuckDB's extension for Iceberg, which it installs if need be.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb

READABLE, HIDDEN = "lake.sales.orders", "lake.finance.payments"


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        sys.stderr.write("usage: python examples/reader.py URL WAREHOUSE CREDENTIALS\n")
        return 2
    url, warehouse, file = arguments
    credential = json.loads(Path(file).read_text(encoding="utf-8"))["credential"]
    with duckdb.connect() as connection:
        load_iceberg(connection)
        attach(connection, url, warehouse, credential)
        look_around(connection)
    return 0


def load_iceberg(connection: duckdb.DuckDBPyConnection) -> None:
    """Load the extension: from Python packages where they are installed, else as DuckDB itself gets it."""
    for name in ("avro", "httpfs", "iceberg"):
        spec = find_spec(f"duckdb_extension_{name}")
        if spec is not None and spec.origin is not None:
            [file] = Path(spec.origin).parent.rglob("*.duckdb_extension")
            connection.execute(f"LOAD '{file}'")
        else:
            connection.execute(f"INSTALL {name}; LOAD {name}")


def attach(connection: duckdb.DuckDBPyConnection, url: str, warehouse: str, credential: str) -> None:
    client_id, _, secret = credential.partition(":")
    login = f"CLIENT_ID '{client_id}', CLIENT_SECRET '{secret}', OAUTH2_SERVER_URI '{url}/iceberg/v1/oauth/tokens'"
    connection.execute(f"CREATE SECRET login (TYPE iceberg, {login})")
    options = f"TYPE iceberg, ENDPOINT '{url}/iceberg', SECRET login, ACCESS_DELEGATION_MODE 'none'"
    connection.execute(f"ATTACH '{warehouse}' AS lake ({options})")


def look_around(connection: duckdb.DuckDBPyConnection) -> None:
    """Print what is there for the principal, and how each attempt at more ends."""
    tables = connection.execute("SELECT table_schema || '.' || table_name FROM information_schema.tables ORDER BY 1").fetchall()
    print(f"tables: {', '.join(name for (name,) in tables)}")
    [(rows,)] = connection.execute(f"SELECT count(*) FROM {READABLE}").fetchall()
    print(f"SELECT count(*) FROM {READABLE}: {rows}")
    for statement in (f"SELECT * FROM {HIDDEN}", f"DROP TABLE {READABLE}"):
        try:
            connection.execute(statement)
        except duckdb.Error as error:
            first, *_ = str(error).splitlines()
            print(f"{statement}: {first}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
