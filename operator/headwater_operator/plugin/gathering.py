"""What belongs into a bundle for support, read from the cluster. What cannot be read is noted. Secrets are never asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from headwater.errors import HeadwaterError, MissingError, RefusedError
from headwater_operator.kube import KubeApi, resource_path
from headwater_operator.plugin.naming import LEASE

__all__ = ["Gathered", "gather"]

PART_OF = "app.kubernetes.io/part-of=headwater"
CRDS = ("realms.headwater.dev", "catalogs.headwater.dev")
_WORKLOADS = {
    "Deployment": "/apis/apps/v1",
    "Pod": "/api/v1",
    "PodDisruptionBudget": "/apis/policy/v1",
}
_POLICIES = "/apis/admissionregistration.k8s.io/v1"


@dataclass(slots=True)
class Gathered:
    """Files of a bundle by name, as plain values or texts, before anything is taken out of them.

    missing       what could not be read, each with the reason
    """

    files: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    realms: list[dict[str, Any]] = field(default_factory=list)
    catalogs: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)


def gather(api: KubeApi, *, namespace: str | None, home: str, log_lines: int) -> Gathered:
    """Everything about Headwater in a namespace, or in all of them (None), and the operator's and workers' parts wherever they are.

    home          the namespace to make do with, for whoever may not look into all of them
    """
    return _Gathering(api, namespace, home, log_lines).everything()


@dataclass(slots=True)
class _Gathering:
    api: KubeApi
    namespace: str | None
    home: str
    log_lines: int
    found: Gathered = field(default_factory=Gathered)

    def everything(self) -> Gathered:
        self.found.files["versions.yaml"] = {"plugin": version("headwater"), "server": self.tried("versions", self._server, {})}
        if self.namespace is None and not self._sees_everything():
            self.namespace = self.home
        self.found.realms = self._resources("Realm")
        self.found.catalogs = self._resources("Catalog")
        pods = self._workloads()
        self._events(pods)
        self._leases()
        self._definitions()
        for pod in pods:
            self._logs(pod)
        return self.found

    def _sees_everything(self) -> bool:
        try:
            self.api.list(resource_path("Realm", None, None))
        except RefusedError as refused:
            self.found.missing["other namespaces"] = str(refused)
            return False
        except HeadwaterError:
            return True  # it is tried once more, and told then
        return True

    def tried(self, what: str, read: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return read()
        except HeadwaterError as fault:
            self.found.missing[what] = str(fault)
            return otherwise

    def _server(self) -> dict[str, Any]:
        return self.api.get("/version")

    def _resources(self, kind: str) -> list[dict[str, Any]]:
        plural = f"{kind.lower()}s"
        found: list[dict[str, Any]] = self.tried(plural, lambda: self.api.list(resource_path(kind, self.namespace, None)), [])
        for resource in found:
            metadata = resource["metadata"]
            self.found.files[f"{plural}/{metadata['namespace']}/{metadata['name']}.yaml"] = _without_managers(resource)
        return found

    def _workloads(self) -> list[dict[str, Any]]:
        pods: list[dict[str, Any]] = []
        for kind, root in _WORKLOADS.items():
            plural = f"{kind.lower()}s"
            listed: list[dict[str, Any]] = self.tried(plural, lambda: self._labelled(f"{root}/{plural}"), [])  # noqa: B023
            self.found.files[f"workloads/{plural}.yaml"] = list(map(_without_managers, listed))
            pods = listed if kind == "Pod" else pods
        return pods

    def _labelled(self, path: str) -> list[dict[str, Any]]:
        return self.api.list(path, label_selector=PART_OF)

    def _events(self, pods: list[dict[str, Any]]) -> None:
        """Those about our resources and pods; others are nobody's business."""
        listed: list[dict[str, Any]] = self.tried(
            "events", lambda: self.api.list(resource_path("Event", self.namespace, None)), []
        )
        uids = {thing["metadata"].get("uid") for thing in (*self.found.realms, *self.found.catalogs, *pods)}
        self.found.events = [event for event in listed if (event.get("involvedObject") or {}).get("uid") in uids]
        self.found.files["events.yaml"] = list(map(_without_managers, self.found.events))

    def _leases(self) -> None:
        read = lambda: self.api.list(resource_path("Lease", None, None), field_selector=f"metadata.name={LEASE}")  # noqa: E731
        self.found.files["leases.yaml"] = list(map(_without_managers, self.tried("leases", read, [])))

    def _definitions(self) -> None:
        for name in CRDS:
            path = resource_path("CustomResourceDefinition", None, name)
            if found := self.tried(f"definition {name}", lambda: self.api.get(path), None):  # noqa: B023
                self.found.files[f"definitions/{name}.yaml"] = _without_schemas(found)
        for plural in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
            listed = self.tried(plural, lambda: self._labelled(f"{_POLICIES}/{plural}"), [])  # noqa: B023
            self.found.files[f"definitions/{plural}.yaml"] = list(map(_without_managers, listed))

    def _logs(self, pod: Mapping[str, Any]) -> None:
        for container, is_former in _containers(pod):
            metadata = pod["metadata"]
            name = f"logs/{metadata['namespace']}/{metadata['name']}/{container}{'.former' if is_former else ''}.log"
            parameters = {"container": container, "tailLines": str(self.log_lines), "previous": str(is_former).lower()}
            path = resource_path("Pod", metadata["namespace"], metadata["name"], "log")
            try:
                self.found.files[name] = self.api.text(path, parameters)
            except MissingError:
                continue  # no such container has run
            except HeadwaterError as fault:
                self.found.missing[name] = str(fault)


def _containers(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Each container, and once more those that were restarted, as what ran before."""
    restarted = {one.get("name") for one in (pod.get("status") or {}).get("containerStatuses") or () if one.get("restartCount")}
    for container in (pod.get("spec") or {}).get("containers") or ():
        yield str(container["name"]), False
        if container["name"] in restarted:
            yield str(container["name"]), True


def _without_managers(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Without the list of who wrote which field, which is long and tells little."""
    metadata = {name: value for name, value in resource["metadata"].items() if name != "managedFields"}
    return {**resource, "metadata": metadata}


def _without_schemas(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Each schema as a digest, which tells whether it is the one of the release; and without annotations, which may repeat it."""
    whole = _without_managers(definition)
    whole["metadata"].pop("annotations", None)
    versions = [{**one, "schema": _digest(one.get("schema"))} for one in (whole.get("spec") or {}).get("versions") or ()]
    return {**whole, "spec": {**whole["spec"], "versions": versions}}


def _digest(value: Any) -> str:
    return "blake2b " + hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()
