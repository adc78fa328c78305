"""A table over Iceberg's REST protocol, with pyiceberg and nothing of Headwater: ``python examples/rest_client.py URL WAREHOUSE``.

URL is that of `headwater serve`, such as http://127.0.0.1:8181, and WAREHOUSE is REALM/CATALOG or REALM/CATALOG@BRANCH. Lists what
the catalog has, and appends to the table ``trials.visits``, which it makes where there is none.
"""

from __future__ import annotations

import sys

import pyarrow as pa
from pyiceberg.catalog import load_catalog

ROWS = pa.table({"day": ["wed"], "visits": [11]})


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        sys.stderr.write("usage: python examples/rest_client.py URL WAREHOUSE\n")
        return 2
    url, warehouse = arguments
    lake = load_catalog("lake", type="rest", uri=f"{url}/iceberg", warehouse=warehouse)
    for namespace in lake.list_namespaces():
        print(f"{'.'.join(namespace)}: {', '.join(name for *_, name in lake.list_tables(namespace)) or 'no table'}")

    lake.create_namespace_if_not_exists("trials")
    visits = lake.create_table_if_not_exists("trials.visits", ROWS.schema)
    before = visits.scan().count()
    visits.append(ROWS)
    after = lake.load_table("trials.visits").scan().count()
    lake.close()
    print(f"appended to trials.visits: {before} rows before, {after} after")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
