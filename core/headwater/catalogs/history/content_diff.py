"""Differences between two commits, by key and page by page. A page token pins both commits.

Content is compared by type, content id and digest: a copy is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from headwater.catalogs.content import ContentKey, ContentValue
from headwater.catalogs.content_operations import CONTENT, IDS, find_content_keys, index_at
from headwater.catalogs.filter_program import FilterExpression
from headwater.catalogs.key_variables import KEY_FIELDS, key_variables
from headwater.commits import Commit, Head, decode_token, encode_token
from headwater.errors import CorruptionError, ExpiredError, RefusedError
from headwater.index import Index, IndexDifference, IndexValue, index_differences
from headwater.settings import check_count
from headwater.store import ObjectId, RealmReader, id_text
from headwater.typed_values import msgpack_decoder

_FORMAT = b"\x03"


@dataclass(frozen=True, slots=True)
class ContentChange:
    """A key that differs between two commits.

    before, after the content at the first and at the second commit; None: nothing
    renamed_to    the other key that has the content from ``before`` at the second commit, if any
    renamed_from  the other key that had the content from ``after`` at the first commit, if any
    """

    key: ContentKey
    before: ContentValue | None
    after: ContentValue | None
    renamed_to: ContentKey | None = None
    renamed_from: ContentKey | None = None

    @property
    def action(self) -> Literal["ADDED", "REMOVED", "CHANGED"]:
        return "ADDED" if self.before is None else "REMOVED" if self.after is None else "CHANGED"


@dataclass(frozen=True)
class DiffExpression(FilterExpression[ContentChange]):
    """A filter of the keys that differ between two commits."""

    VARIABLES = {"key": KEY_FIELDS}
    SAMPLE = ContentChange(ContentKey.of("a", "b"), None, None)

    def variables_of(self, change: ContentChange, /) -> dict[str, Any]:
        return {"key": key_variables(change.key)}


class ChangeToken(msgspec.Struct, frozen=True, array_like=True):
    """The position of a comparison: its commits, its key range, the last key looked at, and ``of`` which references, as requested.

    where         the text of the filter; empty: there is none

    As text: base64url, without padding, of 1 byte format, 4 bytes CRC-32 of the rest, and this as a MessagePack array.
    """

    before: ObjectId | None
    after: ObjectId | None
    start: bytes | None
    end: bytes | None
    last: bytes | None = None
    of: tuple[str, str] = ("", "")
    where: str = ""

    def to_text(self) -> str:
        return encode_token(self, _FORMAT)

    @classmethod
    def from_text(cls, text: str) -> ChangeToken:
        """Decode a token that ``encode`` wrote.

        raises        RefusedError for a text that is not a page token of a comparison, or was altered
        """
        token = decode_token(text, _decoder)
        if token is None or token.to_text() != text:
            raise RefusedError(
                f"{text!r} is not a page token of a comparison: give one as it came with the page before, or none"
            )
        return token


_decoder = msgpack_decoder(ChangeToken)


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes in key order, and the compared commits (None: nothing was committed there). ``next_token`` is None on the last page."""

    changes: tuple[ContentChange, ...]
    next_token: str | None
    before: ObjectId | None
    after: ObjectId | None


def compare_commits(
    before: Head | None,
    after: Head | None,
    place: ChangeToken,
    *,
    limit: int | None = None,
    expression: DiffExpression | None = None,
) -> ChangePage:
    """Compare two commits, within the key range and after the last key of the token.

    limit         at most so many changes; None: all that are left. With a filter a page may have fewer, or none, and be followed by another
    expression    which changes; None: all
    raises        RefusedError for a limit below 1; ExpiredError when one of the commits was collected meanwhile
    """
    check_count(limit, "changes of a page")
    start = place.start if place.last is None else max(place.start or b"", place.last + b"\0")
    try:
        differences, last = _chosen(content_differences(before, after, start=start, end=place.end), expression, limit)
        changes = tuple(_with_renames(differences, index_at(before, IDS), index_at(after, IDS)))
    except (ExpiredError, CorruptionError) as fault:
        gone = next((head for head in (before, after) if head is not None and head.is_collected()), None)
        if gone is None:
            raise
        raise ExpiredError(
            f"commit {id_text(gone.id)} of realm {gone.rows.realm!r}, which was being compared, was collected:"
            " compare again, without a page token"
        ) from fault
    token = None if last is None else msgspec.structs.replace(place, last=last).to_text()
    return ChangePage(changes, token, place.before, place.after)


