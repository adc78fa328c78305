"""The byte format of an archive: a header, then numbered blocks of records, each compressed and with its own checksum.

Header: ``HWREALM`` and 1 byte format: 1, 2 for an archive with file tables, 3 for one with references of extensions. A block: 1 kind ·
8 number from 0 · 4 bytes of the body as stored · 4 as it was · 4 CRC-32 of these 17 bytes and the stored body · the body, compressed by
zlib. The last block has the SHA-256 of all that stands before it.

An object's record: 8 id · 1 flags (bit 0: updateable) · 1 length of the type's name · the name · 4 length · the envelope.
A reference's record: 2 length of the name · the name · 8 pointer, 0 for none. Numbers are big-endian.
A file table's record: 4 length · MessagePack of an ``ArchivedTable``, its ``ArchivedSplits`` and ``ArchivedReferences``.
The first block says what the archive is, the last block what it holds: ``check_archive`` checks both.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

import msgspec

from headwater.backup.archived_tables import ArchivedReferences, ArchivedTable, read_table_records
from headwater.catalogs.registry import parse_reference
from headwater.clock import Micros
from headwater.errors import CorruptionError, NotFoundError, RefusedError, UnavailableError
from headwater.realms import REALM_REFERENCES, Realm, RealmFields
from headwater.store import SYSTEM_KEY, ObjectId, RealmId, StoredObject, id_text, id_time, is_fixed, unknown_pointers_reason
from headwater.store.stored_objects import decode_object
from headwater.typed_values import convert, decode_json

ARCHIVE_FORMAT = 1
FILE_TABLES_FORMAT = 2
"""The format of an archive with file tables: releases that do not know them refuse it by its first bytes."""
EXTENSIONS_FORMAT = 3
"""The format of an archive with references of extensions, perhaps with file tables as well."""
BLOCK_BYTES = 1024 * 1024
"""A block is closed when it reaches this many bytes before compression."""
_MAGIC = b"HWREALM"
_HEAD_BYTES = len(_MAGIC) + 1
_FORMATS = (ARCHIVE_FORMAT, FILE_TABLES_FORMAT, EXTENSIONS_FORMAT)
_FRAME = struct.Struct(">cQII")
_CHECKSUM = struct.Struct(">I")
_MOST_BYTES = 258 * 1024 * 1024
"""No block is larger than this: an object has at most 256 MiB, and a block ends with the record that fills it."""


class BlockKind(Enum):
    MANIFEST = b"M"
    REFERENCES = b"R"
    OBJECTS = b"O"
    FILE_TABLES = b"F"
    END = b"E"


class ArchiveBlock(NamedTuple):
    """A block as read from an archive.

    before        SHA-256 of the file up to it, in hex
    """

    kind: BlockKind
    number: int
    body: bytes
    before: str


class BlockWriter:
    """Writes an archive from its beginning and gathers records into blocks. The caller closes and syncs the file."""

    def __init__(self, file: BinaryIO, *, archive_format: int = ARCHIVE_FORMAT) -> None:
        self._file = file
        self._sha = hashlib.sha256()
        self._kind: BlockKind | None = None
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self.number = 0
        self.size_bytes = 0
        self._put(_MAGIC + bytes([archive_format]))

    def add_record(self, kind: BlockKind, record: bytes) -> bool:
        """Add a record to the current block of its kind. Returns True if that filled the block, which is then written."""
        if kind is not self._kind:
            self.close_block()
            self._kind = kind
        self._gathered.append(record)
        self._gathered_bytes += len(record)
        if self._gathered_bytes < BLOCK_BYTES:
            return False
        self.close_block()
        return True

    def close_block(self) -> None:
        """Write the gathered records as a block."""
        if self._kind is not None and self._gathered:
            self._write(self._kind, b"".join(self._gathered))
        self._kind, self._gathered, self._gathered_bytes = None, [], 0

    def digest(self) -> str:
        """SHA-256 of everything written so far, in hex."""
        return self._sha.hexdigest()

    def _write(self, kind: BlockKind, body: bytes) -> None:
        stored = zlib.compress(body, 1)
        frame = _FRAME.pack(kind.value, self.number, len(stored), len(body))
        self._put(frame + _CHECKSUM.pack(zlib.crc32(stored, zlib.crc32(frame))) + stored)
        self.number += 1

    def _put(self, piece: bytes) -> None:
        self._file.write(piece)
        self._sha.update(piece)
        self.size_bytes += len(piece)


def read_blocks(file: BinaryIO, name: str) -> Iterator[ArchiveBlock]:
    """Yield the blocks of an archive in order, END last; each is read when it is requested.

    name          of the file, used in messages
    raises        RefusedError for another file, and for an archive of another format; CorruptionError for one that was altered, cut
                  off or added to
    """
    head = file.read(_HEAD_BYTES)
    if head[: len(_MAGIC)] != _MAGIC or len(head) != _HEAD_BYTES:
        raise RefusedError(f"{name!r} is not an archive of a realm; `headwater realm export` writes one")
    if head[-1] not in _FORMATS:
        raise RefusedError(
            f"archive {name!r} is of format {head[-1]}, and this release reads formats {_FORMATS[0]} to {_FORMATS[-1]}: use the release"
            " that wrote it"
        )
    sha = hashlib.sha256(head)
    number = 0
    while True:
        block, raw = _read_block(file, name, number, sha.hexdigest())
        yield block
        if block.kind is BlockKind.END:
            if file.read(1):
                raise CorruptionError(f"archive {name!r} goes on behind its end: the file was altered")
            return
        sha.update(raw)
        number += 1


def _read_block(file: BinaryIO, name: str, number: int, before: str) -> tuple[ArchiveBlock, bytes]:
    where = f"archive {name!r} is damaged: block {number}"
    frame = file.read(_FRAME.size + _CHECKSUM.size)
    if len(frame) != _FRAME.size + _CHECKSUM.size:
        raise CorruptionError(f"{where} is cut off or missing, the file ends too early: copy it again")
    kind, told, stored_bytes, body_bytes = _FRAME.unpack_from(frame)
    (checksum,) = _CHECKSUM.unpack_from(frame, _FRAME.size)
    if max(stored_bytes, body_bytes) > _MOST_BYTES:
        raise CorruptionError(f"{where} cannot have {max(stored_bytes, body_bytes)} bytes")
    stored = file.read(stored_bytes)
    if len(stored) != stored_bytes:
        raise CorruptionError(f"{where} is cut off, the file ends too early: copy it again")
    if checksum != zlib.crc32(stored, zlib.crc32(frame[: _FRAME.size])):
        raise CorruptionError(f"{where} does not fit its checksum: copy it again")
    if told != number or kind not in {known.value for known in BlockKind}:
        raise CorruptionError(f"{where} stands in the place of another (kind {kind!r}, number {told})")
    body = _inflated(stored, body_bytes)
    if body is None:
        raise CorruptionError(f"{where} does not unpack to the {body_bytes} bytes that it had")
    return ArchiveBlock(BlockKind(kind), number, body, before), frame + stored


def _inflated(stored: bytes, body_bytes: int) -> bytes | None:
    """Decompress a block to at most the declared size: a few bytes can be made to expand beyond all memory."""
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(stored, body_bytes + 1)
    except zlib.error:
        return None
    return body if len(body) == body_bytes and inflater.eof and not inflater.unused_data else None


_NONE = ObjectId(0)
_UPDATEABLE = 1
_OBJECT = struct.Struct(">QBB")
_LENGTH = struct.Struct(">I")
_NAME = struct.Struct(">H")
_POINTER = struct.Struct(">Q")


class SealedObject(NamedTuple):
    """An object in its envelope, byte for byte."""

    id: ObjectId
    type: str
    is_updateable: bool
    envelope: bytes

    def record(self) -> bytes:
        name = self.type.encode()
        flags = _UPDATEABLE if self.is_updateable else 0
        return _OBJECT.pack(self.id, flags, len(name)) + name + _LENGTH.pack(len(self.envelope)) + self.envelope


def open_sealed(sealed: SealedObject, realm: str) -> StoredObject:
    """The object in its envelope, after a check of its checksum.

    raises        CorruptionError, also for a type that this release does not know, because what it reaches would be left out
    """
    token = "" if sealed.is_updateable else None
    value = decode_object(sealed.id, sealed.type, sealed.envelope, StoredObject, realm=realm, token=token)
    if why := unknown_pointers_reason(value):
        raise CorruptionError(
            f"object {id_text(sealed.id)} of realm {realm!r} {why}: what it points to cannot be determined; use the release that wrote it"
        )
    return value


class ArchivedReference(NamedTuple):
    """A reference and the commit it points to; None if nothing was committed yet."""

    name: str
    commit: ObjectId | None

    def record(self) -> bytes:
        name = self.name.encode()
        return _NAME.pack(len(name)) + name + _POINTER.pack(self.commit or 0)


@dataclass(slots=True)
class RealmDigest:
    """Counts of what was read of a realm, and a digest that is independent of the realm's id and key and of the reading order."""

    objects: int = 0
    size_bytes: int = 0
    newest: ObjectId = _NONE
    types: Counter[str] = field(default_factory=Counter)
    pointers: dict[str, ObjectId | None] = field(default_factory=dict)
    file_tables: int = 0
    file_references: int = 0
    _sum: int = 0

    def add_object(self, sealed: SealedObject, record: bytes) -> None:
        """Count an object. An object must not come twice."""
        self.objects += 1
        self.size_bytes += len(sealed.envelope)
        self.newest = max(self.newest, sealed.id)
        self.types[sealed.type] += 1
        self._sum += int.from_bytes(hashlib.sha256(record).digest(), "big")

    def digest(self) -> str:
        """SHA-256 of: 8 number of references · their records by name · 8 number of objects · 32 sum of the SHA-256 of their records."""
        told = hashlib.sha256(len(self.pointers).to_bytes(8, "big"))
        for name in sorted(self.pointers, key=str.encode):
            told.update(ArchivedReference(name, self.pointers[name]).record())
        told.update(self.objects.to_bytes(8, "big") + (self._sum % (1 << 256)).to_bytes(32, "big"))
        return told.hexdigest()


