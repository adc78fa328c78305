"""A table's metadata document, of format version 1, 2 or 3."""

from __future__ import annotations

import re
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
    Kind,
    Object,
    entries,
    find,
    is_int,
    listed,
    need,
    unique_ids,
)
from headwater.catalogs.iceberg.validation.schemas import Schema, check_schema
from headwater.catalogs.iceberg.validation.snapshots import (
    METADATA_LOG,
    SNAPSHOT_LOG,
    check_encryption,
    check_log,
    check_refs,
    check_snapshots,
    check_statistics,
    current_snapshot,
)
from headwater.catalogs.iceberg.validation.transforms import check_order, check_spec, check_spec_fields
from headwater.catalogs.iceberg.validation.versions import RAW_VERSION, Document, version_of

__all__ = ["TableFacts", "check_table", "told_facts", "uuid_of"]

_REQUIRED: dict[int, dict[str, Kind]] = {
    1: {"location": NAME, "last-updated-ms": LONG, "last-column-id": INT},
    2: {
        "table-uuid": TEXT,
        "location": NAME,
        "last-sequence-number": LONG,
        "last-updated-ms": LONG,
        "last-column-id": INT,
        "schemas": LIST,
        "current-schema-id": INT,
        "partition-specs": LIST,
        "default-spec-id": INT,
        "last-partition-id": INT,
        "sort-orders": LIST,
        "default-sort-order-id": INT,
    },
}
_REQUIRED[3] = {**_REQUIRED[2], "next-row-id": LONG}
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class TableFacts(NamedTuple):
    """What holds in a table now. ``uuid`` is in lower case; None for a table of format version 1 that has none."""

    version: int
    uuid: str | None
    schema_id: int
    spec_id: int
    sort_order_id: int
    snapshot_id: int | None


def check_table(document: Document) -> TableFacts:
    """Judge a table's metadata by the specification. Fields that it does not know are left alone.

    document      decoded JSON, of format version 1, 2 or 3; of 4 only what is needed to find it is looked at
    raises        FaultError
    source        Apache Iceberg, table specification: "Table Metadata Fields", "Schemas and Data Types", "Partitioning", "Snapshots"
    """
    table = cast(Object, document)
    version = version_of(table)
    if version == RAW_VERSION:
        return told_facts(table)
    _require(table, version)
    uuid = uuid_of(table, "table-uuid")
    schema_id, schema = _schemas(table, version)
    spec_id = _specs(table, version, schema)
    sort_order_id = _orders(table, version, schema)
    snapshots = check_snapshots(table, version)
    snapshot_id = current_snapshot(table, snapshots)
    check_refs(table, snapshots, snapshot_id)
    check_log(table, SNAPSHOT_LOG)
    check_log(table, METADATA_LOG)
    check_statistics(table)
    find(table, "properties", TEXTS)
    if version > 2:
        check_encryption(table, snapshots)
    return TableFacts(version, uuid, schema_id, spec_id, sort_order_id, snapshot_id)


def uuid_of(document: Object, name: str) -> str | None:
    uuid = find(document, name, TEXT)
    if uuid is not None and not _UUID.fullmatch(uuid):
        raise invalid(f"has the {name} {shown(uuid)}, which is no uuid")
    return uuid.lower() if uuid is not None else None


def told_facts(document: Document) -> TableFacts:
    """What a document tells under the names of the third version, where it does: one of the draft, or with a fault.

    raises        FaultError for a version that is not read, and a uuid that is none
    """
    table = cast(Object, document)

    def number(name: str, kind: Kind) -> int | None:
        return table[name] if kind.fits(table.get(name)) else None

    snapshot_id = number("current-snapshot-id", LONG)
    return TableFacts(
        version_of(table),
        uuid_of(table, "table-uuid"),
        number("current-schema-id", INT) or 0,
        number("default-spec-id", INT) or 0,
        number("default-sort-order-id", INT) or 0,
        None if snapshot_id == -1 else snapshot_id,
    )


