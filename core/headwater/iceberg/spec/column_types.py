"""The types of columns, and the valid default values of each."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from headwater.iceberg.spec.document_shape import Int, Long, Uuid, invalid, is_of, shown_value

_FIRST = (
    "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "uuid", "binary",
)  # fmt: skip
_THIRD = ("unknown", "timestamp_ns", "timestamptz_ns", "variant", "geometry", "geography")
_PLAIN = dict.fromkeys(_FIRST, 1) | dict.fromkeys(_THIRD, 3)
"""Each with the format version that it came with."""
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*\)")
_FIXED = re.compile(r"fixed\[\s*(\d{1,9})\s*\]")
_GEOMETRY = re.compile(r"geometry\(\s*([^,()]+?)\s*\)")
_GEOGRAPHY = re.compile(r"geography\(\s*([^,()]+?)\s*(?:,\s*(\w+)\s*)?\)")
_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")
_PRECISION = 38

_NULL_DEFAULTS = ("unknown", "variant", "geometry", "geography")
"""Types whose columns default to null and to nothing else."""

_DATE, _TIME = r"[+-]?\d{4,9}-\d\d-\d\d", r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
_NANO_TIME = r"\d\d:\d\d(:\d\d(\.\d{1,9})?)?"
_UTC = r"(\+00:00|Z)"
_SHAPES = {"boolean": bool, "int": Int, "long": Long, "float": int | float, "double": int | float, "string": str, "uuid": Uuid}
_TEXTUAL = {
    "date": re.compile(_DATE),
    "time": re.compile(_TIME),
    "timestamp": re.compile(f"{_DATE}T{_TIME}"),
    "timestamptz": re.compile(f"{_DATE}T{_TIME}{_UTC}"),
    "timestamp_ns": re.compile(f"{_DATE}T{_NANO_TIME}"),
    "timestamptz_ns": re.compile(f"{_DATE}T{_NANO_TIME}{_UTC}"),
    "binary": re.compile(r"([0-9a-fA-F]{2})*"),
    "fixed": re.compile(r"([0-9a-fA-F]{2})*"),
    "decimal": re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?"),
}


class Primitive(NamedTuple):
    """A type that holds no others. ``length`` is that of a fixed type."""

    name: str
    since: int
    length: int = 0


_KNOWN = {name: Primitive(name, since) for name, since in _PLAIN.items()}


def read_primitive(text: str, where: str) -> Primitive:
    """Parse a primitive type's name.

    raises        FaultError: no type has this name, or one of its arguments is out of bounds
    """
    known = _KNOWN.get(text)
    if known is not None:
        return known
    if found := _DECIMAL.fullmatch(text):
        if not 1 <= int(found[1]) <= _PRECISION:
            raise invalid(f"has {where} {text}, whose precision is not 1 to {_PRECISION}")
        return Primitive("decimal", 1)
    if found := _FIXED.fullmatch(text):
        return Primitive("fixed", 1, int(found[1]))
    if _GEOMETRY.fullmatch(text):
        return Primitive("geometry", 3)
    if found := _GEOGRAPHY.fullmatch(text):
        if found[2] and found[2].lower() not in _ALGORITHMS:
            raise invalid(f"has {where} {text}, whose edges are none of {', '.join(_ALGORITHMS)}")
        return Primitive("geography", 3)
    raise invalid(f"has {where} {shown_value(text)}, which is not a type")


def is_default(kind: Primitive, value: Any) -> bool:
    """True if a value other than null is one of the type, as the specification writes single values in JSON."""
    if kind.name in _NULL_DEFAULTS:
        return False
    if kind.name in _SHAPES:
        return is_of(value, _SHAPES[kind.name])
    if not isinstance(value, str) or not _TEXTUAL[kind.name].fullmatch(value):
        return False
    return kind.name != "fixed" or len(value) == 2 * kind.length
