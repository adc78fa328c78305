"""``headwater task run`` and ``headwater runs``: a task here and now, and what is on record of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.fsck.fsck_findings import FindingCode, FindingWeight, FsckFinding
from headwater.fsck.fsck_task import findings_outcome
from headwater.outcome_text import has_findings, outcome_lines
from headwater.store import ObjectId, id_of, id_text
from headwater.tasks import LeaseWatch, TaskQueue


@pytest.fixture
def run_task(headwater: CommandLine, realm: str) -> str:
    """The id of a collection that was run."""
    return str(headwater.data("task", "run", "gc", realm)["id"])


def test_task_of_a_kind_is_run_and_shown(headwater: CommandLine, realm: str) -> None:
    told = headwater.ok("task", "run", "gc", realm, "-v")

    assert "SUCCEEDED" in told
    assert "garbage" in told


@pytest.mark.parametrize("kind", ["expire-snapshots", "report-files"])
def test_task_of_a_catalog_is_run(headwater: CommandLine, realm: str, tmp_path: Path, kind: str) -> None:
    headwater.ok("catalog", "create", f"{realm}/lake", "--base-location", f"file://{tmp_path}/lake")
    shown = headwater.data("task", "run", kind, f"{realm}/lake")

    assert (shown["kind"], shown["state"], shown["subject"]) == (kind, "SUCCEEDED", "lake")


def test_check_of_a_realm_is_run_and_kept(headwater: CommandLine, realm: str) -> None:
    told = headwater.ok("task", "run", "fsck", realm)

    assert "nothing was found: all is well" in told
    assert [run["kind"] for run in headwater.data("runs", "list", "--kind", "fsck")] == ["fsck"]


@pytest.mark.parametrize(("weight", "is_for_a_person"), [(FindingWeight.DAMAGE, True), (FindingWeight.LEFTOVER, False)])
def test_findings_of_a_check_are_told(weight: FindingWeight, is_for_a_person: bool) -> None:
    code = next(code for code in FindingCode if code.weight is weight)
    outcome = findings_outcome([FsckFinding(code, "acme", "lake/main", "it cannot be read", "restore it")])

    assert outcome_lines("fsck", outcome) == [f"1 finding: 1 {code}", f"  {weight} {code}: lake/main: it cannot be read"]
    assert has_findings("fsck", outcome) is is_for_a_person


def test_waiting_task_is_run_by_its_id(headwater: CommandLine, realm: str) -> None:
    waiting = headwater.data("gc", "run", realm, "--detach")["id"]
    shown = headwater.data("task", "run", waiting)

    assert (shown["id"], shown["state"], shown["attempt"]) == (waiting, "SUCCEEDED", 1)


def test_task_that_is_asked_for_already_is_taken(headwater: CommandLine, realm: str) -> None:
    waiting = headwater.data("gc", "run", realm, "--detach")["id"]

    assert headwater.data("task", "run", "gc", realm)["id"] == waiting


def test_task_that_succeeded_is_shown_and_not_run_again(headwater: CommandLine, run_task: str) -> None:
    assert headwater.data("task", "run", run_task)["attempt"] == 1


def test_task_that_was_cancelled_is_refused(headwater: CommandLine, realm: str) -> None:
    waiting = headwater.data("gc", "run", realm, "--detach")["id"]
    headwater.ok("task", "cancel", waiting)
    result = headwater("task", "run", waiting)

    assert result.exit_code == 5
    assert "CANCELLED" in result.stderr


def test_task_run_has_a_lease_of_its_own(headwater: CommandLine, store: Store, run_task: str) -> None:
    tasks = TaskQueue(store)
    task = tasks.read_task(id_of(run_task)).value

    assert "(command line)" in task.attempts[-1].owner
    assert tasks.claim_task(ObjectId(id_of(run_task)), "another", LeaseWatch(store.clock, 60)) is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["gc"], "say of what: headwater task run gc REALM"),
        (["gc", "acme/lake"], "gc is of a whole realm: headwater task run gc acme"),
        (["fsck", "acme/lake"], "fsck is of a whole realm: headwater task run fsck acme"),
        (["expire-snapshots", "acme"], "REALM/CATALOG"),
        (["export", "acme"], "headwater realm export asks for it"),
        (["nothing", "acme"], "'nothing' is no kind of task"),
        (["nothing"], "neither the id of a task nor one of the kinds"),
    ],
)
def test_unsound_task_is_a_wrong_call(headwater: CommandLine, words: list[str], told: str) -> None:
    result = headwater("task", "run", *words)

    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.parametrize(
    "words", [["gc", "nobody"], ["report-files", "acme/nothing"], ["file-gc", "acme/nothing"], ["0000000000000007"]]
)
def test_task_on_what_is_not_there_is_not_found(headwater: CommandLine, realm: str, words: list[str]) -> None:
    assert headwater("task", "run", *words).exit_code == 3
    assert headwater.data("task", "list", "--realm", realm) == []


def test_run_is_listed(headwater: CommandLine, run_task: str) -> None:
    assert [run["task"] for run in headwater.data("runs", "list", "--kind", "gc")] == [run_task]


def test_run_is_shown_with_its_counts(headwater: CommandLine, run_task: str) -> None:
    shown = headwater.data("runs", "show", run_task)

    assert (shown["task"], shown["kind"], shown["attempt"]) == (run_task, "gc", 1)
    assert shown["counts"]["scanned"] > 0


@pytest.mark.parametrize("more", [[], ["--attempt", "7"]])
def test_run_that_is_not_on_record_is_not_found(headwater: CommandLine, run_task: str, more: list[str]) -> None:
    result = headwater("runs", "show", run_task if more else id_text(ObjectId(7)), *more)

    assert result.exit_code == 3
    assert "headwater runs list" in result.stderr


def test_report_of_runs_is_a_page(headwater: CommandLine, run_task: str, tmp_path: Path) -> None:
    headwater.ok("runs", "report", tmp_path / "runs.html")

    assert "<html" in (tmp_path / "runs.html").read_text()


def test_former_names_of_runs_still_work(headwater: CommandLine, run_task: str, tmp_path: Path) -> None:
    listed = json.loads(headwater("-o", "json", "gc", "log").stdout)
    headwater.ok("gc", "report", tmp_path / "runs.html")

    assert [run["task"] for run in listed] == [run_task]
    assert "log" not in [line.split()[0] for line in headwater.ok("gc", "--help").splitlines() if line.startswith("  ")]
