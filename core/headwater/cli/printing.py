"""Results as text: aligned columns, one line a field, JSON, YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import yaml

from headwater.cli.fields import View

__all__ = ["cell", "in_columns", "in_lines", "json_text", "yaml_text"]

T = TypeVar("T")
_GAP = "   "


def in_columns(view: View[T], items: Sequence[T]) -> str:
    """The columns of the view, each as wide as its widest cell; no items, one sentence."""
    if not items:
        return f"no {view.plural}"
    columns = [field for field in view.fields if field.header]
    rows = [[field.header for field in columns]]
    rows += [[cell(field.value(item)) for field in columns] for item in items]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_GAP.join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def in_lines(view: View[T], item: T) -> str:
    """Every field of one item that is not empty on a line of its own; lists of objects and long objects below their name."""
    lines = _lines({name: value for name, value in view.data(item).items() if value not in (None, "", [], {})})
    return "\n".join(lines)


def cell(value: Any) -> str:
    """A plain value in one cell. Nothing is a dash, so that columns stay columns for awk."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ",".join(f"{name}={cell(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ",".join(cell(item) for item in value)
    return str(value).replace("\n", " ")


def json_text(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def yaml_text(data: Any) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000))


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
    rows = [[name.upper() for name in names], *([cell(item.get(name)) for name in names] for item in items)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [indent + _GAP.join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
