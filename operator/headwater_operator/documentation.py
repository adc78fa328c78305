"""Tables of the documentation that are made from the catalogue of conditions and reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headwater_operator.reasons import CONDITIONS, REASONS

__all__ = ["conditions_table", "events_table", "reasons_table"]


def conditions_table() -> str:
    """What each condition says."""
    rows = [(f"`{one.name}`", ", ".join(one.kinds), one.good or "either", one.meaning) for one in CONDITIONS]
    return _table(("condition", "on", "good when", "what it says"), rows)


def reasons_table() -> str:
    """What each reason of a condition means, and what to do."""
    ordered = sorted((one for one in REASONS.values() if one.conditions), key=lambda one: one.name)
    rows = [
        (f"`{one.name}`", ", ".join(f"`{name}`" for name in one.conditions), one.meaning, one.action or "Nothing.")
        for one in ordered
    ]
    return _table(("reason", "in", "what it means", "what to do"), rows)


def events_table() -> str:
    """The events, with the warnings first."""
    ordered = sorted((one for one in REASONS.values() if one.event), key=lambda one: (one.event != "Warning", one.name))
    rows = [(f"`{one.name}`", one.event or "", one.meaning, one.action or "Nothing.") for one in ordered]
    return _table(("event", "type", "what happened", "what to do"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