def read_objects(body: bytes) -> Iterator[tuple[SealedObject, bytes]]:
    """Yield the objects of a block, each with its record.

    raises        CorruptionError for bytes that are no records
    """
    at = 0
    try:
        while at < len(body):
            start = at
            object_id, flags, length = _OBJECT.unpack_from(body, at)
            at += _OBJECT.size
            name = _slice(body, at, length).decode()
            at += length
            (size,) = _LENGTH.unpack_from(body, at)
            at += _LENGTH.size
            envelope = _slice(body, at, size)
            at += size
            yield SealedObject(ObjectId(object_id), name, bool(flags & _UPDATEABLE), envelope), body[start:at]
    except (struct.error, UnicodeDecodeError) as fault:
        raise CorruptionError(f"an object's record at byte {at} of its block cannot be read: {fault}") from fault


def read_references(body: bytes) -> Iterator[ArchivedReference]:
    """Yield the references of a block. Raises as ``read_objects`` does."""
    at = 0
    try:
        while at < len(body):
            (length,) = _NAME.unpack_from(body, at)
            at += _NAME.size
            name = _slice(body, at, length).decode()
            at += length
            (pointer,) = _POINTER.unpack_from(body, at)
            at += _POINTER.size
            yield ArchivedReference(name, ObjectId(pointer) if pointer else None)
    except (struct.error, UnicodeDecodeError) as fault:
        raise CorruptionError(f"a reference's record at byte {at} of its block cannot be read: {fault}") from fault


