"""What a merge or transplant looks like from outside; see ``views``."""

from __future__ import annotations

from headwater.catalogs import MergeResult
from headwater.cli.fields import Field, View, identifier

__all__ = ["MERGE"]

MERGE: View[MergeResult] = View(
    "merge",
    "merges",
    (
        Field("applied", "whether a commit was made", lambda m: m.is_applied),
        Field("commits", "those that were made, oldest first", lambda m: [identifier(one) for one in m.commits]),
        Field("onto", "the head that it was done on, or would be; null: there was none", lambda m: identifier(m.onto)),
        Field("head", "the head of the branch afterwards", lambda m: identifier(m.head)),
        Field("base", "the commit that changes were counted from; null: from the beginning", lambda m: identifier(m.base)),
        Field(
            "otherBases",
            "common ancestors as near as that, after merges back and forth",
            lambda m: [identifier(one) for one in m.other_bases],
        ),
        Field(
            "lost",
            "collected commits that history could not be followed beyond; a nearer base may have been there",
            lambda m: [identifier(one) for one in m.lost],
        ),
        Field(
            "keys",
            "what became of each key that the source changed",
            lambda m: [
                {
                    "key": str(one.key),
                    "mode": one.mode.value,
                    "outcome": one.outcome.value,
                    "source": identifier(step.source),
                    "commit": identifier(step.commit),
                }
                for step in m.steps
                for one in step.keys
            ],
            inside={
                "[].mode": "NORMAL, FORCE or DROP",
                "[].outcome": "PUT, REMOVED, RESOLVED, SAME (both held the same), KEPT (both made this namespace), DROPPED or CONFLICT",
                "[].source": "the commit of the source that it comes from",
                "[].commit": "the commit that was made; null: none",
            },
        ),
        Field(
            "conflicts",
            "what stands against it; nothing was written then",
            lambda m: [
                {"kind": one.kind.value, "key": None if one.key is None else str(one.key), "message": one.message}
                for one in m.conflicts
            ],
            inside={"[].kind": "such as VALUE_DIFFERS"},
        ),
    ),
)
