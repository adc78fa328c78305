"""A store that keeps for itself what is written to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import open_store
from headwater.errors import SwapConflictError
from headwater.settings import Settings
from headwater.store import ObjectId, ObjectRow, RealmKey, ReferenceRow, ScanSplit
from headwater.store.backends.memory import MemoryBackend
from headwater.store.overlay import OverlayBackend, open_dry_copy, open_dry_store

KEY = RealmKey(7)


def reference(name: str, version: int = 1) -> ReferenceRow:
    return ReferenceRow(realm=KEY, name=name, pointer=ObjectId(version), version=version, created=1, recent=())


def row(number: int, value: bytes = b"below", token: str = "") -> ObjectRow:
    return ObjectRow(realm=KEY, id=ObjectId(number), part=0, type="t", value=value, created=1, token=token, parts=1)


@pytest.fixture
def below() -> MemoryBackend:
    backend = MemoryBackend()
    backend.create_references([reference("a"), reference("b")])
    backend.write_objects([row(1), row(2, token="x")])
    return backend


@pytest.fixture
def overlay(below: MemoryBackend) -> OverlayBackend:
    return OverlayBackend(below)


def test_overlay_reads_what_is_below(overlay: OverlayBackend) -> None:
    assert overlay.read_references(KEY, ["a", "c"]) == [reference("a"), None]
    assert overlay.read_objects(KEY, [(ObjectId(1), 0)]) == [row(1)]


def test_changes_are_seen_above_and_not_below(overlay: OverlayBackend, below: MemoryBackend) -> None:
    overlay.write_and_swap([row(3)], reference("a"), reference("a", 2))
    overlay.update_object(row(2, b"above", "y"), "x")
    overlay.remove_reference(reference("b"))

    assert overlay.read_references(KEY, ["a", "b"]) == [reference("a", 2), None]
    assert overlay.read_objects(KEY, [(ObjectId(2), 0), (ObjectId(3), 0)]) == [row(2, b"above", "y"), row(3)]
    assert below.read_references(KEY, ["a", "b"]) == [reference("a"), reference("b")]
    assert below.read_objects(KEY, [(ObjectId(2), 0), (ObjectId(3), 0)]) == [row(2, token="x"), None]


def test_conditions_hold_for_rows_below(overlay: OverlayBackend) -> None:
    with pytest.raises(SwapConflictError):
        overlay.swap_reference(reference("a", 5), reference("a", 6))
    with pytest.raises(SwapConflictError):
        overlay.insert_object(row(1, b"above"))
    with pytest.raises(SwapConflictError):
        overlay.create_reference(reference("a"))


def test_scan_sees_both_without_what_was_deleted(overlay: OverlayBackend) -> None:
    overlay.remove_reference(reference("a"))
    overlay.insert_object(row(9))
    overlay.delete_objects([key for key in overlay.scan_objects(ScanSplit(KEY), None, 10) if key.id == 1])

    assert [key.name for key in overlay.scan_references(ScanSplit(KEY), None, 10)] == ["b"]
    assert [key.id for key in overlay.scan_objects(ScanSplit(KEY), None, 10)] == [2, 9]


def test_realm_deleted_above_stays_below(overlay: OverlayBackend, below: MemoryBackend) -> None:
    while overlay.delete_realm(KEY, 2):
        pass

    assert overlay.scan_objects(ScanSplit(KEY), None, 10) == []
    assert len(below.scan_objects(ScanSplit(KEY), None, 10)) == 2


def test_dry_store_of_none_is_empty_and_creates_none(tmp_path: Path) -> None:
    with open_dry_store(f"sqlite:///{tmp_path}/s.db", settings=Settings()) as store:
        assert store.new_id() > 0

    assert list(tmp_path.iterdir()) == []


def test_dry_store_leases_no_node_below(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with open_store(url):
        pass
    before = (tmp_path / "s.db").read_bytes()
    with open_dry_store(url, settings=Settings()) as store:
        store.new_id()

    assert (tmp_path / "s.db").read_bytes() == before


def test_dry_copy_leaves_its_store_open_and_as_it_was() -> None:
    with open_store("memory://") as store:
        store.backend.create_references([reference("a")])
        with open_dry_copy(store) as copy:
            copy.backend.swap_reference(reference("a"), reference("a", version=2))
            assert copy.backend.read_references(KEY, ["a"]) == [reference("a", version=2)]

        assert store.backend.read_references(KEY, ["a"]) == [reference("a")]
