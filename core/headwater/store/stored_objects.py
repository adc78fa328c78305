"""Base classes of stored objects: how a type is declared, registered by its name in the row, and kept when a later release extends it.

Fields that only a later release knows are set aside when an object is read, and written back with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import inspect

from headwater.clock import Micros
from headwater.errors import CorruptionError
from headwater.store.ids import ObjectId
from headwater.store.plugins import claim_of, entry_points_of

_KEY = "~unknown"
"""The name of the in-memory field that holds them; it is never stored."""
_Fields = dict[str, Any]


class UnknownFields(msgspec.Struct, frozen=True, eq=False):
    """What an object carries for later releases. All of them are equal: objects are compared by what this release knows.

    pointing      how many times the type had gained pointers for whoever wrote the object; 0: no more often than this release knows
    fields        values by name, as they were decoded
    parts         of the structs inside the object, by the name of the field that holds them: a ``_Single``, or pairs of what a struct
                  among several is known by (a key, the values of its fields ``known_by``, or its whole value) and its own
    """

    pointing: int = 0
    fields: _Fields = {}
    parts: dict[str, Any] = {}

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(None)  # which an object without any has here, and it is equal

    def __bool__(self) -> bool:
        return bool(self.pointing or self.fields or self.parts)


class _Single(NamedTuple):
    """What a struct that a field holds alone is known by, and its unknown fields."""

    identity: Any
    part: UnknownFields


class StoredPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The base of a struct inside a stored object whose unknown fields survive a change of the object.

    known_by      the fields by which it is known again when it has changed, or moved to another field of the object. Without any, one
                  among several is known by its whole value, and the one that a field holds alone is whatever stands in that field:
                  it is a group of settings, and no thing that another can replace
    """

    known_by: ClassVar[tuple[str, ...]] = ()


def keep_unknown_fields(cls: type[msgspec.Struct], plain: Any) -> tuple[Any, UnknownFields]:
    """Decoded MessagePack, without what a class and the structs inside it do not know, and what that is."""
    if not isinstance(plain, dict):
        return plain, UnknownFields()
    known, unknown, parts = {}, {}, {}
    inner = _fields_of(cls)
    for name, value in plain.items():
        if name not in inner:
            unknown[name] = value
            continue
        known[name], part = _set_aside_within(inner[name], value)
        if part:
            parts[name] = part
    return known, UnknownFields(fields=unknown, parts=parts)


def restore_unknown_fields(value: msgspec.Struct, plain: _Fields, unknown: UnknownFields) -> _Fields:
    """The plain form of a struct with what was set aside, wherever there is still something that it belongs to.

    plain         as ``msgspec.to_builtins`` gives it; changed in place
    """
    plain.pop(_KEY, None)
    singles = {name: part for name, part in unknown.parts.items() if isinstance(part, _Single)}
    for name in _fields_of(type(value)) if singles else ():
        inside = getattr(value, name, None)
        if isinstance(inside, msgspec.Struct) and (its := _single_of(name, inside, singles)) is not None:
            plain[name] = restore_unknown_fields(
                inside, plain.get(name) or {}, its
            )  # absent where all that is known has its default
    for name, part in unknown.parts.items():
        inside = getattr(value, name, None)
        if isinstance(inside, Mapping) and name in plain:
            for key, its in _paired(part):
                if key in inside:
                    plain[name][key] = restore_unknown_fields(inside[key], plain[name][key], its)
        elif isinstance(inside, Sequence) and name in plain:
            plain[name] = _put_back_among(inside, plain[name], _paired(part))
    return plain | {name: kept for name, kept in unknown.fields.items() if name not in plain}


def _single_of(name: str, inside: msgspec.Struct, singles: Mapping[str, _Single]) -> UnknownFields | None:
    """What was set aside of the struct that a field holds now. It may have stood in another field, as former credentials have."""
    if not _known_by(type(inside)):
        return singles[name].part if name in singles else None
    identity = _identity(inside)
    return next((single.part for single in singles.values() if single.identity == identity), None)


