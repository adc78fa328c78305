"""A table from Python, on a branch: ``python examples/trial.py REALM CATALOG BRANCH``, on the store of HEADWATER_STORE."""

from __future__ import annotations

import sys

import pyarrow as pa

import headwater

ROWS = pa.table({"day": ["mon", "tue"], "visits": [7, 9]})


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        sys.stderr.write("usage: python examples/trial.py REALM CATALOG BRANCH\n")
        return 2
    realm, catalog, branch = arguments
    with headwater.connect() as store:
        lake = store.realm(realm).catalog(catalog).branch(branch).pyiceberg()
        lake.create_namespace("trials")
        lake.create_table("trials.visits", ROWS.schema).append(ROWS)
        print(lake.load_table("trials.visits").scan().to_arrow().to_pylist())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
