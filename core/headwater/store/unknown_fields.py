"""Fields that only a later release knows: set aside when an object is read, and put back when it is written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import msgspec
from msgspec import inspect

__all__ = ["StoredPart", "UnknownFields", "put_back", "set_aside"]

_KEY = "~unknown"
"""How the field is called that holds them in memory; it is never stored."""
_Fields = dict[str, Any]


class UnknownFields(msgspec.Struct, frozen=True, eq=False):
    """What an object carries for later releases. All of them are equal: objects are compared by what this release knows.

    pointing      how many times the type had gained pointers for whoever wrote the object; 0: no more often than this release knows
    fields        values by name, as they were decoded
    parts         of the structs inside the object, by the name of the field that holds them: their own, or pairs of what a struct
                  among several is known by (a key, or the value of its field ``known_by``) and its own
    """

    pointing: int = 0
    fields: _Fields = {}
    parts: dict[str, Any] = {}

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return bool(self.pointing or self.fields or self.parts)


class StoredPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The base of a struct inside a stored object whose unknown fields survive a change of the object.

    known_by      the field by which one among several is known again when it has changed; empty: by its whole value
    """

    known_by: ClassVar[str] = ""


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
    for name, part in unknown.parts.items():
        inside = getattr(value, name, None)
        if isinstance(inside, msgspec.Struct) and isinstance(part, UnknownFields):
            plain[name] = put_back(inside, plain.get(name) or {}, part)  # absent where all that is known has its default
        elif isinstance(inside, Mapping) and name in plain:
            for key, its in _paired(part):
                if key in inside:
                    plain[name][key] = put_back(inside[key], plain[name][key], its)
        elif isinstance(inside, Sequence) and name in plain:
            plain[name] = _put_back_among(inside, plain[name], _paired(part))
    return plain | {name: kept for name, kept in unknown.fields.items() if name not in plain}


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
        return known, part or None
    if shape == "mapping" and isinstance(value, dict):
        split = {key: set_aside(cls, item) for key, item in value.items()}
        return {key: known for key, (known, _) in split.items()}, [(key, part) for key, (_, part) in split.items() if part]
    if shape == "sequence" and isinstance(value, list):
        several = [set_aside(cls, item) for item in value]
        parts = [(_identity(msgspec.convert(known, cls, builtin_types=(bytes,))), part) for known, part in several if part]
        return [known for known, _ in several], parts
    return value, None


def _identity(struct: msgspec.Struct) -> Any:
    name = getattr(type(struct), "known_by", "")
    return getattr(struct, name) if name else struct


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
