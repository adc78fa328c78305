"""A write of file references whose answer was lost, and whose repetition fails: nobody may believe that it did not happen."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from reference_stores import fresh_scope, make_file

from fake_clock import FakeClock
from headwater.errors import UnavailableError, UnknownOutcomeError
from headwater.files import AddFiles, FileReferenceStore, RetryPolicy
from headwater.files.sql_references import ReferenceConflictError
from headwater.files.sqlite_references import SqliteFileTables, SqliteReferences
from headwater.store.backends.sqlite.database_file import SqliteFile

T = TypeVar("T")


class UnsteadyFile(SqliteFile):
    """A database that does the next write and loses the answer, and fails at those after it in the ways of ``faults``."""

    faults: list[Exception]
    is_unsteady = False

    def write(self, what: str, work: Callable[[sqlite3.Connection], T]) -> T:
        if not self.is_unsteady:
            return super().write(what, work)
        fault = self.faults.pop(0)
        if isinstance(fault, UnknownOutcomeError):
            super().write(what, work)
        raise fault


@pytest.fixture
def unsteady(tmp_path: Path) -> Iterator[UnsteadyFile]:
    file = UnsteadyFile(tmp_path / "files.db", timeout_seconds=5.0)
    yield file
    file.close()


@pytest.fixture
def references(unsteady: UnsteadyFile) -> FileReferenceStore:
    clock, scope = FakeClock(), fresh_scope()
    tables = SqliteFileTables(unsteady, clock)
    tables.create_scope(scope)
    return SqliteReferences(tables, scope, policy=RetryPolicy(sleep=clock.sleep, attempts=3))


@pytest.mark.parametrize(
    "after",
    [[UnavailableError("the server starts")], [ReferenceConflictError("a deadlock", state="40P01") for _ in range(2)]],
    ids=["away", "beaten"],
)
def test_repetition_that_fails_leaves_the_outcome_open(
    references: FileReferenceStore, unsteady: UnsteadyFile, after: list[Exception]
) -> None:
    unsteady.faults, unsteady.is_unsteady = [UnknownOutcomeError("the answer was lost"), *after], True

    with pytest.raises(UnknownOutcomeError):
        references.add_files(AddFiles(files=(make_file("f", "r"),), request="monday"))
    assert [reference.filename for reference in references.references()] == ["f"]


def test_first_attempt_that_fails_did_not_happen(references: FileReferenceStore, unsteady: UnsteadyFile) -> None:
    unsteady.faults, unsteady.is_unsteady = [UnavailableError("the server starts")], True

    with pytest.raises(UnavailableError):
        references.add_files(AddFiles(files=(make_file("f", "r"),), request="monday"))
    assert references.references() == []
