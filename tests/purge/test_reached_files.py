"""From a table's metadata to all files that it reaches, and the turn in which each may go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from headwater.errors import RefusedError
from headwater.iceberg import FIRST_TURNS, LAST_TURN, ReachedFile, reachable_files
from metadata_fixtures import table

CONTENT, MANIFESTS, LISTS = FIRST_TURNS
LIST = {"type": "record", "name": "manifest_file", "fields": [{"name": "manifest_path", "type": "string"}]}
FILE = {"type": "record", "name": "r2", "fields": [{"name": "file_path", "type": "string"}]}
ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [{"name": "status", "type": "int"}, {"name": "data_file", "type": FILE}],
}


class Metadata:
    """The folder of a table's metadata; files are called by their names in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.codec = "null"
        folder.mkdir(parents=True)

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def list(self, name: str, *manifests: str) -> str:
        return self._avro(name, LIST, [{"manifest_path": self.uri(manifest)} for manifest in manifests])

    def manifest(self, name: str, **files: int) -> str:
        """``a=1``: the entry of the file ``a`` has the status 1."""
        return self._avro(
            name, ENTRY, [{"status": status, "data_file": {"file_path": self.uri(file)}} for file, status in files.items()]
        )

    def json(self, name: str, *log: str) -> str:
        entries = [{"metadata-file": self.uri(entry), "timestamp-ms": 1} for entry in log]
        (self.folder / name).write_text(json.dumps({"location": self.folder.parent.as_uri(), "metadata-log": entries}))
        return self.uri(name)

    def reached(self, document: dict[str, Any], *, was_begun: bool = False) -> dict[str, int]:
        """Turns by name."""
        found = list(reachable_files(document, self.uri("root"), within=self.folder.parent.as_uri(), was_begun=was_begun))
        assert all(one.location.startswith(self.uri("")) for one in found)
        return {ReachedFile(*one).location.rpartition("/")[2]: one.turn for one in found}

    def _avro(self, name: str, schema: dict[str, Any], rows: list[dict[str, Any]]) -> str:
        with (self.folder / name).open("wb") as stream:
            fastavro.writer(stream, schema, rows, codec=self.codec)
        return self.uri(name)


@pytest.fixture
def metadata(tmp_path: Path) -> Metadata:
    return Metadata(tmp_path / "table" / "metadata")


def document(version: int = 2, **changes: Any) -> dict[str, Any]:
    return table(version) | {"snapshots": [], "metadata-log": []} | changes


def test_files_of_all_snapshots_are_reached_even_if_deleted_later(metadata: Metadata) -> None:
    metadata.manifest("m1", a=1, b=1)
    metadata.manifest("m2", a=0, b=2, deletes=1)
    lists = [metadata.list("old", "m1"), metadata.list("new", "m1", "m2")]

    assert metadata.reached(document(snapshots=[{"manifest-list": one} for one in lists])) == {
        "a": CONTENT, "b": CONTENT, "deletes": CONTENT, "m1": MANIFESTS, "m2": MANIFESTS, "old": LISTS, "new": LISTS,
        "root": LAST_TURN,
    }  # fmt: skip


def test_manifests_that_version_1_names_itself_are_reached(metadata: Metadata) -> None:
    found = metadata.reached(document(1, snapshots=[{"manifests": [metadata.manifest("m1", a=1)]}]))

    assert found == {"a": CONTENT, "m1": MANIFESTS, "root": LAST_TURN}


def test_statistics_are_reached(metadata: Metadata) -> None:
    found = metadata.reached(
        document(**{
            "statistics": [{"statistics-path": metadata.uri("a.puffin")}],
            "partition-statistics": [{"statistics-path": metadata.uri("b.parquet")}],
        })
    )  # fmt: skip

    assert found == {"a.puffin": CONTENT, "b.parquet": CONTENT, "root": LAST_TURN}


def test_earlier_metadata_beyond_the_log_is_followed_and_goes_later(metadata: Metadata) -> None:
    metadata.json("v1")
    metadata.json("v2", "v1")
    metadata.json("v3", "gone", "v2")
    log = [{"metadata-file": metadata.json(name, "v3"), "timestamp-ms": 1} for name in ("v4", "v5")]
    turns = metadata.reached(document(**{"metadata-log": log}))

    assert LISTS < turns["v1"] < turns["v2"] == turns["gone"] < turns["v3"] < turns["v4"] == turns["v5"] < LAST_TURN


