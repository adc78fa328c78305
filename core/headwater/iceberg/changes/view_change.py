"""New views, and changes of a view: its 8 updates, and the versions and queries that it keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from headwater.iceberg.changes import table_updates as updates_of
from headwater.iceberg.changes.change_errors import ChangeFormError, IllegalChangeError
from headwater.iceberg.changes.document_entries import (
    Entry,
    changed_properties,
    check_integer_property,
    check_result,
    entries_of,
    integer_property,
    members_of,
    plain_entry,
    read_properties,
    readable_document,
    schema_form,
    stripped_location,
    time_in,
)
from headwater.iceberg.changes.request_elements import form_faults, read_element, read_shape
from headwater.iceberg.changes.table_updates import LAST_ADDED
from headwater.iceberg.changes.view_updates import AddViewVersionUpdate, SetCurrentViewVersionUpdate
from headwater.iceberg.spec import Document, check_view
from headwater.iceberg.spec.document_shape import JsonRecord
from headwater.iceberg.spec.schema_rules import SingleSchema, check_schema
from headwater.iceberg.spec.view_rules import TYPES_OF, ViewVersion

HISTORY_SIZE = "version.history.num-entries"
DROP_DIALECT = "replace.drop-dialect.allowed"
_DEFAULT_HISTORY_SIZE = 10
_FORMAT_VERSION = 1
_FIRST_VERSION_ID = 1
_SAME_VERSION = ("summary", "representations", "default-catalog", "default-namespace", "schema-id")


def new_view(
    *,
    schema: Mapping[str, Any],
    view_version: Mapping[str, Any],
    properties: Mapping[str, str] | None = None,
    location: str,
    view_uuid: UUID,
    now_ms: int,
) -> dict[str, Any]:
    """The metadata of a new view with one version, whose id is 1, and whose schema keeps the ids of its columns.

    schema, view_version    decoded JSON of the request; the version's own id and schema-id are not read
    raises                  ChangeFormError with the place in the request: ``view-version.representations``
    """
    if not stripped_location(location):
        raise ChangeFormError("The request has location '', which is not a non-empty string", path="location")
    asked = read_properties(properties, "properties")
    check_integer_property(asked, HISTORY_SIZE, least=1, where="properties")
    read_shape(schema, SingleSchema, "schema")
    read_shape(view_version, JsonRecord, "view-version")
    version = {"timestamp-ms": now_ms, **plain_entry(view_version), "version-id": _FIRST_VERSION_ID, "schema-id": LAST_ADDED}
    read_shape(version, ViewVersion, "view-version")
    draft = _ViewDraft(None, now_ms)
    draft.document |= {"view-uuid": str(view_uuid), "location": stripped_location(location), "properties": asked}
    updates: list[dict[str, Any]] = [
        {"action": "add-schema", "schema": schema},
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": LAST_ADDED},
    ]
    for update in updates:
        draft.apply(read_element(update, VIEW_SHAPES, "action", "view"), update, "")
    return draft.seal("view-version")


def change_view(
    document: Document, updates: Sequence[Mapping[str, Any]], *, now_ms: int, where: str = "updates"
) -> dict[str, Any]:
    """Apply updates to a view's metadata, in their order. Old versions go as ``version.history.num-entries`` says.

    document      decoded JSON of a view
    updates       as decoded from the request, of any of the 8 actions
    now_ms        since when a version is current that is not new
    returns       a new document, valid by the specification, that shares what it did not change with the given one. The given document
                  itself where nothing changes
    raises        ChangeFormError with the place of the update at fault; CorruptionError for a document that cannot be read
    source        Apache Iceberg, REST specification: "ViewUpdate"; the rules of ``ViewMetadata.Builder`` in its Java library
    """
    actions = [read_element(update, VIEW_SHAPES, "action", f"{where}[{at}]") for at, update in enumerate(updates)]
    with readable_document(document, check_view):
        draft = _ViewDraft(document, now_ms)
        for at, (action, update) in enumerate(zip(actions, updates, strict=True)):
            draft.apply(action, update, f"{where}[{at}]")
        if not draft.has_changed:
            return document if isinstance(document, dict) else dict(document)
        return draft.seal(where)


class _ViewDraft:
    """A view's document while updates are applied to it; its members are replaced, and never changed."""

    def __init__(self, base: Document | None, now_ms: int) -> None:
        self.document: Entry = {"format-version": _FORMAT_VERSION} if base is None else dict(base)
        self.now_ms = now_ms
        self.path = ""
        self.update: Mapping[str, Any] = {}
        self.last_schema: int | None = None
        self.last_version: int | None = None
        self.added_versions: set[int] = set()
        self.current_since_ms: int | None = None
        self._base = base

    @property
    def has_changed(self) -> bool:
        return self.document != self._base

    def apply(self, action: JsonRecord, update: Mapping[str, Any], path: str) -> None:
        self.path, self.update = path, update
        _VIEW_ACTIONS[type(action)](self, action)

    def entries(self, name: str) -> list[Entry]:
        return entries_of(self.document, name)

    def find_version(self, number: int | None) -> Entry | None:
        return next((version for version in self.entries("versions") if version.get("version-id") == number), None)

    def path_to(self, field: str) -> str:
        return f"{self.path}.{field}" if self.path else field

    def refusal(self, text: str, field: str) -> ChangeFormError:
        """The error for an update that does not fit the view. The text comes first: clients know how it begins."""
        return ChangeFormError(f"{text} ({self.path_to(field)})", path=self.path_to(field))

    def seal(self, where: str) -> Entry:
        """Complete the document: its log, and the versions that it keeps. Then judge it."""
        current = self.document.get("current-version-id")
        if self.current_since_ms is not None:
            log = self.entries("version-log")
            since_ms = max(self.current_since_ms, time_in(log[-1], "timestamp-ms") if log else 0)
            self.document["version-log"] = [*log, {"timestamp-ms": since_ms, "version-id": current}]
        self._check_dialects_stay(where)
        self._expire_versions()
        check_result(self.document, self._base, check_view, noun="view", where=where)
        return self.document

    def _check_dialects_stay(self, where: str) -> None:
        """Check that the view still has a query in each dialect, unless its properties allow to lose one."""
        if self._base is None or str(members_of(self.document, "properties", str).get(DROP_DIALECT)).lower() == "true":
            return
        number = self._base.get("current-version-id")
        before = next((version for version in entries_of(self._base, "versions") if version.get("version-id") == number), None)
        after = self.find_version(self.document.get("current-version-id"))
        lost = _dialects_of(before) - _dialects_of(after)
        if lost:
            raise ChangeFormError(
                f"Cannot replace view due to loss of view dialects ({DROP_DIALECT}=false):\n"
                f"Previous dialects: {sorted(_dialects_of(before))}\nNew dialects: {sorted(_dialects_of(after))}",
                path=where,
            )

    def _expire_versions(self) -> None:
        """Keep the current version, those of this change, and the latest; and of the log what follows the last gap."""
        current, versions = self.document.get("current-version-id"), self.entries("versions")
        size = integer_property(members_of(self.document, "properties", str), HISTORY_SIZE, _DEFAULT_HISTORY_SIZE)
        keep = max(size, len(self.added_versions | {current}))
        if len(versions) <= keep:
            return
        latest = sorted((version["version-id"] for version in versions if version.get("version-id") != current), reverse=True)
        kept = {current, *latest[: keep - 1]}
        self.document["versions"] = [version for version in versions if version.get("version-id") in kept]
        log: list[Entry] = []
        for entry in self.entries("version-log"):
            if entry.get("version-id") in kept:
                log.append(entry)
            else:
                log.clear()
        self.document["version-log"] = log


