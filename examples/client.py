"""A catalog from Python, with pyiceberg: ``python examples/client.py DIR``.

Makes a SQLite store with a realm and a catalog in the folder, writes a table, tries a change on a branch, and reads what there was
before it by the name of a tag.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

import headwater

COLUMNS = pa.schema([("id", pa.int64()), ("customer", pa.string()), ("total", pa.float64())])


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python examples/client.py DIR\n")
        return 2
    folder = Path(arguments[0]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with headwater.connect(f"sqlite:///{folder}/headwater.db", create=True, author="ada") as store:
        acme = store.create_realm("acme", credentials=folder / "credentials.json")
        lake = acme.create_catalog("lake", base_location=(folder / "warehouse").as_uri())
        try_a_branch(lake)
        for commit in lake.branch().log():
            print(f"{commit.hash}  {commit.time:%H:%M:%S}  {', '.join(commit.authors)}  {commit.message}")
    return 0


def try_a_branch(lake: headwater.CatalogClient) -> None:
    main = lake.branch().pyiceberg()
    main.create_namespace("sales")
    orders = main.create_table("sales.orders", COLUMNS)
    orders.append(pa.table({"id": [1, 2], "customer": ["ann", "bob"], "total": [9.5, 20.0]}, schema=COLUMNS))
    print(f"main has {count(lake.branch())} orders")

    monday = lake.create_tag("monday")
    trial = lake.create_branch("trial").pyiceberg()
    trial.load_table("sales.orders").delete("customer = 'bob'")
    trial.rename_table("sales.orders", "sales.open_orders")
    print(f"trial has {trial.list_tables('sales')}")

    main.drop_table("sales.orders")
    print(f"main has {main.list_tables('sales')}")
    print(f"monday has {count(monday)} orders")


def count(ref: headwater.RefClient) -> int:
    return int(ref.pyiceberg().load_table("sales.orders").scan().count())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
