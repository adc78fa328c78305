"""Times, ages as kubectl writes them, and the progress of tasks, as text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_LIMIT_UNTIL_MINUTES = 2 * 60


def moment(text: Any) -> datetime | None:
    """Parse a time as Kubernetes writes it; None where it is missing or invalid."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def time_text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float) -> str:
    """A duration in one or two units: ``45s``, ``12m``, ``5h``, ``3d``."""
    whole = max(round(seconds), 0)
    if whole < _LIMIT_UNTIL_MINUTES:
        return f"{whole}s"
    for size, unit, limit in ((60, "m", 120 * 60), (3600, "h", 48 * 3600)):
        if whole < limit:
            return f"{whole // size}{unit}"
    return f"{whole // 86400}d"


def progress_text(task: Mapping[str, Any]) -> str:
    """The progress as ``3 of 14 tables``; unknown parts are left out."""
    done, total, unit = task.get("done"), task.get("total"), str(task.get("unit") or "")
    if done is None and total is None:
        return ""
    amount = f"{done or 0} of {total}" if total is not None else str(done)
    return f"{amount} {unit}".strip()
