"""What happened is there once, whatever Spark was told of it: answers that a proxy loses or replaces after the server's commit.

Two things no server can mend, and are not tried here. After a 400, 401, 403 or 404 that a proxy makes up Spark deletes the manifests of
its commit, which the table refers to. After a 409 that a proxy makes up, Spark puts the branch back to its own snapshot if another
writer has committed since: the same request as a rollback that somebody asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served_lake import ServedLake
from spark_sql import SparkFault

from servers.proxy import Proxy

pytestmark = pytest.mark.long

INSERT = "INSERT INTO {}.sales.orders VALUES ({}, '{}')"
BEFORE = [(1, "Bern"), (2, "Graz")]


def answer(status: str, *headers: str) -> bytes:
    """What a proxy of its own accord would say."""
    lines = [f"HTTP/1.1 {status}", "Content-Length: 0", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


LOST = b""
CONFLICT = answer("409 Conflict")
REPEATED = {
    "429": answer("429 Too Many Requests"),
    "503 with Retry-After": answer("503 Service Unavailable", "Retry-After: 1"),
}
"""After these the client sends the same request again."""
UNKNOWN = {"503": answer("503 Service Unavailable"), "504": answer("504 Gateway Timeout")}
"""After these it leaves its files alone, and says that it does not know."""


@pytest.fixture
def bad(orders: ServedLake) -> Iterator[Proxy]:
    """A bad way to the lake; Spark knows it as ``bad``."""
    with orders.through_proxy("bad") as proxy:
        yield proxy


def spoil_commit(orders: ServedLake, bad: Proxy, said: bytes) -> None:
    """Replace the answer to the next commit to ``orders`` by another, and let another writer append before Spark gets it."""
    bad.replace_answers(
        said, meanwhile=lambda: orders.sql(INSERT.format("lake", 4, "Wien")), times=1, holding=orders.commit_line()
    )


@pytest.mark.parametrize("name", REPEATED)
def test_append_that_is_sent_again_is_there_once(orders: ServedLake, bad: Proxy, name: str) -> None:
    spoil_commit(orders, bad, REPEATED[name])
    orders.sql(INSERT.format("bad", 3, "Lyon"))

    assert bad.drops == 1
    assert orders.rows() == [*BEFORE, (3, "Lyon"), (4, "Wien")] and len(orders.snapshots()) == 3


@pytest.mark.parametrize("name", UNKNOWN)
def test_append_of_unknown_outcome_keeps_its_files(orders: ServedLake, bad: Proxy, name: str) -> None:
    spoil_commit(orders, bad, UNKNOWN[name])

    with pytest.raises(SparkFault) as fault:
        orders.sql(INSERT.format("bad", 3, "Lyon"))

    assert fault.value.kinds[0] == "CommitStateUnknownException"
    assert orders.rows() == [*BEFORE, (3, "Lyon"), (4, "Wien")]


def test_append_whose_answer_is_lost_keeps_its_files(orders: ServedLake, bad: Proxy) -> None:
    spoil_commit(orders, bad, LOST)

    with pytest.raises(SparkFault, match="Error occurred while processing POST request"):
        orders.sql(INSERT.format("bad", 3, "Lyon"))

    assert orders.rows() == [*BEFORE, (3, "Lyon"), (4, "Wien")]


def test_append_that_was_called_a_conflict_is_there_once(orders: ServedLake, bad: Proxy) -> None:
    bad.replace_answers(CONFLICT, times=1, holding=orders.commit_line())
    orders.sql(INSERT.format("bad", 3, "Lyon"))

    assert bad.drops == 1
    assert orders.rows() == [*BEFORE, (3, "Lyon")] and len(orders.snapshots()) == 2


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_merge_that_is_sent_again_is_there_once(orders: ServedLake, bad: Proxy, mode: str) -> None:
    orders.sql(f"ALTER TABLE lake.sales.orders SET TBLPROPERTIES ('write.merge.mode' = '{mode}')")
    spoil_commit(orders, bad, REPEATED["503 with Retry-After"])
    orders.sql(
        "MERGE INTO bad.sales.orders AS o USING (SELECT * FROM VALUES (2L, 'Gent'), (3L, 'Lyon') AS v(id, city)) AS n"
        " ON o.id = n.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )

    assert bad.drops == 1
    assert orders.rows() == [(1, "Bern"), (2, "Gent"), (3, "Lyon"), (4, "Wien")]


@pytest.mark.parametrize(("name", "kind"), [("429", None), ("503", "CommitStateUnknownException"), ("lost", "RESTException")])
def test_table_from_a_query_keeps_its_files(orders: ServedLake, bad: Proxy, name: str, kind: str | None) -> None:
    said = {**REPEATED, **UNKNOWN, "lost": LOST}[name]
    bad.replace_answers(said, times=1, holding=orders.commit_line("copied"))
    statement = "CREATE TABLE bad.sales.copied AS SELECT * FROM lake.sales.orders"
    if kind is None:
        orders.sql(statement)
    else:
        with pytest.raises(SparkFault) as fault:
            orders.sql(statement)
        assert fault.value.kinds[0] == kind

    assert bad.drops == 1
    assert orders.rows("lake.sales.copied") == BEFORE and len(orders.snapshots("lake.sales.copied")) == 1
