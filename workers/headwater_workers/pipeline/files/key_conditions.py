"""Conditions on the key of a file table, as Spark hands them on: which range of keys, or which single keys, they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from headwater.errors import RefusedError
from headwater.files import ALL_KEYS, RowKeyRange, RowKeyType, intersect_ranges
from headwater.index import after_prefix

NO_KEYS = RowKeyRange(b"\x01", b"\x00")


@dataclass(frozen=True, slots=True)
class KeySelection:
    """The keys that a query wants: those of a range, and of these only some where ``keys`` is given, sorted."""

    range: RowKeyRange = ALL_KEYS
    keys: tuple[bytes, ...] | None = None

    def within(self, other: RowKeyRange) -> RowKeyRange | None:
        """The wanted part of a range; None when it has none."""
        keys = intersect_ranges(self.range, other)
        if self.keys is not None:
            wanted = [key for key in self.keys if keys.has(key)]
            if not wanted:
                return None
            keys = intersect_ranges(keys, RowKeyRange(wanted[0], wanted[-1] + b"\0"))
        is_empty = keys.low is not None and keys.high is not None and keys.low >= keys.high
        return None if is_empty else keys

    def narrowed(self, condition: Filter, column: str, key_type: RowKeyType) -> KeySelection:
        """What a further condition leaves; itself when it says nothing about the key. Spark checks every condition again."""
        if getattr(condition, "attribute", None) != (column,):
            return self
        if isinstance(condition, In):
            encoded = [key for value in condition.value if (key := _encoded(value, key_type)) is not None]
            keys = tuple(sorted(key for key in encoded if self.keys is None or key in self.keys))
            return KeySelection(self.range, keys) if len(encoded) == len(condition.value) else self
        return KeySelection(intersect_ranges(self.range, _range_of(condition, key_type)), self.keys)


def select_keys(conditions: Sequence[Filter], column: str, key_type: RowKeyType, *, within: RowKeyRange) -> KeySelection:
    """The keys that all conditions together leave of a range."""
    selection = KeySelection(within)
    for condition in conditions:
        selection = selection.narrowed(condition, column, key_type)
    return selection


def _range_of(condition: Any, key_type: RowKeyType) -> RowKeyRange:
    key = _encoded(getattr(condition, "value", None), key_type)
    if key is None:
        return ALL_KEYS
    after = key + b"\0"  # no key lies between: integers have 8 bytes, and every other text or binary that is greater is no less
    if isinstance(condition, EqualTo | EqualNullSafe):
        return RowKeyRange(key, after)
    if isinstance(condition, GreaterThan):
        return RowKeyRange(after, None)
    if isinstance(condition, GreaterThanOrEqual):
        return RowKeyRange(key, None)
    if isinstance(condition, LessThan):
        return RowKeyRange(None, key)
    if isinstance(condition, LessThanOrEqual):
        return RowKeyRange(None, after)
    if isinstance(condition, StringStartsWith) and key_type is RowKeyType.STRING:
        return RowKeyRange(key, after_prefix(key))
    return ALL_KEYS


def _encoded(value: Any, key_type: RowKeyType) -> bytes | None:
    try:
        return (
            None if value is None else key_type.encode_key(bytes(value) if isinstance(value, bytearray | memoryview) else value)
        )
    except RefusedError:
        return None
