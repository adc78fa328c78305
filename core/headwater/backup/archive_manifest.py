"""The manifest of an archive: the first block says what it is, the last block what it holds; and the check of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import msgspec

from headwater.backup.archive_format import (
    ArchiveBlock,
    ArchivedReference,
    BlockKind,
    RealmDigest,
    SealedObject,
    read_blocks,
    read_objects,
    read_references,
)
from headwater.backup.realm_snapshot import open_sealed
from headwater.catalogs.registry import parse_reference
from headwater.clock import Micros
from headwater.errors import CorruptionError, NotFoundError, RefusedError, UnavailableError
from headwater.realms import REALM_REFERENCES, Realm, RealmFields
from headwater.store import SYSTEM_KEY, ObjectId, RealmId, is_fixed

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


class ArchiveManifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first block.

    as_of         the moment of the exported state; exported: when the archive was written: microseconds since 1970
    task          the task that wrote it, as 16 hex digits
    definition    the realm's definition without id, key, state and manager
    """

    realm: str
    as_of: Micros
    exported: Micros
    task: str
    definition: dict[str, Any] = {}


class ArchiveEnd(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The last block.

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
        )


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
        kind, found = block.kind, self.contents
        if (kind is BlockKind.MANIFEST) != (block.number == 0) or (kind is BlockKind.REFERENCES and found.objects):
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
        if pointer.name not in REALM_REFERENCES and parse_reference(pointer.name) is None:
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
        found = ArchiveEnd.from_digest(self.contents, blocks=block.number, before=block.before)
        if found != end:
            wrong = [name for name in end.__struct_fields__ if getattr(end, name) != getattr(found, name)]
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


def manifest_record(manifest: ArchiveManifest) -> bytes:
    return msgspec.json.encode(manifest)


def end_record(end: ArchiveEnd) -> bytes:
    return msgspec.json.encode(end)


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
        return default | msgspec.convert(told, RealmFields)
    except msgspec.ValidationError as fault:
        raise CorruptionError(f"archive {name!r}: its realm's definition cannot be read: {fault}") from fault


def _decoded(body: bytes, cls: type[M], name: str) -> M:
    try:
        return msgspec.json.decode(body, type=cls)
    except msgspec.MsgspecError as fault:
        raise CorruptionError(
            f"archive {name!r}: its {cls.__name__.removeprefix('Archive').lower()} cannot be read: {fault}"
        ) from fault
