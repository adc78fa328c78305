"""``kubectl headwater report``: a bundle for support, read from the cluster and redacted, with an index page.

What cannot be read is recorded as missing. Secrets are never requested.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from headwater.console import UndashedPath, count_text, yaml_text
from headwater.errors import HeadwaterError, NotFoundError, RefusedError
from headwater_operator.kube import KubeApi, resource_path
from headwater_operator.plugin.bundle_redaction import REDACTED, Redactor
from headwater_operator.plugin.cluster_session import LEASE, ClusterSession, cluster_options, realm_name_of
from headwater_operator.plugin.status_command import page_lines, realm_page, time_text

PART_OF = "app.kubernetes.io/part-of=headwater"
CRDS = ("realms.headwater.dev", "catalogs.headwater.dev")
_WORKLOADS = {
    "Deployment": "/apis/apps/v1",
    "Pod": "/api/v1",
    "PodDisruptionBudget": "/apis/policy/v1",
}
_POLICIES = "/apis/admissionregistration.k8s.io/v1"


@dataclass(slots=True)
class BundleContents:
    """Files of a bundle by name, as plain values or texts, before redaction.

    missing       what could not be read, each with the reason
    """

    files: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    realms: list[dict[str, Any]] = field(default_factory=list)
    catalogs: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)


def gather(api: KubeApi, *, namespace: str | None, home: str, log_lines: int) -> BundleContents:
    """Read all resources of Headwater in one namespace or in all (None), and those of operator and workers in any.

    home          the namespace to read if reading all is forbidden
    """
    return _Gathering(api, namespace, home, log_lines).everything()


@dataclass(slots=True)
class _Gathering:
    api: KubeApi
    namespace: str | None
    home: str
    log_lines: int
    bundle: BundleContents = field(default_factory=BundleContents)

    def everything(self) -> BundleContents:
        self.bundle.files["versions.yaml"] = {
            "plugin": version("headwater"),
            "server": self.tried("versions", lambda: self.api.get_resource("/version"), {}),
        }
        if self.namespace is None and not self._sees_everything():
            self.namespace = self.home
        self.bundle.realms = self._resources("Realm")
        self.bundle.catalogs = self._resources("Catalog")
        pods = self._workloads()
        self._events(pods)
        self._leases()
        self._definitions()
        for pod in pods:
            self._logs(pod)
        return self.bundle

    def _sees_everything(self) -> bool:
        try:
            self.api.list_resources(resource_path("Realm", None, None))
        except RefusedError as refused:
            self.bundle.missing["other namespaces"] = str(refused)
            return False
        except HeadwaterError:
            return True  # it is tried once more, and reported then
        return True

    def tried(self, what: str, read: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return read()
        except HeadwaterError as fault:
            self.bundle.missing[what] = str(fault)
            return otherwise

    def _list(self, what: str, path: str, **selectors: str) -> list[dict[str, Any]]:
        return list(self.tried(what, lambda: self.api.list_resources(path, **selectors), []))

    def _resources(self, kind: str) -> list[dict[str, Any]]:
        plural = f"{kind.lower()}s"
        resources = self._list(plural, resource_path(kind, self.namespace, None))
        for resource in resources:
            metadata = resource["metadata"]
            self.bundle.files[f"{plural}/{metadata['namespace']}/{metadata['name']}.yaml"] = _without_managers(resource)
        return resources

    def _workloads(self) -> list[dict[str, Any]]:
        pods: list[dict[str, Any]] = []
        for kind, root in _WORKLOADS.items():
            plural = f"{kind.lower()}s"
            listed = self._list(plural, f"{root}/{plural}", label_selector=PART_OF)
            self.bundle.files[f"workloads/{plural}.yaml"] = list(map(_without_managers, listed))
            pods = listed if kind == "Pod" else pods
        return pods

    def _events(self, pods: list[dict[str, Any]]) -> None:
        """The events about our resources and pods."""
        listed = self._list("events", resource_path("Event", self.namespace, None))
        uids = {thing["metadata"].get("uid") for thing in (*self.bundle.realms, *self.bundle.catalogs, *pods)}
        self.bundle.events = [event for event in listed if (event.get("involvedObject") or {}).get("uid") in uids]
        self.bundle.files["events.yaml"] = list(map(_without_managers, self.bundle.events))

    def _leases(self) -> None:
        leases = self._list("leases", resource_path("Lease", None, None), field_selector=f"metadata.name={LEASE}")
        self.bundle.files["leases.yaml"] = list(map(_without_managers, leases))

    def _definitions(self) -> None:
        for name in CRDS:
            path = resource_path("CustomResourceDefinition", None, name)
            if definition := self.tried(f"definition {name}", lambda: self.api.get_resource(path), None):  # noqa: B023
                self.bundle.files[f"definitions/{name}.yaml"] = _without_schemas(definition)
        for plural in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
            listed = self._list(plural, f"{_POLICIES}/{plural}", label_selector=PART_OF)
            self.bundle.files[f"definitions/{plural}.yaml"] = list(map(_without_managers, listed))

    def _logs(self, pod: Mapping[str, Any]) -> None:
        for container, is_former in _containers(pod):
            metadata = pod["metadata"]
            name = f"logs/{metadata['namespace']}/{metadata['name']}/{container}{'.former' if is_former else ''}.log"
            parameters = {"container": container, "tailLines": str(self.log_lines), "previous": str(is_former).lower()}
            path = resource_path("Pod", metadata["namespace"], metadata["name"], "log")
            try:
                self.bundle.files[name] = self.api.text(path, parameters)
            except NotFoundError:
                continue  # no such container has run
            except HeadwaterError as fault:
                self.bundle.missing[name] = str(fault)


def _containers(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Each container, and additionally the previous run of those that were restarted."""
    restarted = {one.get("name") for one in (pod.get("status") or {}).get("containerStatuses") or () if one.get("restartCount")}
    for container in (pod.get("spec") or {}).get("containers") or ():
        yield str(container["name"]), False
        if container["name"] in restarted:
            yield str(container["name"]), True