def _dialects_of(version: Mapping[str, Any] | None) -> set[str]:
    representations = () if version is None else version.get("representations") or ()
    queries = (query for query in representations if isinstance(query, dict) and query.get("type") == "sql")
    return {str(query.get("dialect")).lower() for query in queries}


def _assign_uuid(draft: _ViewDraft, action: updates_of.AssignUUIDUpdate) -> None:
    uuid = draft.document.get("view-uuid")
    if uuid is None:
        draft.document["view-uuid"] = action.uuid
    elif uuid.lower() != action.uuid.lower():
        raise draft.refusal(f"Cannot reassign uuid: the view has {uuid}", "uuid")


def _upgrade_format_version(draft: _ViewDraft, action: updates_of.UpgradeFormatVersionUpdate) -> None:
    version = action.format_version
    if version < _FORMAT_VERSION:
        raise draft.refusal(f"Cannot downgrade v{_FORMAT_VERSION} view to v{version}", "format-version")
    if version > _FORMAT_VERSION:
        raise draft.refusal(f"Unsupported format version: {version}", "format-version")


def _add_schema(draft: _ViewDraft, action: updates_of.AddSchemaUpdate) -> None:
    """Add a schema, unless an equal one is there; either is the last added one."""
    place = draft.path_to("schema")
    with form_faults(place):
        check_schema(action.schema, TYPES_OF, place)
    sent, number = draft.update["schema"], 0
    form, schemas = schema_form(sent), draft.entries("schemas")
    for known in schemas:
        if schema_form(known) == form:
            draft.last_schema = known["schema-id"]
            return
        number = max(number, known["schema-id"] + 1)
    draft.document["schemas"] = [*schemas, {**sent, "schema-id": number}]
    draft.last_schema = number


