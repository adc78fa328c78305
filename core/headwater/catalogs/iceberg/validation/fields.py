"""Fields of JSON objects by what the specification says that they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headwater.catalogs.iceberg.validation.faults import inconsistent, invalid, shown

__all__ = [
    "INT",
    "LIST",
    "LONG",
    "NAME",
    "OBJECT",
    "TEXT",
    "TEXTS",
    "TRUTH",
    "Kind",
    "Object",
    "entries",
    "find",
    "is_int",
    "is_long",
    "listed",
    "need",
    "unique_ids",
]

Object = dict[str, Any]


class Kind(NamedTuple):
    """What a field holds. ``words`` come after "is no"."""

    words: str
    fits: Callable[[Any], bool]


def is_int(value: Any) -> bool:
    """32 bits: the specification's int."""
    return type(value) is int and -(2**31) <= value < 2**31


def is_long(value: Any) -> bool:
    """64 bits: the specification's long."""
    return type(value) is int and -(2**63) <= value < 2**63


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


INT = Kind("integer of 32 bits", is_int)
LONG = Kind("integer of 64 bits", is_long)
TEXT = Kind("text", lambda value: isinstance(value, str))
NAME = Kind("text with something in it", lambda value: isinstance(value, str) and value != "")
TRUTH = Kind("true or false", lambda value: isinstance(value, bool))
LIST = Kind("list", lambda value: isinstance(value, list))
OBJECT = Kind("object", lambda value: isinstance(value, dict))
TEXTS = Kind("object of texts", _is_texts)


def need(holder: Object, name: str, kind: Kind, where: str = "") -> Any:
    """A required field.

    where         what comes before the field's name in a message: ``snapshots[3].``
    raises        FaultError: it is missing, null or of another kind
    """
    value = holder.get(name)
    if value is None:
        raise invalid(f"has no {where}{name}")
    if not kind.fits(value):
        raise invalid(f"has {where}{name} {shown(value)}, which is no {kind.words}")
    return value


def find(holder: Object, name: str, kind: Kind, where: str = "") -> Any | None:
    """An optional field; null is as absent."""
    return None if holder.get(name) is None else need(holder, name, kind, where)


def entries(holder: Object, name: str, where: str = "") -> list[Object]:
    """An optional list of objects; nothing where it is absent or null."""
    value = holder.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid(f"has {where}{name} {shown(value)}, which is no list")
    for at, entry in enumerate(value):
        if not isinstance(entry, dict):
            raise invalid(f"has {where}{name}[{at}] {shown(entry)}, which is no object")
    return value


def unique_ids(found: Sequence[Object], name: str, identity: str) -> list[int]:
    """The ids of schemas, specs, orders or versions, in their order.

    raises        FaultError: one is missing or no integer, or two are the same
    """
    ids = [need(entry, identity, INT, f"{name}[{at}].") for at, entry in enumerate(found)]
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise inconsistent(f"has the {identity} {twice} twice in {name}")
    return ids


def listed(ids: Sequence[object]) -> str:
    """A few ids in a sentence."""
    return ", ".join(str(entry) for entry in ids[:10]) + (", ..." if len(ids) > 10 else "") or "none"
