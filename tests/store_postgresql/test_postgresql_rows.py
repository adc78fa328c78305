"""How rows lie in PostgreSQL and come back, and by which ways they are found."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from headwater.errors import CorruptionError, RefusedError, SwapConflictError, UnknownOutcomeError
from headwater.store import ObjectId, ScanSplit
from headwater.store.backend import BULK_BYTES, ROW_BYTES
from headwater.store.backends.postgresql import PostgresqlBackend
from headwater.store.backends.postgresql import backend as splitting
from headwater.store.backends.postgresql.statements import scan
from servers.postgresql import PostgresqlServer
from servers.proxy import Proxy
from specimens import OTHER, REALM, find_reference, key, read_object, reference, row

pytestmark = pytest.mark.long

Open = Callable[[str], PostgresqlBackend]


def round_trips(proxy: Proxy, call: Callable[[], object]) -> int:
    """How many the call takes when the server knows its statement already."""
    call()
    before = proxy.round_trips
    call()
    return proxy.round_trips - before


def plans(node: dict[str, Any]) -> list[dict[str, Any]]:
    """A plan and all that it is made of."""
    return [node, *(inner for part in node.get("Plans", []) for inner in plans(part))]


def explain(backend: PostgresqlBackend, statement: str, values: Any) -> list[dict[str, Any]]:
    """What a session like all others does for a statement, and how many rows each part of it looked at."""
    connection = backend._pool.borrow()
    try:
        (found,) = connection.only_row(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", values)
    finally:
        backend._pool.give_back(connection)
    return plans((json.loads(found) if isinstance(found, str) else found)[0]["Plan"])


@pytest.mark.parametrize("size", [0, 1, 300, 2000, 3000, ROW_BYTES])
def test_values_of_all_sizes_come_back(direct: PostgresqlBackend, size: int) -> None:
    made = row(1, value=os.urandom(size))
    direct.write_objects([made])

    assert read_object(direct, 1) == made
    assert direct.scan_objects(ScanSplit(), None, 5) == [key(made)]


def test_values_are_not_compressed_again(server: PostgresqlServer, schema: str, direct: PostgresqlBackend) -> None:
    direct.write_objects([row(1, value=bytes(100_000))])

    assert server.execute(f"SELECT pg_column_size(value) FROM {schema}.objs") == [(100_000,)]


def test_each_bulk_call_is_one_round_trip(spoiled: PostgresqlBackend, proxy: Proxy) -> None:
    rows = [row(number) for number in range(1, 1001)]
    references = [reference(f"r{number}") for number in range(1000)]
    calls: list[Callable[[], object]] = [
        lambda: spoiled.write_objects(rows),
        lambda: spoiled.read_objects(REALM, [(made.id, 0) for made in rows]),
        lambda: spoiled.create_references(references),
        lambda: spoiled.read_references(REALM, [made.name for made in references]),
        lambda: spoiled.scan_objects(ScanSplit(), None, 1000),
        lambda: spoiled.delete_objects([key(made) for made in rows]),
    ]

    assert [round_trips(proxy, call) for call in calls] == [1] * 6


@pytest.mark.parametrize("count", [1, 4, 5, 1000])
def test_commit_is_one_round_trip_even_if_beaten(
    spoiled: PostgresqlBackend, direct: PostgresqlBackend, proxy: Proxy, count: int
) -> None:
    direct.create_reference(reference())
    rows = [row(number) for number in range(1, count + 1)]
    versions = itertools.count(5)

    def commit() -> None:
        seen = reference(version=next(versions))
        spoiled.write_and_swap(rows, seen, reference(version=seen.version + 1))

    def commit_in_vain() -> None:
        with pytest.raises(SwapConflictError):
            spoiled.write_and_swap(rows, reference(version=99), reference(version=100))

    assert [round_trips(proxy, call) for call in (commit_in_vain, commit)] == [1, 1]
    assert (find_reference(direct), read_object(direct, count)) == (reference(version=7), row(count))


def test_bulk_write_beyond_the_bound_is_cut_between_objects(
    server: PostgresqlServer, schema: str, open_at: Open, proxy: Proxy
) -> None:
    backend = open_at(server.url(schema, port=proxy.port))
    values = [os.urandom(ROW_BYTES) for _ in range(3)]
    rows = [row(number, part, value=values[part], parts=3) for number in range(1, 12) for part in range(3)]
    assert BULK_BYTES < sum(len(made.value) for made in rows) < 2 * BULK_BYTES

    assert round_trips(proxy, lambda: backend.write_objects(rows)) == 2
    assert backend.read_objects(REALM, [(made.id, made.part) for made in rows]) == rows


def test_bulk_write_whose_later_part_fails_is_unknown(
    server: PostgresqlServer, schema: str, patient: PostgresqlBackend
) -> None:
    rows = [row(number, value=bytes(ROW_BYTES)) for number in range(1, 31)]
    patient.write_objects(rows[-1:])
    with server.connect() as blocker, blocker.transaction():
        blocker.execute(f"SELECT FROM {schema}.objs WHERE id = 30 FOR UPDATE".encode())
        with pytest.raises(UnknownOutcomeError, match="an earlier part of the same call happened"):
            patient.write_objects(rows)


@pytest.mark.parametrize("column", ["recent", "moves"])
def test_lists_of_pointers_that_are_cut_off_are_unreadable(
    server: PostgresqlServer, schema: str, direct: PostgresqlBackend, column: str
) -> None:
    direct.create_reference(reference("broken/main"))
    server.execute(f"UPDATE {schema}.refs SET {column} = 'xyz'")
    for names in (["broken/main"], ["absent", "broken/main"]):
        with pytest.raises(CorruptionError, match="'broken/main' of realm key 10"):
            direct.read_references(REALM, names)


def test_name_with_a_nul_is_refused(direct: PostgresqlBackend) -> None:
    with pytest.raises(RefusedError):
        direct.create_reference(reference("a\0b"))


def test_names_are_in_byte_order_whatever_the_databases_language(server: PostgresqlServer, direct: PostgresqlBackend) -> None:
    names = ["A", "B", "a", "a-b", "a/b", "ab", "b", "\u00e9", "\uffee", "\U0001f600"]
    direct.create_references([reference(name) for name in reversed(names)])

    assert [found.name for found in direct.scan_references(ScanSplit(), None, 99)] == sorted(names)


def test_swaps_leave_the_index_alone(server: PostgresqlServer, schema: str, open_at: Open) -> None:
    backend = open_at(server.url(schema))
    backend.create_references([reference(f"r{number}") for number in range(300)])
    seen = reference("r150")
    for _ in range(100):
        new = dataclasses.replace(seen, version=seen.version + 1, recent=tuple(ObjectId(number) for number in range(20)))
        backend.swap_reference(seen, new)
        seen = new
    backend.close()  # the server counts a session's updates at its end at the latest
    counted = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'refs' AND schemaname = %s"
    deadline = time.monotonic() + 10
    while server.execute(counted, (schema,))[0][0] < 100:
        assert time.monotonic() < deadline
        time.sleep(0.05)

    assert server.execute(counted, (schema,)) == [(100, 100)]


def looked_at(nodes: Sequence[dict[str, Any]]) -> int:
    """Rows of the tables that were read, and thrown away or not."""
    return max(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes
        if "Relation Name" in node
    )


def pages_read(server: PostgresqlServer, schema: str) -> int:
    """How many pages of indexes were looked at, once every session that is over is counted."""
    counted = "SELECT sum(idx_blks_hit + idx_blks_read)::bigint FROM pg_statio_user_indexes WHERE schemaname = %s"
    seen = [-1, server.execute(counted, (schema,))[0][0]]
    deadline = time.monotonic() + 10
    while seen[-1] != seen[-2] and time.monotonic() < deadline:
        time.sleep(1.2)  # sessions report once a second, and when they end
        seen.append(server.execute(counted, (schema,))[0][0])
    found: int = seen[-1]
    return found


@pytest.mark.parametrize(
    "call",
    [
        lambda backend: backend.read_objects(REALM, [(ObjectId(500), 0), (ObjectId(700), 0)]),
        lambda backend: backend.write_objects([row(500, value=b"new"), row(700, value=b"new")]),
        lambda backend: backend.delete_objects([key(row(500)), key(row(700))]),
        lambda backend: backend.read_references(REALM, ["r500", "r700"]),
        lambda backend: backend.create_references([reference("r500"), reference("r700")]),
    ],
    ids=["read_objects", "write_objects", "delete_objects", "read_references", "create_references"],
)
def test_call_reads_its_rows_despite_an_empty_tables_plan(
    server: PostgresqlServer, schema: str, open_at: Open, call: Callable[[PostgresqlBackend], object]
) -> None:
    backend, other = open_at(server.url(schema, pool=1)), open_at(server.url(schema))
    for _ in range(7):  # the server keeps a plan after a few times at the latest
        call(backend)
    backend.delete_realm(REALM, 99)
    other.write_objects([row(number) for number in range(1, 30_001)])
    other.create_references([reference(f"r{number}") for number in range(30_000)])
    other.close()
    before = pages_read(server, schema)
    call(backend)
    backend.close()

    assert pages_read(server, schema) - before < 100  # all of an index would be 117 or more


@pytest.mark.parametrize("realm", [None, REALM])
def test_page_amid_a_scan_looks_at_that_page(direct: PostgresqlBackend, realm: Any) -> None:
    direct.write_objects([row(number) for number in range(1, 3001)])
    direct.write_objects([row(number, realm=OTHER) for number in range(1, 3001)])
    text, values = scan(direct._sql.objs, ScanSplit(realm), (REALM, ObjectId(2000), 0))
    nodes = explain(direct, text, values | {"limit": 100})

    assert [node["Node Type"] for node in nodes] == ["Limit", "Index Scan"]
    assert looked_at(nodes) == 100
    assert nodes[0]["Shared Hit Blocks"] + nodes[0]["Shared Read Blocks"] < 20


@pytest.fixture(params=["exact", "sampled"])
def splits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a scan is cut: in tables of up to 128 MiB of index, and in larger ones."""
    if request.param == "sampled":
        monkeypatch.setattr(splitting, "_EXACT_INDEX_BYTES", 0)
        monkeypatch.setattr(splitting, "_SAMPLED_PAGES", 40)
    return str(request.param)


