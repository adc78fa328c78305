"""How a change becomes the truth: look the head up, run the change, write its objects and swap the reference; and know the outcome."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from headwater.commits.backoff import CommitBackoff
from headwater.commits.batch import BatchFullError, BatchMember, CommitBatch
from headwater.commits.commit import Head
from headwater.commits.group_commit import CommitQueue, Signal, TurnTimeoutError, Waiter
from headwater.commits.publish import publish_batch
from headwater.commits.transaction import Memos, Transaction
from headwater.errors import (
    BeatenError,
    CommitTimeoutError,
    HeadwaterError,
    RefusedError,
    StoreFullError,
    UnavailableError,
    UnknownCommitError,
    UnknownOutcomeError,
)
from headwater.store import ObjectId, RealmStore, id_text

R = TypeVar("R")
_EVICTIONS = 2
"""So often a change may take too long for a group; then it commits alone."""


def commit_change(
    rows: RealmStore,
    reference: str,
    change: Callable[[Transaction], R],
    *,
    message: str = "",
    properties: dict[str, Any] | None = None,
    fence: Callable[[], None] | None = None,
) -> CommitResult[R]:
    """Run ``change`` on the head of a reference and make what it edited the new head.

    Commits of several threads to one reference may be published together. Each is a commit of its own, on top of the one before.

    change        gets a Transaction; runs on this thread, and perhaps more than once, so it has no other effect than its edits.
                  What it raises is passed on, and nothing is written. It must not commit itself
    fence         called before every run of ``change``; raises FencedError when the work was taken over by another
    raises        MissingError: no such reference · UnreadableError: its head cannot be read, nothing was changed ·
                  CommitTimeoutError: not committed within the time-out, of which waiting for other threads is part ·
                  StoreFullError: not committed, for the disk is full ·
                  UnknownCommitError: may be committed, and the database does not answer · RefusedError: called within a change
    """
    call = CommitCall(rows, reference, change, message, properties or {}, fence)
    call.refuse_nesting()
    if inside.is_committing:  # the handler of a signal, or a fence: it cannot wait for the commit that it interrupts
        return _Committer(call).alone()
    try:
        inside.is_committing = True
        return _Committer(call).run()
    finally:
        inside.is_committing = False


class _Committer:
    """Brings one call to its end: in turn with the others, or alone."""

    def __init__(self, call: CommitCall[Any]) -> None:
        self._call = call
        self._rows = call.rows
        self._clock = call.rows.clock
        self._evictions = 0
        self._pace = CommitBackoff(call.rows.settings, self._clock)

    def run(self) -> CommitResult[Any]:
        while True:
            try:
                return self._in_turn() if self._evictions < _EVICTIONS else self.alone(may_return=True)
            except RestartError:
                continue

    # in turn with the others

    def _in_turn(self) -> CommitResult[Any]:
        place = Waiter(self._call.started)
        try:
            queue = CommitQueue.enter(self._rows, self._call.reference, place)
            while True:
                order: Signal | None = queue.wait(place)
                if order is Signal.RUN:
                    order = self._take_turn(queue, place)
                if order is Signal.PUBLISH:
                    order = self._publish(queue, place)
                if order is Signal.ANSWER:
                    return self._call.answer()
                if order is Signal.SAY_UNKNOWN:
                    self._call.say_unknown(place.unclear)
        except TurnTimeoutError:
            place.leave()
            return self._call.give_up(queue.fault)
        except BaseException:
            place.leave()
            raise

    def _take_turn(self, queue: CommitQueue, place: Waiter) -> Signal | None:
        """Run the change with the baton. What to do next; None: wait for an order."""
        call = self._call
        if call.attempts and call.is_over:
            raise TurnTimeoutError
        call.attempts += 1
        group = queue.group
        if group is None or (not group and group.prepared < call.started):  # no answer is older than its question
            try:
                group = CommitBatch.look(self._rows, call.reference)
            except UnavailableError as fault:
                self._start_over(queue, place, fault)
                return None
            queue.begin(group)
        queue.run()
        call.run(group, lambda: queue.has_waiting)
        if not queue.stop(place):
            self._evictions += 1
            raise RestartError
        made = call.made
        if made is not None:
            try:
                group.take_in(self._rows, made)
            except BatchFullError:
                queue.step_back(place)
                return None
        if not group:
            place.leave()
            return Signal.ANSWER
        return Signal.PUBLISH if queue.join(place, is_last=made is not None and made.inner is None) else None

    def _publish(self, queue: CommitQueue, place: Waiter) -> Signal | None:
        group = queue.group
        assert group is not None
        try:
            is_applied = publish_batch(self._rows, group, until=queue.until, pause=self._pace.pause)
        except UnknownOutcomeError as unclear:
            queue.finish(place, Signal.SAY_UNKNOWN, unclear)
            return Signal.SAY_UNKNOWN
        except HeadwaterError as fault:
            if _may_pass(fault):
                self._start_over(queue, place, fault)
                return None
            if len(group) == 1 and self._call.made is not None:
                group.is_torn = True
                raise
            queue.part()  # one of them is to blame
            return None
        except Exception:
            group.is_torn = not group.is_open
            raise
        if not is_applied:
            self._start_over(queue, place, BeatenError("others were faster"), self._clock.monotonic() - group.prepared)
            return None
        queue.finish(place, Signal.ANSWER)
        return Signal.ANSWER

    def _start_over(self, queue: CommitQueue, place: Waiter, fault: HeadwaterError, attempt_seconds: float = 0.0) -> None:
        """With all members of the group; and after a while, in which nobody else begins."""
        queue.start_over(place, fault)
        if not self._call.is_over:
            self._pace.pause(queue.lost, attempt_seconds=attempt_seconds)
        queue.hand_on()

    # alone

    def alone(self, *, may_return: bool = False) -> CommitResult[Any]:
        """Outside of the queue: look, run, publish, and all of it again when another was faster.

        may_return    StartOverError, to stand in the queue again, when a run was quick at last: its work may be memoised
        """
        call, lost = self._call, 0
        fault: HeadwaterError | None = None
        while not call.is_over:
            call.attempts += 1
            began, is_quick = self._clock.monotonic(), False
            try:
                group = CommitBatch.look(self._rows, call.reference)
            except UnavailableError as away:
                fault = away
            else:
                called = self._clock.monotonic()
                call.run(group)
                is_quick = self._clock.monotonic() - called < self._rows.settings.commit_member_seconds
                if call.made is not None:
                    group.take_in(self._rows, call.made)
                    fault = self._publish_alone(group)
                if call.made is None or fault is None:
                    return call.answer()
            if may_return and is_quick:
                self._evictions -= 1
                raise RestartError
            lost += 1
            self._pace.pause(lost, attempt_seconds=self._clock.monotonic() - began if isinstance(fault, BeatenError) else 0.0)
        return call.give_up(fault)

    def _publish_alone(self, group: CommitBatch) -> HeadwaterError | None:
        """Why it did not happen; None: it did."""
        try:
            is_applied = publish_batch(self._rows, group, until=self._call.until, pause=self._pace.pause)
        except UnavailableError as fault:
            if not _may_pass(fault):
                raise
            return fault
        except UnknownOutcomeError as unclear:
            self._call.say_unknown(unclear)
        return None if is_applied else BeatenError("others were faster")


def _may_pass(fault: HeadwaterError) -> bool:
    """Whether it may be otherwise within the time-out of a commit. A disk that is full stays full until a person looks."""
    return isinstance(fault, UnavailableError) and not isinstance(fault, StoreFullError)


@dataclass(frozen=True, slots=True)
class CommitResult(Generic[R]):
    """What came of a commit: the change's own result, and whether it changed anything.

    commit_id     the head afterwards: the new commit, or the old head when nothing changed (None when there is no commit yet)
    attempts      how often the change was run, or was to be run when the database was away
    """

    result: R
    changed: bool
    commit_id: ObjectId | None
    attempts: int
    elapsed_seconds: float = field(default=0.0, compare=False)


class RestartError(Exception):
    """The last run counts for nothing: it took too long for its group, or the outcome of the group that it saw is not known."""


class _Run(NamedTuple, Generic[R]):
    """How a run of the change ended: with a result or a fault, on which head, and with what commit; None: it changed nothing."""

    result: R | None
    fault: Exception | None
    head_id: ObjectId | None
    made: BatchMember | None


class CommitCall(Generic[R]):
    """``started`` and all times are monotonic seconds of the store's clock."""

    def __init__(
        self,
        rows: RealmStore,
        reference: str,
        change: Callable[[Transaction], R],
        message: str,
        properties: dict[str, Any],
        fence: Callable[[], None] | None,
    ) -> None:
        self.rows = rows
        self.reference = reference
        self.started = rows.clock.monotonic()
        self.until = self.started + rows.settings.commit_timeout_seconds
        self.attempts = 0
        self._change = change
        self._message = message
        self._properties = properties
        self._fence = fence
        self._memos: Memos = {}
        self._last: _Run[R] | None = None

    @property
    def is_over(self) -> bool:
        """Whether its time is."""
        return self.rows.clock.monotonic() >= self.until

    @property
    def made(self) -> BatchMember | None:
        """The commit of the last run; None when it changed nothing, or failed."""
        return None if self._last is None else self._last.made

    def run(self, group: CommitBatch, has_company: Callable[[], bool] = lambda: False) -> None:
        """Run the change on top of a group. Nothing is taken in by that.

        has_company   whether others wait to go on from here, asked when the change has returned
        raises        what the fence raises. What the change raises is the answer, to be told when it is sure
        """
        tx = group.begin(self.rows, self._memos)
        if self._fence is not None:
            self._fence()
        inside.change = self.reference
        try:
            result = self._change(tx)
            inside.change = None
            is_alone = not group and not has_company()
            made = group.make(self.rows, tx, message=self._message, properties=self._properties, is_alone=is_alone)
        except Exception as fault:  # noqa: BLE001  it is the caller's
            self._last = _Run(None, fault, tx.head_id, None)
        else:
            self._last = _Run(result, None, tx.head_id, made)
        finally:
            inside.change = None

    # what the caller is told

    def answer(self) -> CommitResult[R]:
        """What came of the last run, which is sure by now."""
        assert self._last is not None
        result, fault, head_id, made = self._last
        if fault is not None:
            try:
                raise fault
            finally:
                del fault, self._last  # its traceback holds this frame, and so itself
        commit_id = head_id if made is None else made.id
        elapsed = self.rows.clock.monotonic() - self.started
        return CommitResult(result, made is not None, commit_id, self.attempts, elapsed)  # type: ignore[arg-type]  # no fault: a result

    def say_unknown(self, unclear: UnknownOutcomeError | None) -> NoReturn:
        """Nobody knows what became of its commit. One that has made none starts over instead: it has written nothing."""
        if self.made is None:
            raise RestartError
        raise UnknownCommitError(
            f"commit {id_text(self.made.id)} to reference {self.reference!r} of realm {self.rows.realm!r} may have happened:"
            f" {unclear}. Look for it in the log before doing it again",
            commit_id=self.made.id,
            reference=self.reference,
            realm=self.rows.realm,
            attempts=self.attempts,
        ) from unclear

    def give_up(self, fault: HeadwaterError | None) -> NoReturn:
        """Its time is over, and it certainly did not happen. ``fault``: the last thing that went wrong."""
        elapsed = self.rows.clock.monotonic() - self.started
        tried = (
            f" and {self.attempts} attempts" if self.attempts else ", waiting for its turn behind other commits of this process"
        )
        raise CommitTimeoutError(
            f"commit to reference {self.reference!r} of realm {self.rows.realm!r} did not happen within {elapsed:.1f} s{tried}"
            f"{'' if fault is None else f' ({fault})'}: try again later",
            attempts=self.attempts,
            elapsed_seconds=elapsed,
        ) from fault

    def refuse_nesting(self) -> None:
        if inside.change is not None:
            raise RefusedError(
                f"a commit to reference {self.reference!r} of realm {self.rows.realm!r} was begun inside a change for reference"
                f" {inside.change!r}: a change may run more than once and others wait for it, so it commits nothing itself,"
                " to no reference of any store. Edit through its transaction, or commit after it"
            )


