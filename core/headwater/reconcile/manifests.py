"""Manifests as types, in the form that files and Kubernetes share, and the rules of their paths, namespaces and locations.

A manifest object is always valid.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from headwater.catalogs import (
    CatalogFields,
    CatalogFiles,
    CatalogMaintenance,
    CatalogManager,
    ContentKey,
    ImportSpec,
    normalise_location,
)
from headwater.errors import RefusedError
from headwater.iceberg.catalog_location import EXAMPLE, check_catalog_location
from headwater.iceberg.layout import parse_pattern
from headwater.policies import StoredPolicy
from headwater.realms import DeletionPolicy, DriftPolicy, HistoryRetention, MaintenanceSchedule, RealmFields, RealmManager
from headwater.reconcile.declared_access import DeclaredCatalogRole, DeclaredConnection, DeclaredPrincipal, DeclaredRole
from headwater.store import RealmId

API_VERSION = "headwater.dev/v1alpha1"

DELETE = "headwater.dev/delete"
CONFIRM_PURGE = "headwater.dev/confirm-purge"
RUN_NOW = "headwater.dev/run-now"
ADOPT = "headwater.dev/adopt"
RELEASE_TO = "headwater.dev/release-to"
ROTATE_CREDENTIALS = "headwater.dev/rotate-credentials"
ROTATE_PRINCIPAL = "headwater.dev/rotate-principal"
PLAN = "headwater.dev/plan"

PREFIX = "headwater.dev/"
ANNOTATIONS = {
    "Realm": (ADOPT, CONFIRM_PURGE, DELETE, RELEASE_TO, ROTATE_CREDENTIALS, ROTATE_PRINCIPAL, RUN_NOW),
    "Catalog": (ADOPT, CONFIRM_PURGE, DELETE, ROTATE_CREDENTIALS, RUN_NOW),
}

_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_ANNOTATION_VALUES = {
    RUN_NOW: (re.compile(r"gc(:.{1,63})?"), "gc, or gc:<any word of at most 63 characters> to ask again"),
    RELEASE_TO: (
        re.compile(rf"{_LABEL.pattern}/{_RESOURCE.pattern}"),
        "<namespace>/<name> of the Realm that may take the realm over",
    ),
    ROTATE_CREDENTIALS: (
        re.compile(r"[A-Za-z0-9._-]{1,63}"),
        "a word of your own, at most 63 letters, digits, - _ and ., another one for each rotation",
    ),
    ROTATE_PRINCIPAL: (
        re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}:[A-Za-z0-9._-]{1,63}"),
        "<principal>:<a word of your own>, another word for each rotation; the word has at most 63 letters, digits, - _ and .",
    ),
}

_RUNS_OF_CATALOG = (
    re.compile(r"(expire-snapshots|report-files)(:.{1,63})?"),
    "expire-snapshots or report-files, either with :<any word of at most 63 characters> to ask again",
)

_DELETED = {
    "Realm": ("realmId", "state", "deletionPolicy", "deletionProtection", "driftPolicy", "purgeHold"),
    "Catalog": ("realm", "name", "deletionPolicy", "deletionProtection"),
}
"""The fields of a spec that matter for a deletion."""
_DELETING = (ADOPT, CONFIRM_PURGE)
"""The annotations that matter for a deletion."""

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
    principals: tuple[DeclaredPrincipal, ...] = ()
    roles: tuple[DeclaredRole, ...] = ()

    @property
    def declares_access(self) -> bool:
        return bool(self.principals or self.roles)

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

    @property
    def described(self) -> str:
        """What it describes, in sentences."""
        return f"realm {self.spec.realm_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSpec:
    """The desired state of a catalog.

    realm        the name of the Realm resource, as written
    realm_id     the id of that realm
    policies     those of the whole catalog, without its id
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
    roles: tuple[DeclaredCatalogRole, ...] = ()
    connection: DeclaredConnection | None = None
    files: CatalogFiles = field(default_factory=CatalogFiles)
    maintenance: CatalogMaintenance = field(default_factory=CatalogMaintenance)
    policies: tuple[StoredPolicy, ...] = ()

    @property
    def declares_access(self) -> bool:
        return bool(self.roles or self.connection)

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
            files=self.files,
            maintenance=self.maintenance,
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

    @property
    def described(self) -> str:
        """What it describes, in sentences."""
        return f"catalog {self.spec.realm_id}/{self.spec.name}"


Manifest = RealmManifest | CatalogManifest

KnownRealms = Mapping[RealmId, ResourceName | None]
"""The realms of a store: by id, with the resource that manages each, or None."""


