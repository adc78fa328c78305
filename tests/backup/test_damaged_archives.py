"""An archive that is not exactly what was written makes no realm, and one that lacks something never serves anybody."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from archived import REALM, exported

from fake_clock import FakeClock
from headwater import Store
from headwater.backup import ArchiveEnd, check_archive, load_realm
from headwater.backup.archive_format import (
    ArchivedReference,
    BlockKind,
    BlockWriter,
    RealmDigest,
    SealedObject,
    read_blocks,
    read_objects,
    read_references,
)
from headwater.clock import as_text
from headwater.errors import CorruptionError, HeadwaterError, RefusedError
from headwater.realms import RealmRegistry, RealmState
from headwater.store import ObjectId, fixed_id, id_time


def frames(raw: bytes) -> Iterator[bytes]:
    """The blocks of an archive, as they lie in the file."""
    at = 8
    while at < len(raw):
        end = at + 21 + int.from_bytes(raw[at + 9 : at + 13], "big")
        yield raw[at:end]
        at = end


def forged(archive: Path, change: Callable[[RealmDigest, list[SealedObject]], None]) -> Path:
    """An archive of other content, whose checksums all fit."""
    contents, objects = RealmDigest(), list[SealedObject]()
    with archive.open("rb") as file:
        blocks = list(read_blocks(file, "archive"))
    for block in blocks:
        if block.kind is BlockKind.REFERENCES:
            contents.pointers.update((pointer.name, pointer.commit) for pointer in read_references(block.body))
        elif block.kind is BlockKind.OBJECTS:
            objects += [sealed for sealed, _ in read_objects(block.body)]
    change(contents, objects)
    path = archive.with_name("forged.realm")
    with path.open("wb") as file:
        writer = BlockWriter(file)
        writer.add_record(BlockKind.MANIFEST, blocks[0].body)
        for name, commit in contents.pointers.items():
            writer.add_record(BlockKind.REFERENCES, ArchivedReference(name, commit).record())
        for sealed in objects:
            writer.add_record(BlockKind.OBJECTS, sealed.record())
            contents.add_object(sealed, sealed.record())
        writer.close_block()
        writer.add_record(
            BlockKind.END, msgspec.json.encode(ArchiveEnd.from_digest(contents, blocks=writer.number, before=writer.digest()))
        )
        writer.close_block()
    return path


def refusal(target: Store, file: Path) -> HeadwaterError:
    """How an import ends that must make no realm."""
    with pytest.raises((CorruptionError, RefusedError)) as raised:
        load_realm(target, "copy", file)
    assert RealmRegistry(target).find_realm("copy") is None
    return raised.value


@pytest.fixture
def raw(archive: Path) -> bytes:
    return archive.read_bytes()


def test_flipped_bit_is_found_anywhere(archive: Path, raw: bytes) -> None:
    for at in [*range(40), *range(40, len(raw), 37), *range(len(raw) - 30, len(raw))]:
        archive.write_bytes(raw[:at] + bytes([raw[at] ^ 1 << at % 8]) + raw[at + 1 :])

        with pytest.raises((CorruptionError, RefusedError)):
            check_archive(archive)


def test_damaged_archive_makes_no_realm(target: Store, archive: Path, raw: bytes) -> None:
    archive.write_bytes(raw[:500] + bytes([raw[500] ^ 4]) + raw[501:])

    assert "checksum" in str(refusal(target, archive))


def test_archive_that_was_cut_off_anywhere_makes_no_realm(archive: Path, raw: bytes) -> None:
    for end in [*range(60), *range(60, len(raw), 61), len(raw) - 1]:
        archive.write_bytes(raw[:end])

        with pytest.raises((CorruptionError, RefusedError)):
            check_archive(archive)


def test_archive_with_something_behind_its_end_makes_no_realm(target: Store, archive: Path, raw: bytes) -> None:
    archive.write_bytes(raw + b"\0")

    assert "behind its end" in str(refusal(target, archive))


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3), (0, 1, 2), (0, 1, 1, 2, 3), (3,)])
def test_archive_whose_blocks_were_moved_makes_no_realm(target: Store, archive: Path, raw: bytes, order: Sequence[int]) -> None:
    blocks = list(frames(raw))
    archive.write_bytes(raw[:8] + b"".join(blocks[at] for at in order))

    assert "damaged" in str(refusal(target, archive))


def test_archive_of_another_format_is_refused_with_both_numbers(target: Store, archive: Path, raw: bytes) -> None:
    archive.write_bytes(raw[:7] + b"\x09" + raw[8:])

    assert "format 9, and this release reads formats 1 to 3" in str(refusal(target, archive))


@pytest.mark.parametrize("text", [b"", b"HW", b"PK\x03\x04 another kind of archive"])
def test_file_that_is_no_archive_is_refused(target: Store, archive: Path, text: bytes) -> None:
    archive.write_bytes(text)

    assert "not an archive" in str(refusal(target, archive))


def test_folder_is_refused(target: Store, tmp_path: Path) -> None:
    assert "cannot be read" in str(refusal(target, tmp_path))


def test_archive_swells_to_no_more_than_it_says(archive: Path, raw: bytes) -> None:
    bomb = zlib.compress(bytes(50_000_000))
    frame = b"M" + bytes(8) + len(bomb).to_bytes(4, "big") + (100).to_bytes(4, "big")
    archive.write_bytes(raw[:8] + frame + zlib.crc32(bomb, zlib.crc32(frame)).to_bytes(4, "big") + bomb)

    with pytest.raises(CorruptionError, match="100 bytes"):
        check_archive(archive)


def test_object_under_an_id_that_is_set_aside_is_refused(target: Store, archive: Path) -> None:
    file = forged(archive, lambda contents, objects: objects.append(objects[0]._replace(id=fixed_id(2))))

    assert "none of a realm's content" in str(refusal(target, file))


def test_object_whose_envelope_is_anothers_is_refused(target: Store, archive: Path) -> None:
    file = forged(archive, lambda contents, objects: objects.append(objects[0]._replace(id=ObjectId(objects[0].id + 1))))

    assert "checksum" in str(refusal(target, file))


def test_archive_that_lacks_an_object_never_serves_anybody(target: Store, archive: Path) -> None:
    file = forged(archive, lambda contents, objects: objects.pop(3) and None)  # type: ignore[func-returns-value]

    with pytest.raises(CorruptionError, match="not there"):
        load_realm(target, "copy", file)
    assert RealmRegistry(target).read_realm("copy").state is RealmState.LOADING


def test_archive_with_an_unreachable_object_never_serves_anybody(target: Store, archive: Path) -> None:
    file = forged(archive, lambda contents, objects: contents.pointers.pop("grants") and None)

    with pytest.raises(CorruptionError, match="does not read back"):
        load_realm(target, "copy", file)
    assert RealmRegistry(target).read_realm("copy").state is RealmState.LOADING


def test_ids_of_this_stores_future_are_refused(
    store: Store, target: Store, archive: Path, clock: FakeClock, tmp_path: Path
) -> None:
    newest = id_time(check_archive(archive).end.newest)
    behind = FakeClock(newest)
    target.clock, before = behind, target.clock

    assert as_text(newest + 1000 + 999_999) in str(refusal(target, archive))
    behind.advance(0.001)
    assert load_realm(target, "copy", archive).realm.state is RealmState.ACTIVE
    target.clock = before


def test_archive_ends_with_the_checksum_of_the_file(store: Store, raw: bytes, tmp_path: Path) -> None:
    end = list(frames(raw))[-1]

    told = msgspec.json.decode(zlib.decompress(end[21:]), type=ArchiveEnd)
    assert told.before == hashlib.sha256(raw[: -len(end)]).hexdigest()
    assert exported(store, tmp_path / "again", realm=REALM).end.digest == told.digest
