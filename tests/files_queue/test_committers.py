"""What committers make of requests: outcomes that are written once, retries, refusals, and what is set aside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from crowded_table import CrowdedTable

from headwater.errors import RefusedError, UnavailableError, UnknownOutcomeError
from headwater.files import (
    AddFiles,
    AssignJob,
    CommitJob,
    FileReference,
    FileReferenceStore,
    FileRequest,
    FileScope,
    ForgetFiles,
    PartitionId,
    RequestOutcome,
    RequestState,
    TrackedFile,
    apply_or_send,
    open_file_references,
    wait_for_outcomes,
)
from headwater.settings import Settings
from headwater.store import RealmKey, Store, open_store
from headwater_workers.file_queue import FileCommitter, QueuedRequest, QueuedRequestSender, RequestQueue, text_of_scope

OpenQueue = Callable[..., RequestQueue]
ROOT = PartitionId("root")


class FaultyReferences:
    """The references of a table, whose answers go wrong before or after requests are applied."""

    def __init__(self, references: FileReferenceStore, before: Callable[[Sequence[FileRequest]], None], after: list[Exception]):
        self._references = references
        self._before = before
        self._after = after

    def apply_requests(self, requests: Sequence[FileRequest]) -> list[RequestOutcome]:
        self._before(requests)
        outcomes = self._references.apply_requests(requests)
        if self._after:
            raise self._after.pop()
        return outcomes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._references, name)


class Committing:
    """A store, a queue, its sender, and a committer whose database fails as a test says.

    before        is called with the table's id and the requests before they are applied
    after         errors that are raised after requests were applied
    """

    def __init__(self, store: Store, queue: RequestQueue) -> None:
        self.store = store
        self.queue = queue
        self.sender = QueuedRequestSender(queue)
        self.committer = FileCommitter(queue, self._open, clock=store.clock, chance=lambda: 0.0)
        self.before: Callable[[str, Sequence[FileRequest]], None] = lambda table, requests: None
        self.after: list[Exception] = []

    def references(self, scope: FileScope) -> FileReferenceStore:
        return open_file_references(self.store, scope)

    def commit_all(self) -> int:
        """Until nothing is left. Returns the number of batches."""
        batches = 0
        while self.committer.step() or self.queue.has_requests():
            batches += 1
        self.committer.renew_leases()
        return batches

    def _open(self, scope: FileScope) -> FileReferenceStore:
        references = open_file_references(self.store, scope, awaits_assignments=True)
        return FaultyReferences(  # type: ignore[return-value]  # hands on what it does not have
            references, lambda requests: self.before(scope.table, requests), self.after
        )


@pytest.fixture
def committing(open_queue: OpenQueue, tmp_path: Path) -> Iterator[Committing]:
    with open_store(f"sqlite:///{tmp_path}/store.db", settings=Settings()) as store:
        yield Committing(store, open_queue())


@pytest.fixture
def table(committing: Committing) -> CrowdedTable:
    return CrowdedTable.create(committing.store)


def test_requests_are_applied_and_have_outcomes(committing: Committing, table: CrowdedTable) -> None:
    committing.sender.send_requests(table.scope, table.jobs)

    batches = committing.commit_all()

    assert table.faults(committing.references(table.scope)) == []
    assert batches == 1
    assert committing.queue.figures().counts == {"applied": 18, "refused": 2}


def test_duplicates_are_told_the_first_outcome(committing: Committing, table: CrowdedTable) -> None:
    for _ in range(3):
        committing.sender.send_requests(table.scope, table.jobs)
        committing.commit_all()

    assert table.faults(committing.references(table.scope)) == []


def early_commit(committing: Committing, table: CrowdedTable) -> tuple[AssignJob, CommitJob]:
    """An assignment, and a commit of its job that was sent before it."""
    references = committing.references(table.scope)
    references.add_files([TrackedFile(filename="new", references=(FileReference(filename="new", partition=ROOT, rows=1),))])
    output = FileReference(filename="merged", partition=ROOT, rows=1)
    [commit] = committing.sender.send_requests(table.scope, [CommitJob(job="early", inputs=("new",), output=output)])
    assert isinstance(commit, CommitJob)
    return AssignJob(job="early", partition=ROOT, filenames=("new",), request="assign"), commit


def test_commit_that_comes_before_its_assignment_waits_for_it(committing: Committing, table: CrowdedTable) -> None:
    assignment, commit = early_commit(committing, table)
    committing.committer.step()
    references = committing.references(table.scope)
    assert references.find_outcomes([commit.request]) == {}

    committing.sender.send_requests(table.scope, [assignment])
    committing.commit_all()

    told = references.find_outcomes([commit.request, assignment.request])
    assert [outcome.state for outcome in told.values()] == [RequestState.APPLIED] * 2


def test_commit_whose_assignment_does_not_come_is_set_aside(committing: Committing, table: CrowdedTable) -> None:
    _, commit = early_commit(committing, table)
    opener = partial(open_file_references, committing.store, awaits_assignments=True)
    FileCommitter(committing.queue, opener, clock=committing.store.clock, assignment_seconds=0).step()

    [reason] = committing.sender.find_set_aside(table.scope, [commit.request]).values()
    assert "not assigned to job 'early', nor to any other one" in reason
    assert committing.references(table.scope).find_outcomes([commit.request]) == {}


def test_requests_of_all_kinds_are_applied(committing: Committing, table: CrowdedTable) -> None:
    sent = committing.sender.send_requests(table.scope, [AddFiles(files=(TrackedFile(filename="new"),))])
    committing.commit_all()
    sent += committing.sender.send_requests(table.scope, [ForgetFiles(filenames=("new",))])
    committing.commit_all()

    outcomes = committing.references(table.scope).find_outcomes([request.request for request in sent])
    assert {(each.kind, each.state) for each in outcomes.values()} == {
        ("add", RequestState.APPLIED),
        ("forget", RequestState.APPLIED),
    }


def test_setting_says_which_requests_are_sent(committing: Committing, table: CrowdedTable) -> None:
    references = committing.references(table.scope)
    added = AddFiles(files=(TrackedFile(filename="new"),), request="add-new")
    settings = Settings(files_asynchronous="commit")

    told = apply_or_send(references, table.scope, [added, table.job(0)], settings=settings, sender=committing.sender)

    assert (list(told.outcomes), told.open) == (["add-new"], ("job-0",))
    committing.commit_all()
    assert references.find_outcomes(["job-0"])["job-0"].state is RequestState.APPLIED


def test_request_that_is_too_large_is_refused(committing: Committing, table: CrowdedTable) -> None:
    large = AddFiles(files=tuple(TrackedFile(filename=f"file-{number:0500d}") for number in range(300)))

    with pytest.raises(RefusedError, match=r"\(add\) for file table .* takes \d+ bytes.*: apply it at once"):
        committing.sender.send_requests(table.scope, [table.job(0), large])
    assert not committing.queue.has_requests()


def test_table_id_that_is_no_name_is_refused(committing: Committing, table: CrowdedTable) -> None:
    with pytest.raises(RefusedError, match="16 hex digits"):
        committing.sender.send_requests(FileScope(RealmKey(1), "../a|b"), table.jobs)


def test_message_that_cannot_be_read_is_set_aside(committing: Committing, table: CrowdedTable) -> None:
    committing.queue.push(text_of_scope(table.scope), [QueuedRequest("ab" * 16, b"\x83 no request")])
    committing.sender.send_requests(table.scope, table.jobs)

    committing.commit_all()

    [aside] = committing.queue.list_set_aside()
    assert (aside.request, aside.kind) == ("", "") and "cannot be read" in aside.reason
    assert table.faults(committing.references(table.scope)) == []


def test_requests_for_an_unknown_table_leave_the_queue(committing: Committing, table: CrowdedTable) -> None:
    committing.sender.send_requests(FileScope(RealmKey(99), "f" * 16), table.jobs)

    committing.commit_all()

    assert committing.queue.figures().counts == {"refused": 20}


def test_requests_for_a_closed_table_leave_the_queue(committing: Committing, table: CrowdedTable) -> None:
    committing.references(table.scope).close_scope()
    committing.sender.send_requests(table.scope, table.jobs)

    committing.commit_all()

    assert committing.queue.figures().counts == {"refused": 20}


def test_database_that_is_away_is_asked_again(committing: Committing, table: CrowdedTable) -> None:
    faults = [UnavailableError("away"), UnknownOutcomeError("who knows"), UnavailableError("away")]

    def fail(name: str, requests: Sequence[FileRequest]) -> None:
        if faults:
            raise faults.pop()

    committing.before = fail
    committing.sender.send_requests(table.scope, table.jobs)
    committing.commit_all()

    assert table.faults(committing.references(table.scope)) == []
    assert committing.queue.figures().counts["retried"] == 60


def test_retry_after_an_unclear_answer_applies_once(committing: Committing, table: CrowdedTable) -> None:
    committing.after = [UnknownOutcomeError("the connection is gone") for _ in range(3)]
    committing.sender.send_requests(table.scope, table.jobs)

    committing.commit_all()

    assert table.faults(committing.references(table.scope)) == []
    assert committing.after == []


def test_table_whose_database_is_away_delays_no_other(committing: Committing, table: CrowdedTable) -> None:
    def fail(name: str, requests: Sequence[FileRequest]) -> None:
        if name == table.scope.table:
            raise UnavailableError("away")

    other = CrowdedTable.create(committing.store, table="b")
    committing.before = fail
    committing.sender.send_requests(table.scope, table.jobs)
    committing.sender.send_requests(other.scope, other.jobs)
    committing.committer.step()
    committing.committer.step()

    assert other.faults(committing.references(other.scope)) == []


def test_table_with_many_jobs_delays_no_other(committing: Committing, table: CrowdedTable) -> None:
    crowd = CrowdedTable.create(committing.store, table="c", leaves=2)
    committing.sender.send_requests(crowd.scope, [crowd.job(0)] * 400)
    committing.committer.step()
    committing.sender.send_requests(table.scope, [table.job(0)])

    steps = 0
    while not committing.references(table.scope).find_outcomes(["job-0"]):
        committing.committer.step()
        steps += 1

    assert steps <= 2


def test_poison_is_set_aside_while_others_go_on(committing: Committing, table: CrowdedTable) -> None:
    def fail(name: str, requests: Sequence[FileRequest]) -> None:
        if any(request.request == "job-3" for request in requests):
            raise ZeroDivisionError("a bug of ours")

    committing.before = fail
    sent = committing.sender.send_requests(table.scope, table.jobs)
    committing.commit_all()
    [aside] = committing.queue.list_set_aside()

    assert (aside.request, aside.kind, aside.strikes) == ("job-3", "commit", 5)
    assert aside.reason == "ZeroDivisionError: a bug of ours"
    assert table.faults(committing.references(table.scope))[-1] == "outcome of job 3"
    committing.before = lambda table, requests: None
    committing.queue.retry_set_aside([aside.key])
    committing.commit_all()
    assert table.faults(committing.references(table.scope)) == []
    assert len(sent) == 20


def test_request_whose_readers_died_is_set_aside(committing: Committing, table: CrowdedTable) -> None:
    body = msgspec.msgpack.encode(table.job(0))
    committing.queue.push(text_of_scope(table.scope), [QueuedRequest("ab" * 16, body, strikes=5)])

    committing.commit_all()

    [aside] = committing.queue.list_set_aside()
    assert (aside.request, aside.reason) == ("job-0", "5 readers failed or died while they held it")


def test_wait_tells_what_was_set_aside(committing: Committing, table: CrowdedTable) -> None:
    def fail(name: str, requests: Sequence[FileRequest]) -> None:
        raise ZeroDivisionError("a bug of ours")

    committing.before = fail
    sent = committing.sender.send_requests(table.scope, [table.job(0)])
    committing.commit_all()

    waited = wait_for_outcomes(
        committing.references(table.scope), table.scope, sent, sender=committing.sender, timeout_seconds=60, clock=Leap()
    )

    assert (waited.set_aside, waited.open) == ({"job-0": "ZeroDivisionError: a bug of ours"}, ())


def test_wait_sends_again_what_was_lost(committing: Committing, table: CrowdedTable) -> None:
    clock = Leap(committing.commit_all)  # a committer works whenever the wait sleeps

    waited = wait_for_outcomes(
        committing.references(table.scope), table.scope, table.jobs, sender=committing.sender, timeout_seconds=120, clock=clock
    )

    assert len(waited.outcomes) == 20 and waited.open == ()
    assert 30 <= clock.monotonic() < 40


def test_wait_refuses_a_second_execution_of_a_job(committing: Committing, table: CrowdedTable) -> None:
    """Both executions have the job's id, and another output."""
    references = committing.references(table.scope)
    second = msgspec.structs.replace(table.job(0), output=msgspec.structs.replace(table.job(0).output, filename="other"))
    sent = [committing.sender.send_requests(table.scope, [job]) for job in (table.job(0), second)]
    committing.commit_all()

    waited = [
        wait_for_outcomes(references, table.scope, each, sender=committing.sender, timeout_seconds=5).outcomes["job-0"]
        for each in sent
    ]

    assert [(each.state.value, each.error) for each in waited] == [("APPLIED", ""), ("REFUSED", "RequestIdReusedError")]


def test_wait_ends_with_what_is_open(committing: Committing, table: CrowdedTable) -> None:
    sent = committing.sender.send_requests(table.scope, table.jobs[:2])

    waited = wait_for_outcomes(
        committing.references(table.scope), table.scope, sent, sender=committing.sender, timeout_seconds=5, clock=Leap()
    )

    assert waited.open == ("job-0", "job-1")


def test_wait_ends_as_soon_as_all_have_outcomes(committing: Committing, table: CrowdedTable) -> None:
    sent = committing.sender.send_requests(table.scope, table.jobs)
    thread = Thread(target=lambda: (time.sleep(0.1), committing.commit_all()))
    thread.start()

    waited = wait_for_outcomes(
        committing.references(table.scope), table.scope, sent, sender=committing.sender, timeout_seconds=30
    )
    thread.join()

    assert (len(waited.outcomes), waited.open) == (20, ())


class Leap:
    """A clock whose sleep takes no time, and calls something."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._meanwhile = meanwhile
        self._monotonic = 0.0

    def now(self) -> Any:
        return 0

    wall = now

    def monotonic(self) -> float:
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        self._monotonic += seconds
        self._meanwhile()
