"""The bytes of an archive: a head, then numbered blocks, each compressed and with a checksum of its own.

Head: ``HWREALM`` and 1 byte format. A block: 1 kind · 8 number from 0 · 4 bytes of the body as stored · 4 as it was · 4 CRC-32 of
these 17 bytes and the stored body · the body, compressed by zlib. The last block tells the SHA-256 of all that stands before it.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator
from enum import Enum
from typing import BinaryIO, NamedTuple

from headwater.errors import RefusedError, UnreadableError

__all__ = ["BLOCK_BYTES", "FORMAT", "Block", "BlockKind", "BlockWriter", "read_blocks"]

FORMAT = 1
BLOCK_BYTES = 1024 * 1024
"""A block is closed when it has so many bytes before compression."""
_MAGIC = b"HWREALM"
_HEAD = _MAGIC + bytes([FORMAT])
_FRAME = struct.Struct(">cQII")
_CHECKSUM = struct.Struct(">I")
_MOST_BYTES = 258 * 1024 * 1024
"""No block is larger: an object has at most 256 MiB, and a block ends with the record that fills it."""


class BlockKind(Enum):
    MANIFEST = b"M"
    REFERENCES = b"R"
    OBJECTS = b"O"
    END = b"E"


class Block(NamedTuple):
    """A block as it was read.

    before        SHA-256 of the file up to it, in hex
    """

    kind: BlockKind
    number: int
    body: bytes
    before: str


class BlockWriter:
    """Writes an archive from its beginning, and gathers records into blocks. Closing and syncing the file is the caller's."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sha = hashlib.sha256()
        self._kind: BlockKind | None = None
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self.number = 0
        self.size_bytes = 0
        self._put(_HEAD)

    def add(self, kind: BlockKind, record: bytes) -> bool:
        """Put a record into the block of its kind; True when that filled it, and it was written."""
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
        """Write what was gathered."""
        if self._kind is not None and self._gathered:
            self._write(self._kind, b"".join(self._gathered))
        self._kind, self._gathered, self._gathered_bytes = None, [], 0

    def digest(self) -> str:
        """SHA-256 of all that was written, in hex."""
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


def read_blocks(file: BinaryIO, name: str) -> Iterator[Block]:
    """The blocks of an archive in their order, the last one END; each is read when it is asked for.

    name          of the file, for messages
    raises        RefusedError for another file, and for an archive of another format; UnreadableError for one that was altered, cut
                  off or added to
    """
    head = file.read(len(_HEAD))
    if head[: len(_MAGIC)] != _MAGIC or len(head) != len(_HEAD):
        raise RefusedError(f"{name!r} is no archive of a realm: `headwater realm export` writes one")
    if head != _HEAD:
        raise RefusedError(
            f"archive {name!r} is of format {head[-1]}, and this release reads format {FORMAT}: use the release that wrote it"
        )
    sha = hashlib.sha256(head)
    number = 0
    while True:
        block, raw = _read_block(file, name, number, sha.hexdigest())
        yield block
        if block.kind is BlockKind.END:
            if file.read(1):
                raise UnreadableError(f"archive {name!r} goes on behind its end: the file was altered")
            return
        sha.update(raw)
        number += 1


def _read_block(file: BinaryIO, name: str, number: int, before: str) -> tuple[Block, bytes]:
    where = f"archive {name!r} is damaged: block {number}"
    frame = file.read(_FRAME.size + _CHECKSUM.size)
    if len(frame) != _FRAME.size + _CHECKSUM.size:
        raise UnreadableError(f"{where} is cut off or missing, the file ends too early: copy it again")
    kind, told, stored_bytes, body_bytes = _FRAME.unpack_from(frame)
    (checksum,) = _CHECKSUM.unpack_from(frame, _FRAME.size)
    if max(stored_bytes, body_bytes) > _MOST_BYTES:
        raise UnreadableError(f"{where} cannot have {max(stored_bytes, body_bytes)} bytes")
    stored = file.read(stored_bytes)
    if len(stored) != stored_bytes:
        raise UnreadableError(f"{where} is cut off, the file ends too early: copy it again")
    if checksum != zlib.crc32(stored, zlib.crc32(frame[: _FRAME.size])):
        raise UnreadableError(f"{where} does not fit its checksum: copy it again")
    if told != number or kind not in {known.value for known in BlockKind}:
        raise UnreadableError(f"{where} stands in the place of another (kind {kind!r}, number {told})")
    body = _inflated(stored, body_bytes)
    if body is None:
        raise UnreadableError(f"{where} does not unpack to the {body_bytes} bytes that it had")
    return Block(BlockKind(kind), number, body, before), frame + stored


def _inflated(stored: bytes, body_bytes: int) -> bytes | None:
    """Never more than was told: a few bytes can be made to swell beyond all memory."""
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(stored, body_bytes + 1)
    except zlib.error:
        return None
    return body if len(body) == body_bytes and inflater.eof and not inflater.unused_data else None
