"""Results as text: aligned columns, or one line a field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from headwater.cli.output_fields import ResultView
from headwater.console import cell, text_table

T = TypeVar("T")


def in_columns(view: ResultView[T], items: Sequence[T]) -> str:
    """The columns of the view, each as wide as its widest cell; no items, one sentence."""
    if not items:
        return f"no {view.plural}"
    shown = [field for field in view.fields if field.header]
    rows = [[field.value(item) for field in shown] for item in items]
    return "\n".join(text_table([field.header for field in shown], rows))


def in_lines(view: ResultView[T], item: T) -> str:
    """Every field of one item that is not empty on a line of its own; lists of objects and long objects below their name."""
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
    """Whether it is a row of numbers, each with its name."""
    return isinstance(value, dict) and bool(value) and all(isinstance(item, int | float) for item in value.values())


def _kind_of(name: str) -> str:
    """What the keys of an object are: those of ``types`` and of ``garbageTypes`` are each a type."""
    return re.split(r"(?=[A-Z])", name)[-1].rstrip("s")


def _table(items: list[dict[str, Any]], indent: str) -> list[str]:
    names = list(dict.fromkeys(name for item in items for name in item))
    return text_table([name.upper() for name in names], [[item.get(name) for name in names] for item in items], indent)
