"""What a restoration looks like from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.cli.fields import Field, View

__all__ = ["RESTORATION"]


def _sum(step: Mapping[str, Any], what: str) -> int:
    return sum(counts[what] for counts in step["changes"].values())


RESTORATION: View[Mapping[str, Any]] = View(
    "step of a restoration",
    "steps",
    (
        Field("reference", "a branch or tag, a catalog, or a reference of the realm", lambda s: s["reference"], "REFERENCE"),
        Field(
            "act",
            "restore: a commit on top · revive: it comes back · move: a tag is put where it was · update: a catalog's definition"
            " · delete: it was made later · keep: so, and it stays · lose: it cannot come back",
            lambda s: s["act"],
            "ACT",
        ),
        Field("target", "the commit whose state is wanted; null: it held nothing", lambda s: s["target"], "TARGET"),
        Field("put", "keys that come back", lambda s: _sum(s, "put"), "PUT"),
        Field("changed", "keys that change", lambda s: _sum(s, "changed"), "CHANGED"),
        Field("removed", "keys that go", lambda s: _sum(s, "removed"), "REMOVED"),
        Field(
            "changes",
            "the same by type of content, or by index",
            lambda s: s["changes"],
        ),
        Field("commit", "the new commit; null: none, or not yet", lambda s: s.get("commit")),
        Field("note", "why, where that is not plain", lambda s: s["note"], "NOTE"),
    ),
)
