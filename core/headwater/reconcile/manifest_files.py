"""Manifest files: parse and check documents of YAML and JSON. All faults are reported at once, and nothing is returned if there is one.

Also checks the patterns, namespaces and locations that a manifest may contain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from headwater.catalogs import ContentKey, ImportSpec, RefKind, checked_catalog_name, checked_ref_name, normalise_location
from headwater.errors import NotFoundError, RefusedError
from headwater.iceberg.layout import parse_pattern
from headwater.iceberg.survey_outcomes import TOLERABLE
from headwater.realms import HistoryRetention, KeptHistory, MaintenanceSchedule, checked_realm_id
from headwater.reconcile.manifests import (
    ADOPT,
    API_VERSION,
    CONFIRM_PURGE,
    DELETE,
    PLAN,
    RELEASE_TO,
    ROTATE_CREDENTIALS,
    RUN_NOW,
    CatalogManifest,
    CatalogSpec,
    KnownRealms,
    Manifest,
    ManifestMetadata,
    RealmManifest,
    RealmSpec,
    ResourceName,
)
from headwater.reconcile.schedule import checked_cron, checked_zone
from headwater.reconcile.yaml_values import ManifestError, YamlBlock, YamlSource, YamlValue, plain_value, read_documents
from headwater.settings import Settings, duration_text
from headwater.store import RealmId


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


_URL = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)")
_EXAMPLE = "write a URL such as s3://bucket/folder/, or ./folder for one beside this file"


def checked_location(value: YamlValue, folder: Path | None) -> str:
    """The location as an absolute URL; `./` is relative to the folder of the manifest. Faults are noted in the value.

    folder        None for a manifest without a folder

    Variables are not expanded, and nothing is percent-decoded: the text is the name.
    """
    text = value.text()
    if not text.strip():
        return text
    if re.match(r"[^/]*://[^/]*:[^/]*@", text):
        value.fault("must not carry a password; give the process that reads it credentials of its own")
        return ""  # the text is not shown either
    fault = "is beside no file here; write the whole URL" if folder is None and text.startswith("./") else _fault(text)
    if fault:
        value.fault(f'"{text}" {fault}')
        return text
    location = text
    if folder is not None and text.startswith("./"):
        location = f"file://{folder.as_posix()}/{text.removeprefix('./')}"
    try:
        normalise_location(location)
    except RefusedError as error:
        value.fault(str(error))
    return location


def _fault(text: str) -> str | None:
    if re.search(r"\s|[\x00-\x1f]", text):
        return f"is not a location: it has a space in it; {_EXAMPLE}"
    if re.search(r"[${}]", text):
        return "is not a location: variables are not filled in; write the value itself"
    if {"..", "."} & set(text.removeprefix("./").split("/")):
        return 'is not a location: it must not have the segments "." and ".."; write where it leads'
    return None if text.startswith("./") else _url_fault(text)


def _url_fault(text: str) -> str | None:
    url = _URL.fullmatch(text)
    if url is None:
        return f"is not a location; write file://{text}" if text.startswith("/") else f"is not a location; {_EXAMPLE}"
    scheme, rest = url.groups()
    if "?" in rest or "#" in rest:
        return "is not a location: it must not have a query or a fragment"
    if scheme == "file" and not rest.startswith("/"):
        return f"is not a location: a file URL has three slashes; write file:///{rest}"
    if scheme != "file" and (not rest or rest.startswith("/")):
        return f"is not a location: the name after {scheme}:// is missing"
    return None


SUFFIXES = (".yaml", ".yml", ".json")
PREFIX = "headwater.dev/"
ANNOTATIONS = {
    "Realm": (ADOPT, CONFIRM_PURGE, DELETE, RELEASE_TO, ROTATE_CREDENTIALS, RUN_NOW),
    "Catalog": (ADOPT, CONFIRM_PURGE, DELETE),
}
DELETED = {
    "Realm": ("realmId", "state", "deletionPolicy", "deletionProtection", "driftPolicy", "purgeHold"),
    "Catalog": ("realm", "name", "deletionPolicy", "deletionProtection"),
}
"""The fields of a spec that matter for a deletion."""
DELETING = {"Realm": (ADOPT, CONFIRM_PURGE), "Catalog": (ADOPT, CONFIRM_PURGE)}
"""The annotations that matter for a deletion."""
MOST_COMMITS = 1_000_000
MOST_PATTERNS = 32

_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_RUN_NOW = re.compile(r"gc(:.{1,63})?")
_TAKER = re.compile(rf"{_LABEL.pattern}/{_RESOURCE.pattern}")
_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,63}")


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
    loading = _Loading(settings or Settings(), known_realms or {})
    files = _files([paths] if isinstance(paths, str | Path) else paths)
    for file in {file.resolve(): file for file in files}.values():  # a file named twice is one file
        loading.read_file(file)
    return loading.finish()


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
    return _read(_deletion_of(body), settings, realm_id)


def _read(body: Mapping[str, Any], settings: Settings, realm_id: RealmId | None) -> Manifest:
    source = YamlSource("")
    metadata = body.get("metadata", {})
    given = {name: value for name, value in (metadata.get("annotations") or {}).items() if name.startswith(PREFIX)}
    if DELETE in given:
        source.fault(0, f"metadata.annotations.{DELETE}", "is for files; here a resource is deleted by kubectl delete")
    annotations = {name: value for name, value in given.items() if name not in (DELETE, PLAN)}
    if metadata.get("deletionTimestamp"):
        annotations[DELETE] = "true"
    named = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    plain = {name: body[name] for name in ("apiVersion", "kind", "spec") if name in body}
    loading = _Loading(settings, _known(body, realm_id), [source])
    loading.sort(plain_value({**plain, "metadata": {**named, "annotations": annotations}}, source), None)
    return loading.finish()[0]


def _deletion_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The resource reduced to what its deletion needs; under Retain the hold of a purge does not matter either."""
    kind, metadata, spec = str(body.get("kind")), body.get("metadata", {}), body.get("spec")
    given = spec if isinstance(spec, Mapping) else {}
    kept = {name: given[name] for name in DELETED.get(kind, ()) if name in given}
    if kept.get("deletionPolicy", "Retain") == "Retain":
        kept.pop("purgeHold", None)
    if kind == "Catalog":
        kept["storage"] = {"baseLocation": "file:///not/looked/at/"}
    annotations = metadata.get("annotations") or {}
    meant = {name: annotations[name] for name in DELETING.get(kind, ()) if name in annotations}
    return {**body, "spec": kept, "metadata": {**metadata, "annotations": meant}}


