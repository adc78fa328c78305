"""What would hang without an operator: resources that carry its finalizer. Asked before the operator is taken away."""

from __future__ import annotations

from headwater.errors import RefusedError
from headwater_operator.kube import KubeApi, resource_path
from headwater_operator.resource.finalizers import FINALIZER
from headwater_operator.runtime.operator_settings import OperatorSettings

SHOWN = 10


def check_leftovers(api: KubeApi, settings: OperatorSettings) -> None:
    """That no Realm or Catalog is left which only an operator lets go.

    raises        RefusedError that names them, and says what to do
    """
    found = [
        f"{kind} {resource['metadata']['namespace']}/{resource['metadata']['name']}"
        for kind in ("Catalog", "Realm")
        for namespace in settings.namespaces or (None,)
        for resource in api.list_resources(resource_path(kind, namespace, None), label_selector=settings.label_selector or None)
        if FINALIZER in (resource["metadata"].get("finalizers") or ())
    ]
    if not found:
        return
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    raise RefusedError(
        f"{len(found)} resources could not be deleted without an operator: {', '.join(sorted(found)[:SHOWN])}{more}; "
        "delete them first (with deletionPolicy Retain their realms stay in the store), or go on with `helm uninstall --no-hooks`, "
        "and let them go by `kubectl headwater release --all` if they shall be deleted later"
    )
