"""Objects to bytes and back: a self-describing envelope around MessagePack.

Bytes of a value: 1 format version · 1 flags (bit 0: zlib) · 4 CRC-32 of id (8 bytes), type, flags and body, big-endian · the body.
A value beyond one row's limit is cut into parts; part 0 knows how many.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from headwater.errors import RefusedError, UnreadableError
from headwater.store.backend import ROW_BYTES
from headwater.store.identity import ObjectId, id_text
from headwater.store.objects import StoredObject, UnknownObject, registered_type

__all__ = ["decode", "encode", "parts_of"]

FORMAT = 1
_COMPRESSED = 1
_COMPRESS_FROM = 512
_HEADER = struct.Struct(">BBI")
_BIG_INTEGER = 1
_LEAST, _GREATEST = -(1 << 63), (1 << 64) - 1
_BYTES = (bytes, bytearray, memoryview)

T = TypeVar("T", bound=StoredObject)


def encode(object_id: ObjectId, value: StoredObject) -> tuple[str, bytes]:
    """The type's name and the envelope of an object."""
    if isinstance(value, UnknownObject):
        name, body = value.name, value.body
    else:
        name, body = value.type_name, _packed(value)
    if not name:
        raise RefusedError(f"{type(value).__qualname__} is no registered object type: give it a name with @object_type")
    packed = zlib.compress(body, 1) if len(body) >= _COMPRESS_FROM else body
    pays = len(packed) < len(body) * 0.9
    stored = packed if pays else body
    flags = _COMPRESSED if pays else 0
    return name, _HEADER.pack(FORMAT, flags, _checksum(object_id, name, flags, stored)) + stored


def decode(object_id: ObjectId, name: str, envelope: bytes, cls: type[T], *, realm: str) -> T:
    """The object in an envelope; an UnknownObject where the type is not known and ``cls`` admits any.

    raises        UnreadableError that names realm, id and type: foreign, truncated or altered bytes, or another type than asked
    """
    where = f"object {id_text(object_id)} of type {name!r} in realm {realm!r}"
    if len(envelope) < _HEADER.size:
        raise UnreadableError(f"{where}: truncated to {len(envelope)} bytes")
    version, flags, checksum = _HEADER.unpack_from(envelope)
    stored = envelope[_HEADER.size :]
    if version != FORMAT:
        raise UnreadableError(f"{where}: envelope format {version}; this release reads {FORMAT}")
    if checksum != _checksum(object_id, name, flags, stored):
        raise UnreadableError(f"{where}: checksum does not fit, the bytes were altered")
    try:
        body = zlib.decompress(stored) if flags & _COMPRESSED else stored
        known = registered_type(name)
        value: StoredObject = UnknownObject(name=name, body=body) if known is None else _unpacked(body, known)
    except (zlib.error, msgspec.MsgspecError) as fault:
        raise UnreadableError(f"{where}: {fault}") from fault
    if not isinstance(value, cls):
        raise UnreadableError(f"{where}: read as {cls.__name__}, but it is a {type(value).__name__}")
    return value


def parts_of(envelope: bytes) -> Sequence[bytes]:
    return [envelope[start : start + ROW_BYTES] for start in range(0, len(envelope), ROW_BYTES)]


def _checksum(object_id: ObjectId, name: str, flags: int, stored: bytes) -> int:
    return zlib.crc32(stored, zlib.crc32(object_id.to_bytes(8, "big") + name.encode() + bytes([flags])))


def _packed(value: StoredObject) -> bytes:
    try:
        return _encoder.encode(value)
    except OverflowError:
        return _encoder.encode(_with_big_integers(msgspec.to_builtins(value, builtin_types=_BYTES)))


def _unpacked(body: bytes, cls: type[StoredObject]) -> StoredObject:
    decoder = _decoders.get(cls)
    if decoder is None:
        decoder = _decoders[cls] = msgspec.msgpack.Decoder(cls, ext_hook=_read_extension)
    try:
        return decoder.decode(body)
    except (
        msgspec.ValidationError
    ):  # perhaps a large integer where the class says int: extensions are only read where it says Any
        plain = msgspec.msgpack.decode(body, ext_hook=_read_extension)
        return msgspec.convert(plain, cls, builtin_types=_BYTES)


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