def _known(body: Mapping[str, Any], realm_id: RealmId | None) -> KnownRealms:
    """Assume that the realm of a Catalog exists: the reader of a single resource cannot check that."""
    spec, namespace = body.get("spec"), str(body.get("metadata", {}).get("namespace", "default"))
    name = spec.get("realm") if body.get("kind") == "Catalog" and isinstance(spec, Mapping) else None
    return {realm_id or RealmId(name): ResourceName(namespace, name)} if isinstance(name, str) else {}


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
    """A document whose kind is known, and whose fields are not read yet."""

    block: YamlBlock
    metadata: ManifestMetadata
    named: YamlValue
    folder: Path | None


@dataclass(slots=True)
class _Loading:
    """The state of a load. Realms are checked before catalogs, which name them, in whatever order they stand."""

    settings: Settings
    known_realms: KnownRealms
    sources: list[YamlSource] = field(default_factory=list)
    realm_documents: list[_Document] = field(default_factory=list)
    catalog_documents: list[_Document] = field(default_factory=list)
    places: dict[tuple[object, ...], str] = field(default_factory=dict)

    def read_file(self, file: Path) -> None:
        source = YamlSource(str(file))
        self.sources.append(source)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            source.fault(0, "", f"cannot be read: {error}")
            return
        for value in read_documents(text, source):
            self.sort(value, file.resolve().parent)

    def finish(self) -> tuple[Manifest, ...]:
        """The manifests, or ManifestError with every fault."""
        realms: dict[ResourceName, RealmId] = {}
        manifests: list[Manifest] = []
        for document in self.realm_documents:
            realm = self._realm(document)
            realms.setdefault(realm.metadata.resource, realm.spec.realm_id)
            manifests.append(realm)
        manifests += [self._catalog(document, realms) for document in self.catalog_documents]
        faults = [fault for source in self.sources for fault in source.faults]
        if faults:
            raise ManifestError(faults)
        order = [source.file for source in self.sources]
        return tuple(sorted(manifests, key=lambda manifest: (order.index(manifest.file), manifest.line)))

    def sort(self, value: YamlValue, folder: Path | None) -> None:
        block = value.block("apiVersion", "kind", "metadata", "spec")
        block.required("apiVersion", lambda version: version.choice(API_VERSION), "")
        block.required("kind", lambda kind: kind.choice("Realm", "Catalog"), "")
        kind = block.given("kind", lambda kind: str(kind.node.value), "")
        if kind not in ANNOTATIONS:
            return
        fields = block.block("metadata", "name", "namespace", "labels", "annotations")
        document = _Document(block, _metadata(fields, kind), fields.find_value("name") or value, folder)
        if document.metadata.name:
            self._claim(document.named, (kind, document.metadata.resource), f"{kind} {document.metadata.resource}")
        (self.realm_documents if kind == "Realm" else self.catalog_documents).append(document)

    def _claim(self, value: YamlValue, key: tuple[object, ...], what: str) -> None:
        """Note a fault if another manifest has claimed the same key."""
        here = f"{value.source.file}:{value.line}"
        first = self.places.setdefault(key, here)
        if first != here:
            value.fault(f"{what} is in {first} already; each may be given once")

    def _realm(self, document: _Document) -> RealmManifest:
        spec = document.block.block(
            "spec",
            *(
                "realmId",
                "state",
                "deletionPolicy",
                "deletionProtection",
                "driftPolicy",
                "purgeHold",
                "retention",
                "maintenance",
                "properties",
            ),
        )
        return RealmManifest(
            metadata=document.metadata,
            spec=RealmSpec(
                realm_id=self._realm_id(document, spec),
                state=spec.given("state", lambda value: _one_of(value, "Active", "Inactive"), "Active"),
                deletion_policy=spec.given("deletionPolicy", lambda value: _one_of(value, "Retain", "Purge"), "Retain"),
                deletion_protection=spec.given("deletionProtection", YamlValue.flag, False),
                drift_policy=spec.given("driftPolicy", lambda value: _one_of(value, "Correct", "Report"), "Correct"),
                purge_hold_seconds=spec.given("purgeHold", self._purge_hold, None),
                retention=_retention(spec),
                maintenance=_maintenance(spec),
                properties=spec.given("properties", YamlValue.texts, {}),
            ),
            file=document.block.source.file,
            line=document.block.line,
        )

    def _realm_id(self, document: _Document, spec: YamlBlock) -> RealmId:
        named = spec.find_value("realmId") or document.named
        text = spec.given("realmId", YamlValue.text, document.metadata.name)
        if not text:
            return RealmId("")
        _note_refusal(named, checked_realm_id, text)
        self._claim(named, ("realm", text), f'realm id "{text}"')
        managed = [realm_id for realm_id, resource in self.known_realms.items() if resource == document.metadata.resource]
        if managed and text not in managed:
            named.fault(
                f'the realm id cannot change: this resource manages the realm "{managed[0]}"; write realmId: {managed[0]}, '
                "or give the other realm a resource of its own"
            )
        return RealmId(text)

    def _purge_hold(self, value: YamlValue) -> float:
        seconds = value.duration()
        floor = self.settings.purge_hold_floor_seconds
        if seconds < floor and not self.settings.unsafe_short_graces:
            value.fault(
                f"must be at least {duration_text(floor)} (a realm handle's TTL plus a commit's time-out), not {duration_text(seconds)}; "
                "only the setting unsafe_short_graces lowers it"
            )
        return seconds

    def _catalog(self, document: _Document, realms: Mapping[ResourceName, RealmId]) -> CatalogManifest:
        block, folder = document.block, document.folder
        spec = block.block(
            "spec", "realm", "name", "storage", "defaultBranch", "imports", "deletionPolicy", "deletionProtection", "properties"
        )
        storage = spec.block("storage", "baseLocation", "allowedLocations")
        realm = spec.required("realm", YamlValue.text, "")
        realm_id = self._named_realm(spec, document.metadata.namespace, realm, realms)
        named = spec.find_value("name") or document.named
        name = spec.given("name", YamlValue.text, document.metadata.name)
        if name:
            _note_refusal(named, checked_catalog_name, name)
            self._claim(named, ("catalog", realm_id, name), f'catalog "{name}" of realm "{realm_id}"')
        return CatalogManifest(
            metadata=document.metadata,
            spec=CatalogSpec(
                realm=realm,
                realm_id=realm_id,
                name=name,
                base_location=storage.required("baseLocation", lambda value: checked_location(value, folder), ""),
                allowed_locations=_many(storage, "allowedLocations", lambda value: checked_location(value, folder)),
                default_branch=spec.given("defaultBranch", lambda value: _checked(value, _branch_name), "main"),
                imports=_imports(spec, folder),
                deletion_policy=spec.given("deletionPolicy", lambda value: _one_of(value, "Retain", "Purge"), "Retain"),
                deletion_protection=spec.given("deletionProtection", YamlValue.flag, False),
                properties=spec.given("properties", YamlValue.texts, {}),
            ),
            file=block.source.file,
            line=block.line,
        )

    def _named_realm(self, spec: YamlBlock, namespace: str, name: str, realms: Mapping[ResourceName, RealmId]) -> RealmId:
        """The id of a named Realm resource: one of these manifests, or one that the store has."""
        resource = ResourceName(namespace, name)
        if resource in realms:
            return realms[resource]
        for realm_id, manager in self.known_realms.items():
            if manager == resource or (manager is None and realm_id == name):
                return realm_id
        value = spec.find_value("realm")
        if value is not None and name:
            there = sorted(known.name for known in realms if known.namespace == namespace and known.name)
            advice = f"there is: {', '.join(there)}" if there else "there is none"
            value.fault(f'"{name}" is no Realm in namespace {namespace}, neither in these manifests nor in the store; {advice}')
        return RealmId(name)


