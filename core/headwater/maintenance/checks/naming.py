"""References and the lists that name them: a name is listed before its row is made, and leaves the list after the row is gone."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.catalogs import CATALOGS
from headwater.clock import as_text
from headwater.commits import PINS
from headwater.maintenance.checks.findings import Code, Finding
from headwater.maintenance.checks.sight import Sight

__all__ = ["check_names"]


def check_names(sight: Sight) -> Iterator[Finding]:
    """What is listed and has no row, and what has a row and stands in no list."""
    if sight.list_fault:
        yield sight.finding(
            Code.LIST_UNREADABLE,
            CATALOGS,
            f"what the realm consists of cannot be read: {sight.list_fault}",
            "mend the reference named there; nothing of this realm is collected until then",
        )
        return
    grace = round(sight.rows.settings.writer_grace_seconds * 1_000_000)
    for entry in sight.listed:
        if entry.name in sight.references:
            continue
        if not entry.listed and not sight.scope.is_system and entry.name != PINS:
            yield sight.finding(
                Code.REFERENCE_MISSING,
                entry.name,
                "has no row, though every realm has this reference from its bootstrap on: it was lost",
                "restore it from a backup of the database; nothing of this realm is collected until then",
            )
        elif entry.listed and entry.listed < sight.now - grace:
            yield sight.finding(
                Code.NAME_WITHOUT_ROW,
                entry.name,
                f"{sight.words(entry.name)} is listed since {as_text(entry.listed)}, but has no row",
                "the next collection buries it, and the one after removes it",
            )
    for row in sight.unlisted:
        if row.deleted is not None:
            yield sight.finding(
                Code.TOMBSTONE_WITHOUT_NAME,
                row.name,
                f"was deleted at {as_text(row.deleted)} and stands in no list: its name was given up before its row",
                "leave it: it harms nobody",
            )
            continue
        yield sight.finding(
            Code.ROW_WITHOUT_NAME,
            row.name,
            f"has a row (created {as_text(row.created)}), but stands in no list: what it points to will be collected",
            "create the branch or tag again under this name, or leave it: it harms nobody",
        )
