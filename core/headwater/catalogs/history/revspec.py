"""The text that names a commit, such as ``name@hash~2^2*2026-01-31T12:00:00Z``: its grammar, and the commit that it means now.

text  := [ name ] [ "@" [ hash ] ] { step }
name  := "-" for the default branch, or the name of a branch or tag; without a name and a hash: the default branch
hash  := 16 lower-case hex digits; without a name, or alone: this commit, whatever branch it is on
step  := "~" N, the N-th commit before · "^" N, its N-th parent: 1 the one before, from 2 on the heads that it merged
         "*" T, the youngest commit that is not later than T: milliseconds since 1970, or such as 2026-01-31T12:00:00.5Z;
         without a fraction it is the end of its second, for commits are shown with such times

``parse_revspec`` is pure. ``RefResolver`` reads the commit that the text names within one catalog. ``follow_steps`` walks back
from it; a commit names its last 20 ancestors, so it reads one commit in twenty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

from headwater.catalogs.history.commit_meta import CommitMeta, is_in_history
from headwater.catalogs.registry import CatalogEntry, RefKind, parse_reference
from headwater.clock import Micros, as_text
from headwater.commits import (
    AbsentReference,
    Commit,
    DescribeReference,
    Head,
    commit_as_of,
    load_head,
    no_state_error,
    read_commit,
    state_as_of,
)
from headwater.errors import ExpiredError, NotFoundError, RefusedError
from headwater.store import ObjectId, RealmStore, Reference, id_of, id_text

DEFAULT_REF = "-"
"""Stands for the default branch where a name stands."""

_PIECE = re.compile(r"[^@~^*]*")
_OUTSIDE_NAMES = re.compile(r"[^A-Za-z0-9._/-]")
_HASH = re.compile(r"[0-7][0-9a-f]{15}")
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_MILLIS = re.compile(r"-?[0-9]{1,15}")
_INSTANT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?Z")


class StepSign(StrEnum):
    """The sign of a step."""

    BEFORE = "~"
    PARENT = "^"
    TIME = "*"


@dataclass(frozen=True, slots=True)
class RevStep:
    """One step back from a commit. ``number``: how many, which parent, or a time in microseconds since 1970."""

    way: StepSign
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class RevSpec:
    """The parts of a revision text.

    name          of a branch or tag, or ``-``; None: the commit stands alone
    commit        the hash behind the ``@``, or alone
    """

    text: str
    name: str | None
    commit: ObjectId | None
    steps: tuple[RevStep, ...]

    @property
    def is_ambiguous(self) -> bool:
        """True if it counts back from the branch's present head, which moves: good for reading, unsafe as the base of a write."""
        return bool(self.steps) and self.commit is None


@lru_cache(maxsize=1000)
def parse_revspec(text: str) -> RevSpec:
    """Parse a revision text.

    raises        RefusedError that says what is wrong, and at which character
    """
    name = _piece(text, 0)
    outside = _OUTSIDE_NAMES.search(name)
    if outside is not None:
        raise _syntax_error(text, outside.start(), f"{outside[0]!r} is in no name")
    at = len(name)
    commit, is_hash = None, _HASH.fullmatch(name) is not None
    if is_hash:
        name, commit = "", id_of(name)
    if text[at : at + 1] == "@":
        given = _piece(text, at + 1)
        if is_hash:
            raise _syntax_error(text, at, "16 hex digits are a commit's hash, and no name that an @ could follow")
        if given and not _HASH.fullmatch(given):
            raise _syntax_error(text, at + 1, f"{given!r} is no hash of a commit, which is 16 lower-case hex digits")
        commit = id_of(given) if given else None
        at += 1 + len(given)
        if at == 1 == len(text):
            raise _syntax_error(text, 1, "neither name nor hash")
    steps = tuple(_steps(text, at))
    return RevSpec(text, name or (None if commit is not None else DEFAULT_REF), commit, steps)


def check_exact(spec: RevSpec) -> None:
    """Check that a text may name the base of a write.

    raises        RefusedError for a text that counts back from the branch's present head
    """
    if spec.is_ambiguous:
        raise RefusedError(
            f"{spec.text!r} counts back from a branch that may have moved by then: say from which commit, such as"
            f" {spec.name}@0123456789abcdef{''.join(step.text for step in spec.steps)}"
        )


def _steps(text: str, at: int) -> Iterator[RevStep]:
    while at < len(text):
        if text[at] == "@":
            raise _syntax_error(text, at, "an @ stands only once, before the steps")
        body = _piece(text, at + 1)
        way = StepSign(text[at])
        yield RevStep(way, _time(text, at, body) if way is StepSign.TIME else _count(text, at, body), text[at] + body)
        at += 1 + len(body)


def _count(text: str, at: int, body: str) -> int:
    if not _COUNT.fullmatch(body):
        raise _syntax_error(text, at, f"{text[at]}{body} has no number from 1 to 999999999 behind its sign")
    return int(body)


