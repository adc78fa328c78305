"""The plain shape of what documents have lists of: judged for a whole list at once, where looking at each field takes most of the time.

What is not plain may be sound, and is not judged here: whoever asks then looks at the fields one by one, and finds the words.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

__all__ = ["PlainColumn", "PlainFile", "PlainMoment", "PlainSnapshot", "PlainVersion", "Shape", "fitting"]

_Int = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
_Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Name = Annotated[str, Meta(min_length=1)]


class Shape(msgspec.Struct, frozen=True, gc=False, rename="kebab"):
    """Fields that are read, by their names in JSON; others are passed over. Null stands for what may be absent."""


class PlainColumn(Shape, frozen=True):
    """A column of a primitive type, without defaults."""

    id: _Int
    name: str
    required: bool
    type: str
    initial_default: None = None
    write_default: None = None


class PlainSnapshot(Shape, frozen=True):
    """One with a manifest list."""

    snapshot_id: _Long
    timestamp_ms: _Long
    manifest_list: _Name
    sequence_number: _Long | None = None
    parent_snapshot_id: _Long | None = None
    schema_id: _Int | None = None
    summary: dict[str, str] | None = None
    key_id: str | None = None
    first_row_id: _Long | None = None
    added_rows: _Long | None = None


class PlainMoment(Shape, frozen=True):
    """When a snapshot became the current one."""

    timestamp_ms: _Long
    snapshot_id: _Long


class PlainFile(Shape, frozen=True):
    """Until when a metadata file was the latest."""

    timestamp_ms: _Long
    metadata_file: str


class PlainVersion(Shape, frozen=True):
    """When a version of a view became the current one."""

    timestamp_ms: _Long
    version_id: _Int


T = TypeVar("T", bound=Shape)


def fitting(found: object, shape: type[T]) -> list[T] | None:
    """The objects of a list as this shape has them; None where it is no list, or one of them is not of the shape."""
    try:
        return msgspec.convert(found, list[shape])  # type: ignore[valid-type]  # mypy takes no variable for a type
    except msgspec.ValidationError:
        return None
