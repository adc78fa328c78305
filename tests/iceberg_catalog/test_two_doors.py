"""Pyiceberg's client and a server's door to one branch: what one does, the other sees, by the same rules."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from commits_of_engines import ORDERS, append, set_properties
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.table.update import SetPropertiesUpdate, TableRequirement, TableUpdate

from headwater import Store
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.iceberg.changes import RequirementFailedError
from headwater.iceberg_catalog import IcebergCatalog, LoadedTable, TableCommit


class KeepsCommits(HeadwaterCatalog):
    """A client that notes what it commits, so that it can be sent again."""

    def commit_table(self, table: Any, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]) -> Any:
        self.last = (table, requirements, updates)
        return super().commit_table(table, requirements, updates)


@pytest.fixture
def client(store: Store, lake: IcebergCatalog) -> KeepsCommits:
    return KeepsCommits.on(store, realm="acme", catalog="lake")  # type: ignore[return-value]  # ``on`` makes one of its own class


@pytest.fixture
def rows() -> pa.Table:
    return pa.table({"id": [1, 2]}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))


def test_table_of_one_door_is_written_by_the_other(
    lake: IcebergCatalog, client: KeepsCommits, orders: LoadedTable, rows: pa.Table
) -> None:
    table = client.load_table("sales.orders")
    table.append(rows)
    lake.tables.commit(set_properties(ORDERS, owner="ann"))

    assert table.refresh().properties["owner"] == "ann"
    assert table.scan().to_arrow().num_rows == 2


def test_commit_that_pyiceberg_sends_again_is_known(client: KeepsCommits, orders: LoadedTable, rows: pa.Table) -> None:
    client.load_table("sales.orders").append(rows)
    first = client.last
    other = client.load_table("sales.orders")
    other.append(rows)

    assert client.commit_table(*first).metadata_location == other.metadata_location


def test_commit_of_unclear_outcome_keeps_pyicebergs_files(
    lake: IcebergCatalog, client: KeepsCommits, orders: LoadedTable, rows: pa.Table
) -> None:
    client.load_table("sales.orders").append(rows)
    table, requirements, updates = client.last

    with pytest.raises(CommitStateUnknownException, match="Keep its files"):
        client.commit_table(table, requirements, (*updates, SetPropertiesUpdate(updates={"owner": "ann"})))


def test_pyicebergs_commit_back_onto_main_is_refused(
    lake: IcebergCatalog, client: KeepsCommits, orders: LoadedTable, rows: pa.Table
) -> None:
    client.load_table("sales.orders").append(rows)
    lake.tables.commit(TableCommit(ORDERS, [], [{"action": "remove-snapshot-ref", "ref-name": "main"}]))

    with pytest.raises(ValueError, match="already exists"):  # as pyiceberg's own catalogs do
        client.commit_table(*client.last)


def test_race_between_two_doors_has_one_winner(
    lake: IcebergCatalog, client: KeepsCommits, orders: LoadedTable, rows: pa.Table
) -> None:
    client.load_table("sales.orders").append(rows)

    with pytest.raises(RequirementFailedError):
        lake.tables.commit(append(orders, 7))


def test_table_staged_by_pyiceberg_is_created_once(lake: IcebergCatalog, client: KeepsCommits, rows: pa.Table) -> None:
    with client.create_table_transaction("sales.orders", rows.schema) as transaction:
        transaction.append(rows)
    first = lake.tables.load(ORDERS)

    assert client.commit_table(*client.last).metadata_location == first.metadata_location
