"""What an archive says of itself: at its beginning what it is, at its end what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import msgspec

from headwater.catalogs.names import parse_reference
from headwater.clock import Micros
from headwater.errors import MissingError, RefusedError, UnavailableError, UnreadableError
from headwater.maintenance.archives.blocks import Block, BlockKind, read_blocks
from headwater.maintenance.archives.records import Contents, Pointer, Sealed, read_objects, read_pointers
from headwater.maintenance.archives.walking import opened
from headwater.realms import REALM_REFERENCES, Realm, RealmFields
from headwater.store import SYSTEM_KEY, ObjectId, RealmId, is_fixed

__all__ = [
    "Checked",
    "End",
    "Manifest",
    "check_archive",
    "check_head",
    "definition_of",
    "end_record",
    "fields_of",
    "manifest_record",
    "open_archive",
]

_FIELDS = (
    "properties",
    "purge_hold_seconds",
    "retention",
    "maintenance",
    "deletion_policy",
    "deletion_protection",
    "drift_policy",
)
"""Of a realm's definition; not who manages it, which is a matter of the place where it is."""
M = TypeVar("M", bound=msgspec.Struct)


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first block.

    as_of         the moment that is shown, exported when it was written: microseconds since 1970
    task          the task that wrote it, as 16 hex digits
    definition    of the realm, without its id, key, state and manager
    """

    realm: str
    as_of: Micros
    exported: Micros
    task: str
    definition: dict[str, Any] = {}


class End(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The last block.

    blocks        that stand before it
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
    def of(cls, contents: Contents, *, blocks: int, before: str) -> End:
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
class Checked:
    """What an archive that is whole says and holds."""

    manifest: Manifest
    end: End
    pointers: dict[str, ObjectId | None]


@dataclass(slots=True)
class _Checking:
    """What was seen of an archive so far."""

    name: str
    manifest: Manifest | None = None
    end: End | None = None
    contents: Contents = field(default_factory=Contents)

    def take(self, block: Block) -> None:
        kind, found = block.kind, self.contents
        if (kind is BlockKind.MANIFEST) != (block.number == 0) or (kind is BlockKind.REFERENCES and found.objects):
            raise UnreadableError(f"archive {self.name!r} has a block of kind {kind.value!r} where none belongs")
        match kind:
            case BlockKind.MANIFEST:
                self.manifest = _decoded(block.body, Manifest, self.name)
            case BlockKind.REFERENCES:
                for pointer in read_pointers(block.body):
                    self._take_pointer(pointer)
            case BlockKind.OBJECTS:
                for sealed, record in read_objects(block.body):
                    self._take_object(sealed, record)
            case BlockKind.END:
                self.end = _decoded(block.body, End, self.name)
                self._check_end(self.end, block)

    def result(self) -> Checked:
        assert self.manifest is not None  # the first block is one
        assert self.end is not None  # so is the last
        return Checked(self.manifest, self.end, self.contents.pointers)

    def _take_pointer(self, pointer: Pointer) -> None:
        if pointer.name in self.contents.pointers:
            raise UnreadableError(f"archive {self.name!r} names the reference {pointer.name!r} twice")
        if pointer.name not in REALM_REFERENCES and parse_reference(pointer.name) is None:
            raise UnreadableError(
                f"archive {self.name!r} has a reference {pointer.name!r}, which this release does not know: use the one that wrote it"
            )
        self.contents.pointers[pointer.name] = pointer.commit

    def _take_object(self, sealed: Sealed, record: bytes) -> None:
        if not 1 <= sealed.id < 1 << 63 or is_fixed(sealed.id):
            raise UnreadableError(
                f"archive {self.name!r} has an object under the id {sealed.id}, which is none of a realm's content"
            )
        opened(sealed, self.manifest.realm if self.manifest else "")
        self.contents.add(sealed, record)

    def _check_end(self, end: End, block: Block) -> None:
        found = End.of(self.contents, blocks=block.number, before=block.before)
        if found != end:
            wrong = [name for name in end.__struct_fields__ if getattr(end, name) != getattr(found, name)]
            raise UnreadableError(f"archive {self.name!r} does not hold what its end says: it differs in {', '.join(wrong)}")


def check_archive(path: Path, progress: Callable[[int], None] = lambda objects: None) -> Checked:
    """Read the whole archive, and hold everything in it against its checksums, counts and digests.

    progress      is told how many objects were read, after each block
    raises        RefusedError: no file, no archive, or another format; UnreadableError: anything does not fit
    """
    with open_archive(path) as file:
        checking = _Checking(str(path))
        for block in read_blocks(file, str(path)):
            checking.take(block)
            progress(checking.contents.objects)
        return checking.result()


def check_head(path: Path) -> Manifest:
    """Read only what an archive says at its beginning. Raises as ``check_archive`` does."""
    with open_archive(path) as file:
        first = next(read_blocks(file, str(path)))
    return _decoded(first.body, Manifest, str(path))


@contextmanager
def open_archive(path: Path) -> Iterator[BinaryIO]:
    """The file, for reading; MissingError when there is none, RefusedError when it may not be read, UnavailableError when that fails."""
    try:
        with path.open("rb") as file:
            yield file
    except (FileNotFoundError, NotADirectoryError) as fault:
        raise MissingError(f"there is no archive {str(path)!r}: {fault.strerror}") from fault
    except (IsADirectoryError, PermissionError) as fault:
        raise RefusedError(f"archive {str(path)!r} cannot be read: {fault.strerror}") from fault
    except OSError as fault:
        raise UnavailableError(f"archive {str(path)!r} cannot be read: {fault.strerror}") from fault


def manifest_record(manifest: Manifest) -> bytes:
    return msgspec.json.encode(manifest)


def end_record(end: End) -> bytes:
    return msgspec.json.encode(end)


def definition_of(realm: Realm) -> dict[str, Any]:
    """What an archive tells of a realm's definition."""
    plain: dict[str, Any] = msgspec.to_builtins(realm)
    return {name: plain[name] for name in _FIELDS if name in plain}


def fields_of(manifest: Manifest, name: str) -> RealmFields:
    """All fields of the realm that an archive makes; what this release does not know is left out.

    raises        UnreadableError when they are none
    """
    told = {field: value for field, value in manifest.definition.items() if field in _FIELDS}
    blank = Realm(id=RealmId(manifest.realm), key=SYSTEM_KEY)
    default = cast(RealmFields, {field: getattr(blank, field) for field in _FIELDS})
    try:
        return default | msgspec.convert(told, RealmFields)
    except msgspec.ValidationError as fault:
        raise UnreadableError(f"archive {name!r}: its realm's definition cannot be read: {fault}") from fault


def _decoded(body: bytes, cls: type[M], name: str) -> M:
    try:
        return msgspec.json.decode(body, type=cls)
    except msgspec.MsgspecError as fault:
        raise UnreadableError(f"archive {name!r}: its {cls.__name__.lower()} cannot be read: {fault}") from fault
