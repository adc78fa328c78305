"""A catalog from Python, with pyiceberg and nothing else: ``python examples/client.py DIR``.

Makes a SQLite store with a realm and a catalog in the folder, writes a table, tries a change on a branch, and reads what there was
before it by the name of a tag.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import load_catalog

from headwater.clients.pyiceberg import HeadwaterCatalog

COLUMNS = pa.schema([("id", pa.int64()), ("customer", pa.string()), ("total", pa.float64())])


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python examples/client.py DIR\n")
        return 2
    folder = Path(arguments[0]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    store = f"sqlite:///{folder}/headwater.db"
    headwater(store, "realm", "create", "acme", "--credentials", str(folder / "credentials.json"))
    headwater(store, "catalog", "create", "acme/lake", "--base-location", (folder / "warehouse").as_uri())

    with opened(store) as lake:
        lake.create_namespace("sales")
        orders = lake.create_table("sales.orders", COLUMNS)
        orders.append(pa.table({"id": [1, 2], "customer": ["ann", "bob"], "total": [9.5, 20.0]}, schema=COLUMNS))
        print(f"main has {count(lake)} orders")

    headwater(store, "catalog", "tag", "create", "acme/lake", "monday")
    headwater(store, "catalog", "branch", "create", "acme/lake", "trial")
    with opened(store, branch="trial") as trial:
        trial.load_table("sales.orders").delete("customer = 'bob'")
        trial.rename_table("sales.orders", "sales.open_orders")
        print(f"trial has {trial.list_tables('sales')}")

    with opened(store) as lake:
        lake.drop_table("sales.orders")
        print(f"main has {lake.list_tables('sales')}")
    with opened(store, branch="monday") as monday:
        print(f"monday has {count(monday)} orders")
    headwater(store, "catalog", "log", "acme/lake")
    return 0


def opened(store: str, **properties: str) -> HeadwaterCatalog:
    place = {"store": store, "realm": "acme", "catalog": "lake", "author": "ada"}
    implementation = "headwater.clients.pyiceberg.HeadwaterCatalog"
    catalog = load_catalog("lake", **{"py-catalog-impl": implementation, **place, **properties})
    assert isinstance(catalog, HeadwaterCatalog)
    return catalog


def count(catalog: HeadwaterCatalog) -> int:
    return int(catalog.load_table("sales.orders").scan().to_arrow().num_rows)


def headwater(store: str, *words: str) -> None:
    program = Path(sys.executable).with_name("headwater")
    print(f"$ headwater {' '.join(words)}", flush=True)
    subprocess.run([str(program), "--store", store, *words], check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