def _without_managers(resource: Mapping[str, Any]) -> dict[str, Any]:
    """The resource without managed fields, which are long and tell little."""
    metadata = {name: value for name, value in resource["metadata"].items() if name != "managedFields"}
    return {**resource, "metadata": metadata}


def _without_schemas(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The definition with each schema as a digest, which shows whether it is that of the release; without annotations, which may
    repeat it.
    """
    whole = _without_managers(definition)
    whole["metadata"].pop("annotations", None)
    versions = [{**one, "schema": _digest(one.get("schema"))} for one in (whole.get("spec") or {}).get("versions") or ()]
    return {**whole, "spec": {**whole["spec"], "versions": versions}}


def _digest(value: Any) -> str:
    return "blake2b " + hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()


INDEX = "index.md"
_WITHHELD = "This file was withheld: something in it was as secret as something elsewhere.\n"


def bundle_files(gathered: BundleContents, now: datetime) -> dict[str, str]:
    """The texts of the bundle by name, redacted; the index is the first."""
    redactor = Redactor()
    everything = {**gathered.files, "missing": gathered.missing}
    for value in everything.values():
        redactor.learn(value)
    pages = _pages(gathered, redactor, now)
    texts: dict[str, str] = {}
    for name, value in sorted(gathered.files.items()):
        cleaned = redactor.clean(value)
        texts[redactor.name(name)] = _log(redactor, value) if isinstance(value, str) else yaml_text(cleaned)
    missing = {redactor.name(what): redactor.text(why) for what, why in gathered.missing.items()}
    texts |= {redactor.name(name): redactor.text(text) for name, text in pages.items()}
    whole = {INDEX: _index(texts, pages, missing, redactor.count, now), **texts}
    return {name: _WITHHELD if redactor.has_secret(text) else text for name, text in whole.items()}


def archive(files: Mapping[str, str], folder: str, now: datetime) -> bytes:
    """A compressed archive with all files in one folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, text in files.items():
            content = text.encode()
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), int(now.timestamp()), 0o600
            tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def _pages(gathered: BundleContents, redactor: Redactor, now: datetime) -> dict[str, str]:
    """The output of `kubectl headwater status` for each realm, from redacted data."""
    pages = {}
    for realm in gathered.realms:
        namespace, name = realm["metadata"]["namespace"], realm["metadata"]["name"]
        catalogs = [c for c in gathered.catalogs if c["metadata"]["namespace"] == namespace and realm_name_of(c) == name]
        uids = {thing["metadata"].get("uid") for thing in (realm, *catalogs)}
        events = [event for event in gathered.events if (event.get("involvedObject") or {}).get("uid") in uids]
        page = realm_page(redactor.clean(realm), redactor.clean(catalogs), redactor.clean(events), now)
        pages[f"pages/{namespace}/{name}.txt"] = "\n".join(page_lines(page, now)) + "\n"
    return pages


