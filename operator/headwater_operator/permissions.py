"""The permissions that the operator needs in the Kubernetes API: every verb it uses, and no other. The chart and the self-check agree."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LEASE_PERMISSIONS", "PERMISSIONS", "SCHEMA_PERMISSIONS", "WRITER_PERMISSIONS", "Permission"]


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """One rule of a role: ``group`` is empty for the core group, ``resource`` may name a subresource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' + self.group if self.group else ''}"


def _permissions(group: str, resources: str, verbs: str) -> list[Permission]:
    return [Permission(group, resource, verb) for resource in resources.split() for verb in verbs.split()]


PERMISSIONS = tuple(
    sorted(
        [
            *_permissions("", "events", "create get patch"),
            *_permissions("", "secrets", "create delete get update"),
            *_permissions("headwater.dev", "catalogs realms", "get list patch watch"),
            *_permissions("headwater.dev", "catalogs/status realms/status", "patch"),
        ]
    )
)
"""Permissions in each watched namespace."""
SCHEMA_PERMISSIONS = tuple(_permissions("apiextensions.k8s.io", "customresourcedefinitions", "get"))
"""Permissions of an operator for all namespaces, for the two definitions alone. One for some namespaces reads the published schema."""
LEASE_PERMISSIONS = tuple(sorted(_permissions("coordination.k8s.io", "leases", "create get update")))
"""Permissions in the operator's own namespace, for the one Lease; ``create`` cannot be bound to a name."""
WRITER_PERMISSIONS = tuple(sorted([*LEASE_PERMISSIONS, *_permissions("", "pods", "list patch")]))
"""Permissions of the election beside a server, in its namespace; pods cannot be bound to names, as their names are made up."""
