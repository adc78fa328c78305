"""Keycloak as the identity provider, and engines that log in there by what `headwater client-config` prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from engine_tools import CLIENT_ID, CLIENT_SECRET, MINUTES, printed_config, run_program
from keycloak_server import Keycloak, keycloak_server
from trino_server import Trino

from guarded_realms import GuardedRealm, guarding_server
from headwater import open_store
from headwater.access import Privilege, SecurableKind
from headwater.catalogs import CatalogGrant
from headwater.realms import RealmRegistry, create_principal_role, list_principal_roles

pytestmark = [pytest.mark.long, pytest.mark.timeout(3 * MINUTES)]


@dataclass(frozen=True)
class ProvidedLake:
    """The catalog ``acme/lake`` of a server that believes Keycloak. Its client may do everything in it."""

    url: str
    keycloak: Keycloak

    @property
    def words(self) -> tuple[str, ...]:
        """What the command is told of the provider."""
        return "--token-url", self.keycloak.token_url, "--client-id", CLIENT_ID, "--scope", "openid"

    def status(self, token: str) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"}
        answer = requests.get(f"{self.url}/iceberg/v1/config?warehouse=acme/lake", headers=headers, timeout=60)
        return answer.status_code, answer.headers.get("WWW-Authenticate", "")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProvidedLake]:
    folder = tmp_path_factory.mktemp("provided")
    store_url = f"sqlite:///{folder}/store.db"
    with keycloak_server(folder) as keycloak, open_store(store_url) as store:
        realm = GuardedRealm(store)
        realm.create()
        realm.create_catalog("lake", (folder / "warehouse").as_uri())
        registry = RealmRegistry(store)
        create_principal_role(registry, "acme", "admin")
        roles = realm._roles("lake")
        roles.create_role("all")
        roles.assign_role("all", next(role.entity for role in list_principal_roles(registry, "acme") if role.name == "admin"))
        roles.put_grants("all", [CatalogGrant(privilege=Privilege.CATALOG_MANAGE_CONTENT, on=SecurableKind.CATALOG, path=())])
        entry = {"issuer": keycloak.issuer, "realms": ["acme"], "audiences": ["headwater"], "roles": {"lake-admins": "admin"}}
        issuers = folder / "issuers.json"
        issuers.write_text(json.dumps({"issuers": [entry | {"roles-claim": "realm_access.roles"}]}))
        with guarding_server(store_url, folder / "server", issuers=issuers) as url:
            yield ProvidedLake(url, keycloak)


def test_scope_and_audience_are_as_the_page_says(lake: ProvidedLake) -> None:
    refused = lake.keycloak.ask_token(CLIENT_ID, scope="catalog")
    token = lake.keycloak.ask_token(CLIENT_ID, scope="openid").json()["access_token"]
    strange = lake.keycloak.ask_token("stranger").json()["access_token"]

    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_scope")
    assert lake.status(token)[0] == 200
    assert lake.status(strange) == (401, 'Bearer realm="headwater", error="invalid_token"')


def test_python_logs_in_writes_and_reads(lake: ProvidedLake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ICEBERG_CLIENT_SECRET", CLIENT_SECRET)
    printed = printed_config("pyiceberg", "acme/lake", lake.url, "python", *lake.words, "--check")
    head, last = printed.rstrip().rsplit("\n", 1)
    make = """
import pyarrow
lake.create_namespace("sales")
lake.create_table("sales.orders", pyarrow.schema([("id", pyarrow.int64())])).append(pyarrow.table({"id": [41]}))
"""

    output = run_program(
        [sys.executable, "-c", f"{head}{make}{last}"], tmp_path, ICEBERG_CREDENTIAL=f"{CLIENT_ID}:{CLIENT_SECRET}"
    )

    assert "41" in output


def test_trino_logs_in(lake: ProvidedLake, trino: Trino) -> None:
    trino.add_catalog("provided", printed_config("trino", "acme/lake", lake.url, "folders", *lake.words))

    trino.run("CREATE SCHEMA trino", "provided")
    trino.run("CREATE TABLE t AS SELECT 1 AS id", "provided", "trino")

    assert trino.run("SELECT * FROM t", "provided", "trino") == [[1]]
