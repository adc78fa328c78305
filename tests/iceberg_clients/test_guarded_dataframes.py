"""Polars and Daft, which call a server by pyiceberg, as somebody who may read one namespace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from client_texts import python_with, run_program
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError

from guarded_realms import GuardedLake

pytestmark = pytest.mark.long

DAFT = """
import daft, json, sys
from pyiceberg.catalog import load_catalog
catalog = load_catalog("lake", type="rest", **json.loads(sys.argv[1]))
daft.attach_catalog(catalog, "lake")
told = {"tables": sorted(str(name) for name in daft.list_tables())}
told["cities"] = daft.sql("SELECT city FROM lake.sales.orders ORDER BY id").to_pydict()["city"]
try:
    daft.sql("SELECT * FROM lake.hidden.orders").collect()
except Exception as error:
    told["hidden"] = str(error)
try:
    daft.from_pydict({"id": [3], "city": ["Lyon"]}).write_iceberg(catalog.load_table("sales.orders"))
except Exception as error:
    told["write"] = str(error)
print(json.dumps(told))
"""


def test_polars_reads_what_its_reader_may(polars: Any, guarded_lake: GuardedLake) -> None:
    client, before = guarded_lake.connect(), guarded_lake.metadata_files()
    orders = client.load_table("sales.orders")

    assert polars.scan_iceberg(orders).collect()["city"].to_list() == ["Bern", "Graz"]
    with pytest.raises(NoSuchTableError):
        client.load_table("hidden.orders")
    with pytest.raises(ForbiddenError, match="this needs TABLE_WRITE_DATA on"):
        polars.DataFrame({"id": [3], "city": ["Lyon"]}).write_iceberg(orders, mode="append")
    assert (guarded_lake.metadata_files(), guarded_lake.ids()) == (before, [1, 2])


def test_daft_reads_what_its_reader_may(guarded_lake: GuardedLake) -> None:
    properties = {"uri": guarded_lake.uri, "warehouse": guarded_lake.warehouse, "credential": guarded_lake.reader}
    before = guarded_lake.metadata_files()
    said = run_program(python_with("daft"), "-W", "ignore", "-c", DAFT, json.dumps(properties))
    told = json.loads(said.splitlines()[-1])

    assert (told["tables"], told["cities"]) == (["lake.sales.orders"], ["Bern", "Graz"])
    assert "not found" in told["hidden"].lower(), told
    assert "this needs TABLE_WRITE_DATA on" in told["write"], told
    assert (guarded_lake.metadata_files(), guarded_lake.ids()) == (before, [1, 2])
