"""The suite of file references works, and its auditor sees what it is there to see. How fast anything is, no test asks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.long


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import reference_options

    return reference_options


@pytest.fixture
def contention(options: ModuleType) -> ModuleType:
    from benchmarks import contention

    return contention


@pytest.fixture
def database(postgresql_server: Any, request: pytest.FixtureRequest) -> str:
    """The URL of a new database."""
    name = "headwater_test_files"
    postgresql_server.execute(f'CREATE DATABASE "{name}"')
    request.addfinalizer(lambda: postgresql_server.execute(f'DROP DATABASE "{name}" WITH (FORCE)'))
    return str(postgresql_server.url(database=name))


HARMS = (
    "DELETE FROM headwater.file_references WHERE part = 'r0' AND filename LIKE '%in-0001%'",
    "UPDATE headwater.file_references SET row_count = row_count - 1 WHERE filename LIKE '%out-r1%'",
)
"""A job that was applied in part, and rows that were lost."""
UNTRACKED = {
    1: "UPDATE headwater.file_counts SET count = count + 1 WHERE filename LIKE '%out-r1%'",
    2: "DELETE FROM headwater.file_references WHERE part = 'DUMMY' AND filename LIKE '%out-r1%'",
    3: "DELETE FROM headwater.tracked_files WHERE filename LIKE '%out-r1%'",
}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_auditor_counts_what_must_not_be(options: ModuleType, contention: ModuleType, database: str, number: int) -> None:
    import psycopg
    from benchmarks.reference_watch import one_number

    option, workload = options.ReferenceOption(number), contention.Workload(leaves=2, files=2)
    audit = workload.audit_query(option)
    with option.create_store(database) as store, psycopg.connect(database, autocommit=True) as connection:
        workload.load(store)
        store.commit_jobs([workload.commit_of(workload.order.index(1))])
        before = one_number(connection, audit.statement)
        after = []
        for harm in (*HARMS, UNTRACKED[number]):
            with connection.transaction(force_rollback=True):
                connection.execute(harm.encode())
                after.append(one_number(connection, audit.statement))

    assert before == 0
    assert all(after)


def test_oracle_names_a_job_that_was_not_applied(options: ModuleType, contention: ModuleType, database: str) -> None:
    option, workload = options.ReferenceOption(3), contention.Workload(leaves=2, files=2)
    with option.create_store(database) as store:
        workload.load(store)
        store.commit_jobs([workload.commit_of(0)])
        problems = contention.oracle_problems(store, workload, is_whole=True)
        store.commit_jobs([workload.commit_of(1)])

        assert problems == ["3 references differ from the oracle's"]
        assert contention.oracle_problems(store, workload, is_whole=True) == []


def test_wait_begins_when_another_job_has_ended(contention: ModuleType) -> None:
    from benchmarks.commit_crowd import CrowdResult, JobRecord

    records = [JobRecord(1, 10.0, 11.0, 1), JobRecord(1, 11.0, 12.0, 1), JobRecord(1, 12.0, 15.0, 1)]
    result = CrowdResult(released=10.0, records=records)

    assert contention.submission_waits(result, workers=2) == [1.0, 2.0, 4.0]


@pytest.mark.rare(3)
def test_quick_run_of_the_suite_finds_nothing_wrong(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.files", "--quick", "--only=keys", f"--into={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    results = json.loads((tmp_path / "files.json").read_text())

    assert {row["case"].partition(":")[0] for row in results["rows"]} == {"keys"}
    assert {row["value"] for row in results["rows"] if row["unit"] == "problems"} == {0}
    assert results["settings"]["server"]["fsync"] == "on"
    assert f"written to {tmp_path}" in done.stdout
