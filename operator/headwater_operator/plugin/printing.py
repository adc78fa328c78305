"""Results as text: aligned tables, ages as kubectl writes them, sizes for people, JSON, YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import yaml

__all__ = [
    "bytes_text",
    "cell",
    "count_text",
    "json_text",
    "moment",
    "progress_text",
    "span",
    "table",
    "time_text",
    "yaml_text",
]

_GAP = "   "
_LIMIT_UNTIL_MINUTES = 2 * 60
_SIZES = ("KiB", "MiB", "GiB", "TiB", "PiB")


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], indent: str = "") -> list[str]:
    """Lines of columns, each as wide as its widest cell."""
    texts = [list(heads), *([cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return [indent + _GAP.join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in texts]


def cell(value: Any) -> str:
    """A plain value in one cell. Nothing is a dash, so that columns stay columns for awk."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(cell, value))
    return " ".join(str(value).split())


def moment(text: Any) -> datetime | None:
    """A time as Kubernetes writes it; None where there is none, or what stands there is no time."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def time_text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float) -> str:
    """How long, in one or two units: ``45s``, ``12m``, ``5h``, ``3d``."""
    whole = max(round(seconds), 0)
    if whole < _LIMIT_UNTIL_MINUTES:
        return f"{whole}s"
    for size, unit, limit in ((60, "m", 120 * 60), (3600, "h", 48 * 3600)):
        if whole < limit:
            return f"{whole // size}{unit}"
    return f"{whole // 86400}d"


def count_text(count: int, noun: str) -> str:
    """``1 table``, ``2 tables``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def bytes_text(count: int) -> str:
    size, unit = float(count), "B"
    for larger in _SIZES:
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}" if unit != "B" else f"{count} B"


def progress_text(task: Mapping[str, Any]) -> str:
    """``3 of 14 tables``; what is not known is left out."""
    done, total, unit = task.get("done"), task.get("total"), str(task.get("unit") or "")
    if done is None and total is None:
        return ""
    amount = f"{done or 0} of {total}" if total is not None else str(done)
    return f"{amount} {unit}".strip()


def json_text(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def yaml_text(data: Any) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1000))
