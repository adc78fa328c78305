"""Manifests remembered between walks: read once, and again whenever anything about them or the memory is not as it was."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from walked_lake import ADDED, DELETED, WalkedLake

from headwater.catalogs.file_marks import FILE_MARKS, ensure_marks
from headwater.commits import commit_change
from headwater.index import IndexValue
from headwater.lake_files import manifest_memory
from headwater.lake_files.manifest_memory import MEMORIES, ManifestSegments
from headwater.store import Store

CATALOG = "0123456789abcdef"


@pytest.fixture
def walked(store: Store, tmp_path: Path) -> WalkedLake:
    """A lake with a table of three manifests, which were read and are remembered."""
    walked = WalkedLake(tmp_path / "lake", store)
    for number in range(3):
        walked.write_manifest(f"t/m{number}.avro", {f"t/{number}": ADDED, f"t/gone{number}": DELETED})
    walked.write_list("t/l.avro", "t/m0.avro", "t/m1.avro", "t/m2.avro")
    walked.put("t", "t/l.avro")
    assert len(walked.walk().read) == 4
    return walked


def memory_files(walked: WalkedLake, catalog_id: str = CATALOG) -> list[Path]:
    return sorted((walked.folder / "_headwater" / "manifests" / catalog_id).iterdir())


def segment(walked: WalkedLake) -> Path:
    (file,) = (file for file in memory_files(walked) if file.suffix == ".parquet")
    return file


def test_manifests_that_are_as_they_were_are_not_read_again(walked: WalkedLake) -> None:
    before = memory_files(walked)
    found = walked.walk()

    assert found.read == ["l.avro"]
    assert {"t/0", "t/1", "t/2"} <= found.paths
    assert not {"t/gone0", "t/gone1"} & found.paths
    assert (found.walk.remembered, found.walk.manifests) == (3, 0)
    assert memory_files(walked) == before


def test_new_manifest_alone_is_read(walked: WalkedLake) -> None:
    walked.write_manifest("t/m3.avro", {"t/3": ADDED})
    walked.write_list("t/l3.avro", "t/m1.avro", "t/m3.avro")
    walked.put("t", "t/l3.avro")
    found = walked.walk()

    assert sorted(found.read) == ["l.avro", "l3.avro", "m3.avro"]
    assert {"t/0", "t/1", "t/2", "t/3"} <= found.paths
    assert sorted(walked.walk().read) == ["l.avro", "l3.avro"]


def test_manifest_of_another_time_is_read_again(walked: WalkedLake) -> None:
    os.utime(walked.folder / "t/m1.avro", (1, 1))

    assert sorted(walked.walk().read) == ["l.avro", "m1.avro"]
    assert walked.walk().read == ["l.avro"]


def test_manifest_of_an_unknown_time_is_read_again(walked: WalkedLake) -> None:
    walked.put("t", walked.write_snapshot("t", "t/a"))
    manifest = walked.folder / "t/metadata/m.avro"
    os.utime(manifest, (0, 0))
    walked.walk()
    walked.write_manifest("t/metadata/m.avro", {"t/b": ADDED})
    os.utime(manifest, (0, 0))

    assert "t/b" in walked.walk().paths


def test_manifest_that_was_replaced_is_read_again(walked: WalkedLake) -> None:
    walked.write_manifest("t/m1.avro", {"t/other": ADDED, "t/gone": DELETED, "t/gone_too": DELETED})
    walked.write_list("t/l.avro", "t/m0.avro", "t/m1.avro", "t/m2.avro")
    found = walked.walk()

    assert "t/other" in found.paths
    assert "t/1" not in found.paths


def test_manifest_that_went_is_not_remembered(walked: WalkedLake) -> None:
    (walked.folder / "t/m1.avro").unlink()

    assert walked.walk().blocked.keys() == {"t"}


def test_list_that_contradicts_what_is_remembered_blocks(walked: WalkedLake) -> None:
    walked.write_list("t/l.avro", "t/m0.avro", "t/m1.avro", "t/m2.avro", added_files_count=2, deleted_files_count=0)

    assert walked.walk().blocked.keys() == {"t"}


@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_memory_that_is_damaged_is_not_used(walked: WalkedLake, damage: str) -> None:
    file = segment(walked)
    data = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(data[:-9] if damage == "cut" else bytes([*data[:40], data[40] ^ 1, *data[41:]]))

    found = walked.walk()
    assert sorted(found.read) == ["l.avro", "m0.avro", "m1.avro", "m2.avro"]
    assert {"t/0", "t/1", "t/2"} <= found.paths
    assert walked.walk().read == ["l.avro"]


def test_last_reading_that_is_damaged_is_not_used(walked: WalkedLake) -> None:
    (file,) = (file for file in memory_files(walked) if file.suffix == ".json")
    file.write_bytes(file.read_bytes().replace(b"lake", b"sink"))
    walked.write("t/l.avro", b"damaged")

    assert {"file://", "t"} == walked.walk().blocked.keys()


def test_memory_of_another_release_is_not_used(walked: WalkedLake) -> None:
    ensure_marks(walked.rows)
    record = ManifestSegments(form=99)
    commit_change(
        walked.rows,
        FILE_MARKS,
        lambda tx: tx.index(MEMORIES).put(CATALOG.encode(), IndexValue(tx.add_object(record))),
        message="a later release",
    )

    assert len(walked.walk().read) == 4


def test_dry_run_remembers_nothing(walked: WalkedLake) -> None:
    before = memory_files(walked)
    walked.write_manifest("t/m3.avro", {"t/3": ADDED})
    walked.write_list("t/l3.avro", "t/m3.avro")
    walked.put("t", "t/l3.avro")
    walked.walk(walked.memory(is_dry=True))

    assert memory_files(walked) == before
    assert "m3.avro" in walked.walk().read


def test_broken_manifest_is_not_remembered(walked: WalkedLake) -> None:
    walked.write_manifest("t/m3.avro", {"t/3": ADDED})
    walked.write_list("t/l3.avro", "t/m3.avro")
    walked.write("t/m3.avro", b"broken")
    walked.put("t", "t/l3.avro")
    walked.walk()

    assert "m3.avro" in walked.walk().read


def test_catalogs_of_one_folder_remember_apart(walked: WalkedLake) -> None:
    other = "fedcba9876543210"
    assert len(walked.walk(walked.memory(other)).read) == 4

    assert walked.walk(walked.memory(other)).read == ["l.avro"]
    assert walked.walk().read == ["l.avro"]
    assert len(memory_files(walked, other)) == len(memory_files(walked)) == 2


def test_walk_that_was_killed_leaves_nothing(walked: WalkedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_memory, "_SEGMENT_PATHS", 1)
    for number in range(3):
        os.utime(walked.folder / f"t/m{number}.avro", (1, 1))
    killed = iter(walked.begin())
    while len(memory_files(walked)) == 2:
        next(killed)
    killed.close()
    walked.walk()

    assert {file.name for file in memory_files(walked)} == {name.rpartition("/")[2] for name in recorded(walked)}


def recorded(walked: WalkedLake) -> list[str]:
    record = walked.memory()._seen
    assert record.tables is not None
    return [file.name for file in (*record.segments, record.tables)]


@pytest.mark.long
def test_many_segments_are_joined_and_the_dead_forgotten(walked: WalkedLake) -> None:
    for number in range(3, 17):
        walked.write_manifest(f"t/m{number}.avro", {f"t/{number}": ADDED})
        walked.write_list(f"t/l{number}.avro", f"t/m{number}.avro")
        walked.put("t", f"t/l{number}.avro")
        walked.walk()
        assert len(memory_files(walked)) <= 14
    assert walked.walk().walk.remembered == 17
    del walked.versions[0]  # with it three manifests
    for number in range(17, 31):
        walked.write_manifest(f"t/m{number}.avro", {f"t/{number}": ADDED})
        walked.write_list(f"t/l{number}.avro", f"t/m{number}.avro")
        walked.put("t", f"t/l{number}.avro")
        walked.walk()

    known = [manifest.path for manifest in walked.memory().known(lambda paths: paths)]
    assert sorted(known) == sorted(walked.location(f"t/m{number}.avro") for number in range(3, 31))


def test_segment_of_which_half_is_dead_is_written_anew(walked: WalkedLake) -> None:
    walked.write_snapshot("u", "u/0")
    walked.put("u", "u/metadata/snap.avro")
    for file in memory_files(walked):  # one segment of four manifests
        file.unlink()
    walked.walk()
    del walked.versions[0]
    walked.walk()

    assert [manifest.path for manifest in walked.memory().known(lambda paths: paths)] == [walked.location("u/metadata/m.avro")]
    assert len(recorded(walked)) == 2


def test_large_segments_are_not_joined(walked: WalkedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_memory, "_SMALL_BYTES", 1)
    for number in range(3, 20):
        walked.write_manifest(f"t/m{number}.avro", {f"t/{number}": ADDED})
        walked.write_list(f"t/l{number}.avro", f"t/m{number}.avro")
        walked.put("t", f"t/l{number}.avro")
        walked.walk()

    assert len(memory_files(walked)) == 19
    assert walked.walk().walk.remembered == 20


def test_last_reading_is_of_all_that_was_read(walked: WalkedLake) -> None:
    walked.put("t", walked.write_snapshot("t", "s3://other/d/x"))
    walked.walk()
    (named,) = walked.memory().tables.values()

    assert named == [walked.location("t"), "s3://other/d"]


def test_record_that_names_a_file_elsewhere_is_not_used(walked: WalkedLake) -> None:
    record = walked.memory()._seen
    (file,) = record.segments
    bad = msgspec.structs.replace(file, name="../../t/m0.avro")
    commit_change(
        walked.rows,
        FILE_MARKS,
        lambda tx: tx.index(MEMORIES).put(
            CATALOG.encode(), IndexValue(tx.add_object(msgspec.structs.replace(record, segments=(bad,))))
        ),
        message="damaged",
    )

    assert len(walked.walk().read) == 4


def test_manifest_learnt_while_another_was_damaged_blocks_what_it_named(walked: WalkedLake) -> None:
    sound = (walked.folder / "t/m0.avro").read_bytes()
    walked.write_manifest("t/m3.avro", {"s3://other/x/2": ADDED})
    walked.write_list("t/l3.avro", "t/m3.avro")
    walked.put("t", "t/l3.avro")
    walked.write("t/m0.avro", b"damaged")
    assert {"t", "s3://other/x"} == walked.walk().blocked.keys()

    walked.write("t/m3.avro", b"damaged, too")
    assert {"t", "s3://other/x"} == walked.walk().blocked.keys()

    walked.write("t/m0.avro", sound)
    assert {"t", "s3://other/x"} == walked.walk().blocked.keys()


def test_table_that_has_no_version_any_more_is_forgotten(walked: WalkedLake) -> None:
    walked.put("u", walked.write_snapshot("u", "u/x"))
    walked.walk()
    assert len(walked.memory().tables) == len(walked.memory().lists) == 2

    walked.versions.pop()
    walked.walk()
    memory = walked.memory()
    assert [places[0] for places in memory.tables.values()] == [walked.location("t")]
    assert memory.tables.keys() == memory.lists.keys()


def test_no_table_is_forgotten_while_a_version_cannot_be_read(walked: WalkedLake) -> None:
    walked.put("u", walked.write_snapshot("u", "u/x"))
    walked.walk()
    walked.versions.pop()
    walked.put_file("v/metadata/1.metadata.json")
    walked.walk()

    assert len(walked.memory().tables) == 2
