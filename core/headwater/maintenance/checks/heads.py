"""Heads and all that they reach: readable, in order, complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from headwater.catalogs import CONTENT, IDS, ContentKey, ContentValue
from headwater.commits import Head, read_commit
from headwater.errors import HeadwaterError, UnreadableError
from headwater.index import IndexChecker, Value
from headwater.maintenance.checks.findings import Code, Finding
from headwater.maintenance.checks.sight import Sight, key_text, keys_text
from headwater.maintenance.checks.walking import Fault, Walker, uses_below
from headwater.store import ObjectId, RealmStore, Reference, id_text

__all__ = ["check_heads", "readable_pointer"]

_LOOKS = 3
_TOGETHER = 1000
"""Contents whose ids are looked up at once."""
_SHOWN = 20
"""Faults that are told of one reference, at most; the last one says how many there are."""


def check_heads(sight: Sight) -> Iterator[Finding]:
    """Every living reference, each on its own: what it reaches is there, and its indexes are as they must be.

    A reference that moves while it is looked at is looked at again: what its former head held may be collected by then.
    """
    walker, checker = Walker(sight.rows), IndexChecker(sight.rows)
    for row in sight.living:
        yield from _settled(sight, row, walker, checker)


def readable_pointer(rows: RealmStore, row: Reference) -> ObjectId | None:
    """The newest of a reference's recent pointers that can be read with all that it reaches."""
    walker = Walker(rows)
    return next((pointer for pointer in row.recent if not walker.faults_below(pointer)[0]), None)


def _settled(sight: Sight, row: Reference, walker: Walker, checker: IndexChecker) -> Iterator[Finding]:
    for _ in range(_LOOKS):
        found = list(_check(sight, row, walker, checker))
        if not found:
            return
        now = sight.rows.find_row(row.name)
        if now is None or now.deleted is not None or now.pointer is None:
            return
        if now.pointer == row.pointer:
            yield from found
            return
        row = now
    yield from found


def _check(sight: Sight, row: Reference, walker: Walker, checker: IndexChecker) -> Iterator[Finding]:
    assert row.pointer is not None
    faults, ways = walker.faults_below(row.pointer)
    if any(
        fault.object_id == row.pointer and not fault.is_unknown for fault in faults
    ):  # what is of a later release is not lost
        yield _head(sight, row, faults[0])
        return
    told = [fault for fault in faults if fault.object_id not in sight.apart]
    for fault in told[:_SHOWN]:
        yield _object(
            sight, row, fault, keys=[key_text(use) for use in uses_below(sight.rows, row.pointer, fault.object_id, ways)]
        )
    if len(told) > _SHOWN:
        yield sight.finding(
            Code.OBJECT_UNREADABLE,
            row.name,
            f"{sight.words(row.name)} reaches {len(told) - _SHOWN} more objects that cannot be read",
            "as above",
        )
    sight.lost.update(fault.object_id for fault in faults)
    if not faults:
        yield from _check_indexes(sight, row, read_commit(sight.rows, row.pointer), checker)


def _head(sight: Sight, row: Reference, fault: Fault) -> Finding:
    sight.lost.add(fault.object_id)
    back = readable_pointer(sight.rows, row)
    if back is not None:
        repair = f"its newest readable recent pointer is {id_text(back)}: `headwater fsck --repair` goes back to it"
    elif row.recent:
        repair = "none of its recent pointers is readable: restore its commit from a backup of the database"
    else:
        repair = "it has no recent pointer: restore its commit from a backup of the database"
    what = f"{sight.words(row.name)} points to commit {id_text(fault.object_id)}"
    text = "which is not there" if fault.text.endswith("not there") else fault.text
    target = "" if back is None else id_text(back)
    return sight.finding(Code.HEAD_UNREADABLE, row.name, f"{what}, {text}", repair, target=target)


def _object(sight: Sight, row: Reference, fault: Fault, keys: list[str]) -> Finding:
    under = f", under {keys_text(keys)}" if keys else ""
    message = f"{fault.text}; {sight.words(row.name)} needs it{under}"
    if fault.is_unknown:
        repair = "use a release that knows all of this type; nothing of this realm is collected by this one"
        return sight.finding(Code.TYPE_UNKNOWN, row.name, message, repair, keys=keys)
    repair = (
        "restore the object from a backup of the database, or delete what refers to it, which loses it;"
        " nothing of this realm is collected until then"
    )
    return sight.finding(Code.OBJECT_UNREADABLE, row.name, message, repair, keys=keys)


def _check_indexes(sight: Sight, row: Reference, head: Head, checker: IndexChecker) -> Iterator[Finding]:
    for name, container in sorted(head.commit.indexes.items()):
        for text in checker.faults(container):
            yield sight.finding(
                Code.INDEX_WRONG,
                row.name,
                f"index {name!r} of commit {id_text(head.id)}, the head of {sight.words(row.name)}, is wrong: {text}",
                "keep a copy of the store and report it; restore the reference to a commit before it was wrong",
            )
    is_content = any(entry.name == row.name and entry.is_content for entry in sight.listed)
    if is_content:
        yield from _check_content(sight, row, head)


def _check_content(sight: Sight, row: Reference, head: Head) -> Iterator[Finding]:
    """Every entry of a branch or tag decodes to a key and a content, and the index of content ids leads back to each of them."""
    content, ids = head.index(CONTENT), head.index(IDS)
    lost: list[str] = []
    count = 0
    try:
        entries = content.range()
        while block := list(islice(entries, _TOGETHER)):
            count += len(block)
            sound: dict[bytes, ContentValue] = {}
            for key, value in block:
                try:
                    ContentKey.from_index(bytes(key))
                    sound[bytes(key)] = ContentValue.decode(value)
                except UnreadableError as fault:
                    yield _wrong(sight, row, str(fault))
            back = ids.get_many(one.content_id.bytes for one in sound.values())
            lost += (
                str(ContentKey.from_index(key))
                for key, one in sound.items()
                if not _leads_back(key, one, back.get(one.content_id.bytes))
            )
    except HeadwaterError as fault:
        yield sight.finding(Code.INDEX_WRONG, row.name, str(fault), "restore the branch to a commit before it was written")
        return
    if lost:
        yield _wrong(sight, row, f"the index of content ids does not lead back to {keys_text(lost)}", lost)
    elif len(ids) != count:
        yield _wrong(sight, row, f"the index of content ids has {len(ids)} entries, for {count} contents")


def _leads_back(key: bytes, value: ContentValue, back: Value | None) -> bool:
    """Its id stands for this key, and has metadata where the content says so."""
    return back is not None and bytes(back.data) == key and (back.object_id is not None) == value.has_metadata


def _wrong(sight: Sight, row: Reference, what: str, keys: Sequence[str] = ()) -> Finding:
    return sight.finding(
        Code.CONTENT_WRONG,
        row.name,
        f"{sight.words(row.name)}: {what}",
        "restore the branch to a commit before it was written",
        keys=keys[:_SHOWN],
    )