def _log(redactor: Redactor, text: str) -> str:
    """Redact a log line by line: a line of JSON is parsed and cleaned as a value."""
    return "".join(f"{redactor.text(line)}\n" for line in redactor.text(text).splitlines())


def _index(texts: Mapping[str, str], pages: Mapping[str, str], missing: Mapping[str, str], count: int, now: datetime) -> str:
    lines = [
        "# Headwater: bundle for support",
        "",
        f"Made {time_text(now)} by `kubectl headwater report`.",
        f"Secrets were never read. What looked like a secret elsewhere is {REDACTED}: {count_text(count, 'place')}.",
        "",
        *_chapter("Realms at a glance", list(pages)),
        *_chapter("Files", [name for name in texts if name not in pages]),
        *_chapter("What could not be read", [f"{what}: {why}" for what, why in missing.items()]),
    ]
    return "\n".join(lines)


def _chapter(title: str, entries: Sequence[Any]) -> list[str]:
    return [f"## {title}", "", *(f"- {entry}" for entry in entries), ""] if entries else []


@click.command(name="report")
@click.option("-o", "--output", "file", type=UndashedPath(dir_okay=False), help="The file to write; a .tar.gz.")
@click.option("--only-namespace", is_flag=True, help="Only Realms and Catalogs of the namespace at hand; default: of all.")
@click.option(
    "--log-lines", type=click.IntRange(min=1), default=5000, show_default=True, help="Of each container, at most so many."
)
@cluster_options
@click.pass_obj
def report_command(session: ClusterSession, file: Path | None, only_namespace: bool, log_lines: int) -> None:
    """Write a bundle for support: resources, events, workloads and logs. Secrets are never read, and what looks like one is left out."""
    now = session.current_time()
    name = f"headwater-report-{now:%Y%m%dT%H%M%SZ}"
    target = file or Path(f"{name}.tar.gz")
    namespace = session.namespace if only_namespace else None
    files = bundle_files(gather(session.api, namespace=namespace, home=session.namespace, log_lines=log_lines), now)
    _write(target, archive(files, name, now))
    session.say(f"{target}: {count_text(len(files), 'file')}; begin with index.md, and look through it before you send it on")


def _write(target: Path, content: bytes) -> None:
    """Write a file for its owner only, and never over another file."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as there:
        raise RefusedError(f"{target} is there already, and is not written over") from there
    except OSError as wrong:
        raise RefusedError(f"{target} cannot be written: {wrong}") from wrong
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
    except OSError as wrong:
        target.unlink(missing_ok=True)
        raise RefusedError(f"{target} cannot be written: {wrong.strerror or wrong}") from wrong
