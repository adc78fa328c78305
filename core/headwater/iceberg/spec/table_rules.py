"""The rules of a table's metadata document, of format version 1, 2 or 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from headwater.iceberg.spec import snapshot_rules
from headwater.iceberg.spec.document_shape import (
    Int,
    JsonRecord,
    Long,
    Name,
    ShapeFault,
    Texts,
    Unsigned,
    Uuid,
    check_unique,
    find_faults,
    inconsistent,
    invalid,
    is_of,
    listed_ids,
    read_value,
)
from headwater.iceberg.spec.format_version import RAW_VERSION, Document, version_of
from headwater.iceberg.spec.partition_rules import PartitionField, PartitionSpec, SortOrder, check_sort_order, check_spec_fields
from headwater.iceberg.spec.schema_rules import Columns, Schema, SingleSchema, check_schema


class TableV1(JsonRecord, frozen=True):
    """A table in format version 1. Rules find the current schema, spec and order: each may stand alone, without a list."""

    location: Name
    last_updated_ms: Long
    last_column_id: Int
    table_uuid: Uuid | None = None
    schemas: Sequence[Schema] | None = None
    partition_specs: Sequence[PartitionSpec] | None = None
    sort_orders: Sequence[SortOrder] | None = None
    snapshots: Sequence[snapshot_rules.TableSnapshot] | None = None
    current_snapshot_id: Long | None = None
    refs: dict[str, snapshot_rules.SnapshotReference] | None = None
    snapshot_log: Sequence[snapshot_rules.SnapshotLogEntry] | None = None
    metadata_log: Sequence[snapshot_rules.MetadataLogEntry] | None = None
    statistics: Sequence[snapshot_rules.TableStatistics] | None = None
    partition_statistics: Sequence[snapshot_rules.PartitionStatistics] | None = None
    properties: Texts | None = None


class TableV2(TableV1, frozen=True, kw_only=True):
    table_uuid: Uuid
    last_sequence_number: Long
    schemas: Sequence[Schema]
    current_schema_id: Int
    partition_specs: Sequence[PartitionSpec]
    default_spec_id: Int
    last_partition_id: Int
    sort_orders: Sequence[SortOrder]
    default_sort_order_id: Int


class TableV3(TableV2, frozen=True, kw_only=True):
    next_row_id: Unsigned
    snapshots: Sequence[snapshot_rules.RowSnapshot] | None = None
    encryption_keys: Sequence[snapshot_rules.EncryptionKey] | None = None


_RECORDS: dict[int, type[TableV1]] = {1: TableV1, 2: TableV2, 3: TableV3}


class TableFacts(NamedTuple):
    """The current facts of a table. ``uuid`` is in lower case; None for a table of format version 1 that has none."""

    version: int
    uuid: str | None
    schema_id: int
    spec_id: int
    sort_order_id: int
    snapshot_id: int | None


def check_table(document: Document) -> TableFacts:
    """Judge a table's metadata by the specification. Unknown fields are ignored.

    document      decoded JSON, of format version 1, 2 or 3; of 4 only what is needed to find it is looked at
    raises        FaultError
    source        Apache Iceberg, table specification: "Table Metadata Fields", "Schemas and Data Types", "Partitioning", "Snapshots"
    """
    version = version_of(document)
    if version == RAW_VERSION:
        return stated_facts(document)
    table = _read_table(document, version)
    schema_id, columns = _check_schemas(table, document, version)
    spec_id = _check_specs(table, document, version, columns)
    sort_order_id = _check_orders(table, document, version, columns)
    snapshot_id = _check_snapshots(table)
    uuid = table.table_uuid.lower() if table.table_uuid is not None else None
    return TableFacts(version, uuid, schema_id, spec_id, sort_order_id, snapshot_id)


def stated_facts(document: Document) -> TableFacts:
    """The facts that a document states under the names of format version 3, for a document of the draft or with a fault.

    raises        FaultError for an unsupported version, and a malformed uuid
    """

    def number(name: str, shape: Any) -> int | None:
        value: int | None = document.get(name)
        return value if is_of(value, shape) else None

    version = version_of(document)
    uuid: str | None = read_value(document.get("table-uuid"), Uuid | None, "table-uuid")
    snapshot_id = number("current-snapshot-id", Long)
    return TableFacts(
        version,
        uuid.lower() if uuid is not None else None,
        number("current-schema-id", Int) or 0,
        number("default-spec-id", Int) or 0,
        number("default-sort-order-id", Int) or 0,
        None if snapshot_id == -1 else snapshot_id,
    )


def _read_table(document: Document, version: int) -> TableV1:
    """Read the document as its version. All missing required fields are reported in one sentence."""
    shape = _RECORDS[version]
    faults: list[ShapeFault] = []
    try:
        table = msgspec.convert(document, shape)
    except msgspec.ValidationError:
        faults = list(find_faults(document, shape, ""))
    required = {field.encode_name for field in msgspec.structs.fields(shape) if field.required} if faults else ()
    missing = [fault.statement() for fault in faults if fault.path in required]
    missing += [f"{name} is missing" for name in _missing_alone(document) if version == 1]
    if missing:
        raise invalid(f"is not valid for format version {version}: {', '.join(missing)}")
    if faults:
        raise faults[0].error()
    return table


def _missing_alone(document: Document) -> Iterator[str]:
    """The fields that format version 1 must have alone where the list of them is missing."""
    if not document.get("schema") and not document.get("schemas"):
        yield "schema"
    if document.get("partition-spec") is None and not document.get("partition-specs"):
        yield "partition-spec"


def _check_schemas(table: TableV1, document: Document, version: int) -> tuple[int, Columns]:
    """Check the schemas; returns the current one's id and columns. Format version 1 may have it alone, under ``schema``."""
    if version == 1 and not table.schemas:
        single: SingleSchema = read_value(document["schema"], SingleSchema, "schema")
        current, of_all = single.schema_id or 0, [check_schema(single, version, "schema")]
        columns = of_all[0]
    else:
        schemas = table.schemas or ()
        of_all = [check_schema(schema, version, f"schemas[{at}]") for at, schema in enumerate(schemas)]
        ids = [schema.schema_id for schema in schemas]
        current = _id_in_force(document, ids, ("schemas", "schema-id", "current-schema-id"), document.get("schema"))
        columns = of_all[ids.index(current)]
    most = max((number for schema in of_all for number in schema), default=0)
    if most > table.last_column_id:
        raise inconsistent(f"has last-column-id {table.last_column_id}, but a column with the id {most}")
    return current, columns


