"""Several writers on one catalog by Nessie's API, and answers that a proxy loses or replaces after the server's commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from nessie_lake import COMMIT_LINE, NessieLake
from spark_sql import SparkFault

from servers.proxy import Proxy

pytestmark = pytest.mark.long

BEFORE = [(1, "Bern"), (2, "Graz")]
INSERT = "INSERT INTO {}.sales.orders VALUES ({}, '{}')"
MERGE = (
    "MERGE INTO {}.sales.orders AS o USING (SELECT 3L AS id, '{}' AS city) AS n ON o.id = n.id"
    " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
UNKNOWN = {
    "503": (
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "NessieUnavailableException",
    ),
    "504": (b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "NessieServiceException"),
    "lost": (b"", "CommitStateUnknownException"),
}
"""Answers that a proxy makes up in place of the server's, of which the last is none, and what the client makes of them: nothing that
lets it clean up.
"""


@pytest.fixture
def slow(versioned: NessieLake) -> Iterator[Proxy]:
    """A way to the lake on which a commit can be overtaken; Spark knows it as ``slow``."""
    with versioned.through_proxy("slow") as proxy:
        yield proxy


def test_appends_at_once_are_all_there(versioned: NessieLake) -> None:
    def append(number: int) -> None:
        session = versioned.sql.beside()
        session.set_catalog("nessie", versioned.options())
        session(INSERT.format("nessie", number, "Lyon"))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(append, range(3, 9)))

    assert versioned.rows() == [*BEFORE, *((number, "Lyon") for number in range(3, 9))]


def test_append_that_was_overtaken_is_repeated(versioned: NessieLake, slow: Proxy) -> None:
    slow.precede_requests(lambda: versioned.sql(INSERT.format("nessie", 4, "Wien")), times=1, holding=COMMIT_LINE)
    versioned.sql(INSERT.format("slow", 3, "Lyon"))

    assert slow.drops == 1
    assert versioned.rows() == [*BEFORE, (3, "Lyon"), (4, "Wien")]


def test_change_beside_the_table_is_no_conflict(versioned: NessieLake, slow: Proxy) -> None:
    slow.precede_requests(lambda: versioned.sql("CREATE NAMESPACE nessie.eu"), times=1, holding=COMMIT_LINE)
    versioned.sql(INSERT.format("slow", 3, "Lyon"))

    assert versioned.rows() == [*BEFORE, (3, "Lyon")]
    assert sorted(versioned.sql("SHOW NAMESPACES IN nessie")) == [("eu",), ("sales",)]


def test_merges_of_the_same_new_row_do_not_double_it(versioned: NessieLake, slow: Proxy) -> None:
    slow.precede_requests(lambda: versioned.sql(MERGE.format("nessie", "Wien")), times=1, holding=COMMIT_LINE)

    with pytest.raises(SparkFault) as fault:
        versioned.sql(MERGE.format("slow", "Lyon"))
    assert "ValidationException" in fault.value.kinds
    assert versioned.rows() == [*BEFORE, (3, "Wien")]


def test_table_dropped_under_a_writer_is_missing(versioned: NessieLake, slow: Proxy) -> None:
    slow.precede_requests(lambda: versioned.sql("DROP TABLE nessie.sales.orders"), times=1, holding=COMMIT_LINE)

    with pytest.raises(SparkFault) as fault:
        versioned.sql(INSERT.format("slow", 3, "Lyon"))
    assert "NoSuchTableException" in fault.value.kinds
    assert versioned.sql("SHOW TABLES IN nessie.sales") == []


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE {}.sales.more AS SELECT {} AS id", "CREATE VIEW {}.sales.more AS SELECT {} AS id"]
)
def test_name_that_two_took_is_the_first_ones(versioned: NessieLake, slow: Proxy, statement: str) -> None:
    slow.precede_requests(lambda: versioned.sql(statement.format("nessie", 1)), times=1, holding=COMMIT_LINE)

    with pytest.raises(SparkFault) as fault:
        versioned.sql(statement.format("slow", 2))
    assert re.search("ALREADY_EXISTS|already exists", fault.value.text)
    assert versioned.sql("SELECT id FROM nessie.sales.more") == [(1,)]


def test_append_is_repeated_after_another_protocols(versioned: NessieLake, slow: Proxy) -> None:
    versioned.add_rest("rest")
    slow.precede_requests(lambda: versioned.sql(INSERT.format("rest", 4, "Wien")), times=1, holding=COMMIT_LINE)
    versioned.sql(INSERT.format("slow", 3, "Lyon"))

    with Proxy("127.0.0.1", urlsplit(versioned.url).port or 0) as proxy:
        versioned.sql.add_catalog("slow_rest", f"http://127.0.0.1:{proxy.port}", versioned.warehouse)
        commit = f"POST /iceberg/v1/{versioned.warehouse.replace('/', '~')}/namespaces/sales/tables/orders HTTP/1.1"
        proxy.precede_requests(lambda: versioned.sql(INSERT.format("nessie", 6, "Rom")), times=1, holding=commit)
        versioned.sql(INSERT.format("slow_rest", 5, "Gent"))
        assert (slow.drops, proxy.drops) == (1, 1)
    assert [number for number, _ in versioned.rows("rest.sales.orders")] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("name", UNKNOWN)
def test_append_of_unknown_outcome_keeps_its_files(versioned: NessieLake, slow: Proxy, name: str) -> None:
    answer, kind = UNKNOWN[name]
    slow.replace_answers(answer, times=1, holding=COMMIT_LINE)

    with pytest.raises(SparkFault) as fault:
        versioned.sql(INSERT.format("slow", 3, "Lyon"))
    assert fault.value.kinds[0] == kind
    assert versioned.rows() == [*BEFORE, (3, "Lyon")]


def test_append_that_never_arrived_is_not_there(versioned: NessieLake, slow: Proxy) -> None:
    slow.drop_requests(times=1, holding=COMMIT_LINE)

    with pytest.raises(SparkFault) as fault:
        versioned.sql(INSERT.format("slow", 3, "Lyon"))
    assert "CommitStateUnknownException" in fault.value.kinds
    assert versioned.rows() == BEFORE
    versioned.sql(INSERT.format("nessie", 4, "Wien"))
    assert versioned.rows() == [*BEFORE, (4, "Wien")]
