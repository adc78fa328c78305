"""The metadata of a catalog's commit: message, authors, properties, merged heads, and its entry in a log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from headwater.catalogs.content import ContentKey, ContentType, ContentValue
from headwater.catalogs.content_operations import CONTENT
from headwater.clock import Micros
from headwater.commits import Commit, Head, Operation, descends
from headwater.errors import CorruptionError, ExpiredError, NotFoundError, RefusedError, UnknownOutcomeError
from headwater.index import IndexValue
from headwater.settings import check_count, time_fault
from headwater.store import ObjectId, RealmReader, id_of, id_text

_ID = re.compile(r"[0-7][0-9a-f]{15}")

HEADWATER = "headwater"
"""The author of commits that nobody asked for by name: scheduled imports, what an operator wants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMeta:
    """The message, authors and properties of a commit.

    committer     the principal whose request made it, if a server knows one; authors are what the request says
    properties    each with one value or several
    author_time   when its author made it, if that was earlier: a transplanted commit keeps it; before the year 10000
    merged        heads that were merged in, without the commit's parent. Only merges set it, and reading a commit returns it
    raises        RefusedError for a value of another type: it would be stored, and no reader could decode the commit
    """

    message: str = ""
    committer: str = ""
    authors: tuple[str, ...] = ()
    signed_off_by: tuple[str, ...] = ()
    properties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    author_time: Micros | None = None
    merged: tuple[ObjectId, ...] = ()

    def __post_init__(self) -> None:
        for name in ("message", "committer"):
            _check_field(isinstance(getattr(self, name), str), name, getattr(self, name), "a text")
        for name in ("authors", "signed_off_by"):
            _check_field(_are_texts(getattr(self, name)), name, getattr(self, name), "a tuple of texts")
        are_properties = isinstance(self.properties, Mapping) and all(
            isinstance(name, str) and _are_texts(values) for name, values in self.properties.items()
        )
        _check_field(are_properties, "properties", self.properties, "a mapping of texts to tuples of texts")
        _check_field(
            self.author_time is None or _is_time(self.author_time),
            "author_time",
            self.author_time,
            "a number of microseconds since 1970, before the year 10000",
        )
        _check_field(
            isinstance(self.merged, tuple) and all(map(_is_id, self.merged)),
            "merged",
            self.merged,
            "a tuple of commit ids",
        )

    @property
    def person_text(self) -> str:
        """Who made the commit: the verified committer, and the authors where the request named others."""
        authors = ", ".join(self.authors)
        if not self.committer:
            return f"author {authors}" if authors else "unknown"
        return self.committer if authors in ("", self.committer) else f"{self.committer}, author {authors}"

    def as_properties(self, catalog_id: str, *, is_import: bool = False) -> dict[str, Any]:
        """Encode everything but the message as the commit's properties; empty values are left out.

        is_import     an import makes the commit. The word ``import`` among the caller's own properties does not mean that, except in
                      commits of earlier releases
        """
        given = {
            "catalog": catalog_id,
            "import": True if is_import else False if "import" in self.properties else None,
            "committer": self.committer,
            "authors": list(self.authors),
            "signedOffBy": list(self.signed_off_by),
            "properties": {name: list(values) for name, values in self.properties.items()},
            "authorTime": self.author_time,
            "merged": [id_text(commit_id) for commit_id in self.merged],
        }
        return {name: value for name, value in given.items() if value not in (None, "", [], {})}

    @classmethod
    def from_commit(cls, commit: Commit) -> CommitMeta:
        """Decode the metadata of a commit. Malformed values are left out: one odd commit must not end a log."""
        stored = commit.properties
        properties, time, committer = (stored.get(name) for name in ("properties", "authorTime", "committer"))
        return cls(
            message=commit.message,
            committer=committer if isinstance(committer, str) else "",
            authors=_texts(stored.get("authors")),
            signed_off_by=_texts(stored.get("signedOffBy")),
            properties={str(name): _texts(values) for name, values in properties.items()}
            if isinstance(properties, dict)
            else {},
            author_time=time if _is_time(time) else None,
            merged=merged_heads(commit),
        )


def merged_heads(commit: Commit) -> tuple[ObjectId, ...]:
    """The heads that a commit merged."""
    return tuple(id_of(text) for text in _texts(commit.properties.get("merged")) if _ID.fullmatch(text))


@dataclass(frozen=True, slots=True)
class RestoredState:
    """The state that a restoration copied. ``commit`` None: it held nothing."""

    commit: ObjectId | None


def restored_state(commit: Commit) -> RestoredState | None:
    """The state that a commit restored; None for a commit of another kind.

    Only a restoration can name its task outside of the properties that callers choose.
    """
    if "task" not in commit.properties:
        return None
    words = CommitMeta.from_commit(commit).properties
    named = next((text for text in words.get("restored", ()) if _ID.fullmatch(text)), None)
    return RestoredState(None if named is None else id_of(named)) if "task" in words else None


def is_by_import(commit: Commit) -> bool:
    """True if an import made the commit. Earlier releases noted that in the properties, which any caller may choose."""
    is_import, properties = commit.properties.get("import"), commit.properties.get("properties")
    return is_import if isinstance(is_import, bool) else isinstance(properties, dict) and "import" in properties


