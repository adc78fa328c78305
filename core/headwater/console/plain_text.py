"""Plain values as text: cells, aligned columns, counts and sizes for people, JSON, YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml

_GAP = "   "
_SIZES = ("KiB", "MiB", "GiB", "TiB", "PiB")
_LINE_BREAK = re.compile(r"\s*[\r\n]\s*")


def text_table(heads: Sequence[str], rows: Sequence[Sequence[Any]], indent: str = "") -> list[str]:
    """Format rows as lines of columns, each as wide as its widest cell."""
    texts = [list(heads), *([cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return [indent + _GAP.join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in texts]


def cell(value: Any) -> str:
    """Format a plain value as one cell of a line. An empty value is a dash, so that awk still sees a column."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ",".join(f"{name}={cell(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(cell, value))
    return _LINE_BREAK.sub(" ", str(value))


def count_text(count: int, noun: str) -> str:
    """Format a count with its noun: ``1 table``, ``2 tables``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def bytes_text(count: float) -> str:
    """Format a number of bytes: ``512 B``, ``1.5 KiB``."""
    size, unit = float(count), "B"
    for larger in _SIZES:
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}" if unit != "B" else f"{count:.0f} B"


def json_text(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def yaml_text(data: Any) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000))
