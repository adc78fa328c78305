"""What an import did, as a value."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from headwater.catalogs.iceberg import Quarantined

__all__ = ["ROWS_SHOWN", "ImportReport"]

ROWS_SHOWN = 100
"""How many quarantined tables a task's outcome lists; it always has the total."""


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did, or in a dry run would do.

    surveyed      table directories that were looked at: imported + updated + unchanged + quarantined
    namespaces    how many were created
    rules         how many tables' latest metadata was told by which rule
    commits       hashes, oldest first
    """

    dry_run: bool = False
    surveyed: int = 0
    imported: int = 0
    updated: int = 0
    unchanged: int = 0
    namespaces: int = 0
    rules: dict[str, int] = {}
    commits: tuple[str, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()

    def codes(self) -> dict[str, int]:
        """How many tables were quarantined for which reason."""
        return dict(sorted(Counter(str(row.code) for row in self.quarantined).items()))

    def outcome(self, *, limit: int = ROWS_SHOWN) -> dict[str, Any]:
        """The report as plain data for a task's outcome, with the first ``limit`` of the quarantined tables."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        shown = [
            {"table": ".".join(row.key), "code": str(row.code), "message": row.message} for row in self.quarantined[:limit]
        ]
        return {
            "dryRun": plain.pop("dry_run"),
            **plain,
            "commits": {"total": len(self.commits), "shown": list(self.commits[-ROWS_SHOWN:])},
            "quarantined": {"total": len(self.quarantined), "codes": self.codes(), "shown": shown},
        }