def checked_meta(meta: CommitMeta | None) -> CommitMeta | None:
    """Check the metadata that a caller gives for a new commit.

    raises        RefusedError for merged heads: a later merge would count commits as merged that never were
    """
    if meta is not None and meta.merged:
        raise RefusedError(
            f"a commit that says to have merged {', '.join(map(id_text, meta.merged))} cannot be asked for: merge, and it will say so"
        )
    return meta


def property_values(properties: Mapping[str, str | Sequence[str]] | None) -> dict[str, tuple[str, ...]]:
    """Normalize properties, each with one value or several, to several. Raises RefusedError for other values."""
    return {
        name: (values,) if isinstance(values, str) else text_tuple("properties", values)
        for name, values in (properties or {}).items()
    }


def text_tuple(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """A sequence of texts as a tuple. Raises RefusedError for other values, also for a single text, which is a sequence of letters."""
    _check_field(
        isinstance(values, Sequence) and _are_texts(tuple(values)) and not isinstance(values, str),
        name,
        values,
        "a sequence of texts",
    )
    return tuple(values)


def _are_texts(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, str) for value in values)


def _texts(value: object) -> tuple[str, ...]:
    """The texts of a stored list."""
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list | tuple) else ()


def _is_time(value: object) -> bool:
    return not time_fault(value)


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 1 << 63


def _check_field(is_right: bool, name: str, value: object, wanted: str) -> None:
    if not is_right:
        raise RefusedError(f"{name} of a commit is {wanted}, not {value!r}")


@dataclass(frozen=True, slots=True)
class CommittedOperation:
    """The operation of a commit on one key.

    value         what was put, where that is known: it is no part of what operations are compared by
    """

    action: Literal["PUT", "DELETE"]
    key: ContentKey
    type: ContentType | int | None = None
    content_id: UUID | None = None
    value: ContentValue | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit of a branch or tag. Its parent is None where history begins."""

    id: ObjectId
    seq: int
    time: Micros
    meta: CommitMeta
    parent: ObjectId | None
    operations: tuple[CommittedOperation, ...]

    @property
    def hash(self) -> str:
        return id_text(self.id)

    @property
    def message(self) -> str:
        return self.meta.message


def log_entry(head: Head) -> LogEntry:
    commit = head.commit
    return LogEntry(
        id=head.id,
        seq=commit.seq,
        time=commit.time,
        meta=CommitMeta.from_commit(commit),
        parent=commit.tail[0] if commit.tail else None,
        operations=tuple(_operation(operation) for operation in commit.operations if operation.index == CONTENT),
    )


def check_within(within: int | None) -> None:
    """Check the bound of a search.

    raises        RefusedError for less than one commit
    """
    check_count(within, "commits that a search looks at")


def is_in_history(rows: RealmReader, head_id: ObjectId, head: Commit, wanted: Head) -> bool:
    """True if ``wanted`` is the head or one of its ancestors. The head itself may be unwritten.

    raises        ExpiredError when the history between them was cut
    """
    distance = head.seq - wanted.commit.seq
    if distance <= 0:
        return head_id == wanted.id
    if distance <= len(head.tail):
        return head.tail[distance - 1] == wanted.id
    try:
        return bool(head.tail) and descends(rows, head.tail[-1], wanted.id, wanted.commit.seq)
    except UnknownOutcomeError as cut:
        raise ExpiredError(
            f"whether commit {id_text(wanted.id)} of realm {rows.realm!r} is in this history is not known any more: {cut}"
        ) from cut


def check_expected(rows: RealmReader, head_id: ObjectId | None, head: Commit | None, expected: Head, branch: str) -> None:
    """Check that the commit that a caller expects is in the history of a branch's head.

    branch        the branch in words, for the message
    raises        NotFoundError · ExpiredError: that is not known any more
    """
    if head is None or head_id is None or not is_in_history(rows, head_id, head, expected):
        raise NotFoundError(f"expected commit {id_text(expected.id)} is not in the history of {branch}")


def parent_of(head: Head) -> Head | None:
    """The parent of a commit; None where history begins, or was cut."""
    if not head.commit.tail:
        return None
    commit = head.rows.find_object(head.commit.tail[0], Commit)
    return None if commit is None else Head(head.commit.tail[0], commit, head.rows)


def value_at(head: Head, index: str, key: bytes) -> IndexValue | None:
    """The value of an index key at a commit of the past.

    raises        ExpiredError when the commit was collected since it was read
    """
    try:
        return head.index(index).get(key)
    except CorruptionError as fault:
        if head.is_collected():
            raise ExpiredError(f"commit {id_text(head.id)} of realm {head.rows.realm!r} was collected just now") from fault
        raise


def _operation(operation: Operation) -> CommittedOperation:
    key = ContentKey.from_index(operation.key)
    if operation.removed:
        return CommittedOperation("DELETE", key)
    value = ContentValue.from_value(IndexValue(operation.object_id, operation.data))
    return CommittedOperation("PUT", key, value.type, value.content_id, value)
