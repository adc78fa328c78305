"""A process that fills, splits and compacts a file table until it is killed: ``python killed_writer.py STORE REALM_KEY FIRST``."""

from __future__ import annotations

import sys
from itertools import count

from row_tables import LONGS, Row, table_of

from headwater import Settings, open_store
from headwater.files import (
    CompactionRules,
    CompactionStrategy,
    compact_table,
    ingest_rows,
    open_file_references,
    open_file_table,
    split_large_leaves,
)
from headwater.store import RealmId, RealmKey

LEAF_ROWS = 2000


def rows_of_ingest(number: int) -> list[Row]:
    """What the ingest of this number brings."""
    return [((number * 131 + row * 7) % 5000, "abc"[row % 3], float(number * 1000 + row)) for row in range(300)]


def work(url: str, key: int, first: int) -> None:
    with open_store(url, settings=Settings(), create=False) as store:
        rows = store.rows(RealmId("acme"), RealmKey(key))
        with open_file_table(rows, "orders", lambda scope: open_file_references(store, scope)) as table:
            for number in count(first):
                ingest_rows(table, [table_of(LONGS, rows_of_ingest(number))], request=f"ingest {number}")
                sys.stdout.write(f"{number}\n")
                sys.stdout.flush()
                if number % 3 == 2:
                    split_large_leaves(table, leaf_rows=LEAF_ROWS)
                    compact_table(table, CompactionRules(CompactionStrategy.ALL), lease_seconds=0)


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
