"""Stored objects: what a type is, and the registry that finds its class by the name in the row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import msgspec

from headwater.clock import Micros
from headwater.store.identity import ObjectId

__all__ = ["StoredObject", "UnknownObject", "Versioned", "object_type", "registered_type"]

_NAME = re.compile(r"[a-z][a-z0-9-]{1,31}")
_types: dict[str, type[StoredObject]] = {}


class StoredObject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of everything that is stored: frozen, compared by value, its id and row apart from it.

    Readers ignore attributes that they do not know, so give every new one a default.
    """

    type_name: ClassVar[str] = ""
    updateable: ClassVar[bool] = False

    def points_to(self) -> Iterable[ObjectId]:
        """The objects that must stay as long as this one does. This is all that reachability knows of a type."""
        return ()


class UnknownObject(StoredObject, frozen=True, kw_only=True):
    """An object of a type that this release does not know: kept, written back unchanged, and never walked."""

    name: str
    body: bytes


T = TypeVar("T", bound=StoredObject)


@dataclass(frozen=True, slots=True)
class Versioned(Generic[T]):
    """An updateable object as it was read. ``token`` is what an update or a delete must still find."""

    id: ObjectId
    value: T
    token: str
    created: Micros


def object_type(name: str, *, updateable: bool = False) -> Callable[[type[T]], type[T]]:
    """Register a class under the name that its rows carry.

    name          2 to 32 characters of a-z, 0-9 and -, unique in the process
    updateable    changed in place by compare-and-swap; otherwise immutable, and cached for ever
    """

    def register(cls: type[T]) -> type[T]:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no object type name: 2 to 32 characters of a-z, 0-9 and -")
        if name in _types and _types[name].__qualname__ != cls.__qualname__:
            raise ValueError(f"object type {name!r} is taken by {_types[name].__qualname__}")
        cls.type_name, cls.updateable = name, updateable
        _types[name] = cls
        return cls

    return register


def registered_type(name: str) -> type[StoredObject] | None:
    return _types.get(name)