_BUDGET = 100_000
"""Microseconds that a page may spend on differences that a filter does not choose before it ends, estimated."""


def _chosen(
    differences: Iterator[IndexDifference], expression: DiffExpression | None, limit: int | None
) -> tuple[list[IndexDifference], bytes | None]:
    """The first differences that a filter chooses, and the last key that was looked at, where more may follow."""
    chosen: list[IndexDifference] = []
    spent, last = 0, b""
    for difference in differences:
        if limit is not None and (len(chosen) == limit or spent >= _BUDGET):
            return chosen, last
        last = difference.key
        if expression is None or expression.chooses(decode_change(difference)):
            chosen.append(difference)
        else:
            spent += expression.program.micros
    return chosen, None


def content_differences(
    before: Head | None, after: Head | None, *, start: bytes | None = None, end: bytes | None = None
) -> Iterator[IndexDifference]:
    """The keys of ``content`` whose content differs between two commits, in key order. Copies are left out.

    before, after None: nothing was committed yet
    """
    differences = index_differences(index_at(before, CONTENT), index_at(after, CONTENT), start=start, end=end)
    return (difference for difference in differences if not _is_copy(difference.before, difference.after))


def decode_change(difference: IndexDifference) -> ContentChange:
    """Decode one differing key; renames are not looked up."""
    before, after = (
        None if value is None else ContentValue.from_value(value) for value in (difference.before, difference.after)
    )
    return ContentChange(ContentKey.from_index(difference.key), before, after)


def is_same_content(one: ContentValue | None, other: ContentValue | None) -> bool:
    """True if two values have the same content id and digest, whether or not the Iceberg metadata is stored."""
    if one is None or other is None:
        return one is other
    return (one.type, one.content_id, one.digest) == (other.type, other.content_id, other.digest)


def _is_copy(before: IndexValue | None, after: IndexValue | None) -> bool:
    if before is None or after is None:
        return False
    return before.data == after.data or is_same_content(ContentValue.from_value(before), ContentValue.from_value(after))


def _with_renames(differences: Iterable[IndexDifference], before: Index, after: Index) -> Iterator[ContentChange]:
    """Decode differing keys and look up where contents were renamed to and from: one bulk read for each side."""
    changes = [decode_change(difference) for difference in differences]
    went = find_content_keys(after, (change.before.content_id for change in changes if change.before is not None))
    came = find_content_keys(before, (change.after.content_id for change in changes if change.after is not None))
    for change in changes:
        to = None if change.before is None else went.get(change.before.content_id)
        came_from = None if change.after is None else came.get(change.after.content_id)
        yield ContentChange(
            change.key, change.before, change.after, *(None if key == change.key else key for key in (to, came_from))
        )


def changes_between(base: Head | None, source: Head) -> list[ContentChange]:
    """The differences between two commits, in key order. Reads what their indexes do not share.

    base          None: a state without any content
    """
    return [decode_change(difference) for difference in content_differences(base, source)]


def changed_by(rows: RealmReader, commit: Head) -> list[ContentChange]:
    """The changes that one commit made.

    raises        ExpiredError when its parent was collected: the state before is unknown
    """
    parent = None
    if commit.commit.tail:
        parent_commit = rows.find_object(commit.commit.tail[0], Commit)
        if parent_commit is None:
            raise ExpiredError(
                f"what commit {id_text(commit.id)} of realm {rows.realm!r} changed is not known any more: the commit before it was"
                " collected. Merge its branch, with a base, or make its changes by hand"
            )
        parent = Head(commit.commit.tail[0], parent_commit, rows)
    return changed_keys(
        parent, commit, sorted(operation.key for operation in commit.commit.operations if operation.index == CONTENT)
    )


def changed_keys(base: Head | None, source: Head | None, keys: Sequence[bytes]) -> list[ContentChange]:
    """The differences between two commits at these index keys, in their order; None: nothing was committed there."""
    before = index_at(base, CONTENT).get_many(keys)
    after = index_at(source, CONTENT).get_many(keys)
    changes = [decode_change(IndexDifference(key, before.get(key), after.get(key))) for key in keys]
    return [change for change in changes if not is_same_content(change.before, change.after)]
