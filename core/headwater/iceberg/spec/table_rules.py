"""The rules of a table's metadata document, of format version 1, 2 or 3: specs, sort orders, snapshots, and what refers to them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from headwater.iceberg.spec.document_shape import (
    RAW_VERSION,
    Document,
    Int,
    JsonRecord,
    Long,
    Name,
    ShapeFault,
    Texts,
    TimedEntry,
    Unsigned,
    Uuid,
    check_log,
    check_unique,
    find_faults,
    inconsistent,
    invalid,
    is_of,
    listed_ids,
    read_value,
    shown_value,
    version_of,
)
from headwater.iceberg.spec.schema_rules import Columns, Schema, SingleSchema, check_schema
from headwater.typed_values import convert

_ARGUMENT = re.compile(r"(bucket|truncate)\[(.*)\]")
_TIMES = ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
_SOURCES: dict[str, tuple[str, ...]] = {
    "bucket": ("int", "long", "decimal", "date", "time", *_TIMES, "string", "uuid", "fixed", "binary"),
    "truncate": ("int", "long", "decimal", "string", "binary"),
    "year": ("date", *_TIMES),
    "month": ("date", *_TIMES),
    "day": ("date", *_TIMES),
    "hour": _TIMES,
}
"""Types that a transform takes. Transforms that are not named here are read, and not judged: others may know them."""
_NOT_IDENTICAL = ("geometry", "geography", "variant")
_SOURCE_IDS_SINCE = 3
_MAIN = "main"
NO_PARENT = -1
"""Writers say so of a snapshot without a parent, where the specification leaves the field out."""
_SourceIds = Annotated[Sequence[Int], Meta(min_length=1, description="a list of column ids")]
_PositiveInt = Annotated[int, Meta(ge=1, lt=2**31, description="a positive 32-bit integer")]
_PositiveLong = Annotated[int, Meta(ge=1, le=2**63 - 1, description="a positive 64-bit integer")]


class TransformField(JsonRecord, frozen=True):
    """The common fields of partition specs and sort orders: from format version 3 on, ``source-ids`` takes precedence."""

    transform: Name
    source_id: Any = None
    source_ids: Any = None


class PartitionField(TransformField, frozen=True, kw_only=True):
    name: Name
    field_id: Int | None = None


class PartitionSpec(JsonRecord, frozen=True):
    spec_id: Int
    fields: Sequence[PartitionField]


class SortField(TransformField, frozen=True, kw_only=True):
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]


class SortOrder(JsonRecord, frozen=True):
    order_id: Int
    fields: Sequence[SortField]


class TableSnapshot(JsonRecord, frozen=True):
    """A snapshot. One written under an older format stays as it was: without sequence number, summary or row ids, manifests inline."""

    snapshot_id: Long
    timestamp_ms: Long
    manifest_list: Any = None
    manifests: Any = None
    parent_snapshot_id: Long | None = None
    schema_id: Int | None = None
    summary: Texts | None = None
    key_id: str | None = None
    sequence_number: Long | None = None


class RowSnapshot(TableSnapshot, frozen=True):
    """A snapshot of format version 3, which numbers rows."""

    first_row_id: Long | None = None
    added_rows: Long | None = None


class SnapshotReference(JsonRecord, frozen=True):
    snapshot_id: Long
    type: Literal["branch", "tag"]
    min_snapshots_to_keep: _PositiveInt | None = None
    max_snapshot_age_ms: _PositiveLong | None = None
    max_ref_age_ms: _PositiveLong | None = None


class SnapshotLogEntry(TimedEntry, frozen=True):
    snapshot_id: Long


class MetadataLogEntry(TimedEntry, frozen=True):
    metadata_file: str


class PartitionStatistics(JsonRecord, frozen=True):
    snapshot_id: Long
    statistics_path: Name
    file_size_in_bytes: Long


class StatisticsBlob(JsonRecord, frozen=True):
    type: str
    snapshot_id: Long
    sequence_number: Long
    fields: Sequence[Int]
    properties: Texts | None = None


class TableStatistics(PartitionStatistics, frozen=True):
    """A statistics file. Statistics are informational, so their snapshots may be gone."""

    file_footer_size_in_bytes: Long
    blob_metadata: Sequence[StatisticsBlob]
    key_metadata: str | None = None


class EncryptionKey(JsonRecord, frozen=True):
    """An encryption key. The specification's example calls its bytes ``key-metadata``, so that name is read, too."""

    key_id: str
    key_metadata: str | None = None
    encrypted_key_metadata: Any = None
    encrypted_by_id: str | None = None
    properties: Texts | None = None


