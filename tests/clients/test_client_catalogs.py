"""How a client finds its catalog, and what it may do where it is."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from lake_doors import REFUSED
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchIdentifierError, NoSuchTableError, RESTError
from pyiceberg.schema import Schema

from headwater import Store, open_store
from headwater.catalogs import Catalog
from headwater.clients.pyiceberg import HeadwaterCatalog

IMPLEMENTATION = "headwater.clients.pyiceberg.HeadwaterCatalog"
PLACE = {"realm": "acme", "catalog": "lake"}


@pytest.fixture
def url(tmp_path: Path, make_lake: Callable[[Store], Catalog]) -> str:
    """A store on this machine with the lake in it."""
    url = f"sqlite:///{tmp_path}/headwater.db"
    with open_store(url) as store:
        make_lake(store)
    return url


@pytest.fixture
def loaded(url: str) -> Iterator[HeadwaterCatalog]:
    """The lake as pyiceberg's users load it."""
    catalog = load_catalog("lake", **{"py-catalog-impl": IMPLEMENTATION, "store": url, **PLACE})
    assert isinstance(catalog, HeadwaterCatalog)
    with catalog:
        yield catalog


def test_pyiceberg_loads_it_by_its_name(loaded: HeadwaterCatalog, rows: pa.Table) -> None:
    loaded.create_namespace("sales")
    loaded.create_table("sales.orders", rows.schema).append(rows)

    assert loaded.load_table("sales.orders").scan().to_arrow().num_rows == 2


def test_option_that_is_not_named_comes_from_pyicebergs_configuration(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"STORE": url, "REALM": "acme", "CATALOG": "lake"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__MINE__{name}", value)

    with HeadwaterCatalog("mine") as catalog:
        assert catalog.list_namespaces() == []


def test_store_is_that_of_the_environment_unless_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_STORE", url)

    with HeadwaterCatalog("lake", **PLACE) as catalog:
        assert catalog.list_namespaces() == []


def test_missing_properties_are_named() -> None:
    with pytest.raises(ValueError, match="needs the properties realm and catalog"):
        HeadwaterCatalog("lake")


@pytest.mark.parametrize("wrong", [{"realm": "nobody"}, {"catalog": "nothing"}, {"branch": "nowhere"}])
def test_place_that_is_not_there_is_named(open_client: Callable[..., IcebergCatalog], wrong: dict[str, str]) -> None:
    with pytest.raises((NoSuchIdentifierError, RESTError), match=next(iter(wrong.values()))):
        open_client(**wrong).list_namespaces()


def test_store_that_cannot_be_is_refused_without_its_password() -> None:
    with pytest.raises(ValueError, match="unknown scheme 'oracle'") as refusal:
        HeadwaterCatalog("lake", store="oracle://me:secret@host/db", **PLACE).list_namespaces()

    assert "secret" not in str(refusal.value)


def test_file_access_is_not_told_where_the_store_is(loaded: HeadwaterCatalog, schema: Schema) -> None:
    loaded.create_namespace("sales")

    table = loaded.create_table("sales.orders", schema)

    assert not {"store", "realm", "catalog"} & table.io.properties.keys()
    assert "sqlite" not in repr(loaded)


def test_clients_share_a_store_until_the_last_is_closed(url: str) -> None:
    one, two = HeadwaterCatalog("one", store=url, **PLACE), HeadwaterCatalog("two", store=url, **PLACE)
    one.create_namespace("sales")
    assert two.namespace_exists("sales")

    one.close()

    assert two.namespace_exists("sales")
    two.close()


def test_closed_client_opens_its_store_again_when_it_is_used(loaded: HeadwaterCatalog) -> None:
    loaded.create_namespace("sales")
    loaded.close()
    loaded.close()

    assert loaded.namespace_exists("sales")


def test_client_is_sent_elsewhere_by_its_properties(loaded: HeadwaterCatalog) -> None:
    loaded.create_namespace("sales")

    with pickle.loads(pickle.dumps(loaded)) as arrived:
        assert arrived.list_namespaces() == [("sales",)]


def test_client_on_a_store_of_its_callers_is_sent_nowhere(client: IcebergCatalog) -> None:
    with pytest.raises(TypeError, match="name the store by URL"):
        pickle.dumps(client)


# branches, tags and commits


def test_branch_is_read_and_written_apart(
    lake: Catalog, client: IcebergCatalog, open_client: Callable[..., IcebergCatalog], rows: pa.Table
) -> None:
    client.create_namespace("sales")
    client.create_table("sales.orders", rows.schema).append(rows)
    lake.create_branch("dev", "main")

    dev = open_client(branch="dev")
    dev.load_table("sales.orders").append(rows)
    dev.create_namespace("trial")

    assert dev.load_table("sales.orders").scan().to_arrow().num_rows == 4
    assert client.load_table("sales.orders").scan().to_arrow().num_rows == 2
    assert not client.namespace_exists("trial")


def test_tag_is_read_and_not_written(
    lake: Catalog, client: IcebergCatalog, open_client: Callable[..., IcebergCatalog], schema: Schema
) -> None:
    client.create_namespace("sales")
    table = client.create_table("sales.orders", schema)
    lake.create_tag("v1", "main")
    client.drop_table("sales.orders")

    tagged = open_client(branch="v1")

    assert tagged.load_table("sales.orders").metadata == table.metadata
    with pytest.raises(REFUSED, match=r"'v1' is not a branch of catalog 'lake' of realm '.*': it can only be read"):
        tagged.drop_table("sales.orders")


def test_existing_table_is_not_created_where_nothing_can_be(
    client: IcebergCatalog, lake: Catalog, open_client: Callable[..., IcebergCatalog], schema: Schema
) -> None:
    client.create_namespace("sales")
    table = client.create_table("sales.orders", schema)
    lake.create_tag("v1", "main")
    past = open_client(branch="v1")

    past.create_namespace_if_not_exists("sales")
    assert past.create_table_if_not_exists("sales.orders", schema) == table
    with pytest.raises(REFUSED, match="can only be read"):
        past.create_table_if_not_exists("sales.lines", schema)


def test_commit_is_read_by_its_hash_and_not_written(
    lake: Catalog, client: IcebergCatalog, open_client: Callable[..., IcebergCatalog], schema: Schema
) -> None:
    client.create_namespace("sales")
    client.create_table("sales.orders", schema)
    now = lake.branch("main").hash
    assert now is not None

    past = open_client(branch=now)

    with pytest.raises(REFUSED, match="can only be read"):
        past.load_table("sales.orders").transaction().set_properties(owner="ann").commit_transaction()


@pytest.mark.parametrize("back", ["main~1", "-~1", "~1"])
def test_past_state_is_read_but_not_written(
    client: IcebergCatalog, open_client: Callable[..., IcebergCatalog], back: str
) -> None:
    client.create_namespace("sales")
    client.create_namespace("web")

    past = open_client(branch=back)

    assert past.list_namespaces() == [("sales",)]
    with pytest.raises(REFUSED, match="can only be read"):
        past.drop_namespace("sales")


def test_line_is_the_default_branch(open_client: Callable[..., IcebergCatalog], client: IcebergCatalog) -> None:
    open_client(branch="-").create_namespace("sales")

    assert client.namespace_exists("sales")


def test_empty_branch_has_nothing(client: IcebergCatalog) -> None:
    assert client.list_namespaces() == []
    assert not client.table_exists("sales.orders")
    with pytest.raises(NoSuchTableError):
        client.load_table("sales.orders")
