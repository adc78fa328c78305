"""Results as text for people: aligned columns that fit a terminal, and the lines of one result."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.redaction import printable
from headwater.terminal import paint_state, shortened, text_width

_GAP = "   "
_WHOLE = 20
"""Columns that are not wider than this are never cut: ids, states and times are of no use in part."""
_LEAST = 12
"""A wider column is not made narrower than this, or than its head."""
_LINE_BREAK = re.compile(r"\s*[\r\n]\s*")
_STATES = frozenset({"STATE", "WEIGHT", "OUTCOME"})
"""The heads of columns whose values are states."""


@dataclass(frozen=True, slots=True)
class TextLayout:
    """How text for people is laid out.

    width         of the terminal, which the columns have to fit; None: as wide as their texts, as in a pipe
    has_heads     whether columns have heads
    has_colors    whether states are colored
    """

    width: int | None = None
    has_heads: bool = True
    has_colors: bool = False


PLAIN = TextLayout()


def text_table(heads: Sequence[str], rows: Sequence[Sequence[Any]], indent: str = "", layout: TextLayout = PLAIN) -> list[str]:
    """Format rows as lines of columns, each as wide as its widest cell.

    Where they have to fit a width, the widest texts are cut; if that is not enough, the last columns are left out, for which a head
    ``…`` stands.
    """
    texts = [list(heads)] if layout.has_heads else []
    texts += [[cell(value) for value in row] for row in rows]
    if not texts:
        return []
    widths = [max(map(text_width, column)) for column in zip(*texts, strict=True)]
    shown = len(widths)
    if layout.width is not None:
        room = layout.width - len(indent)
        widths, shown = _fitting(widths, heads, room)
    states = [head in _STATES and layout.has_colors for head in heads[:shown]]
    lines = [_line(row[:shown], widths, states) for row in texts]
    if shown < len(heads) and layout.has_heads:
        lines[0] = f"{lines[0].ljust(_total(widths, is_cut=False))}{_GAP}…"
    return [indent + line for line in lines]


def _line(row: Sequence[str], widths: Sequence[int], states: Sequence[bool]) -> str:
    cells = []
    for text, width, is_state in zip(row, widths, states, strict=True):
        shown = shortened(text, width)
        cells.append((paint_state(shown) if is_state else shown) + " " * (width - text_width(shown)))
    return _GAP.join(cells).rstrip()


def _fitting(widths: Sequence[int], heads: Sequence[str], room: int) -> tuple[list[int], int]:
    """The widths of the columns that fit the room, and how many of them are shown."""
    least = [width if width <= _WHOLE else max(_LEAST, len(head)) for width, head in zip(widths, heads, strict=True)]
    shown = len(widths)
    while shown > 1 and _total(least[:shown], is_cut=shown < len(widths)) > room:
        shown -= 1
    limit = max(widths[:shown])
    # All that are wider than one limit are cut to it, so that the widest lose first.
    while limit > _LEAST and _total(_cut(widths[:shown], least, limit), is_cut=shown < len(widths)) > room:
        limit -= 1
    return _cut(widths[:shown], least, limit), shown


def _total(widths: Sequence[int], *, is_cut: bool) -> int:
    """The width of a line of columns; with ``is_cut``, of one that ends with the head for those left out."""
    return sum(widths) + len(_GAP) * (len(widths) - 1) + (len(_GAP) + 1 if is_cut else 0)


def _cut(widths: Sequence[int], least: Sequence[int], limit: int) -> list[int]:
    return [max(min(width, limit), low) for width, low in zip(widths, least[: len(widths)], strict=True)]


def result_lines(data: Mapping[str, Any], layout: TextLayout = PLAIN) -> list[str]:
    """Format one result: each field that is not empty on its own line, lists of objects and long objects below their name."""
    return _lines({name: value for name, value in data.items() if value not in (None, "", [], {})}, layout)


def _lines(data: dict[str, Any], layout: TextLayout, indent: str = "") -> list[str]:
    shown = {printable(name): value for name, value in data.items()}
    width = max(map(text_width, shown), default=0) + 2
    lines = []
    for name, value in shown.items():
        if isinstance(value, dict) and value and all(map(_are_counts, value.values())):
            rows = [{_kind_of(name): key, **item} for key, item in value.items()]
            lines += [f"{indent}{name}:", *_table(rows, layout, indent + "  ")]
        elif isinstance(value, dict) and value:
            lines += [f"{indent}{name}:", *_lines(value, layout, indent + "  ")]
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            lines += [f"{indent}{name}:", *_table(value, layout, indent + "  ")]
        elif isinstance(value, list) and len(value) > 1 and any(" " in str(item) for item in value):
            lines += [f"{indent}{name}:", *(f"{indent}  {cell(item)}" for item in value)]
        else:
            text = cell(value)
            is_state = layout.has_colors and name.upper() in _STATES
            lines.append(f"{indent}{name}:{' ' * (width - text_width(name) - 1)}{paint_state(text) if is_state else text}")
    return lines


def _are_counts(value: Any) -> bool:
    """Whether the value is an object of named numbers."""
    return isinstance(value, dict) and bool(value) and all(isinstance(item, int | float) for item in value.values())


def _kind_of(name: str) -> str:
    """Returns the head for the keys of an object: the keys of ``types`` and of ``garbageTypes`` are types."""
    return re.split(r"(?=[A-Z])", name)[-1].rstrip("s")


def _table(items: list[dict[str, Any]], layout: TextLayout, indent: str) -> list[str]:
    names = list(dict.fromkeys(name for item in items for name in item))
    heads = [name.upper() for name in names]
    # All that is known of one result is shown: only lists are cut to the width of a terminal.
    whole = TextLayout(has_colors=layout.has_colors)
    return text_table(heads, [[item.get(name) for name in names] for item in items], indent, whole)


def cell(value: Any) -> str:
    """Format a plain value as one printable cell of a line. An empty value is a dash, so that awk still sees a column."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ",".join(f"{printable(str(name))}={cell(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(cell, value))
    return printable(_LINE_BREAK.sub(" ", str(value)))
