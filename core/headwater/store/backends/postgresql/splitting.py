"""Where to cut a scan, so that its splits have about as many rows each."""

from __future__ import annotations

from typing import Any

from headwater.store.backend import Split
from headwater.store.backends.postgresql.connections import Connection
from headwater.store.backends.postgresql.statements import Table
from headwater.store.identity import RealmKey

__all__ = ["cut"]

_EXACT_INDEX_BYTES = 128 << 20
"""The index of a table whose keys are all counted, a second's work; of a larger one, a sample of pages is looked at."""
_SAMPLED_PAGES = 5000
_SAMPLED_ROWS_PER_SPLIT = 50


def cut(connection: Connection, table: Table, realm: RealmKey | None, count: int) -> list[Split[Any]]:
    """Up to ``count`` splits of a realm, or of all."""
    index_bytes, pages = connection.only_row(
        "SELECT pg_relation_size(%s::regclass), pg_relation_size(%s::regclass) / current_setting('block_size')::bigint",
        (table.primary_key, table.name),
    )
    ends: list[Any] | None = None
    if index_bytes > _EXACT_INDEX_BYTES:
        ends = _sampled(connection, table, realm, count, pages)
    if ends is None:
        ends = _exact(connection, table, realm, count)
    return [Split(realm, after, until) for after, until in zip([None, *ends], [*ends, None], strict=True)]


def _exact(connection: Connection, table: Table, realm: RealmKey | None, count: int) -> list[Any]:
    where, values = _where(realm)
    (rows,) = connection.only_row(f"SELECT count(*) FROM {table.name}{where}", values)
    return _every(connection, table, f"{table.name}{where}", values, rows, count)


def _sampled(connection: Connection, table: Table, realm: RealmKey | None, count: int, pages: int) -> list[Any] | None:
    """The ends according to some pages; None when these tell too little of a realm, which is then a small one."""
    where, values = _where(realm)
    values["percent"] = min(100.0, 100.0 * _SAMPLED_PAGES / max(1, pages))
    source = f"{table.name} TABLESAMPLE SYSTEM (%(percent)s) REPEATABLE (1){where}"
    (rows,) = connection.only_row(f"SELECT count(*) FROM {source}", values)
    if rows < _SAMPLED_ROWS_PER_SPLIT * count:
        return None
    return _every(connection, table, source, values, rows, count)


def _every(connection: Connection, table: Table, source: str, values: dict[str, Any], rows: int, count: int) -> list[Any]:
    """The last key of each ``count``-th of the rows, but for the last one."""
    size = max(1, -(-rows // count))
    numbered = f"SELECT {table.columns}, row_number() OVER (ORDER BY {table.columns}) AS number FROM {source}"
    return connection.execute(
        f"SELECT {table.columns} FROM ({numbered}) AS n WHERE number %% %(size)s = 0 AND number < %(rows)s ORDER BY number",
        values | {"size": size, "rows": rows},
    ).fetchall()


def _where(realm: RealmKey | None) -> tuple[str, dict[str, Any]]:
    return ("", {}) if realm is None else (" WHERE realm = %(realm)s", {"realm": realm})
