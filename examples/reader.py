"""A principal's view of a server that asks who calls, with pyiceberg: ``python examples/reader.py URL WAREHOUSE CREDENTIALS``.

URL is that of `headwater serve`, WAREHOUSE is REALM/CATALOG, and CREDENTIALS a file that Headwater wrote for a principal. Reads what the
principal may see, and tries to take more.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError

READABLE, HIDDEN = "sales.orders", "finance.payments"


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        sys.stderr.write("usage: python examples/reader.py URL WAREHOUSE CREDENTIALS\n")
        return 2
    url, warehouse, file = arguments
    credential = json.loads(Path(file).read_text(encoding="utf-8"))["credential"]
    login = {"credential": credential, "oauth2-server-uri": f"{url}/iceberg/v1/oauth/tokens"}
    lake = load_catalog("lake", type="rest", uri=f"{url}/iceberg", warehouse=warehouse, **login)
    look_around(lake)
    lake.close()
    return 0


def look_around(lake: Catalog) -> None:
    """Print what is there for the principal, and how each attempt at more ends."""
    print(f"namespaces: {', '.join('.'.join(name) for name in lake.list_namespaces())}")
    print(f"{READABLE}: {lake.load_table(READABLE).scan().count()} rows")
    try:
        lake.load_table(HIDDEN)
    except NoSuchTableError as error:
        print(f"{HIDDEN}: {error}")
    try:
        lake.drop_table(READABLE)
    except ForbiddenError as error:
        print(f"drop {READABLE}: {error}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
