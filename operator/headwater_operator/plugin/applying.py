"""What `kubectl apply -f FILE` would make of a resource, asked of the API server without changing anything."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from headwater.errors import MissingError, RefusedError
from headwater_operator.plugin.naming import Target
from headwater_operator.plugin.session import Session

__all__ = ["applied_spec", "read_manifest", "three_way_patch"]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SERVER_SIDE_MANAGER = "kubectl"


def read_manifest(file: str, target: Target, namespace: str) -> dict[str, Any]:
    """The document of the file that is about the target.

    raises        MissingError when none is; RefusedError for a file that cannot be read, or one about another namespace
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        documents = [document for document in yaml.safe_load_all(text) if isinstance(document, dict)]
    except (OSError, UnicodeDecodeError) as unreadable:
        raise RefusedError(f"{file} cannot be read: {unreadable}") from unreadable
    except yaml.YAMLError as wrong:
        raise RefusedError(f"{file} is no YAML: {wrong}") from wrong
    found = [document for document in documents if _is_about(document, target)]
    if not found:
        raise MissingError(f"{file} has no {target.kind} {target.name!r}")
    named = found[0]["metadata"].get("namespace", namespace)
    if named != namespace:
        raise RefusedError(f"{target} in {file} is of namespace {named!r}, and not {namespace!r}: name it with -n {named}")
    return found[0]


def applied_spec(session: Session, target: Target, live: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The spec that would stand there, with the server's defaults, after its validation.

    raises        RefusedError when the server would not take it
    """
    last = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    path = target.path(session.namespace)
    if last is None:
        body = {**manifest, "metadata": {**manifest["metadata"], "namespace": session.namespace}}
        answer = session.api.patch(path, body, kind="apply", manager=SERVER_SIDE_MANAGER, dry_run=True)
    else:
        patch = three_way_patch(json.loads(last).get("spec", {}), manifest.get("spec") or {}, live.get("spec") or {})
        answer = session.api.patch(path, {"spec": patch}, kind="merge", manager=SERVER_SIDE_MANAGER, dry_run=True)
    return dict(answer.get("spec") or {})


def three_way_patch(last: Any, wished: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch of `kubectl apply`: what is wished, and nothing (null) where the last file had a field that this one lacks."""
    former = last if isinstance(last, Mapping) else {}
    patch: dict[str, Any] = {name: None for name in former if name not in wished and name in live}
    for name, value in wished.items():
        there = live.get(name)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            if inner := three_way_patch(former.get(name), value, there):
                patch[name] = inner
        elif name not in live or there != value:
            patch[name] = value
    return patch


def _is_about(document: Mapping[str, Any], target: Target) -> bool:
    metadata = document.get("metadata")
    named = metadata.get("name") if isinstance(metadata, Mapping) else None
    return str(document.get("apiVersion", "")).startswith("headwater.dev/") and (document.get("kind"), named) == (
        target.kind,
        target.name,
    )
