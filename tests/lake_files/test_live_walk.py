"""From stored versions to live files: what is live, what is read, and what a referrer that cannot be read blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from walked_lake import ADDED, DELETED, EXISTING, WalkedLake

from headwater.errors import CorruptionError, NotFoundError, RefusedError, UnavailableError
from headwater.iceberg.filesystem import LakeStorage
from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.place_index import EVERYWHERE
from headwater.lake_files.store_storages import StoreStorages
from headwater.lake_files.stored_versions import StoredVersion
from headwater.store import RealmKey, Store

UNREADABLE = PlaceReason.REFERRER_UNREADABLE


@pytest.fixture
def walked(store: Store, tmp_path: Path) -> WalkedLake:
    return WalkedLake(tmp_path / "lake", store)


def test_manifest_holds_what_is_added_or_existing(walked: WalkedLake) -> None:
    walked.write_manifest("t/m.avro", {"t/a": ADDED, "t/b": EXISTING, "t/c": DELETED})
    walked.put("t", "t/l.avro")
    walked.write_list("t/l.avro", "t/m.avro")
    found = walked.walk()

    assert {"t/a", "t/b", "t/m.avro", "t/l.avro"} <= found.paths
    assert "t/c" not in found.paths
    assert found.blocks == []


def test_statistics_and_logged_metadata_are_live(walked: WalkedLake) -> None:
    walked.put(
        "t",
        statistics=[{"statistics-path": "t/s.puffin"}],
        **{
            "partition-statistics": [{"statistics-path": "t/p.parquet"}],
            "metadata-log": [{"metadata-file": "t/metadata/v1.metadata.json"}],
        },
    )
    files = {file.path: file.must_exist for file in walked.walk().files}

    assert files["t/s.puffin"]
    assert files["t/p.parquet"]
    assert files["t/metadata/v1.metadata.json"] is False
    assert files["t/metadata/version-hint.text"] is False
    assert files["t/metadata/.v1.metadata.json.crc"] is False


def test_manifests_that_version_1_names_itself_are_live(walked: WalkedLake) -> None:
    path = walked.write_manifest("t/m.avro", {"t/a": ADDED})
    walked.put("t", snapshots=[{"snapshot-id": 1, "manifests": [path]}], **{"format-version": 1})
    found = walked.walk()

    assert {"t/a", "t/m.avro"} <= found.paths
    assert found.blocks == []


def test_document_that_is_not_stored_is_read_from_its_file(walked: WalkedLake) -> None:
    document = walked.document("t", walked.write_snapshot("t", "t/a"))
    walked.put_file("t/metadata/v1.metadata.json", json.dumps(document).encode())

    assert {"t/a", "t/metadata/v1.metadata.json"} <= walked.walk().paths


def test_view_names_its_metadata(walked: WalkedLake) -> None:
    view = {"view-uuid": "u", "location": walked.location("v"), "format-version": 1, "versions": [], "current-version-id": 1}
    walked.put_file("v/metadata/v1.metadata.json", json.dumps(view).encode())
    found = walked.walk()

    assert "v/metadata/v1.metadata.json" in found.paths
    assert found.blocks == []


def test_table_with_a_field_of_views_is_read_as_a_table(walked: WalkedLake) -> None:
    walked.put("t", walked.write_snapshot("t", "t/a"), versions=[], **{"view-uuid": "u"})

    assert "t/a" in walked.walk().paths


def test_shared_lists_and_manifests_are_read_once(walked: WalkedLake) -> None:
    shared = walked.write_snapshot("t", "t/a")
    for _ in range(3):
        walked.put("t", shared)
    walked.write_list("t/metadata/snap2.avro", "t/metadata/m.avro")
    walked.put("t", shared, "t/metadata/snap2.avro", realm=2)

    assert sorted(walked.walk().read) == ["m.avro", "snap.avro", "snap2.avro"]


@pytest.mark.parametrize("broken", ["t/metadata/m.avro", "t/metadata/snap.avro"])
@pytest.mark.parametrize("data", [None, b"no Avro"])
def test_referrer_that_cannot_be_read_blocks_its_bucket(walked: WalkedLake, broken: str, data: bytes | None) -> None:
    walked.put("t", walked.write_snapshot("t", "t/a"))
    (walked.folder / broken).unlink()
    if data is not None:
        walked.write(broken, data)
    (block, *_) = walked.walk().blocks

    assert (block.location, block.code) == ("file://", UNREADABLE)
    assert broken in block.detail
    assert walked.location("t") in block.detail


def test_referrer_that_was_read_before_blocks_what_it_named(walked: WalkedLake) -> None:
    walked.put("t", walked.write_snapshot("t", "t/a", "elsewhere/b", "s3://other/data/c"))
    assert walked.walk().blocks == []
    walked.write("t/metadata/snap.avro", b"damaged")
    found = walked.walk()

    assert found.blocked == {"t": UNREADABLE, "elsewhere": UNREADABLE, "s3://other/data": UNREADABLE}
    assert walked.walk().blocked == found.blocked


def test_table_in_very_many_folders_blocks_their_buckets(walked: WalkedLake) -> None:
    folders = [f"s3://one/{number}/x" for number in range(200)]
    walked.put("t", walked.write_snapshot("t", *folders, "s3://two/y/x"))
    walked.walk()
    walked.write("t/metadata/snap.avro", b"damaged")

    assert walked.walk().blocked == {"t": UNREADABLE, "s3://one": UNREADABLE, "s3://two": UNREADABLE}


def test_broken_list_that_tables_share_blocks_both(walked: WalkedLake) -> None:
    shared = walked.write_snapshot("a", "a/x", "s3://ofa/d/x")
    walked.put("a", shared)
    walked.put("b", shared, properties={"write.data.path": "s3://ofb/b"})
    walked.walk()
    walked.write(shared, b"damaged")

    assert {"a", "b", "s3://ofa/d", "s3://ofb/b"} <= walked.walk().blocked.keys()


def test_broken_manifest_of_a_shared_list_blocks_both(walked: WalkedLake) -> None:
    shared = walked.write_snapshot("a", "a/x")
    walked.put("a", shared)
    walked.put("b", shared, properties={"write.data.path": "s3://ofb/b"})
    walked.walk()
    walked.write("a/metadata/m.avro", b"damaged")

    assert {"a", "b", "s3://ofb/b"} <= walked.walk().blocked.keys()


@pytest.mark.parametrize(
    "changes",
    [
        {"manifest_length": 7},
        {"added_files_count": 3},
        {"added_files_count": 1, "deleted_files_count": 1},
        {"existing_files_count": 5},
    ],
)
def test_manifest_that_contradicts_its_list_is_unreadable(walked: WalkedLake, changes: dict[str, Any]) -> None:
    walked.write_manifest("t/m.avro", {"t/a": ADDED, "t/b": ADDED})
    walked.write_list("t/l.avro", "t/m.avro", **changes)
    walked.put("t", "t/l.avro")
    found = walked.walk()

    assert found.blocked["file://"] == UNREADABLE
    assert {"t/a", "t/b"} <= found.paths
    assert walked.walk().blocked == found.blocked


def test_lists_that_contradict_each_other_block(walked: WalkedLake) -> None:
    walked.write_manifest("t/m.avro", {"t/a": ADDED})
    walked.write_list("t/l1.avro", "t/m.avro")
    walked.write_list("t/l2.avro", "t/m.avro", added_files_count=0, deleted_files_count=1)
    walked.put("t", "t/l1.avro", "t/l2.avro")

    assert walked.walk().blocked["file://"] == UNREADABLE


@pytest.mark.parametrize("text", [b"{", b"[]", b"{}", b'{"location": 3}', b"\xff"])
def test_document_that_is_none_blocks_everything(walked: WalkedLake, text: bytes) -> None:
    walked.put_text(text)

    assert walked.walk().blocked == {EVERYWHERE: UNREADABLE}


@pytest.mark.parametrize("fault", [CorruptionError("a row is damaged"), NotFoundError("a collection took it")])
def test_stored_document_that_cannot_be_read_blocks_everything(walked: WalkedLake, fault: Exception) -> None:
    def read() -> bytes:
        raise fault

    walked.add(StoredVersion("1-x", RealmKey(1), read))
    (block,) = walked.walk().blocks

    assert (block.location, block.code) == (EVERYWHERE, UNREADABLE)
    assert str(fault) in block.detail


@pytest.mark.parametrize(
    "fields",
    [
        {"snapshots": {}},
        {"snapshots": [7]},
        {"snapshots": [{"snapshot-id": 1}]},
        {"snapshots": [{"snapshot-id": 1, "manifests": "m"}]},
        {"snapshots": [{"snapshot-id": 1, "manifests": [3]}]},
        {"statistics": [{"snapshot-id": 1}]},
        {"partition-statistics": "x"},
    ],
)
def test_document_of_another_shape_blocks_its_bucket(walked: WalkedLake, fields: dict[str, Any]) -> None:
    walked.put("t", **fields)

    assert walked.walk().blocked["file://"] == UNREADABLE


def test_metadata_file_that_is_gone_blocks_its_bucket(walked: WalkedLake) -> None:
    walked.put_file("t/metadata/v1.metadata.json")

    assert walked.walk().blocked["file://"] == UNREADABLE


def test_metadata_file_that_went_blocks_what_its_table_named(walked: WalkedLake) -> None:
    document = walked.document("t", walked.write_snapshot("t", "t/a", "s3://other/data/c"))
    walked.put_file("t/metadata/v1.metadata.json", json.dumps(document).encode())
    walked.put("t")  # another version, which names less
    assert walked.walk().blocks == []
    (walked.folder / "t/metadata/v1.metadata.json").unlink()
    found = walked.walk()

    assert {"t", "s3://other/data"} <= found.blocked.keys()
    assert walked.walk().blocked == found.blocked


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"format-version": 4}, PlaceReason.REFERRER_TOO_NEW),
        ({"format-version": "2"}, PlaceReason.REFERRER_TOO_NEW),
        ({"encryption-keys": [{"key-id": "k"}]}, PlaceReason.REFERRER_ENCRYPTED),
        ({"snapshots": [{"snapshot-id": 1, "manifests": [], "key-id": "k"}]}, PlaceReason.REFERRER_ENCRYPTED),
    ],
)
def test_table_that_is_not_understood_blocks_its_bucket(walked: WalkedLake, fields: dict[str, Any], code: PlaceReason) -> None:
    walked.put("t", **fields)

    assert walked.walk().blocked["file://"] == code


def test_encrypted_manifest_blocks_its_bucket(walked: WalkedLake) -> None:
    walked.write_manifest("t/m.avro", {"t/a": ADDED})
    walked.write_list("t/l.avro", "t/m.avro", key_metadata=b"k")
    walked.put("t", "t/l.avro")

    assert walked.walk().blocked["file://"] == PlaceReason.REFERRER_ENCRYPTED


@pytest.mark.parametrize("value", ["false", "FALSE", "no", False])
def test_table_with_gc_disabled_blocks_what_it_names(walked: WalkedLake, value: object) -> None:
    lists = walked.write_snapshot("t", "t/a", "s3://other/data/c")
    walked.put("t", lists, properties={"gc.enabled": value})

    assert walked.walk().blocked == {"t": PlaceReason.GC_DISABLED, "s3://other/data": PlaceReason.GC_DISABLED}


class ClosedStorage(LakeStorage):
    """A storage in which nothing may be read."""

    def read_file(self, file: Any) -> bytes:
        raise RefusedError(f"{file.path} may not be read")


def test_table_of_a_realm_that_may_not_read_blocks(walked: WalkedLake) -> None:
    shared = walked.write_snapshot("t", "t/a")
    walked.put("t", shared)
    walked.put("t", shared, realm=2)
    found = walked.walk(storage_of=lambda realm, location: ClosedStorage() if realm == 1 else LakeStorage())

    assert found.blocked["file://"] == UNREADABLE
    assert any("may not be read" in block.detail for block in found.blocks)


class DeafStorage(LakeStorage):
    """A storage that does not answer of locations with this ending."""

    def __init__(self, ending: str) -> None:
        self.ending = ending
        self.asked = 0

    def open_system(self, location: str) -> Any:
        self.asked += 1
        if location.endswith(self.ending):
            raise UnavailableError(f"{location} does not answer")
        return super().open_system(location)


def test_storage_that_never_answers_blocks_its_bucket_alone(walked: WalkedLake) -> None:
    deaf = DeafStorage("")
    for number in range(100):
        walked.put("g", *(f"s3://guest/{number}/{snapshot}.avro" for snapshot in range(2)), location="s3://guest/g")
    walked.add(StoredVersion("1-x", RealmKey(1), None, "s3://guest/x.json"))
    walked.put("t", walked.write_snapshot("t", "t/a"))
    found = walked.walk(storage_of=lambda realm, location: deaf if location.startswith("s3:") else LakeStorage())

    assert {block.location.split("/")[2] for block in found.blocks} == {"guest"}
    assert "t/a" in found.paths
    assert deaf.asked < 100


def test_storage_that_stops_answering_ends_the_walk(walked: WalkedLake) -> None:
    walked.put("t", walked.write_snapshot("t", "t/a"))
    deaf = DeafStorage("m.avro")  # its list was read

    with pytest.raises(UnavailableError, match=r"m\.avro does not answer"):
        walked.walk(storage_of=lambda realm, location: deaf)


ODD = [
    "",
    "relative/m.avro",
    "s3://lake/../m.avro",
    "file://host/m.avro",
    "nowhere://a/m.avro",
    "s3:/m.avro",
    "file:m.avro",
    "s3://",
]


@pytest.mark.parametrize("kind", ["manifest", "list", "metadata"])
@pytest.mark.parametrize("path", ODD)
def test_path_that_is_no_location_blocks(walked: WalkedLake, kind: str, path: str) -> None:
    if kind == "metadata":
        walked.add(StoredVersion("1-x", RealmKey(1), None, path))
    elif kind == "list":
        walked.put("t", snapshots=[{"snapshot-id": 1, "manifest-list": path}])
    else:
        walked.put("t", snapshots=[{"snapshot-id": 1, "manifests": [path]}])
    found = walked.walk(storage_of=StoreStorages(walked.store).find_lake)

    assert found.blocks
    assert {block.code for block in found.blocks} == {UNREADABLE}
