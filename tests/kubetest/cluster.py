"""A cluster as a test sees it: an API server with our resources known, the real kubectl, and namespaces of one's own."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import urllib3
import yaml

from headwater_operator.kube import KubeApi, KubeConnection, kubeconfig_connection
from kubetest.assets import ASSETS, start_assets
from kubetest.emulated import start_emulated
from kubetest.processes import clean_environment
from kubetest.recorded_shapes import assert_recorded
from kubetest.waits import wait_for

__all__ = ["Cluster", "Namespace", "PersonConnection", "program", "start_cluster"]

ROOT = Path(__file__).parents[2]
POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
Completed = subprocess.CompletedProcess[str]
Body = dict[str, Any]


class Server(Protocol):
    """What is known of an API server: how to reach it, and whether it can be told to fail (``control`` is then its URL).

    has_controllers     deleted namespaces go, and what belonged to what is gone
    """

    @property
    def kubeconfig(self) -> Path: ...

    @property
    def control(self) -> str | None: ...

    @property
    def has_controllers(self) -> bool: ...

    def stop(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


@dataclass(frozen=True)
class PersonConnection:
    """A connection that does not pass for one of Headwater's programs."""

    connection: KubeConnection

    @property
    def host(self) -> str:
        return self.connection.host

    def pool(self) -> urllib3.PoolManager:
        return self.connection.pool()

    def headers(self) -> dict[str, str]:
        return self.connection.headers() | {"User-Agent": "person"}

    def renew(self, refused: Mapping[str, str]) -> None:
        self.connection.renew({name: value for name, value in refused.items() if name != "User-Agent"})

    def close(self) -> None:
        self.connection.close()