def _add_version(draft: _ViewDraft, action: AddViewVersionUpdate) -> None:
    """Add a version, unless one that says the same is there; either is the last added one."""
    sent = plain_entry(draft.update["view-version"])
    if sent["schema-id"] == LAST_ADDED:
        if draft.last_schema is None:
            raise draft.refusal("Cannot set last added schema: no schema has been added", "view-version.schema-id")
        sent["schema-id"] = draft.last_schema
    versions, number = draft.entries("versions"), sent["version-id"]
    for known in versions:
        if all(known.get(name) == sent.get(name) for name in _SAME_VERSION):
            draft.last_version = known["version-id"]
            return
        number = max(number, known["version-id"] + 1)
    if not any(schema.get("schema-id") == sent["schema-id"] for schema in draft.entries("schemas")):
        raise draft.refusal(f"Cannot add version with unknown schema: {sent['schema-id']}", "view-version.schema-id")
    _check_queries(draft, action.view_version)
    draft.document["versions"] = [*versions, {**sent, "version-id": number}]
    draft.added_versions.add(number)
    draft.last_version = number


def _check_queries(draft: _ViewDraft, version: ViewVersion) -> None:
    """Check that the version has at most one query for each dialect. Representations that are no SQL may be of any shape."""
    dialects: set[str] = set()
    for at, query in enumerate(version.representations):
        if query.type != "sql":
            continue
        for name, value in (("sql", query.sql), ("dialect", query.dialect)):
            if not isinstance(value, str):
                path = draft.path_to(f"view-version.representations[{at}].{name}")
                raise ChangeFormError(f"The request has {path}, which is not a string", path=path)
        dialect = query.dialect.lower()
        if dialect in dialects:
            text = f"Invalid view version: Cannot add multiple queries for dialect {dialect}"
            path = draft.path_to(f"view-version.representations[{at}]")
            raise IllegalChangeError(f"{text} ({path})", path=path)
        dialects.add(dialect)


def _set_current_version(draft: _ViewDraft, action: SetCurrentViewVersionUpdate) -> None:
    number: int | None = action.view_version_id
    if number == LAST_ADDED:
        if draft.last_version is None:
            raise draft.refusal("Cannot set last version id: no current version id has been set", "view-version-id")
        number = draft.last_version
    if number == draft.document.get("current-version-id"):
        return
    version = draft.find_version(number)
    if version is None:
        raise draft.refusal(f"Cannot set current version to unknown version: {number}", "view-version-id")
    draft.document["current-version-id"] = number
    draft.current_since_ms = time_in(version, "timestamp-ms") if number in draft.added_versions else draft.now_ms


def _set_location(draft: _ViewDraft, action: updates_of.SetLocationUpdate) -> None:
    draft.document["location"] = stripped_location(action.location)


def _set_properties(draft: _ViewDraft, action: updates_of.SetPropertiesUpdate) -> None:
    check_integer_property(action.updates, HISTORY_SIZE, least=1, where=f"{draft.path}.updates")
    _change_properties(draft, updates=action.updates, removals=())


def _remove_properties(draft: _ViewDraft, action: updates_of.RemovePropertiesUpdate) -> None:
    _change_properties(draft, updates={}, removals=action.removals)


def _change_properties(draft: _ViewDraft, *, updates: Mapping[str, str], removals: Iterable[str]) -> None:
    properties = changed_properties(draft.document, updates=updates, removals=removals)
    if properties != members_of(draft.document, "properties", str):
        draft.document["properties"] = properties


_VIEW_ACTIONS: dict[type[JsonRecord], Callable[[_ViewDraft, Any], None]] = {
    updates_of.AssignUUIDUpdate: _assign_uuid,
    updates_of.UpgradeFormatVersionUpdate: _upgrade_format_version,
    updates_of.AddSchemaUpdate: _add_schema,
    updates_of.SetLocationUpdate: _set_location,
    updates_of.SetPropertiesUpdate: _set_properties,
    updates_of.RemovePropertiesUpdate: _remove_properties,
    AddViewVersionUpdate: _add_version,
    SetCurrentViewVersionUpdate: _set_current_version,
}

VIEW_SHAPES: dict[str, type[JsonRecord]] = {str(shape.__struct_config__.tag): shape for shape in _VIEW_ACTIONS}
"""The shape of each update, by its action."""

ViewUpdate: Any = reduce(or_, VIEW_SHAPES.values())
"""All updates of views, as one type for decoders and for OpenAPI."""
