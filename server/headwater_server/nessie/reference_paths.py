"""References in the paths of Nessie's API: which branch, tag or commit a text names, and what a new branch or tag may be called.

text  := [ name ] [ "@" [ hash ] ] { step }
name  := "-" for the default branch, or the name of a branch or tag; none, or DETACHED, before a hash: the commit stands alone
hash  := 8 to 64 hex digits, in either case
step  := "~" N or "^" N, from 1 on · "*" T, milliseconds since 1970 or such as 2026-01-31T12:00:00.5Z

Commits here have hashes of 16 digits. Other hashes are well-formed, and of commits that are not here: that is another answer than
the one to a malformed text. One of them stands for the state before the first commit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from headwater.catalogs import RefKind, checked_ref_name
from headwater.errors import NotFoundError, RefusedError
from headwater.store import ObjectId, id_of, id_text

DEFAULT_BRANCH: Final = "-"
"""Stands for the default branch where a name stands."""
DETACHED: Final = "DETACHED"
"""Stands where a name stands, for a commit without a branch or tag."""
NO_ANCESTOR_HASH: Final = "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d"
"""The SHA-256 of the text ``empty``: Nessie's name for the state of a branch before its first commit."""

_PIECE: Final = re.compile(r"[^@~^*]*")
_OUTSIDE_NAMES: Final = re.compile(r"[^A-Za-z0-9._/-]")
_HASH: Final = re.compile(r"[0-9A-Fa-f]{8,64}")
_OWN_HASH: Final = re.compile(r"[0-7][0-9a-f]{15}")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,8}")
_MILLIS: Final = re.compile(r"-?[0-9]{1,15}")
_INSTANT: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]{1,9})?Z")


class UnknownHashError(NotFoundError):
    """A hash that is well-formed, and of no commit that could be here."""


@dataclass(frozen=True, slots=True)
class ReferencePath:
    """The parts of a text that names a branch, a tag or a commit.

    name          of a branch or tag, or ``-``; None: the hash stands alone
    hash          in lower case, of any commit; None: the head
    steps         back from there, as they stood
    """

    name: str | None
    hash: str | None = None
    steps: str = ""

    @property
    def is_ambiguous(self) -> bool:
        """True if it counts back from a head, which moves: good for reading, unsafe as the base of a write."""
        return bool(self.steps) and self.hash is None

    @property
    def is_bare(self) -> bool:
        """True if it is a name and nothing more."""
        return self.hash is None and not self.steps

    @property
    def is_no_ancestor(self) -> bool:
        """True for the state before the first commit, which is no commit and has no revision text."""
        return self.hash == NO_ANCESTOR_HASH and not self.steps

    def to_revspec(self) -> str:
        """Write it as the text that catalogs resolve.

        raises        UnknownHashError for a hash that no commit here can have, among them the one before the first commit
        """
        if self.hash is not None and not _OWN_HASH.fullmatch(self.hash):
            raise _unknown_hash_error(self.hash)
        at = "" if self.hash is None else f"@{self.hash}"
        return f"{self.name or ''}{at}{self.steps}"

    def __str__(self) -> str:
        at = "" if self.hash is None else f"@{self.hash}"
        return f"{self.name or ''}{at}{self.steps}"


@lru_cache(maxsize=4096)
def parse_reference_path(text: str) -> ReferencePath:
    """Parse a reference of version 2, once it is decoded from its URL.

    raises        RefusedError that says what is wrong, and at which character
    """
    name = _piece(text, 0)
    at = len(name)
    outside = _OUTSIDE_NAMES.search(name)
    if outside is not None:
        raise _syntax_error(text, outside.start(), f"{outside[0]!r} is in no name")
    commit = None
    if text[at : at + 1] == "@":
        given = _piece(text, at + 1)
        commit = _checked_hash(text, at + 1, given) if given else None
        at += 1 + len(given)
    _check_steps(text, at)
    return _reference(text, name, commit, text[at:])


def reference_from_query(name: str | None, hash_on_ref: str | None = None) -> ReferencePath:
    """Make a reference of the two parameters that version 1 has for it; no name, or an empty one, is the default branch.

    raises        RefusedError
    """
    commit, steps = None, ""
    if hash_on_ref:
        given = _piece(hash_on_ref, 0)
        commit = _checked_hash(hash_on_ref, 0, given) if given else None
        _check_steps(hash_on_ref, len(given))
        steps = hash_on_ref[len(given) :]
    return _reference(name or "", name or DEFAULT_BRANCH, commit, steps)


