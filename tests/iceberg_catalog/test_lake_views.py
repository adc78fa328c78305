"""Views of a lake: replaced, renamed and registered by the rules of tables."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from commits_of_engines import ORDERS, SALES, SCHEMA

from headwater.catalogs import Catalog, ContentKey, IcebergView
from headwater.errors import RefusedError
from headwater.iceberg.changes import ChangeFormError, RequirementFailedError
from headwater.iceberg_catalog import (
    AlreadyExistsError,
    IcebergCatalog,
    LoadedTable,
    LoadedView,
    NoSuchViewError,
    TableCreation,
    ViewCommit,
    ViewCreation,
)

TOTALS = SALES.child("totals")


def version(sql: str = "SELECT 1", **fields: Any) -> dict[str, Any]:
    representations = [{"type": "sql", "sql": sql, "dialect": "spark"}]
    made = {"version-id": 1, "schema-id": 0, "timestamp-ms": 1_700_000_000_000, "summary": {"engine-name": "spark"}}
    return made | {"default-namespace": ["sales"], "representations": representations} | fields


@pytest.fixture
def totals(lake: IcebergCatalog) -> LoadedView:
    return lake.views.create(ViewCreation(key=TOTALS, schema=SCHEMA, view_version=version(), properties={"owner": "ann"}))


def replacement(view: LoadedView, sql: str = "SELECT 2", *, uuid: str | None = None) -> ViewCommit:
    """What engines send for ``create or replace view``."""
    uuid = uuid or view.document["view-uuid"]
    updates = [
        {"action": "add-view-version", "view-version": version(sql, **{"version-id": 2})},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    return ViewCommit(view.key, [{"type": "assert-view-uuid", "uuid": uuid}], updates)


def test_view_is_loaded_as_it_was_created(lake: IcebergCatalog, totals: LoadedView) -> None:
    loaded = lake.views.load(TOTALS)

    assert (loaded.document, lake.views.peek(TOTALS)) == (totals.document, totals.etag)
    assert loaded.document["properties"] == {"owner": "ann"}


def test_replaced_view_keeps_its_versions_and_its_uuid(lake: IcebergCatalog, totals: LoadedView, catalog: Catalog) -> None:
    replaced = lake.views.commit(replacement(totals))

    document, content = replaced.document, catalog.get_content(None, TOTALS)
    assert [one["representations"][0]["sql"] for one in document["versions"]] == ["SELECT 1", "SELECT 2"]
    assert document["view-uuid"] == totals.document["view-uuid"]
    assert isinstance(content, IcebergView) and content.version_id == document["current-version-id"] == 2
    assert content.metadata_location == replaced.metadata_location != totals.metadata_location


def test_view_of_another_uuid_is_not_replaced(lake: IcebergCatalog, totals: LoadedView) -> None:
    with pytest.raises(RequirementFailedError, match=r"^Requirement failed: view UUID does not match"):
        lake.views.commit(replacement(totals, uuid=str(uuid4())))

    assert lake.views.peek(TOTALS) == totals.etag


def test_properties_and_place_of_a_view_change(lake: IcebergCatalog, totals: LoadedView) -> None:
    place = f"{totals.document['location']}_moved"
    updates = [
        {"action": "set-properties", "updates": {"comment": "new"}},
        {"action": "remove-properties", "removals": ["owner"]},
        {"action": "set-location", "location": place},
    ]

    changed = lake.views.commit(ViewCommit(TOTALS, [], updates))

    assert (changed.document["properties"], changed.document["location"]) == ({"comment": "new"}, place)
    assert changed.metadata_location.startswith(place)


def test_view_is_not_moved_into_a_table(lake: IcebergCatalog, totals: LoadedView, orders: LoadedTable) -> None:
    move = {"action": "set-location", "location": f"{orders.document['location']}/metadata"}

    with pytest.raises(RefusedError, match="a place of another table"):
        lake.views.commit(ViewCommit(TOTALS, [], [move]))


def test_missing_view_is_named(lake: IcebergCatalog, totals: LoadedView) -> None:
    lake.views.drop(TOTALS)

    for ask in (lake.views.load, lake.views.peek, lake.views.drop):
        with pytest.raises(NoSuchViewError, match=r"^View does not exist: sales\.totals$"):
            ask(TOTALS)
    with pytest.raises(NoSuchViewError):
        lake.views.commit(replacement(totals))


def test_unknown_update_of_a_view_is_named(lake: IcebergCatalog, totals: LoadedView) -> None:
    with pytest.raises(ChangeFormError) as fault:
        lake.views.commit(ViewCommit(TOTALS, [], [{"action": "add-snapshot"}]))
    assert fault.value.path == "updates[0].action"


def test_table_and_view_cannot_have_one_name(lake: IcebergCatalog, totals: LoadedView, orders: LoadedTable) -> None:
    with pytest.raises(AlreadyExistsError, match=r"^Table with same name already exists: sales\.orders$"):
        lake.views.create(ViewCreation(key=ORDERS, schema=SCHEMA, view_version=version()))
    with pytest.raises(AlreadyExistsError, match=r"^View with same name already exists: sales\.totals$"):
        lake.tables.create(TableCreation(key=TOTALS, schema=SCHEMA))
    with pytest.raises(AlreadyExistsError, match=r"^Cannot rename sales\.totals to sales\.orders\. Table already exists$"):
        lake.views.rename(TOTALS, ORDERS)


def test_view_moves_to_another_namespace(lake: IcebergCatalog, totals: LoadedView) -> None:
    lake.namespaces.create(ContentKey.of("eu"), {})

    moved = lake.views.rename(TOTALS, ContentKey.of("eu", "totals"))

    assert (moved.content_id, moved.etag, lake.views.exists(TOTALS)) == (totals.content_id, totals.etag, False)


def test_view_is_registered_again_also_over_itself(lake: IcebergCatalog, totals: LoadedView) -> None:
    lake.views.commit(replacement(totals))
    with pytest.raises(AlreadyExistsError):
        lake.views.register(TOTALS, totals.metadata_location)

    back = lake.views.register(TOTALS, totals.metadata_location, overwrite=True)

    assert (back.content_id, back.etag) == (totals.content_id, totals.etag)


def test_table_is_no_view(lake: IcebergCatalog, orders: LoadedTable) -> None:
    with pytest.raises(RefusedError, match="is no metadata of a view"):
        lake.views.register(TOTALS, orders.metadata_location)


def test_views_are_listed_apart_from_tables(lake: IcebergCatalog, totals: LoadedView, orders: LoadedTable) -> None:
    assert (lake.views.list(SALES).keys, lake.tables.list(SALES).keys) == ((TOTALS,), (ORDERS,))
