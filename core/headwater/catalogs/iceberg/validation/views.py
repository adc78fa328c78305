"""A view's metadata document, of format version 1."""

from __future__ import annotations

from typing import NamedTuple, cast

from headwater.catalogs.iceberg.validation.faults import inconsistent, invalid, shown
from headwater.catalogs.iceberg.validation.fields import (
    INT,
    LIST,
    LONG,
    NAME,
    OBJECT,
    TEXT,
    TEXTS,
    Object,
    entries,
    find,
    listed,
    need,
    unique_ids,
)
from headwater.catalogs.iceberg.validation.schemas import check_schema
from headwater.catalogs.iceberg.validation.snapshots import VERSION_LOG, check_log
from headwater.catalogs.iceberg.validation.tables import uuid_of
from headwater.catalogs.iceberg.validation.versions import Document, version_of

__all__ = ["ViewFacts", "check_view"]

_TYPES_OF = 3
"""The table format whose types a view's columns may have: the view's own format names none."""


class ViewFacts(NamedTuple):
    """What holds in a view now, and the ids of all its versions. ``uuid`` is in lower case."""

    version: int
    uuid: str
    version_id: int
    schema_id: int
    versions: tuple[int, ...]


def check_view(document: Document) -> ViewFacts:
    """Judge a view's metadata by the specification. Fields that it does not know are left alone.

    raises        FaultError
    source        Apache Iceberg, view specification: "View Metadata"
    """
    view = cast(Object, document)
    version = version_of(view)
    need(view, "view-uuid", TEXT)
    uuid = uuid_of(view, "view-uuid")
    need(view, "location", NAME)
    for name in ("schemas", "versions", "version-log"):
        need(view, name, LIST)
    schemas = entries(view, "schemas")
    schema_ids = unique_ids(schemas, "schemas", "schema-id")
    for at, schema in enumerate(schemas):
        check_schema(schema, _TYPES_OF, f"schemas[{at}]")
    versions = entries(view, "versions")
    ids = unique_ids(versions, "versions", "version-id")
    for at, one in enumerate(versions):
        _check_version(one, schema_ids, f"versions[{at}].")
    current = need(view, "current-version-id", INT)
    if current not in ids:
        raise inconsistent(f"has current-version-id {current}, which is not in versions ({listed(ids)})")
    check_log(view, VERSION_LOG)
    find(view, "properties", TEXTS)
    assert uuid is not None
    return ViewFacts(version, uuid, current, versions[ids.index(current)]["schema-id"], tuple(ids))


def _check_version(version: Object, schema_ids: list[int], place: str) -> None:
    if need(version, "schema-id", INT, place) not in schema_ids:
        raise inconsistent(f"has {place}schema-id {version['schema-id']}, which is not in schemas ({listed(schema_ids)})")
    need(version, "timestamp-ms", LONG, place)
    need(version, "summary", TEXTS, place)
    if not all(isinstance(one, str) for one in need(version, "default-namespace", LIST, place)):
        raise invalid(f"has {place}default-namespace that is no list of texts")
    find(version, "default-catalog", TEXT, place)
    storage = find(version, "storage-table", OBJECT, place)
    if storage is not None:
        need(storage, "namespace", LIST, f"{place}storage-table.")
        need(storage, "name", NAME, f"{place}storage-table.")
    need(version, "representations", LIST, place)
    dialects = set()
    for at, one in enumerate(entries(version, "representations", place)):
        inside = f"{place}representations[{at}]."
        if need(one, "type", TEXT, inside) != "sql":
            continue
        need(one, "sql", TEXT, inside)
        dialect = need(one, "dialect", TEXT, inside).lower()
        if dialect in dialects:
            raise inconsistent(f"has {place}representations with two queries in the dialect {shown(dialect)}")
        dialects.add(dialect)
