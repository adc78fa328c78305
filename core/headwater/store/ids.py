"""Ids: what names a realm, a row and an object, and how 64 bits are divided between time, node and sequence."""

from __future__ import annotations

import re
from typing import NewType

from headwater.clock import Micros
from headwater.errors import RefusedError

RealmId = NewType("RealmId", str)
"""What users call a realm."""
RealmKey = NewType("RealmKey", int)
"""What rows carry: given at creation and never used again."""
ObjectId = NewType("ObjectId", int)
"""63 bits: 41 of milliseconds since the epoch, 10 of node, 12 of sequence."""

SYSTEM_REALM = RealmId("::system::")
SYSTEM_KEY = RealmKey(1)

EPOCH_MILLIS = 1_740_787_200_000
"""2025-03-01T00:00Z."""
NODES = 1 << 10
SEQUENCES = 1 << 12
FIRST_MILLIS = 1000
"""Before this, ids are fixed."""
END_MILLIS = 1 << 41
"""Milliseconds that ids can tell: to the year 2094."""
_HEX = re.compile(r"[0-7][0-9a-f]{15}")
_REALM = re.compile(r"[A-Za-z0-9_-]{1,128}")


def checked_realm_id(text: str) -> RealmId:
    """The text as a realm's id.

    raises        RefusedError when it is reserved or not well formed
    """
    shown = repr(text) if len(text) <= 200 else f"{text[:200]!r}..."
    if "::" in text:
        raise RefusedError(f"realm id {shown} is reserved: ids with '::' belong to Headwater itself")
    if not _REALM.fullmatch(text):
        raise RefusedError(f"{shown} is not a realm id: use 1 to 128 of the characters A-Z a-z 0-9 _ -")
    return RealmId(text)


def compose_id(millis: int, node: int, sequence: int) -> ObjectId:
    """The id of a moment (milliseconds since the epoch), a node and a sequence number within the millisecond."""
    return ObjectId(millis << 22 | node << 12 | sequence)


def fixed_id(kind: int, number: int = 0) -> ObjectId:
    """An id that everybody knows: ``kind`` below 1000 stands where other ids have their time, ``number`` is below 1024."""
    return compose_id(kind, number, 1)


def is_fixed(object_id: ObjectId) -> bool:
    """Whether it is one of those that ``fixed_id`` makes, and tells no time."""
    return object_id >> 22 < FIRST_MILLIS


def id_time(object_id: ObjectId) -> Micros:
    """When it was made, by the clock of its maker: microseconds since 1970, exact to the millisecond. Of no use for fixed ids."""
    return Micros(((object_id >> 22) + EPOCH_MILLIS) * 1000)


def node_of(object_id: ObjectId) -> int:
    """The node, 0 to 1023, of the process that made it. Of no use for fixed ids."""
    return object_id >> 12 & NODES - 1


def id_text(object_id: ObjectId) -> str:
    """The public form: 16 lower-case hex digits."""
    return f"{object_id:016x}"


def id_of(text: str) -> ObjectId:
    """The id that ``id_text`` wrote.

    raises        RefusedError when the text is not a valid id
    """
    if not _HEX.fullmatch(text):
        raise RefusedError(f"{text!r} is not a valid id: an id is 16 lower-case hex digits, the first of them below 8")
    return ObjectId(int(text, 16))
