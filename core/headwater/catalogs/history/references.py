"""What the text of a reference says: ``name@hash~2^2*2026-01-31T12:00:00Z``. Pure: what it means in a catalog stands in ``resolving``.

text  := [ name ] [ "@" [ hash ] ] { step }
name  := "-" for the default branch, or the name of a branch or tag; without a name and a hash: the default branch
hash  := 16 lower-case hex digits; without a name, or alone: this commit, whatever branch it is on
step  := "~" N, the N-th commit before · "^" N, its N-th parent: 1 the one before, from 2 on the heads that it merged
         "*" T, the youngest commit that is not later than T: milliseconds since 1970, or such as 2026-01-31T12:00:00.5Z;
         without a fraction it is the end of its second, for commits are shown with such times
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.store import ObjectId, id_of

__all__ = ["DEFAULT", "ReferenceText", "Step", "Way", "check_exact", "parse_reference_text"]

DEFAULT = "-"
"""Stands for the default branch where a name stands."""

_PIECE = re.compile(r"[^@~^*]*")
_OUTSIDE_NAMES = re.compile(r"[^A-Za-z0-9._/-]")
_HASH = re.compile(r"[0-7][0-9a-f]{15}")
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_MILLIS = re.compile(r"-?[0-9]{1,15}")
_INSTANT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?Z")


class Way(StrEnum):
    """The sign of a step."""

    BEFORE = "~"
    PARENT = "^"
    TIME = "*"


@dataclass(frozen=True, slots=True)
class Step:
    """One step back from a commit. ``number``: how many, which parent, or a time in microseconds since 1970."""

    way: Way
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class ReferenceText:
    """A text in its parts.

    name          of a branch or tag, or ``-``; None: the commit stands alone
    commit        what stands behind the ``@``, or alone
    """

    text: str
    name: str | None
    commit: ObjectId | None
    steps: tuple[Step, ...]

    @property
    def is_ambiguous(self) -> bool:
        """Whether it counts back from wherever the branch is by then: good for reading, and nothing to write upon."""
        return bool(self.steps) and self.commit is None


def parse_reference_text(text: str) -> ReferenceText:
    """Take a text apart.

    raises        RefusedError that says what is wrong, and at which character
    """
    name = _piece(text, 0)
    outside = _OUTSIDE_NAMES.search(name)
    if outside is not None:
        raise _fault(text, outside.start(), f"{outside[0]!r} is in no name")
    at = len(name)
    commit, is_hash = None, _HASH.fullmatch(name) is not None
    if is_hash:
        name, commit = "", id_of(name)
    if text[at : at + 1] == "@":
        given = _piece(text, at + 1)
        if is_hash:
            raise _fault(text, at, "16 hex digits are a commit's hash, and no name that an @ could follow")
        if given and not _HASH.fullmatch(given):
            raise _fault(text, at + 1, f"{given!r} is no hash of a commit, which is 16 lower-case hex digits")
        commit = id_of(given) if given else None
        at += 1 + len(given)
        if at == 1 == len(text):
            raise _fault(text, 1, "neither name nor hash")
    steps = tuple(_steps(text, at))
    return ReferenceText(text, name or (None if commit is not None else DEFAULT), commit, steps)


def check_exact(told: ReferenceText) -> None:
    """Pass if the text may say what is to be written upon.

    raises        RefusedError for what counts back from wherever a branch is by then
    """
    if told.is_ambiguous:
        raise RefusedError(
            f"{told.text!r} counts back from a branch that may have moved by then: say from which commit, such as"
            f" {told.name}@0123456789abcdef{''.join(step.text for step in told.steps)}"
        )


def _steps(text: str, at: int) -> Iterator[Step]:
    while at < len(text):
        if text[at] == "@":
            raise _fault(text, at, "an @ stands only once, before the steps")
        body = _piece(text, at + 1)
        way = Way(text[at])
        yield Step(way, _time(text, at, body) if way is Way.TIME else _count(text, at, body), text[at] + body)
        at += 1 + len(body)


def _count(text: str, at: int, body: str) -> int:
    if not _COUNT.fullmatch(body):
        raise _fault(text, at, f"{text[at]}{body} has no number from 1 to 999999999 behind its sign")
    return int(body)


def _time(text: str, at: int, body: str) -> Micros:
    if _MILLIS.fullmatch(body):
        return Micros(int(body) * 1000)
    found = _INSTANT.fullmatch(body)
    try:
        if found is not None:
            seconds = datetime.fromisoformat(found[1]).replace(tzinfo=UTC) - _EPOCH
            return Micros((seconds.days * 86_400 + seconds.seconds) * 1_000_000 + int(f"{found[2] or '999999':0<6.6}"))
    except ValueError:
        pass  # such as a 30th of February
    raise _fault(
        text,
        at,
        f"{text[at]}{body} has no time behind its sign, which is milliseconds since 1970 or such as 2026-01-31T12:00:00Z",
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _piece(text: str, at: int) -> str:
    """What stands from there on, up to the next sign."""
    found = _PIECE.match(text, at)
    return found[0] if found else ""


def _fault(text: str, at: int, what: str) -> RefusedError:
    return RefusedError(f"{text!r} is no reference, at character {at + 1}: {what}")