def _metadata(fields: YamlBlock, kind: str) -> ManifestMetadata:
    annotated = fields.pairs("annotations")
    for key, value in annotated.items():
        if key.startswith(PREFIX):
            _check_annotation(key, value, kind)
    return ManifestMetadata(
        name=fields.required("name", lambda value: _matched(value, _RESOURCE, "the name of a resource"), ""),
        namespace=fields.given("namespace", lambda value: _matched(value, _LABEL, "the name of a namespace"), "default"),
        labels=fields.given("labels", YamlValue.texts, {}),
        annotations={key: value.free_text() for key, value in annotated.items()},
    )


def _check_annotation(key: str, value: YamlValue, kind: str) -> None:
    known = ANNOTATIONS[kind]
    if key not in known:
        here = (name for name in known if name != DELETE or value.source.file)  # an annotation does not delete a resource
        value.fault(f"unknown annotation; a {kind} may have: {', '.join(here)}")
    elif key == DELETE and value.node.value not in ("true", "false"):
        value.fault('must be "true" or "false", in quotes')
    elif key == RUN_NOW and not _RUN_NOW.fullmatch(str(value.node.value)):
        value.fault("must be gc, or gc:<any word of at most 63 characters> to ask again")
    elif key == RELEASE_TO and not _TAKER.fullmatch(str(value.node.value)):
        value.fault("must be <namespace>/<name> of the Realm that may take the realm over")
    elif key == ROTATE_CREDENTIALS and not _TOKEN.fullmatch(str(value.node.value)):
        value.fault("must be a word of your own, at most 63 letters, digits, - _ and ., another one for each rotation")


