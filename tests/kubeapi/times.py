"""Times as the API writes them, and ages as tables show them."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["age", "parse", "stamp"]


def stamp(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> float | None:
    """Seconds; None for what is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def age(seconds: float) -> str:
    """A span in the two units that matter."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    years = days // 365
    for units, most, word, rest, rest_word in (
        (minutes, 10, "m", whole % 60, "s"),
        (minutes, 180, "m", 0, ""),
        (hours, 8, "h", minutes % 60, "m"),
        (hours, 48, "h", 0, ""),
        (days, 8, "d", hours % 24, "h"),
        (days, 730, "d", 0, ""),
        (years, 8, "y", days % 365, "d"),
    ):
        if units < most:
            return f"{units}{word}{rest}{rest_word}" if rest else f"{units}{word}"
    return f"{years}y"
