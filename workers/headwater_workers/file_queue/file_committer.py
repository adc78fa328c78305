"""The committers: threads that take batches from the queue, apply them, and settle them once the outcomes are written.

What becomes of a request:

- applied, or refused by the rules of file references: its outcome is written, and it leaves the queue;
- its file table is unknown, closed or purged: it is refused with a line in the log, for there is nowhere to write;
- the database does not answer: it comes back after a while, with full jitter, as often as it takes;
- it commits a job whose assignment is on its way (a queue is not FIFO): it comes back, too, and is set aside after ten minutes of that;
- it fails in a way that nobody foresaw, or its reader dies: a strike. With strikes it is handed out alone, so that it harms no other;
- it cannot be read, or has too many strikes: it is set aside with the reason, and waits for a person.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec
import structlog

from headwater.clock import Clock
from headwater.errors import NotFoundError, RefusedError, UnavailableError, UnknownOutcomeError
from headwater.files import (
    FileReferenceStore,
    FileRequest,
    FileScope,
    FileTableClosedError,
    RequestOutcome,
    RequestState,
    kind_of,
)
from headwater_workers.file_queue.request_queue import (
    LEASE_SECONDS,
    QueuedRequest,
    RequestBatch,
    RequestQueue,
    SetAsideRequest,
    Settlement,
    scope_of,
)
from headwater_workers.file_queue.request_senders import decode_request

BATCH_REQUESTS = 100
STRIKES = 5
"""Unexpected failures and lost readers until a request is set aside."""
OPEN_TABLES = 1000
BACKOFF_SECONDS, BACKOFF_LIMIT_SECONDS = 0.2, 30.0
"""The first and longest ceiling of the wait after a database did not answer; doubles, and chance chooses below it."""
SETTLE_PAUSES = (0.1, 1.0, 3.0)
ASSIGNMENT_SECONDS = 600.0
WAIT_SECONDS = 1.0
"""How long a committer waits for a ring; then it looks for what came back by itself."""
REPORT_SECONDS = 30.0
OUTAGE_SECONDS = 60.0
"""How often a database that does not answer is logged while it stays away."""
SERIALIZATION_STATES = ("40001", "40P01")
"""SQLSTATEs of transactions that a database ended because of others: a serialization failure and a deadlock."""

log = structlog.get_logger(__name__)


class _ReadableRequest(NamedTuple):
    """A request of the queue and what it says."""

    queued: QueuedRequest
    request: FileRequest


class FileCommitter:
    """Applies what the queue hands out. ``step`` may be called by several threads at a time.

    open_references  opens the references of a file table, which stay open
    chance           a number from 0 to 1
    assignment_seconds  how long a commit waits for its assignment, as far as this process has seen it wait
    """

    def __init__(
        self,
        queue: RequestQueue,
        open_references: Callable[[FileScope], FileReferenceStore],
        *,
        clock: Clock,
        chance: Callable[[], float] = random.random,
        assignment_seconds: float = ASSIGNMENT_SECONDS,
    ) -> None:
        self._queue = queue
        self._tables = _OpenTables(open_references)
        self._clock = clock
        self._chance = chance
        self._assignment_seconds = assignment_seconds
        self._lock = threading.Lock()
        self._held: dict[str, RequestBatch] = {}
        self._counts: Counter[str] = Counter()
        self._outage = ("", 0.0)
        self._waiting: dict[str, float] = {}
        """Since when commits wait for their assignments, by the keys of their messages."""

    def step(self) -> bool:
        """Take a batch and settle it. Returns whether there was one.

        raises        UnavailableError when the broker does not answer; what was held comes back after its lease
        """
        batch = self._queue.take(BATCH_REQUESTS)
        if batch is None:
            return False
        with self._lock:
            self._held[batch.id] = batch
        try:
            self._settle(batch, self._apply(batch))
        finally:
            with self._lock:
                del self._held[batch.id]
        return True

    def _settle(self, batch: RequestBatch, settlement: Settlement) -> None:
        """Settle a batch, and try again while the broker does not answer: a batch that comes back by its lease costs it a strike."""
        for pause in SETTLE_PAUSES:
            try:
                return self._queue.settle_batch(batch, settlement)
            except UnavailableError:
                self._clock.sleep(pause)
        return self._queue.settle_batch(batch, settlement)

    def renew_leases(self) -> None:
        """Renew the leases of what is held, and hand the counters on."""
        with self._lock:
            held = list(self._held.values())
        if held:
            self._queue.renew_batches(held)
        self._count(self._tables.take_counts())
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if counts:
            try:
                self._queue.add_counts(counts)
            except UnavailableError:
                self._count(counts)
                raise

    def _apply(self, batch: RequestBatch) -> Settlement:
        started = time.monotonic()
        aside: list[SetAsideRequest] = []
        readable: list[_ReadableRequest] = []
        for queued in batch.requests:
            try:
                request = decode_request(queued.body)
            except (msgspec.MsgspecError, RefusedError, UnicodeDecodeError) as fault:
                aside.append(self._set_aside(batch.table, queued, f"the message cannot be read: {fault}"))
                continue
            if queued.strikes >= STRIKES:
                reason = f"{queued.strikes} readers failed or died while they held it"
                aside.append(self._set_aside(batch.table, queued, reason, request))
            else:
                readable.append(_ReadableRequest(queued, request))
        settlement = self._apply_readable(batch.table, readable, aside) if readable else Settlement(set_aside=aside)
        seconds = round(time.monotonic() - started, 3)
        log.info(
            "batch of requests",
            table=batch.table,
            requests=len(batch.requests),
            tries=1 + max(queued.tries + queued.strikes for queued in batch.requests),
            later=len(settlement.later),
            set_aside=len(settlement.set_aside),
            seconds=seconds,
        )
        return settlement

    def _apply_readable(self, table: str, readable: Sequence[_ReadableRequest], aside: list[SetAsideRequest]) -> Settlement:
        try:
            scope = scope_of(table)
        except ValueError:
            aside += [self._set_aside(table, each.queued, "its file table has no such name", each.request) for each in readable]
            return Settlement(set_aside=aside)
        try:
            references = self._tables.open_table(scope)
        except NotFoundError as fault:
            self._refuse(table, readable, fault)
            return Settlement(set_aside=aside)
        except Exception as fault:  # noqa: BLE001 - as below
            return self._after_fault(table, readable, aside, fault)
        try:
            return self._apply_each(table, references, readable, aside)
        except FileTableClosedError as fault:
            self._refuse(table, readable, fault)
            return Settlement(set_aside=aside)
        except Exception as fault:  # noqa: BLE001 - the door: what nobody foresaw must not end the committer
            return self._after_fault(table, readable, aside, fault)

    def _after_fault(
        self, table: str, readable: Sequence[_ReadableRequest], aside: list[SetAsideRequest], fault: Exception
    ) -> Settlement:
        if isinstance(fault, UnavailableError | UnknownOutcomeError):
            return self._try_later(table, readable, aside, fault)
        return self._strike(table, readable, aside, fault)

    def _apply_each(
        self, table: str, references: FileReferenceStore, readable: Sequence[_ReadableRequest], aside: list[SetAsideRequest]
    ) -> Settlement:
        """Apply a batch as one; where that fails for a reason that nobody foresaw, each request alone, so that the others go on."""
        try:
            outcomes = references.apply_requests([each.request for each in readable])
        except (UnavailableError, UnknownOutcomeError, FileTableClosedError):
            raise
        except Exception as fault:
            if len(readable) == 1:
                raise
            log.warning("a batch of requests failed: each is applied alone", table=table, error=_error_text(fault))
        else:
            self._note_outcomes(table, outcomes)
            return self._await_assignments(table, readable, outcomes, aside)
        later: list[QueuedRequest] = []
        delay = 0.0
        for each in readable:
            alone = self._apply_readable(table, [each], aside)
            later += alone.later
            delay = max(delay, alone.delay_seconds)
        return Settlement(later, delay, aside)

    def _await_assignments(
        self,
        table: str,
        readable: Sequence[_ReadableRequest],
        outcomes: Sequence[RequestOutcome],
        aside: list[SetAsideRequest],
    ) -> Settlement:
        """Hand back the commits that came before their assignments; set aside those that have waited for too long."""
        now, limit = self._clock.monotonic(), self._assignment_seconds
        early, late = list[_ReadableRequest](), list[tuple[_ReadableRequest, str]]()
        with self._lock:
            # Others may have handled what this process has seen wait.
            self._waiting = {key: since for key, since in self._waiting.items() if now - since < 2 * limit}
            for each, outcome in zip(readable, outcomes, strict=True):
                key = each.queued.key
                if outcome.state is not RequestState.WAITING:
                    self._waiting.pop(key, None)
                elif now - self._waiting.setdefault(key, now) < limit:
                    early.append(each)
                else:
                    self._waiting.pop(key, None)
                    reason = f"{outcome.reason}, nor to any other one: its assignment has not come in {limit:g} s"
                    late.append((each, reason))
        aside += [self._set_aside(table, each.queued, reason, each.request) for each, reason in late]
        return self._hand_back(early, aside) if early else Settlement(set_aside=aside)

    def _note_outcomes(self, table: str, outcomes: Sequence[RequestOutcome]) -> None:
        states = Counter(outcome.state for outcome in outcomes)
        self._count({"applied": states[RequestState.APPLIED], "refused": states[RequestState.REFUSED]})
        for outcome in outcomes:
            if outcome.state is RequestState.REFUSED:
                log.info("request refused", table=table, request=outcome.request, kind=outcome.kind, reason=outcome.reason)

    def _refuse(self, table: str, readable: Sequence[_ReadableRequest], fault: Exception) -> None:
        """Drop requests for a file table that takes no more: there is nowhere to write their outcome."""
        self._count({"refused": len(readable)})
        for each in readable:
            log.warning(
                "request refused",
                table=table,
                request=each.request.request,
                kind=kind_of(each.request),
                reason=_error_text(fault),
            )

    def _try_later(
        self, table: str, readable: Sequence[_ReadableRequest], aside: list[SetAsideRequest], fault: Exception
    ) -> Settlement:
        self._tell_outage(table, str(fault))
        return self._hand_back(readable, aside)

    def _hand_back(self, readable: Sequence[_ReadableRequest], aside: list[SetAsideRequest]) -> Settlement:
        tries = max(each.queued.tries for each in readable)
        ceiling = min(BACKOFF_LIMIT_SECONDS, BACKOFF_SECONDS * 2 ** min(tries, 30))
        delay = ceiling * self._chance()
        self._count({"retried": len(readable)})
        return Settlement([replace(each.queued, tries=each.queued.tries + 1) for each in readable], delay, aside)

    def _tell_outage(self, table: str, error: str) -> None:
        now = self._clock.monotonic()
        with self._lock:
            is_told = error == self._outage[0] and now - self._outage[1] < OUTAGE_SECONDS
            if not is_told:
                self._outage = (error, now)
        if not is_told:
            log.warning("the database does not answer: requests are tried again", table=table, error=error)

    def _strike(
        self, table: str, readable: Sequence[_ReadableRequest], aside: list[SetAsideRequest], fault: Exception
    ) -> Settlement:
        later = []
        for each in readable:
            struck = replace(each.queued, strikes=each.queued.strikes + 1)
            if struck.strikes >= STRIKES:
                aside.append(self._set_aside(table, struck, _error_text(fault), each.request))
            else:
                later.append(struck)
        self._count({"retried": len(later)})
        strikes = max((queued.strikes for queued in later), default=STRIKES)
        if later:
            log.error(
                "a request failed unexpectedly: it is tried again", table=table, strikes=strikes, error=_error_text(fault)
            )
        return Settlement(later, BACKOFF_SECONDS * 2**strikes * self._chance(), aside)

    def _set_aside(self, table: str, queued: QueuedRequest, reason: str, request: FileRequest | None = None) -> SetAsideRequest:
        record = SetAsideRequest(
            key=queued.key,
            table=table,
            request=request.request if request is not None else "",
            kind=kind_of(request) if request is not None else "",
            reason=reason,
            strikes=queued.strikes,
            time=self._clock.now(),
            body=queued.body,
        )
        self._count({"set aside": 1})
        log.error("request set aside", table=table, request=record.request, kind=record.kind, key=record.key, reason=reason)
        return record

    def _count(self, counts: Mapping[str, int]) -> None:
        with self._lock:
            self._counts.update({name: count for name, count in counts.items() if count})


class _OpenTables:
    """References of file tables that stay open, the last used ones. Safe for threads."""

    def __init__(self, open_references: Callable[[FileScope], FileReferenceStore]) -> None:
        self._open_references = open_references
        self._lock = threading.Lock()
        self._open: dict[FileScope, FileReferenceStore] = {}
        self._told: dict[FileScope, Mapping[str, int]] = {}
        self._counts: Counter[str] = Counter()

    def open_table(self, scope: FileScope) -> FileReferenceStore:
        """raises what opening raises; one that was purged meanwhile raises FileTableClosedError when it is written to"""
        with self._lock:
            references = self._open.pop(scope, None)
            if references is not None:
                self._open[scope] = references  # the last in the order
                return references
        opened = self._open_references(scope)
        with self._lock:
            references = self._open.setdefault(scope, opened)  # another thread may have opened it meanwhile
            if len(self._open) > OPEN_TABLES:
                oldest = next(iter(self._open))
                self._note_counts(oldest)
                del self._open[oldest], self._told[oldest]
        return references

    def take_counts(self) -> Counter[str]:
        """What was counted by SQLSTATE since the last call."""
        with self._lock:
            for scope in self._open:
                self._note_counts(scope)
            counts, self._counts = self._counts, Counter()
        return counts

    def _note_counts(self, scope: FileScope) -> None:
        now = {state: number for state, number in self._open[scope].counts().items() if state in SERIALIZATION_STATES}
        self._counts.update(now)
        self._counts.subtract(self._told.get(scope, {}))
        self._told[scope] = now


class CommitterThreads:
    """Runs a committer in threads until it is stopped. A broker that does not answer is asked again.

    beat          called by each loop with its name, again and again
    lease_seconds of the queue
    """

    def __init__(
        self,
        committer: FileCommitter,
        queue: RequestQueue,
        *,
        threads: int,
        beat: Callable[[str], None],
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._committer = committer
        self._queue = queue
        self._beat = beat
        self._renew_seconds = lease_seconds / 4
        self._stopped = threading.Event()
        self._ended = threading.Event()
        names = [f"committer {number}" for number in range(1, threads + 1)]
        self._threads = [threading.Thread(target=self._run, args=(name,), name=name, daemon=True) for name in names]
        self._renewal = threading.Thread(target=self._renew, name="leases", daemon=True)

    def start(self) -> None:
        for thread in (*self._threads, self._renewal):
            thread.start()

    def stop(self) -> None:
        """Let the threads end after the batches that they hold; does not wait."""
        self._stopped.set()

    def join(self, timeout_seconds: float) -> bool:
        """Wait for the end of the threads. Returns whether all have ended; leases are renewed until then."""
        end = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        self._ended.set()
        self._renewal.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self, name: str) -> None:
        trouble = ""
        while not self._stopped.is_set():
            self._beat(name)
            try:
                if not self._committer.step():
                    self._queue.wait(WAIT_SECONDS)
            except Exception as fault:  # noqa: BLE001 - the door: a committer that ended would leave the queue unserved
                if trouble != (trouble := _error_text(fault)):
                    log.warning("the queue of requests cannot be read: again soon", error=trouble)
                self._stopped.wait(WAIT_SECONDS)
            else:
                if trouble:
                    log.info("the queue of requests is read again")
                trouble = ""

    def _renew(self) -> None:
        reported = time.monotonic()
        while True:
            is_over = self._ended.wait(self._renew_seconds)
            try:
                self._committer.renew_leases()
                if time.monotonic() - reported > REPORT_SECONDS:
                    reported = time.monotonic()
                    self._report()
            except Exception as fault:  # noqa: BLE001 - the door: leases that end are held to be harmless, and are renewed again
                log.warning("the leases of requests could not be renewed", error=_error_text(fault))
            if is_over:
                return

    def _report(self) -> None:
        figures = self._queue.figures()
        if figures.waiting or figures.held or figures.delayed:
            log.info(
                "queue of requests",
                waiting=dict(figures.waiting),
                held=sum(figures.held.values()),
                delayed=sum(figures.delayed.values()),
                set_aside=figures.set_aside,
            )


def _error_text(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}"
