"""What a commit of a catalog tells beside its operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.clock import Micros
from headwater.commits import Commit
from headwater.store import ObjectId, id_of, id_text

__all__ = ["CommitMeta"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMeta:
    """Who committed what, in words.

    properties    each with one value or several
    author_time   when its author made it, where that was not now: a transplanted commit keeps it
    merged        heads that were merged in; a commit's parent is not among them
    """

    message: str = ""
    authors: tuple[str, ...] = ()
    signed_off_by: tuple[str, ...] = ()
    properties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    author_time: Micros | None = None
    merged: tuple[ObjectId, ...] = ()

    def as_properties(self, catalog_id: str) -> dict[str, Any]:
        """What the commit carries beside its message; nothing that is empty."""
        given = {
            "catalog": catalog_id,
            "authors": list(self.authors),
            "signedOffBy": list(self.signed_off_by),
            "properties": {name: list(values) for name, values in self.properties.items()},
            "authorTime": self.author_time,
            "merged": [id_text(commit_id) for commit_id in self.merged],
        }
        return {name: value for name, value in given.items() if value}

    @classmethod
    def of(cls, commit: Commit) -> CommitMeta:
        """What a commit tells."""
        told = commit.properties
        return cls(
            message=commit.message,
            authors=tuple(told.get("authors", ())),
            signed_off_by=tuple(told.get("signedOffBy", ())),
            properties={name: tuple(values) for name, values in told.get("properties", {}).items()},
            author_time=told.get("authorTime"),
            merged=tuple(id_of(text) for text in told.get("merged", ())),
        )


def many(properties: Mapping[str, str | Sequence[str]] | None) -> dict[str, tuple[str, ...]]:
    """Properties with one value each, or several, as several."""
    given = properties or {}
    return {name: (values,) if isinstance(values, str) else tuple(values) for name, values in given.items()}
