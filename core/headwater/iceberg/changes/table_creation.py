"""A new table's metadata: fresh ids for its columns, its partition spec and its sort order, as Iceberg assigns them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from headwater.iceberg.changes.change_errors import ChangeFormError
from headwater.iceberg.changes.document_entries import (
    Entry,
    check_integer_property,
    full_names,
    read_properties,
    stripped_location,
)
from headwater.iceberg.changes.request_elements import form_faults, read_shape
from headwater.iceberg.changes.table_change import DEFAULT_FORMAT_VERSION, change_table, check_format_version
from headwater.iceberg.changes.table_draft import FIRST_PARTITION_ID, LOG_LENGTH, UNSORTED
from headwater.iceberg.changes.table_updates import UnboundOrder, UnboundSpec
from headwater.iceberg.spec.schema_rules import SingleSchema, check_schema
from headwater.iceberg.spec.table_rules import check_sort_order, check_spec_fields

_METRICS_OF_COLUMN = "write.metadata.metrics.column."
_FORMAT_VERSION = "format-version"
RESERVED_PROPERTIES = frozenset({
    _FORMAT_VERSION, "uuid", "snapshot-count", "current-snapshot-summary", "current-snapshot-id", "current-snapshot-timestamp-ms",
    "current-schema", "default-partition-spec", "default-sort-order",
})  # fmt: skip
"""Names by which engines show facts of the metadata as if they were properties. They are never stored."""
_RETRY_PROPERTIES = (
    "commit.retry.num-retries", "commit.retry.min-wait-ms", "commit.retry.max-wait-ms", "commit.retry.total-timeout-ms",
)  # fmt: skip
_ENCRYPTION_PROPERTIES = ("encryption.key-id", "encryption.data-key-length")
_ENCRYPTION_SINCE = 3


def new_table(
    *,
    schema: Mapping[str, Any],
    partition_spec: Mapping[str, Any] | None = None,
    sort_order: Mapping[str, Any] | None = None,
    properties: Mapping[str, str] | None = None,
    location: str,
    table_uuid: UUID,
    now_ms: int,
) -> dict[str, Any]:
    """The metadata of a new table without snapshots.

    Columns are numbered anew, each level of a struct before what lies within its columns; partition fields from 1000. No property is
    added that was not asked for; the codec for Parquet files that Iceberg's Java library stores belongs to the defaults of a catalog.

    schema, partition_spec, sort_order      decoded JSON of the request, which refers to columns by the ids in its own schema
    properties                              ``format-version`` is taken from them (2 if absent); reserved ones are dropped
    returns                                 a document that is valid by the specification
    raises                                  ChangeFormError with the place in the request: ``partition-spec.fields[0].source-id``
    source                                  ``TableMetadata.newTableMetadata`` of Iceberg's Java library
    """
    if not stripped_location(location):
        raise ChangeFormError("The request has location '', which is not a non-empty string", path="location")
    asked = read_properties(properties, "properties")
    version = _format_version(asked)
    _check_properties(asked, version)
    read_schema = read_shape(schema, SingleSchema, "schema")
    with form_faults("schema"):
        columns = check_schema(read_schema, version, "schema")
    _check_metrics(asked, schema)
    spec = {"fields": []} if partition_spec is None else partition_spec
    order = UNSORTED if sort_order is None else sort_order
    spec_fields = read_shape(spec, UnboundSpec, "partition-spec").fields
    order_fields = read_shape(order, UnboundOrder, "write-order").fields
    with form_faults("partition-spec"):
        check_spec_fields(spec_fields, version, "partition-spec.fields", columns)
    with form_faults("write-order"):
        check_sort_order(order_fields, version, "write-order", columns)
    fresh = _FreshIds()
    updates: list[Entry] = [
        {"action": "assign-uuid", "uuid": str(table_uuid)},
        {"action": "upgrade-format-version", "format-version": version},
        {"action": "add-schema", "schema": fresh.schema(schema)},
        {"action": "add-spec", "spec": {"fields": fresh.partition_fields(spec["fields"])}},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": fresh.sourced_fields(order["fields"])}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": stripped_location(location)},
        {"action": "set-properties", "updates": {key: value for key, value in asked.items() if key not in RESERVED_PROPERTIES}},
    ]
    return change_table(None, updates, now_ms=now_ms, where="new-table")


def _format_version(properties: Mapping[str, str]) -> int:
    check_integer_property(properties, _FORMAT_VERSION, least=1, where="properties")
    version = int(properties.get(_FORMAT_VERSION, DEFAULT_FORMAT_VERSION))
    check_format_version(version, f"properties[{_FORMAT_VERSION!r}]")
    return version


def _check_properties(properties: Mapping[str, str], version: int) -> None:
    """Check what Iceberg checks in new tables only: tables that are there already must stay open to the change that mends them."""
    for name in _RETRY_PROPERTIES:
        check_integer_property(properties, name, least=0, where="properties")
    for name in _ENCRYPTION_PROPERTIES:
        if version < _ENCRYPTION_SINCE and name in properties:
            path = f"properties[{name!r}]"
            raise ChangeFormError(f"Invalid properties for v{version}: {name} takes v{_ENCRYPTION_SINCE} ({path})", path=path)
    check_integer_property(properties, LOG_LENGTH, least=-(2**31), where="properties")


def _check_metrics(properties: Mapping[str, str], schema: Mapping[str, Any]) -> None:
    """Check that metrics are asked of columns that are there. As in Iceberg, of new tables only: columns may be dropped."""
    names = full_names(schema)
    for name in properties:
        column = name.removeprefix(_METRICS_OF_COLUMN)
        if column != name and column not in names:
            path = f"properties[{name!r}]"
            text = f"Invalid metrics config, could not find column {column} from table prop {name} in schema"
            raise ChangeFormError(f"{text} ({path})", path=path)


class _FreshIds:
    """The new ids of a schema's fields, counted from 1, by the ids that they had in the request."""

    def __init__(self) -> None:
        self._fresh: dict[int, int] = {}

    def schema(self, schema: Mapping[str, Any]) -> Entry:
        fresh = {**self._struct(schema), "schema-id": 0}
        identifiers = schema.get("identifier-field-ids")
        if identifiers is not None:
            fresh["identifier-field-ids"] = [self._fresh[number] for number in identifiers]
        return fresh

    def partition_fields(self, fields: list[Entry]) -> list[Entry]:
        return [{**field, "field-id": FIRST_PARTITION_ID + at} for at, field in enumerate(self.sourced_fields(fields))]

    def sourced_fields(self, fields: list[Entry]) -> list[Entry]:
        """Fields of a spec or an order, with the new ids of their columns."""
        return [self._sourced(field) for field in fields]

    def _sourced(self, field: Entry) -> Entry:
        sourced = dict(field)
        if field.get("source-id") is not None:
            sourced["source-id"] = self._source(field["source-id"])
        if field.get("source-ids") is not None:
            sourced["source-ids"] = [self._source(number) for number in field["source-ids"]]
        return sourced

    def _source(self, number: int) -> int:
        """The new id of a column; one that is not there can only be the source of a field that is always null."""
        return self._fresh.get(number, number)

    def _take(self, number: int) -> int:
        self._fresh[number] = len(self._fresh) + 1
        return self._fresh[number]

    def _struct(self, struct: Mapping[str, Any]) -> Entry:
        ids = [self._take(field["id"]) for field in struct["fields"]]
        fields = [
            {**field, "id": number, "type": self._type(field["type"])}
            for field, number in zip(struct["fields"], ids, strict=True)
        ]
        return {**struct, "fields": fields}

    def _type(self, type_: Any) -> Any:
        if not isinstance(type_, dict):
            return type_
        if type_["type"] == "struct":
            return self._struct(type_)
        if type_["type"] == "list":
            return {**type_, "element-id": self._take(type_["element-id"]), "element": self._type(type_["element"])}
        key, value = self._take(type_["key-id"]), self._take(type_["value-id"])
        return {**type_, "key-id": key, "value-id": value, "key": self._type(type_["key"]), "value": self._type(type_["value"])}
