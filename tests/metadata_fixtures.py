"""Metadata documents with the verdict of the specification, the paragraph that says so, and what pyiceberg 0.12 makes of them.

Each is one of a few sound documents with some of its fields changed; a change to ``GONE`` takes the field away.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

__all__ = ["FIXTURES", "GONE", "Fixture", "changed", "table", "view"]

Document = dict[str, Any]
GONE = object()
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
LOCATION = "s3://lake/sales/orders"
VALID, RAW, INVALID, INCONSISTENT, UNSUPPORTED = "valid", "raw", "INVALID", "INCONSISTENT", "UNSUPPORTED"
READS, REFUSES = True, False


class Fixture(NamedTuple):
    """
    verdict       valid, raw, or the weight of the fault
    paragraph     of the specification
    pyiceberg     whether pyiceberg 0.12 reads it
    says          what the fault's message has in it
    """

    name: str
    document: Document
    verdict: str
    paragraph: str
    pyiceberg: bool
    says: str = ""


def changed(document: Document, changes: Document) -> Document:
    made = copy.deepcopy(document) | changes
    return {name: value for name, value in made.items() if value is not GONE}


def column(number: int, name: str, type_: Any, **more: Any) -> Document:
    return {"id": number, "name": name, "required": False, "type": type_, **more}


def schema(*columns: Document, number: int = 0, **more: Any) -> Document:
    return {"type": "struct", "schema-id": number, "fields": list(columns), **more}


COLUMNS = (column(1, "id", "long", required=True), column(2, "day", "date"), column(3, "note", "string"))


def snapshot(number: int, sequence: int | None, **more: Any) -> Document:
    made = {
        "snapshot-id": number,
        "timestamp-ms": 1_750_000_000_000 + number,
        "summary": {"operation": "append"},
        "manifest-list": f"{LOCATION}/metadata/snap-{number}.avro",
        "schema-id": 0,
    }
    return changed(made | ({} if sequence is None else {"sequence-number": sequence}), more)


def table(version: int) -> Document:
    """A sound table with two snapshots, a partition spec and a sort order."""
    if version == 1:
        return {
            "format-version": 1,
            "table-uuid": UUID,
            "location": LOCATION,
            "last-updated-ms": 1_750_000_010_000,
            "last-column-id": 3,
            "schema": schema(*COLUMNS),
            "partition-spec": [{"name": "day", "transform": "identity", "source-id": 2, "field-id": 1000}],
            "properties": {"owner": "ada"},
            "current-snapshot-id": 22,
            "snapshots": [snapshot(11, None), snapshot(22, None)],
            "snapshot-log": [{"snapshot-id": number, "timestamp-ms": 1_750_000_000_000 + number} for number in (11, 22)],
            "metadata-log": [],
        }
    made: Document = {
        "format-version": version,
        "table-uuid": UUID,
        "location": LOCATION,
        "last-sequence-number": 2,
        "last-updated-ms": 1_750_000_010_000,
        "last-column-id": 3,
        "schemas": [schema(*COLUMNS)],
        "current-schema-id": 0,
        "partition-specs": [
            {"spec-id": 0, "fields": [{"name": "day", "transform": "month", "source-id": 2, "field-id": 1000}]}
        ],
        "default-spec-id": 0,
        "last-partition-id": 1000,
        "sort-orders": [
            {"order-id": 0, "fields": []},
            {
                "order-id": 1,
                "fields": [
                    {"transform": "bucket[4]", "source-id": 1, "direction": "asc", "null-order": "nulls-first"},
                ],
            },
        ],
        "default-sort-order-id": 1,
        "properties": {"owner": "ada"},
        "current-snapshot-id": 22,
        "refs": {"main": {"snapshot-id": 22, "type": "branch"}, "old": {"snapshot-id": 11, "type": "tag"}},
        "snapshots": [snapshot(11, 1), snapshot(22, 2, **{"parent-snapshot-id": 11})],
        "snapshot-log": [{"snapshot-id": number, "timestamp-ms": 1_750_000_000_000 + number} for number in (11, 22)],
        "metadata-log": [{"metadata-file": f"{LOCATION}/metadata/v1.metadata.json", "timestamp-ms": 1_750_000_000_000}],
    }
    if version == 3:
        made["next-row-id"] = 30
        made["snapshots"] = [
            snapshot(11, 1, **{"first-row-id": 0, "added-rows": 10}),
            snapshot(22, 2, **{"parent-snapshot-id": 11, "first-row-id": 10, "added-rows": 20}),
        ]
    return made


def version_of_view(number: int, **more: Any) -> Document:
    made = {
        "version-id": number,
        "timestamp-ms": 1_750_000_000_000 + number,
        "schema-id": 0,
        "summary": {"engine-name": "trino"},
        "default-namespace": ["sales"],
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "trino"}],
    }
    return changed(made, more)


def view() -> Document:
    return {
        "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
        "format-version": 1,
        "location": LOCATION,
        "schemas": [schema(*COLUMNS)],
        "current-version-id": 2,
        "versions": [version_of_view(1), version_of_view(2)],
        "version-log": [{"version-id": number, "timestamp-ms": 1_750_000_000_000 + number} for number in (1, 2)],
        "properties": {"comment": "orders by day"},
    }


FIXTURES: list[Fixture] = []


def _note(name: str, base: Document, verdict: str, paragraph: str, pyiceberg: bool, changes: Document, says: str = "") -> None:
    FIXTURES.append(Fixture(name, changed(base, changes), verdict, paragraph, pyiceberg, says))


def _with(number: int, **more: Any) -> Document:
    """The two snapshots of the second format, the second one changed."""
    return {"snapshots": [snapshot(11, 1), snapshot(22, 2, **{name.replace("_", "-"): value for name, value in more.items()})]}


def _columns(*columns: Document, **more: Any) -> Document:
    """Other columns, in a table without partitions and order."""
    return {
        "schemas": [schema(*columns, **{name.replace("_", "-"): value for name, value in more.items()})],
        "last-column-id": 99,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
    }


def _partition(**more: Any) -> Document:
    field = {"name": "part", "transform": "identity", "source-id": 3, "field-id": 1000}
    return {
        "partition-specs": [
            {"spec-id": 0, "fields": [changed(field, {name.replace("_", "-"): value for name, value in more.items()})]}
        ]
    }


def _order(number: int = 1, **more: Any) -> Document:
    field = {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}
    fields = [changed(field, {name.replace("_", "-"): value for name, value in more.items()})]
    return {"sort-orders": [{"order-id": number, "fields": fields}], "default-sort-order-id": number}


def _ref(**more: Any) -> Document:
    ref = {"snapshot-id": 11, "type": "branch"}
    other = changed(ref, {name.replace("_", "-"): value for name, value in more.items()})
    return {"refs": {"main": {"snapshot-id": 22, "type": "branch"}, "other": other}}


ONE, TWO, THREE, VIEW = table(1), table(2), table(3), view()
STATISTICS = {
    "snapshot-id": 22,
    "statistics-path": f"{LOCATION}/metadata/22.stats",
    "file-size-in-bytes": 413,
    "file-footer-size-in-bytes": 42,
    "blob-metadata": [
        {
            "type": "apache-datasketches-theta-v1",
            "snapshot-id": 22,
            "sequence-number": 2,
            "fields": [1],
            "properties": {"ndv": "3"},
        }
    ],
}
PARTITION_STATISTICS = {"snapshot-id": 22, "statistics-path": f"{LOCATION}/metadata/p.parquet", "file-size-in-bytes": 43}
DEEP: Any = "int"
for _at in range(100, 340, 2):
    DEEP = {"type": "list", "element-id": _at, "element-required": False, "element": DEEP}

FIELDS, TYPES, DEFAULTS = "Table Metadata Fields", "Schemas and Data Types", "Default values"
SPECS, ORDERS, SNAPSHOTS, REFS = "Partitioning", "Sorting", "Snapshots", "Snapshot References"
STATS, KEYS, LINEAGE, JSON = "Table Statistics", "Encryption Keys", "Row Lineage", "Appendix C: JSON serialization"
UPGRADE, IDENTIFIERS, VIEWS = "Appendix E: Format version changes", "Identifier Field IDs", "View Metadata"

# versions
_note("a sound table of version 1", ONE, VALID, FIELDS, READS, {})
_note("a sound table of version 2", TWO, VALID, FIELDS, READS, {})
_note("a sound table of version 3", THREE, VALID, FIELDS, READS, {})
_note("no format version", TWO, INVALID, FIELDS, REFUSES, {"format-version": GONE}, "no format-version")
_note("a format version in words", TWO, INVALID, JSON, REFUSES, {"format-version": "2"}, "not an integer")
_note("a truth as format version", TWO, INVALID, JSON, REFUSES, {"format-version": True}, "not an integer")
_note("format version 0", TWO, UNSUPPORTED, FIELDS, REFUSES, {"format-version": 0}, "version 0")
_note("format version 5", TWO, UNSUPPORTED, FIELDS, REFUSES, {"format-version": 5}, "version 5")
_note("the draft of version 4", TWO, RAW, "Format Versioning", REFUSES, {"format-version": 4})
_note("the draft with a relative path and no location", TWO, RAW, "Format Versioning", REFUSES, {
    "format-version": 4, "location": GONE, "snapshots": [{"manifest-list": "metadata/root.avro"}]})  # fmt: skip

# what each version must have
for _name in ("location", "last-updated-ms", "last-column-id", "schema", "partition-spec"):
    _reads = _name in ("last-updated-ms", "partition-spec")
    _note(f"version 1 without {_name}", ONE, INVALID, FIELDS, _reads, {_name: GONE}, f"{_name} is missing")
for _name in (
    "table-uuid", "location", "last-sequence-number", "last-updated-ms", "last-column-id", "schemas", "current-schema-id",
    "partition-specs", "default-spec-id", "last-partition-id", "sort-orders", "default-sort-order-id",
):  # fmt: skip
    _reads = _name not in ("location", "last-column-id", "schemas", "partition-specs", "sort-orders")
    _note(f"version 2 without {_name}", TWO, INVALID, FIELDS, _reads, {_name: GONE}, f"{_name} is missing")
_note("version 3 without next-row-id", THREE, INVALID, FIELDS, READS, {"next-row-id": GONE}, "next-row-id is missing")
_note("version 3 without sort orders", THREE, INVALID, FIELDS, REFUSES, {"sort-orders": GONE}, "sort-orders is missing")
_note("an empty list of sort orders", TWO, INCONSISTENT, FIELDS, REFUSES, {"sort-orders": []}, "not in sort-orders")
_note("version 1 without a uuid", ONE, VALID, FIELDS, READS, {"table-uuid": GONE})
_note("version 1 with lists beside the single forms", ONE, VALID, FIELDS, READS, {
    "schemas": TWO["schemas"], "current-schema-id": 0, "partition-specs": TWO["partition-specs"], "default-spec-id": 0,
    "sort-orders": TWO["sort-orders"], "default-sort-order-id": 1, "last-partition-id": 1000})  # fmt: skip
_note("version 1 with the lists only", ONE, VALID, UPGRADE, REFUSES, {
    "schema": GONE, "partition-spec": GONE, "schemas": TWO["schemas"], "current-schema-id": 0,
    "partition-specs": TWO["partition-specs"], "default-spec-id": 0})  # fmt: skip
_note("version 1 without partition field ids", ONE, VALID, JSON, REFUSES, {
    "partition-spec": [{"name": "day", "transform": "identity", "source-id": 2}]})  # fmt: skip
_note("fields that nobody knows", TWO, VALID, "Format Versioning", READS, {"colour": {"of": ["the", 1.50]}})

# wrong types
_note("a number as location", TWO, INVALID, JSON, REFUSES, {"location": 5}, "location is not a non-empty string")
_note("an empty location", TWO, INVALID, FIELDS, READS, {"location": ""}, "location is not a non-empty string")
_note("a uuid that is none", TWO, INVALID, FIELDS, REFUSES, {"table-uuid": "orders"}, "not a uuid")
_note("schemas that are an object", TWO, INVALID, JSON, REFUSES, {"schemas": {}}, "schemas is not a list")
_note("a schema that is a text", TWO, INVALID, JSON, REFUSES, {"schemas": ["x"]}, "schemas[0]")
_note(
    "a time in words",
    TWO,
    INVALID,
    JSON,
    READS,
    {"last-updated-ms": "1750000010000"},
    "last-updated-ms is not a 64-bit integer",
)
_note("a time beyond 64 bits", TWO, INVALID, JSON, READS, {"last-updated-ms": 2**64}, "64-bit")
_note("a schema id beyond 32 bits", TWO, INVALID, JSON, READS, {
    "schemas": [schema(*COLUMNS, number=2**40)], "current-schema-id": 2**40}, "32-bit")  # fmt: skip
_note("properties with a number", TWO, INVALID, FIELDS, READS, {"properties": {"retries": 4}}, "properties")
_note("properties with null", TWO, INVALID, FIELDS, REFUSES, {"properties": {"owner": None}}, "properties")
_note("an integer beyond 64 bits where nobody looks", TWO, VALID, "Format Versioning", READS, {"later": 2**80})

# ids in force
_note("the current schema is absent", TWO, INCONSISTENT, FIELDS, REFUSES, {"current-schema-id": 7}, "not in schemas (0)")
_note("the default spec is absent", TWO, INCONSISTENT, FIELDS, REFUSES, {"default-spec-id": 7}, "not in partition-specs")
_note("the default order is absent", TWO, INCONSISTENT, FIELDS, REFUSES, {"default-sort-order-id": 7}, "not in sort-orders")
_note("the same schema id twice", TWO, INCONSISTENT, TYPES, READS, {"schemas": [schema(*COLUMNS), schema(*COLUMNS)]}, "twice")
_note("the same spec id twice", TWO, INCONSISTENT, SPECS, READS, {"partition-specs": 2 * TWO["partition-specs"]}, "twice")
_note("a schema without id", TWO, INVALID, FIELDS, READS, {
    "schemas": [changed(schema(*COLUMNS), {"schema-id": GONE})]}, "no schemas[0].schema-id")  # fmt: skip
_note("last-column-id below a column's", TWO, INCONSISTENT, FIELDS, READS, {"last-column-id": 2}, "last-column-id 2")
_note(
    "last-partition-id below a field's", TWO, INCONSISTENT, FIELDS, READS, {"last-partition-id": 999}, "last-partition-id 999"
)

# schemas
_note("a schema that is no struct", TWO, INVALID, JSON, READS, {"schemas": [{"schema-id": 0, "fields": []}]}, "schemas[0].type")
_note(
    "a schema without fields", TWO, INVALID, JSON, READS, {"schemas": [{"schema-id": 0, "type": "struct"}]}, "schemas[0].fields"
)
_note("a column id twice", TWO, INCONSISTENT, TYPES, READS, _columns(column(1, "a", "int"), column(1, "b", "int")), "1 twice")
_note(
    "a column name twice",
    TWO,
    INCONSISTENT,
    TYPES,
    REFUSES,
    _columns(column(1, "a", "int"), column(2, "a", "int")),
    "'a' twice",
)
_note("a column without a name", TWO, INVALID, JSON, REFUSES, _columns({"id": 1, "required": True, "type": "int"}), "name")
_note("a column without required", TWO, INVALID, JSON, READS, _columns({"id": 1, "name": "a", "type": "int"}), "required")
_note("a column of a type that is none", TWO, INVALID, TYPES, REFUSES, _columns(column(1, "a", "text")), "not a type")
_note("a decimal that is too wide", TWO, INVALID, TYPES, REFUSES, _columns(column(1, "a", "decimal(39,2)")), "precision")
_note("nested types", TWO, VALID, TYPES, READS, _columns(
    column(1, "a", {"type": "struct", "fields": [column(2, "b", {
        "type": "map", "key-id": 3, "key": "string", "value-id": 4, "value-required": False, "value": {
            "type": "list", "element-id": 5, "element-required": True, "element": "fixed[16]"}})]})))  # fmt: skip
_note("a nested id twice", TWO, INCONSISTENT, TYPES, READS, _columns(
    column(1, "a", {"type": "list", "element-id": 1, "element-required": True, "element": "int"})), "1 twice")  # fmt: skip
_note("a list without element-required", TWO, INVALID, JSON, READS, _columns(
    column(1, "a", {"type": "list", "element-id": 2, "element": "int"})), "element-required")  # fmt: skip
_note(
    "a type nested 120 times",
    TWO,
    INVALID,
    "a limit of ours",
    READS,
    _columns(column(1, "a", DEEP)) | {"last-column-id": 999},
    "deeper",
)
_note("a reserved column id", TWO, INVALID, "Reserved Field IDs", READS,
      _columns(column(2**31 - 1, "_file", "string")) | {"last-column-id": 2**31 - 1}, "reserved")  # fmt: skip
_note("an identifier", TWO, VALID, IDENTIFIERS, READS, _columns(*COLUMNS, identifier_field_ids=[1]))
_note(
    "an optional identifier", TWO, INCONSISTENT, IDENTIFIERS, REFUSES, _columns(*COLUMNS, identifier_field_ids=[2]), "required"
)
_note("an absent identifier", TWO, INCONSISTENT, IDENTIFIERS, REFUSES, _columns(*COLUMNS, identifier_field_ids=[9]), "no field")
for _type in ("variant", "geometry(srid:4326)", "geography(srid:4326,spherical)", "unknown", "timestamp_ns", "timestamptz_ns"):
    _known = _type.startswith("timestamp") or _type == "unknown"
    _note(f"{_type} in version 3", THREE, VALID, TYPES, _known, _columns(column(1, "a", _type)))
    _note(f"{_type} in version 2", TWO, INVALID, TYPES, _known, _columns(column(1, "a", _type)), "version 3")
_note("a required unknown", THREE, INVALID, TYPES, READS, _columns(column(1, "a", "unknown", required=True)), "required")
_note("edges that are none", THREE, INVALID, TYPES, REFUSES, _columns(column(1, "a", "geography(srid:4326,flat)")), "edges")

# defaults
_note("defaults in version 3", THREE, VALID, DEFAULTS, READS, _columns(
    column(1, "a", "int", **{"initial-default": 3, "write-default": 4}), column(2, "b", "date", **{"initial-default": "2017-11-16"}),
    column(3, "c", "decimal(9,2)", **{"write-default": "14.20"})))  # fmt: skip
_note("an initial default in version 2", TWO, INVALID, DEFAULTS, READS,
      _columns(column(1, "a", "int", **{"initial-default": 3})), "initial-default")  # fmt: skip
_note("a write default in version 2", TWO, VALID, UPGRADE, READS, _columns(column(1, "a", "int", **{"write-default": 3})))
_note("a default of another type", THREE, INVALID, DEFAULTS, READS,
      _columns(column(1, "a", "int", **{"initial-default": "three"})), "not a value of int")  # fmt: skip
_note("a default for a variant", THREE, INVALID, DEFAULTS, REFUSES,
      _columns(column(1, "a", "variant", **{"write-default": "x"})), "not a value of variant")  # fmt: skip
_note("an empty struct as default", THREE, VALID, DEFAULTS, REFUSES, _columns(
    column(1, "a", {"type": "struct", "fields": [column(2, "b", "int")]}, **{"initial-default": {}})))  # fmt: skip
_note("a full struct as default", THREE, INVALID, DEFAULTS, REFUSES, _columns(
    column(1, "a", {"type": "struct", "fields": [column(2, "b", "int")]}, **{"initial-default": {"2": 1}})), "nested")  # fmt: skip

# partition specs and sort orders
_note("a source that is not in the current schema", TWO, INCONSISTENT, SPECS, READS, _partition(source_id=9), "column 9")
_note("a dropped source in an old spec", TWO, VALID, SPECS, READS, {
    "partition-specs": [*TWO["partition-specs"], {"spec-id": 1, "fields": [
        {"name": "gone", "transform": "identity", "source-id": 9, "field-id": 1001}]}], "last-partition-id": 1001})  # fmt: skip
_note("a dropped source with void", TWO, VALID, SPECS, READS, _partition(source_id=9, transform="void"))
_note("a transform that nobody knows", THREE, VALID, SPECS, READS, _partition(transform="zorder[2]"))
_note("a bucket without buckets", TWO, INVALID, "Partition Transforms", READS, _partition(transform="bucket[0]"), "bucket[0]")
_note("the day of a text", TWO, INCONSISTENT, "Partition Transforms", READS, _partition(transform="day"), "does not take")
_note("a partition field without transform", TWO, INVALID, JSON, REFUSES, _partition(transform=GONE), "transform")
_note("a partition field without source", TWO, INVALID, JSON, REFUSES, _partition(source_id=GONE), "source-id")
_note(
    "several sources in version 3",
    THREE,
    VALID,
    SPECS,
    REFUSES,
    _partition(transform="bucket[4]", source_id=GONE, source_ids=[1, 3]),
)
_note("several sources in version 2", TWO, INVALID, JSON, REFUSES, _partition(source_id=GONE, source_ids=[1, 3]), "source-id")
_note("several sources, one absent", THREE, INCONSISTENT, SPECS, REFUSES,
      _partition(transform="bucket[4]", source_id=GONE, source_ids=[1, 9]), "column 9")  # fmt: skip
_note("a partition within a list", TWO, INCONSISTENT, SPECS, READS, _columns(
    column(1, "a", {"type": "list", "element-id": 3, "element-required": True, "element": "int"})) | _partition(), "list or map")  # fmt: skip  # noqa: E501
_note("a partition field id twice", TWO, INCONSISTENT, SPECS, READS, {"partition-specs": [{"spec-id": 0, "fields": [
    {"name": name, "transform": "identity", "source-id": 3, "field-id": 1000} for name in "ab"]}]}, "field-id twice")  # fmt: skip
_note("a sort order numbered 0 with fields", TWO, INCONSISTENT, ORDERS, READS, _order(0), "not sorted")
_note("a direction that is none", TWO, INVALID, JSON, REFUSES, _order(direction="up"), "direction")
_note("an order of nulls that is none", TWO, INVALID, JSON, REFUSES, _order(null_order="first"), "null-order")
_note("an order by an absent column", TWO, INCONSISTENT, ORDERS, READS, _order(source_id=9), "column 9")

# snapshots
_note(
    "no snapshot yet, as -1",
    TWO,
    VALID,
    FIELDS,
    READS,
    {"current-snapshot-id": -1, "refs": {}, "snapshots": [], "snapshot-log": []},
)
_note("no snapshot yet, as null", TWO, VALID, FIELDS, READS, {
    "current-snapshot-id": None, "refs": {}, "snapshots": [], "snapshot-log": []})  # fmt: skip
_note("no snapshot yet, unsaid", TWO, VALID, FIELDS, READS, {
    "current-snapshot-id": GONE, "refs": GONE, "snapshots": GONE, "snapshot-log": GONE})  # fmt: skip
_note("the current snapshot is absent", TWO, INCONSISTENT, FIELDS, READS, {"current-snapshot-id": 7, "refs": {}}, "not among")
_note(
    "a snapshot twice",
    TWO,
    INCONSISTENT,
    SNAPSHOTS,
    READS,
    {"snapshots": [snapshot(22, 1), snapshot(22, 2)], "refs": {}},
    "twice",
)
_note("a snapshot without time", TWO, INVALID, SNAPSHOTS, READS, _with(22, timestamp_ms=GONE), "snapshots[1].timestamp-ms")
_note("a snapshot without id", TWO, INVALID, SNAPSHOTS, REFUSES, _with(22, snapshot_id=GONE), "snapshots[1].snapshot-id")
_note("a snapshot without manifests", TWO, INVALID, SNAPSHOTS, REFUSES, _with(22, manifest_list=GONE), "manifest-list")
_note("manifests inline in version 1", ONE, VALID, SNAPSHOTS, REFUSES, {"snapshots": [
    snapshot(11, None), snapshot(22, None, **{"manifest-list": GONE, "manifests": [f"{LOCATION}/m.avro"]})]})  # fmt: skip
_note(
    "manifests inline after an upgrade",
    TWO,
    VALID,
    UPGRADE,
    REFUSES,
    _with(22, manifest_list=GONE, manifests=[f"{LOCATION}/m.avro"], sequence_number=GONE),
)
_note("a snapshot without summary after an upgrade", TWO, VALID, UPGRADE, READS, _with(22, summary=GONE, sequence_number=GONE))
_note(
    "a summary with a number",
    TWO,
    INVALID,
    SNAPSHOTS,
    READS,
    _with(22, summary={"operation": "append", "added-records": 3}),
    "summary",
)
_note(
    "a snapshot from the future",
    TWO,
    INCONSISTENT,
    "Sequence Numbers",
    READS,
    {"last-sequence-number": 1},
    "last-sequence-number 1",
)
_note("a parent that is gone", TWO, VALID, SNAPSHOTS, READS, _with(22, parent_snapshot_id=5))
_note("a snapshot id beyond 64 bits", TWO, INVALID, SNAPSHOTS, READS, {
    "snapshots": [snapshot(2**63, 1)], "current-snapshot-id": 2**63, "refs": {}}, "64-bit")  # fmt: skip
_note("refs without main", TWO, VALID, REFS, READS, {"refs": {"old": {"snapshot-id": 11, "type": "tag"}}})
_note("a ref on an absent snapshot", TWO, INCONSISTENT, REFS, READS, _ref(snapshot_id=7), "'other' on snapshot 7")
_note(
    "main beside the current snapshot",
    TWO,
    INCONSISTENT,
    FIELDS,
    READS,
    {"refs": {"main": {"snapshot-id": 11, "type": "branch"}}},
    "main",
)
_note("a ref without type", TWO, INVALID, REFS, REFUSES, _ref(type=GONE), "type")
_note("a ref of a type that is none", TWO, INVALID, REFS, REFUSES, _ref(type="label"), "branch, tag")
_note("main as a tag", TWO, INCONSISTENT, REFS, READS, {"refs": {"main": {"snapshot-id": 22, "type": "tag"}}}, "main as a tag")
_note("a tag that keeps snapshots", TWO, INVALID, REFS, REFUSES, _ref(type="tag", min_snapshots_to_keep=3), "only branches")
_note("a branch that keeps none", TWO, INVALID, REFS, REFUSES, _ref(min_snapshots_to_keep=0), "not a positive")
_note("a branch with limits", TWO, VALID, REFS, READS, _ref(min_snapshots_to_keep=3, max_snapshot_age_ms=1, max_ref_age_ms=1))
_note(
    "a snapshot log with expired snapshots",
    TWO,
    VALID,
    FIELDS,
    READS,
    {"snapshot-log": [{"snapshot-id": 5, "timestamp-ms": 1}]},
)
_note("a log that goes back in time", TWO, INCONSISTENT, FIELDS, READS, {"snapshot-log": [
    {"snapshot-id": 11, "timestamp-ms": 90_000}, {"snapshot-id": 22, "timestamp-ms": 1}]}, "goes back")  # fmt: skip
_note("clocks that differ by a second", TWO, VALID, FIELDS, READS, {"snapshot-log": [
    {"snapshot-id": 11, "timestamp-ms": 2_000}, {"snapshot-id": 22, "timestamp-ms": 1_000}]})  # fmt: skip
_note(
    "a log without times",
    TWO,
    INVALID,
    FIELDS,
    REFUSES,
    {"metadata-log": [{"metadata-file": "s3://lake/x"}]},
    "metadata-log[0]",
)

# row lineage
_note("snapshots from before row lineage", THREE, VALID, LINEAGE, READS, {"snapshots": TWO["snapshots"], "next-row-id": 0})
_note("a first row without added rows", THREE, INVALID, LINEAGE, READS, {
    "snapshots": [snapshot(11, 1), snapshot(22, 2, **{"first-row-id": 3})]}, "added-rows")  # fmt: skip
_note("rows beyond the next one", THREE, INCONSISTENT, LINEAGE, READS, {"next-row-id": 29}, "beyond next-row-id 29")
_note("a negative first row", THREE, INVALID, LINEAGE, READS, {
    "snapshots": [snapshot(11, 1), snapshot(22, 2, **{"first-row-id": -1, "added-rows": 2})]}, "negative")  # fmt: skip
_note(
    "a negative next row", THREE, INVALID, LINEAGE, READS, {"next-row-id": -1}, "next-row-id is not a 64-bit integer from 0 on"
)

# statistics and keys
_note("statistics", TWO, VALID, STATS, READS, {"statistics": [STATISTICS]})
_note("statistics of a snapshot that is gone", TWO, VALID, STATS, READS, {"statistics": [STATISTICS | {"snapshot-id": 5}]})
_note("statistics of a kind that is new", TWO, VALID, STATS, REFUSES, {"statistics": [
    STATISTICS | {"blob-metadata": [STATISTICS["blob-metadata"][0] | {"type": "histogram-v7"}]}]})  # fmt: skip
_note(
    "statistics without blobs",
    TWO,
    INVALID,
    STATS,
    REFUSES,
    {"statistics": [changed(STATISTICS, {"blob-metadata": GONE})]},
    "blob-metadata",
)
_note(
    "statistics without a path",
    TWO,
    INVALID,
    STATS,
    REFUSES,
    {"statistics": [changed(STATISTICS, {"statistics-path": GONE})]},
    "path",
)
_note("partition statistics", TWO, VALID, "Partition Statistics", READS, {"partition-statistics": [PARTITION_STATISTICS]})
_note("two partition statistics of a snapshot", TWO, INCONSISTENT, "Partition Statistics", READS, {
    "partition-statistics": [PARTITION_STATISTICS, PARTITION_STATISTICS]}, "one is possible")  # fmt: skip
_note("an encrypted table", THREE, VALID, KEYS, READS, {
    "encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "aWNlYmVyZwo="}],
    "snapshots": [snapshot(11, 1), snapshot(22, 2, **{"key-id": "k"})]})  # fmt: skip
_note(
    "the key as the example has it",
    THREE,
    VALID,
    JSON,
    READS,
    {"encryption-keys": [{"key-id": "k", "key-metadata": "aWNlYmVyZwo="}]},
)
_note(
    "an encryption key without id",
    THREE,
    INVALID,
    KEYS,
    READS,
    {"encryption-keys": [{"encrypted-key-metadata": "x"}]},
    "key-id",
)
_note(
    "an encryption key without bytes",
    THREE,
    INVALID,
    KEYS,
    READS,
    {"encryption-keys": [{"key-id": "k"}]},
    "encrypted-key-metadata",
)
_note("a snapshot with a key that is gone", THREE, INCONSISTENT, KEYS, READS, {
    "snapshots": [snapshot(11, 1), snapshot(22, 2, **{"key-id": "k"})]}, "not among encryption-keys")  # fmt: skip

# views
_note("a sound view", VIEW, VALID, VIEWS, READS, {})
for _name in ("view-uuid", "location", "schemas", "current-version-id", "versions", "version-log"):
    _note(f"a view without {_name}", VIEW, INVALID, VIEWS, REFUSES, {_name: GONE}, f"no {_name}")
_note("a view of version 2", VIEW, UNSUPPORTED, VIEWS, REFUSES, {"format-version": 2}, "view format version 2")
_note("a view whose uuid is none", VIEW, INVALID, VIEWS, READS, {"view-uuid": "orders"}, "not a uuid")
_note(
    "a view whose current version is absent",
    VIEW,
    INCONSISTENT,
    VIEWS,
    READS,
    {"current-version-id": 7},
    "not in versions (1, 2)",
)
_note("a view version twice", VIEW, INCONSISTENT, "Versions", READS, {"versions": 2 * [version_of_view(2)]}, "twice")
_note("a view version with an absent schema", VIEW, INCONSISTENT, "Versions", READS, {
    "versions": [version_of_view(2, **{"schema-id": 5})]}, "not in schemas")  # fmt: skip
_note("a view version without namespace", VIEW, INVALID, "Versions", REFUSES, {
    "versions": [version_of_view(2, **{"default-namespace": GONE})]}, "default-namespace")  # fmt: skip
_note("a view version without summary", VIEW, INVALID, "Versions", READS, {
    "versions": [version_of_view(2, summary=GONE)]}, "summary")  # fmt: skip
_note("two queries in one dialect", VIEW, INCONSISTENT, "SQL representation", READS, {"versions": [version_of_view(
    2, representations=[{"type": "sql", "sql": f"SELECT {at}", "dialect": "spark"} for at in (1, 2)])]}, "dialect")  # fmt: skip
_note("a query without dialect", VIEW, INVALID, "SQL representation", REFUSES, {"versions": [version_of_view(
    2, representations=[{"type": "sql", "sql": "SELECT 1"}])]}, "dialect")  # fmt: skip
_note("a representation that nobody knows", VIEW, VALID, "Representations", REFUSES, {"versions": [version_of_view(
    2, representations=[{"type": "substrait", "plan": "..."}])]})  # fmt: skip
_note("a materialized view", VIEW, VALID, "Materialized Views", READS, {"versions": [
    version_of_view(2, **{"storage-table": {"namespace": ["sales"], "name": "orders_by_day"}})]})  # fmt: skip
_note(
    "a version log without version", VIEW, INVALID, "Version log", REFUSES, {"version-log": [{"timestamp-ms": 1}]}, "version-id"
)
_note("a version log that goes back in time", VIEW, INCONSISTENT, "Version log", READS, {"version-log": [
    {"version-id": 1, "timestamp-ms": 90_000}, {"version-id": 2, "timestamp-ms": 1}]}, "goes back")  # fmt: skip