class TableV1(JsonRecord, frozen=True):
    """A table in format version 1. Rules find the current schema, spec and order: each may stand alone, without a list."""

    location: Name
    last_updated_ms: Long
    last_column_id: Int
    table_uuid: Uuid | None = None
    schemas: Sequence[Schema] | None = None
    partition_specs: Sequence[PartitionSpec] | None = None
    sort_orders: Sequence[SortOrder] | None = None
    snapshots: Sequence[TableSnapshot] | None = None
    current_snapshot_id: Long | None = None
    refs: dict[str, SnapshotReference] | None = None
    snapshot_log: Sequence[SnapshotLogEntry] | None = None
    metadata_log: Sequence[MetadataLogEntry] | None = None
    statistics: Sequence[TableStatistics] | None = None
    partition_statistics: Sequence[PartitionStatistics] | None = None
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
    snapshots: Sequence[RowSnapshot] | None = None
    encryption_keys: Sequence[EncryptionKey] | None = None


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
        table = convert(document, shape)
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
        _check_order_id(order, f"sort-orders[{at}]")
        check_sort_order(order.fields, version, f"sort-orders[{at}]", columns if order.order_id == current else None)
    return current


def _id_in_force(document: Document, ids: Sequence[int], names: tuple[str, str, str], alone: Any = None) -> int:
    """The id of the current one of several; where format version 1 does not state it, the one that stands alone, or number 0.

    names         of the list, of an id in it, and of the field that states the current one
    alone         the value of format version 1 beside the list, under a name of its own
    """
    plural, id_name, name = names
    check_unique(ids, f"has the {id_name} {{}} twice in {plural}")
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


def check_spec_fields(fields: Sequence[PartitionField], version: int, where: str, columns: Columns | None) -> int:
    """Check the fields of a partition spec. Returns the highest field id, 0 if there is none.

    A table that came from format version 1 may be without field ids: then all fields of the spec are, and count from 1000.

    columns       the current schema's, for the default spec, whose sources must be there; None for others: columns may have been dropped
    raises        FaultError
    """
    for at, field in enumerate(fields):
        _check_sources(field, version, f"{where}[{at}]", columns)
    numbers = [field.field_id for field in fields if field.field_id is not None]
    if numbers and len(numbers) < len(fields):
        raise invalid(f"has {where} with field-id in some fields and not in others")
    check_unique([field.name for field in fields], f"has the partition field {{}} twice in {where}")
    check_unique(numbers, f"has the same field-id twice in {where}")
    return max(numbers, default=0)


def _check_order_id(order: SortOrder, where: str) -> None:
    if order.order_id == 0 and order.fields:
        raise inconsistent(
            f"has {where} with the order-id 0 and {len(order.fields)} fields: 0 is the order of what is not sorted"
        )


def check_sort_order(fields: Sequence[SortField], version: int, where: str, columns: Columns | None) -> None:
    """Check the fields of a sort order; ``columns`` as for ``check_spec_fields``.

    raises        FaultError
    """
    for at, field in enumerate(fields):
        _check_sources(field, version, f"{where}.fields[{at}]", columns)


def _check_sources(field: TransformField, version: int, place: str, columns: Columns | None) -> None:
    transform = _transform_name(field.transform, place)
    sources = _source_ids(field, version, place)
    if columns is None or transform == "void":
        return
    for source in sources:
        column = columns.get(source)
        if column is None:
            raise inconsistent(f"has {place} on column {source}, which is not in the current schema")
        if column.kind is None or column.is_repeated:
            raise inconsistent(f"has {place} on column {source}, which is nested, or lies in a list or map")
        if not _takes(transform, column.kind.name):
            raise inconsistent(
                f"has {place} with {field.transform} on column {source}, whose type {column.kind.name} it does not take"
            )


def _takes(transform: str, type_name: str) -> bool:
    if transform == "identity":
        return type_name not in _NOT_IDENTICAL
    return transform not in _SOURCES or type_name in _SOURCES[transform]


def _source_ids(field: TransformField, version: int, place: str) -> list[int]:
    """The source columns: one, or from format version 3 on several."""
    if version < _SOURCE_IDS_SINCE or field.source_ids is None:
        return [read_value(field.source_id, Int, f"{place}.source-id")]
    ids: list[int] = read_value(field.source_ids, _SourceIds, f"{place}.source-ids")
    return ids


def _transform_name(text: str, place: str) -> str:
    """The name of a transform without its argument, which must be positive."""
    parts = _ARGUMENT.fullmatch(text)
    if parts is None:
        return text
    if not parts[2].isascii() or not parts[2].isdigit() or not 0 < int(parts[2][:12]) < 2**31:
        raise invalid(f"has {place}.transform {shown_value(text)}, whose argument is not a positive integer")
    return parts[1]


