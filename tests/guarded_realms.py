"""A realm whose people have to say who they are: principals with grants, and a process that serves them and asks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import requests
from pyiceberg.catalog.rest import RestCatalog

from headwater import Store
from headwater.access import Privilege, SecurableKind
from headwater.catalogs import Catalog, CatalogGrant, CatalogRoles, Catalogs
from headwater.realms import (
    RealmRegistry,
    assign_principal_role,
    bootstrap,
    create_principal,
    create_principal_role,
    hash_credentials,
    list_principal_roles,
    new_credentials,
    told_client_id,
)

_SERVING = "serving "
_SECONDS = 30


@dataclass(frozen=True)
class GuardedRealm:
    """A realm of a store. Whom it makes is told a ``credential``, as clients are configured with it."""

    store: Store
    id: str = "acme"

    def create(self) -> str:
        """Make the realm; returns root's credential."""
        registry, made = RealmRegistry(self.store), new_credentials()
        registry.create_realm(self.id)
        bootstrap(registry, self.id, hash_credentials(made))
        return f"{told_client_id(self.id, made.client_id)}:{made.client_secret}"

    def create_catalog(self, name: str, location: str) -> Catalog:
        catalogs = Catalogs(RealmRegistry(self.store).open_realm(self.id))
        catalogs.create_catalog(name, base_location=location)
        return catalogs.open_catalog(name)

    def create_reader(self, name: str, catalog: str, *path: str) -> str:
        """Make a principal that may read what lies below a path of a catalog, and nothing else; returns its credential."""
        registry, made = RealmRegistry(self.store), new_credentials()
        create_principal(registry, self.id, name, hash_credentials(made))
        create_principal_role(registry, self.id, name)
        assign_principal_role(registry, self.id, name, name)
        roles = self._roles(catalog)
        roles.create_role(name)
        roles.assign_role(name, next(role.entity for role in list_principal_roles(registry, self.id) if role.name == name))
        roles.put_grants(name, reading(*path))
        return f"{told_client_id(self.id, made.client_id)}:{made.client_secret}"

    def revoke_reading(self, name: str, catalog: str, *path: str) -> None:
        self._roles(catalog).remove_grants(name, reading(*path))

    def _roles(self, catalog: str) -> CatalogRoles:
        rows = RealmRegistry(self.store).open_realm(self.id)
        return CatalogRoles(rows, Catalogs(rows).read_catalog(catalog))


def reading(*path: str) -> list[CatalogGrant]:
    """What lets somebody read a namespace and its tables."""
    privileges = (Privilege.NAMESPACE_READ_PROPERTIES, Privilege.TABLE_READ_DATA)
    return [CatalogGrant(privilege=privilege, on=SecurableKind.NAMESPACE, path=path) for privilege in privileges]