@pytest.mark.parametrize("realm", [None, REALM])
def test_splits_are_about_even_however_the_ids_lie(
    server: PostgresqlServer, schema: str, direct: PostgresqlBackend, splits: str, realm: Any
) -> None:
    server.execute(
        f"INSERT INTO {schema}.objs SELECT 10, i::bigint * i * i, 1, 0, 1, 'note', NULL, '' FROM generate_series(1, 20000) AS i"
    )
    server.execute(f"INSERT INTO {schema}.objs SELECT 11, i, 1, 0, 1, 'note', NULL, '' FROM generate_series(1, 300) AS i")
    found = direct.split_objects(realm, 4)
    counts = [len(direct.scan_objects(split, None, 99_999)) for split in found]

    assert len(found) == 4
    assert sum(counts) == (20300 if realm is None else 20000)
    assert max(counts) <= (min(counts) + 4 if splits == "exact" else 2 * min(counts))


def test_small_realm_in_a_large_table_is_cut_exactly(
    server: PostgresqlServer, schema: str, direct: PostgresqlBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitting, "_EXACT_INDEX_BYTES", 0)
    server.execute(f"INSERT INTO {schema}.objs SELECT 11, i, 1, 0, 1, 'note', NULL, '' FROM generate_series(1, 5000) AS i")
    direct.write_objects([row(number) for number in range(1, 101)])

    assert [len(direct.scan_objects(split, None, 999)) for split in direct.split_objects(REALM, 4)] == [25] * 4