def _check_specs(table: TableV1, document: Document, version: int, columns: Columns) -> int:
    """Check the specs; returns the default's id. Format version 1 may have its fields alone, under ``partition-spec``."""
    alone = document.get("partition-spec") if version == 1 else None
    if version == 1 and not table.partition_specs:
        fields = read_value(alone, Sequence[PartitionField] | None, "partition-spec") or ()
        check_spec_fields(fields, version, "partition-spec", columns)
        return 0
    specs = table.partition_specs or ()
    ids = [spec.spec_id for spec in specs]
    names = ("partition-specs", "spec-id", "default-spec-id")
    current = _id_in_force(document, ids, names, {"fields": alone} if alone is not None else None)
    highest = 0
    for at, spec in enumerate(specs):
        number = check_spec_fields(
            spec.fields, version, f"partition-specs[{at}].fields", columns if spec.spec_id == current else None
        )
        highest = max(highest, number)
    last = read_value(document.get("last-partition-id"), Int | None, "last-partition-id")
    if last is not None and highest > last:
        raise inconsistent(f"has last-partition-id {last}, but a partition field with the id {highest}")
    return current


def _check_orders(table: TableV1, document: Document, version: int, columns: Columns) -> int:
    """Check the sort orders; returns the default's id."""
    orders = table.sort_orders or ()
    if version == 1 and not orders and not document.get("default-sort-order-id"):
        return 0
    ids = [order.order_id for order in orders]
    current = _id_in_force(document, ids, ("sort-orders", "order-id", "default-sort-order-id"))
    for at, order in enumerate(orders):
        check_sort_order(order, version, f"sort-orders[{at}]", columns if order.order_id == current else None)
    return current


def _id_in_force(document: Document, ids: Sequence[int], names: tuple[str, str, str], alone: Any = None) -> int:
    """The id of the current one of several; where format version 1 does not state it, the one that stands alone, or number 0.

    names         of the list, of an id in it, and of the field that states the current one
    alone         the value of format version 1 beside the list, under a name of its own
    """
    plural, id_name, name = names
    check_unique(ids, plural, id_name)
    said: int | None = read_value(document.get(name), Int | None, name)
    current = said if said is not None else (_id_by_value(alone, document.get(plural) or (), id_name, ids) or 0)
    if current not in ids and said is None:
        raise inconsistent(f"does not say which of its {plural} ({listed_ids(ids)}) is in force: {name} is missing")
    if current not in ids:
        raise inconsistent(f"has {name} {current}, which is not in {plural} ({listed_ids(ids)})")
    return current


def _id_by_value(alone: Any, several: Sequence[dict[str, Any]], id_name: str, ids: Sequence[int]) -> int | None:
    """The id of the value that stands alone: its own, or that of the otherwise equal one in the list."""
    if not isinstance(alone, dict):
        return None
    if is_of(alone.get(id_name), Int):
        return alone[id_name] if alone[id_name] in ids else None
    values = [{key: value for key, value in entry.items() if key != id_name} for entry in several]
    return ids[values.index(alone)] if alone in values else None


def _check_snapshots(table: TableV1) -> int | None:
    """Check snapshots and all references to them; returns the current snapshot's id, if there is one."""
    snapshots = table.snapshots or ()
    if isinstance(table, TableV3):
        snapshot_rules.check_rows(table.snapshots or (), table.next_row_id)
    ids = snapshot_rules.check_snapshots(snapshots, table.last_sequence_number if isinstance(table, TableV2) else None)
    current = snapshot_rules.check_references(table.refs or {}, ids, table.current_snapshot_id)
    snapshot_rules.check_log(table.snapshot_log or (), "snapshot-log", until=table.last_updated_ms)
    snapshot_rules.check_log(table.metadata_log or (), "metadata-log", until=table.last_updated_ms)
    snapshot_rules.check_partition_statistics(table.partition_statistics or ())
    if isinstance(table, TableV3):
        snapshot_rules.check_encryption(table.encryption_keys or (), snapshots)
    return current
