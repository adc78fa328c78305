"""Where each kind of resource lives in the Kubernetes API."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from headwater.errors import RefusedError


@dataclass(frozen=True, slots=True)
class KindPath:
    """A kind as the API serves it: ``group_version`` is ``v1`` or ``group/version``, ``plural`` is the word in the path."""

    group_version: str
    plural: str
    is_namespaced: bool = True

    @property
    def root(self) -> str:
        return f"/api/{self.group_version}" if "/" not in self.group_version else f"/apis/{self.group_version}"

    @property
    def group(self) -> str:
        """Empty for the core group, as access rules have it."""
        return self.group_version.partition("/")[0] if "/" in self.group_version else ""


KINDS = {
    "Realm": KindPath("headwater.dev/v1alpha1", "realms"),
    "Catalog": KindPath("headwater.dev/v1alpha1", "catalogs"),
    "Secret": KindPath("v1", "secrets"),
    "Event": KindPath("v1", "events"),
    "Namespace": KindPath("v1", "namespaces", is_namespaced=False),
    "Pod": KindPath("v1", "pods"),
    "ConfigMap": KindPath("v1", "configmaps"),
    "Deployment": KindPath("apps/v1", "deployments"),
    "Lease": KindPath("coordination.k8s.io/v1", "leases"),
    "CustomResourceDefinition": KindPath("apiextensions.k8s.io/v1", "customresourcedefinitions", is_namespaced=False),
    "SelfSubjectAccessReview": KindPath("authorization.k8s.io/v1", "selfsubjectaccessreviews", is_namespaced=False),
}
_BY_PLURAL = {found.plural: found for found in KINDS.values()}


def resource_path(kind: str, namespace: str | None, name: str | None, subresource: str | None = None) -> str:
    """The absolute path of one resource, or of a whole collection when ``name`` is None.

    kind          as in a manifest (``Realm``) or as in a path (``realms``)
    namespace     None: over all namespaces, or a kind without them
    raises        RefusedError for a kind that the operator does not know
    """
    found = KINDS.get(kind) or _BY_PLURAL.get(kind)
    if found is None:
        raise RefusedError(f"the kind {kind!r} is not known here: one of {', '.join(KINDS)}")
    parts = [found.root]
    if found.is_namespaced and namespace is not None:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(found.plural)
    if name is not None:
        parts += [quote(name, safe=""), *([subresource] if subresource else [])]
    return "/".join(parts)
