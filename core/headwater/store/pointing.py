"""What an object points to, read without more of the object than that takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headwater.store.backend import ObjectRow
from headwater.store.codec import decode, pointing_number
from headwater.store.identity import ObjectId
from headwater.store.objects import StoredObject, UnknownObject, registered_type

__all__ = ["Pointing", "is_leaf", "pointing_in", "pointing_of", "why_untold"]


class Pointing(NamedTuple):
    """An object as a walk sees it.

    targets       what it points to; None when this release cannot tell
    is_leaf       nothing of its type ever points to anything
    bytes         of its first row, about; 0 when it came from the cache
    why           this release cannot tell; otherwise empty
    """

    type: str
    targets: Sequence[ObjectId] | None
    is_leaf: bool = False
    bytes: int = 0
    why: str = ""


def is_leaf(type_name: str) -> bool:
    """Whether the class of a type says nothing of targets. False for unknown types."""
    cls = registered_type(type_name)
    return cls is not None and cls.points_to is StoredObject.points_to


def why_untold(value: StoredObject) -> str:
    """Why this release cannot tell what an object points to, as the end of a sentence about it; empty when it can."""
    if isinstance(value, UnknownObject):
        return _unknown_type(value.name)
    if value.unknown is not None and value.unknown.pointing > value.pointing:
        return _newer(value.type_name)
    return ""


def pointing_of(value: StoredObject) -> Pointing:
    name = value.name if isinstance(value, UnknownObject) else value.type_name
    if why := why_untold(value):
        return Pointing(name, None, why=why)
    return Pointing(name, tuple(value.points_to()), type(value).points_to is StoredObject.points_to)


def pointing_in(row: ObjectRow, envelope: bytes, *, realm: str) -> Pointing:
    """The same of a stored object; UnreadableError when one that may point on cannot be decoded."""
    cls = registered_type(row.type)
    if cls is None:
        return Pointing(row.type, None, bytes=len(row.value), why=_unknown_type(row.type))
    if pointing_number(row.value) > cls.pointing:
        return Pointing(row.type, None, bytes=len(row.value), why=_newer(row.type))
    if cls.points_to is StoredObject.points_to:
        return Pointing(row.type, (), is_leaf=True, bytes=len(row.value))
    value = decode(row.id, row.type, envelope, StoredObject, realm=realm, token=row.token)
    return Pointing(row.type, tuple(value.points_to()), bytes=len(row.value))


def _unknown_type(name: str) -> str:
    return f"has the type {name!r}, which this release does not know"


def _newer(name: str) -> str:
    return f"of type {name!r} was written by a later release, and may point to more than this release knows"
