"""What a run of expiry did, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

_NOTES = 20


@dataclass(slots=True)
class ExpiryCounts:
    """What a run has seen and changed so far; a dry run counts what it would change.

    unchanged     tables that were not looked at: they are as they were, and nothing of them is due
    looked        tables whose metadata was read
    inherited     tables that a branch has as it got them from the default branch, where they expire
    guests        tables that another system may write, and that were left alone
    refused       tables that were left alone, by reason
    unreadable    tables whose metadata could not be read
    conflicts     how often another commit to a table was faster, and it was looked at again
    left          of these tables, those that are left to the next run
    """

    realm: str
    catalog: str
    dry_run: bool
    branches: int = 0
    unchanged: int = 0
    looked: int = 0
    inherited: int = 0
    guests: int = 0
    unreadable: int = 0
    changed: int = 0
    snapshots: int = 0
    refs: int = 0
    log_entries: int = 0
    log_files: int = 0
    statistics: int = 0
    commits: int = 0
    conflicts: int = 0
    left: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def add_note(self, text: str) -> None:
        """Tell a person something; of many such texts the first are kept."""
        if len(self.notes) < _NOTES:
            self.notes.append(text)

    def as_plain(self) -> dict[str, Any]:
        """The outcome of a task."""
        return {
            "realm": self.realm,
            "catalog": self.catalog,
            "dryRun": self.dry_run,
            "branches": self.branches,
            "unchanged": self.unchanged,
            "looked": self.looked,
            "inherited": self.inherited,
            "guests": self.guests,
            "refused": dict(sorted(self.refused.items())),
            "unreadable": self.unreadable,
            "changed": self.changed,
            "snapshots": self.snapshots,
            "refs": self.refs,
            "logEntries": self.log_entries,
            "logFiles": self.log_files,
            "statistics": self.statistics,
            "commits": self.commits,
            "conflicts": self.conflicts,
            "left": self.left,
            "notes": list(self.notes),
        }