def parse_diff_path(text: str) -> tuple[ReferencePath, ReferencePath]:
    """Parse the path of a comparison in version 1, ``from[*hash]...to[*hash]``.

    raises        RefusedError
    """
    before, dots, after = text.partition("...")
    if not dots:
        raise RefusedError(f"{text!r} compares nothing: put three dots between two references, such as main...dev")
    return _diff_side(before), _diff_side(after)


def check_new_name(kind: RefKind, name: str) -> str:
    """Check what a new branch or tag is to be called, and return it. More is refused than catalogs do: Nessie's clients fail on the rest.

    raises        RefusedError that says what is wrong with it
    """
    checked_ref_name(kind, name)
    if _HASH.fullmatch(name):
        raise RefusedError(f"{name!r} is not a name for a {kind}: 8 to 64 hex digits are the hash of a commit")
    if not name[0].isalpha():
        raise RefusedError(f"{name!r} is not a name for a {kind}: begin with a letter")
    return name


def hash_text(commit_id: ObjectId | None) -> str:
    """The hash of a commit, or of the state before the first one."""
    return NO_ANCESTOR_HASH if commit_id is None else id_text(commit_id)


def parse_hash(text: str) -> ObjectId | None:
    """The commit that has this hash; None for the state before the first one.

    raises        RefusedError for a text that is no hash · UnknownHashError for one that no commit here can have
    """
    commit = _checked_hash(text, 0, text)
    if commit == NO_ANCESTOR_HASH:
        return None
    if not _OWN_HASH.fullmatch(commit):
        raise _unknown_hash_error(commit)
    return id_of(commit)


def _reference(text: str, name: str, commit: str | None, steps: str) -> ReferencePath:
    if not name or (name == DETACHED and commit is not None):
        if commit is None:
            raise _syntax_error(text, 0, "neither a name nor a hash; - is the default branch")
        return ReferencePath(None, commit, steps)
    if name != DEFAULT_BRANCH:
        checked_ref_name(RefKind.BRANCH, name)
    return ReferencePath(name, commit, steps)


def _diff_side(text: str) -> ReferencePath:
    name, star, commit = text.partition("*")
    if star and not commit:
        raise _syntax_error(text, len(name), "no hash stands behind the star")
    return _reference(text, name, _checked_hash(text, len(name) + 1, commit) if star else None, "")


def _check_steps(text: str, at: int) -> None:
    while at < len(text):
        body = _piece(text, at + 1)
        if text[at] == "@":
            raise _syntax_error(text, at, "an @ stands only once, before the steps")
        if text[at] == "*" and not _is_time(body):
            raise _syntax_error(
                text, at, f"*{body} has no time behind its sign: milliseconds since 1970, or such as 2026-01-31T12:00:00Z"
            )
        if text[at] in "~^" and not _COUNT.fullmatch(body):
            raise _syntax_error(text, at, f"{text[at]}{body} has no number from 1 to 999999999 behind its sign")
        at += 1 + len(body)


def _is_time(text: str) -> bool:
    instant = _INSTANT.fullmatch(text)
    if instant is None:
        return _MILLIS.fullmatch(text) is not None
    try:
        datetime.fromisoformat(instant[1])
    except ValueError:  # such as a 30th of February
        return False
    return True


def _checked_hash(text: str, at: int, given: str) -> str:
    if not _HASH.fullmatch(given):
        raise _syntax_error(text, at, f"{given!r} is no hash, which is 8 to 64 hex digits")
    return given.lower()


def _piece(text: str, at: int) -> str:
    """The text from a position up to the next sign."""
    match = _PIECE.match(text, at)
    return match[0] if match else ""


def _syntax_error(text: str, at: int, what: str) -> RefusedError:
    return RefusedError(f"{text!r} is not a valid reference, at character {at + 1}: {what}")


def _unknown_hash_error(commit: str) -> UnknownHashError:
    return UnknownHashError(f"no commit has the hash {commit!r}: hashes here have 16 digits, and are given whole")
