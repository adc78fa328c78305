"""Whether a metadata document is a table that engines can read (Iceberg's specification), and what an import takes from it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from headwater.catalogs.iceberg.choosing import Choice
from headwater.catalogs.iceberg.grouping import TableFiles
from headwater.catalogs.iceberg.locations import canonical, is_same_place, is_within
from headwater.catalogs.iceberg.outcomes import Found, QuarantineCode, UnfitError
from headwater.errors import RefusedError

__all__ = ["validate"]

Document = Mapping[str, Any]

SUPPORTED_VERSIONS = (1, 2, 3)
CLOCK_SLACK_MS = 60_000
"""How far entries of a log may go back in time: writers' clocks differ. The same minute as in Iceberg's own reader."""

_INTEGERS, _TEXTS, _LISTS = "integer", "text", "list"
_REQUIRED: dict[int, dict[str, str]] = {
    1: {"location": _TEXTS, "last-updated-ms": _INTEGERS, "last-column-id": _INTEGERS},
    2: {
        "table-uuid": _TEXTS,
        "location": _TEXTS,
        "last-sequence-number": _INTEGERS,
        "last-updated-ms": _INTEGERS,
        "last-column-id": _INTEGERS,
        "schemas": _LISTS,
        "current-schema-id": _INTEGERS,
        "partition-specs": _LISTS,
        "default-spec-id": _INTEGERS,
        "last-partition-id": _INTEGERS,
        "sort-orders": _LISTS,
        "default-sort-order-id": _INTEGERS,
    },
}
_REQUIRED[3] = {**_REQUIRED[2], "next-row-id": _INTEGERS}
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PATH_PROPERTIES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


def validate(document: Document, choice: Choice, table: TableFiles, allowed: Sequence[str]) -> Found:
    """What an import takes from a metadata document.

    allowed       locations that the table's files may lie in
    raises        UnfitError: IS_VIEW, UNSUPPORTED_VERSION, INVALID, INCONSISTENT, LOCATION_MISMATCH or OUTSIDE_ALLOWED
    source        Apache Iceberg, table specification, "Table Metadata Fields"
    """
    path = choice.file.path
    version = _version(document, path)
    _require_fields(document, version, path)
    schema_id = _current(document, path, "schemas", "schema", "current-schema-id", "schema-id")
    spec_id = _current(document, path, "partition-specs", "partition-spec", "default-spec-id", "spec-id")
    sort_order_id = _current(document, path, "sort-orders", None, "default-sort-order-id", "order-id")
    snapshots = _snapshots(document, version, path)
    snapshot_id = _current_snapshot(document, snapshots, path)
    _check_refs(document, snapshots, snapshot_id, path)
    _check_logs(document, path)
    _check_location(document, table, path)
    _check_allowed(document, snapshots.values(), allowed, path)
    return Found(
        directory=table.directory,
        key=table.key,
        metadata_location=path,
        uuid=_uuid(document, path),
        format_version=version,
        snapshot_id=snapshot_id,
        schema_id=schema_id,
        spec_id=spec_id,
        sort_order_id=sort_order_id,
        log=tuple(_spelled(entry["metadata-file"]) for entry in _entries(document, "metadata-log", path)),
        rule=choice.rule,
        evidence=choice.evidence,
    )


def _version(document: Document, path: str) -> int:
    version = document.get("format-version")
    if "view-uuid" in document:
        raise UnfitError(
            QuarantineCode.IS_VIEW, f"{path} describes a view: an import takes tables, create the view through its engine"
        )
    if not _is_integer(version):
        raise _invalid(path, "has no format-version")
    if version == 4:
        raise UnfitError(
            QuarantineCode.UNSUPPORTED_VERSION,
            f"{path} has format version 4, whose specification is a draft: only 1, 2 and 3 are imported",
        )
    if version not in SUPPORTED_VERSIONS:
        raise UnfitError(
            QuarantineCode.UNSUPPORTED_VERSION, f"{path} has format version {version}: only 1, 2 and 3 are imported"
        )
    return int(version)


def _uuid(document: Document, path: str) -> str | None:
    uuid = document.get("table-uuid")
    if uuid is not None and not _UUID.fullmatch(uuid):
        raise _invalid(path, f"has the table-uuid {uuid[:50]!r}, which is no uuid")
    return uuid.lower() if uuid is not None else None


def _require_fields(document: Document, version: int, path: str) -> None:
    faults = [
        f"{name} is missing" if document.get(name) is None else f"{name} is no {kind}"
        for name, kind in _REQUIRED[version].items()
        if not _is_kind(document.get(name), kind)
    ]
    if version == 1:
        if not (document.get("schema") or document.get("schemas")):
            faults.append("schema is missing")
        if document.get("partition-spec") is None and not document.get("partition-specs"):
            faults.append("partition-spec is missing")
        if not isinstance(document.get("table-uuid"), str | None):
            faults.append("table-uuid is no text")
    if faults:
        raise _invalid(path, f"is not valid for format version {version}: {', '.join(faults)}")


def _current(document: Document, path: str, plural: str, singular: str | None, current: str, identity: str) -> int:
    """The id in force of schemas, specs or orders. Version 1 may have the single form only, whose id then is 0 or its own."""
    if document.get(plural) is None:
        single = document.get(singular) if singular else None
        return int(single.get(identity, 0)) if isinstance(single, dict) and _is_integer(single.get(identity, 0)) else 0
    ids = [entry.get(identity) for entry in _entries(document, plural, path)]
    if not all(_is_integer(entry) for entry in ids):
        raise _invalid(path, f"has an entry in {plural} without {identity}")
    if len(set(ids)) != len(ids):
        raise _inconsistent(path, f"has the same {identity} twice in {plural}")
    wanted = document.get(current, 0)
    if wanted not in ids:
        raise _inconsistent(path, f"has {current} {wanted}, which is not in {plural} ({_listed(ids)})")
    return int(wanted)


def _snapshots(document: Document, version: int, path: str) -> dict[int, Document]:
    snapshots: dict[int, Document] = {}
    for entry in _entries(document, "snapshots", path):
        number = entry.get("snapshot-id")
        if not isinstance(number, int) or not _is_integer(number) or not _is_integer(entry.get("timestamp-ms")):
            raise _invalid(path, "has a snapshot without snapshot-id or timestamp-ms")
        if not isinstance(entry.get("manifest-list"), str) and not isinstance(entry.get("manifests"), list):
            raise _invalid(path, f"has snapshot {number} without a manifest list")
        if number in snapshots:
            raise _inconsistent(path, f"has snapshot {number} twice")
        sequence = entry.get("sequence-number", 0)  # a snapshot from when the table was of version 1 has none
        if version > 1 and not (_is_integer(sequence) and sequence <= document["last-sequence-number"]):
            raise _inconsistent(path, f"has snapshot {number} with a sequence number above last-sequence-number")
        snapshots[number] = entry
    return snapshots


def _current_snapshot(document: Document, snapshots: Mapping[int, Document], path: str) -> int | None:
    current = document.get("current-snapshot-id")
    if current in (None, -1):
        return None
    if not _is_integer(current) or current not in snapshots:
        raise _inconsistent(path, f"has current-snapshot-id {current}, which is not among its {len(snapshots)} snapshots")
    return cast(int, current)


def _check_refs(document: Document, snapshots: Mapping[int, Document], current: int | None, path: str) -> None:
    refs = {} if document.get("refs") is None else document["refs"]
    if not isinstance(refs, dict) or not all(
        isinstance(ref, dict) and _is_integer(ref.get("snapshot-id")) for ref in refs.values()
    ):
        raise _invalid(path, "has refs that are no objects with a snapshot-id")
    for name, ref in refs.items():
        if ref.get("snapshot-id") not in snapshots:
            raise _inconsistent(
                path, f"has the ref {name!r} on snapshot {ref.get('snapshot-id')}, which is not among its snapshots"
            )
    if "main" in refs and refs["main"]["snapshot-id"] != current:
        raise _inconsistent(path, f"has main on snapshot {refs['main']['snapshot-id']}, but current-snapshot-id is {current}")


def _check_logs(document: Document, path: str) -> None:
    for name, wanted in (("metadata-log", "metadata-file"), ("snapshot-log", "snapshot-id")):
        entries = _entries(document, name, path)
        if not all(_is_integer(entry.get("timestamp-ms")) and entry.get(wanted) is not None for entry in entries):
            raise _invalid(path, f"has an entry in {name} without timestamp-ms or {wanted}")
        times = [entry["timestamp-ms"] for entry in entries] + [document["last-updated-ms"]]
        if any(later < earlier - CLOCK_SLACK_MS for earlier, later in itertools.pairwise(times)):
            raise _inconsistent(path, f"has a {name} that goes back in time")
    if not all(isinstance(entry["metadata-file"], str) for entry in _entries(document, "metadata-log", path)):
        raise _invalid(path, "has a metadata-log with a metadata-file that is no text")


def _check_location(document: Document, table: TableFiles, path: str) -> None:
    if not is_same_place(document["location"], table.directory):
        raise UnfitError(
            QuarantineCode.LOCATION_MISMATCH,
            f"{path} records the location {document['location']}, but lies in {table.directory}: a moved table has to be"
            " rewritten by its engine (rewrite_table_path) before it is imported",
        )


def _check_allowed(document: Document, snapshots: Iterable[Document], allowed: Sequence[str], path: str) -> None:
    """Everything that a collector may one day delete for this table lies where the catalog allows."""
    for what, location in _locations(document, snapshots):
        if not any(is_within(location, outer) for outer in allowed):
            raise UnfitError(
                QuarantineCode.OUTSIDE_ALLOWED,
                f"{path} has its {what} at {location}, outside of what the catalog allows ({', '.join(allowed) or 'nothing'}):"
                " add it to the catalog's allowedLocations if it is meant to be there",
            )


def _locations(document: Document, snapshots: Iterable[Document]) -> Iterator[tuple[str, str]]:
    yield "location", document["location"]
    properties = document.get("properties")
    if isinstance(properties, dict):
        yield from ((name, properties[name]) for name in _PATH_PROPERTIES if isinstance(properties.get(name), str))
    for snapshot in snapshots:
        if isinstance(snapshot.get("manifest-list"), str):
            yield f"manifest list of snapshot {snapshot['snapshot-id']}", snapshot["manifest-list"]
        yield from (("manifest", manifest) for manifest in snapshot.get("manifests") or () if isinstance(manifest, str))
    for name in ("statistics", "partition-statistics"):
        entries = document.get(name)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("statistics-path"), str):
                yield name, entry["statistics-path"]


def _entries(document: Document, name: str, path: str) -> list[dict[str, Any]]:
    entries = document.get(name)
    if entries is None:
        return []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _invalid(path, f"has {name} that is no list of objects")
    return entries


def _spelled(location: str) -> str:
    try:
        return canonical(location)
    except RefusedError:
        return location


def _is_kind(value: object, kind: str) -> bool:
    return {_INTEGERS: _is_integer(value), _TEXTS: isinstance(value, str) and value != "", _LISTS: isinstance(value, list)}[
        kind
    ]


def _is_integer(value: object) -> bool:
    """A 64-bit integer, which is what the specification's int and long fit into."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _listed(ids: Sequence[object]) -> str:
    return ", ".join(str(entry) for entry in ids[:10]) + (", ..." if len(ids) > 10 else "") or "none"


def _invalid(path: str, fault: str) -> UnfitError:
    return UnfitError(
        QuarantineCode.INVALID, f"{path} {fault}: restore it from a backup, or have its engine write the table anew"
    )


def _inconsistent(path: str, fault: str) -> UnfitError:
    return UnfitError(QuarantineCode.INCONSISTENT, f"{path} {fault}: the table is damaged, roll it back with its engine")