def _require(table: Object, version: int) -> None:
    """All fields that are missing, in one sentence."""
    faults = [
        f"{name} is missing" if table.get(name) is None else f"{name} is no {kind.words}"
        for name, kind in _REQUIRED[version].items()
        if not kind.fits(table.get(name))
    ]
    if version == 1 and not table.get("schema") and not table.get("schemas"):
        faults.append("schema is missing")
    if version == 1 and table.get("partition-spec") is None and not table.get("partition-specs"):
        faults.append("partition-spec is missing")
    if version > 2 and not faults and table["next-row-id"] < 0:
        faults.append("next-row-id is negative")
    if faults:
        raise invalid(f"is not valid for format version {version}: {', '.join(faults)}")


def _schemas(table: Object, version: int) -> tuple[int, Schema]:
    """The id of the current schema, and what it holds. Format version 1 may have it alone, under ``schema``."""
    schemas = entries(table, "schemas")
    if not schemas and version == 1:
        single = need(table, "schema", OBJECT)
        current, found = find(single, "schema-id", INT, "schema.") or 0, check_schema(single, version, "schema")
        highest = [found]
    else:
        ids = unique_ids(schemas, "schemas", "schema-id")
        highest = [check_schema(schema, version, f"schemas[{at}]") for at, schema in enumerate(schemas)]
        current = _current(table, "current-schema-id", ids, "schemas", _by_value(table, "schema", schemas, "schema-id", ids))
        found = highest[ids.index(current)]
    most = max((number for schema in highest for number in schema.columns), default=0)
    if most > table["last-column-id"]:
        raise inconsistent(f"has last-column-id {table['last-column-id']}, but a column with the id {most}")
    return current, found


def _specs(table: Object, version: int, schema: Schema) -> int:
    specs = entries(table, "partition-specs")
    if not specs and version == 1:
        check_spec_fields(entries(table, "partition-spec"), version, "partition-spec", schema)
        return 0
    ids = unique_ids(specs, "partition-specs", "spec-id")
    alone = {"fields": table["partition-spec"]} if version == 1 and table.get("partition-spec") is not None else None
    current = _current(
        table, "default-spec-id", ids, "partition-specs", _by_value({"spec": alone}, "spec", specs, "spec-id", ids)
    )
    numbers = [
        check_spec(spec, version, f"partition-specs[{at}]", schema if ids[at] == current else None)
        for at, spec in enumerate(specs)
    ]
    last, most = find(table, "last-partition-id", INT), max(numbers, default=0)
    if last is not None and most > last:
        raise inconsistent(f"has last-partition-id {last}, but a partition field with the id {most}")
    return current


def _orders(table: Object, version: int, schema: Schema) -> int:
    orders = entries(table, "sort-orders")
    if not orders and version == 1 and not table.get("default-sort-order-id"):
        return 0
    ids = unique_ids(orders, "sort-orders", "order-id")
    current = _current(table, "default-sort-order-id", ids, "sort-orders")
    for at, order in enumerate(orders):
        check_order(order, version, f"sort-orders[{at}]", schema if ids[at] == current else None)
    return current


def _by_value(table: Object, name: str, several: list[Object], id_name: str, ids: list[int]) -> int | None:
    """Which of several format version 1 has beside them as the one in force, under a name of its own; None: none of them."""
    single = table.get(name)
    if not isinstance(single, dict):
        return None
    if is_int(single.get(id_name)):
        return single[id_name] if single[id_name] in ids else None
    held = [{key: value for key, value in one.items() if key != id_name} for one in several]
    return ids[held.index(single)] if single in held else None


def _current(table: Object, name: str, ids: list[int], plural: str, beside: int | None = None) -> int:
    """Which of several is in force; in format version 1, where it need not be said, the one that stands beside them, or number 0."""
    said = find(table, name, INT)
    wanted = said if said is not None else (beside or 0)
    if said is None and wanted not in ids:
        raise inconsistent(f"does not say which of its {plural} ({listed(ids)}) is in force: {name} is missing")
    if wanted not in ids:
        raise inconsistent(f"has {name} {wanted}, which is not in {plural} ({listed(ids)})")
    return int(wanted)
