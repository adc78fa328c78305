"""What is left of a realm and a catalog when a fault has passed: whether all of it is as declared, and there once."""

from __future__ import annotations

import base64
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from desks import Desk, Writes, make_catalog, make_realm

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import Catalogs
from headwater.realms import Credentials, RealmRegistry, find_root, verify_secret
from headwater.settings import Settings
from headwater.store import RealmId, Store, open_store
from headwater.tasks import TaskQueue
from kubetest import Cluster, Namespace

__all__ = ["Stage", "assert_as_declared", "assert_gone"]

PATIENCE_SECONDS = 300.0


@dataclass
class Stage:
    """A namespace and a store for each try, and operators on them that come and go."""

    cluster: Cluster
    settings: Settings
    opened: list[Store] = field(default_factory=list)
    faults: FaultyBackend = field(init=False)

    def reset(self) -> None:
        name = f"fire-{secrets.token_hex(6)}"
        self.cluster.api.create_resource(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        )
        self.namespace = Namespace(self.cluster, name)
        self.writes = Writes()
        self.clock = FakeClock()
        self.heal()
        self.faults = FaultyBackend(open_store("memory://").backend)
        self.worker_store = self._open(self.faults.backend)

    def operator(self, **others: Any) -> Desk:
        """A new process: nothing is left of an earlier one but what it wrote."""
        return Desk(self.namespace, self._open(self.faults), worker_store=self.worker_store, writes=self.writes, **others)

    def declare(self, **spec: Any) -> None:
        desk = self.operator()
        desk.apply(make_realm(**spec), make_catalog(**spec))

    def confirm_and_delete(self, desk: Desk) -> None:
        desk.annotate("Catalog", "sales", confirm_purge="acme/sales")
        desk.annotate("Realm", "acme", confirm_purge="acme")
        desk.delete("Catalog", "sales")
        desk.delete("Realm", "acme")

    def heal(self) -> None:
        """Nothing fails any more."""
        if hasattr(self, "faults"):
            self.faults.heal()

    def end(self) -> None:
        self.heal()
        for store in self.opened:
            store.close()

    def _open(self, backend: Any) -> Store:
        store = Store(backend, url="memory://", settings=self.settings, clock=self.clock)
        self.opened.append(store)
        return store


def come_to_rest(desk: Desk, *, until: Callable[[], bool]) -> None:
    desk.go_on(PATIENCE_SECONDS, until=until, step=5)


def is_ready(desk: Desk) -> bool:
    return desk.is_ready("Realm", "acme") and desk.is_ready("Catalog", "sales")


def is_gone(desk: Desk) -> bool:
    desk.work_off()
    return all(desk.namespace.find(kind, name) is None for kind, name in (("Realm", "acme"), ("Catalog", "sales")))


def assert_as_declared(desk: Desk, *, rest_seconds: float = 8, **spec: Any) -> None:
    """Ready, the store as the resources say, one of everything, and, a moment later, nothing left to write."""
    come_to_rest(desk, until=lambda: is_ready(desk))
    assert is_ready(desk), (desk.status("Realm", "acme"), desk.status("Catalog", "sales"))
    realms = RealmRegistry(desk.store)
    assert [realm.id for realm in realms.list_realms() if not realm.id.startswith("::")] == ["acme"]
    assert [catalog.name for catalog in Catalogs(realms.open_realm(RealmId("acme"))).list_catalogs()] == ["sales"]
    _assert_one_set_of_credentials(desk)
    active = Counter(
        (seen.value.kind, seen.value.subject) for seen in TaskQueue(desk.store).list_tasks() if seen.value.is_active
    )
    assert active == {("gc", ""): 1}
    desk.work_off()
    realm = realms.read_realm("acme")
    for name, value in spec.items():
        assert getattr(realm, name) == value
    desk.go_on(rest_seconds, step=2)
    desk.http.fail(None)
    desk.go_on(340, step=340)
    assert desk.http.writes == [], desk.http.writes


def assert_gone(desk: Desk) -> None:
    """The resources, the realm, its rows and its Secret."""
    come_to_rest(desk, until=lambda: is_gone(desk))
    assert is_gone(desk), (desk.namespace.find("Realm", "acme"), desk.namespace.find("Catalog", "sales"))
    assert [realm.id for realm in RealmRegistry(desk.store).list_realms() if not realm.id.startswith("::")] == []
    assert desk.namespace.find("Secret", "acme-root-credentials") is None
    assert [seen.value.kind for seen in TaskQueue(desk.store).list_tasks() if seen.value.is_active] == []


def _assert_one_set_of_credentials(desk: Desk) -> None:
    secrets = desk.namespace.cluster.api.list_resources(desk.namespace.path("Secret"))
    assert [secret["metadata"]["name"] for secret in secrets] == ["acme-root-credentials"]
    texts = {name: base64.b64decode(value).decode() for name, value in secrets[0]["data"].items()}
    root = find_root(RealmRegistry(desk.store), RealmId("acme"))
    assert root is not None
    assert verify_secret(root.credentials, Credentials(texts["clientId"], texts["clientSecret"]))