def _slice(body: bytes, at: int, length: int) -> bytes:
    if at + length > len(body):
        raise CorruptionError(f"a record ends {at + length - len(body)} bytes behind its block")
    return body[at : at + length]


_FIELDS = (
    "properties",
    "purge_hold_seconds",
    "retention",
    "maintenance",
    "deletion_policy",
    "deletion_protection",
    "drift_policy",
)
"""The stored fields of a realm's definition. The manager is left out, because it belongs to the place where the realm is."""
M = TypeVar("M", bound=msgspec.Struct)


class ArchiveManifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The first block.

    as_of         the moment of the exported state; exported: when the archive was written: microseconds since 1970
    task          the task that wrote it, as 16 hex digits
    definition    the realm's definition without id, key, state and manager
    extensions    the names of its references that extensions declared
    least_release, least_name  the least release that may maintain what it holds, as in a store
    """

    realm: str
    as_of: Micros
    exported: Micros
    task: str
    definition: dict[str, Any] = {}
    extensions: list[str] = []
    least_release: int = 0
    least_name: str = ""


class ArchiveEnd(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The last block.

    file_tables, file_references  left out of an archive without file tables

    blocks        number of blocks before it
    before        SHA-256 of the file up to this block
    digest        of what the realm held: equal for equal realms, whatever their id and wherever they lie
    newest        the greatest id of an object
    """

    references: int
    objects: int
    size_bytes: int
    types: dict[str, int]
    newest: ObjectId
    digest: str
    blocks: int
    before: str
    file_tables: int = 0
    file_references: int = 0

    @classmethod
    def from_digest(cls, contents: RealmDigest, *, blocks: int, before: str) -> ArchiveEnd:
        return cls(
            references=len(contents.pointers),
            objects=contents.objects,
            size_bytes=contents.size_bytes,
            types=dict(sorted(contents.types.items())),
            newest=contents.newest,
            digest=contents.digest(),
            blocks=blocks,
            before=before,
            file_tables=contents.file_tables,
            file_references=contents.file_references,
        )


