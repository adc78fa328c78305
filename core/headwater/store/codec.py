"""Objects to bytes and back: a self-describing envelope around MessagePack.

Bytes of a value: 1 format version · 1 flags (bit 0: zlib; bits 4 to 7: ``pointing``) · 4 CRC-32 of id (8 bytes), type, flags and body,
big-endian · the body.
A value beyond one row's limit is cut into parts; part 0 knows how many.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar
from zlib import crc32

import msgspec
from msgspec.structs import replace

from headwater.errors import CorruptionError, RefusedError
from headwater.store.backend import ROW_BYTES
from headwater.store.ids import ObjectId, id_text
from headwater.store.stored_objects import (
    StoredObject,
    UnknownFields,
    UnknownObject,
    is_type_name,
    keep_unknown_fields,
    registered_type,
    restore_unknown_fields,
)

OBJECT_BYTES = 256 * 1024 * 1024
"""The most that one object's body may have, before it is compressed: readers hold it in memory as a whole."""
MOST_PARTS = -(-(OBJECT_BYTES + 6) // ROW_BYTES)
FORMAT = 1
_COMPRESSED = 1
_POINTING_SHIFT = 4
_FLAGS = _COMPRESSED | 0xF << _POINTING_SHIFT
_COMPRESS_FROM = 512
"""Measured on commits and tables: with 500 bytes, a try saves 100 to 230 for 6 to 10 microseconds, as long as all else that a
write takes here; with fewer, it takes as long and saves next to nothing."""
_HEADER = struct.Struct(">BBI")
_BIG_INTEGER = 1
_LEAST, _GREATEST = -(1 << 63), (1 << 64) - 1
_BYTES = (bytes, bytearray, memoryview)

T = TypeVar("T", bound=StoredObject)


def encode_object(object_id: ObjectId, value: StoredObject) -> tuple[str, bytes]:
    """The type's name and the envelope of an object.

    raises        RefusedError for a class without a name, for values that MessagePack cannot hold, or that are not of the types which
                  the class says (nobody could read them), and beyond OBJECT_BYTES
    """
    if isinstance(value, UnknownObject):
        flags = _pointing_flags(value) | (_COMPRESSED if value.packed else 0)
        return value.name, _sealed(object_id, value.name, value.packed or value.body, flags)
    name = value.type_name
    if not name:
        raise RefusedError(f"{type(value).__qualname__} is no registered object type: give it a name with @object_type")
    body = _packed(object_id, value)
    try:
        _unpacked(type(value), body)
    except msgspec.MsgspecError as fault:
        raise RefusedError(f"object {id_text(object_id)} of type {name!r} cannot be stored: {fault}") from fault
    if len(body) > OBJECT_BYTES:
        raise RefusedError(
            f"object {id_text(object_id)} of type {name!r} has {len(body)} bytes; an object may have {OBJECT_BYTES}: divide it"
        )
    if len(body) >= _COMPRESS_FROM and value.compressed:
        smaller = zlib.compress(body, 1)
        if len(smaller) < len(body) * 0.9:
            return name, _sealed(object_id, name, smaller, _pointing_flags(value) | _COMPRESSED)
    return name, _sealed(object_id, name, body, _pointing_flags(value))


def decode_object(object_id: ObjectId, name: str, envelope: bytes, cls: type[T], *, realm: str, token: str | None = None) -> T:
    """The object in an envelope; an UnknownObject where the type is not known and ``cls`` admits any.

    token         the row's, if it has one
    raises        CorruptionError that names realm, id and type: foreign, truncated or altered bytes, or another type than asked
    """
    try:
        value = _opened(object_id, name, envelope, token)
        if isinstance(value, cls):
            return value
        fault: Exception = CorruptionError(f"read as {cls.__name__}, but it is a {type(value).__name__}")
    except (zlib.error, msgspec.MsgspecError, CorruptionError, RecursionError, UnicodeError) as raised:
        fault = raised
    raise CorruptionError(f"object {id_text(object_id)} of type {name!r} in realm {realm!r}: {fault}") from fault


def is_compressed(envelope: bytes) -> bool:
    return bool(envelope[1] & _COMPRESSED)


def is_whole(object_id: ObjectId, name: str, envelope: bytes) -> bool:
    """Whether an envelope has the bytes that were written, or is of a later format, whose checksum this release cannot verify."""
    if len(envelope) < _HEADER.size:
        return False
    version, flags, checksum = _HEADER.unpack_from(envelope)
    return bool(version > FORMAT) or checksum == _checksum(object_id, name, flags, envelope[_HEADER.size :])


def pointing_number(envelope: bytes) -> int:
    """How many times the object's type had gained pointers in the release that wrote it. Needs only the first row."""
    return envelope[1] >> _POINTING_SHIFT if len(envelope) > 1 else 0


def object_parts(envelope: bytes) -> Sequence[bytes]:
    return [envelope[start : start + ROW_BYTES] for start in range(0, len(envelope), ROW_BYTES)]


def _sealed(object_id: ObjectId, name: str, stored: bytes, flags: int) -> bytes:
    checksum = _checksum(object_id, name, flags, stored)
    return _HEADER.pack(FORMAT, flags, checksum) + stored


def _checksum(object_id: ObjectId, name: str, flags: int, stored: bytes) -> int:
    return crc32(stored, crc32(object_id.to_bytes(8, "big") + _kind(name, flags)))


def _opened(object_id: ObjectId, name: str, envelope: bytes, token: str | None) -> StoredObject:
    if len(envelope) < 6:
        raise CorruptionError(f"truncated to {len(envelope)} bytes")
    version, flags, checksum = _HEADER.unpack_from(envelope)
    if version != FORMAT:
        raise CorruptionError(f"envelope format {version}; this release reads {FORMAT}")
    stored = envelope[6:]
    if checksum != _checksum(object_id, name, flags, stored):
        raise CorruptionError("checksum does not fit, the bytes were altered")
    if flags & ~_FLAGS:
        raise CorruptionError(f"envelope flags {flags}; this release knows {_FLAGS}")
    is_packed, number = bool(flags & _COMPRESSED), flags >> _POINTING_SHIFT
    body = _inflated(stored) if is_packed else stored
    known = registered_type(name)
    if known is not None:
        value = _unpacked(known, body)
        return _with_pointing(value, number) if number > known.pointing else value
    if not is_type_name(name):
        raise CorruptionError("that is no type's name, the row is not ours")
    unknown = UnknownObject(name=name, body=body, packed=stored if is_packed else b"", is_updateable=token is not None)
    return _with_pointing(unknown, number) if number else unknown


def _with_pointing(value: StoredObject, number: int) -> StoredObject:
    return replace(value, unknown=replace(value.unknown or UnknownFields(), pointing=number))


def _pointing_flags(value: StoredObject) -> int:
    """The pointing number to write, never less than that of the previous writer, whose pointers are written back as well."""
    if value.unknown is None:
        return value.pointing << _POINTING_SHIFT
    return max(value.pointing, value.unknown.pointing) << _POINTING_SHIFT


def _unpacked(known: type[StoredObject], body: bytes) -> StoredObject:
    decoder = _decoders.get(known) or _made_decoder(known)
    try:
        return decoder.decode(body)
    except msgspec.ValidationError:
        # perhaps a large integer where the class says int: extensions are only read where it says Any; or a field of a later release
        plain, unknown = keep_unknown_fields(known, msgspec.msgpack.decode(body, ext_hook=_read_extension))
        value = msgspec.convert(plain, known, builtin_types=_BYTES)
        return replace(value, unknown=unknown) if unknown else value


def _made_decoder(known: type[StoredObject]) -> msgspec.msgpack.Decoder[StoredObject]:
    """Make a decoder, one thread at a time: two threads that make the first decoder of a class crash the process (msgspec 0.22)."""
    with _making:
        if known not in _decoders:
            _decoders[known] = msgspec.msgpack.Decoder(known, ext_hook=_read_extension)
        return _decoders[known]


def _renew_lock() -> None:
    global _making  # noqa: PLW0603  a thread that the child does not have may have held it
    _making = threading.Lock()


def _inflated(stored: bytes) -> bytes:
    """Decompress at most the size of an object: a thousandth of that size can be crafted to expand beyond all memory."""
    inflater = zlib.decompressobj()
    body = inflater.decompress(stored, OBJECT_BYTES)
    if inflater.eof and not inflater.unused_data:
        return body
    if inflater.eof:
        raise CorruptionError(f"{len(inflater.unused_data)} bytes stand behind its compressed ones")
    raise CorruptionError(
        f"it has more than {OBJECT_BYTES} bytes, which is the most that an object may have"
        if len(body) == OBJECT_BYTES
        else "its compressed bytes end too early"
    )


@lru_cache(maxsize=1000)
def _kind(name: str, flags: int) -> bytes:
    """The bytes that the checksum covers in addition to id and body. Cached, for making them is a third of the checksum's time."""
    return name.encode() + flags.to_bytes(1, "big")


def _packed(object_id: ObjectId, value: StoredObject) -> bytes:
    try:
        if value.unknown is not None:
            plain = msgspec.to_builtins(replace(value, unknown=None), builtin_types=_BYTES)
            return _encoder.encode(_with_big_integers(restore_unknown_fields(value, plain, value.unknown)))
        try:
            return _encoder.encode(value)
        except OverflowError:
            return _encoder.encode(_with_big_integers(msgspec.to_builtins(value, builtin_types=_BYTES)))
    except (TypeError, ValueError, RecursionError) as fault:  # UnicodeEncodeError is a ValueError
        raise RefusedError(f"object {id_text(object_id)} of type {value.type_name!r} cannot be stored: {fault}") from fault


def _with_big_integers(value: Any) -> Any:
    """MessagePack ends at 64 bits; larger integers travel as an extension of their signed big-endian bytes."""
    if isinstance(value, dict):
        if any(isinstance(key, int) and not _LEAST <= key <= _GREATEST for key in value):
            raise RefusedError("a key of a stored dictionary is an integer beyond 64 bits: write it as text")
        return {key: _with_big_integers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_big_integers(item) for item in value]
    if isinstance(value, int) and not _LEAST <= value <= _GREATEST:
        return msgspec.msgpack.Ext(_BIG_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))
    return value


def _read_extension(code: int, data: memoryview) -> Any:
    if code == _BIG_INTEGER:
        return int.from_bytes(data, "big", signed=True)
    return msgspec.msgpack.Ext(code, bytes(data))


_encoder = msgspec.msgpack.Encoder()
_decoders: dict[type[StoredObject], msgspec.msgpack.Decoder[StoredObject]] = {}
_making = threading.Lock()
os.register_at_fork(after_in_child=_renew_lock)
