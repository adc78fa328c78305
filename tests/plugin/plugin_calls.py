"""How the tests call `kubectl headwater`, and how they do what otherwise an operator does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner, Result
from plugin_bodies import FINALIZER, catalog_body, catalog_status, realm_body, realm_status

from headwater_operator.plugin import main
from kubetest import Namespace
from kubetest.waits import wait_for

__all__ = ["Lakes", "Plugin"]

Body = dict[str, Any]


@dataclass(frozen=True)
class Plugin:
    """Calls the plugin in this process, in one namespace."""

    namespace: Namespace

    def __call__(self, verb: str, *arguments: object) -> Result:
        cluster = self.namespace.cluster
        texts = ["-n", self.namespace.name, "--kubeconfig", str(cluster.kubeconfig), verb, *map(str, arguments)]
        return CliRunner().invoke(main, texts, env=cluster.environment, prog_name="kubectl headwater")

    def ok(self, verb: str, *arguments: object) -> str:
        """What it prints where it ends with 0."""
        result = self(verb, *arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def data(self, verb: str, *arguments: object) -> Any:
        """The result as JSON, whatever the exit code."""
        return json.loads(self(verb, *arguments, "-o", "json").stdout)

    def refused(self, code: int, verb: str, *arguments: object) -> str:
        """What it says on standard error where it ends with this code."""
        result = self(verb, *arguments)
        assert result.exit_code == code, result.output
        return result.stderr


@dataclass(frozen=True)
class Lakes:
    """A namespace, and what an operator would do in it."""

    namespace: Namespace

    @property
    def name(self) -> str:
        return self.namespace.name

    def make_realm(self, name: str = "acme", *, status: Body | None = None, held: bool = False, **spec: Any) -> Body:
        """A Realm with a status; ``held``: with the operator's finalizer."""
        return self._make("Realm", realm_body(name, **spec), realm_status(name) if status is None else status, held)

    def make_catalog(self, name: str = "lake", *, status: Body | None = None, held: bool = False, **spec: Any) -> Body:
        return self._make("Catalog", catalog_body(name, **spec), catalog_status() if status is None else status, held)

    def read(self, kind: str = "Realm", name: str = "acme") -> Body:
        return self.namespace.read(kind, name)

    def set_status(self, status: Body, kind: str = "Realm", name: str = "acme") -> None:
        """Replace fields of the status, as the operator does."""
        body = {"apiVersion": "headwater.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "status": status}
        path = self.namespace.path(kind, name) + "/status"
        self.namespace.cluster.api.patch_resource(path, body, kind="apply")

    def let_go(self, kind: str = "Realm", name: str = "acme") -> None:
        """Take the finalizer off."""
        path = self.namespace.path(kind, name)
        self.namespace.cluster.api.patch_resource(path, {"metadata": {"finalizers": None}}, kind="merge")

    def make_lease(self, holder: str, *, seconds: int = 1) -> None:
        spec = {"holderIdentity": holder or None, "leaseDurationSeconds": seconds, "renewTime": "2026-11-22T12:00:00.000000Z"}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "headwater-operator"},
            "spec": spec,
        }
        self.namespace.cluster.api.create_resource(self.namespace.path("Lease"), body)

    @contextmanager
    def watched(self, act: Callable[[Body], bool], kind: str = "Realm", name: str = "acme") -> Iterator[None]:
        """Meanwhile somebody looks at the resource again and again, until ``act`` says that it has done its part."""
        ended = threading.Event()

        def look() -> bool:
            found = self.namespace.find(kind, name)
            return ended.is_set() or found is None or act(found)

        thread = threading.Thread(target=wait_for, args=(look,), kwargs={"seconds": 30})  # a failure in it fails the test
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _make(self, kind: str, body: Body, status: Body, held: bool) -> Body:
        if held:
            body["metadata"]["finalizers"] = [FINALIZER]
        self.namespace.apply(body)
        if status:
            self.set_status(status, kind, body["metadata"]["name"])
        return self.read(kind, body["metadata"]["name"])
