"""What is served, as clients find it out: group by group, or all at once."""

from __future__ import annotations

from typing import Any

from kubeapi.failures import NotServed
from kubeapi.kinds import Kind, Kinds

__all__ = ["AGGREGATED", "VERSION", "aggregated", "group", "groups", "resources"]

Body = dict[str, Any]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SUBRESOURCE_VERBS = {"finalize": ["update"], "log": ["get"], "status": ["get", "patch", "update"]}

VERSION: Body = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.27.3",
    "compiler": "gc",
    "platform": "linux/amd64",
}


def groups(kinds: Kinds) -> Body:
    found = [_group(name, versions) for name, versions in kinds.groups().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def group(kinds: Kinds, name: str) -> Body:
    versions = kinds.groups().get(name)
    if not versions or not name:
        raise NotServed(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resources(kinds: Kinds, group_name: str, version: str) -> Body:
    served = kinds.served(group_name, version)
    if not served:
        raise NotServed(f"{group_name}/{version}")
    listed = [described for kind in served for described in _resources(kind)]
    head: Body = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group_name else {})
    return head | {"groupVersion": served[0].api_version, "resources": listed}


def aggregated(kinds: Kinds, *, core: bool) -> Body:
    items = []
    for name, versions in kinds.groups().items():
        if (name == "") != core:
            continue
        listed = [
            {
                "version": version,
                "resources": [_discovered(kind) for kind in kinds.served(name, version)],
                "freshness": "Current",
            }
            for version in versions
        ]
        items.append({"metadata": {"name": name} if name else {}, "versions": listed})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _group(name: str, versions: list[str]) -> Body:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(kind: Kind) -> list[Body]:
    main: Body = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.is_namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    main |= {"shortNames": list(kind.short_names)} if kind.short_names else {}
    main |= {"categories": list(kind.categories)} if kind.categories else {}
    main |= {"storageVersionHash": kind.storage_hash} if kind.is_kept else {}
    return [main, *(_subresource(kind, name) for name in kind.subresources)]


def _subresource(kind: Kind, name: str) -> Body:
    return {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.is_namespaced,
        "kind": kind.kind,
        "verbs": _SUBRESOURCE_VERBS[name],
    }


def _discovered(kind: Kind) -> Body:
    answer = {
        "group": kind.group if kind.is_custom else "",
        "version": kind.version if kind.is_custom else "",
        "kind": kind.kind,
    }
    found: Body = {
        "resource": kind.plural,
        "responseKind": answer,
        "scope": "Namespaced" if kind.is_namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    found |= {"shortNames": list(kind.short_names)} if kind.short_names else {}
    found |= {"categories": list(kind.categories)} if kind.categories else {}
    inner = [{"subresource": name, "responseKind": answer, "verbs": _SUBRESOURCE_VERBS[name]} for name in kind.subresources]
    return found | ({"subresources": inner} if inner else {})
