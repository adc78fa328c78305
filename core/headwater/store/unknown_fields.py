"""Fields that only a later release knows: set aside when an object is read, and put back when it is written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import msgspec
from msgspec import inspect

__all__ = ["StoredPart", "UnknownFields", "put_back", "set_aside"]

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


def set_aside(cls: type[msgspec.Struct], plain: Any) -> tuple[Any, UnknownFields]:
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


def put_back(value: msgspec.Struct, plain: _Fields, unknown: UnknownFields) -> _Fields:
    """The plain form of a struct with what was set aside, wherever there is still something that it belongs to.

    plain         as ``msgspec.to_builtins`` gives it; changed in place
    """
    plain.pop(_KEY, None)
    singles = {name: part for name, part in unknown.parts.items() if isinstance(part, _Single)}
    for name in _fields_of(type(value)) if singles else ():
        inside = getattr(value, name, None)
        if isinstance(inside, msgspec.Struct) and (its := _single_of(name, inside, singles)) is not None:
            plain[name] = put_back(inside, plain.get(name) or {}, its)  # absent where all that is known has its default
    for name, part in unknown.parts.items():
        inside = getattr(value, name, None)
        if isinstance(inside, Mapping) and name in plain:
            for key, its in _paired(part):
                if key in inside:
                    plain[name][key] = put_back(inside[key], plain[name][key], its)
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
            among[at] = put_back(one, plain[at], found[1])
    return among


def _paired(part: Any) -> list[tuple[Any, UnknownFields]]:
    return part if isinstance(part, list) else []


def _set_aside_within(inner: tuple[str, type[msgspec.Struct]] | None, value: Any) -> tuple[Any, Any]:
    """A field's value without what its structs do not know, and that."""
    if inner is None or not value:
        return value, None
    shape, cls = inner
    if shape == "one":
        known, part = set_aside(cls, value)
        return known, _Single(_identity_of(cls, known) if _known_by(cls) else None, part) if part else None
    if shape == "mapping" and isinstance(value, dict):
        split = {key: set_aside(cls, item) for key, item in value.items()}
        return {key: known for key, (known, _) in split.items()}, [(key, part) for key, (_, part) in split.items() if part]
    if shape == "sequence" and isinstance(value, list):
        several = [set_aside(cls, item) for item in value]
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
