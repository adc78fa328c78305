"""What manifests declare of access, as a pyiceberg client meets it that has nothing but what was written for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from client_lakes import client_server
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError
from pyiceberg.utils.config import Config

from headwater import open_store
from headwater.reconcile import FileCredentials, ManagerIdentity, load_manifests, reconcile
from headwater.store import RealmId

SHOP = RealmId("shop")
EXAMPLE = Path(__file__).parents[2] / "examples" / "kubernetes" / "access.yaml"
ROWS = pa.table({"number": [1, 2]})


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Callable[[str], dict[str, str]]]:
    """What is written for a principal, once the example has been applied to a store that is served; its tables lie in a folder."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "2026-11").write_text("a first key of the tests, long enough\n")
    (tmp_path / "storages").mkdir()
    text = EXAMPLE.read_text().replace("    uri: https://headwater.example.org\n", "")
    (tmp_path / "access.yaml").write_text(text.replace("s3://shop-lake/tables/", f"{(tmp_path / 'tables').as_uri()}/"))
    store_url, sink = f"sqlite:///{tmp_path}/store.db", FileCredentials(tmp_path / "credentials")
    with (
        open_store(store_url) as store,
        client_server(store_url, tmp_path / "storages", signing_keys=str(tmp_path / "keys")) as uri,
    ):
        manifests = load_manifests(tmp_path / "access.yaml")
        for outcome in reconcile(store, manifests, credentials=sink, manager=ManagerIdentity(), server_url=uri):
            assert outcome.is_settled, outcome
        yield lambda principal: dict(json.loads(Path(sink.of_principal(principal).place(SHOP)).read_text()))


@pytest.fixture
def loader(told: Callable[[str], dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """A pod that mounts the connection."""
    (tmp_path / ".pyiceberg.yaml").write_text(told("connection.lake")[".pyiceberg.yaml"])
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    return load_catalog("lake")


@pytest.fixture
def analyst(told: Callable[[str], dict[str, str]]) -> Catalog:
    """A person who knows the credential in a Secret, and where the catalog is."""
    where = {name: told("connection.lake")[name] for name in ("uri", "warehouse", "oauth2-server-uri")}
    return load_catalog("analyst", type="rest", credential=told("analyst")["credential"], **where)


@pytest.mark.long
def test_analyst_of_the_example_reads_one_namespace_and_nothing_else(loader: Catalog, analyst: Catalog) -> None:
    for namespace in ("sales", "people"):
        loader.create_namespace(namespace)
        loader.create_table(f"{namespace}.orders", schema=ROWS.schema).append(ROWS)

    assert analyst.list_namespaces() == [("sales",)]
    assert analyst.load_table("sales.orders").scan().to_arrow() == ROWS
    with pytest.raises(NoSuchTableError):
        analyst.load_table("people.orders")
    with pytest.raises(ForbiddenError):
        analyst.load_table("sales.orders").append(ROWS)
    with pytest.raises(ForbiddenError):
        analyst.create_namespace("mine")