def _time(text: str, at: int, body: str) -> Micros:
    if _MILLIS.fullmatch(body):
        return Micros(min(max(int(body) * 1000, _FIRST_MICROS), _LAST_MICROS))
    instant = _INSTANT.fullmatch(body)
    try:
        if instant is not None:
            seconds = datetime.fromisoformat(instant[1]).replace(tzinfo=UTC) - _EPOCH
            return Micros((seconds.days * 86_400 + seconds.seconds) * 1_000_000 + int(f"{instant[2] or '999999':0<6.6}"))
    except ValueError:
        pass  # such as a 30th of February
    raise _syntax_error(
        text,
        at,
        f"{text[at]}{body} has no time behind its sign, which is milliseconds since 1970 or such as 2026-01-31T12:00:00Z",
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MICROS, _LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, which can be written: before and after them nothing was committed, and messages tell the time."""


def _piece(text: str, at: int) -> str:
    """The text from a position up to the next sign."""
    match = _PIECE.match(text, at)
    return match[0] if match else ""


def _syntax_error(text: str, at: int, what: str) -> RefusedError:
    return RefusedError(f"{text!r} is not a valid reference, at character {at + 1}: {what}")


@dataclass(frozen=True, slots=True)
class RefTarget:
    """What a revision text means now: a branch, a tag or a commit.

    kind, name    of the branch or tag that the text begins with, the default branch by its own name; None: a hash stands alone
    head          the commit; None for a branch or tag without one
    is_writable   the text is the name of a branch and nothing more. Tags, hashes and steps back can only be read
    pointer       where the branch or tag is now, whatever commit the text goes on to; None: nowhere yet, or a hash stands alone
    """

    text: str
    kind: RefKind | None
    name: str | None
    head: Head | None
    is_writable: bool
    pointer: ObjectId | None = None


class RefResolver:
    """Resolves names, hashes and revision texts to commits of one catalog."""

    def __init__(self, entry: CatalogEntry) -> None:
        self._entry = entry
        self._rows = entry.rows

    def resolve(self, text: str | None, *, exact: bool = False) -> Head | None:
        """Resolve a text to its commit now. None or an empty text: the default branch.

        A branch takes precedence over a tag of its name. ``name@hash`` is a commit in the history of that branch or tag; with steps,
        either the commit is, or the one that they lead to.

        exact         for a write: refuse relative texts such as ``main~1``, which change their meaning as the branch moves
        returns       None for a branch or tag without a commit
        raises        RefusedError for a malformed reference; NotFoundError; ExpiredError for a commit that was collected, or a
                      history that was cut before the answer was found
        """
        spec = parse_revspec(text or DEFAULT_REF)
        if exact:
            check_exact(spec)
        return self._resolve_spec(spec, None if spec.name is None else self.read_named(spec.name))

    def read_target(self, text: str | None) -> RefTarget:
        """Resolve a text as ``resolve`` does, and tell what it names and whether that can be written."""
        spec = parse_revspec(text or DEFAULT_REF)
        if spec.name is None:
            return RefTarget(spec.text, None, None, self._resolve_spec(spec, None), is_writable=False)
        row = self.read_named(spec.name)
        part = parse_reference(row.name)
        assert part is not None and isinstance(part.part, RefKind), "only branches and tags are read by name"
        is_writable = part.part is RefKind.BRANCH and spec.commit is None and not spec.steps
        return RefTarget(spec.text, part.part, part.name, self._resolve_spec(spec, row), is_writable, row.pointer)

    def _resolve_spec(self, spec: RevSpec, row: Reference | None) -> Head | None:
        start = self._commit_of(spec, row)
        is_begun_there = row is None or spec.commit is None or self._is_on(row, start)
        if row is not None and not is_begun_there and not spec.steps:
            raise self._not_on(spec, start)
        named = row if spec.commit is None else None
        is_moment = named is not None and bool(spec.steps) and spec.steps[0].way is StepSign.TIME
        if start is None and spec.steps and not is_moment:
            raise NotFoundError(
                f"{spec.text!r} is not a commit: nothing was committed to {spec.name!r} of {self._entry.label} yet"
            )
        found = follow_steps(self._rows, start, spec, row=named, what=None if named is None else lambda: self._row_text(named))
        if row is not None and not is_begun_there and not self._is_on(row, found):
            raise self._not_on(spec, found)
        return found

    def _is_on(self, row: Reference, commit: Head | None) -> bool:
        """Whether a commit is in the history of a branch or tag."""
        head = load_head(self._rows, row)
        return head is not None and commit is not None and is_in_history(self._rows, head.id, head.commit, commit)

    def _not_on(self, spec: RevSpec, commit: Head | None) -> NotFoundError:
        text = "none" if commit is None else id_text(commit.id)
        return NotFoundError(
            f"commit {text} is not in the history of {spec.name!r} of {self._entry.label}: @{text} alone means it wherever it is"
        )

    def read_commit(self, commit_id: ObjectId) -> Head:
        """Read a commit of this catalog.

        raises        NotFoundError when it is another's; ExpiredError when it was collected
        """
        return self.check_own(read_commit(self._rows, commit_id))

    def check_own(self, head: Head) -> Head:
        """Return the commit if it belongs to this catalog; raises NotFoundError otherwise."""
        if head.commit.properties.get("catalog") != self._entry.definition.id:
            raise NotFoundError(f"commit {id_text(head.id)} is not one of {self._entry.label}")
        return head

    def read_named(self, name: str) -> Reference:
        """Read the row of a branch or tag, or of the default branch; raises NotFoundError when there is none of this name."""
        name = self._entry.default_branch() if name == DEFAULT_REF else name
        for kind in RefKind:
            row = self._entry.find_ref_row(kind, name)
            if row is not None:
                return row
        raise NotFoundError(f"{self._entry.label} has no branch, tag or commit {name!r}")

    def _commit_of(self, spec: RevSpec, row: Reference | None) -> Head | None:
        """The commit that the text names before its steps."""
        if spec.commit is None:
            return None if row is None else load_head(self._rows, row)
        return self.read_commit(spec.commit)

    def _row_text(self, row: Reference) -> str:
        """Describe a branch or tag of this catalog for users."""
        part = parse_reference(row.name)
        return f"{repr(row.name) if part is None else f'{part.part} {part.name}'} of catalog {self._entry.definition.name}"


_NOTHING = "nothing was committed by then"


def follow_steps(
    rows: RealmStore,
    start: Head | None,
    spec: RevSpec,
    *,
    row: Reference | None = None,
    what: DescribeReference | None = None,
) -> Head | None:
    """Follow the steps of a revision text back to a commit.

    start         the commit that stands before them
    row           the branch or tag that stands directly before them: then a time means the commit that it was at
    what          that branch or tag, described for users
    raises        NotFoundError: history does not go so far · ExpiredError: it was cut on the way · RefusedError: a time that cannot be
                  resolved
    """
    commit = start
    for number, step in enumerate(spec.steps):
        try:
            if number == 0 and row is not None and step.way is StepSign.TIME:
                commit = ref_as_of(rows, row, Micros(step.number), what=what or (lambda: repr(row.name)))
            elif commit is not None:
                commit = _stepped(commit, step)
        except ExpiredError as fault:
            raise ExpiredError(f"{spec.text!r} of realm {rows.realm!r} has expired at {step.text}: {fault}") from fault
        except NotFoundError as fault:
            raise NotFoundError(f"{spec.text!r} is not a commit of realm {rows.realm!r}, at {step.text}: {fault}") from fault
    return commit


def _stepped(start: Head, step: RevStep) -> Head:
    if step.way is StepSign.BEFORE:
        return nth_before(start, step.number)
    if step.way is StepSign.PARENT:
        return nth_parent(start, step.number)
    return commit_at(start, Micros(step.number))


def nth_before(start: Head, count: int) -> Head:
    """The commit ``count`` steps down the history of first parents. Raises as ``follow_steps`` does."""
    if count >= start.commit.seq:
        raise NotFoundError(f"there are {start.commit.seq - 1} commits before commit {id_text(start.id)}, not {count}")
    commit, left = start, count
    while left:
        step = min(left, len(commit.commit.tail))
        commit = _read(commit, commit.commit.tail[step - 1])
        left -= step
    return commit


def nth_parent(start: Head, number: int) -> Head:
    """The N-th parent of a commit: 1 is the commit before, from 2 on the merged heads. Raises as ``follow_steps`` does."""
    parents = (*start.commit.tail[:1], *CommitMeta.from_commit(start.commit).merged)
    if number > len(parents):
        raise NotFoundError(f"commit {id_text(start.id)} has {len(parents)} parents, not {number}")
    return _read(start, parents[number - 1])


def commit_at(start: Head, time: Micros, *, what: DescribeReference | None = None) -> Head:
    """The youngest commit of a history that was made at ``time`` or before it; ``what`` describes the history for users.

    raises        NotFoundError: there is none · ExpiredError: it was cut on the way · RefusedError: times cannot be relied upon
    """
    what = what or (lambda: f"the history of commit {id_text(start.id)}")
    commit = commit_as_of(start, time, what=what)
    if commit is None:
        raise no_state_error(start.rows.realm, what(), time, _NOTHING)
    return commit


def ref_as_of(rows: RealmStore, row: Reference, time: Micros, *, what: DescribeReference) -> Head:
    """The commit that a branch or tag was at, at a time. Raises as ``commit_at`` does."""
    state = state_as_of(rows, row, time, what=what)
    if isinstance(state, AbsentReference):
        why = f"it was made at {as_text(row.created)}" if row.created > time else "it was deleted then"
        raise no_state_error(rows.realm, what(), time, why)
    if state is None:
        raise no_state_error(rows.realm, what(), time, _NOTHING)
    return state


def _read(above: Head, commit_id: ObjectId) -> Head:
    commit = above.rows.find_object(commit_id, Commit)
    if commit is None:
        raise _cut(above, commit_id)
    return Head(commit_id, commit, above.rows)


def _cut(above: Head, commit_id: ObjectId) -> ExpiredError:
    return ExpiredError(
        f"commit {id_text(commit_id)}, in the history of commit {id_text(above.id)}, was collected: retention no longer keeps it"
    )
