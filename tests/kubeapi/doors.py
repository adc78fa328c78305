"""What may come through each door of an object, what holds an object that is deleted, and what counts as a change of it."""

from __future__ import annotations

from typing import Any

from kubeapi.failures import Failure
from kubeapi.kinds import Kind
from kubeapi.requests import Asked
from kubeapi.store import Record

__all__ = ["check_preconditions", "content", "holders", "through_door", "timeless"]

Body = dict[str, Any]


def check_preconditions(kind: Kind, record: Record, wanted: Body) -> None:
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid is not None and uid != record.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({record.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise Failure.precondition(kind, record.key[1], why)
    if version is not None and version != str(record.version):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({record.version}). The object might have been modified"
        )
        raise Failure.precondition(kind, record.key[1], why)


def holders(kind: Kind, body: Body) -> list[str]:
    """What keeps an object that is deleted: finalizers, and for two kinds all that is in them."""
    finalizers = list(body["metadata"].get("finalizers") or ())
    if kind.resource == "namespaces":
        return finalizers + list(body.get("spec", {}).get("finalizers") or ())
    if kind.kind == "CustomResourceDefinition" and not body["metadata"].get("deletionTimestamp"):
        return list(dict.fromkeys([*finalizers, "customresourcecleanup.apiextensions.k8s.io"]))
    return finalizers


def through_door(asked: Asked, body: Body, old: Body, *, is_applied: bool) -> Body:
    """What of the new object counts: the status through its own door and nothing else, all but the status through the main one."""
    kind = asked.kind
    if asked.subresource == "status":
        metadata = dict(old["metadata"])
        if is_applied:
            metadata["managedFields"] = body["metadata"].get("managedFields", [])
        kept = {name: value for name, value in old.items() if name not in ("status", "metadata")}
        return {**kept, "metadata": metadata, **({"status": body["status"]} if "status" in body else {})}
    if asked.subresource == "finalize":
        return {**old, "metadata": dict(old["metadata"]), "spec": body.get("spec", {})}
    if not kind.has_status:
        return body
    kept = {name: value for name, value in body.items() if name != "status"}
    return {**kept, **({"status": old["status"]} if "status" in old else {})}


def content(kind: Kind, body: Body) -> Body:
    """What the generation counts changes of."""
    return {name: value for name, value in body.items() if name != "metadata" and (name != "status" or not kind.has_status)}


def timeless(body: Body) -> Body:
    """The object without the times at which its managers wrote."""
    metadata = body["metadata"]
    fields = [{name: value for name, value in entry.items() if name != "time"} for entry in metadata.get("managedFields") or ()]
    return body | {"metadata": metadata | {"managedFields": fields}}