def _check_snapshots(table: TableV1) -> int | None:
    """Check snapshots and all references to them; returns the current snapshot's id, if there is one."""
    snapshots = table.snapshots or ()
    if isinstance(table, TableV3):
        _check_rows(table.snapshots or (), table.next_row_id)
    ids = check_snapshots(snapshots, table.last_sequence_number if isinstance(table, TableV2) else None)
    current = _check_references(table.refs or {}, ids, table.current_snapshot_id)
    check_log(table.snapshot_log or (), "snapshot-log", until=table.last_updated_ms)
    check_log(table.metadata_log or (), "metadata-log", until=table.last_updated_ms)
    with_statistics = [file.snapshot_id for file in table.partition_statistics or ()]
    check_unique(with_statistics, "has two partition-statistics of snapshot {}: one is possible")
    if isinstance(table, TableV3):
        _check_encryption(table.encryption_keys or (), snapshots)
    return current


def check_snapshots(snapshots: Sequence[TableSnapshot], last_sequence_number: int | None) -> set[int]:
    """Check the snapshots; returns their ids.

    last_sequence_number        None in format version 1, which has no sequence numbers
    raises                      FaultError
    """
    for at, snapshot in enumerate(snapshots):
        if snapshot.manifest_list.__class__ is not str or not snapshot.manifest_list:
            _check_manifests(snapshot, f"snapshots[{at}].")
        number = snapshot.sequence_number
        if last_sequence_number is not None and number is not None and not 0 <= number <= last_sequence_number:
            raise inconsistent(f"has snapshots[{at}].sequence-number {number}, and last-sequence-number {last_sequence_number}")
    ids = [snapshot.snapshot_id for snapshot in snapshots]
    check_unique(ids, "has snapshot {} twice")
    return set(ids)


def _check_manifests(snapshot: TableSnapshot, place: str) -> None:
    """Check the inline manifests of a snapshot without a manifest list, as format version 1 allows."""
    if snapshot.manifest_list is not None or snapshot.manifests is None:
        read_value(snapshot.manifest_list, Name, f"{place}manifest-list")
    read_value(snapshot.manifests, Sequence[str], f"{place}manifests")


def _check_rows(snapshots: Sequence[RowSnapshot], next_row: int) -> None:
    """Check the row ids that snapshots assign to the rows that they added.

    raises        FaultError
    """
    for at, snapshot in enumerate(snapshots):
        first, added = snapshot.first_row_id, snapshot.added_rows
        if first is None:
            continue
        place = f"snapshots[{at}]."
        if added is None:
            raise invalid(f"has {place}first-row-id, but no {place}added-rows")
        if first < 0 or added < 0:
            raise invalid(f"has {place}first-row-id {first} and added-rows {added}: neither may be negative")
        if first + added > next_row:
            raise inconsistent(f"has {place}first-row-id {first} with {added} added-rows, beyond next-row-id {next_row}")


def _check_references(refs: Mapping[str, SnapshotReference], snapshot_ids: Collection[int], current: int | None) -> int | None:
    """Check the references to snapshots: branches, tags, and the current one. Without a ``main`` branch there is an implicit one.

    returns       the id of the current snapshot; None where there is none: absent, null or -1
    raises        FaultError
    """
    current = None if current == -1 else current
    if current is not None and current not in snapshot_ids:
        raise inconsistent(f"has current-snapshot-id {current}, which is not among its {len(snapshot_ids)} snapshots")
    for name, ref in refs.items():
        for limit, value in (
            ("min-snapshots-to-keep", ref.min_snapshots_to_keep),
            ("max-snapshot-age-ms", ref.max_snapshot_age_ms),
        ):
            if value is not None and ref.type != "branch":
                raise invalid(f"has refs[{shown_value(name)}].{limit}, which only branches have")
        if ref.snapshot_id not in snapshot_ids:
            raise inconsistent(
                f"has the ref {shown_value(name)} on snapshot {ref.snapshot_id}, which is not among its snapshots"
            )
    main = refs.get(_MAIN)
    if main is not None and main.type != "branch":
        raise inconsistent("has main as a tag: it is a branch")
    if main is not None and main.snapshot_id != current:
        raise inconsistent(f"has main on snapshot {main.snapshot_id}, but current-snapshot-id is {current}")
    return current


def _check_encryption(keys: Sequence[EncryptionKey], snapshots: Sequence[TableSnapshot]) -> None:
    """Check the keys of an encrypted table, and that they include those of the snapshots.

    raises        FaultError
    """
    for at, key in enumerate(keys):
        if key.key_metadata is None:
            read_value(key.encrypted_key_metadata, str, f"encryption-keys[{at}].encrypted-key-metadata")
    check_unique([key.key_id for key in keys], "has the encryption key {} twice")
    ids = {key.key_id for key in keys}
    for snapshot in snapshots:
        if snapshot.key_id is not None and snapshot.key_id not in ids:
            raise inconsistent(
                f"has snapshot {snapshot.snapshot_id} with the key {shown_value(snapshot.key_id)}, which is not among encryption-keys"
            )