class _Inside(threading.local):
    """What this thread is doing: whether it commits, and for which reference it runs a change."""

    is_committing = False
    change: str | None = None


inside = _Inside()


def _forget() -> None:
    """A child that was forked inside a change may commit: the change goes on in the parent."""
    inside.is_committing, inside.change = False, None


os.register_at_fork(after_in_child=_forget)


@dataclass(frozen=True, slots=True)
class SeriesPart(Generic[R]):
    """One commit of a series; see ``commit_change`` for its parts. A change that edits and adds nothing makes no commit."""

    change: Callable[[Transaction], R]
    message: str = ""
    properties: dict[str, Any] = field(default_factory=dict)


def commit_series(
    rows: RealmStore,
    reference: str,
    parts: Callable[[Head | None], Sequence[SeriesPart[R]]],
    *,
    fence: Callable[[], None] | None = None,
) -> list[CommitResult[R]]:
    """Make all of these commits, in order, or none. The answers are in the order of the parts.

    parts         told the head that they will stand on; asked anew for each attempt. What it raises is passed on, like what a
                  change raises, and nothing is written
    fence         called before every change
    raises        as ``commit_change`` does · RefusedError too when they take more bytes than may be published together
    """
    lead: CommitCall[None] = CommitCall(rows, reference, lambda tx: None, "", {}, fence)
    lead.refuse_nesting()
    was_committing, inside.is_committing = inside.is_committing, True
    try:
        return _commit(lead, parts, fence)
    finally:
        inside.is_committing = was_committing


