"""The rules of partition specs and sort orders: their source columns and transforms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from headwater.iceberg.spec.document_shape import (
    Int,
    JsonRecord,
    Name,
    find_repeated,
    inconsistent,
    invalid,
    read_value,
    shown_value,
)
from headwater.iceberg.spec.schema_rules import Columns

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
_SourceIds = Annotated[Sequence[Int], Meta(min_length=1, description="a list of column ids")]


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
    if (name := find_repeated([field.name for field in fields])) is not None:
        raise inconsistent(f"has the partition field {shown_value(name)} twice in {where}")
    if find_repeated(numbers) is not None:
        raise inconsistent(f"has the same field-id twice in {where}")
    return max(numbers, default=0)


def check_sort_order(order: SortOrder, version: int, where: str, columns: Columns | None) -> None:
    """Check a sort order; ``columns`` as for ``check_spec_fields``.

    raises        FaultError
    """
    if order.order_id == 0 and order.fields:
        raise inconsistent(
            f"has {where} with the order-id 0 and {len(order.fields)} fields: 0 is the order of what is not sorted"
        )
    for at, field in enumerate(order.fields):
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
