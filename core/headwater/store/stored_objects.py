"""Stored objects: how a type is declared and registered by its name, and how its objects become bytes and come back.

The bytes of a value are a self-describing envelope around MessagePack: 1 format version · 1 flags (bit 0: zlib; bits 4 to 7:
``pointing``) · 4 CRC-32 of id (8 bytes), type, flags and body, big-endian · the body.
A value beyond one row's limit is cut into parts; part 0 knows how many.

Fields that only a later release knows are set aside when an object is read, and written back with it.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar
from zlib import crc32

import msgspec
from msgspec import inspect
from msgspec.structs import replace

from headwater.clock import Micros
from headwater.errors import CorruptionError, RefusedError
from headwater.store.backend import ROW_BYTES
from headwater.store.ids import ObjectId, id_text
from headwater.typed_values import convert, msgpack_decoder

TYPES_GROUP = "headwater.object_types"
"""The group of entry points that tell of object types: the type's name = ``module:Class``."""
MOST_POINTING = 15
"""The largest number that an envelope has room for."""
_NAME = re.compile(r"[a-z][a-z0-9-]{1,31}")
_types: dict[str, type[StoredObject]] = {}
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
_KEY = "~unknown"
"""The name of the in-memory field with what this release does not know; it is never stored."""
_Fields = dict[str, Any]


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

    unknown: UnknownFields | None = msgspec.field(name=_KEY, default=None)

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


class StoredPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The base of a struct inside a stored object whose unknown fields survive a change of the object.

    known_by      the fields by which it is known again when it has changed, or moved to another field of the object. Without any, one
                  among several is known by its whole value, and the one that a field holds alone is whatever stands in that field:
                  it is a group of settings, and no thing that another can replace
    """

    known_by: ClassVar[tuple[str, ...]] = ()


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


def entry_points_of(group: str) -> dict[str, list[EntryPoint]]:
    """The entry points of a group by their name; more than one where several packages claim a name."""
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        points.setdefault(point.name, []).append(point)
    return points


def claim_of(point: EntryPoint) -> str:
    """An entry point and its package, for messages."""
    package = "an unknown package" if point.dist is None else f"package {point.dist.name!r}"
    return f"{point.value!r} of {package}"


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
    decoder = _decoders.get(known)
    if decoder is None:
        decoder = _decoders[known] = msgpack_decoder(known, ext_hook=_read_extension)
    try:
        return decoder.decode(body)
    except msgspec.ValidationError:
        # perhaps a large integer where the class says int: extensions are only read where it says Any; or a field of a later release
        plain, unknown = keep_unknown_fields(known, msgspec.msgpack.decode(body, ext_hook=_read_extension))
        value = convert(plain, known, builtin_types=_BYTES)
        return replace(value, unknown=unknown) if unknown else value


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


class _Single(NamedTuple):
    """What a struct that a field holds alone is known by, and its unknown fields."""

    identity: Any
    part: UnknownFields


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
    left, restored = list(parts), list(plain)
    for place, struct_ in enumerate(structs):
        identity = _identity(struct_)
        pair = next((pair for pair in left if pair[0] == identity), None)
        if pair is not None:
            left.remove(pair)
            restored[place] = restore_unknown_fields(struct_, plain[place], pair[1])
    return restored


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
    return _identity(convert(known, cls, builtin_types=(bytes,)))


def _identity(struct: msgspec.Struct) -> Any:
    names = _known_by(type(struct))
    return (type(struct), *(getattr(struct, name) for name in names)) if names else struct


def _known_by(cls: type[msgspec.Struct]) -> tuple[str, ...]:
    return getattr(cls, "known_by", ())


@cache
def _fields_of(cls: type[msgspec.Struct]) -> dict[str, tuple[str, type[msgspec.Struct]] | None]:
    """The names under which a class stores its fields, each with the structs inside it, if there are any."""
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: _inner(field.type) for field in info.fields}


def _inner(kind: inspect.Type, shape: str = "one") -> tuple[str, type[msgspec.Struct]] | None:
    if isinstance(kind, inspect.StructType):
        return None if kind.array_like else (shape, kind.cls)
    if isinstance(kind, inspect.UnionType):
        return next((inner for member in kind.types if (inner := _inner(member, shape)) is not None), None)
    if isinstance(kind, inspect.DictType):
        return _inner(kind.value_type, "mapping") if shape == "one" else None
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        return _inner(kind.item_type, "sequence") if shape == "one" else None
    return None


_encoder = msgspec.msgpack.Encoder()
_decoders: dict[type[StoredObject], msgspec.msgpack.Decoder[StoredObject]] = {}
