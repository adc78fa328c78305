"""Partition specs and sort orders: which columns they take, and what they make of them."""

from __future__ import annotations

import re

from headwater.catalogs.iceberg.validation.faults import inconsistent, invalid, shown
from headwater.catalogs.iceberg.validation.fields import INT, LIST, NAME, TEXT, Object, entries, find, is_int, need
from headwater.catalogs.iceberg.validation.schemas import Schema

__all__ = ["check_order", "check_spec", "check_spec_fields"]

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


def check_spec(spec: Object, version: int, where: str, schema: Schema | None) -> int:
    """A partition spec with its ``fields``. Returns the highest field id, 0 where there is none.

    schema        the current one, for the default spec, whose sources must be there; None for others: columns may have been dropped
    raises        FaultError
    """
    need(spec, "fields", LIST, f"{where}.")
    return check_spec_fields(entries(spec, "fields", f"{where}."), version, f"{where}.fields", schema)


def check_spec_fields(fields: list[Object], version: int, where: str, schema: Schema | None) -> int:
    """The fields alone, as format version 1 has them in ``partition-spec``.

    A table that came from format version 1 may be without field ids: then all fields of the spec are, and count from 1000.
    """
    names: set[str] = set()
    numbers: list[int] = []
    for at, field in enumerate(fields):
        place = f"{where}[{at}]"
        name = need(field, "name", NAME, f"{place}.")
        if name in names:
            raise inconsistent(f"has the partition field {shown(name)} twice in {where}")
        names.add(name)
        number = find(field, "field-id", INT, f"{place}.")
        if number is not None:
            numbers.append(number)
        _check_sources(field, version, place, schema)
    if numbers and len(numbers) < len(fields):
        raise invalid(f"has {where} with field-id in some fields and not in others")
    if len(set(numbers)) < len(numbers):
        raise inconsistent(f"has the same field-id twice in {where}")
    return max(numbers, default=0)


def check_order(order: Object, version: int, where: str, schema: Schema | None) -> None:
    """A sort order; ``schema`` as for ``check_spec``.

    raises        FaultError
    """
    need(order, "fields", LIST, f"{where}.")
    fields = entries(order, "fields", f"{where}.")
    if order["order-id"] == 0 and fields:
        raise inconsistent(f"has {where} with the order-id 0 and {len(fields)} fields: 0 is the order of what is not sorted")
    for at, field in enumerate(fields):
        place = f"{where}.fields[{at}]"
        for name, words in (("direction", ("asc", "desc")), ("null-order", ("nulls-first", "nulls-last"))):
            if need(field, name, TEXT, f"{place}.") not in words:
                raise invalid(f"has {place}.{name} {shown(field[name])}, which is none of {', '.join(words)}")
        _check_sources(field, version, place, schema)


def _check_sources(field: Object, version: int, place: str, schema: Schema | None) -> None:
    transform = _transform(need(field, "transform", NAME, f"{place}."), place)
    sources = _sources(field, version, place)
    if schema is None or transform == "void":
        return
    for source in sources:
        column = schema.columns.get(source)
        if column is None:
            raise inconsistent(f"has {place} on column {source}, which is not in the current schema")
        if column.kind is None or column.is_repeated:
            raise inconsistent(f"has {place} on column {source}, which is nested, or lies in a list or map")
        allowed = _SOURCES.get(transform)
        is_fit = (
            column.kind.name not in _NOT_IDENTICAL
            if transform == "identity"
            else allowed is None or column.kind.name in allowed
        )
        if not is_fit:
            raise inconsistent(
                f"has {place} with {field['transform']} on column {source}, whose type {column.kind.name} it does not take"
            )


def _sources(field: Object, version: int, place: str) -> list[int]:
    """One column, or from format version 3 on several."""
    several: list[int] | None = find(field, "source-ids", LIST, f"{place}.") if version >= _SOURCE_IDS_SINCE else None
    if several is None:
        return [need(field, "source-id", INT, f"{place}.")]
    if not several or not all(is_int(source) for source in several):
        raise invalid(f"has {place}.source-ids that are no integers, or none")
    return several


def _transform(text: str, place: str) -> str:
    """A transform's name without its argument, which has to be positive."""
    found = _ARGUMENT.fullmatch(text)
    if found is None:
        return text
    if not found[2].isascii() or not found[2].isdigit() or not 0 < int(found[2][:12]) < 2**31:
        raise invalid(f"has {place}.transform {shown(text)}, whose argument is no positive integer")
    return found[1]
