"""Differences between two versions of an Iceberg table or view, as a person decides by them: snapshots, columns, layout, properties.

It compares metadata documents in pieces, and reads no file: rows and files are what the writers of snapshots said in their summaries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from headwater.clock import Micros
from headwater.iceberg.metadata_json import MetadataParts, join_metadata, objects_in
from headwater.redaction import MASK, without_logins

_COUNTERS = ("added-records", "deleted-records", "added-data-files", "deleted-data-files", "added-delete-files")
_SECRET = ("secret", "password", "token", "credential", "access-key", "sas")
_NO_PARTS = MetadataParts({}, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFacts:
    """One snapshot of a table. Counts are None where its writer said nothing of rows and files.

    time                its own time, in microseconds; None: unknown
    operation           append, replace, overwrite or delete; None: not said
    added_delete_files  files that mark rows as deleted
    """

    snapshot_id: int
    parent_id: int | None
    time: Micros | None
    operation: str | None
    added_rows: int | None = None
    removed_rows: int | None = None
    added_files: int | None = None
    removed_files: int | None = None
    added_delete_files: int | None = None


FacetKind = Literal[
    "column",
    "partitioning",
    "sort order",
    "format version",
    "location",
    "property",
    "branch of the table",
    "tag of the table",
    "current snapshot",
    "rows",
    "data files",
    "SQL",
    "metadata file",
]


@dataclass(frozen=True, slots=True)
class FacetChange:
    """One thing of a content that differs: what kind it is, and its text before and after; None: it was not, or is not, there."""

    kind: FacetKind
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class MetadataChanges:
    """The differences between two versions.

    snapshots     those that only the later version has, oldest first
    expired       how many snapshots only the earlier version has
    facets        what else differs
    """

    snapshots: tuple[SnapshotFacts, ...] = ()
    expired: int = 0
    facets: tuple[FacetChange, ...] = ()


def metadata_changes(before: MetadataParts | None, after: MetadataParts | None) -> MetadataChanges:
    """Compare two metadata documents; None: the table is not there."""
    old, new = before or _NO_PARTS, after or _NO_PARTS
    snapshots = tuple(sorted(_only_in(new, old), key=lambda snapshot: snapshot.time or 0))
    gone = len(list(_only_in(old, new))) if after is not None else 0
    return MetadataChanges(snapshots, gone, tuple(_facet_changes(old, new, {each.snapshot_id for each in snapshots})))


def snapshots_of(parts: MetadataParts) -> dict[int, SnapshotFacts]:
    """The snapshots of a document, by id."""
    facts = (_snapshot(piece) for piece in parts.lists.get("snapshots", ()))
    return {each.snapshot_id: each for each in facts if each is not None}


def _only_in(one: MetadataParts, other: MetadataParts) -> Iterator[SnapshotFacts]:
    """The snapshots of one document that the other does not have: equal pieces are not decoded."""
    same = set(other.lists.get("snapshots", ()))
    pieces = [piece for piece in one.lists.get("snapshots", ()) if piece not in same]
    known = snapshots_of(other) if pieces else {}
    for piece in pieces:
        facts = _snapshot(piece)
        if facts is not None and facts.snapshot_id not in known:
            yield facts


def _snapshot(piece: bytes) -> SnapshotFacts | None:
    snapshot = msgspec.json.decode(piece)
    if not isinstance(snapshot, dict) or not isinstance(snapshot.get("snapshot-id"), int):
        return None
    summary = snapshot.get("summary")
    said = summary if isinstance(summary, dict) else {}
    is_counted = any(name in said for name in _COUNTERS)
    counts = [_count(said.get(name, "0")) if is_counted else None for name in _COUNTERS]
    time, parent, operation = snapshot.get("timestamp-ms"), snapshot.get("parent-snapshot-id"), said.get("operation")
    return SnapshotFacts(
        snapshot_id=snapshot["snapshot-id"],
        parent_id=parent if isinstance(parent, int) else None,
        time=Micros(time * 1000) if isinstance(time, int) else None,
        operation=operation if isinstance(operation, str) else None,
        added_rows=counts[0],
        removed_rows=counts[1],
        added_files=counts[2],
        removed_files=counts[3],
        added_delete_files=counts[4],
    )


def _count(text: object) -> int | None:
    try:
        return int(str(text))
    except ValueError:
        return None


def _facet_changes(old: MetadataParts, new: MetadataParts, made: set[int]) -> Iterator[FacetChange]:
    if old.lists == new.lists and old.maps == new.maps and old.fields == new.fields:
        return
    before, after = _document(old), _document(new)
    yield from _column_changes(_schema(before), _schema(after))
    texts: tuple[tuple[FacetKind, str | None, str | None], ...] = (
        ("partitioning", _partitioning(before), _partitioning(after)),
        ("sort order", _sort_order(before), _sort_order(after)),
        ("format version", _text(before.get("format-version")), _text(after.get("format-version"))),
        ("location", _text(before.get("location")), _text(after.get("location"))),
        ("SQL", _sql(before), _sql(after)),
        ("rows", _total(before, old, "total-records"), _total(after, new, "total-records")),
        ("data files", _total(before, old, "total-data-files"), _total(after, new, "total-data-files")),
    )
    yield from (FacetChange(*text) for text in texts if text[1] != text[2])
    current = [_text(one.get("current-snapshot-id")) for one in (before, after)]
    if current[0] != current[1] and _number(after.get("current-snapshot-id")) not in made:  # else its snapshots tell it
        yield FacetChange("current snapshot", *current)
    yield from _pair_changes("branch of the table", _refs(before, "branch"), _refs(after, "branch"), " at ")
    yield from _pair_changes("tag of the table", _refs(before, "tag"), _refs(after, "tag"), " at ")
    yield from property_changes(_properties(before), _properties(after))


def property_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[FacetChange]:
    """The properties that differ. What looks like a secret by its name, or a login within a URL, is masked."""
    return _pair_changes("property", before, after, "=")


def _document(parts: MetadataParts) -> dict[str, Any]:
    """What is compared whole; of the snapshots there may be ten thousand, and they are compared as pieces."""
    lists = {name: value for name, value in parts.lists.items() if name not in ("snapshots", "snapshot-log", "metadata-log")}
    document: dict[str, Any] = msgspec.json.decode(join_metadata(MetadataParts(parts.fields, lists, parts.maps)))
    return document


def _pair_changes(kind: FacetKind, before: Mapping[str, str], after: Mapping[str, str], sign: str) -> Iterator[FacetChange]:
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            texts = [None if name not in side else f"{name}{sign}{_shown(name, side[name])}" for side in (before, after)]
            yield FacetChange(kind, *texts)


def _shown(name: str, value: str) -> str:
    return MASK if any(word in name.lower() for word in _SECRET) else without_logins(value)


def _column_changes(before: Mapping[int, str], after: Mapping[int, str]) -> Iterator[FacetChange]:
    for number in sorted(before.keys() | after.keys()):
        if before.get(number) != after.get(number):
            yield FacetChange("column", before.get(number), after.get(number))


def _schema(document: Mapping[str, Any]) -> dict[int, str]:
    """The columns of the current schema by field id, nested ones by their path."""
    number, schemas = document.get("current-schema-id"), objects_in(document, "schemas")
    if "versions" in document:  # a view names its schema in its current version
        number = _current_version(document).get("schema-id")
    schema = next((each for each in schemas if each.get("schema-id") == number), document.get("schema"))
    return dict(_columns(schema, "")) if isinstance(schema, dict) else {}


def _columns(type_: Mapping[str, Any], path: str) -> Iterator[tuple[int, str]]:
    for field in objects_in(type_, "fields"):
        yield from _column(field.get("id"), f"{path}{field.get('name')}", field.get("type"), bool(field.get("required")))
    for part in ("element", "key", "value"):
        if f"{part}-id" in type_:
            is_required = part != "key" and bool(type_.get(f"{part}-required"))
            yield from _column(type_[f"{part}-id"], f"{path}{part}", type_.get(part), is_required)


def _column(number: object, path: str, type_: object, is_required: bool) -> Iterator[tuple[int, str]]:
    if isinstance(number, int):
        name = type_.get("type") if isinstance(type_, dict) else type_
        yield number, f"{path} {name}{' required' if is_required else ''}"
    if isinstance(type_, dict):
        yield from _columns(type_, f"{path}.")


def _partitioning(document: Mapping[str, Any]) -> str | None:
    number = document.get("default-spec-id")
    spec = next((each for each in objects_in(document, "partition-specs") if each.get("spec-id") == number), None)
    fields = objects_in(document, "partition-spec") if spec is None else objects_in(spec, "fields")
    return _transformed(document, fields, lambda field: "")


def _sort_order(document: Mapping[str, Any]) -> str | None:
    number = document.get("default-sort-order-id")
    order = next((each for each in objects_in(document, "sort-orders") if each.get("order-id") == number), {})
    return _transformed(document, objects_in(order, "fields"), lambda field: f" {field.get('direction', 'asc')}")


def _transformed(document: Mapping[str, Any], fields: list[dict[str, Any]], end: Any) -> str | None:
    columns = {number: text.split(" ")[0] for number, text in _schema(document).items()}

    def text(field: Mapping[str, Any]) -> str:
        source = field.get("source-id")
        name = columns.get(source, f"column {source}") if isinstance(source, int) else "several columns"
        transform = field.get("transform")
        return f"{name if transform == 'identity' else f'{transform}({name})'}{end(field)}"

    return ", ".join(map(text, fields)) or None


def _sql(document: Mapping[str, Any]) -> str | None:
    texts = [f"{each.get('sql')}" for each in objects_in(_current_version(document), "representations") if "sql" in each]
    return "; ".join(texts) or None


def _current_version(document: Mapping[str, Any]) -> dict[str, Any]:
    number = document.get("current-version-id")
    return next((each for each in objects_in(document, "versions") if each.get("version-id") == number), {})


def _total(document: Mapping[str, Any], parts: MetadataParts, name: str) -> str | None:
    """A total of the current snapshot, looked for from the newest on."""
    current = _number(document.get("current-snapshot-id"))
    if current is None or current < 0:
        return None
    wanted = str(current).encode()
    for piece in reversed(parts.lists.get("snapshots", ())):
        if wanted in piece:
            snapshot = msgspec.json.decode(piece)
            if snapshot.get("snapshot-id") == current:
                return _text((snapshot.get("summary") or {}).get(name))
    return None


def _refs(document: Mapping[str, Any], kind: str) -> dict[str, str]:
    refs = document.get("refs")
    named = refs.items() if isinstance(refs, dict) else ()
    return {
        name: str(ref.get("snapshot-id"))
        for name, ref in named
        if isinstance(ref, dict) and ref.get("type", "branch") == kind and name != "main"
    }


def _properties(document: Mapping[str, Any]) -> dict[str, str]:
    properties = document.get("properties")
    return {name: str(value) for name, value in properties.items()} if isinstance(properties, dict) else {}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return None if value is None else str(value)
