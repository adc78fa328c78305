"""A folder of manifests that a person is editing."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater_workers.up_loop import ManifestFolder

REALM = "apiVersion: headwater.dev/v1alpha1\nkind: Realm\nmetadata: {name: %s}\n"


@pytest.fixture
def folder(tmp_path: Path) -> ManifestFolder:
    (tmp_path / "acme.yaml").write_text(REALM % "acme")
    return ManifestFolder(tmp_path, Settings(), dict)


def names(folder: ManifestFolder) -> list[str]:
    return [manifest.metadata.name for manifest in folder.manifests]


def test_folder_is_read_again_when_it_has_changed(folder: ManifestFolder, tmp_path: Path) -> None:
    assert folder.load()
    assert not folder.load()
    (tmp_path / "other.yaml").write_text(REALM % "other")

    assert folder.load()
    assert names(folder) == ["acme", "other"]


def test_wrong_file_is_told_once_and_changes_nothing(folder: ManifestFolder, tmp_path: Path) -> None:
    folder.load()
    (tmp_path / "wrong.yaml").write_text("kind: [")
    told: list[str] = []

    assert not folder.load_or_tell(told.append)
    assert not folder.load_or_tell(told.append)
    assert names(folder) == ["acme"]
    assert [line for line in told if "wrong.yaml" in line]
    assert told[-1] == "the manifests stay as they were before"
    assert told.count(told[-1]) == 1


def test_fault_is_known_until_it_is_mended(folder: ManifestFolder, tmp_path: Path) -> None:
    folder.load()
    (tmp_path / "wrong.yaml").write_text("kind: [")
    for _ in range(2):
        folder.load_or_tell(lambda line: None)
    fault = folder.fault
    (tmp_path / "wrong.yaml").unlink()
    folder.load_or_tell(lambda line: None)

    assert "an earlier state is in force" in fault and "wrong.yaml" in fault
    assert folder.fault == ""


def test_wrong_file_at_the_start_is_refused(folder: ManifestFolder, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("kind: [")

    with pytest.raises(RefusedError, match=r"wrong\.yaml"):
        folder.load()


def test_file_that_vanished_takes_only_its_manifest_away(folder: ManifestFolder, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(REALM % "other")
    folder.load()
    (tmp_path / "acme.yaml").unlink()

    assert folder.load()
    assert names(folder) == ["other"]
