"""Rows as MongoDB documents, and their keys. Every document read is checked; one that Headwater cannot have written is an error.

objs   ``_id`` 20 bytes: realm, id and part as big-endian numbers of 8, 8 and 4 bytes; t type, c created, v token unless None,
       n parts, d value. A document with ``x`` is no row: the first part of an object whose others may still be there
refs   ``_id`` text: the realm as 16 hex digits and the name; p pointer unless None, v version, c created,
       r recent pointers (8 bytes each) and m moves (8 bytes of pointer, 8 of time) unless empty, x deleted unless None

MongoDB compares binaries by length before bytes, and texts by their UTF-8 bytes. So keys of rows have one length, and keys of
references, whose length varies, are texts.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from bson.int64 import Int64

from headwater.clock import Micros
from headwater.errors import CorruptionError, RefusedError
from headwater.store.backend import (
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferenceMove,
    ReferencePosition,
    ReferenceRow,
)
from headwater.store.ids import ObjectId, RealmKey

Document = dict[str, Any]
_MOST_ID, _MOST_PART = (1 << 64) - 1, (1 << 32) - 1
_key = struct.Struct(">QQI")
_move = struct.Struct(">qq")
_REALM_DIGITS = 16
_SIZE = {"$cond": [{"$eq": [{"$type": "$d"}, "binData"]}, {"$binarySize": "$d"}, None]}
"""The value's size; None for a value of another type, so that it does not fail the query for the whole page."""

OBJECT_KEY_FIELDS: Mapping[str, Any] = {"t": 1, "c": 1, "v": 1, "n": 1, "b": _SIZE}
REFERENCE_KEY_FIELDS: Mapping[str, Any] = {"p": 1, "v": 1, "c": 1, "x": 1}

# Compared by exact type: bool is a subclass of int, and Binary of other subtypes one of bytes. Neither is ever written by us.
_INTEGER, _TEXT, _BYTES = (int, Int64), (str,), (bytes,)
_NONE = type(None)
_OBJECT_TYPES = {"t": _TEXT, "c": _INTEGER, "v": (*_TEXT, _NONE), "n": _INTEGER, "d": _BYTES}
_OBJECT_KEY_TYPES = {"t": _TEXT, "c": _INTEGER, "v": (*_TEXT, _NONE), "n": _INTEGER, "b": _INTEGER}
_REFERENCE_TYPES = {"p": (*_INTEGER, _NONE), "v": _INTEGER, "c": _INTEGER, "x": (*_INTEGER, _NONE)}
_LIST_TYPES = {"r": (*_BYTES, _NONE), "m": (*_BYTES, _NONE)}


def object_id(realm: RealmKey, object_id: ObjectId, part: int) -> bytes:
    try:
        return _key.pack(realm, object_id, part)
    except struct.error:
        raise RefusedError(
            f"part {part} of object {object_id} in realm key {realm}: keys are numbers from 0 to 2^63-1, parts to 2^32-1"
        ) from None


def object_position(key: Any, place: str) -> ObjectPosition:
    if type(key) is not bytes or len(key) != _key.size:
        _refuse(place, "objs", key, f"is not a key of a row: a key is {_key.size} bytes")
    realm, number, part = _key.unpack(key)
    return (RealmKey(realm), ObjectId(number), part)


def objects_of_realm(realm: RealmKey) -> tuple[bytes, bytes]:
    """The smallest and the largest possible key of a realm's rows."""
    return _key.pack(realm, 0, 0), _key.pack(realm, _MOST_ID, _MOST_PART)


def parts_from(realm: RealmKey, object_id: ObjectId, part: int) -> Document:
    """The condition for an object's rows from a part on."""
    return {"_id": {"$gte": _key.pack(realm, object_id, part), "$lte": _key.pack(realm, object_id, _MOST_PART)}}


def is_row(document: Document) -> bool:
    return "x" not in document


def object_document(row: ObjectRow) -> Document:
    document: Document = {"_id": _key.pack(row.realm, row.id, row.part), "t": row.type, "c": row.created}
    if row.token is not None:
        document["v"] = row.token
    document["n"] = row.parts
    document["d"] = row.value
    return document


def object_row(document: Document, place: str) -> ObjectRow:
    realm, number, part = object_position(document["_id"], place)
    get: Callable[[str], Any] = document.get
    kind, created, token, parts, value = get("t"), get("c"), get("v"), get("n"), get("d")
    if (
        type(kind) is not str
        or type(value) is not bytes
        or type(created) not in _INTEGER
        or type(parts) not in _INTEGER
        or not (token is None or type(token) is str)
    ):
        _refuse_types(place, "objs", document, _OBJECT_TYPES)
    return ObjectRow(
        realm=realm, id=number, part=part, type=kind, value=value, created=Micros(int(created)), token=token, parts=int(parts)
    )