@dataclass
class Cluster:
    """An API server, and kubectl to talk to it.

    kubectl_program   the one of KUBEBUILDER_ASSETS, or the one that the set-up unpacked, or the one of the PATH
    """

    server: Server
    folder: Path
    kubectl_program: str
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def kubeconfig(self) -> Path:
        return self.server.kubeconfig

    @property
    def url(self) -> str:
        config = yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8"))
        return str(config["clusters"][0]["cluster"]["server"])

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to reach this cluster, and no other one."""
        return clean_environment() | {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.folder / "kubectl-cache")}

    @cached_property
    def connection(self) -> KubeConnection:
        """Shared by all of this process that talk to the cluster."""
        return kubeconfig_connection(str(self.kubeconfig))

    @cached_property
    def api(self) -> KubeApi:
        """What a test itself asks, as a person does."""
        return KubeApi(PersonConnection(self.connection))  # type: ignore[arg-type]  # it does what a connection does

    def writes(self) -> dict[str, int]:
        """What the API server was asked to write and did, by verb and resource: ``patch realms/status``. Not known of a real one."""
        assert self.server.control is not None, "a real API server does not count"
        with urllib.request.urlopen(f"{self.server.control}/_control/counts", timeout=30) as answer:
            counted: dict[str, int] = json.load(answer)["writes"]
        return counted

    def kubectl(self, *arguments: object, check: bool = True, text: str | None = None, seconds: float = 60) -> Completed:
        """Run kubectl; ``text`` is its standard input. With ``check``, anything but exit code 0 fails the test with what it said."""
        command = [self.kubectl_program, *map(str, arguments)]
        done = subprocess.run(
            command, env=self.environment, input=text, capture_output=True, text=True, timeout=seconds, check=False
        )
        assert not check or done.returncode == 0, f"$ kubectl {' '.join(command[1:])}\n{done.stdout}{done.stderr}"
        return done

    def start_kubectl(self, *arguments: object) -> subprocess.Popen[str]:
        """kubectl in the background, for what takes its time."""
        command = [self.kubectl_program, *map(str, arguments)]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def apply(self, *bodies: Body | str) -> Completed:
        """kubectl apply of plain values or of YAML."""
        return self.kubectl("apply", "-f", "-", text=as_yaml(bodies))

    @contextmanager
    def is_silent(self) -> Iterator[None]:
        """The API server accepts connections and does not answer."""
        self.server.pause()
        try:
            yield
        finally:
            self.server.resume()

    def make_namespace(self, stem: str = "test") -> Namespace:
        name = f"{stem}-{next(self.numbers)}"
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return Namespace(self, name)


@dataclass(frozen=True)
class Namespace:
    """A namespace of a cluster: kubectl talks about what is in it."""

    cluster: Cluster
    name: str

    def kubectl(self, *arguments: object, check: bool = True, text: str | None = None, seconds: float = 60) -> Completed:
        return self.cluster.kubectl("-n", self.name, *arguments, check=check, text=text, seconds=seconds)

    def start_kubectl(self, *arguments: object) -> subprocess.Popen[str]:
        return self.cluster.start_kubectl("-n", self.name, *arguments)

    def apply(self, *bodies: Body | str, check: bool = True) -> Completed:
        return self.kubectl("apply", "-f", "-", text=as_yaml(bodies), check=check)

    def path(self, kind: str, name: str = "") -> str:
        """Of a Realm, Catalog, Secret, Event or Lease; without a name, of all of them in this namespace."""
        group = {
            "Realm": "/apis/headwater.dev/v1alpha1",
            "Catalog": "/apis/headwater.dev/v1alpha1",
            "Lease": "/apis/coordination.k8s.io/v1",
        }.get(kind, "/api/v1")
        return f"{group}/namespaces/{self.name}/{kind.lower()}s" + (f"/{name}" if name else "")

    def find(self, kind: str, name: str) -> Body | None:
        found: Body | None = self.cluster.api.find_resource(self.path(kind, name))
        return found

    def read(self, kind: str, name: str) -> Body:
        found = self.find(kind, name)
        assert found is not None, f"there is no {kind} {name} in {self.name}"
        return found

    def condition(self, kind: str, name: str, condition: str) -> Body:
        """A condition of a resource; an empty one where it is not there (yet)."""
        found = self.find(kind, name) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == condition), {})

    def wait_for_condition(
        self, kind: str, name: str, condition: str, status: str = "True", *, reason: str | None = None, seconds: float = 120
    ) -> Body:
        """The condition, once it has this status (and reason) for what the resource says now."""

        def look() -> Body | None:
            found = self.condition(kind, name, condition)
            if found.get("status") != status or reason not in (None, found.get("reason")):
                return None
            body = self.read(kind, name)
            return found if body.get("status", {}).get("observedGeneration") == body["metadata"]["generation"] else None

        found = wait_for(look, seconds=seconds, why=lambda: json.dumps(self.find(kind, name), indent=1))
        assert found is not None
        return found

    def wait_until(self, kind: str, name: str, is_so: Callable[[Body], object], *, seconds: float = 30) -> Body:
        """The resource, once ``is_so`` says that it is as wanted."""

        def look() -> Body | None:
            found = self.find(kind, name)
            return found if found is not None and is_so(found) else None

        found = wait_for(look, seconds=seconds, why=lambda: json.dumps(self.find(kind, name), indent=1))
        assert found is not None
        return found

    def wait_until_gone(self, kind: str, name: str, *, seconds: float = 30) -> None:
        wait_for(
            lambda: self.find(kind, name) is None, seconds=seconds, why=lambda: json.dumps(self.find(kind, name), indent=1)
        )

    def events(self, name: str, *, kind: str = "Realm") -> list[tuple[str, str]]:
        """Reasons and messages of the Events about a resource, oldest first."""
        found = self.cluster.api.list_resources(self.path("Event"))
        ours = [one for one in found if (one["involvedObject"]["kind"], one["involvedObject"]["name"]) == (kind, name)]
        return [
            (one["reason"], one["message"]) for one in sorted(ours, key=lambda one: int(one["metadata"]["resourceVersion"]))
        ]


@contextmanager
def start_cluster(folder: Path, *, is_bare: bool = False, with_controllers: bool = True) -> Iterator[Cluster]:
    """An API server of one's own, with the CRDs and the admission policy of the chart in force, or a bare one.

    In the end everything that Headwater's programs asked of it has to be of a shape that a real server was recorded to take.
    With KUBEBUILDER_ASSETS it is the real kube-apiserver of that folder, on an etcd; else the small one beside these tests.
    A real one has controllers only where the folder has a kube-controller-manager: ask ``server.has_controllers``.
    """
    assets = os.environ.get(ASSETS)
    start = partial(start_assets, Path(assets)) if assets else start_emulated
    server: Server = start(folder, with_controllers=with_controllers)
    try:
        cluster = Cluster(server, folder, str(Path(assets) / "kubectl") if assets else program("kubectl"))
        if not is_bare:
            install(cluster)
        yield cluster
        if "connection" in vars(cluster):
            cluster.connection.close()
        assert_recorded(server.control)
    finally:
        server.stop()


def install(cluster: Cluster) -> None:
    """What `helm install` gives a cluster before the first resource is made; applied by kubectl, as a person would do it."""
    crds = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted((ROOT / "crds").glob("*.yaml"))]
    cluster.apply(*crds, *chart_resources(POLICIES))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *(f"crd/{crd['metadata']['name']}" for crd in crds))


def chart_resources(kinds: Iterable[str]) -> list[Body]:
    """What the chart renders of these kinds, with the values that most start with."""
    chart = ROOT / "charts" / "headwater"
    values = str(chart / "ci" / "default-values.yaml")
    rendered = subprocess.run(
        [program("helm"), "template", "headwater", str(chart), "--namespace", "headwater", "--values", values],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert rendered.returncode == 0, rendered.stderr
    bodies = [body for body in yaml.safe_load_all(rendered.stdout) if body]
    return [body for body in bodies if body["kind"] in set(kinds)]


def as_yaml(bodies: Iterable[Mapping[str, Any] | str]) -> str:
    return "\n---\n".join(body if isinstance(body, str) else json.dumps(body) for body in bodies)


def program(name: str) -> str:
    """kubectl or helm as the set-up unpacked it, or from the PATH."""
    unpacked = ROOT / ".tools" / name
    found = str(unpacked) if unpacked.exists() else shutil.which(name)
    assert found, f"{name} is missing: `scripts/setup.sh kubectl` unpacks it into .tools"
    return found
