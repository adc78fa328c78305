"""What docs/reference/formats.md says of archives, done by hand: these bytes must be read, and written, by every release to come."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

import pytest
from archived import REALM

from headwater import Store
from headwater.backup import check_archive, load_realm
from headwater.realms import RealmRegistry, RealmState
from headwater.store import ObjectId, RealmId, RealmKey, StoredObject, id_text, object_type
from headwater.store.stored_objects import encode_object

ID = ObjectId(0x0000_0FA0_0100_5001)


@object_type("archived-note")
class Note(StoredObject, frozen=True, kw_only=True):
    """A leaf."""

    text: str


def block(kind: bytes, number: int, body: bytes) -> bytes:
    stored = zlib.compress(body)
    frame = kind + number.to_bytes(8, "big") + len(stored).to_bytes(4, "big") + len(body).to_bytes(4, "big")
    return frame + zlib.crc32(frame + stored).to_bytes(4, "big") + stored


def reference(name: bytes, pointer: int) -> bytes:
    return len(name).to_bytes(2, "big") + name + pointer.to_bytes(8, "big")


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    """An archive of two references, one of which points to a note."""
    _, envelope = encode_object(ID, Note(text="by hand"))
    references = reference(b"grants", 0) + reference(b"root", ID)
    record = ID.to_bytes(8, "big") + b"\0\x0darchived-note" + len(envelope).to_bytes(4, "big") + envelope
    manifest = {"realm": "old", "asOf": 1_780_000_000_000_000, "exported": 1_780_000_100_000_000, "task": "0" * 16}
    definition = {"properties": {"team": "data"}, "of a later release": 1}
    raw = b"HWREALM\x01" + block(b"M", 0, json.dumps(manifest | {"definition": definition}).encode())
    raw += block(b"R", 1, references) + block(b"O", 2, record)
    told = (2).to_bytes(8, "big") + references + (1).to_bytes(8, "big") + hashlib.sha256(record).digest()
    end = {
        "references": 2,
        "objects": 1,
        "sizeBytes": len(envelope),
        "types": {"archived-note": 1},
        "newest": ID,
        "digest": hashlib.sha256(told).hexdigest(),
        "blocks": 3,
        "before": hashlib.sha256(raw).hexdigest(),
    }
    path = tmp_path / "hand.realm"
    path.write_bytes(raw + block(b"E", 3, json.dumps(end).encode()))
    return path


def test_archive_is_read_as_the_page_says(target: Store, by_hand: Path) -> None:
    made = load_realm(target, "copy", by_hand).realm

    rows = target.rows(RealmId("copy"), RealmKey(made.key))
    assert (made.state, made.properties) == (RealmState.ACTIVE, {"team": "data"})
    assert rows.read_object(rows.read_reference("root").pointer or ID, Note).text == "by hand"
    assert rows.read_reference("grants").pointer is None


def test_archive_is_written_as_the_page_says(store: Store, archive: Path) -> None:
    raw, at, bodies = archive.read_bytes(), 8, []
    while at < len(raw):
        size = int.from_bytes(raw[at + 9 : at + 13], "big")
        bodies.append(
            (raw[at : at + 1], int.from_bytes(raw[at + 1 : at + 9], "big"), zlib.decompress(raw[at + 21 : at + 21 + size]))
        )
        at += 21 + size

    assert raw[:8] == b"HWREALM\x01"
    assert [(kind, number) for kind, number, _ in bodies] == [(b"M", 0), (b"R", 1), (b"O", 2), (b"E", 3)]
    manifest, end = json.loads(bodies[0][2]), json.loads(bodies[3][2])
    assert (manifest["realm"], manifest["definition"]["properties"]) == (REALM, {"team": "data"})
    row = store.rows(RealmId(REALM), RealmRegistry(store).read_realm(REALM).key).read_reference("catalogs")
    assert reference(b"catalogs", row.pointer or 0) in bodies[1][2]
    assert len(bodies[2][2]) > end["sizeBytes"] > 1000


def test_end_tells_types_and_the_newest_id(archive: Path) -> None:
    end = check_archive(archive).end

    assert end.types["iceberg-table"] == 3
    assert sum(end.types.values()) == end.objects
    assert id_text(end.newest) > id_text(ID)