def ids_until(end: ArchiveEnd) -> Micros:
    """The time after the newest id in an archive; 0 for none. Until then a process could make one of its ids again."""
    return Micros(id_time(end.newest) + 1000) if end.objects else Micros(0)  # the time of an id is exact to the millisecond


def file_table_counts(end: ArchiveEnd) -> dict[str, int]:
    """What a result tells of the file tables in an archive; nothing where there are none."""
    return {"fileTables": end.file_tables, "fileReferences": end.file_references} if end.file_tables else {}


@dataclass(frozen=True, slots=True)
class CheckedArchive:
    """The contents of an archive that passed the check."""

    manifest: ArchiveManifest
    end: ArchiveEnd
    pointers: dict[str, ObjectId | None]


@dataclass(slots=True)
class _ArchiveCheck:
    """What the check has read of an archive so far."""

    name: str
    manifest: ArchiveManifest | None = None
    end: ArchiveEnd | None = None
    contents: RealmDigest = field(default_factory=RealmDigest)

    def check_block(self, block: ArchiveBlock) -> None:
        kind, contents = block.kind, self.contents
        is_late = (kind is BlockKind.REFERENCES and contents.objects) or (
            kind in (BlockKind.REFERENCES, BlockKind.OBJECTS) and contents.file_tables
        )
        if (kind is BlockKind.MANIFEST) != (block.number == 0) or is_late:
            raise CorruptionError(f"archive {self.name!r} has a block of kind {kind.value!r} where none belongs")
        match kind:
            case BlockKind.MANIFEST:
                self.manifest = _decoded(block.body, ArchiveManifest, self.name)
            case BlockKind.REFERENCES:
                for pointer in read_references(block.body):
                    self._take_pointer(pointer)
            case BlockKind.OBJECTS:
                for sealed, record in read_objects(block.body):
                    self._take_object(sealed, record)
            case BlockKind.FILE_TABLES:
                for table_record in read_table_records(block.body):
                    contents.file_tables += isinstance(table_record, ArchivedTable)
                    if isinstance(table_record, ArchivedReferences):
                        contents.file_references += len(table_record.references)
            case BlockKind.END:
                self.end = _decoded(block.body, ArchiveEnd, self.name)
                self._check_end(self.end, block)

    def result(self) -> CheckedArchive:
        assert self.manifest is not None  # the first block is one
        assert self.end is not None  # so is the last
        return CheckedArchive(self.manifest, self.end, self.contents.pointers)

    def _take_pointer(self, pointer: ArchivedReference) -> None:
        if pointer.name in self.contents.pointers:
            raise CorruptionError(f"archive {self.name!r} names the reference {pointer.name!r} twice")
        declared = () if self.manifest is None else self.manifest.extensions
        if pointer.name not in (*REALM_REFERENCES, *declared) and parse_reference(pointer.name) is None:
            raise CorruptionError(
                f"archive {self.name!r} has a reference {pointer.name!r}, which this release does not know: use the one that wrote it"
            )
        self.contents.pointers[pointer.name] = pointer.commit

    def _take_object(self, sealed: SealedObject, record: bytes) -> None:
        if not 1 <= sealed.id < 1 << 63 or is_fixed(sealed.id):
            raise CorruptionError(
                f"archive {self.name!r} has an object under the id {sealed.id}, which is none of a realm's content"
            )
        open_sealed(sealed, self.manifest.realm if self.manifest else "")
        self.contents.add_object(sealed, record)

    def _check_end(self, end: ArchiveEnd, block: ArchiveBlock) -> None:
        counted = ArchiveEnd.from_digest(self.contents, blocks=block.number, before=block.before)
        if counted != end:
            wrong = [name for name in end.__struct_fields__ if getattr(end, name) != getattr(counted, name)]
            raise CorruptionError(f"archive {self.name!r} does not hold what its end says: it differs in {', '.join(wrong)}")


