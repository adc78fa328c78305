"""The request of a restoration: which part of a realm, and as of which commit or moment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from headwater.clock import Micros, as_text
from headwater.errors import RefusedError
from headwater.settings import parse_duration
from headwater.store import ObjectId, id_of, id_text

_COMMIT = re.compile(r"[0-9a-f]{16}")
_SECOND = 999_999


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """The target of a restoration: either a commit, or a moment."""

    commit: ObjectId | None = None
    time: Micros | None = None

    @classmethod
    def from_text(cls, text: str, now: Micros) -> RestoreTarget:
        """Parse a commit's hash; a time in RFC 3339, in UTC unless it names a zone; or an age, such as ``90m``.

        A time without a fraction means the end of its second: that is how times are printed.

        raises        RefusedError for anything else, and for a time in the future
        """
        if _COMMIT.fullmatch(text):
            return cls(commit=id_of(text))
        time = _ago(text, now) or _time(text)
        if time is None:
            raise RefusedError(
                f"{text!r} is neither a commit (16 hex digits) nor a time: write for example 2025-11-22T12:00:00Z, or 90m for as long ago"
            )
        if time < 0:
            raise RefusedError(f"{text} is before all times that a store knows: the oldest is {as_text(0)}")
        if time - _SECOND > now:
            raise RefusedError(f"{text} is still to come: it is {as_text(now)} now")
        return cls(time=Micros(min(time, now)))

    def __str__(self) -> str:
        return f"commit {id_text(self.commit)}" if self.commit is not None else as_text(self.time or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRequest:
    """The request of a restoration.

    reference     ``lake/main``, ``lake``, ``grants``, or empty for the whole realm
    prune         delete the branches, tags and catalogs that were made later
    author        the requester, recorded in its commits
    """

    reference: str
    aim: RestoreTarget
    prune: bool = False
    author: str = ""

    def arguments(self) -> dict[str, Any]:
        """The request as the arguments of a task."""
        commit = None if self.aim.commit is None else id_text(self.aim.commit)
        told = {"reference": self.reference, "commit": commit, "time": self.aim.time, "prune": self.prune}
        return told | ({"author": self.author} if self.author else {})

    def is_same(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a task carries this request, whoever requested it."""
        return {**arguments, "author": self.author} == {**self.arguments(), "author": self.author}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> RestoreRequest:
        """Parse the arguments of a task.

        raises        RefusedError when they are not those of a restoration
        """
        commit, time = arguments.get("commit"), arguments.get("time")
        if (commit is None) == (time is None):
            raise RefusedError(f"a restoration needs a commit or a time, not {dict(arguments)!r}")
        aim = RestoreTarget(None if commit is None else id_of(commit), None if time is None else Micros(int(time)))
        return cls(
            reference=str(arguments.get("reference", "")),
            aim=aim,
            prune=bool(arguments.get("prune")),
            author=str(arguments.get("author", "")),
        )


class RequestMoment(NamedTuple):
    """The time of a request, and whether an earlier attempt may have done a part of it. Later changes of others stay.

    Only a second attempt may conclude that a reference needs nothing because it needed nothing then: clocks may differ.
    """

    time: Micros
    is_resumed: bool = False


def _ago(text: str, now: Micros) -> Micros | None:
    try:
        return Micros(now - round(parse_duration(text) * 1_000_000))
    except RefusedError:
        return None


def _time(text: str) -> Micros | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    micros = round(found.timestamp() * 1_000_000)
    return Micros(micros if "." in text else micros + _SECOND)
