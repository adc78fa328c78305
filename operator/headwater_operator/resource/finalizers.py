"""The operator's finalizer, the check for resources that still have it, and the memory of which resources this process holds.

The finalizer is added before anything is created in the store, and removed when nothing is left to do. Those of others are not touched.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headwater.errors import NotFoundError, RefusedError, SwapConflictError, UnavailableError
from headwater_operator.kube import KubeApi, resource_path
from headwater_operator.resource.conditions import find_condition
from headwater_operator.runtime.informer_cache import CachedResource, ResourceKey
from headwater_operator.runtime.operator_settings import OperatorSettings

FINALIZER = "headwater.dev/operator"

_TRIES = 5
_Operations = list[dict[str, Any]]


def add_finalizer(api: KubeApi, resource: CachedResource) -> dict[str, Any] | None:
    """Add the finalizer, so that the resource stays until the operator releases it.

    returns       its current body; None when it is gone, was recreated, or is being deleted, when no finalizer may be added
    """

    def addition(metadata: Mapping[str, Any]) -> _Operations | None:
        finalizers = metadata.get("finalizers")
        if FINALIZER in (finalizers or ()):
            return []
        if metadata.get("deletionTimestamp"):
            return None
        if not finalizers:
            return [{"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]}]
        return [{"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER}]

    return _swap(api, resource, addition)


def remove_finalizer(api: KubeApi, resource: CachedResource) -> dict[str, Any] | None:
    """Remove the finalizer. A resource that is gone or was recreated is no error.

    returns       its current body while others hold it; None when it is gone, or the operator did not hold it
    """

    def removal(metadata: Mapping[str, Any]) -> _Operations | None:
        finalizers: Sequence[str] = metadata.get("finalizers") or ()
        if FINALIZER not in finalizers:
            return []
        return [{"op": "remove", "path": f"/metadata/finalizers/{finalizers.index(FINALIZER)}"}]

    return _swap(api, resource, removal)


def _swap(
    api: KubeApi, resource: CachedResource, change: Callable[[Mapping[str, Any]], _Operations | None]
) -> dict[str, Any] | None:
    """Patch the state that was read; on a conflict read again. No operations: nothing to do. None: nothing can be done."""
    path = resource_path(resource.kind, resource.namespace, resource.name)
    metadata: Mapping[str, Any] = {
        "resourceVersion": resource.resource_version,
        "finalizers": list(resource.finalizers),
        "deletionTimestamp": resource.deleted,
    }
    body: dict[str, Any] | None = None
    for _ in range(_TRIES):
        operations = change(metadata)
        if operations is None:
            return None
        if not operations:
            return body
        unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
        try:
            return api.patch_resource(path, [unchanged, *operations], kind="json")
        except NotFoundError:
            return None
        except SwapConflictError:
            body = api.find_resource(path)
        if body is None or body["metadata"].get("uid") != resource.uid:
            return None
        metadata = body["metadata"]
    raise UnavailableError(
        f"the finalizer of {resource.key} could not be changed: somebody else changes it too, trying again later"
    )


SHOWN = 10


def check_leftovers(api: KubeApi, settings: OperatorSettings) -> None:
    """Check that no Realm or Catalog is left that only an operator can release.

    raises        RefusedError that names them, and says what to do
    """
    leftovers = [
        f"{kind} {resource['metadata']['namespace']}/{resource['metadata']['name']}"
        for kind in ("Catalog", "Realm")
        for namespace in settings.namespaces or (None,)
        for resource in api.list_resources(resource_path(kind, namespace, None), label_selector=settings.label_selector or None)
        if FINALIZER in (resource["metadata"].get("finalizers") or ())
    ]
    if not leftovers:
        return
    more = f" and {len(leftovers) - SHOWN} more" if len(leftovers) > SHOWN else ""
    raise RefusedError(
        f"{len(leftovers)} resources could not be deleted without an operator: {', '.join(sorted(leftovers)[:SHOWN])}{more}; "
        "delete them first (with deletionPolicy Retain their realms stay in the store), or go on with `helm uninstall --no-hooks`, "
        "and let them go by `kubectl headwater release --all` if they shall be deleted later"
    )


class HeldResources:
    """The resources that this process holds. A restart loses nothing, because it visits every resource anyway. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[ResourceKey, CachedResource] = {}
        self._told: dict[ResourceKey, tuple[Any, ...]] = {}
        self._realms: dict[ResourceKey, str] = {}
        self._keepers: dict[str, ResourceKey] = {}

    def hold(self, resource: CachedResource) -> None:
        """Record that the resource has the operator's finalizer."""
        with self._lock:
            self._held[resource.key] = replace(resource, packed_status=b"{}", standing=())
            self._told.setdefault(resource.key, _facts(resource, resource.status))

    def let_go(self, key: ResourceKey) -> None:
        """Record that the operator removed its finalizer."""
        with self._lock:
            self._held.pop(key, None)

    def forget_resource(self, key: ResourceKey) -> CachedResource | None:
        """Forget a deleted resource. Returns its last state if the operator had not removed its finalizer."""
        with self._lock:
            self._told.pop(key, None)
            return self._held.pop(key, None)

    def keeps(self, key: ResourceKey, realm_id: str) -> ResourceKey | None:
        """Record that this Realm owns the realm, and reports it. Returns the Realm that owned it until now, if there is one."""
        with self._lock:
            former = self._keepers.get(realm_id, key)
            self._realms[key] = realm_id
            self._keepers[realm_id] = key
            return former if former != key else None

    def keeps_none(self, key: ResourceKey) -> str | None:
        """Record that this Realm owns no realm. Returns the id of the realm that no Realm reports now, if there is one."""
        with self._lock:
            realm_id = self._realms.pop(key, None)
            if realm_id is None or self._keepers.get(realm_id) != key:
                return None  # another Realm has taken it over
            del self._keepers[realm_id]
            return realm_id

    def has_news(self, resource: CachedResource, status: Mapping[str, Any]) -> bool:
        """Whether anything that other resources show of it, or wait for, differs from what they last saw."""
        facts = _facts(resource, status)
        with self._lock:
            former = self._told.get(resource.key)
            self._told[resource.key] = facts
        return former != facts


def _facts(resource: CachedResource, status: Mapping[str, Any]) -> tuple[Any, ...]:
    """The facts that others use: those of a Realm that its Catalogs see; those of a Catalog that its Realm counts."""
    if resource.kind == "Catalog":
        return (resource.uid, *(status.get(name) for name in ("state", "catalogId", "tables")))
    ready = find_condition(status.get("conditions") or (), "Ready") or {}
    maintenance = status.get("maintenance")
    times = (maintenance.get("lastTime"), maintenance.get("nextTime")) if isinstance(maintenance, Mapping) else ()
    named = (status.get(name) for name in ("realmId", "state"))
    roles = repr(resource.spec.get("roles")) if ready.get("status") == "True" else None  # which its Catalogs may grant to
    return (resource.uid, resource.is_deleted, *named, ready.get("status"), roles, *times)
