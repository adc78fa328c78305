"""What a written object goes through before it is kept: pruned, completed, validated, and judged by the policies."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kubeapi import builtin_rules
from kubeapi.admission import Policies
from kubeapi.causes import Cause
from kubeapi.failures import Failure
from kubeapi.gotypes import check_types
from kubeapi.metadata import faults_of_change, faults_of_metadata, warnings_of_finalizers
from kubeapi.requests import Asked

__all__ = ["complete", "decoded", "judge", "validate"]

Body = dict[str, Any]


def decoded(asked: Asked, body: Any, *, doubles: Iterable[str] = ()) -> list[str]:
    """Check that the body is an object of the right kind, and take away what its kind does not know.

    doubles     fields that stand twice in what was sent
    returns     what is to be told about unknown and doubled fields
    """
    kind = asked.kind
    if not isinstance(body, dict):
        raise Failure.bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): couldn't get version/kind; json parse error: "
            "json: cannot unmarshal into Go value of type struct"
        )
    if kind.is_custom and not body.get("kind"):
        raise Failure.bad_request(f"Object 'Kind' is missing in '{json.dumps(body, separators=(',', ':'))}'")
    body.setdefault("kind", kind.kind)
    if body.setdefault("apiVersion", kind.api_version) != kind.api_version:
        raise Failure.bad_request(
            f"the API version in the data ({body['apiVersion']}) does not match the expected API version ({kind.api_version})"
        )
    start = f"{kind.kind} in version {json.dumps(kind.version)} cannot be handled as a {kind.kind}"
    if not kind.is_custom and body["kind"] != kind.kind:
        raise Failure.bad_request(f"{start}: no kind {json.dumps(body['kind'])} is registered")
    if not isinstance(body.setdefault("metadata", {}), dict):
        raise Failure.bad_request(f"{start}: metadata is no object")
    check_types(kind, body)
    told = [f"duplicate field {json.dumps(path)}" for path in doubles]
    if kind.compiled is not None and body["kind"] == kind.kind:
        told += [f"unknown field {json.dumps(path)}" for path in kind.compiled.decode(body)]
    _clean(body["metadata"])
    return told


def complete(asked: Asked, body: Body) -> None:
    """Fill in what the kind has by default. An object that calls itself otherwise is left alone."""
    if asked.kind.compiled is not None:
        if body.get("kind") == asked.kind.kind:
            asked.kind.compiled.default(body)
    else:
        builtin_rules.complete(asked.kind, body)


def validate(asked: Asked, body: Body, old: Body | None) -> None:
    """raises Failure (422) with all that is wrong"""
    kind, metadata = asked.kind, body["metadata"]
    if kind.is_custom:
        asked.warnings.extend(warnings_of_finalizers(metadata, (old or {}).get("metadata", {})))
    causes: list[Cause] = []
    called = str(body.get("kind"))
    if called != kind.kind:
        causes.append(Cause.invalid("kind", called, f"must be {kind.kind}"))
    if kind.is_kept:
        causes += faults_of_metadata(metadata, kind.name_rule)
    if old is not None:
        causes += faults_of_change(metadata, old["metadata"])
    if kind.compiled is not None:
        blocked = any(cause.is_blocking for cause in causes)
        causes += kind.compiled.validate(body, old, is_status=asked.subresource == "status", is_blocked=blocked)
    else:
        causes += builtin_rules.faults(kind, body, old)
    if causes:
        raise Failure.invalid(kind, str(metadata.get("name") or ""), causes, called=called)


def judge(policies: Policies, operation: str, asked: Asked, name: str, body: Body | None, old: Body | None) -> None:
    """raises Failure with what a policy says against it"""
    kind = asked.kind
    resource = {
        "group": kind.group,
        "version": kind.version,
        "resource": kind.plural,
        "kind": kind.kind,
        "namespace": asked.namespace,
        "name": name,
        "subresource": asked.subresource,
        "dryRun": "true" if asked.is_dry else "",
        "user": asked.user,
    }
    denial = policies.check(operation, resource, body, old)
    if denial is not None:
        details: Body = {"name": name} | ({"group": kind.group} if kind.group else {})
        details |= {"kind": kind.plural, "causes": [{"message": denial.cause}]}
        raise Failure(denial.code, denial.reason, denial.message, details=details)


def _clean(metadata: Body) -> None:
    """What is empty is not there."""
    for name in ("annotations", "labels", "finalizers", "ownerReferences"):
        if name in metadata and not metadata[name]:
            del metadata[name]
    for name in [name for name, value in metadata.items() if value is None]:
        del metadata[name]
