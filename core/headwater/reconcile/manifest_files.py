"""Manifest files: parse and check documents of YAML and JSON. All faults are reported at once, and nothing is returned if there is one.

Each fault has its file, its line and the path of its field: a wrong value is noted, and reading continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from headwater.catalogs import (
    CatalogFiles,
    CatalogMaintenance,
    ImportSpec,
    LakeSchedule,
    RefKind,
    checked_catalog_name,
    checked_ref_name,
)
from headwater.errors import NotFoundError
from headwater.iceberg.survey_outcomes import TOLERABLE
from headwater.realms import HistoryRetention, KeptHistory, MaintenanceSchedule, checked_realm_id
from headwater.reconcile.access_manifests import read_catalog_roles, read_connection, read_realm_access
from headwater.reconcile.manifests import (
    ANNOTATIONS,
    API_VERSION,
    DELETE,
    PLAN,
    PREFIX,
    CatalogManifest,
    CatalogSpec,
    KnownRealms,
    Manifest,
    ManifestError,
    ManifestMetadata,
    RealmManifest,
    RealmSpec,
    ResourceName,
    check_annotation,
    checked_label,
    checked_location,
    checked_namespace,
    checked_path,
    checked_resource_name,
    deletion_of,
)
from headwater.reconcile.policy_manifests import read_policies
from headwater.reconcile.schedule import checked_cron, checked_zone
from headwater.reconcile.yaml_values import ManifestSource, YamlValue, node_value, plain_node, yaml_documents
from headwater.settings import Settings, duration_text
from headwater.store import RealmId

SUFFIXES = (".yaml", ".yml", ".json")
MOST_COMMITS = 1_000_000
MOST_PATTERNS = 32

_REALM_FIELDS = (
    *("realmId", "state", "deletionPolicy", "deletionProtection", "driftPolicy", "purgeHold", "retention", "maintenance"),
    *("properties", "principals", "roles"),
)
_CATALOG_FIELDS = (
    *("realm", "name", "storage", "defaultBranch", "imports", "deletionPolicy", "deletionProtection", "properties"),
    *("roles", "connection", "files", "maintenance", "policies"),
)
_IMPORT_FIELDS = (
    *("name", "locations", "mode", "schedule", "include", "exclude", "path", "namespace", "inventory", "verify"),
    *("tolerate", "gone"),
)


@dataclass(frozen=True, slots=True)
class ManifestText:
    """Manifests that are in no file: their text, and what errors call it. Relative paths in it are those of the working directory."""

    name: str
    text: str


def load_manifests(
    paths: str | Path | Iterable[str | Path | ManifestText],
    *,
    settings: Settings | None = None,
    known_realms: KnownRealms | None = None,
) -> tuple[Manifest, ...]:
    """Read and check manifests: all of them are returned, or none.

    paths         files, folders or texts; of a folder the files `*.yaml`, `*.yml` and `*.json`, by name, without its subfolders
    settings      for the floor of the purge hold
    known_realms  realms of the store: a Catalog may name one of these too, and no resource may change its realm's id
    returns       the manifests by file and line
    raises        ManifestError with every fault; NotFoundError when a path is not there
    """
    reader = _ManifestReader(settings or Settings(), known_realms or {})
    files = _files([paths] if isinstance(paths, str | Path) else paths)
    # a file named twice is one file
    for file in {file.resolve() if isinstance(file, Path) else file: file for file in files}.values():
        reader.read_file(file)
    return reader.finish()


def read_manifest(body: Mapping[str, Any], *, settings: Settings, realm_id: RealmId | None = None) -> Manifest:
    """The manifest of a resource in Kubernetes. A resource that is being deleted is a deletion, whatever is wrong with the rest.

    body          plain values; of the metadata only name, namespace, deletionTimestamp and our annotations count
    realm_id      the id of the realm that a Catalog names; default: the same as its name
    raises        ManifestError with every fault
    """
    try:
        return _read(body, settings, realm_id)
    except ManifestError:
        if not body.get("metadata", {}).get("deletionTimestamp"):
            raise
    return _read(deletion_of(body), settings, realm_id)


def _read(body: Mapping[str, Any], settings: Settings, realm_id: RealmId | None) -> Manifest:
    source = ManifestSource("")
    metadata = body.get("metadata", {})
    given = {name: value for name, value in (metadata.get("annotations") or {}).items() if name.startswith(PREFIX)}
    if DELETE in given:
        source.fault(0, f"metadata.annotations.{DELETE}", "is for files; here a resource is deleted by kubectl delete")
    annotations = {name: value for name, value in given.items() if name not in (DELETE, PLAN)}
    if metadata.get("deletionTimestamp"):
        annotations[DELETE] = "true"
    named = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    plain = {name: body[name] for name in ("apiVersion", "kind", "spec") if name in body}
    reader = _ManifestReader(settings, _known(body, realm_id), [source])
    node = plain_node({**plain, "metadata": {**named, "annotations": annotations}})
    reader.add_document(node_value(source, node, ""), None)
    return reader.finish()[0]


def _known(body: Mapping[str, Any], realm_id: RealmId | None) -> KnownRealms:
    """Assume that the realm of a Catalog exists: the reader of a single resource cannot check that."""
    spec, namespace = body.get("spec"), str(body.get("metadata", {}).get("namespace", "default"))
    name = spec.get("realm") if body.get("kind") == "Catalog" and isinstance(spec, Mapping) else None
    return {realm_id or RealmId(name): ResourceName(namespace, name)} if isinstance(name, str) else {}


def _files(paths: Iterable[str | Path | ManifestText]) -> Iterator[Path | ManifestText]:
    for path in paths:
        if isinstance(path, ManifestText):
            yield path
            continue
        path = Path(path)
        if path.is_dir():
            yield from sorted(
                file for file in path.iterdir() if file.suffix in SUFFIXES and not file.name.startswith(".") and file.is_file()
            )
        elif path.is_file():
            yield path
        else:
            raise NotFoundError(f"{path}: there is no such file or folder")


@dataclass(frozen=True, slots=True)
class _Document:
    """A document whose kind is known, and whose spec is not read yet. ``named`` is the value that names the resource."""

    value: YamlValue
    spec: YamlValue
    metadata: ManifestMetadata
    named: YamlValue
    folder: Path | None


@dataclass(slots=True)
class _ManifestReader:
    """Reads documents. Realms are checked before catalogs, which name them, in whatever order they stand."""

    settings: Settings
    known_realms: KnownRealms
    sources: list[ManifestSource] = field(default_factory=list)
    realm_documents: list[_Document] = field(default_factory=list)
    catalog_documents: list[_Document] = field(default_factory=list)
    places: dict[tuple[object, ...], str] = field(default_factory=dict)

    def read_file(self, file: Path | ManifestText) -> None:
        source = ManifestSource(file.name if isinstance(file, ManifestText) else str(file))
        self.sources.append(source)
        try:
            text = file.text if isinstance(file, ManifestText) else file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            source.fault(0, "", f"cannot be read: {error}")
            return
        folder = Path.cwd() if isinstance(file, ManifestText) else file.resolve().parent
        for value in yaml_documents(text, source):
            self.add_document(value, folder)

    def finish(self) -> tuple[Manifest, ...]:
        """The manifests, or ManifestError with every fault."""
        realms = [self._realm(document) for document in self.realm_documents]
        ids = {realm.metadata.resource: realm.spec.realm_id for realm in realms}
        manifests: list[Manifest] = [*realms, *(self._catalog(document, ids) for document in self.catalog_documents)]
        faults = [fault for source in self.sources for fault in source.faults]
        if faults:
            raise ManifestError(faults)
        order = [source.file for source in self.sources]
        return tuple(sorted(manifests, key=lambda manifest: (order.index(manifest.file), manifest.line)))

    def add_document(self, value: YamlValue, folder: Path | None) -> None:
        fields = value.block("apiVersion", "kind", "metadata", "spec")
        fields["apiVersion"].required().choice(API_VERSION)
        fields["kind"].required().choice("Realm", "Catalog")
        kind = fields["kind"].word
        if kind not in ANNOTATIONS:
            return
        metadata = fields["metadata"].block("name", "namespace", "labels", "annotations")
        named = value if metadata["name"].node is None else metadata["name"]
        document = _Document(value, fields["spec"], _metadata(metadata, kind), named, folder)
        if document.metadata.name:
            self._claim(named, (kind, document.metadata.resource), f"{kind} {document.metadata.resource}")
        (self.realm_documents if kind == "Realm" else self.catalog_documents).append(document)

    def _claim(self, value: YamlValue, key: tuple[object, ...], what: str) -> None:
        """Note a fault if another manifest has claimed the same key."""
        here = f"{value.source.file}:{value.line}"
        first = self.places.setdefault(key, here)
        if first != here:
            value.fault(f"{what} is in {first} already; each may be given once")

    def _realm(self, document: _Document) -> RealmManifest:
        spec = document.spec.block(*_REALM_FIELDS)
        declares_access = any(spec[name].node is not None for name in ("principals", "roles"))
        principals, roles = read_realm_access(spec["principals"], spec["roles"]) if declares_access else ((), ())
        return RealmManifest(
            metadata=document.metadata,
            spec=RealmSpec(
                realm_id=self._realm_id(document, spec["realmId"]),
                state=spec["state"].choice("Active", "Inactive"),
                deletion_policy=spec["deletionPolicy"].choice("Retain", "Purge"),
                deletion_protection=spec["deletionProtection"].flag(),
                drift_policy=spec["driftPolicy"].choice("Correct", "Report"),
                purge_hold_seconds=self._purge_hold(spec["purgeHold"]),
                retention=_retention(spec["retention"]),
                maintenance=_maintenance(spec["maintenance"]),
                properties=spec["properties"].texts(),
                principals=principals,
                roles=roles,
            ),
            file=document.value.source.file,
            line=document.value.line,
        )

    def _realm_id(self, document: _Document, value: YamlValue) -> RealmId:
        named, text = (document.named, document.metadata.name) if value.node is None else (value, value.text())
        if not text:
            return RealmId("")
        named.apply_check(checked_realm_id, text)
        self._claim(named, ("realm", text), f'realm id "{text}"')
        managed = [realm_id for realm_id, resource in self.known_realms.items() if resource == document.metadata.resource]
        if managed and text not in managed:
            named.fault(
                f'the realm id cannot change: this resource manages the realm "{managed[0]}"; write realmId: {managed[0]}, '
                "or give the other realm a resource of its own"
            )
        return RealmId(text)

    def _purge_hold(self, value: YamlValue) -> float | None:
        seconds, floor = value.duration(), self.settings.purge_hold_floor_seconds
        if seconds is not None and seconds < floor and not self.settings.unsafe_short_graces:
            value.fault(
                f"must be at least {duration_text(floor)} (a realm handle's TTL plus a commit's time-out), not {duration_text(seconds)}; "
                "only the setting unsafe_short_graces lowers it"
            )
        return seconds

    def _catalog(self, document: _Document, realms: Mapping[ResourceName, RealmId]) -> CatalogManifest:
        spec, location = document.spec.block(*_CATALOG_FIELDS), partial(checked_location, folder=document.folder)
        storage = spec["storage"].block("baseLocation", "allowedLocations")
        base = storage["baseLocation"].required().checked(location)
        allowed = tuple(item.checked(location) for item in storage["allowedLocations"].items())
        realm = spec["realm"].required().text()
        realm_id = self._named_realm(spec["realm"], document.metadata.namespace, realm, realms)
        value = spec["name"]
        named, name = (document.named, document.metadata.name) if value.node is None else (value, value.text())
        roles = read_catalog_roles(spec["roles"])
        if name:
            named.apply_check(checked_catalog_name, name)
            self._claim(named, ("catalog", realm_id, name), f'catalog "{name}" of realm "{realm_id}"')
        return CatalogManifest(
            metadata=document.metadata,
            spec=CatalogSpec(
                realm=realm,
                realm_id=realm_id,
                name=name,
                base_location=base,
                allowed_locations=allowed,
                default_branch=spec["defaultBranch"].checked(partial(checked_ref_name, RefKind.BRANCH)) or "main",
                imports=_imports(spec["imports"], location),
                deletion_policy=spec["deletionPolicy"].choice("Retain", "Purge"),
                deletion_protection=spec["deletionProtection"].flag(),
                properties=spec["properties"].texts(),
                roles=roles,
                connection=read_connection(spec["connection"], roles),
                files=_catalog_files(spec["files"], location, base, allowed),
                maintenance=_lake_maintenance(spec["maintenance"]),
                policies=read_policies(spec["policies"]),
            ),
            file=document.value.source.file,
            line=document.value.line,
        )

    def _named_realm(self, value: YamlValue, namespace: str, name: str, realms: Mapping[ResourceName, RealmId]) -> RealmId:
        """The id of a named Realm resource: one of these manifests, or one that the store has."""
        resource = ResourceName(namespace, name)
        if resource in realms:
            return realms[resource]
        for realm_id, manager in self.known_realms.items():
            if manager == resource or (manager is None and realm_id == name):
                return realm_id
        if name:
            names = sorted(known.name for known in realms if known.namespace == namespace and known.name)
            advice = f"there is: {', '.join(names)}" if names else "there is none"
            value.fault(f'"{name}" is no Realm in namespace {namespace}, neither in these manifests nor in the store; {advice}')
        return RealmId(name)


def _metadata(fields: Mapping[str, YamlValue], kind: str) -> ManifestMetadata:
    annotations = fields["annotations"].pairs()
    for name, value in annotations.items():
        value.apply_check(partial(check_annotation, name, kind=kind, is_file=bool(value.source.file)), value.word)
    namespace = fields["namespace"]
    return ManifestMetadata(
        name=fields["name"].required().checked(checked_resource_name),
        namespace="default" if namespace.node is None else namespace.checked(partial(checked_label, what="a namespace")),
        labels=fields["labels"].texts(),
        annotations={name: value.free_text() for name, value in annotations.items()},
    )


def _retention(value: YamlValue) -> HistoryRetention:
    retention = value.block("content", "references", "patterns")
    content = retention["content"].block("age", "commits")
    patterns = retention["patterns"].items()
    if len(patterns) > MOST_PATTERNS:
        patterns[MOST_PATTERNS].fault(f"there may be {MOST_PATTERNS} patterns, not {len(patterns)}")
    return HistoryRetention(
        content_age_seconds=content["age"].duration(),
        content_commits=content["commits"].whole(least=1, most=MOST_COMMITS),
        reference_commits=retention["references"].block("commits")["commits"].whole(least=1, most=MOST_COMMITS),
        references=tuple(_kept_history(item.block("pattern", "commits", "age")) for item in patterns),
    )


def _kept_history(fields: Mapping[str, YamlValue]) -> KeptHistory:
    return KeptHistory(
        pattern=fields["pattern"].required().text(),
        commits=fields["commits"].required().whole(least=1, most=MOST_COMMITS) or 1,
        age_seconds=fields["age"].duration() or 0.0,
    )


def _maintenance(value: YamlValue) -> MaintenanceSchedule:
    fields = value.block("schedule", "timeZone", "suspend")
    return MaintenanceSchedule(
        schedule=fields["schedule"].checked(checked_cron),
        time_zone=fields["timeZone"].checked(checked_zone) or "UTC",
        suspend=fields["suspend"].flag(),
    )


def _lake_maintenance(value: YamlValue) -> CatalogMaintenance:
    fields = value.block("expireSnapshots", "reportFiles")
    return CatalogMaintenance(
        expire_snapshots=_lake_schedule(fields["expireSnapshots"]), report_files=_lake_schedule(fields["reportFiles"])
    )


def _lake_schedule(value: YamlValue) -> LakeSchedule | None:
    if value.node is None:
        return None
    fields = value.block("schedule", "suspend")
    return LakeSchedule(schedule=fields["schedule"].checked(checked_cron), suspend=fields["suspend"].flag())


def _catalog_files(value: YamlValue, location: Callable[[str], str], base: str, allowed: tuple[str, ...]) -> CatalogFiles:
    """What is said of files, whose places lie in the locations of the catalog."""
    places = []
    for item in value.block("places")["places"].items():
        place = item.checked(location)
        if place and base:
            item.apply_check(lambda text: CatalogFiles(places=(text,)).check_inside(base, allowed), place)
        places.append(place)
    return CatalogFiles(places=tuple(places))


def _imports(value: YamlValue, location: Callable[[str], str]) -> tuple[ImportSpec, ...]:
    lines: dict[str, int] = {}
    imports = []
    for item in value.items():
        spec = _import(item.block(*_IMPORT_FIELDS), location)
        if spec.name and spec.name in lines:
            item.fault(f'another import is called "{spec.name}", in line {lines[spec.name]}; give each a name of its own')
        lines.setdefault(spec.name, item.line)
        imports.append(spec)
    return tuple(imports)


def _import(fields: Mapping[str, YamlValue], location: Callable[[str], str]) -> ImportSpec:
    mode: Literal["once", "sync"] = fields["mode"].choice("once", "sync")
    schedule = fields["schedule"].checked(checked_cron) or None
    if mode == "once" and fields["schedule"].node is not None:
        fields["schedule"].fault("an import of mode once has no schedule; write mode: sync, or take the schedule away")
    gone: Literal["report", "drop"] = fields["gone"].choice("report", "drop")
    if mode == "once" and gone == "drop":
        fields["gone"].fault("an import of mode once drops nothing; write mode: sync, or gone: report")
    return ImportSpec(
        name=fields["name"].required().checked(partial(checked_label, what="an import")),
        locations=tuple(item.checked(location) for item in fields["locations"].required().items(least=1)),
        mode=mode,
        schedule=schedule,
        include=tuple(item.text() for item in fields["include"].items()),
        exclude=tuple(item.text() for item in fields["exclude"].items()),
        path=fields["path"].checked(checked_path) or None,
        namespace=_namespace(fields["namespace"]),
        inventory=fields["inventory"].checked(location) or None,
        verify=fields["verify"].choice("metadata", "manifests", "files"),
        tolerate=tuple(item.choice(*sorted(TOLERABLE)) for item in fields["tolerate"].items()),
        gone=gone,
    )


def _namespace(value: YamlValue) -> tuple[str, ...]:
    """The elements of a namespace, which must leave room in a key for a table below them."""
    elements = tuple(item.text() for item in value.items())
    if all(map(str.strip, elements)):
        value.apply_check(checked_namespace, elements)
    return elements
