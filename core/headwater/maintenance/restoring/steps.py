"""The steps of a restoration: which reference becomes what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headwater.catalogs import CatalogDefinition, NameKind
from headwater.maintenance.restoring.differing import Counts
from headwater.store import ObjectId, id_text

__all__ = ["Act", "Plan", "Step"]


class Act(StrEnum):
    """What happens to one reference or catalog."""

    RESTORE = "restore"
    """A commit on top, whose state equals the target's."""
    REVIVE = "revive"
    """It was deleted: it comes back, and is restored if it was elsewhere then."""
    MOVE = "move"
    """A tag is put on the commit that it stood at."""
    UPDATE = "update"
    """Fields of a catalog's definition become as they were."""
    DELETE = "delete"
    """It was made later, and is deleted."""
    KEEP = "keep"
    """It was made later, or others changed it since the restoration was asked for: it stays as it is."""
    LOSE = "lose"
    """It cannot come back."""
    NOTHING = "nothing"
    """It is as it was."""

    @property
    def changes(self) -> bool:
        return self not in (Act.KEEP, Act.LOSE, Act.NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One reference, or (``reference`` empty) a catalog itself.

    text          in the words of a person: ``lake/main``, ``grants``, ``lake``
    target        the commit whose state is wanted; None: it held nothing
    among         references in whose history the target may be, beside its own
    counts        by type, as far as the head of now tells
    fields        of a catalog, as they were
    """

    act: Act
    text: str
    reference: str = ""
    catalog: CatalogDefinition | None = None
    kind: NameKind | None = None
    name: str = ""
    target: ObjectId | None = None
    among: tuple[str, ...] = ()
    counts: Mapping[str, Counts] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def as_plain(self) -> dict[str, Any]:
        return {
            "reference": self.text,
            "act": self.act.value,
            "target": None if self.target is None else id_text(self.target),
            "changes": {kind: counts.as_plain() for kind, counts in self.counts.items()},
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """All steps, in the order in which they are taken: what comes back before what is written to it."""

    steps: tuple[Step, ...]

    @property
    def is_needed(self) -> bool:
        return any(step.act.changes for step in self.steps)
