"""Names under which there is no file: folders, pipes, sockets and paths that no system takes. They cost their own table alone."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.errors import RefusedError, UnavailableError
from headwater.iceberg import (
    STORAGE,
    AcceptedTable,
    QuarantineCode,
    QuarantinedTable,
    SurveyOutcome,
    SurveyScope,
    survey_in_process,
)
from headwater.iceberg.file_drivers import open_file_system
from headwater.iceberg.layout import FileInfo
from headwater.iceberg.survey_outcomes import RejectedTable


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path may only be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


ODD: dict[str, Callable[[Path], None]] = {
    "a link to a folder": lambda path: path.symlink_to(path.parent.parent),
    "a pipe": os.mkfifo,
    "a socket": make_socket,
}


def survey(root: Path) -> dict[str, SurveyOutcome]:
    return {
        outcome.key[-1]: outcome
        for outcome in survey_in_process(SurveyScope(locations=[str(root)], allowed=[str(root)]).checked())
    }


@pytest.mark.parametrize("name", ["v2.metadata.json", "version-hint.text"])
@pytest.mark.parametrize("kind", ODD)
def test_metadata_that_is_no_file_costs_its_table_alone(
    make_table: Callable[..., Path], tmp_path: Path, kind: str, name: str
) -> None:
    make_table("sound", {"v1.metadata.json": {"table-uuid": "11111111-03fe-4693-9a96-a0705ddf69c1"}})
    ODD[kind](make_table("odd", {"v1.metadata.json": {}}) / "metadata" / name)

    outcomes = survey(tmp_path)

    odd = outcomes["odd"]
    assert isinstance(outcomes["sound"], AcceptedTable)
    assert isinstance(odd, QuarantinedTable)
    assert (odd.code, f"{name} is no regular file" in odd.message) == (QuarantineCode.CORRUPT, True)


@pytest.mark.parametrize("target", ["v9.metadata.json", "v1.metadata.json/below", "x" * 300, "nothing"])
def test_link_to_nowhere_is_never_passed_over(make_table: Callable[..., Path], tmp_path: Path, target: str) -> None:
    (make_table("odd", {"v1.metadata.json": {}}) / "metadata" / "v9.metadata.json").symlink_to(target)

    odd = survey(tmp_path)["odd"]

    assert isinstance(odd, QuarantinedTable)
    assert (odd.code, "v9.metadata.json is a link to nowhere" in odd.message) == (QuarantineCode.CORRUPT, True)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "file/below", "loop", "loop/below"])
def test_path_that_leads_nowhere_is_not_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    location = f"{tmp_path.as_uri()}/{name}"

    with pytest.raises(RejectedTable) as unfit:
        STORAGE.read_file(FileInfo(location, 0))
    assert (unfit.value.code, STORAGE.has_file(location)) == (QuarantineCode.VANISHED, False)


def test_folder_is_no_file_of_a_table(tmp_path: Path) -> None:
    assert not STORAGE.has_file(tmp_path.as_uri())


def test_storage_that_fails_is_told_from_a_dead_path(tmp_path: Path) -> None:
    (tmp_path / "disk").symlink_to("/proc/self/mem")  # whose first bytes nobody can read

    with pytest.raises(UnavailableError, match="Input/output error"):
        STORAGE.read_file(FileInfo(f"{tmp_path.as_uri()}/disk", 0))


def test_missing_hadoop_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(RefusedError, match=r"no file system for hdfs://namenode/lake: .*, so install it") as refused:
        open_file_system("hdfs://namenode/lake")
    assert "\n" not in str(refused.value)


def test_name_that_chains_drivers_is_refused(tmp_path: Path) -> None:
    """fsspec opens what stands behind the colons."""
    with pytest.raises(RefusedError, match="contains '::'"):
        open_file_system(f"memory://lake/x::file://{tmp_path}/secret")
