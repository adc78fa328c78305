"""What clients are told of tables and views whose properties would command them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from rest_caller import RestCaller

from headwater.catalogs import Catalog, ContentKey, IcebergTable, IcebergView, Put
from headwater.iceberg.metadata_json import split_metadata

FIELDS = [{"id": 1, "name": "id", "type": "long", "required": True}]
SCHEMA = {"type": "struct", "schema-id": 0, "fields": FIELDS}
VERSION = {
    "version-id": 1,
    "schema-id": 0,
    "timestamp-ms": 1,
    "summary": {},
    "default-namespace": ["sales"],
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
}
HOSTILE = {"py-io-impl": "evil.FileIO", " S3.Endpoint": "http://elsewhere", "adls.token": "t", "client.region": "x"}


def import_properties(lake: Catalog, name: str, properties: dict[str, str]) -> None:
    """Give a table or view properties as an import does, which takes documents as they are."""
    key = ContentKey.of("sales", name)
    content = lake.get_content(None, key)
    assert isinstance(content, IcebergTable | IcebergView)
    path = Path(content.metadata_location.removeprefix("file://"))
    text = json.dumps(json.loads(path.read_text()) | {"properties": properties}).encode()
    path.with_name("v9.metadata.json").write_bytes(text)
    moved = replace(content, metadata_location=path.with_name("v9.metadata.json").as_uri())
    lake.commit(None, [Put(key, moved, content, split_metadata(text))])


@pytest.fixture
def imported(sales: RestCaller, lake: Catalog) -> RestCaller:
    """A caller of a lake with an imported table ``orders``, and an imported view ``recent``."""
    sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA})
    sales.post("namespaces/sales/views", {"name": "recent", "schema": SCHEMA, "view-version": VERSION, "properties": {}})
    for name in ("orders", "recent"):
        import_properties(lake, name, {**HOSTILE, "owner": "ann"})
    return sales


def commit(rest: RestCaller, *updates: dict[str, Any]) -> Any:
    answer = rest.post("namespaces/sales/tables/orders", {"requirements": [], "updates": list(updates)})
    assert answer.status == 200
    return answer.json["metadata"]["properties"]


@pytest.mark.parametrize("path", ["tables/orders", "tables/orders?snapshots=refs", "views/recent"])
def test_loaded_document_commands_no_client(imported: RestCaller, path: str) -> None:
    path, _, snapshots = path.partition("?snapshots=")

    loaded = imported.get(f"namespaces/sales/{path}", **({"snapshots": snapshots} if snapshots else {})).json

    assert loaded["metadata"]["properties"] == {"owner": "ann"}
    assert not set(HOSTILE) & set(loaded.get("config") or {})


def test_committed_document_commands_no_client(imported: RestCaller, lake: Catalog) -> None:
    assert commit(imported, {"action": "set-properties", "updates": {"color": "red"}}) == {"owner": "ann", "color": "red"}
    stored = lake.metadata(None, ContentKey.of("sales", "orders"))
    assert stored is not None and json.loads(stored)["properties"] == {**HOSTILE, "owner": "ann", "color": "red"}


def test_unseen_property_is_removed_by_its_name(imported: RestCaller, lake: Catalog) -> None:
    commit(imported, {"action": "remove-properties", "removals": list(HOSTILE)})

    stored = lake.metadata(None, ContentKey.of("sales", "orders"))
    assert stored is not None and json.loads(stored)["properties"] == {"owner": "ann"}


def test_document_is_else_handed_on_as_it_is(imported: RestCaller, lake: Catalog) -> None:
    stored = lake.metadata(None, ContentKey.of("sales", "orders"))
    assert stored is not None
    told = imported.get("namespaces/sales/tables/orders").json["metadata"]

    assert told == json.loads(stored) | {"properties": {"owner": "ann"}}


def test_no_client_is_asked_to_delete_metadata_files(sales: RestCaller) -> None:
    """pyiceberg would, and other branches and tags have them."""
    asked = {"write.metadata.delete-after-commit.enabled": "true", "owner": "ann"}
    sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA, "properties": asked})

    assert sales.get("namespaces/sales/tables/orders").json["metadata"]["properties"] == {"owner": "ann"}


def test_deletion_of_metadata_files_can_be_switched_off(sales: RestCaller) -> None:
    name = "write.metadata.delete-after-commit.enabled"
    sales.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA, "properties": {name: "true"}})

    assert commit(sales, {"action": "set-properties", "updates": {name: "false"}}) == {name: "false"}


def test_staged_document_keeps_what_is_sent_back(sales: RestCaller) -> None:
    asked = {"write.metadata.delete-after-commit.enabled": "true"}
    wish = {"name": "orders", "schema": SCHEMA, "properties": asked, "stage-create": True}

    assert sales.post("namespaces/sales/tables", wish).json["metadata"]["properties"] == asked
