"""What a restoration is asked for: of which reference, and which state it aims at: a commit, or a moment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headwater.catalogs import Catalog, StepSign, parse_revspec
from headwater.clock import Micros, as_text
from headwater.errors import NotFoundError, RefusedError
from headwater.settings import is_duration, parse_duration
from headwater.store import ObjectId, RealmStore, id_of, id_text

_COMMIT = re.compile(r"[0-9a-f]{16}")
_SECOND = 999_999
_EXAMPLES = "write for example 2025-11-22T12:00:00Z, or 90m for as long ago"


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
        found = cls.find_in(text, now)
        if found is None:
            raise RefusedError(f"{text!r} is neither a commit (16 hex digits) nor a time: {_EXAMPLES}")
        return found

    @classmethod
    def find_in(cls, text: str, now: Micros) -> RestoreTarget | None:
        """Parse a text as ``from_text`` does; None for one that is neither a commit's hash nor a time."""
        if _COMMIT.fullmatch(text):
            return cls(commit=id_of(text))
        time = _ago(text, now) or _time(text)
        if time is None:
            return None
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


def read_restore_target(rows: RealmStore, reference: str, text: str) -> RestoreTarget:
    """The target that a text means now: what ``RestoreTarget.from_text`` takes, and for a branch or tag also a revision of its catalog.

    reference     as a restoration names it; ``lake/main`` takes ``main~1``, and ``~1`` for the same
    raises        RefusedError for a text that is none of these, or counts from a branch where none is restored; NotFoundError for a
                  revision that is not there
    """
    now = rows.clock.now()
    found, (catalog_name, _, name) = RestoreTarget.find_in(text, now), reference.partition("/")
    if found is not None or not name:
        return found or RestoreTarget.from_text(text, now)
    spec = parse_revspec(name + text if text[:1] in tuple(StepSign) else text)
    catalog = Catalog.open(rows, catalog_name)
    try:
        head = catalog.resolve(spec.text)
    except NotFoundError as missing:
        raise NotFoundError(f"{missing}; and {text!r} is no time: {_EXAMPLES}") from missing
    if head is None:
        raise NotFoundError(f"{text!r} has no commit: nothing was committed to it yet")
    return RestoreTarget(commit=head.id)


def _ago(text: str, now: Micros) -> Micros | None:
    return Micros(now - round(parse_duration(text) * 1_000_000)) if is_duration(text) else None


def _time(text: str) -> Micros | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    micros = round(moment.timestamp() * 1_000_000)
    return Micros(micros if "." in text else micros + _SECOND)
