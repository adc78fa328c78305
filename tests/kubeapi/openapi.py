"""OpenAPI v3: one document for each group and version, with the schemas of custom resources as they were defined."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kubeapi.failures import NotServed
from kubeapi.fields import METADATA
from kubeapi.kinds import Kind, Kinds

__all__ = ["document", "index"]

Body = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_PATCHES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
"""Strategic patches are taken, and not told of: kubectl would look for merge keys here, and knows them by itself."""
_QUERY = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]


def index(kinds: Kinds) -> Body:
    """Where each document is. The hash in the address changes with the document."""
    paths = {}
    for name, versions in kinds.groups().items():
        for version in versions:
            where = _where(name, version)
            digest = hashlib.sha512(json.dumps(document(kinds, where), sort_keys=True).encode()).hexdigest().upper()
            paths[where] = {"serverRelativeURL": f"/openapi/v3/{where}?hash={digest}"}
    return {"paths": paths}


def document(kinds: Kinds, where: str) -> Body:
    served = [kind for kind in kinds if _where(kind.group, kind.version) == where]
    if not served:
        raise NotServed(where)
    schemas: Body = {_META: _typed(METADATA, "ObjectMeta is metadata that all persisted resources must have.")}
    paths: Body = {}
    for kind in served:
        schemas[_name(kind)] = _schema(kind)
        schemas[_name(kind) + "List"] = _list_schema(kind)
        paths |= _paths(kind)
    info = {"title": "Kubernetes", "version": "v1.36.2"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _where(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _name(kind: Kind) -> str:
    host = (
        ".".join(reversed(kind.group.split("."))) if kind.is_custom else f"io.k8s.api.{kind.group.partition('.')[0] or 'core'}"
    )
    return f"{host}.{kind.version}.{kind.kind}"


def _gvk(kind: Kind, name: str = "") -> list[Body]:
    return [{"group": kind.group, "version": kind.version, "kind": name or kind.kind}]


def _schema(kind: Kind) -> Body:
    source = kind.schema if kind.is_custom else {"type": "object", "properties": {"apiVersion": {}, "kind": {}}}
    shown = _typed(source, source.get("description", ""))
    properties = {
        name: inner for name, inner in shown.get("properties", {}).items() if name not in ("apiVersion", "kind", "metadata")
    }
    described = {
        "apiVersion": {
            "type": "string",
            "description": "APIVersion defines the versioned schema of this representation of an object.",
        },
        "kind": {
            "type": "string",
            "description": "Kind is a string value representing the REST resource this object represents.",
        },
        "metadata": {
            "allOf": [{"$ref": f"#/components/schemas/{_META}"}],
            "description": "Standard object's metadata.",
            "default": {},
        },
    }
    shown["properties"] = described | properties
    if not kind.is_custom:
        shown["x-kubernetes-preserve-unknown-fields"] = True
    return shown | {"type": "object", "x-kubernetes-group-version-kind": _gvk(kind)}


def _list_schema(kind: Kind) -> Body:
    items = {"type": "array", "items": {"allOf": [{"$ref": f"#/components/schemas/{_name(kind)}"}]}}
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "items": items,
            "metadata": {"type": "object"},
        },
        "x-kubernetes-group-version-kind": _gvk(kind, kind.list_kind),
    }


def _typed(schema: Mapping[str, Any], description: str) -> Body:
    shown = dict(schema)
    if description:
        shown["description"] = description
    return shown


def _paths(kind: Kind) -> Body:
    base = f"/{_where(kind.group, kind.version)}/" + ("namespaces/{namespace}/" if kind.is_namespaced else "") + kind.plural
    reference = {"$ref": f"#/components/schemas/{_name(kind)}"}
    named: Body = {"parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]}
    collection: Body = {}
    for verb in kind.verbs:
        operation = _operation(kind, verb, reference)
        if verb in ("list", "create", "deletecollection"):
            collection[{"list": "get", "create": "post", "deletecollection": "delete"}[verb]] = operation
        elif verb != "watch":
            named[{"update": "put"}.get(verb, verb)] = operation
    return {base: collection, base + "/{name}": named}


def _operation(kind: Kind, verb: str, reference: Body) -> Body:
    answer = {"description": "OK", "content": {"application/json": {"schema": reference}}}
    operation: Body = {
        "operationId": f"{verb}{kind.group.title().replace('.', '')}{kind.version.title()}{kind.kind}",
        "responses": {"200": answer},
        "x-kubernetes-action": {"create": "post", "update": "put"}.get(verb, verb),
        "x-kubernetes-group-version-kind": _gvk(kind)[0],
    }
    if verb in ("create", "update", "patch"):
        media = _PATCHES if verb == "patch" else ("*/*",)
        operation["parameters"] = _QUERY
        operation["requestBody"] = {"content": {name: {"schema": reference} for name in media}, "required": True}
    return operation
