"""Manifests as types: what a person asks for, in the form that files and Kubernetes share. A manifest that exists is valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headwater.realms import DeletionPolicy, DriftPolicy, Maintenance, Retention
from headwater.store import RealmId

__all__ = [
    "ADOPT",
    "API_VERSION",
    "CONFIRM_PURGE",
    "DELETE",
    "RUN_NOW",
    "CatalogManifest",
    "CatalogSpec",
    "DesiredState",
    "ImportSpec",
    "Manifest",
    "Metadata",
    "RealmManifest",
    "RealmSpec",
    "ResourceName",
]

API_VERSION = "headwater.dev/v1alpha1"

DELETE = "headwater.dev/delete"
CONFIRM_PURGE = "headwater.dev/confirm-purge"
RUN_NOW = "headwater.dev/run-now"
ADOPT = "headwater.dev/adopt"

DesiredState = Literal["Active", "Inactive"]


@dataclass(frozen=True, slots=True, order=True)
class ResourceName:
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
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
    """What a realm shall be. ``None`` and an empty schedule are the defaults of ``settings``, looked up when they are needed."""

    realm_id: RealmId
    state: DesiredState = "Active"
    deletion_policy: DeletionPolicy = "Retain"
    deletion_protection: bool = False
    drift_policy: DriftPolicy = "Correct"
    purge_hold_seconds: float | None = None
    retention: Retention = Retention()
    maintenance: Maintenance = Maintenance()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RealmManifest:
    metadata: Metadata
    spec: RealmSpec
    file: str = ""
    line: int = 0

    @property
    def subject(self) -> str:
        """How a person is told about it."""
        return f"Realm {self.metadata.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSpec:
    """Tables that lie somewhere already.

    locations        absolute URLs
    mode             `once`: until it has succeeded; `sync`: again and again
    schedule         cron for `sync`, in the realm's time zone; None is once a day, at a time spread by catalog
    include, exclude  patterns of table names
    """

    name: str
    locations: tuple[str, ...]
    mode: Literal["once", "sync"] = "once"
    schedule: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSpec:
    """What a catalog shall be.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogManifest:
    metadata: Metadata
    spec: CatalogSpec
    file: str = ""
    line: int = 0

    @property
    def subject(self) -> str:
        """How a person is told about it."""
        return f"Catalog {self.metadata.name}"


Manifest = RealmManifest | CatalogManifest
