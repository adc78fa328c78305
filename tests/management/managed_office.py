"""A server of management over a store in memory, with realms whose callers tests give rights to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stocked_lake import StockedLake, stock_lake

from asgi_client import AsgiAnswer, AsgiClient
from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.access import Privilege
from headwater.catalogs import CatalogGrant, CatalogRoles, Catalogs
from headwater.clock import Micros
from headwater.jobs import COLLECT, Run, record_run
from headwater.realms import (
    CredentialsHash,
    RealmRegistry,
    assign_principal_role,
    bootstrap,
    create_principal,
    create_principal_role,
    grant_on_realm,
    read_principal,
    read_principal_role,
)
from headwater.store import ObjectId
from headwater.tasks import TaskQueue
from headwater_server.call import ServedStore
from headwater_server.identity import CallerProof
from headwater_server.server_application import ServerApplication
from headwater_server.server_tables import server_tables

REALMS = ("acme", "rival")
FRESH_SECONDS = 5
"""After this, every right is as it was granted last."""


@dataclass
class ManagedOffice:
    """
    acme has the catalogs ``lake`` and ``vault``, the deleted catalog ``gone``, the principal ``ann`` with the principal role ``readers``,
    which may read tasks and has the catalog role ``analyst`` of ``lake``, and a task with a run. rival has the catalog ``other`` and
    a task.

    tasks         the task of each realm
    lake          what is in ``lake``, once it was stocked
    """

    store: Store
    clock: FakeClock
    application: ServerApplication
    tasks: dict[str, ObjectId] = field(default_factory=dict)
    lake: StockedLake = field(init=False)

    @classmethod
    def opened(cls, folder: Path, *, asks_who_calls: bool = True, **named: str) -> ManagedOffice:
        """Open one; settings are named without ``server_``."""
        folder.mkdir(exist_ok=True)
        (folder / "key").write_text("k" * 48, encoding="ascii")
        others: dict[str, Any] = {f"server_{name}": value for name, value in named.items()}
        settings = Settings(server_signing_keys=str(folder) if asks_who_calls else "", **others)
        clock = FakeClock()
        store = open_store("memory://", settings=settings, clock=clock)
        application = ServerApplication(ServedStore(store), server_tables(), settings=settings, clock=clock, version="1.2.3")
        office = cls(store, clock, application)
        office._furnish()
        return office

    def close(self) -> None:
        self.application.close()
        self.store.close()

    @property
    def registry(self) -> RealmRegistry:
        return RealmRegistry(self.store)

    def catalogs(self, realm: str = "acme") -> Catalogs:
        return Catalogs(self.registry.open_realm(realm))

    def roles(self, catalog: str = "lake") -> CatalogRoles:
        return CatalogRoles(self.registry.open_realm("acme"), self.catalogs().read_catalog(catalog))

    def stock(self) -> ManagedOffice:
        """Put something into ``lake``; returns the office."""
        self.lake = stock_lake(self.catalogs(), "lake")
        return self

    def make_holder(self, name: str, *privileges: Privilege, lake: tuple[CatalogGrant, ...] = ()) -> str:
        """Create a principal with privileges on the realm, and others on ``lake``; returns its token.

        The server knows of it: so much time passes that it looks again.
        """
        create_principal(self.registry, "acme", name, unhashed(name))
        create_principal_role(self.registry, "acme", f"role-of-{name}")
        assign_principal_role(self.registry, "acme", f"role-of-{name}", name)
        for privilege in privileges:
            grant_on_realm(self.registry, "acme", f"role-of-{name}", privilege.value)
        if lake:
            roles = self.roles()
            roles.create_role(f"lake-of-{name}")
            roles.put_grants(f"lake-of-{name}", lake)
            roles.assign_role(f"lake-of-{name}", read_principal_role(self.registry, "acme", f"role-of-{name}").entity)
        self.clock.advance(FRESH_SECONDS)
        return self.token(name)

    def token(self, principal: str, realm: str = "acme", *, roles: frozenset[str] | None = None) -> str:
        """A token of a principal."""
        proof = self.application.served.part(CallerProof.of_settings)
        assert proof is not None and proof.tokens is not None
        held = read_principal(self.registry, realm, principal)
        key = self.registry.read_realm(realm).key
        return proof.tokens.issue(
            realm, principal, entity=held.entity, realm_key=key, generation=held.generation, roles=roles
        ).text

    def log_in(self, client_id: str, secret: str) -> AsgiAnswer:
        body = f"grant_type=client_credentials&client_id={client_id}&client_secret={secret}".encode()
        content_type = "application/x-www-form-urlencoded"
        return AsgiClient(self.application).request("POST", "/iceberg/v1/oauth/tokens", body, content_type=content_type)

    def call(self, method: str, path: str, body: Any = None, *, token: str | None = None) -> AsgiAnswer:
        """A request below ``/api/v1``."""
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        content = b"" if body is None else json.dumps(body).encode()
        return AsgiClient(self.application).request(method, f"/api/v1{path}", content, **headers)

    def _furnish(self) -> None:
        for realm in REALMS:
            self.registry.create_realm(realm, properties={"catalog-locations": f"s3://{realm}/, s3://shared/{realm}"})
            bootstrap(self.registry, realm, unhashed("root"))
            self.clock.advance(1)
            key = self.registry.read_realm(realm).key
            task = TaskQueue(self.store).submit_task(COLLECT, realm=realm, realm_key=key).id
            self.tasks[realm] = task
            now = self.clock.now()
            record_run(
                self.store,
                Run(kind=COLLECT, realm=realm, started=now, finished=Micros(now + 1), task=task, attempt=1, counts={"rows": 3}),
            )
        self.catalogs("rival").create_catalog("other", base_location="s3://rival/")
        for name in ("gone", "lake", "vault"):
            self.catalogs().create_catalog(name, base_location=f"s3://acme/{name}/", properties={"owner": f"keeper of {name}"})
        self.catalogs().delete_catalog("gone")
        create_principal(self.registry, "acme", "ann", unhashed("ann"))
        create_principal_role(self.registry, "acme", "readers")
        assign_principal_role(self.registry, "acme", "readers", "ann")
        grant_on_realm(self.registry, "acme", "readers", "TASK_READ")
        analyst = self.roles()
        analyst.create_role("analyst")
        analyst.put_grants("analyst", [CatalogGrant(privilege="TABLE_READ_DATA", on="namespace", path=("sales",))])
        analyst.assign_role("analyst", read_principal_role(self.registry, "acme", "readers").entity)


def unhashed(client_id: str) -> CredentialsHash:
    """Credentials that nobody can log in with, made without the work of a hash."""
    return CredentialsHash(client_id=client_id, salt=b"", digest=b"")
