"""The JavaScript client ``iceberg-js`` against a server over loopback.

It needs node and npm, and the npm registry, from which it takes the client; where one of them is not there it is skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from headwater import Store
from rest_server import serve_store

pytestmark = pytest.mark.long

PACKAGE = "iceberg-js@1.0.0"
SESSION = """
import { IcebergRestCatalog } from "iceberg-js";

const catalog = new IcebergRestCatalog({ baseUrl: process.argv[2] + "/iceberg", warehouse: "acme/lake" });
const schema = { type: "struct", "schema-id": 0, fields: [{ id: 1, name: "id", type: "long", required: true }] };
const orders = { namespace: ["sales", "eu"], name: "orders" };
const told = {};
await catalog.createNamespace({ namespace: ["sales", "eu"] }, { properties: { owner: "ann" } });
told.namespaces = (await catalog.listNamespaces({ parent: { namespace: ["sales"] } })).namespaces;
told.properties = (await catalog.loadNamespaceMetadata({ namespace: ["sales", "eu"] })).properties;
const created = await catalog.createTable({ namespace: ["sales", "eu"] }, { name: "orders", schema });
told.tables = (await catalog.listTables({ namespace: ["sales", "eu"] })).identifiers;
const loaded = await catalog.loadTableResult(orders);
told.isSame = loaded.metadata["table-uuid"] === created["table-uuid"];
told.isKnown = (await catalog.loadTable(orders, { ifNoneMatch: loaded.etag })) === null;
const updates = [{ action: "set-properties", updates: { owner: "bob" } }];
const requirements = [{ type: "assert-table-uuid", uuid: created["table-uuid"] }];
told.updated = (await catalog.updateTable(orders, { requirements, updates })).metadata.properties;
told.withoutRequirements = await catalog.updateTable(orders, { updates }).catch((error) => error.status);
await catalog.dropTable(orders);
told.exists = await catalog.tableExists(orders);
await catalog.dropNamespace({ namespace: ["sales", "eu"] });
told.left = await catalog.namespaceExists({ namespace: ["sales", "eu"] });
console.log(JSON.stringify(told));
"""


@pytest.fixture
def client_folder(tmp_path: Path) -> Path:
    """A folder with the client, from the npm registry."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node or npm is not there: this runs where both are on the PATH, such as from Debian's nodejs and npm")
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    install = [npm, "install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--fetch-retries=0", PACKAGE]
    got = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    if got.returncode != 0:
        pytest.skip(f"npm cannot get {PACKAGE}: this runs where the npm registry is reachable")
    return tmp_path


@pytest.mark.usefixtures("lake")
def test_javascript_client_keeps_a_table(store: Store, client_folder: Path) -> None:
    (client_folder / "session.js").write_text(SESSION, encoding="utf-8")
    with serve_store(store) as url:
        session = subprocess.run(
            ["node", "session.js", url], cwd=client_folder, capture_output=True, text=True, check=False, timeout=60
        )

    assert session.returncode == 0, session.stderr
    told: dict[str, Any] = json.loads(session.stdout)
    assert told == {
        "namespaces": [{"namespace": ["sales", "eu"]}],
        "properties": {"owner": "ann"},
        "tables": [{"namespace": ["sales", "eu"], "name": "orders"}],
        "isSame": True,
        "isKnown": True,
        "updated": {"owner": "bob"},
        "withoutRequirements": 400,
        "exists": False,
        "left": False,
    }
