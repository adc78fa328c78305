"""Manifests as types, in the form that files and Kubernetes share. A manifest object is always valid."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from headwater.catalogs import CatalogFields, CatalogManager, ImportSpec
from headwater.realms import DeletionPolicy, DriftPolicy, HistoryRetention, MaintenanceSchedule, RealmFields, RealmManager
from headwater.store import RealmId

__all__ = [
    "ADOPT",
    "API_VERSION",
    "CONFIRM_PURGE",
    "DELETE",
    "PLAN",
    "RELEASE_TO",
    "ROTATE_CREDENTIALS",
    "RUN_NOW",
    "CatalogManifest",
    "CatalogSpec",
    "DesiredState",
    "KnownRealms",
    "Manifest",
    "ManifestMetadata",
    "RealmManifest",
    "RealmSpec",
    "ResourceName",
]

API_VERSION = "headwater.dev/v1alpha1"

DELETE = "headwater.dev/delete"
CONFIRM_PURGE = "headwater.dev/confirm-purge"
RUN_NOW = "headwater.dev/run-now"
ADOPT = "headwater.dev/adopt"
RELEASE_TO = "headwater.dev/release-to"
ROTATE_CREDENTIALS = "headwater.dev/rotate-credentials"
PLAN = "headwater.dev/plan"

DesiredState = Literal["Active", "Inactive"]


@dataclass(frozen=True, slots=True, order=True)
class ResourceName:
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerIdentity:
    """The identity that applies a manifest: a manager without the namespace and the name, which are those of the manifest.

    cluster           as realms and catalogs remember it
    uid               the uid of the resource; empty for a file
    is_cluster_named  the name of the cluster was chosen. Otherwise another cluster may have the same name, and only a
                      released realm is taken back unasked
    """

    cluster: str = ""
    uid: str = ""
    is_cluster_named: bool = True

    def of_realm(self, resource: ResourceName) -> RealmManager:
        return RealmManager(cluster=self.cluster, namespace=resource.namespace, name=resource.name, uid=self.uid)

    def of_catalog(self, resource: ResourceName) -> CatalogManager:
        return CatalogManager(cluster=self.cluster, namespace=resource.namespace, name=resource.name, uid=self.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestMetadata:
    name: str
    namespace: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def resource(self) -> ResourceName:
        return ResourceName(self.namespace, self.name)

    @property
    def is_deletion(self) -> bool:
        return self.annotations.get(DELETE) == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealmSpec:
    """The desired state of a realm. ``None`` and an empty schedule are the defaults of ``settings``, looked up when they are needed."""

    realm_id: RealmId
    state: DesiredState = "Active"
    deletion_policy: DeletionPolicy = "Retain"
    deletion_protection: bool = False
    drift_policy: DriftPolicy = "Correct"
    purge_hold_seconds: float | None = None
    retention: HistoryRetention = field(default_factory=HistoryRetention)
    maintenance: MaintenanceSchedule = field(default_factory=MaintenanceSchedule)
    properties: Mapping[str, str] = field(default_factory=dict)

    def fields(self) -> RealmFields:
        """The fields of the realm's desired definition, except for its state."""
        return RealmFields(
            properties=dict(self.properties),
            purge_hold_seconds=self.purge_hold_seconds,
            retention=self.retention,
            maintenance=self.maintenance,
            deletion_policy=self.deletion_policy,
            deletion_protection=self.deletion_protection,
            drift_policy=self.drift_policy,
        )

    def digest(self) -> str:
        """A digest of the spec, which distinguishes a changed manifest from a realm that drifted."""
        plain = {**self.fields(), "state": self.state}
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), default=msgspec.to_builtins)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class RealmManifest:
    metadata: ManifestMetadata
    spec: RealmSpec
    file: str = ""
    line: int = 0

    @property
    def subject(self) -> str:
        """The name of the manifest's subject, for people."""
        return f"Realm {self.metadata.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSpec:
    """The desired state of a catalog.

    realm        the name of the Realm resource, as written
    realm_id     the id of that realm
    """

    realm: str
    realm_id: RealmId
    name: str
    base_location: str
    allowed_locations: tuple[str, ...] = ()
    default_branch: str = "main"
    imports: tuple[ImportSpec, ...] = ()
    deletion_policy: DeletionPolicy = "Retain"
    deletion_protection: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)

    def fields(self) -> CatalogFields:
        """The fields of the catalog's desired definition."""
        return CatalogFields(
            base_location=self.base_location,
            allowed_locations=self.allowed_locations,
            default_branch=self.default_branch,
            properties=dict(self.properties),
            imports=self.imports,
            deletion_policy=self.deletion_policy,
            deletion_protection=self.deletion_protection,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogManifest:
    metadata: ManifestMetadata
    spec: CatalogSpec
    file: str = ""
    line: int = 0

    @property
    def subject(self) -> str:
        """The name of the manifest's subject, for people."""
        return f"Catalog {self.metadata.name}"


Manifest = RealmManifest | CatalogManifest

KnownRealms = Mapping[RealmId, ResourceName | None]
"""The realms of a store: by id, with the resource that manages each, or None."""
