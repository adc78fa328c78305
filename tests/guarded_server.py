"""A server that asks who calls, over a store with two realms, and the people who call it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import scrypt
from typing import Any
from urllib.parse import urlencode

from asgi_client import AsgiAnswer, AsgiClient
from fake_clock import FakeClock
from headwater.access import Privilege, SecurableKind
from headwater.catalogs import Catalog, CatalogGrant, CatalogRoles, Catalogs
from headwater.realms import (
    Credentials,
    CredentialsHash,
    RealmRegistry,
    assign_principal_role,
    bootstrap,
    create_principal,
    create_principal_role,
    list_principal_roles,
    new_credentials,
    told_client_id,
)
from headwater.store import Store
from headwater_server.call import ServedStore
from headwater_server.iceberg_rest import iceberg_table
from headwater_server.route_table import RouteTable
from headwater_server.server_application import ServerApplication

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
EVERYTHING = "everything"


def cheap_hash(made: Credentials) -> CredentialsHash:
    """Credentials as a store keeps them, at the least cost: a hash carries its own, and tests log in a thousand times."""
    digest = scrypt(made.client_secret.encode(), salt=b"salt", n=2, r=1, p=1, dklen=32)
    return CredentialsHash(client_id=made.client_id, salt=b"salt", digest=digest, cost=2, block=1, parallel=1)


@dataclass
class Guest:
    """Somebody who calls, with a token of its own or with whatever headers a test gives it."""

    client: AsgiClient
    headers: dict[str, str] = field(default_factory=dict)
    prefix: str = "acme~lake"

    def at(self, prefix: str) -> Guest:
        return Guest(self.client, self.headers, prefix)

    def get(self, path: str, **query: str) -> AsgiAnswer:
        return self.call("GET", path + ("?" + urlencode(query) if query else ""))

    def head(self, path: str) -> AsgiAnswer:
        return self.call("HEAD", path)

    def delete(self, path: str) -> AsgiAnswer:
        return self.call("DELETE", path)

    def post(self, path: str, body: Any, **headers: str) -> AsgiAnswer:
        return self.call("POST", path, json.dumps(body).encode(), **headers)

    def call(self, method: str, path: str, body: bytes = b"", **headers: str) -> AsgiAnswer:
        """``path`` stands below the prefix, or below ``/iceberg`` where it begins with ``/v1``, or alone with ``/``."""
        if path.startswith("/v1"):
            path = f"/iceberg{path}"
        target = path if path.startswith("/") else f"/iceberg/v1/{self.prefix}/{path}"
        return self.client.request(method, target, body, **{**self.headers, **headers})

    def config(self, warehouse: str) -> AsgiAnswer:
        return self.get("/v1/config", warehouse=warehouse)

    def names(self, path: str) -> list[str]:
        """The last elements of what a listing of namespaces, tables or views shows."""
        answer = self.get(path)
        assert answer.status == 200, answer.content
        kind = "namespaces" if "namespaces" in answer.data else "identifiers"
        return [each[-1] if kind == "namespaces" else each["name"] for each in answer.data[kind]]


@dataclass
class GuardedServer:
    """A server over a store, and the credentials of everybody in it by realm and name.

    protocols     that it serves beside Iceberg REST, by which callers log in
    """

    store: Store
    clock: FakeClock
    base_location: str
    protocols: Sequence[RouteTable] = ()
    credentials: dict[tuple[str, str], Credentials] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.realms = RealmRegistry(self.store)
        self.application = ServerApplication(
            ServedStore(self.store),
            [iceberg_table(), *self.protocols],
            settings=self.store.settings,
            clock=self.clock,
            version="1.2.3",
        )
        self.client = AsgiClient(self.application)

    def make_realm(self, realm: str, *catalogs: str) -> None:
        self.realms.create_realm(realm)
        made = self.credentials[realm, "root"] = new_credentials()
        bootstrap(self.realms, realm, cheap_hash(made))
        for catalog in catalogs:
            Catalogs(self.realms.open_realm(realm)).create_catalog(
                catalog, base_location=f"{self.base_location}/{realm}/{catalog}"
            )

    def catalog(self, name: str = "lake", realm: str = "acme") -> Catalog:
        return Catalogs(self.realms.open_realm(realm)).open_catalog(name)

    def catalog_roles(self, catalog: str = "lake", realm: str = "acme") -> CatalogRoles:
        rows = self.realms.open_realm(realm)
        return CatalogRoles(rows, Catalogs(rows).read_catalog(catalog))

    def make_principal(self, name: str, *grants: CatalogGrant, realm: str = "acme", catalog: str = "lake") -> None:
        """Make a principal that holds grants in a catalog, through a principal role and a catalog role of its own name."""
        made = self.credentials[realm, name] = new_credentials()
        create_principal(self.realms, realm, name, cheap_hash(made))
        create_principal_role(self.realms, realm, name)
        assign_principal_role(self.realms, realm, name, name)
        roles = self.catalog_roles(catalog, realm)
        roles.create_role(name)
        entity = next(role.entity for role in list_principal_roles(self.realms, realm) if role.name == name)
        roles.assign_role(name, entity)
        roles.put_grants(name, grants)
        self.clock.advance(5)

    def grant(self, name: str, *grants: CatalogGrant) -> None:
        self.catalog_roles().put_grants(name, grants)
        self.clock.advance(5)

    def revoke(self, name: str, *grants: CatalogGrant) -> None:
        self.catalog_roles().remove_grants(name, grants)
        self.clock.advance(5)

    def credential(self, name: str, realm: str = "acme") -> str:
        made = self.credentials[realm, name]
        return f"{told_client_id(realm, made.client_id)}:{made.client_secret}"

    def ask_token(self, fields: Mapping[str, str], **headers: str) -> AsgiAnswer:
        return self.client.request(
            "POST",
            "/iceberg/v1/oauth/tokens",
            urlencode(fields).encode(),
            content_type="application/x-www-form-urlencoded",
            **headers,
        )

    def token_of(self, name: str, realm: str = "acme", **fields: str) -> str:
        client_id, _, secret = self.credential(name, realm).partition(":")
        answer = self.ask_token({"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret, **fields})
        assert answer.status == 200, answer.content
        token: str = answer.data["access_token"]
        return token

    def guest(self, name: str, realm: str = "acme", **fields: str) -> Guest:
        return self.with_token(self.token_of(name, realm, **fields), realm)

    def with_token(self, token: str, realm: str = "acme") -> Guest:
        return Guest(self.client, {"authorization": f"Bearer {token}"}, f"{realm}~lake")

    def make_table(self, *path: str) -> AsgiAnswer:
        """Make a table as root, with its namespace."""
        root = self.guest("root")
        namespace = list(path[:-1])
        root.post("namespaces", {"namespace": namespace})
        answer = root.post(f"namespaces/{'%1F'.join(namespace)}/tables", {"name": path[-1], "schema": SCHEMA})
        assert answer.status == 200, answer.content
        return answer


def held(privilege: Privilege, *path: str, on: str = "", references: str = "") -> CatalogGrant:
    """A grant on a catalog, or on a namespace with a path, or on a table or view with ``on`` too."""
    kind = on or (SecurableKind.NAMESPACE if path else SecurableKind.CATALOG)
    return CatalogGrant(privilege=privilege, on=kind, path=tuple(path), references=references)


def updates(table: Mapping[str, Any], *changes: Mapping[str, Any], requirements: Sequence[Any] = ()) -> dict[str, Any]:
    """The body of a commit to a table, given the answer to a load of it."""
    uuid = {"type": "assert-table-uuid", "uuid": table["metadata"]["table-uuid"]}
    return {"requirements": [uuid, *requirements], "updates": list(changes)}