@dataclass(frozen=True)
class GuardedLake:
    """A catalog with the tables ``sales.orders`` and ``hidden.orders``, of two rows each. Its reader may read ``sales``.

    root, reader  their credentials
    """

    realm: GuardedRealm
    url: str
    name: str
    folder: Path
    root: str
    reader: str

    @property
    def uri(self) -> str:
        return f"{self.url}/iceberg"

    @property
    def token_uri(self) -> str:
        return f"{self.uri}/v1/oauth/tokens"

    @property
    def warehouse(self) -> str:
        return f"{self.realm.id}/{self.name}"

    def at(self, url: str) -> GuardedLake:
        """The lake as another server serves it."""
        return replace(self, url=url)

    def write_credentials(self, file: Path) -> Path:
        """Write the reader's credentials as Headwater does."""
        client_id, _, secret = self.reader.partition(":")
        fields = {"realm": self.realm.id, "clientId": client_id.partition(".")[2], "clientSecret": secret}
        file.write_text(json.dumps(fields), encoding="utf-8")
        return file

    def connect(self, **properties: str) -> RestCatalog:
        """The catalog of pyiceberg, for the reader or for whom the properties name."""
        told = {"credential": self.reader, "oauth2-server-uri": self.token_uri} if "token" not in properties else {}
        return RestCatalog("lake", uri=self.uri, warehouse=self.warehouse, **{**told, **properties})

    def token(self) -> str:
        """A token of the reader, as a program without a client of Iceberg gets it."""
        client_id, _, secret = self.reader.partition(":")
        fields = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
        answer = requests.post(self.token_uri, data=fields, timeout=_SECONDS)
        answer.raise_for_status()
        return str(answer.json()["access_token"])

    def is_open_to(self, token: str) -> bool:
        """Whether the server lets the holder of a token see the catalog."""
        config = requests.get(
            f"{self.uri}/v1/config",
            params={"warehouse": self.warehouse},
            headers={"Authorization": f"Bearer {token}"},
            timeout=_SECONDS,
        )
        return config.status_code == 200

    def ids(self) -> list[int]:
        """The ids of the orders, as root reads them."""
        with closing(self.connect(credential=self.root)) as client:
            return sorted(client.load_table("sales.orders").scan().to_arrow()["id"].to_pylist())

    def metadata_files(self) -> set[str]:
        """The files that the server writes: what a refused change has to leave alone."""
        return {file.name for file in self.folder.rglob("*.metadata.json")}

    def commits(self) -> int:
        catalogs = Catalogs(RealmRegistry(self.realm.store).open_realm(self.realm.id))
        return len(list(catalogs.open_catalog(self.name).log()))

    def revoke(self) -> None:
        """Take the reader's rights back."""
        self.realm.revoke_reading(self.name, self.name, "sales")


def seconds_until(is_so: Callable[[], bool]) -> float:
    """After how many seconds something is so; fails where that takes two minutes."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() < began + 120
        time.sleep(0.1)
    return time.monotonic() - began


def make_guarded_lake(realm: GuardedRealm, url: str, *, root: str, name: str, folder: Path) -> GuardedLake:
    """Make the catalog and its reader, who is called like it, and wait until the server knows of the reader's rights."""
    realm.create_catalog(name, folder.as_uri())
    lake = GuardedLake(realm, url, name, folder, root, realm.create_reader(name, name, "sales"))
    rows = pa.table({"id": [1, 2], "city": ["Bern", "Graz"]})
    with closing(lake.connect(credential=root)) as client:
        for namespace in ("sales", "hidden"):
            client.create_namespace(namespace)
            client.create_table(f"{namespace}.orders", rows.schema).append(rows)
    seconds_until(lambda: lake.is_open_to(lake.token()))
    return lake


@contextmanager
def guarding_server(
    store_url: str,
    folder: Path,
    *,
    token_lifetime: str = "1h",
    storage_file: Path | None = None,
    issuers: Path | None = None,
) -> Iterator[str]:
    """Serve a store by a process of its own, which asks who calls; its keys, its log and its audit log are in a folder. Gives its URL."""
    (folder / "keys").mkdir(parents=True)
    (folder / "keys" / "2026-01").write_text("a key that only tests use, and long enough\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HEADWATER_", "AWS_"))}
    environment |= {
        "HEADWATER_SERVER_SIGNING_KEYS": str(folder / "keys"),
        "HEADWATER_SERVER_TOKEN_LIFETIME": token_lifetime,
        "HEADWATER_SERVER_AUDIT_FILE": str(folder / "audit.jsonl"),
        "HEADWATER_SERVER_ISSUERS": "" if issuers is None else str(issuers),
        "HEADWATER_STORAGE_FILE": "" if storage_file is None else str(storage_file),
    }
    command = [sys.executable, "-m", "headwater", "--store", store_url, "serve", "--listen", "127.0.0.1:0"]
    log = folder / "server.log"
    with (
        log.open("wb") as said,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=said, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(_SERVING), log.read_text(encoding="utf-8")[-2000:]
            yield line.removeprefix(_SERVING).strip().removesuffix("/iceberg")
            process.send_signal(signal.SIGTERM)
            assert process.wait(_SECONDS) == 0
        finally:
            process.kill()
