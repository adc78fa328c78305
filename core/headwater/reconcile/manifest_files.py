"""Manifest files: parse and check documents of YAML and JSON. All faults are reported at once, and nothing is returned if there is one.

Each fault has its file, its line and the path of its field: a wrong value is noted, and reading continues.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from headwater.catalogs import ImportSpec, RefKind, checked_catalog_name, checked_ref_name
from headwater.errors import NotFoundError, RefusedError
from headwater.iceberg.survey_outcomes import TOLERABLE
from headwater.realms import HistoryRetention, KeptHistory, MaintenanceSchedule, checked_realm_id
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
    ManifestFault,
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
from headwater.reconcile.schedule import checked_cron, checked_zone
from headwater.settings import Settings, duration_text, is_duration, parse_duration
from headwater.store import RealmId

C = TypeVar("C", bound=str)
R = TypeVar("R")
T = TypeVar("T")

SUFFIXES = (".yaml", ".yml", ".json")
MOST_COMMITS = 1_000_000
MOST_PATTERNS = 32

_WHOLE = re.compile(r"[+-]?[0-9]+")
_SHAPES = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}
_TAG = "tag:yaml.org,2002:"
_NOWHERE = yaml.Mark("", 0, -1, 0, None, 0)
_REALM_FIELDS = (
    *("realmId", "state", "deletionPolicy", "deletionProtection", "driftPolicy", "purgeHold", "retention", "maintenance"),
    "properties",
)
_CATALOG_FIELDS = ("realm", "name", "storage", "defaultBranch", "imports", "deletionPolicy", "deletionProtection", "properties")
_IMPORT_FIELDS = (
    *("name", "locations", "mode", "schedule", "include", "exclude", "path", "namespace", "inventory", "verify"),
    *("tolerate", "gone"),
)


def load_manifests(
    paths: str | Path | Iterable[str | Path], *, settings: Settings | None = None, known_realms: KnownRealms | None = None
) -> tuple[Manifest, ...]:
    """Read and check manifests: all of them are returned, or none.

    paths         files or folders; of a folder the files `*.yaml`, `*.yml` and `*.json`, by name, without its subfolders
    settings      for the floor of the purge hold
    known_realms  realms of the store: a Catalog may name one of these too, and no resource may change its realm's id
    returns       the manifests by file and line
    raises        ManifestError with every fault; NotFoundError when a path is not there
    """
    reader = _ManifestReader(settings or Settings(), known_realms or {})
    files = _files([paths] if isinstance(paths, str | Path) else paths)
    for file in {file.resolve(): file for file in files}.values():  # a file named twice is one file
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
    node = _plain_node({**plain, "metadata": {**named, "annotations": annotations}})
    reader.add_document(_value(source, node, ""), None)
    return reader.finish()[0]


def _known(body: Mapping[str, Any], realm_id: RealmId | None) -> KnownRealms:
    """Assume that the realm of a Catalog exists: the reader of a single resource cannot check that."""
    spec, namespace = body.get("spec"), str(body.get("metadata", {}).get("namespace", "default"))
    name = spec.get("realm") if body.get("kind") == "Catalog" and isinstance(spec, Mapping) else None
    return {realm_id or RealmId(name): ResourceName(namespace, name)} if isinstance(name, str) else {}


@dataclass(slots=True)
class ManifestSource:
    """One file, and the faults that were found in it."""

    file: str
    faults: list[ManifestFault] = field(default_factory=list)

    def fault(self, line: int, path: str, message: str) -> None:
        self.faults.append(ManifestFault(self.file, line, path, message))


def _files(paths: Iterable[str | Path]) -> Iterable[Path]:
    for path in map(Path, paths):
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

    def read_file(self, file: Path) -> None:
        source = ManifestSource(str(file))
        self.sources.append(source)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            source.fault(0, "", f"cannot be read: {error}")
            return
        for value in _documents(text, source):
            self.add_document(value, file.resolve().parent)

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
        realm = spec["realm"].required().text()
        realm_id = self._named_realm(spec["realm"], document.metadata.namespace, realm, realms)
        value = spec["name"]
        named, name = (document.named, document.metadata.name) if value.node is None else (value, value.text())
        if name:
            named.apply_check(checked_catalog_name, name)
            self._claim(named, ("catalog", realm_id, name), f'catalog "{name}" of realm "{realm_id}"')
        return CatalogManifest(
            metadata=document.metadata,
            spec=CatalogSpec(
                realm=realm,
                realm_id=realm_id,
                name=name,
                base_location=storage["baseLocation"].required().checked(location),
                allowed_locations=tuple(item.checked(location) for item in storage["allowedLocations"].items()),
                default_branch=spec["defaultBranch"].checked(partial(checked_ref_name, RefKind.BRANCH)) or "main",
                imports=_imports(spec["imports"], location),
                deletion_policy=spec["deletionPolicy"].choice("Retain", "Purge"),
                deletion_protection=spec["deletionProtection"].flag(),
                properties=spec["properties"].texts(),
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


@dataclass(frozen=True, slots=True)
class YamlValue:
    """One value of a document. Every reading method returns the value, or notes a fault and returns an empty value of its type.

    node          None for a field that is not given, which reads as an empty value, or as the first choice
    """

    source: ManifestSource
    node: yaml.Node | None
    path: str
    line: int

    @property
    def word(self) -> str:
        """The value as it is written, whatever its type; empty where it is not given."""
        return "" if self.node is None else str(self.node.value)

    def fault(self, message: str) -> None:
        self.source.fault(self.line, self.path, message)

    def required(self) -> YamlValue:
        """This value; its absence is a fault."""
        if self.node is None:
            self.fault("is missing")
        return self

    def text(self) -> str:
        """A string that is not empty. YAML's own idea of an unquoted ``yes`` or ``1.10`` is refused, not guessed."""
        word = self._scalar("a text")
        if word is None:
            return ""
        if not self._is_tagged("str"):
            self.fault(f'expected a text, YAML reads {word} otherwise; write "{word}" in quotes')
        elif not word.strip():
            self.fault("expected a text, this one is empty")
        return word

    def checked(self, check: Callable[[str], str]) -> str:
        """What the check makes of a text; its refusal is a fault."""
        text = self.text()
        return (self.apply_check(check, text) or text) if text.strip() else text

    def apply_check(self, check: Callable[[T], R], value: T) -> R | None:
        """What the check makes of a value that was read from here; None after its refusal, which is a fault."""
        try:
            return check(value)
        except RefusedError as error:
            self.fault(str(error))
            return None

    def flag(self) -> bool:
        word = self._scalar("true or false")
        if word is not None and not (self._is_tagged("bool") and word in ("true", "false")):
            self.fault(f"expected true or false, not {self._shown()}")
        return word == "true"

    def whole(self, *, least: int, most: int) -> int | None:
        """A whole number within its bounds."""
        word = self._scalar("a whole number")
        if word is None:
            return None
        if not self._is_tagged("int") or not _WHOLE.fullmatch(word):
            unquoted = f"; write {word} without quotes" if _WHOLE.fullmatch(word) else ""
            self.fault(f"expected a whole number, not {self._shown()}{unquoted}")
            return None
        if not least <= int(word) <= most:
            self.fault(f"must be from {least} to {most}, not {word}")
        return int(word)

    def choice(self, *choices: C) -> C:
        """One of several words."""
        word = self._scalar("one of " + ", ".join(choices))
        if word is not None and word not in choices:
            near = _nearest(word, choices)
            self.fault(f"{self._shown()} is none of {', '.join(choices)}" + (f"; did you mean {near}?" if near else ""))
        return next((choice for choice in choices if choice == word), choices[0])

    def duration(self) -> float | None:
        """A duration in seconds."""
        word = self._scalar("a duration such as 30d")
        if word is None:
            return None
        try:
            return parse_duration(word)
        except RefusedError:
            likely = f"{self._shown()} is not a duration; write for example {_likely_duration(word)}"
            self.fault(f"{word} is longer than a hundred years" if is_duration(word) else likely)
            return None

    def items(self, *, least: int = 0) -> list[YamlValue]:
        """The members of a list, each with its own path."""
        if self.node is None:
            return []
        if not isinstance(self.node, yaml.SequenceNode):
            self.fault(f"expected a list, not {self._shown()}")
            return []
        if len(self.node.value) < least:
            self.fault(f"expected a list with at least {least}, this one has {len(self.node.value)}")
        return [_value(self.source, node, f"{self.path}[{number}]") for number, node in enumerate(self.node.value)]

    def pairs(self) -> dict[str, YamlValue]:
        """The entries of a mapping with free names, such as properties."""
        return {name: value for name, (_, value) in self._entries().items()}

    def texts(self) -> dict[str, str]:
        """A mapping from free names to texts."""
        return {name: value.free_text() for name, value in self.pairs().items()}

    def free_text(self) -> str:
        """A string that may be empty."""
        return "" if self._is_tagged("str") and not self.word else self.text()

    def block(self, *known: str) -> dict[str, YamlValue]:
        """The fields of a mapping, all of them: ``null`` counts as not given, as in Kubernetes.

        Every other name is a fault that suggests the nearest known one.
        """
        prefix = f"{self.path}." if self.path else ""
        fields = {name: YamlValue(self.source, None, prefix + name, self.line) for name in known}
        for name, (line, value) in self._entries().items():
            if name not in fields:
                near = _nearest(name, known)
                advice = f"did you mean {near}?" if near else "there is: " + ", ".join(known)
                self.source.fault(line, value.path, f"unknown field; {advice}")
            elif not value._is_tagged("null"):
                fields[name] = value
        return fields

    def _entries(self) -> dict[str, tuple[int, YamlValue]]:
        """The entries of a mapping by name, each with the line of its name."""
        if self.node is None:
            return {}
        if not isinstance(self.node, yaml.MappingNode):
            self.fault(f"expected a mapping, not {self._shown()}")
            return {}
        entries: dict[str, tuple[int, YamlValue]] = {}
        for key, node in self.node.value:
            line = key.start_mark.line + 1
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            value = _value(self.source, node, f"{self.path}.{name}" if self.path else name)
            if not name:
                self.source.fault(line, self.path, "the name of a field must be a text")
            elif name in entries:
                self.source.fault(line, value.path, f"given twice; it stands in line {entries[name][0]} already")
            else:
                entries[name] = (line, value)
        return entries

    def _is_tagged(self, tag: str) -> bool:
        return self.node is not None and self.node.tag == _TAG + tag

    def _scalar(self, expected: str) -> str | None:
        """The word of a single value; None where there is none, which is a fault unless it is not given."""
        if isinstance(self.node, yaml.ScalarNode) and not self._is_tagged("null"):
            return self.word
        if self.node is not None:
            self.fault(f"expected {expected}, not {self._shown()}")
        return None

    def _shown(self) -> str:
        if self._is_tagged("null"):
            return "null"
        if not isinstance(self.node, yaml.ScalarNode):
            return _SHAPES[type(self.node)]
        shown = self.word if len(self.word) <= 60 else self.word[:57] + "..."
        return f'"{shown}"' if self._is_tagged("str") else shown