def check_archive(path: Path, progress: Callable[[int], None] = lambda objects: None) -> CheckedArchive:
    """Read the whole archive and check everything in it against its checksums, counts and digests.

    progress      called after each block with the number of objects read
    raises        RefusedError: no file, no archive, or another format; CorruptionError: a check failed
    """
    with open_archive(path) as file:
        checking = _ArchiveCheck(str(path))
        for block in read_blocks(file, str(path)):
            checking.check_block(block)
            progress(checking.contents.objects)
        return checking.result()


def read_archive_manifest(path: Path) -> ArchiveManifest:
    """Read only the manifest at the beginning of an archive. Raises as ``check_archive`` does."""
    with open_archive(path) as file:
        first = next(read_blocks(file, str(path)))
    return _decoded(first.body, ArchiveManifest, str(path))


@contextmanager
def open_archive(path: Path) -> Iterator[BinaryIO]:
    """Open the file for reading. NotFoundError if there is none, RefusedError if access is denied, UnavailableError if reading fails."""
    try:
        with path.open("rb") as file:
            yield file
    except (FileNotFoundError, NotADirectoryError) as fault:
        raise NotFoundError(f"archive not found: {str(path)!r}: {fault.strerror}") from fault
    except (IsADirectoryError, PermissionError) as fault:
        raise RefusedError(f"archive {str(path)!r} cannot be read: {fault.strerror}") from fault
    except OSError as fault:
        raise UnavailableError(f"archive {str(path)!r} cannot be read: {fault.strerror}") from fault


def realm_definition(realm: Realm) -> dict[str, Any]:
    """The fields of a realm's definition that an archive stores."""
    plain: dict[str, Any] = msgspec.to_builtins(realm)
    return {name: plain[name] for name in _FIELDS if name in plain}


def realm_fields(manifest: ArchiveManifest, name: str) -> RealmFields:
    """The fields of the realm that a load creates. Fields that this release does not know are left out.

    raises        CorruptionError when they are not a valid definition
    """
    told = {field: value for field, value in manifest.definition.items() if field in _FIELDS}
    blank = Realm(id=RealmId(manifest.realm), key=SYSTEM_KEY)
    default = cast(RealmFields, {field: getattr(blank, field) for field in _FIELDS})
    try:
        return default | convert(told, RealmFields)
    except msgspec.ValidationError as fault:
        raise CorruptionError(f"archive {name!r}: its realm's definition cannot be read: {fault}") from fault


def _decoded(body: bytes, cls: type[M], name: str) -> M:
    try:
        return decode_json(body, cls)
    except msgspec.MsgspecError as fault:
        raise CorruptionError(
            f"archive {name!r}: its {cls.__name__.removeprefix('Archive').lower()} cannot be read: {fault}"
        ) from fault