def test_earlier_metadata_that_leads_in_a_circle_is_followed_once(metadata: Metadata) -> None:
    metadata.json("v1", "v2", "root")
    log = [{"metadata-file": metadata.json("v2", "v1"), "timestamp-ms": 1}]

    assert set(metadata.reached(document(**{"metadata-log": log}))) == {"v1", "v2", "root"}


def test_missing_files_are_told_before_and_passed_over_after(metadata: Metadata) -> None:
    snapshots = [{"manifest-list": metadata.uri("no-list")}, {"manifest-list": metadata.list("list", "no-manifest")}]
    with pytest.raises(RefusedError, match=r"^2 manifests or lists of .*/no-list is not there; .*/no-manifest is not there"):
        metadata.reached(document(snapshots=snapshots))

    assert metadata.reached(document(snapshots=snapshots), was_begun=True) == {
        "no-list": LISTS, "list": LISTS, "no-manifest": MANIFESTS, "root": LAST_TURN
    }  # fmt: skip


def test_places_outside_are_neither_read_nor_told(metadata: Metadata, tmp_path: Path) -> None:
    outside = tmp_path / "others" / "secrets.avro"
    outside.parent.mkdir()
    texts = []
    for content in (b"hunter2", None):
        outside.unlink(missing_ok=True) if content is None else outside.write_bytes(content)
        with pytest.raises(RefusedError, match=r"secrets\.avro lies outside of what the catalog allows") as error:
            metadata.reached(document(snapshots=[{"manifest-list": outside.as_uri()}]))
        texts.append(str(error.value))
    manifest = Metadata(tmp_path / "theirs").manifest("m1", a=1)
    with pytest.raises(RefusedError, match="m1 lies outside of what the catalog allows"):
        metadata.reached(document(snapshots=[{"manifests": [manifest]}]))

    assert texts[0] == texts[1]


def test_manifests_are_followed_where_the_catalog_allows_them(metadata: Metadata, tmp_path: Path) -> None:
    apart = Metadata(tmp_path / "apart")
    apart.manifest("m1", a=1)
    snapshots = [{"manifest-list": apart.list("list", "m1")}]
    allowed = [tmp_path.as_uri()]
    found = reachable_files(
        document(snapshots=snapshots), metadata.uri("root"), within=metadata.uri(""), allowed=allowed, was_begun=False
    )

    assert [one.location.rpartition("/")[2] for one in found] == ["list", "m1", "a", "root"]


def test_manifest_of_other_records_is_no_manifest(metadata: Metadata) -> None:
    metadata.list("m1", "elsewhere")
    snapshots = [{"manifest-list": metadata.list("list", "m1")}]

    with pytest.raises(RefusedError, match=r"/m1 is not an Avro manifest or manifest list"):
        metadata.reached(document(snapshots=snapshots), was_begun=True)


def test_contents_of_a_file_that_is_no_manifest_stay_untold(metadata: Metadata) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "hunter2", "type": "string"}]}
    texts = [b"hunter2", b"Obj\x01hunter2", Path(metadata._avro("other", schema, [{"hunter2": "hunter2"}])[7:]).read_bytes()]
    for text in texts:
        (metadata.folder / "list").write_bytes(text)

        with pytest.raises(RefusedError, match="list is not an Avro manifest or manifest list") as error:
            metadata.reached(document(snapshots=[{"manifest-list": metadata.uri("list")}]))
        assert "hunter2" not in str(error.value)


def test_paths_are_followed_in_every_spelling(metadata: Metadata) -> None:
    metadata.manifest("m1", a=1)
    metadata.list("list", "m1")
    plain = str(metadata.folder / "list")
    found = [
        list(
            reachable_files(
                document(snapshots=[{"manifest-list": name}]), metadata.uri("root"), within=metadata.uri(""), was_begun=False
            )
        )
        for name in (plain, f"file:{plain}", f"file://localhost{plain}")
    ]

    assert [len(one) for one in found] == [4, 4, 4]


@pytest.mark.parametrize("codec", ["deflate", "snappy", "zstandard"])
def test_packed_manifests_are_followed(metadata: Metadata, codec: str) -> None:
    metadata.codec = codec
    metadata.manifest("m1", a=1)
    metadata.list("list", "m1")

    found = metadata.reached(document(snapshots=[{"snapshot-id": 1, "manifest-list": metadata.uri("list")}]))

    assert found == {"a": CONTENT, "m1": MANIFESTS, "list": LISTS, "root": LAST_TURN}
