"""The operator's own finalizer: put on before anything is made, taken off when nothing is left to do. Those of others are not touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.errors import NotFoundError, SwapConflictError, UnavailableError
from headwater_operator.kube import KubeApi, resource_path
from headwater_operator.runtime.informer_cache import CachedResource

FINALIZER = "headwater.dev/operator"

_TRIES = 5
_Operations = list[dict[str, Any]]


def add_finalizer(api: KubeApi, resource: CachedResource) -> dict[str, Any] | None:
    """See to it that the resource stays until the operator lets it go.

    returns       its body as it is now; None when it is gone, was made again, or is being deleted, when no finalizer may be added
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
    """Let the resource go. One that is gone, or was made again under its name, is fine.

    returns       its body as it is now, as long as others hold it; None when it is gone, or was not the operator's to let go
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
    """Patch what was seen; who was beaten reads again. No operations: there is nothing to do. None: nothing can be done."""
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
        seen = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
        try:
            return api.patch_resource(path, [seen, *operations], kind="json")
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