def _retention(spec: YamlBlock) -> HistoryRetention:
    retention = spec.block("retention", "content", "references", "patterns")
    content = retention.block("content", "age", "commits")
    references = retention.block("references", "commits")
    return HistoryRetention(
        content_age_seconds=content.given("age", YamlValue.duration, None),
        content_commits=content.given("commits", _commits, None),
        reference_commits=references.given("commits", _commits, None),
        references=_patterns(retention),
    )


def _patterns(retention: YamlBlock) -> tuple[KeptHistory, ...]:
    items = retention.items("patterns")
    if len(items) > MOST_PATTERNS:
        items[MOST_PATTERNS].fault(f"there may be {MOST_PATTERNS} patterns, not {len(items)}")
    return tuple(_kept_history(item.block("pattern", "commits", "age")) for item in items)


def _kept_history(block: YamlBlock) -> KeptHistory:
    return KeptHistory(
        pattern=block.required("pattern", YamlValue.text, ""),
        commits=block.required("commits", _commits, 1),
        age_seconds=block.given("age", YamlValue.duration, 0.0),
    )


def _maintenance(spec: YamlBlock) -> MaintenanceSchedule:
    maintenance = spec.block("maintenance", "schedule", "timeZone", "suspend")
    return MaintenanceSchedule(
        schedule=maintenance.given("schedule", lambda value: _checked(value, checked_cron), ""),
        time_zone=maintenance.given("timeZone", lambda value: _checked(value, checked_zone), "UTC"),
        suspend=maintenance.given("suspend", YamlValue.flag, False),
    )


