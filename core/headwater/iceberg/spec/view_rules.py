"""The rules of a view's metadata document, of format version 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headwater.iceberg.spec.document_shape import (
    Document,
    Int,
    JsonRecord,
    Long,
    Name,
    Texts,
    TimedEntry,
    Uuid,
    check_log,
    check_unique,
    inconsistent,
    listed_ids,
    read_value,
    shown_value,
    version_of,
)
from headwater.iceberg.spec.schema_rules import Schema, check_schema

TYPES_OF = 3
"""The table format whose types a view's columns may have: the view's own format names none."""


class ViewRepresentation(JsonRecord, frozen=True):
    type: str
    sql: Any = None
    dialect: Any = None


class StorageTable(JsonRecord, frozen=True):
    namespace: Sequence[Any]
    name: Name


class ViewVersion(JsonRecord, frozen=True):
    version_id: Int
    schema_id: Int
    timestamp_ms: Long
    summary: Texts
    default_namespace: Sequence[str]
    representations: Sequence[ViewRepresentation]
    default_catalog: str | None = None
    storage_table: StorageTable | None = None


class VersionLogEntry(TimedEntry, frozen=True):
    version_id: Int


class ViewMetadata(JsonRecord, frozen=True):
    view_uuid: Uuid
    location: Name
    schemas: Sequence[Schema]
    versions: Sequence[ViewVersion]
    version_log: Sequence[VersionLogEntry]
    current_version_id: Int
    properties: Texts | None = None


class ViewFacts(NamedTuple):
    """The current facts of a view, and the ids of all its versions. ``uuid`` is in lower case."""

    version: int
    uuid: str
    version_id: int
    schema_id: int
    versions: tuple[int, ...]


def check_view(document: Document) -> ViewFacts:
    """Judge a view's metadata by the specification. Unknown fields are ignored.

    raises        FaultError
    source        Apache Iceberg, view specification: "View Metadata"
    """
    format_version = version_of(document)
    view: ViewMetadata = read_value(document, ViewMetadata, "")
    schema_ids = [schema.schema_id for schema in view.schemas]
    check_unique(schema_ids, "has the schema-id {} twice in schemas")
    for at, schema in enumerate(view.schemas):
        check_schema(schema, TYPES_OF, f"schemas[{at}]")
    ids = [version.version_id for version in view.versions]
    check_unique(ids, "has the version-id {} twice in versions")
    for at, version in enumerate(view.versions):
        if version.schema_id not in schema_ids:
            raise inconsistent(
                f"has versions[{at}].schema-id {version.schema_id}, which is not in schemas ({listed_ids(schema_ids)})"
            )
        _check_dialects(version, f"versions[{at}].representations")
    current = view.current_version_id
    if current not in ids:
        raise inconsistent(f"has current-version-id {current}, which is not in versions ({listed_ids(ids)})")
    check_log(view.version_log, "version-log")
    return ViewFacts(format_version, view.view_uuid.lower(), current, view.versions[ids.index(current)].schema_id, tuple(ids))


def _check_dialects(version: ViewVersion, where: str) -> None:
    """Check that each SQL dialect has at most one query. Other types of representations are not checked."""
    dialects = set()
    for at, representation in enumerate(version.representations):
        if representation.type != "sql":
            continue
        read_value(representation.sql, str, f"{where}[{at}].sql")
        dialect = read_value(representation.dialect, str, f"{where}[{at}].dialect").lower()
        if dialect in dialects:
            raise inconsistent(f"has {where} with two queries in the dialect {shown_value(dialect)}")
        dialects.add(dialect)
