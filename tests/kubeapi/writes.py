"""Creating, changing and deleting objects, as a client sees it."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from typing import Any

from kubeapi.admission import Policies
from kubeapi.causes import Cause
from kubeapi.conversion import from_stored, to_stored
from kubeapi.doors import check_preconditions, content, holders, through_door, timeless
from kubeapi.failures import Failure
from kubeapi.kinds import Kind, Kinds
from kubeapi.managers import Writer, after_apply, after_update
from kubeapi.patches import json_patched, merge_patched, strategically_patched
from kubeapi.requests import Asked
from kubeapi.store import Record, Shelf, Store, copied
from kubeapi.times import stamp
from kubeapi.written_objects import complete, decoded, judge, validate

__all__ = ["Writing"]

Body = dict[str, Any]

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

_SIGNS = "bcdfghjklmnpqrstvwxz2456789"
_KEPT = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "namespace",
    "name",
    "selfLink",
)
_TRIES = 8


class Writing:
    """The doors through which objects change. Each call is one write, or a refusal with nothing written."""

    def __init__(self, store: Store, kinds: Kinds, policies: Policies, clock: Callable[[], float]) -> None:
        self._store = store
        self._kinds = kinds
        self._policies = policies
        self._clock = clock

    def create(self, asked: Asked, body: Any, *, doubles: list[str] | None = None) -> Body:
        told = decoded(asked, body, doubles=doubles or ())
        _tell_unknown(asked, told)
        return self._create(asked, body)

    def update(self, asked: Asked, body: Any, *, doubles: list[str] | None = None) -> tuple[Body, bool]:
        """PUT. Returns the object, and whether it was made."""
        told = decoded(asked, body, doubles=doubles or ())
        _tell_unknown(asked, told)
        named = body["metadata"].get("name")
        if named != asked.name:
            if not named:
                raise Failure.bad_request("the name of the object is not set, and must match the name on the URL")
            raise Failure.bad_request(f"the name of the object ({named}) does not match the name on the URL ({asked.name})")
        record, uid = self._find(asked), body["metadata"].get("uid")
        if uid and uid != (record.uid if record is not None else ""):  # looked at before whether there is one at all
            raise Failure.uid_precondition(asked.kind, (asked.namespace, asked.name), uid, record.uid if record else "")
        if record is None:
            if not asked.kind.is_made_by_put:
                raise Failure.missing(asked.kind, asked.name)
            return self._create(asked, body), True
        if not body["metadata"].get("resourceVersion") and not asked.kind.is_unconditional:
            cause = Cause.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise Failure.invalid(asked.kind, asked.name, [cause], plural=True)
        complete(asked, body)
        return self._replace(asked, record, body), False

    def patch(self, asked: Asked, media: str, patch: Any) -> tuple[Body, bool]:
        """Returns the object, and whether it was made."""
        kind = asked.kind
        accepted = [JSON_PATCH, MERGE_PATCH, *(() if kind.is_custom else (STRATEGIC_PATCH,)), APPLY]
        if media not in accepted:
            raise Failure.unsupported_media(accepted)
        if media == APPLY:
            return self._apply(asked, patch)
        if "force" in asked.query:
            raise Failure.of_options("PatchOptions", Cause.forbidden("force", "may not be specified for non-apply patch"))
        record = self._read(asked)
        live = from_stored(kind, record.load())
        if media == JSON_PATCH:
            patched = json_patched(live, patch)
        elif not isinstance(patch, dict):
            raise Failure.bad_request("json: cannot unmarshal into Go value of type map[string]interface {}")
        else:
            patched = merge_patched(live, patch) if media == MERGE_PATCH else strategically_patched(live, patch)
        if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
            raise Failure.rejected_patch()
        _tell_unknown_in_patch(asked, patched, decoded(asked, patched))
        complete(asked, patched)
        return self._replace(asked, record, patched), False

    def delete(self, asked: Asked, options: Body, record: Record | None = None) -> tuple[Body, bool]:
        """Returns the object as it was or is, and whether it is gone."""
        kind, record = asked.kind, record or self._read(asked)
        name = record.key[1]
        check_preconditions(kind, record, options.get("preconditions") or {})
        body = record.load()
        judge(self._policies, "DELETE", asked, name, None, from_stored(kind, body))
        shelf, metadata = self._shelf(kind), body["metadata"]
        _wait_for_dependents(metadata, asked.query.get("propagationPolicy") or options.get("propagationPolicy"))
        held_by = holders(kind, body)
        if not held_by:
            if not asked.is_dry:
                self._store.remove(shelf, record.key)
            return from_stored(kind, body), True
        if metadata.get("deletionTimestamp"):
            return from_stored(kind, body), False
        metadata["deletionTimestamp"] = stamp(self._clock())
        if kind.resource != "namespaces":
            metadata["deletionGracePeriodSeconds"] = 0
        if metadata.get("generation"):
            metadata["generation"] += 1
        if kind.resource == "namespaces":
            body.setdefault("status", {})["phase"] = "Terminating"
        elif kind.kind == "CustomResourceDefinition":
            metadata["finalizers"] = held_by
        if not asked.is_dry:
            self._store.put(shelf, record.key, body)
        return from_stored(kind, body), False

    def _create(self, asked: Asked, body: Body, *, applied: Body | None = None) -> Body:
        kind, metadata = asked.kind, body["metadata"]
        self._place(asked, metadata)
        self._check_namespace(asked, metadata.get("name") or "")
        if metadata.get("resourceVersion"):
            raise Failure.internal("resourceVersion should not be set on objects to be created")
        generated = not metadata.get("name") and bool(metadata.get("generateName"))
        if generated:
            metadata["name"] = self._free_name(kind, asked.namespace, metadata["generateName"])
        for name in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
            metadata.pop(name, None)
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": stamp(self._clock())}
        if kind.has_generation:
            metadata["generation"] = 1
        if kind.has_status:
            body.pop("status", None)
        complete(asked, body)
        if applied is None:
            metadata["managedFields"] = after_update(_empty(kind), body, kind, self._writer(asked))
        validate(asked, body, None)
        judge(self._policies, "CREATE", asked, metadata.get("name", ""), body, None)
        if not kind.is_kept:
            return body
        shelf, key = self._shelf(kind), (asked.namespace, metadata["name"])
        if shelf.find(key) is not None:
            raise Failure.exists(kind, metadata["name"])
        if not asked.is_dry:
            self._store.put(shelf, key, to_stored(kind, body))
            return from_stored(kind, shelf.records[key].load())
        return body

    def _replace(self, asked: Asked, record: Record, body: Body, *, is_applied: bool = False) -> Body:
        """Put an object in the place of the one that was read, if that is still what is there."""
        kind = asked.kind
        old = from_stored(kind, record.load())
        metadata, before = body["metadata"], old["metadata"]
        if metadata.get("resourceVersion") not in (None, "", before["resourceVersion"]):
            raise Failure.stale(kind, record.key[1])
        self._place(asked, metadata)
        body = through_door(asked, body, old, is_applied=is_applied)
        metadata = body["metadata"]
        given = {name: metadata.pop(name, None) for name in _KEPT}
        metadata |= {name: before[name] for name in _KEPT if name in before}
        metadata["resourceVersion"] = before["resourceVersion"]
        if not is_applied:
            metadata["managedFields"] = after_update(old, body, kind, self._writer(asked))
        if not metadata["managedFields"]:
            del metadata["managedFields"]
        if kind.has_generation and content(kind, body) != content(kind, old):
            metadata["generation"] = before.get("generation", 0) + 1
        checked = body | {"metadata": metadata | {name: given[name] for name in ("uid", "deletionTimestamp") if given[name]}}
        validate(asked, checked, old)
        judge(self._policies, "UPDATE", asked, record.key[1], body, old)
        if timeless(body) == timeless(old):
            return old
        return self._keep(asked, record, body)

    def _keep(self, asked: Asked, record: Record, body: Body) -> Body:
        kind, shelf = asked.kind, self._shelf(asked.kind)
        if body["metadata"].get("deletionTimestamp") and not holders(kind, body):
            if not asked.is_dry:
                self._store.remove(shelf, record.key, to_stored(kind, copied(body)))
            return body
        if asked.is_dry:
            return body
        self._store.put(shelf, record.key, to_stored(kind, body))
        return from_stored(kind, body)

    def _apply(self, asked: Asked, applied: Any) -> tuple[Body, bool]:
        kind = asked.kind
        if not asked.query.get("fieldManager"):
            raise Failure.of_options("PatchOptions", Cause.required("fieldManager", "is required for apply patch"))
        if not isinstance(applied, dict) or not applied.get("kind") or not applied.get("apiVersion"):
            raise Failure.bad_request("invalid object type: the applied configuration needs an apiVersion and a kind")
        if applied["kind"] != kind.kind or applied["apiVersion"] != kind.api_version:
            raise Failure.bad_request(
                f"the applied configuration is of {applied['apiVersion']} {applied['kind']}, not {kind.api_version} {kind.kind}"
            )
        metadata = applied.setdefault("metadata", {})
        if metadata.get("name", asked.name) != asked.name:
            raise Failure.bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({asked.name})"
            )
        record = self._find(asked)
        if record is None and asked.subresource:
            raise Failure.missing(kind, asked.name)
        live = from_stored(kind, record.load()) if record is not None else _empty(kind)
        version = metadata.get("resourceVersion")
        body = after_apply(live, applied, kind, self._writer(asked), force=asked.is_forced)
        if version:
            body["metadata"]["resourceVersion"] = version
        if record is None and version:
            raise Failure.stale(kind, asked.name)
        body = copied(body)
        decoded(asked, body)
        complete(asked, body)
        if record is None:
            body["metadata"]["name"] = asked.name
            return self._create(asked, body, applied=applied), True
        return self._replace(asked, record, body, is_applied=True), False

    def _writer(self, asked: Asked) -> Writer:
        return Writer(asked.manager, asked.subresource, stamp(self._clock()))

    def _shelf(self, kind: Kind) -> Shelf:
        return self._store.shelf(kind.shelf)

    def _find(self, asked: Asked) -> Record | None:
        return self._shelf(asked.kind).find((asked.namespace, asked.name))

    def _read(self, asked: Asked) -> Record:
        record = self._find(asked)
        if record is None:
            raise Failure.missing(asked.kind, asked.name)
        return record

    def _place(self, asked: Asked, metadata: Body) -> None:
        """The namespace of the path is that of the object."""
        if metadata.get("namespace", asked.namespace) != asked.namespace:
            raise Failure.bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if asked.namespace:
            metadata["namespace"] = asked.namespace
        else:
            metadata.pop("namespace", None)

    def _check_namespace(self, asked: Asked, name: str) -> None:
        if not asked.namespace:
            return
        namespaces = self._kinds.find("", "v1", "namespaces")
        assert namespaces is not None
        record = self._shelf(namespaces).find(("", asked.namespace))
        if record is None:
            raise Failure.missing(namespaces, asked.namespace)
        if b'"deletionTimestamp"' in record.raw and record.load()["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {asked.namespace} because it is being terminated"
            cause = {"reason": "NamespaceTerminating", "message": f"namespace {asked.namespace} is being terminated"}
            raise Failure.forbidden(asked.kind, name, why, [cause | {"field": "metadata.namespace"}])

    def _free_name(self, kind: Kind, namespace: str, stem: str) -> str:
        for _ in range(_TRIES):
            name = stem[:58] + "".join(random.choices(_SIGNS, k=5))
            if self._shelf(kind).find((namespace, name)) is None:
                return name
        raise Failure.exists(kind, stem)


def _wait_for_dependents(metadata: Body, policy: str | None) -> None:
    """A deletion that does something about what belongs to the object waits for that with a finalizer."""
    finalizer = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(policy or "")
    if finalizer and finalizer not in (metadata.get("finalizers") or ()):
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), finalizer]


def _empty(kind: Kind) -> Body:
    body: Body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}}
    return body | dict(kind.baseline)


def _tell_unknown(asked: Asked, told: list[str]) -> None:
    if told and asked.strictness == "Strict":
        kind = asked.kind
        start = f"{kind.kind} in version {json.dumps(kind.version)} cannot be handled as a {kind.kind}"
        raise Failure.bad_request(f"{start}: strict decoding error: {', '.join(told)}")
    if asked.strictness == "Warn":
        asked.warnings.extend(told)


def _tell_unknown_in_patch(asked: Asked, patched: Body, told: list[str]) -> None:
    if told and asked.strictness == "Strict":
        cause = Cause.invalid("patch", json.dumps(patched, separators=(",", ":")), f"strict decoding error: {', '.join(told)}")
        raise Failure.of_causes(' "" is invalid', {}, [cause])
    if asked.strictness == "Warn":
        asked.warnings.extend(told)
