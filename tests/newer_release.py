"""What a later release would have written: stored objects with fields, numbers and words that this one does not know."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable
from typing import Any

import msgspec

from headwater.store import ObjectId, RealmStore, StoredObject, UnknownFields, UnknownObject
from headwater.store.stored_objects import encode_object

__all__ = ["INVENTED", "body_of", "rewrite"]

INVENTED = {"invented": [1, {"later": "yes"}]}


def body_of(rows: RealmStore, object_id: ObjectId) -> dict[str, Any]:
    """The fields of a stored object as they lie in the database."""
    return _opened(rows, object_id)[1]


def rewrite(rows: RealmStore, object_id: ObjectId, change: Callable[[dict[str, Any]], Any], *, pointing: int = 0) -> None:
    """Write an object again in place, with a token of its own, after ``change`` edited its fields."""
    row, body = _opened(rows, object_id)
    change(body)
    newer: StoredObject = UnknownObject(name=row.type, body=msgspec.msgpack.encode(body))
    if pointing:
        newer = msgspec.structs.replace(newer, unknown=UnknownFields(pointing=pointing))
    token = None if row.token is None else secrets.token_hex(8)
    rows.store.backend.write_objects([msgspec.structs.replace(row, value=encode_object(object_id, newer)[1], token=token)])
    rows.store.cache.clear()


def _opened(rows: RealmStore, object_id: ObjectId) -> Any:
    [row] = rows.store.backend.read_objects(rows.key, [(object_id, 0)])
    assert row is not None
    body = zlib.decompress(row.value[6:]) if row.value[1] & 1 else row.value[6:]
    return row, msgspec.msgpack.decode(body)
