"""Two writers on one table of a served catalog, one of them Spark with Iceberg's own engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served_lake import ServedLake
from spark_sql import SparkFault

from servers.proxy import Proxy

pytestmark = pytest.mark.long

MERGE = (
    "MERGE INTO {}.sales.orders AS o USING (SELECT 3L AS id, '{}' AS city) AS n ON o.id = n.id"
    " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


@pytest.fixture
def slow(orders: ServedLake) -> Iterator[Proxy]:
    """A way to the lake on which a commit can be overtaken; Spark knows it as ``slow``."""
    with orders.through_proxy("slow") as proxy:
        yield proxy


def test_appends_of_two_writers_both_survive(orders: ServedLake, slow: Proxy) -> None:
    slow.precede_requests(
        lambda: orders.sql("INSERT INTO lake.sales.orders VALUES (4, 'Wien')"), times=1, holding=orders.commit_line()
    )
    orders.sql("INSERT INTO slow.sales.orders VALUES (3, 'Lyon')")

    assert slow.drops == 1
    assert orders.rows() == [(1, "Bern"), (2, "Graz"), (3, "Lyon"), (4, "Wien")]


def test_appends_of_spark_and_pyiceberg_both_survive(orders: ServedLake, slow: Proxy) -> None:
    table = orders.pyiceberg().load_table("sales.orders")
    rows = table.scan("id = 1").to_arrow()
    slow.precede_requests(lambda: table.append(rows), times=1, holding=orders.commit_line())
    orders.sql("INSERT INTO slow.sales.orders VALUES (3, 'Lyon')")

    assert orders.rows() == [(1, "Bern"), (1, "Bern"), (2, "Graz"), (3, "Lyon")]


def test_merges_of_the_same_new_row_do_not_double_it(orders: ServedLake, slow: Proxy) -> None:
    slow.precede_requests(lambda: orders.sql(MERGE.format("lake", "Wien")), times=1, holding=orders.commit_line())

    with pytest.raises(SparkFault) as fault:
        orders.sql(MERGE.format("slow", "Lyon"))

    assert "ValidationException" in fault.value.kinds
    assert orders.rows() == [(1, "Bern"), (2, "Graz"), (3, "Wien")]


def test_change_of_columns_outruns_an_append(orders: ServedLake, slow: Proxy) -> None:
    slow.precede_requests(
        lambda: orders.sql("ALTER TABLE lake.sales.orders ADD COLUMN price INT"), times=1, holding=orders.commit_line()
    )
    orders.sql("INSERT INTO slow.sales.orders VALUES (3, 'Lyon')")

    assert orders.rows(columns="id, price") == [(1, None), (2, None), (3, None)]


def test_table_dropped_under_a_writer_is_missing(orders: ServedLake, slow: Proxy) -> None:
    slow.precede_requests(lambda: orders.sql("DROP TABLE lake.sales.orders"), times=1, holding=orders.commit_line())

    with pytest.raises(SparkFault, match=r"Table does not exist: sales\.orders"):
        orders.sql("INSERT INTO slow.sales.orders VALUES (3, 'Lyon')")