def _value(source: ManifestSource, node: yaml.Node, path: str) -> YamlValue:
    return YamlValue(source, node, path, node.start_mark.line + 1)


def _documents(text: str, source: ManifestSource) -> list[YamlValue]:
    """The non-empty documents of one file; text that is no YAML is noted as a fault."""
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        source.fault(mark.line + 1 if mark else 0, "", f"not YAML: {error.problem or error.context}")
        return []
    except yaml.YAMLError as error:
        source.fault(0, "", f"not YAML: {' '.join(str(error).split())}")
        return []
    return [_value(source, node, "") for node in nodes if node is not None and node.tag != _TAG + "null"]


def _plain_node(value: object) -> yaml.Node:
    """A value that was parsed elsewhere, such as the body of a resource, as a node without a line."""
    match value:
        case Mapping():
            pairs = [(_plain_node(str(name)), _plain_node(inner)) for name, inner in value.items()]
            return yaml.MappingNode(_TAG + "map", pairs, _NOWHERE, _NOWHERE)
        case list() | tuple():
            return yaml.SequenceNode(_TAG + "seq", [_plain_node(inner) for inner in value], _NOWHERE, _NOWHERE)
    tag = {type(None): "null", bool: "bool", int: "int", float: "float"}.get(type(value), "str")
    return yaml.ScalarNode(_TAG + tag, str(value).lower() if tag == "bool" else str(value), _NOWHERE, _NOWHERE)


def _nearest(word: str, known: Sequence[str]) -> str | None:
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None


def _likely_duration(word: str) -> str:
    """Suggest a duration: ``30 days`` probably means ``30d``."""
    guess = re.fullmatch(r"([0-9]+)(ms|[smhd])?[a-z]*", re.sub(r"[\s_]+", "", word.lower()))
    return f"{guess[1]}{guess[2] or 's'}" if guess else "30d"
