"""Which namespace a person means when none is named: that of the kubeconfig's context, as with kubectl."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

__all__ = ["DEFAULT_KUBECONFIG", "find_kubeconfig", "namespace_of"]

DEFAULT_KUBECONFIG = "~/.kube/config"
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def find_kubeconfig(named: str | None, environment: Mapping[str, str]) -> str | None:
    """The kubeconfig files to use, joined as in ``KUBECONFIG``; None in a pod that has none."""
    found = named or environment.get("KUBECONFIG") or DEFAULT_KUBECONFIG
    is_pod = bool(environment.get("KUBERNETES_SERVICE_HOST"))
    return None if is_pod and found == DEFAULT_KUBECONFIG and not Path(found).expanduser().exists() else found


def namespace_of(paths: str | None, context: str | None) -> str:
    """The namespace of a context, by default the current one; ``default`` where nothing says otherwise.

    paths         as `find_kubeconfig` gives them; None is this pod's own namespace
    """
    if paths is None:
        return _POD_NAMESPACE.read_text(encoding="utf-8").strip() if _POD_NAMESPACE.exists() else "default"
    files = list(_read(paths))
    # the first file that says something wins, as in kubectl
    chosen = context or next((str(file["current-context"]) for file in files if file.get("current-context")), "")
    entries = (entry for file in files for entry in file.get("contexts") or () if isinstance(entry, dict))
    found = next((entry.get("context") for entry in entries if entry.get("name") == chosen), None)
    return str((found or {}).get("namespace") or "default")


def _read(paths: str) -> Iterator[dict[str, Any]]:
    for path in paths.split(os.pathsep):
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8") if path else ""
        except OSError:
            continue  # kubectl passes over files that are not there, and the connection says what is wrong with the rest
        found = yaml.safe_load(text)
        if isinstance(found, dict):
            yield found
