"""What an index holds under a key."""

from __future__ import annotations

from typing import NamedTuple

from headwater.store import ObjectId

__all__ = ["Change", "Entry", "Value"]


class Value(NamedTuple):
    """An object that the key points to, or none, and a few bytes."""

    object_id: ObjectId | None
    data: bytes = b""


Entry = tuple[bytes, Value]
Change = tuple[bytes, Value | None]
"""A key and what it holds from now on; None: nothing, it is removed."""