def _put_back_among(structs: Sequence[Any], plain: Sequence[_Fields], parts: list[tuple[Any, UnknownFields]]) -> list[_Fields]:
    left, among = list(parts), list(plain)
    for at, one in enumerate(structs):
        identity = _identity(one)
        found = next((pair for pair in left if pair[0] == identity), None)
        if found is not None:
            left.remove(found)
            among[at] = restore_unknown_fields(one, plain[at], found[1])
    return among


def _paired(part: Any) -> list[tuple[Any, UnknownFields]]:
    return part if isinstance(part, list) else []


def _set_aside_within(inner: tuple[str, type[msgspec.Struct]] | None, value: Any) -> tuple[Any, Any]:
    """A field's value without what its structs do not know, and that."""
    if inner is None or not value:
        return value, None
    shape, cls = inner
    if shape == "one":
        known, part = keep_unknown_fields(cls, value)
        return known, _Single(_identity_of(cls, known) if _known_by(cls) else None, part) if part else None
    if shape == "mapping" and isinstance(value, dict):
        split = {key: keep_unknown_fields(cls, item) for key, item in value.items()}
        return {key: known for key, (known, _) in split.items()}, [(key, part) for key, (_, part) in split.items() if part]
    if shape == "sequence" and isinstance(value, list):
        several = [keep_unknown_fields(cls, item) for item in value]
        parts = [(_identity_of(cls, known), part) for known, part in several if part]
        return [known for known, _ in several], parts
    return value, None


def _identity_of(cls: type[msgspec.Struct], known: _Fields) -> Any:
    return _identity(msgspec.convert(known, cls, builtin_types=(bytes,)))


def _identity(struct: msgspec.Struct) -> Any:
    names = _known_by(type(struct))
    return (type(struct), *(getattr(struct, name) for name in names)) if names else struct


def _known_by(cls: type[msgspec.Struct]) -> tuple[str, ...]:
    return getattr(cls, "known_by", ())


@cache
def _fields_of(cls: type[msgspec.Struct]) -> dict[str, tuple[str, type[msgspec.Struct]] | None]:
    """The names under which a class stores its fields, each with the structs inside it, if there are any."""
    found = inspect.type_info(cls)
    assert isinstance(found, inspect.StructType)
    return {field.encode_name: _inner(field.type) for field in found.fields}


def _inner(kind: inspect.Type, shape: str = "one") -> tuple[str, type[msgspec.Struct]] | None:
    if isinstance(kind, inspect.StructType):
        return None if kind.array_like else (shape, kind.cls)
    if isinstance(kind, inspect.UnionType):
        return next((found for one in kind.types if (found := _inner(one, shape)) is not None), None)
    if isinstance(kind, inspect.DictType):
        return _inner(kind.value_type, "mapping") if shape == "one" else None
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        return _inner(kind.item_type, "sequence") if shape == "one" else None
    return None


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

    raises        CorruptionError when the entry point cannot be loaded, when two packages claim the name, and when the class has
                  another name: then the type is known, and taking it for an unknown one would hide what it points to
    """
    return _types.get(name) or _loaded(name)


def _loaded(name: str) -> type[StoredObject] | None:
    points = _entry_points().get(name, ())
    if not points:
        return None
    if len({point.value for point in points}) > 1:
        claims = " and ".join(sorted(claim_of(point) for point in points))
        raise CorruptionError(f"object type {name!r} is claimed by {claims}: uninstall one of them")
    point = points[0]
    try:
        cls = point.load()
    except Exception as fault:  # whatever a stranger's module raises while it is imported
        raise CorruptionError(
            f"object type {name!r}: its entry point {claim_of(point)} cannot be loaded: {type(fault).__name__}: {fault}"
        ) from fault
    if not (isinstance(cls, type) and issubclass(cls, StoredObject)):
        raise CorruptionError(f"object type {name!r}: its entry point {claim_of(point)} is no class of stored objects")
    if cls.type_name != name:
        raise CorruptionError(
            f"object type {name!r}: its entry point {claim_of(point)} is registered as {cls.type_name!r}: both names must be the same"
        )
    return cls


@cache
def _entry_points() -> dict[str, list[EntryPoint]]:
    return entry_points_of(TYPES_GROUP)
