"""The parts of a result view: fields with their JSON names and column heads, and their text as tables and lines.

Ids are 16 hex digits, times RFC 3339 in UTC, durations as in manifests (``24h``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from headwater.clock import Micros, as_text
from headwater.console import cell, text_table
from headwater.settings import duration_text
from headwater.store import ObjectId, id_text

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ViewField(Generic[T]):
    """One field of a result.

    value         makes plain data of it
    header        of its column in a table; empty: it is in no table
    inside        what stands in an object or in the objects of a list: the way to it, such as ``.age`` or ``[].name``, and its meaning
    """

    name: str
    about: str
    value: Callable[[T], Any]
    header: str = ""
    inside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResultView(Generic[T]):
    """One kind of result."""

    name: str
    plural: str
    fields: tuple[ViewField[T], ...]

    def with_columns(self, **headers: str) -> ResultView[T]:
        """Returns a view with other table columns: ``headers`` maps field names to column heads."""
        return replace(self, fields=tuple(replace(field, header=headers.get(field.name, "")) for field in self.fields))

    def data(self, item: T) -> dict[str, Any]:
        """The result as plain data: every field, in the order of the documentation."""
        return {field.name: field.value(item) for field in self.fields}


def identifier(number: ObjectId | int | None) -> str | None:
    return None if number is None else id_text(ObjectId(number))


def time_field(micros: Micros | int | None) -> str | None:
    return None if micros is None else as_text(micros)


def time_after(micros: Micros | None) -> str | None:
    """Round a time up to a full second, so that a wait is over at the time that is shown."""
    return None if micros is None else as_text(micros + 999_999)


def duration_field(seconds: float | None) -> str | None:
    return None if seconds is None else duration_text(seconds)


def in_columns(view: ResultView[T], items: Sequence[T]) -> str:
    """Format items as aligned columns; without items, one sentence."""
    if not items:
        return f"no {view.plural}"
    shown = [field for field in view.fields if field.header]
    rows = [[field.value(item) for field in shown] for item in items]
    return "\n".join(text_table([field.header for field in shown], rows))


def in_lines(view: ResultView[T], item: T) -> str:
    """Format one item: each field that is not empty on its own line, lists of objects and long objects below their name."""
    lines = _lines({name: value for name, value in view.data(item).items() if value not in (None, "", [], {})})
    return "\n".join(lines)


def _lines(data: dict[str, Any], indent: str = "") -> list[str]:
    width = max((len(name) for name in data), default=0) + 2
    lines = []
    for name, value in data.items():
        if isinstance(value, dict) and value and all(map(_are_counts, value.values())):
            rows = [{_kind_of(name): key, **item} for key, item in value.items()]
            lines += [f"{indent}{name}:", *_table(rows, indent + "  ")]
        elif isinstance(value, dict) and value:
            lines += [f"{indent}{name}:", *_lines(value, indent + "  ")]
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            lines += [f"{indent}{name}:", *_table(value, indent + "  ")]
        elif isinstance(value, list) and len(value) > 1 and any(" " in str(item) for item in value):
            lines += [f"{indent}{name}:", *(f"{indent}  {cell(item)}" for item in value)]
        else:
            lines.append(f"{indent}{(name + ':').ljust(width)}{cell(value)}")
    return lines


def _are_counts(value: Any) -> bool:
    """Whether the value is an object of named numbers."""
    return isinstance(value, dict) and bool(value) and all(isinstance(item, int | float) for item in value.values())


def _kind_of(name: str) -> str:
    """Returns the head for the keys of an object: the keys of ``types`` and of ``garbageTypes`` are types."""
    return re.split(r"(?=[A-Z])", name)[-1].rstrip("s")


def _table(items: list[dict[str, Any]], indent: str) -> list[str]:
    names = list(dict.fromkeys(name for item in items for name in item))
    return text_table([name.upper() for name in names], [[item.get(name) for name in names] for item in items], indent)
