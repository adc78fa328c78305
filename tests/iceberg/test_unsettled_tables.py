"""Tables that are written to while they are read: every writer here acts between two steps of the survey."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from headwater.iceberg import (
    AcceptedTable,
    FileInfo,
    QuarantineCode,
    QuarantinedTable,
    SurveyScope,
    TableFiles,
    examine_table,
    find_tables,
)
from headwater.iceberg.filesystem import LakeStorage

MakeTable = Callable[..., Path]


class Busy(LakeStorage):
    """A storage on which somebody writes before each of the first reads."""

    def __init__(self, *writes: Callable[[], object]) -> None:
        self._writes = list(writes)
        self.listed = 0

    def read_file(self, file: FileInfo) -> bytes:
        if self._writes:
            self._writes.pop(0)()
        return super().read_file(file)

    def list_metadata(self, directory: str) -> list[FileInfo]:
        self.listed += 1
        return super().list_metadata(directory)


@pytest.fixture
def scope(tmp_path: Path) -> SurveyScope:
    return SurveyScope(locations=[str(tmp_path)], allowed=[str(tmp_path)]).checked()


@pytest.fixture
def make(tmp_path: Path, make_table: MakeTable) -> Callable[[int], Path]:
    """Writes a version of the table ``t``."""
    return lambda version: make_table("a/t", {f"v{version}.metadata.json": {}}) / "metadata" / f"v{version}.metadata.json"


def listed(scope: SurveyScope, tmp_path: Path) -> TableFiles:
    (table,) = find_tables(scope, tmp_path.as_uri(), tmp_path.as_uri())
    return table


def test_version_that_comes_while_the_table_is_read_is_taken(
    scope: SurveyScope, tmp_path: Path, make: Callable[[int], Path]
) -> None:
    make(1)

    outcome = examine_table(listed(scope, tmp_path), scope, storage=Busy(partial(make, 2)))

    assert isinstance(outcome, AcceptedTable), outcome
    assert outcome.metadata_location.endswith("v2.metadata.json")


def test_file_that_a_writer_replaces_is_not_missed(scope: SurveyScope, tmp_path: Path, make: Callable[[int], Path]) -> None:
    first = make(1)

    def replace() -> None:
        make(2)
        first.unlink()

    outcome = examine_table(listed(scope, tmp_path), scope, storage=Busy(replace))

    assert isinstance(outcome, AcceptedTable), outcome
    assert outcome.metadata_location.endswith("v2.metadata.json")


def test_table_that_is_always_written_to_is_quarantined(
    scope: SurveyScope, tmp_path: Path, make: Callable[[int], Path]
) -> None:
    make(1)
    writes = [partial(make, version) for version in range(2, 9)]

    outcome = examine_table(listed(scope, tmp_path), scope, storage=Busy(*writes))

    assert isinstance(outcome, QuarantinedTable)
    assert outcome.code is QuarantineCode.UNSETTLED


@pytest.mark.parametrize(("ahead", "times"), [(-1, 1), (1, 0)])
def test_table_is_listed_again_only_if_written_lately(
    scope: SurveyScope, tmp_path: Path, make: Callable[[int], Path], ahead: int, times: int
) -> None:
    settled = make(1).stat().st_mtime_ns // 1000 + ahead
    scope = SurveyScope(locations=scope.locations, allowed=scope.allowed, settled=settled).checked()
    storage = Busy()

    examine_table(listed(scope, tmp_path), scope, storage=storage)

    assert storage.listed == times
