"""Views, which of pyiceberg's own catalogs only the one over REST has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lake_doors import NO_NAMESPACE, REFUSED
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import NoSuchViewError, TableAlreadyExistsError, ViewAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.view import View
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

from headwater.catalogs import Catalog, ContentKey, IcebergView

VERSION = ViewVersion.model_validate(
    {
        "version-id": 1,
        "schema-id": 7,
        "default-namespace": ["sales"],
        "representations": [ViewRepresentation(root=SQLViewRepresentation(type="sql", sql="SELECT 1", dialect="spark"))],
    }
)


@pytest.fixture
def shop(client: IcebergCatalog) -> IcebergCatalog:
    client.create_namespace("sales")
    return client


@pytest.fixture
def view(shop: IcebergCatalog, schema: Schema) -> View:
    return shop.create_view("sales.totals", schema, VERSION, properties={"owner": "ann"})


@pytest.fixture
def make_file(view: View, shop: IcebergCatalog, lake: Catalog) -> Callable[..., str]:
    """The location of metadata like that of the view, which is dropped, with some fields changed."""
    content = lake.get_content(None, ContentKey.of("sales", "totals"))
    assert isinstance(content, IcebergView)
    file = Path(content.metadata_location.removeprefix("file://"))
    document = json.loads(file.read_text())
    shop.drop_view("sales.totals")

    def make(**fields: Any) -> str:
        path = file.with_name("view.metadata.json")
        path.write_text(json.dumps(document | {name.replace("_", "-"): value for name, value in fields.items()}))
        return path.as_uri()

    return make


def test_view_that_was_created_is_loaded_as_it_was(shop: IcebergCatalog, view: View) -> None:
    loaded = shop.load_view("sales.totals")

    assert loaded == view
    assert loaded.schema().find_field("customer").field_id == 2
    assert [one.sql for one in [loaded.sql_for("spark")] if one] == ["SELECT 1"]


def test_catalog_holds_the_views_version_and_uuid(view: View, lake: Catalog) -> None:
    content = lake.get_content(None, ContentKey.of("sales", "totals"))

    assert isinstance(content, IcebergView)
    assert (content.version_id, content.schema_id, content.view_uuid) == (1, 0, str(view.uuid()))


def test_views_and_tables_are_listed_apart(shop: IcebergCatalog, view: View, schema: Schema) -> None:
    shop.create_table("sales.orders", schema)

    assert (shop.list_views("sales"), shop.list_tables("sales")) == ([("sales", "totals")], [("sales", "orders")])
    assert (shop.view_exists("sales.totals"), shop.view_exists("sales.orders")) == (True, False)
    assert not shop.table_exists("sales.totals")


def test_view_is_created_once(shop: IcebergCatalog, view: View, schema: Schema) -> None:
    with pytest.raises(ViewAlreadyExistsError):
        shop.create_view("sales.totals", schema, VERSION)


def test_view_and_a_table_cannot_have_one_name(shop: IcebergCatalog, view: View, schema: Schema) -> None:
    shop.create_table("sales.orders", schema)

    with pytest.raises((TableAlreadyExistsError, ViewAlreadyExistsError), match="Table"):
        shop.create_view("sales.orders", schema, VERSION)
    with pytest.raises(TableAlreadyExistsError, match=r"View .*sales\.totals"):
        shop.create_table("sales.totals", schema)


def test_view_needs_a_namespace(client: IcebergCatalog, schema: Schema) -> None:
    with pytest.raises(NO_NAMESPACE, match="sales"):
        client.create_view("sales.totals", schema, VERSION)


def test_dropped_view_is_gone(shop: IcebergCatalog, view: View) -> None:
    shop.drop_view("sales.totals")

    with pytest.raises(NoSuchViewError):
        shop.load_view("sales.totals")
    with pytest.raises(NoSuchViewError):
        shop.drop_view("sales.totals")


def test_view_is_registered_from_its_file(shop: IcebergCatalog, view: View, make_file: Callable[..., str]) -> None:
    registered = shop.register_view("sales.sums", make_file())

    assert (registered.name(), registered.metadata) == (("sales", "sums"), view.metadata)
    assert shop.load_view("sales.sums") == registered


def test_view_without_its_current_version_is_refused(shop: IcebergCatalog, make_file: Callable[..., str]) -> None:
    """pyiceberg takes it, and fails when it is used."""
    with pytest.raises(REFUSED, match=r"has no version 9|look at current-version-id"):
        shop.register_view("sales.sums", make_file(current_version_id=9))


def test_table_that_is_no_view_is_refused(shop: IcebergCatalog, make_file: Callable[..., str]) -> None:
    with pytest.raises(REFUSED, match=r"is no (sound )?metadata of a view"):
        shop.register_view("sales.sums", make_file(versions=None))