def _commit(
    lead: CommitCall[None], parts: Callable[[Head | None], Sequence[SeriesPart[R]]], fence: Callable[[], None] | None
) -> list[CommitResult[R]]:
    clock = lead.rows.clock
    pace = CommitBackoff(lead.rows.settings, clock)
    lost = 0
    fault: HeadwaterError | None = None
    while not lead.is_over:
        lead.attempts += 1
        began = clock.monotonic()
        try:
            group = CommitBatch.look(lead.rows, lead.reference)
        except UnavailableError as away:
            fault = away
        else:
            calls = _made(lead, group, parts(group.head), fence)
            fault = _published(lead, group, calls) if group else None
            if fault is None:
                return [call.answer() for call in calls]
        lost += 1
        pace.pause(lost, attempt_seconds=clock.monotonic() - began if isinstance(fault, BeatenError) else 0.0)
    return lead.give_up(fault)


def _made(
    lead: CommitCall[None], group: CommitBatch, parts: Sequence[SeriesPart[R]], fence: Callable[[], None] | None
) -> list[CommitCall[R]]:
    """Every part run on what those before it leave, and taken in."""
    calls: list[CommitCall[R]] = []
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        call = CommitCall(lead.rows, lead.reference, part.change, part.message, part.properties, fence)
        call.attempts = lead.attempts
        call.run(group, lambda is_last=is_last: not is_last)  # type: ignore[misc]  # bound now, for each part
        if call.made is None:
            call.answer()  # raises what the change has raised
        else:
            _take_in(lead, group, call)
        calls.append(call)
    return calls


def _take_in(lead: CommitCall[None], group: CommitBatch, call: CommitCall[R]) -> None:
    assert call.made is not None
    try:
        group.take_in(lead.rows, call.made)
    except BatchFullError:
        raise RefusedError(
            f"these commits to reference {lead.reference!r} of realm {lead.rows.realm!r} take more than the"
            f" {lead.rows.settings.commit_group_bytes} bytes that are published together: make fewer at a time"
        ) from None


def _published(lead: CommitCall[None], group: CommitBatch, calls: Sequence[CommitCall[R]]) -> HeadwaterError | None:
    """Why it did not happen; None: it did."""
    pace = CommitBackoff(lead.rows.settings, lead.rows.clock)
    try:
        is_applied = publish_batch(lead.rows, group, until=lead.until, pause=pace.pause)
    except UnavailableError as fault:
        return fault
    except UnknownOutcomeError as unclear:
        last = next(call for call in reversed(calls) if call.made is not None)
        last.say_unknown(unclear)
    return None if is_applied else BeatenError("others were faster")
