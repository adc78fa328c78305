"""What a commit of a catalog tells beside its operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.clock import Micros
from headwater.commits import Commit
from headwater.errors import RefusedError
from headwater.store import ObjectId, id_of, id_text

__all__ = ["HEADWATER", "CommitMeta"]

HEADWATER = "headwater"
"""The author of commits that nobody asked for by name: scheduled imports, what an operator wants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMeta:
    """Who committed what, in words.

    properties    each with one value or several
    author_time   when its author made it, where that was not now: a transplanted commit keeps it
    merged        heads that were merged in; a commit's parent is not among them
    raises        RefusedError for a value of another type: it would be stored, and nobody could read the commit
    """

    message: str = ""
    authors: tuple[str, ...] = ()
    signed_off_by: tuple[str, ...] = ()
    properties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    author_time: Micros | None = None
    merged: tuple[ObjectId, ...] = ()

    def __post_init__(self) -> None:
        _check(isinstance(self.message, str), "message", self.message, "a text")
        for name in ("authors", "signed_off_by"):
            _check(_are_texts(getattr(self, name)), name, getattr(self, name), "a tuple of texts")
        are_properties = isinstance(self.properties, Mapping) and all(
            isinstance(name, str) and _are_texts(values) for name, values in self.properties.items()
        )
        _check(are_properties, "properties", self.properties, "a mapping of texts to tuples of texts")
        _check(
            self.author_time is None or _is_integer(self.author_time),
            "author_time",
            self.author_time,
            "a number of microseconds since 1970",
        )
        _check(
            isinstance(self.merged, tuple) and all(map(_is_integer, self.merged)),
            "merged",
            self.merged,
            "a tuple of commit ids",
        )

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
        return {name: value for name, value in given.items() if value not in (None, [], {})}

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
    """Properties with one value each, or several, as several. Raises RefusedError for other values."""
    return {
        name: (values,) if isinstance(values, str) else several("properties", values)
        for name, values in (properties or {}).items()
    }


def several(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """A sequence of texts as a tuple. Raises RefusedError for what is none, a single text too: its letters would be taken."""
    _check(
        isinstance(values, Sequence) and _are_texts(tuple(values)) and not isinstance(values, str),
        name,
        values,
        "a sequence of texts",
    )
    return tuple(values)


def _are_texts(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, str) for value in values)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check(is_right: bool, name: str, value: object, wanted: str) -> None:
    if not is_right:
        raise RefusedError(f"{name} of a commit is {wanted}, not {value!r}")