def checked_resource_name(text: str) -> str:
    """The name of a resource, checked; raises RefusedError that says what it may have."""
    if not _RESOURCE.fullmatch(text):
        allowed = "lower-case letters, digits, - and . (at most 253, a letter or digit at both ends)"
        raise RefusedError(f'"{text}" is not the name of a resource; use {allowed}')
    return text


def checked_label(text: str, *, what: str) -> str:
    """The name of a namespace or of an import, checked; raises RefusedError that says what it may have."""
    if not _LABEL.fullmatch(text):
        allowed = "lower-case letters, digits and - (at most 63, a letter or digit at both ends)"
        raise RefusedError(f'"{text}" is not the name of {what}; use {allowed}')
    return text


def check_annotation(name: str, text: str, kind: str, *, is_file: bool) -> None:
    """Pass if a Realm or a Catalog may have the annotation with this value; of others' annotations everything passes.

    is_file       for a manifest in a file, where an annotation can request the deletion
    raises        RefusedError that says what would be right
    """
    if not name.startswith(PREFIX):
        return
    if name not in ANNOTATIONS[kind]:
        known = (annotation for annotation in ANNOTATIONS[kind] if annotation != DELETE or is_file)
        raise RefusedError(f"unknown annotation; a {kind} may have: {', '.join(known)}")
    if name == DELETE and text not in ("true", "false"):
        raise RefusedError('must be "true" or "false", in quotes')
    if name in _ANNOTATION_VALUES:
        pattern, advice = _RUNS_OF_CATALOG if (kind, name) == ("Catalog", RUN_NOW) else _ANNOTATION_VALUES[name]
        if not pattern.fullmatch(text):
            raise RefusedError(f"must be {advice}")


def deletion_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The resource reduced to what its deletion needs; under Retain the hold of a purge does not matter either."""
    kind, metadata, spec = str(body.get("kind")), body.get("metadata", {}), body.get("spec")
    given = spec if isinstance(spec, Mapping) else {}
    kept = {name: given[name] for name in _DELETED.get(kind, ()) if name in given}
    if kept.get("deletionPolicy", "Retain") == "Retain":
        kept.pop("purgeHold", None)
    if kind == "Catalog":
        kept["storage"] = {"baseLocation": "file:///not/looked/at/"}
    annotations = metadata.get("annotations") or {}
    meant = {name: annotations[name] for name in _DELETING if name in annotations}
    return {**body, "spec": kept, "metadata": {**metadata, "annotations": meant}}


def as_deletion(manifest: Manifest) -> Manifest:
    """The manifest with the annotation that asks for the deletion of what it describes."""
    metadata = replace(manifest.metadata, annotations={**manifest.metadata.annotations, DELETE: "true"})
    return replace(manifest, metadata=metadata)


def checked_path(text: str) -> str:
    """The pattern, checked.

    raises        RefusedError that says what is wrong with it
    """
    return parse_pattern(text).text


def checked_namespace(elements: Sequence[str]) -> tuple[str, ...]:
    """The elements that prefix the keys of an import, checked.

    raises        RefusedError where no table could have a key below them
    """
    if "." in elements:
        raise RefusedError('an element of a namespace must not be "."')
    ContentKey((*elements, "t"))
    return tuple(elements)


def checked_location(text: str, folder: Path | None) -> str:
    """The location as an absolute URL; `./` is relative to the folder of the manifest.

    folder        None for a manifest without a folder
    raises        RefusedError that says what is wrong with it, and never repeats a password

    Variables are not expanded, and nothing is percent-decoded: the text is the name.
    """
    if re.match(r"[^/]*://[^/]*:[^/]*@", text):
        raise RefusedError("must not carry a password; give the process that reads it credentials of its own")
    is_relative = text.startswith("./")
    if is_relative and folder is None:
        raise RefusedError(f'"{text}" is beside no file here; write the whole URL')
    inner = text.removeprefix("./") if is_relative else text
    try:
        check_catalog_location(f"file:///{inner}" if is_relative else inner)
    except RefusedError as fault:
        said = str(fault).replace(f"file:///{inner}", text) if is_relative else str(fault)
        raise RefusedError(said + (", or ./folder for one beside this file" if said.endswith(EXAMPLE) else "")) from None
    location = text if folder is None or not is_relative else f"file://{folder.as_posix()}/{inner}"
    normalise_location(location)
    return location


@dataclass(frozen=True, slots=True, order=True)
class ManifestFault:
    """One fault in a manifest. ``path`` is empty where the whole file or document is meant."""

    file: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (where, self.path, self.message) if part)


class ManifestError(RefusedError):
    """Manifests that cannot be applied: every fault of all files at once, one a line."""

    def __init__(self, faults: Sequence[ManifestFault]) -> None:
        self.faults = tuple(sorted(faults))
        super().__init__("\n".join(str(fault) for fault in self.faults))