def _imports(spec: YamlBlock, folder: Path | None) -> tuple[ImportSpec, ...]:
    names: dict[str, int] = {}
    imports = []
    for value in spec.items("imports"):
        block = value.block(*_IMPORT_FIELDS)
        found = _import(block, folder)
        if found.name and found.name in names:
            value.fault(f'another import is called "{found.name}", in line {names[found.name]}; give each a name of its own')
        names.setdefault(found.name, value.line)
        imports.append(found)
    return tuple(imports)


_IMPORT_FIELDS = (
    *("name", "locations", "mode", "schedule", "include", "exclude", "path", "namespace", "inventory", "verify"),
    *("tolerate", "gone"),
)


def _import(block: YamlBlock, folder: Path | None) -> ImportSpec:
    mode: Literal["once", "sync"] = block.given("mode", lambda value: _one_of(value, "once", "sync"), "once")
    schedule = block.given("schedule", lambda value: _checked(value, checked_cron), None)
    if mode == "once" and schedule is not None:
        block.values["schedule"].fault("an import of mode once has no schedule; write mode: sync, or take the schedule away")
    gone: Literal["report", "drop"] = block.given("gone", lambda value: _one_of(value, "report", "drop"), "report")
    if mode == "once" and gone == "drop":
        block.values["gone"].fault("an import of mode once drops nothing; write mode: sync, or gone: report")
    return ImportSpec(
        name=block.required("name", lambda value: _matched(value, _LABEL, "the name of an import"), ""),
        locations=block.required("locations", lambda value: _locations(value, folder), ()),
        mode=mode,
        schedule=schedule,
        include=_many(block, "include", YamlValue.text),
        exclude=_many(block, "exclude", YamlValue.text),
        path=block.given("path", lambda value: _checked(value, checked_path), None),
        namespace=block.given("namespace", _namespace, ()),
        inventory=block.given("inventory", lambda value: checked_location(value, folder), None),
        verify=block.given("verify", lambda value: _one_of(value, "metadata", "manifests", "files"), "metadata"),
        tolerate=_many(block, "tolerate", lambda value: _one_of(value, *sorted(TOLERABLE))),
        gone=gone,
    )


def _locations(value: YamlValue, folder: Path | None) -> tuple[str, ...]:
    return tuple(checked_location(item, folder) for item in value.items(least=1))


def _namespace(value: YamlValue) -> tuple[str, ...]:
    """The elements of a namespace, which must leave room in a key for a table below them."""
    elements = tuple(item.text() for item in value.items())
    if all(map(str.strip, elements)):
        _note_refusal(value, lambda _: ".".join(checked_namespace(elements)), "")
    return elements


def _many(block: YamlBlock, name: str, read: Callable[[YamlValue], str]) -> tuple[str, ...]:
    return tuple(read(item) for item in block.items(name))


def _commits(value: YamlValue) -> int:
    return value.whole(least=1, most=MOST_COMMITS)


def _one_of(value: YamlValue, *choices: str) -> Any:
    """One of the words; the caller's type is the Literal of the same words."""
    return cast(Any, value.choice(*choices))


def _checked(value: YamlValue, check: Callable[[str], str]) -> str:
    text = value.text()
    return _note_refusal(value, check, text) if text.strip() else text


def _branch_name(text: str) -> str:
    return checked_ref_name(RefKind.BRANCH, text)


def _note_refusal(value: YamlValue, check: Callable[[str], str], text: str) -> str:
    try:
        return check(text)
    except RefusedError as error:
        value.fault(str(error))
        return text


def _matched(value: YamlValue, pattern: re.Pattern[str], what: str) -> str:
    text = value.text()
    if text.strip() and not pattern.fullmatch(text):
        value.fault(f'"{text}" is not {what}; {_ALLOWED[pattern]}')
    return text


_ALLOWED = {
    _RESOURCE: "use lower-case letters, digits, - and . (at most 253, a letter or digit at both ends)",
    _LABEL: "use lower-case letters, digits and - (at most 63, a letter or digit at both ends)",
}