def object_key(document: Document, place: str) -> ObjectKey:
    realm, number, part = object_position(document["_id"], place)
    get: Callable[[str], Any] = document.get
    kind, created, token, parts, size = get("t"), get("c"), get("v"), get("n"), get("b")
    if (
        type(kind) is not str
        or type(created) not in _INTEGER
        or type(parts) not in _INTEGER
        or type(size) not in _INTEGER
        or not (token is None or type(token) is str)
    ):
        _refuse_types(place, "objs", document, _OBJECT_KEY_TYPES)
    return ObjectKey(realm, number, part, kind, Micros(int(created)), token, int(parts), int(size))


def reference_id(realm: RealmKey, name: str) -> str:
    return f"{realm:016x}{name}"


def reference_position(key: Any, place: str) -> ReferencePosition:
    try:
        if type(key) is not str or len(key) < _REALM_DIGITS:
            raise ValueError
        return (RealmKey(int(key[:_REALM_DIGITS], 16)), key[_REALM_DIGITS:])
    except ValueError:
        _refuse(place, "refs", key, "is not a key of a reference: a key is text, 16 hex digits and a name")


def realm_of_references(realm: RealmKey) -> tuple[str, str]:
    """A key before all references of a realm, and the first key after them."""
    return reference_id(realm, ""), reference_id(RealmKey(realm + 1), "")


def reference_document(row: ReferenceRow) -> Document:
    document: Document = {"_id": reference_id(row.realm, row.name), "v": row.version, "c": row.created}
    if row.pointer is not None:
        document["p"] = row.pointer
    if row.recent:
        document["r"] = struct.pack(f">{len(row.recent)}q", *row.recent)
    if row.moves:
        document["m"] = b"".join(_move.pack(*move) for move in row.moves)
    if row.deleted is not None:
        document["x"] = row.deleted
    return document


def reference_row(document: Document, place: str) -> ReferenceRow:
    key = reference_key(document, place)
    recent, moves = document.get("r"), document.get("m")
    if not (recent is None or type(recent) is bytes) or not (moves is None or type(moves) is bytes):
        _refuse_types(place, "refs", document, _LIST_TYPES)
    if len(recent or b"") % 8 or len(moves or b"") % _move.size:
        _refuse(place, "refs", document["_id"], "is no reference of ours: its recent pointers or moves are cut off")
    return ReferenceRow(
        realm=key.realm,
        name=key.name,
        pointer=key.pointer,
        version=key.version,
        created=key.created,
        recent=struct.unpack(f">{len(recent) // 8}q", recent) if recent else (),
        moves=tuple(ReferenceMove(ObjectId(pointer), Micros(time)) for pointer, time in _move.iter_unpack(moves))
        if moves
        else (),
        deleted=key.deleted,
    )


def reference_key(document: Document, place: str) -> ReferenceKey:
    realm, name = reference_position(document["_id"], place)
    _check_types(place, "refs", document, _REFERENCE_TYPES)
    pointer, deleted = document.get("p"), document.get("x")
    return ReferenceKey(
        realm,
        name,
        None if pointer is None else ObjectId(int(pointer)),
        int(document["v"]),
        Micros(int(document["c"])),
        None if deleted is None else Micros(int(deleted)),
    )


def _check_types(place: str, collection: str, document: Document, types: Mapping[str, tuple[type, ...]]) -> None:
    for name, allowed in types.items():
        if type(document.get(name)) not in allowed:
            _refuse_types(place, collection, document, types)


def _refuse_types(place: str, collection: str, document: Document, types: Mapping[str, tuple[type, ...]]) -> NoReturn:
    for name, allowed in types.items():
        value = document.get(name)
        if type(value) not in allowed:
            found = "is missing" if value is None else f"is a {type(value).__name__}"
            shown = "d, its value, is missing or no bytes" if name == "b" else f"{name} {found}"
            _refuse(place, collection, document["_id"], f"is no row of ours: its field {shown}")
    raise AssertionError("all types are right")


def _refuse(place: str, collection: str, key: Any, why: str) -> NoReturn:
    raise CorruptionError(f"{place}: collection {collection}: the document with _id {_shown(key)} {why}")


def _shown(key: Any) -> str:
    if type(key) is bytes and len(key) == _key.size:
        realm, number, part = _key.unpack(key)
        return f"{key.hex()} (object {number:016x}, part {part}, realm key {realm})"
    text = repr(key)
    return text if len(text) <= 100 else f"{text[:100]}..."
