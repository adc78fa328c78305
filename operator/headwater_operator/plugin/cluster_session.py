"""The shared session of the plugin's commands: the cluster, the namespace, the target resource, printing and waiting."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
import yaml

from headwater.console import json_text, yaml_text
from headwater.errors import NotFoundError, RefusedError
from headwater_operator.kube import KubeApi, connect, kubeconfig_connection, resource_path

DEFAULT_KUBECONFIG = "~/.kube/config"
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def find_kubeconfig(named: str | None, environment: Mapping[str, str]) -> str | None:
    """The kubeconfig files to use, joined as in ``KUBECONFIG``; None in a pod that has none."""
    found = named or environment.get("KUBECONFIG") or DEFAULT_KUBECONFIG
    is_pod = bool(environment.get("KUBERNETES_SERVICE_HOST"))
    return None if is_pod and found == DEFAULT_KUBECONFIG and not Path(found).expanduser().exists() else found


def namespace_of(paths: str | None, context: str | None) -> str:
    """The namespace of a context, by default the current one; ``default`` where none is set.

    paths         as `find_kubeconfig` gives them; None is this pod's own namespace
    """
    if paths is None:
        return _POD_NAMESPACE.read_text(encoding="utf-8").strip() if _POD_NAMESPACE.exists() else "default"
    files = list(_read(paths))
    # the first file that sets it wins, as in kubectl
    chosen = context or next((str(file["current-context"]) for file in files if file.get("current-context")), "")
    entries = (entry for file in files for entry in file.get("contexts") or () if isinstance(entry, dict))
    found = next((entry.get("context") for entry in entries if entry.get("name") == chosen), None)
    return str((found or {}).get("namespace") or "default")


def _read(paths: str) -> Iterator[dict[str, Any]]:
    for path in paths.split(os.pathsep):
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8") if path else ""
        except OSError:
            continue  # kubectl skips missing files, and the connection reports what is wrong with the others
        found = yaml.safe_load(text)
        if isinstance(found, dict):
            yield found


FINALIZER = "headwater.dev/operator"
LEASE = "headwater-operator"
FIELD_MANAGER = "kubectl-headwater"

# These names repeat those of `headwater.reconcile`: importing that package would take as long as everything else.
CONFIRM_PURGE = "headwater.dev/confirm-purge"
PLAN = "headwater.dev/plan"
RUN_NOW = "headwater.dev/run-now"

_KINDS: Mapping[str, Literal["Realm", "Catalog"]] = {
    **dict.fromkeys(("realm", "realms", "rlm"), "Realm"),
    **dict.fromkeys(("catalog", "catalogs", "hcat"), "Catalog"),
}


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """One resource in the selected namespace."""

    kind: Literal["Realm", "Catalog"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"

    def path(self, namespace: str) -> str:
        return resource_path(self.kind, namespace, self.name)


class _TargetType(click.ParamType[CommandTarget]):
    """``NAME`` or ``realm/NAME`` is a Realm; ``catalog/NAME`` is a Catalog, where that is asked for."""

    name = "target"

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> CommandTarget:
        if isinstance(value, CommandTarget):
            return value
        word, sign, name = str(value).partition("/")
        if not sign:
            word, name = "realm", word
        kind = _KINDS.get(word.lower().removesuffix(".headwater.dev"))
        if kind not in self.kinds or not name or "/" in name:
            forms = " or ".join(["NAME", *(f"{kind.lower()}/NAME" for kind in self.kinds)])
            self.fail(f"{value!r} is not of the form {forms}", param, ctx)
        return CommandTarget(kind, name)


TARGET = _TargetType("Realm", "Catalog")
REALM = _TargetType("Realm")


def target_realm_id(realm: Mapping[str, Any]) -> str:
    """The id of a Realm resource: as the operator reported it, or as declared, or its name."""
    return str(status_of(realm).get("realmId") or realm.get("spec", {}).get("realmId") or realm["metadata"]["name"])


def realm_name_of(catalog: Mapping[str, Any]) -> str:
    """The name of the Realm resource that a Catalog belongs to."""
    return str(catalog.get("spec", {}).get("realm", ""))


def status_of(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    found = resource.get("status")
    return found if isinstance(found, Mapping) else {}


T = TypeVar("T")
OUTPUTS = ("table", "json", "yaml")
_PAUSE_SECONDS = 0.5


class ClusterSession:
    """Set by options before and after the command's name; the cluster is connected when it is first needed."""

    def __init__(self) -> None:
        self.context: str | None = None
        self.kubeconfig: str | None = None
        self.named_namespace: str | None = None
        self.output = "table"
        self.debug = False

    @cached_property
    def api(self) -> KubeApi:
        paths = find_kubeconfig(self.kubeconfig, os.environ)
        return KubeApi(connect(self.context) if paths is None else kubeconfig_connection(paths, self.context))

    @cached_property
    def namespace(self) -> str:
        return self.named_namespace or namespace_of(find_kubeconfig(self.kubeconfig, os.environ), self.context)

    def read_resource(self, target: CommandTarget) -> dict[str, Any]:
        """Read the target resource.

        raises        NotFoundError, which names the Realm of that realm id where there is one
        """
        found = self.api.find_resource(target.path(self.namespace))
        if found is not None:
            return found
        raise NotFoundError(f"there is no {target.kind} {target.name!r} in namespace {self.namespace!r}{self._near(target)}")

    def show(self, data: Any, lines: Callable[[], Sequence[str]]) -> None:
        """Print a result in the requested format: plain data, or lines for people."""
        if self.output == "json":
            click.echo(json_text(data), nl=False)
        elif self.output == "yaml":
            click.echo(yaml_text(data), nl=False)
        else:
            click.echo("\n".join(lines()))

    def say(self, line: str) -> None:
        """Print a remark apart from the result, which must stay readable for programs."""
        click.echo(line, err=self.output != "table")

    def current_time(self) -> datetime:
        return datetime.now(UTC)

    def wait_for(self, look: Callable[[], T | None], seconds: float) -> T | None:
        """Poll ``look`` until it returns something; None after the time-out."""
        end = time.monotonic() + seconds
        while True:
            found = look()
            if found is not None or time.monotonic() >= end:
                return found
            time.sleep(_PAUSE_SECONDS)

    def confirm_word(self, word: str, question: str, advice: str) -> None:
        """Ask a person to type a word.

        raises        RefusedError for another word, or when nobody is there to type
        """
        if not sys.stdin.isatty():
            raise RefusedError(f"nothing was done: {advice}")
        if click.prompt(question, default="", show_default=False, err=True) != word:
            raise RefusedError(f"nothing was done: that is not {word!r}")

    def _near(self, target: CommandTarget) -> str:
        if target.kind != "Realm":
            return ""
        found = self.api.list_resources(resource_path("Realm", self.namespace, None))
        names = [realm["metadata"]["name"] for realm in found if target_realm_id(realm) == target.name]
        return f"; the realm of that id is that of the Realm {names[0]!r}" if names else ""
