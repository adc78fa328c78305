"""What comes along with a table: its document, stored as objects; and views, which are imported like tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from headwater.catalogs import (
    Catalog,
    ContentKey,
    IcebergTable,
    IcebergView,
    ImportOptions,
    ImportReport,
    Put,
    TableClaims,
    import_tables,
)
from headwater.catalogs.content_operations import IDS, stored_metadata_of
from headwater.catalogs.stored_metadata import read_metadata
from headwater.iceberg import AcceptedTable, QuarantineCode
from headwater.iceberg.metadata_json import join_metadata
from headwater.store import RealmStore

MakeFound = Callable[..., AcceptedTable]
Import = Callable[..., ImportReport]
ORDERS = ContentKey.of("sales", "orders")


@pytest.fixture
def run(catalog: Catalog, claims: TableClaims) -> Import:
    def run(*tables: AcceptedTable, **options: Any) -> ImportReport:
        return import_tables(catalog, claims, tables, options=ImportOptions(mode="sync", **options))

    return run


@pytest.fixture
def make_view(make_found: MakeFound) -> Callable[..., AcceptedTable]:
    """The view sales.orders at a version, which grew out of those before."""

    def make(version: int, *, uuid: str | None = None) -> AcceptedTable:
        found = make_found("sales.orders", version=version)
        versions = tuple(range(1, version + 1))
        told = {"kind": "view", "version_id": version, "versions": versions, "snapshot_id": None, "log": ()}
        return msgspec.structs.replace(found, **told, uuid=uuid or found.uuid)

    return make


def with_document(found: AcceptedTable, **fields: Any) -> AcceptedTable:
    return msgspec.structs.replace(found, document=msgspec.json.encode(fields))


def stored(catalog: Catalog, rows: RealmStore, key: ContentKey) -> Any:
    content, head = catalog.get_content(None, key), catalog.resolve()
    assert content is not None and content.id is not None and head is not None
    metadata = stored_metadata_of(head.index(IDS), content.id)
    return None if metadata is None else msgspec.json.decode(join_metadata(read_metadata(rows, metadata)))


def test_document_of_a_table_is_stored_with_it(run: Import, catalog: Catalog, realm: RealmStore, make_found: MakeFound) -> None:
    run(with_document(make_found("sales.orders"), a=[{"b": 1}, {"b": 2}], c="d"))

    assert stored(catalog, realm, ORDERS) == {"a": [{"b": 1}, {"b": 2}], "c": "d"}


def test_sync_moves_the_stored_document_too(run: Import, catalog: Catalog, realm: RealmStore, make_found: MakeFound) -> None:
    run(with_document(make_found("sales.orders", version=1), a=[1, 2]))
    run(with_document(make_found("sales.orders", version=2), a=[1, 2, 3]))

    assert stored(catalog, realm, ORDERS) == {"a": [1, 2, 3]}


def test_view_arrives_as_a_view(run: Import, catalog: Catalog, make_view: Callable[..., AcceptedTable]) -> None:
    run(make_view(3))

    view = catalog.get_content(None, ORDERS)
    assert isinstance(view, IcebergView)
    assert (view.version_id, view.view_uuid) == (3, make_view(3).uuid)


def test_commit_tells_what_is_new_and_what_moved(run: Import, catalog: Catalog, make_found: MakeFound) -> None:
    run(make_found("sales.orders", version=1))
    run(make_found("sales.items"), make_found("sales.orders", version=2))

    assert [entry.message for entry in catalog.log()] == ["import 1 table, update 1 table", "import 1 table"]


def test_sync_moves_a_view_to_what_grew_out_of_it(
    run: Import, catalog: Catalog, make_view: Callable[..., AcceptedTable]
) -> None:
    run(make_view(1))

    assert run(make_view(2)).updated == 1
    assert run(make_view(2)).unchanged == 1


@pytest.mark.parametrize("other", [{"version": 1}, {"version": 3, "uuid": "1b5fa0c6-2a1e-4f0e-8d5f-000000000001"}])
def test_sync_never_moves_a_view_back_or_to_another(
    run: Import, make_view: Callable[..., AcceptedTable], other: dict[str, Any]
) -> None:
    run(make_view(2))

    assert run(make_view(**other)).codes() == {str(QuarantineCode.NOT_FORWARD): 1}


@pytest.mark.parametrize("is_view_first", [True, False])
def test_view_is_never_put_over_a_table_nor_the_reverse(
    run: Import, make_view: Callable[..., AcceptedTable], make_found: MakeFound, is_view_first: bool
) -> None:
    pair = [make_view(1), make_found("sales.orders", version=2)]
    first, second = pair if is_view_first else reversed(pair)
    run(first)

    assert run(second).codes() == {str(QuarantineCode.KEY_TAKEN): 1}


def test_table_put_without_its_document_is_left_alone(
    run: Import, catalog: Catalog, realm: RealmStore, make_found: MakeFound
) -> None:
    found = make_found("orders")
    catalog.commit(None, [Put(ContentKey.of("orders"), IcebergTable(metadata_location=found.metadata_location))])

    assert run(with_document(found, a=1)).unchanged == 1
    assert stored(catalog, realm, ContentKey.of("orders")) is None
