"""What stories are told with: manifests as a person writes them, and a namespace with a realm's name of its own."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from typing import Any

from headwater.realms import Credentials, Realm, RealmRegistry
from headwater.store import RealmId, Store
from kubetest import Namespace

__all__ = ["Story", "catalog_body", "kept_credentials", "realm_body"]


def realm_body(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A Realm as a person writes it; ``realm_body("acme", deletionPolicy="Purge")``."""
    metadata = {"name": name} | ({"annotations": annotations} if annotations else {})
    return {"apiVersion": "headwater.dev/v1alpha1", "kind": "Realm", "metadata": metadata, "spec": spec}


def catalog_body(name: str, realm: str, **spec: Any) -> dict[str, Any]:
    """A Catalog as a person writes it."""
    return {
        "apiVersion": "headwater.dev/v1alpha1",
        "kind": "Catalog",
        "metadata": {"name": name},
        "spec": {"realm": realm, "storage": {"baseLocation": f"s3://{realm}/{name}/"}} | spec,
    }


def kept_credentials(namespace: Namespace, name: str) -> Credentials:
    """What stands in the Secret of a Realm."""
    data = namespace.read("Secret", f"{name}-root-credentials")["data"]
    return Credentials(b64decode(data["clientId"]).decode(), b64decode(data["clientSecret"]).decode())


@dataclass(frozen=True)
class Story:
    """A namespace of this test's own in a cluster where Headwater runs for all, and a realm's name that nobody else uses."""

    namespace: Namespace
    store: Store
    name: str

    @property
    def realms(self) -> RealmRegistry:
        return RealmRegistry(self.store)

    def kubectl(self, *arguments: object, check: bool = True, text: str | None = None) -> str:
        """What kubectl prints, standard error included."""
        done = self.namespace.kubectl(*arguments, check=check, text=text)
        return done.stdout + done.stderr

    def apply_realm(self, annotations: dict[str, str] | None = None, **spec: Any) -> str:
        return self.namespace.apply(realm_body(self.name, annotations, **spec)).stdout

    def make_realm(self, annotations: dict[str, str] | None = None, **spec: Any) -> Realm:
        """A realm that is ready."""
        self.apply_realm(annotations, **spec)
        self.wait("Realm", "Ready")
        return self.realm()

    def wait(self, kind: str, condition: str, status: str = "True", *, name: str = "", **more: Any) -> dict[str, Any]:
        return self.namespace.wait_for_condition(kind, name or self.name, condition, status, **more)

    def realm(self) -> Realm:
        return self.realms.read_realm(self.name)

    def find_realm(self) -> Realm | None:
        return self.realms.find_realm(RealmId(self.name))

    def resource(self) -> dict[str, Any]:
        return self.namespace.read("Realm", self.name)
