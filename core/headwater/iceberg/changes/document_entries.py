"""What changes of tables and of views have in common: lists of objects in a document, equal schemas, locations, properties."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from headwater.errors import CorruptionError
from headwater.iceberg.changes.change_errors import ChangeFormError
from headwater.iceberg.spec import Document, FaultError

Entry = dict[str, Any]

_TYPE_FIELDS = ("type", "element", "key", "value")


@contextmanager
def readable_document(document: Document | None, check: Callable[[Document], object]) -> Iterator[None]:
    """A block that reads a document which may have a fault anywhere: an import takes such tables where it is told to.

    Looking for faults first would take as long as the change itself, so that is done only where the block stumbles.

    check         the rules of the specification: ``check_table`` or ``check_view``
    raises        CorruptionError that names the fault of the document; what the block raises where the document has none
    """
    try:
        yield
    except FaultError as unread:
        raise CorruptionError(f"the metadata {unread}: restore an earlier version of it") from unread
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        fault = None if document is None else _find_fault(document, check)
        if fault is None:
            raise
        raise CorruptionError(f"the metadata {fault}: restore an earlier version of it") from error


def check_result(
    changed: Document, document: Document | None, check: Callable[[Document], object], *, noun: str, where: str
) -> None:
    """Judge a changed document by the specification.

    document      what it was before; None if it is new
    raises        ChangeFormError, unless the document had a fault of the same kind before: its owner must be able to mend it bit by bit
    """
    fault = _find_fault(changed, check)
    if fault is None or (document is not None and _kind_of(fault) == _kind_of(_find_fault(document, check))):
        return
    raise ChangeFormError(f"The change is refused, because then the {noun}'s metadata {fault}", path=where) from fault


def _find_fault(document: Document, check: Callable[[Document], object]) -> FaultError | None:
    try:
        check(document)
    except FaultError as fault:
        return fault
    return None


def _kind_of(fault: FaultError | None) -> str | None:
    """What a fault is without the numbers in it, which other changes move."""
    return None if fault is None else re.sub(r"-?\d+", "#", str(fault))


def entries_of(document: Mapping[str, Any], name: str) -> list[Entry]:
    """The objects of a list in a document; none where the list is absent.

    raises        CorruptionError for what is no list of objects: nothing can be added to it
    """
    entries = document.get(name)
    if entries is None:
        return []
    if not isinstance(entries, list) or set(map(type, entries)) - {dict}:
        raise CorruptionError(f"the metadata has {name} that is no list of objects: restore an earlier version of it")
    return entries


def members_of(document: Mapping[str, Any], name: str, kind: type) -> Entry:
    """The members of an object in a document, all of one kind; none where the object is absent. Raises as ``entries_of`` does."""
    members = document.get(name)
    if members is None:
        return {}
    if not isinstance(members, dict) or any(not isinstance(member, kind) for member in members.values()):
        raise CorruptionError(f"the metadata has {name} of another shape than it should: restore an earlier version of it")
    return members


def schema_form(schema: Mapping[str, Any]) -> Any:
    """What makes two schemas the same: all but the id, the order of identifiers, white space in types, and what is null."""
    form = {name: _form(value, name) for name, value in schema.items() if value is not None and name != "schema-id"}
    form["identifier-field-ids"] = sorted(form.get("identifier-field-ids") or [])
    return form


def _form(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _form(member, key) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_form(member, name) for member in value]
    return value.replace(" ", "") if isinstance(value, str) and name in _TYPE_FIELDS else value


def full_names(schema: Mapping[str, Any]) -> dict[str, int]:
    """The ids of all fields of a sound schema by their full names, such as ``address.street`` or ``points.element.x``."""
    return dict(_named_fields(schema, ""))


def _named_fields(type_: Any, above: str) -> Iterator[tuple[str, int]]:
    if not isinstance(type_, Mapping):
        return
    members = [(field["name"], field["id"], field["type"]) for field in type_.get("fields") or ()]
    members += [(part, type_[f"{part}-id"], type_[part]) for part in ("element", "key", "value") if f"{part}-id" in type_]
    for name, number, inner in members:
        yield f"{above}{name}", number
        yield from _named_fields(inner, f"{above}{name}.")


def plain_entry(entry: Mapping[str, Any]) -> Entry:
    """An object without the fields that are null, which say the same as absent ones."""
    return {name: value for name, value in entry.items() if value is not None}


def time_in(entry: Mapping[str, Any], name: str) -> int:
    """A time in milliseconds; 0 where there is none."""
    time = entry.get(name)
    return time if isinstance(time, int) else 0


def stripped_location(location: str) -> str:
    """A location without slashes at its end, as Iceberg stores it; ``s3://`` alone keeps them."""
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location


def changed_properties(document: Mapping[str, Any], *, updates: Mapping[str, str], removals: Iterable[str]) -> dict[str, str]:
    """The properties of a document with some set and others gone. Removing what is not there changes nothing."""
    gone = set(removals)
    properties: dict[str, str] = members_of(document, "properties", str) | dict(updates)
    return {name: value for name, value in properties.items() if name not in gone}


def read_properties(properties: Mapping[str, Any] | None, where: str) -> dict[str, str]:
    """The properties of a request, all of them texts; none where there are none.

    raises        ChangeFormError with the first one that is no text
    """
    if properties is None:
        return {}
    if not isinstance(properties, Mapping):
        raise ChangeFormError(f"The request has {where}, which is not an object", path=where)
    for name, value in properties.items():
        if not isinstance(value, str):
            path = f"{where}[{name!r}]"
            raise ChangeFormError(f"The request has {path}, which is not a string", path=path)
    return dict(properties)


def integer_property(properties: Mapping[str, str], name: str, default: int) -> int:
    """A property that is a number; the default for one that was stored before it was checked, and is none."""
    number = _number(properties.get(name))
    return default if number is None else number


def check_integer_property(properties: Mapping[str, str], name: str, *, least: int, where: str) -> None:
    """Check that a property that is set is an integer, and not less than another.

    raises        ChangeFormError with the place of the property in the request
    """
    text = properties.get(name)
    if text is None:
        return
    number = _number(text)
    path = f"{where}[{name!r}]"
    if number is None:
        raise ChangeFormError(f"{name} must be an integer but was {text[:60]!r} ({path})", path=path)
    if number < least:
        raise ChangeFormError(f"{name} must be {_least(least)} but was {number} ({path})", path=path)


def _least(least: int) -> str:
    return "positive" if least == 1 else f"{least} or more"


def _number(text: str | None) -> int | None:
    """A 32-bit integer in plain digits. Python would read ``1_0`` and other alphabets' digits as well, which no engine does."""
    if not isinstance(text, str) or not text.isascii() or not text.removeprefix("-").isdigit() or len(text) > 11:
        return None
    number = int(text)
    return number if -(2**31) <= number < 2**31 else None
