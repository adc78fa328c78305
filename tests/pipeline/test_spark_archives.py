from __future__ import annotations

import json
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from headwater.cli.application import main
from headwater.errors import RefusedError
from headwater_workers.pipeline.spark_archive import MANIFEST, pack_environment

LARGE = ("pyarrow", "fastavro", "pymongo", "psycopg-binary", "celery", "redis", "tzdata", "dnspython")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("archive") / "headwater.tar.gz"
    pack_environment(file, without=LARGE)
    return file


@pytest.mark.long
def test_archive_is_all_that_a_bare_python_needs_to_survey(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import headwater.iceberg as found; print(found.__file__)"

    said = subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, capture_output=True, text=True)

    assert said.stdout.startswith(str(tmp_path))


def test_archive_says_its_python_and_what_it_holds(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        file = packed.extractfile(MANIFEST)
        assert file is not None
        manifest = json.load(file)

    assert manifest["python"] == platform.python_version()
    assert {"headwater", "msgspec", "fsspec"} <= manifest["distributions"].keys()
    assert not {"pyspark", "py4j", *LARGE} & manifest["distributions"].keys()


def test_archive_names_the_types_of_objects_and_the_backends(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        names = [name for name in packed.getnames() if name.endswith("entry_points.txt") and name.startswith("headwater-")]

    assert len(names) == 1


@pytest.mark.long
def test_equal_environments_give_equal_bytes(archive: Path, tmp_path: Path) -> None:
    pack_environment(tmp_path / "again.tar.gz", without=LARGE)

    assert (tmp_path / "again.tar.gz").read_bytes() == archive.read_bytes()


def test_package_that_nothing_requires_cannot_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="pyarow"):
        pack_environment(tmp_path / "never.tar.gz", without=["pyarow"])

    assert not (tmp_path / "never.tar.gz").exists()


@pytest.mark.long
def test_archive_that_cannot_be_written_is_refused_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(
            ["spark-archive", str(tmp_path / "nowhere" / "x.tar.gz"), *(word for name in LARGE for word in ("--without", name))]
        )

    assert ended.value.code == 5
    assert "cannot write" in capsys.readouterr().err
