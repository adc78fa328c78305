"""Stored objects: what a type is, and the registry that finds its class by the name in the row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from typing import ClassVar, Generic, TypeVar

import msgspec

from headwater.clock import Micros
from headwater.errors import UnreadableError
from headwater.store.identity import ObjectId
from headwater.store.plugging import claim_of, points_of
from headwater.store.unknown_fields import UnknownFields

__all__ = ["TYPES_GROUP", "StoredObject", "UnknownObject", "Versioned", "is_type_name", "object_type", "registered_type"]

TYPES_GROUP = "headwater.object_types"
"""The group of entry points that tell of object types: the type's name = ``module:Class``."""
MOST_POINTING = 15
"""The largest number that an envelope has room for."""
_NAME = re.compile(r"[a-z][a-z0-9-]{1,31}")
_types: dict[str, type[StoredObject]] = {}


class StoredObject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The base of everything that is stored: frozen, compared by value, its id and row apart from it.

    Fields that a reader does not know are set aside and written back, so give every new one a default; derive structs inside of it
    from ``StoredPart``, and change an object by ``msgspec.structs.replace``. Never change what is inside a list or a dictionary of
    one: the cache hands the same object to everybody.

    unknown       what a later release wrote beside the fields that this one knows
    """

    type_name: ClassVar[str] = ""
    updateable: ClassVar[bool] = False
    compressed: ClassVar[bool] = True
    cached_seconds: ClassVar[float | None] = None
    absent_seconds: ClassVar[float] = 0.0
    pointing: ClassVar[int] = 0

    unknown: UnknownFields | None = msgspec.field(name="~unknown", default=None)

    def points_to(self) -> Iterable[ObjectId]:
        """The objects that must stay as long as this one does. This is all that reachability knows of a type."""
        return ()


class UnknownObject(StoredObject, frozen=True, kw_only=True):
    """An object of a type that this release does not know: kept, written back unchanged, and never walked nor cached.

    body          MessagePack
    packed        the body as it was compressed by who wrote it, so that it goes back byte for byte; empty when it was not
    """

    name: str
    body: bytes
    packed: bytes = b""
    is_updateable: bool = False


T = TypeVar("T", bound=StoredObject)


@dataclass(frozen=True, slots=True)
class Versioned(Generic[T]):
    """An updateable object as it was read. ``token`` is what an update or a delete must still find."""

    id: ObjectId
    value: T
    token: str
    created: Micros


def object_type(
    name: str,
    *,
    updateable: bool = False,
    compressed: bool = True,
    cached_seconds: float | None = None,
    absent_seconds: float = 0.0,
    pointing: int = 0,
) -> Callable[[type[T]], type[T]]:
    """Register a class under the name that its rows carry.

    A process that reads a row of a type whose class nobody imported finds it by an entry point of the group
    ``headwater.object_types``; without one it reads an UnknownObject.

    name            2 to 32 characters of a-z, 0-9 and -, unique in the process
    updateable      changed in place by compare-and-swap, and never cached; otherwise immutable
    compressed      whether the envelope tries to make the body smaller; False for a type that packs its own bytes
    cached_seconds  how long a process may remember an immutable object: for ever (None), never (0), or so long
    absent_seconds  how long a process may remember that an object which was looked for as this type is not there. What other
                    processes write meanwhile is not seen so long
    pointing        how many times the type has gained fields that point to objects, 0 to 15. It is written with every object, and
                    whoever knows a smaller number deletes nothing of a realm that holds one. Add 1 with each such field
    raises          ValueError for another name, one that another class of this process has, and negative seconds
    """
    if not is_type_name(name):
        raise ValueError(f"{name!r} is no object type name: 2 to 32 characters of a-z, 0-9 and -, a letter first")
    if absent_seconds < 0 or (cached_seconds is not None and cached_seconds < 0):
        raise ValueError(f"object type {name!r}: nothing is remembered for less than 0 seconds")
    if not 0 <= pointing <= MOST_POINTING:
        raise ValueError(f"object type {name!r}: pointing is a number from 0 to {MOST_POINTING}, not {pointing}")

    def register(cls: type[T]) -> type[T]:
        taken = _types.get(name)
        if taken is not None and (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"object type {name!r} is taken by {taken.__module__}:{taken.__qualname__}")
        cls.type_name, cls.updateable, cls.compressed = name, updateable, compressed
        cls.cached_seconds, cls.absent_seconds, cls.pointing = cached_seconds, absent_seconds, pointing
        _types[name] = cls
        return cls

    return register


def is_type_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def registered_type(name: str) -> type[StoredObject] | None:
    """The class of a type's name, imported now if only an entry point tells of it; None when nobody knows the type.

    raises        UnreadableError when the entry point cannot be loaded, when two packages claim the name, and when the class has
                  another name: then the type is known, and taking it for an unknown one would hide what it points to
    """
    return _types.get(name) or _loaded(name)


def _loaded(name: str) -> type[StoredObject] | None:
    points = _entry_points().get(name, ())
    if not points:
        return None
    if len({point.value for point in points}) > 1:
        claims = " and ".join(sorted(claim_of(point) for point in points))
        raise UnreadableError(f"object type {name!r} is claimed by {claims}: uninstall one of them")
    point = points[0]
    try:
        cls = point.load()
    except Exception as fault:  # whatever a stranger's module raises while it is imported
        raise UnreadableError(
            f"object type {name!r}: its entry point {claim_of(point)} cannot be loaded: {type(fault).__name__}: {fault}"
        ) from fault
    if not (isinstance(cls, type) and issubclass(cls, StoredObject)):
        raise UnreadableError(f"object type {name!r}: its entry point {claim_of(point)} is no class of stored objects")
    if cls.type_name != name:
        raise UnreadableError(
            f"object type {name!r}: its entry point {claim_of(point)} is registered as {cls.type_name!r}: both names must be the same"
        )
    return cls


@cache
def _entry_points() -> dict[str, list[EntryPoint]]:
    return points_of(TYPES_GROUP)
