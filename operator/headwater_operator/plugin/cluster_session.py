"""What the plugin's commands share: the session with its cluster and namespace, the target resource, options and waiting."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
import yaml

from headwater.console import DURATION, ConsoleSession, ParsedType, option_group, session_option
from headwater.errors import NotFoundError, RefusedError
from headwater_operator.kube import KubeApi, connect_cluster, kubeconfig_connection, resource_path

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
DEFAULT_KUBECONFIG = "~/.kube/config"
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_PAUSE_SECONDS = 0.5


def find_kubeconfig(named: str | None, environment: Mapping[str, str]) -> str | None:
    """The kubeconfig files to use, joined as in ``KUBECONFIG``; None in a pod that has none."""
    paths = named or environment.get("KUBECONFIG") or DEFAULT_KUBECONFIG
    is_pod = bool(environment.get("KUBERNETES_SERVICE_HOST"))
    return None if is_pod and paths == DEFAULT_KUBECONFIG and not Path(paths).expanduser().exists() else paths


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
    settings = next((entry.get("context") for entry in entries if entry.get("name") == chosen), None)
    return str((settings or {}).get("namespace") or "default")


def _read(paths: str) -> Iterator[dict[str, Any]]:
    for path in paths.split(os.pathsep):
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8") if path else ""
        except OSError:
            continue  # kubectl skips missing files, and the connection reports what is wrong with the others
        document = yaml.safe_load(text)
        if isinstance(document, dict):
            yield document


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


def _target(text: str, kinds: Sequence[str]) -> CommandTarget:
    """``NAME`` or ``realm/NAME`` is a Realm; ``catalog/NAME`` is a Catalog, where that is asked for."""
    word, sign, name = text.partition("/")
    if not sign:
        word, name = "realm", word
    kind = _KINDS.get(word.lower().removesuffix(".headwater.dev"))
    if kind is None or kind not in kinds or not name or "/" in name:
        forms = " or ".join(["NAME", *(f"{kind.lower()}/NAME" for kind in kinds)])
        raise RefusedError(f"{text!r} is not of the form {forms}")
    return CommandTarget(kind, name)


TARGET = ParsedType("target", partial(_target, kinds=["Realm", "Catalog"]))
REALM = ParsedType("target", partial(_target, kinds=["Realm"]))


def target_realm_id(realm: Mapping[str, Any]) -> str:
    """The id of a Realm resource: as the operator reported it, or as declared, or its name."""
    return str(status_of(realm).get("realmId") or realm.get("spec", {}).get("realmId") or realm["metadata"]["name"])


def realm_name_of(catalog: Mapping[str, Any]) -> str:
    """The name of the Realm resource that a Catalog belongs to."""
    return str(catalog.get("spec", {}).get("realm", ""))


def status_of(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    status = resource.get("status")
    return status if isinstance(status, Mapping) else {}


class ClusterSession(ConsoleSession):
    """One call of the plugin. The cluster is connected when it is first needed."""

    context: str | None = None
    kubeconfig: str | None = None
    named_namespace: str | None = None
    _news = ""

    @cached_property
    def api(self) -> KubeApi:
        paths = find_kubeconfig(self.kubeconfig, os.environ)
        return KubeApi(connect_cluster(self.context) if paths is None else kubeconfig_connection(paths, self.context))

    @cached_property
    def namespace(self) -> str:
        return self.named_namespace or namespace_of(find_kubeconfig(self.kubeconfig, os.environ), self.context)

    def read_resource(self, target: CommandTarget) -> dict[str, Any]:
        """Read the target resource.

        raises        NotFoundError, which names the Realm of that realm id where there is one
        """
        resource = self.api.find_resource(target.path(self.namespace))
        if resource is not None:
            return resource
        raise NotFoundError(f"there is no {target.kind} {target.name!r} in namespace {self.namespace!r}{self._near(target)}")

    def catalogs_of(self, realm: str) -> list[dict[str, Any]]:
        """The Catalogs that name this Realm resource."""
        catalogs = self.api.list_resources(resource_path("Catalog", self.namespace, None))
        return [catalog for catalog in catalogs if realm_name_of(catalog) == realm]

    def merge_patch(self, target: CommandTarget, patch: Mapping[str, Any]) -> None:
        self.api.patch_resource(target.path(self.namespace), patch, kind="merge", manager=FIELD_MANAGER)

    def say_news(self, line: str) -> None:
        """Say a line, unless it is the news that was said last."""
        if line != self._news:
            self._news = line
            self.say(line)

    def current_time(self) -> datetime:
        return datetime.now(UTC)

    def wait_for(self, look: Callable[[], T | None], seconds: float) -> T | None:
        """Poll ``look`` until it returns something; None after the time-out."""
        end = time.monotonic() + seconds
        while True:
            result = look()
            if result is not None or time.monotonic() >= end:
                return result
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
        realms = self.api.list_resources(resource_path("Realm", self.namespace, None))
        names = [realm["metadata"]["name"] for realm in realms if target_realm_id(realm) == target.name]
        return f"; the realm of that id is that of the Realm {names[0]!r}" if names else ""


cluster_options = option_group(
    session_option("--context", field="context", metavar="NAME", help="Of the kubeconfig; default: the current one."),
    session_option("--kubeconfig", field="kubeconfig", metavar="FILE", help="Default: $KUBECONFIG, or ~/.kube/config."),
    session_option("-n", "--namespace", field="named_namespace", metavar="NAME", help="Default: that of the context."),
)
"""As kubectl has them: on the root and on each command."""


def timeout_option(default: str, about: str) -> Callable[[F], F]:
    return click.option("--timeout", type=DURATION, default=default, show_default=True, metavar="DURATION", help=about)
