"""The check of a realm as a task: its run counts all findings, and has as many of them as there is room for."""

from __future__ import annotations

import msgspec
import pytest
from harm import lose, rows_of

from headwater.catalogs import Catalog
from headwater.fsck import FindingCode, FsckFinding, check_store, run_fsck
from headwater.fsck.fsck_task import FINDINGS_KEPT, findings_outcome
from headwater.jobs import FSCK, list_runs
from headwater.store import SYSTEM_REALM, ObjectId, Store
from headwater.tasks import TaskQueue, TaskStoppedError
from headwater.tasks.task import OUTCOME_BYTES


def finding(code: FindingCode = FindingCode.PIN_STALE, *, text: str = "x") -> FsckFinding:
    return FsckFinding(code, "acme", text, text, text, keys=(text,))


def test_sound_realm_has_no_findings(store: Store, lake: Catalog) -> None:
    queue = TaskQueue(store)
    claim = queue.claim_task(queue.submit_task(FSCK, realm="acme").id, "worker")
    assert claim is not None
    outcome = run_fsck(store, claim)
    claim.finish_task(outcome)
    [run] = list_runs(store, kind=FSCK)

    assert claim.progress is not None and claim.progress.done == claim.progress.total
    assert (outcome["findings"], outcome["first"], outcome["isCut"]) == (0, [], False)
    assert (run.realm, run.counts) == ("acme", outcome)


def test_damage_is_in_the_run(store: Store, lake: Catalog, commits: list[ObjectId]) -> None:
    lose(rows_of(store), commits[-1])
    store.cache.clear()
    queue = TaskQueue(store)
    claim = queue.claim_task(queue.submit_task(FSCK, realm="acme").id, "worker")
    assert claim is not None
    outcome = run_fsck(store, claim)

    assert outcome["damage"] > 0 and outcome["first"][0]["weight"] == "DAMAGE"
    assert outcome["findings"] == len(check_store(store, realm="acme")) == sum(outcome["codes"].values())


def test_system_realm_is_checked(store: Store, lake: Catalog) -> None:
    queue = TaskQueue(store)
    claim = queue.claim_task(queue.submit_task(FSCK, realm=SYSTEM_REALM).id, "worker")
    assert claim is not None

    assert run_fsck(store, claim)["damage"] == 0


def test_check_ends_where_its_worker_is_told_to(store: Store, lake: Catalog) -> None:
    queue = TaskQueue(store)
    task = queue.submit_task(FSCK, realm="acme").id
    claim = queue.claim_task(task, "worker")
    assert claim is not None
    claim.request_stop("its worker stops")

    with pytest.raises(TaskStoppedError):
        run_fsck(store, claim)
    assert list_runs(store, kind=FSCK) == []


def test_gravest_findings_are_kept() -> None:
    many = [finding()] * (FINDINGS_KEPT + 5)
    outcome = findings_outcome([*many, finding(FindingCode.HEAD_UNREADABLE)])

    assert outcome["first"][0]["code"] == "HEAD_UNREADABLE"
    assert (len(outcome["first"]), outcome["findings"], outcome["isCut"]) == (FINDINGS_KEPT, FINDINGS_KEPT + 6, True)
    assert (outcome["damage"], outcome["trouble"], outcome["leftover"]) == (1, 0, FINDINGS_KEPT + 5)


def test_outcome_fits_into_a_task() -> None:
    outcome = findings_outcome([finding(text="ü" * 10_000)] * 300)

    assert 5 < len(outcome["first"]) < FINDINGS_KEPT and outcome["isCut"]
    assert len(msgspec.json.encode(outcome)) < OUTCOME_BYTES
