"""A table from Python, on a branch: ``python examples/trial.py REALM CATALOG BRANCH``, on the store of HEADWATER_STORE."""

from __future__ import annotations

import os
import sys

import pyarrow as pa
from pyiceberg.catalog import load_catalog


def main(realm: str, catalog: str, branch: str) -> int:
    place = {"store": os.environ["HEADWATER_STORE"], "realm": realm, "catalog": catalog, "branch": branch}
    lake = load_catalog("lake", **{"py-catalog-impl": "headwater.clients.pyiceberg.HeadwaterCatalog", **place})
    rows = pa.table({"day": ["mon", "tue"], "visits": [7, 9]})
    lake.create_namespace("trials")
    lake.create_table("trials.visits", rows.schema).append(rows)
    print(lake.load_table("trials.visits").scan().to_arrow().to_pylist())
    lake.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
