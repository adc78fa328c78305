"""Down from metadata to files: tables whose manifest lists, manifests and files are written here, and then taken away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from headwater.iceberg import AcceptedTable, QuarantineCode, QuarantinedTable, SurveyOutcome, SurveyScope, survey_in_process

LIST = {"type": "record", "name": "manifest_file", "fields": [{"name": "manifest_path", "type": "string"}]}
ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int"},
        {
            "name": "data_file",
            "type": {"type": "record", "name": "r2", "fields": [{"name": "file_path", "type": "string"}]},
        },
    ],
}
EXISTING, ADDED, DELETED = 0, 1, 2


class Lake:
    """One table ``s/t``: two snapshots, each with a manifest and a data file of its own, and a manifest that both share."""

    def __init__(self, root: Path, document: dict[str, Any]) -> None:
        self.root = root
        self.table = root / "s" / "t"
        self.metadata, self.data = self.table / "metadata", self.table / "data"
        for folder in (self.metadata, self.data):
            folder.mkdir(parents=True)
        self.document = document | {"location": self.table.as_uri(), "statistics": []}
        for snapshot, name in zip(document["snapshots"], ("old", "new"), strict=True):
            self.write_manifest(name, {f"{name}.parquet": ADDED})
            snapshot["manifest-list"] = (self.metadata / f"snap-{name}.avro").as_uri()
            self.write_list(name, [name, "shared"])
        self.write_manifest("shared", {"shared.parquet": EXISTING, "gone.parquet": DELETED})
        (self.data / "gone.parquet").unlink()
        self.write()

    def write(self, **changes: Any) -> None:
        self.document |= changes
        (self.metadata / "v1.metadata.json").write_text(json.dumps(self.document))

    def write_manifest(self, name: str, files: dict[str, int]) -> None:
        rows = []
        for file, status in files.items():
            (self.data / file).touch()
            rows.append({"status": status, "data_file": {"file_path": (self.data / file).as_uri()}})
        self._avro(self.metadata / f"{name}.avro", ENTRY, rows)

    def write_list(self, name: str, manifests: list[str]) -> None:
        rows = [{"manifest_path": (self.metadata / f"{manifest}.avro").as_uri()} for manifest in manifests]
        self._avro(self.metadata / f"snap-{name}.avro", LIST, rows)

    def survey(self, verify: str = "files", *allowed: str) -> SurveyOutcome:
        lake = str(self.root)
        (outcome,) = survey_in_process(SurveyScope(locations=[lake], allowed=allowed or [lake], verify=verify).checked())  # type: ignore[arg-type]
        return outcome

    def _avro(self, file: Path, schema: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        with file.open("wb") as stream:
            fastavro.writer(stream, schema, rows)


@pytest.fixture
def lake(tmp_path: Path, document: dict[str, Any]) -> Lake:
    return Lake(tmp_path / "lake", document)


def fault_of(outcome: SurveyOutcome) -> tuple[QuarantineCode, str]:
    assert isinstance(outcome, QuarantinedTable), outcome
    return outcome.code, outcome.message


@pytest.mark.parametrize(("level", "files"), [("manifests", 5), ("files", 8)])
def test_whole_table_is_found_with_what_was_verified(lake: Lake, level: str, files: int) -> None:
    found = lake.survey(level)

    assert isinstance(found, AcceptedTable), found
    assert found.evidence[-1] == f"{files} files of 2 snapshots are there ({level})"


@pytest.mark.parametrize(
    ("missing", "level", "whole", "current", "advice"),
    [
        ("metadata/snap-old.avro", "manifests", 1, "is among", "or expire the other snapshots"),
        ("metadata/new.avro", "manifests", 1, "is not among", "or roll it back"),
        ("metadata/shared.avro", "manifests", 0, "is not among", "from a backup"),
        ("data/new.parquet", "files", 1, "is not among", "or roll it back"),
        ("data/shared.parquet", "files", 0, "is not among", "from a backup"),
    ],
)
def test_missing_files_are_named_with_the_snapshots_that_are_whole(
    lake: Lake, missing: str, level: str, whole: int, current: str, advice: str
) -> None:
    (lake.table / missing).unlink()

    code, message = fault_of(lake.survey(level))

    assert code is QuarantineCode.MISSING_FILES
    assert f"1 of its files are missing ({(lake.table / missing).as_uri()})" in message
    assert f"{whole} of its 2 snapshots are whole, the current one {current}" in message
    assert advice in message


def test_level_that_was_asked_for_alone_is_looked_at(lake: Lake) -> None:
    (lake.data / "new.parquet").unlink()
    assert isinstance(lake.survey("manifests"), AcceptedTable)

    (lake.metadata / "new.avro").unlink()
    assert isinstance(lake.survey("metadata"), AcceptedTable)


def test_many_missing_files_are_counted_and_some_named(lake: Lake) -> None:
    lake.write_manifest("new", {f"{number:02}.parquet": ADDED for number in range(20)})
    for file in lake.data.glob("[01]?.parquet"):
        file.unlink()

    _, message = fault_of(lake.survey())

    assert "20 of its files are missing" in message
    assert "04.parquet" in message
    assert "05.parquet" not in message


@pytest.mark.parametrize("content", [b"", b"no Avro", b"Obj\x01 and then nothing"])
@pytest.mark.parametrize("name", ["snap-new", "new"])
def test_unreadable_file_is_told_from_a_missing_one(lake: Lake, name: str, content: bytes) -> None:
    (lake.metadata / f"{name}.avro").write_bytes(content)

    code, message = fault_of(lake.survey("manifests"))

    assert code is QuarantineCode.BAD_MANIFEST
    assert f"{name}.avro" in message


def test_manifest_cut_off_in_the_middle_is_not_read(lake: Lake) -> None:
    whole = (lake.metadata / "new.avro").read_bytes()
    (lake.metadata / "new.avro").write_bytes(whole[:-12])

    assert fault_of(lake.survey())[0] is QuarantineCode.BAD_MANIFEST


@pytest.mark.parametrize("kind", ["statistics", "partition-statistics"])
def test_statistics_are_files_of_the_table(lake: Lake, kind: str) -> None:
    file = lake.metadata / "stats.puffin"
    entry = {"snapshot-id": 22, "statistics-path": file.as_uri(), "file-size-in-bytes": 1}
    if kind == "statistics":
        entry |= {"file-footer-size-in-bytes": 1, "blob-metadata": []}
    lake.write(**{kind: [entry]})

    assert fault_of(lake.survey())[0] is QuarantineCode.MISSING_FILES
    file.touch()
    assert isinstance(lake.survey(), AcceptedTable)


def test_manifests_in_the_metadata_of_version_1_are_read(lake: Lake) -> None:
    snapshots = [
        {
            "snapshot-id": one["snapshot-id"],
            "timestamp-ms": one["timestamp-ms"],
            "manifests": [(lake.metadata / "new.avro").as_uri()],
        }
        for one in lake.document["snapshots"]
    ]
    schema = {"type": "struct", "fields": []}
    lake.write(**{"format-version": 1, "snapshots": snapshots, "schema": schema, "partition-spec": []})

    found = lake.survey()
    assert isinstance(found, AcceptedTable), found
    (lake.data / "new.parquet").unlink()
    assert fault_of(lake.survey())[0] is QuarantineCode.MISSING_FILES


def test_file_outside_of_what_is_allowed_is_not_read(lake: Lake, tmp_path: Path) -> None:
    stranger = tmp_path / "elsewhere" / "secret.avro"
    rows = [{"manifest_path": stranger.as_uri()}]
    lake._avro(lake.metadata / "snap-new.avro", LIST, rows)

    code, message = fault_of(lake.survey("manifests"))

    assert code is QuarantineCode.OUTSIDE_ALLOWED
    assert "secret.avro" in message


def test_files_elsewhere_that_are_allowed_are_asked_for(lake: Lake, tmp_path: Path) -> None:
    other = tmp_path / "other" / "x.parquet"
    other.parent.mkdir()
    rows = [{"status": ADDED, "data_file": {"file_path": other.as_uri()}}]
    lake._avro(lake.metadata / "new.avro", ENTRY, rows)

    assert fault_of(lake.survey("files", str(tmp_path)))[0] is QuarantineCode.MISSING_FILES
    other.touch()
    assert isinstance(lake.survey("files", str(tmp_path)), AcceptedTable)


def test_encrypted_table_is_found_and_said_not_to_be_verified(lake: Lake) -> None:
    snapshots = [one | {"key-id": "k1"} for one in lake.document["snapshots"]]
    keys = [{"key-id": "k1", "encrypted-key-metadata": "AA=="}]
    schemas = [{"type": "struct", "schema-id": number, "fields": []} for number in (0, 1)]
    rows = {"first-row-id": 0, "added-rows": 0}
    lake.write(
        **{"format-version": 3, "next-row-id": 0, "encryption-keys": keys, "schemas": schemas},
        snapshots=[one | rows for one in snapshots],
    )

    found = lake.survey()

    assert isinstance(found, AcceptedTable), found
    assert "encrypted" in found.evidence[-1]


FULL_LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string"},
        {"name": "manifest_length", "type": "long"},
        *({"name": f"{kind}_files_count", "type": ["null", "int"]} for kind in ("added", "existing", "deleted")),
    ],
}


def listed(manifest: Path, **said: int | None) -> dict[str, Any]:
    """What a list says of a manifest with one added file."""
    counts = {"added_files_count": 1, "existing_files_count": 0, "deleted_files_count": 0}
    return {"manifest_path": manifest.as_uri(), "manifest_length": manifest.stat().st_size, **counts, **said}


@pytest.mark.parametrize("said", [{}, {"manifest_length": 0}, {"added_files_count": None}, {"deleted_files_count": -1}])
def test_manifest_that_is_as_its_list_says_is_whole(lake: Lake, said: dict[str, int | None]) -> None:
    lake._avro(lake.metadata / "snap-new.avro", FULL_LIST, [listed(lake.metadata / "new.avro", **said)])

    assert isinstance(lake.survey(), AcceptedTable)


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"manifest_length": 7}, "and 7 in its list"),
        ({"added_files_count": 2}, "it has 1 entries, and 2 in its list"),
        ({"added_files_count": 0}, "it has 1 entries, and 0 in its list"),
    ],
)
@pytest.mark.parametrize("level", ["manifests", "files"])
def test_manifest_that_is_not_as_its_list_says_is_broken(lake: Lake, said: dict[str, int], fault: str, level: str) -> None:
    lake._avro(lake.metadata / "snap-new.avro", FULL_LIST, [listed(lake.metadata / "new.avro", **said)])

    code, message = fault_of(lake.survey(level))

    assert code is QuarantineCode.BAD_MANIFEST
    assert fault in message


def test_manifest_cut_off_behind_its_header_is_broken(lake: Lake) -> None:
    manifest = lake.metadata / "new.avro"
    lake._avro(lake.metadata / "snap-new.avro", FULL_LIST, [listed(manifest)])
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[: whole.index(whole[-16:]) + 16])

    assert fault_of(lake.survey())[0] is QuarantineCode.BAD_MANIFEST


@pytest.mark.parametrize(("name", "other"), [("snap-new", "new"), ("new", "snap-new"), ("shared", "snap-old")])
@pytest.mark.parametrize("level", ["manifests", "files"])
def test_lists_and_manifests_are_told_from_each_other(lake: Lake, name: str, other: str, level: str) -> None:
    (lake.metadata / f"{name}.avro").write_bytes((lake.metadata / f"{other}.avro").read_bytes())

    code, message = fault_of(lake.survey(level))

    assert code is QuarantineCode.BAD_MANIFEST
    assert "its records have no field" in message


@pytest.mark.parametrize("prefix", ["file://localhost/", "FILE:///", "file:/", "/", "file:////"])
def test_every_spelling_of_a_location_leads_there(lake: Lake, tmp_path: Path, prefix: str) -> None:
    other = tmp_path / "other" / "x.parquet"
    other.parent.mkdir()
    other.touch()
    rows = [{"status": ADDED, "data_file": {"file_path": f"{prefix}{str(other)[1:]}"}}]
    lake._avro(lake.metadata / "new.avro", ENTRY, rows)
    manifest = f"{prefix}{str(lake.metadata / 'new.avro')[1:]}"
    lake._avro(lake.metadata / "snap-new.avro", LIST, [{"manifest_path": manifest}])

    assert isinstance(lake.survey("files", str(tmp_path)), AcceptedTable)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("metadata", QuarantineCode.BAD_MANIFEST),
        ("x" * 300, QuarantineCode.MISSING_FILES),
        ("a\0b", QuarantineCode.MISSING_FILES),
    ],
)
def test_manifest_list_that_is_no_file_is_told(lake: Lake, path: str, code: QuarantineCode) -> None:
    lake.document["snapshots"][0]["manifest-list"] = f"{lake.table.as_uri()}/{path}"
    lake.write()

    assert fault_of(lake.survey("manifests"))[0] is code


def test_location_that_nothing_here_reaches_costs_its_table_alone(lake: Lake) -> None:
    lake._avro(lake.metadata / "snap-new.avro", LIST, [{"manifest_path": "nowhere://lake/new.avro"}])

    assert fault_of(lake.survey("manifests", str(lake.root), "nowhere://lake"))[0] is QuarantineCode.BAD_LOCATION


def test_manifest_whose_schema_holds_itself_is_broken(lake: Lake) -> None:
    whole = (lake.metadata / "new.avro").read_bytes()
    kind = b'"type": "int"'
    assert kind in whole
    (lake.metadata / "new.avro").write_bytes(
        whole.replace(kind, b'"type":  "xx"').replace(b'"manifest_entry"', b'"xx"            ')
    )

    code, message = fault_of(lake.survey("manifests"))

    assert code is QuarantineCode.BAD_MANIFEST
    assert "broken Avro" in message


def test_file_that_contradicts_its_list_is_not_called_unreadable(lake: Lake) -> None:
    longer = {**LIST, "fields": [*LIST["fields"], {"name": "manifest_length", "type": "long"}]}  # type: ignore[misc]
    row = {"manifest_path": (lake.metadata / "new.avro").as_uri(), "manifest_length": 7}
    lake._avro(lake.metadata / "snap-new.avro", longer, [row])

    code, message = fault_of(lake.survey("manifests"))

    assert code is QuarantineCode.BAD_MANIFEST
    assert "1 of its manifests contradict the lists that name them" in message
    assert "cannot be read" not in message
