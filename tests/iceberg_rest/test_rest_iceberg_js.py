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

from guarded_realms import GuardedRealm, guarding_server, make_guarded_lake
from headwater import Store, open_store
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
const { location, ...properties } = (await catalog.loadNamespaceMetadata({ namespace: ["sales", "eu"] })).properties;
Object.assign(told, { properties, isLocated: location.endsWith("/sales/eu") });
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


READING = """
import { IcebergRestCatalog } from "iceberg-js";

const [url, warehouse, clientId, secret] = process.argv.slice(2);
async function getHeaders() {
  const body = new URLSearchParams({ grant_type: "client_credentials", client_id: clientId, client_secret: secret });
  const answer = await fetch(url + "/iceberg/v1/oauth/tokens", { method: "POST", body });
  return { Authorization: `Bearer ${(await answer.json()).access_token}` };
}
const token = (await getHeaders()).Authorization.slice(7);
const connect = (auth) => new IcebergRestCatalog({ baseUrl: url + "/iceberg", warehouse, auth });
const statusOf = (promise) => promise.then(() => 200, (error) => [error.status, error.message]);
const orders = { namespace: ["sales"], name: "orders" };
const told = {};
for (const [name, auth] of Object.entries({ bearer: { type: "bearer", token }, custom: { type: "custom", getHeaders } })) {
  told[name] = (await connect(auth).listNamespaces()).namespaces.map((each) => each.namespace);
}
const catalog = connect({ type: "custom", getHeaders });
told.loaded = (await catalog.loadTable(orders)).schemas[0].fields.map((each) => each.name);
told.hidden = await statusOf(catalog.loadTable({ namespace: ["hidden"], name: "orders" }));
told.drop = await statusOf(catalog.dropTable(orders));
told.wrong = await statusOf(connect({ type: "bearer", token: token + "x" }).listNamespaces());
told.without = await statusOf(connect(undefined).listNamespaces());
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
        "isLocated": True,
        "tables": [{"namespace": ["sales", "eu"], "name": "orders"}],
        "isSame": True,
        "isKnown": True,
        "updated": {"owner": "bob"},
        "withoutRequirements": 400,
        "exists": False,
        "left": False,
    }


def test_javascript_client_reads_what_its_token_may(client_folder: Path, tmp_path: Path) -> None:
    (client_folder / "reading.js").write_text(READING, encoding="utf-8")
    store_url = f"sqlite:///{tmp_path}/store.db"
    with open_store(store_url) as store:
        realm = GuardedRealm(store)
        root = realm.create()
        with guarding_server(store_url, tmp_path / "server") as url:
            lake = make_guarded_lake(realm, url, root=root, name="lake", folder=tmp_path / "warehouse")
            words = ["node", "reading.js", url, lake.warehouse, *lake.reader.split(":")]
            session = subprocess.run(words, cwd=client_folder, capture_output=True, text=True, check=False, timeout=60)

    assert session.returncode == 0, session.stderr
    told: dict[str, Any] = json.loads(session.stdout)
    refused = {name: told.pop(name) for name in ("hidden", "drop", "wrong", "without")}
    assert told == {"bearer": [["sales"]], "custom": [["sales"]], "loaded": ["id", "city"]}
    # it goes on without what /v1/config would have told it, so that a token that does not hold looks like a path that is not there
    assert {name: status for name, (status, _) in refused.items()} == {"hidden": 404, "drop": 403, "wrong": 404, "without": 404}
    assert "this needs TABLE_DROP on table sales.orders" in refused["drop"][1]