def test_row_being_replaced_is_deleted_with_its_realm(server: PostgresqlServer, schema: str, direct: PostgresqlBackend) -> None:
    direct.create_reference(reference())
    waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'headwater' AND wait_event_type = 'Lock'"
    deleted: list[int] = []
    thread = threading.Thread(target=lambda: deleted.append(direct.delete_realm(REALM, 10)))
    with server.connect() as other, other.transaction():
        other.execute(f"UPDATE {schema}.refs SET version = version + 1".encode())
        thread.start()
        deadline = time.monotonic() + 10
        while not server.execute(waiting):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    thread.join(10)

    assert deleted == [1]
    assert find_reference(direct) is None


def test_conditional_deletion_spares_a_row_that_another_changes_just_then(
    server: PostgresqlServer, schema: str, direct: PostgresqlBackend
) -> None:
    direct.insert_object(row(1, token="a"))
    waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'headwater' AND wait_event_type = 'Lock'"
    deleted: list[int] = []
    thread = threading.Thread(target=lambda: deleted.append(direct.delete_objects([key(row(1, token="a"))])))
    with server.connect() as other, other.transaction():
        other.execute(f"UPDATE {schema}.objs SET token = 'b'".encode())
        thread.start()
        deadline = time.monotonic() + 10
        while not server.execute(waiting):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    thread.join(10)

    assert deleted == [0]
    assert read_object(direct, 1) == row(1, token="b")
