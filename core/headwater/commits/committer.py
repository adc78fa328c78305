"""How a change is committed: look the head up, run the change, write its objects, swap the reference, and know the outcome.

commit_change       one change; in turn with the other threads of this process, with which it may share a group
commit_series       several changes of one caller, which are a group of their own, outside of the queue
complete_operation  the steps that follow the first durable step of an operation: repeated, for none may say that nothing happened
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from headwater.commits.commit import Head, Memos, Transaction
from headwater.commits.commit_backoff import CommitBackoff
from headwater.commits.commit_group import CommitGroup, GroupFullError, GroupMember, publish_group
from headwater.commits.commit_queue import CommitQueue, Signal, TurnTimeoutError, Waiter
from headwater.commits.durable_outcomes import confirm_outcome
from headwater.errors import (
    CommitTimeoutError,
    ConflictError,
    FencedError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    StoreFullError,
    SwapConflictError,
    UnavailableError,
    UnknownCommitError,
    UnknownOutcomeError,
)
from headwater.store import ObjectId, RealmStore, id_text

R = TypeVar("R")
_EVICTIONS = 2
"""How often a change may take too long for a group before it commits alone."""
_BEATEN_ALONE = 2
"""How often it is beaten there before it runs in turn again, however long it takes."""
_DENIALS = (SwapConflictError, ConflictError, NotFoundError, RefusedError)
"""They say that nothing happened."""


@dataclass(frozen=True, slots=True)
class CommitResult(Generic[R]):
    """The outcome of a commit: the change's own result, and whether it changed anything.

    commit_id     the head afterwards: the new commit, or the old head when nothing changed (None when there is no commit yet)
    attempts      how often the change was run, or was to be run when the database was away
    is_replay     the request was applied before, by the commit that ``commit_id`` names; this call has changed nothing
    """

    result: R
    changed: bool
    commit_id: ObjectId | None
    attempts: int
    elapsed_seconds: float = field(default=0.0, compare=False)
    is_replay: bool = False


_committer: ContextVar[str] = ContextVar("committer", default="")


@contextmanager
def committing_as(name: str) -> Iterator[None]:
    """Have every commit of this context note who made it, as property ``committer``, unless it says so itself."""
    token = _committer.set(name)
    try:
        yield
    finally:
        _committer.reset(token)


def _with_committer(properties: dict[str, Any] | None) -> dict[str, Any]:
    # read on the caller's own thread: a group is written by whichever thread leads it, and that one may serve somebody else
    name = _committer.get()
    return {**({"committer": name} if name else {}), **(properties or {})}


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
    raises        NotFoundError: no such reference · CorruptionError: its head cannot be read, nothing was changed ·
                  CommitTimeoutError: not committed within the time-out, of which waiting for other threads is part ·
                  StoreFullError: not committed, for the disk is full ·
                  UnknownCommitError: may be committed, and the database does not answer · RefusedError: called within a change
    """
    call = _CommitCall(rows, reference, change, message, _with_committer(properties), fence)
    call.refuse_nesting()
    if _thread.is_committing:  # the handler of a signal, or a fence: it cannot wait for the commit that it interrupts
        return _Committer(call).commit_alone()
    try:
        _thread.is_committing = True
        return _Committer(call).commit()
    finally:
        _thread.is_committing = False


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
    """Make several commits to one reference, one on top of the other, or none of them. The results are in the order of the parts.

    They are published together as a group of their own. Others may be faster, and then all of it is made again on their head.

    parts         given the head that they will stand on; asked anew for each attempt. What it raises is passed on, like what a
                  change raises, and nothing is written
    fence         called before every change
    raises        as ``commit_change`` does · RefusedError too when they take more bytes than may be published together
    """
    lead: _CommitCall[None] = _CommitCall(rows, reference, lambda tx: None, "", {}, fence)
    lead.refuse_nesting()
    was_committing, _thread.is_committing = _thread.is_committing, True
    try:
        return _commit_apart(lead, lambda group: _run_parts(lead, group, parts(group.head), fence))
    finally:
        _thread.is_committing = was_committing


def complete_operation(
    rows: RealmStore, step: Callable[[], R], *, done: str, passed_on: tuple[type[HeadwaterError], ...] = (FencedError,)
) -> R:
    """Run a step that follows a durable one: again while the database is away, until the commit time-out ends.

    From the first durable step on no error may say that nothing happened. Where repeating does not help, the outcome is unknown: a
    part is durable, and the same operation once more, or `headwater fsck --repair`, completes it.

    step          does no harm when it is run again
    done          a sentence that says what is durable already, and what to do if the rest is not
    passed_on     errors that say by themselves what happened to the operation
    raises        UnknownOutcomeError when the step did not come to its end · any other error of the step, if it does not claim that
                  nothing happened
    """
    ends = rows.clock.monotonic() + rows.settings.commit_timeout_seconds
    wait = rows.settings.commit_backoff_seconds
    unclear = set[str]()
    while True:
        try:
            answer = step()
            # What an earlier attempt may have done was found done, by a read.
            confirm_outcome(rows, *sorted(unclear))
            return answer
        except passed_on:
            raise
        except _DENIALS as fault:  # it would say that nothing happened, and a part of the operation is durable
            raise UnknownOutcomeError(f"{done} ({fault})") from fault
        except (UnavailableError, UnknownOutcomeError) as fault:
            unclear.update(fault.unclear if isinstance(fault, UnknownOutcomeError) else ())
            if rows.clock.monotonic() >= ends:
                raise UnknownOutcomeError(f"{done} ({fault})") from fault
        rows.clock.sleep(wait)
        wait = min(2 * wait, rows.settings.commit_backoff_limit_seconds)


class RestartError(Exception):
    """The last run is void: it took too long for its group, was beaten by those who waited, or the outcome of its group is unknown."""


class _Committer:
    """Runs one call to its end: in turn with other threads, or alone."""

    def __init__(self, call: _CommitCall[Any]) -> None:
        self._call = call
        self._rows = call.rows
        self._clock = call.rows.clock
        self._evictions = 0
        self._is_unhurried = False
        """Whether it is given time for its run. A long change would be beaten for ever by the short ones of its own process."""

    def commit(self) -> CommitResult[Any]:
        while True:
            try:
                if self._is_unhurried or self._evictions < _EVICTIONS:
                    return self._commit_in_turn()
                return self.commit_alone(may_return=True)
            except RestartError:
                continue

    def _commit_in_turn(self) -> CommitResult[Any]:
        waiter = Waiter(self._call.started)
        try:
            queue = CommitQueue.enter(self._rows, self._call.reference, waiter)
            while True:
                signal: Signal | None = queue.wait_for_signal(waiter)
                if signal is Signal.RUN:
                    signal = self._take_turn(queue, waiter)
                if signal is Signal.PUBLISH:
                    signal = self._publish_queued(queue, waiter)
                if signal is Signal.ANSWER:
                    return self._call.answer()
                if signal is Signal.SAY_UNKNOWN:
                    self._call.say_unknown(waiter.unclear)
        except TurnTimeoutError:
            waiter.leave()
            return self._call.give_up(queue.fault)
        except BaseException:
            waiter.leave()  # the baton goes on, and the others publish what this thread has added, if it came so far
            raise

    def _take_turn(self, queue: CommitQueue, waiter: Waiter) -> Signal | None:
        """Run the change with the baton. Returns what to do next; None: wait for a signal."""
        call = self._call
        # A call whose turn has come runs once, however late it is; its time limits the further attempts.
        if call.attempts and call.is_over:
            raise TurnTimeoutError
        group = queue.group
        if self._is_unhurried and group:  # it shares no group: those before it are published first
            queue.step_back(waiter)
            return None
        call.attempts += 1
        # Nobody is in the group yet, and its head was looked up before this call began: a commit that was done in between, and that
        # the caller may know of, would not be seen.
        if group is None or (not group and (self._is_unhurried or group.prepared < call.started)):
            try:
                group = CommitGroup.on_head(self._rows, call.reference)
            except UnavailableError as fault:
                self._start_over(queue, waiter, fault)
                return None
            queue.begin_group(group)
        began = self._clock.monotonic()
        queue.start_change(is_unhurried=self._is_unhurried)
        call.run_change(group, lambda: queue.has_waiting and not self._is_unhurried)
        if not queue.end_change(waiter):
            # The baton was taken away meanwhile: the group is another thread's, and perhaps published already without this change.
            self._evictions += 1
            self._is_unhurried = self._has_no_time_to_lose(self._clock.monotonic() - began)
            raise RestartError
        member = call.member
        if member is not None:
            try:
                group.add_member(self._rows, member)
            except GroupFullError:
                queue.step_back(waiter)
                return None
        if not group:  # it has seen a head that is published, and changed nothing
            waiter.leave()
            return Signal.ANSWER
        return Signal.PUBLISH if queue.join_group(waiter, is_last=member is not None and member.inner is None) else None

    def _has_no_time_to_lose(self, seconds: float) -> bool:
        """Whether a run took so long that there is no time to be beaten, and not so long that those who wait for it give up."""
        timeout = self._rows.settings.commit_timeout_seconds
        return timeout / 4 < seconds < timeout / 2

    def _publish_queued(self, queue: CommitQueue, waiter: Waiter) -> Signal | None:
        """Publish the group of the queue. Returns what to do next; None: wait for a signal."""
        group = queue.group
        assert group is not None, "told to publish without a group"
        try:
            is_applied = publish_group(self._rows, group, until=queue.until, pause=self._call.pause)
        except UnknownOutcomeError as unclear:
            queue.finish_group(waiter, Signal.SAY_UNKNOWN, unclear)
            return Signal.SAY_UNKNOWN
        except HeadwaterError as fault:
            if _may_pass(fault):
                self._start_over(queue, waiter, fault)
                return None
            if len(group) == 1 and self._call.member is not None:
                group.is_torn = True  # its only commit is to blame: those that have seen it run again, without it
                raise
            queue.split_group(waiter)  # one of them is the cause: each is published alone
            return None
        except Exception:
            # A group that may have been published must not run again: its outcome is found out by whoever gets the baton.
            group.is_torn = not group.is_open
            raise
        if not is_applied:
            self._start_over(queue, waiter, SwapConflictError("others were faster"), self._clock.monotonic() - group.prepared)
            return None
        queue.finish_group(waiter, Signal.ANSWER)
        return Signal.ANSWER

    def _start_over(self, queue: CommitQueue, waiter: Waiter, fault: HeadwaterError, attempt_seconds: float = 0.0) -> None:
        """Put all members of the group back, and pause before anybody runs again."""
        queue.start_over(waiter, fault)
        if not self._call.is_over:
            self._call.pause(queue.lost, attempt_seconds=attempt_seconds)
        queue.hand_on()

    def commit_alone(self, *, may_return: bool = False) -> CommitResult[Any]:
        """Outside of the queue: look, run, publish, and all of it again when another was faster.

        may_return    raise RestartError, to enter the queue again, once a run was quick, for its work may be memoised; or when it
                      was beaten too often
        """
        is_quick = False
        lost = 0

        def run(group: CommitGroup) -> list[_CommitCall[Any]]:
            nonlocal is_quick
            called = self._clock.monotonic()
            self._call.run_change(group)
            is_quick = self._clock.monotonic() - called < self._rows.settings.commit_member_seconds
            if self._call.member is not None:
                group.add_member(self._rows, self._call.member)
            return [self._call]

        def may_go_on() -> None:
            nonlocal lost
            lost += 1
            if may_return and is_quick:
                self._evictions -= 1
                raise RestartError
            if may_return and lost >= _BEATEN_ALONE:
                self._is_unhurried = True
                raise RestartError

        return _commit_apart(self._call, run, may_go_on)[0]


def _commit_apart(
    lead: _CommitCall[Any],
    run: Callable[[CommitGroup], Sequence[_CommitCall[R]]],
    may_go_on: Callable[[], None] = lambda: None,
) -> list[CommitResult[R]]:
    """Run changes on the head and publish their commits as a group of their own, again until it is published or the time is over.

    run           runs the changes and adds their commits to the group, in the order of their calls
    may_go_on     called after each attempt that was lost; what it raises ends the attempts
    """
    lost = 0
    fault: HeadwaterError | None = None
    while not lead.is_over:
        lead.attempts += 1
        began = lead.rows.clock.monotonic()
        try:
            group = CommitGroup.on_head(lead.rows, lead.reference)
        except UnavailableError as away:
            fault = away
        else:
            calls = run(group)
            # A list, no generator: a Ctrl-C that ends a generator half-way is swallowed by the interpreter.
            changing = [call for call in calls if call.member is not None]
            fault = _publish_own(lead, group, changing[-1]) if changing else None
            if fault is None:
                return [call.answer() for call in calls]
            may_go_on()
        lost += 1
        # A beaten attempt is followed by another as soon as one takes; one that met a fault is not.
        was_beaten = isinstance(fault, SwapConflictError)
        lead.pause(lost, attempt_seconds=lead.rows.clock.monotonic() - began if was_beaten else 0.0)
    return lead.give_up(fault)


def _run_parts(
    lead: _CommitCall[None], group: CommitGroup, parts: Sequence[SeriesPart[R]], fence: Callable[[], None] | None
) -> list[_CommitCall[R]]:
    """Run every part on top of those before it, and add it to the group."""
    calls: list[_CommitCall[R]] = []
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        call = _CommitCall(lead.rows, lead.reference, part.change, part.message, _with_committer(part.properties), fence)
        call.attempts = lead.attempts
        call.run_change(group, lambda is_last=is_last: not is_last)  # type: ignore[misc]  # bound now, for each part
        if call.member is None:
            call.answer()  # raises what the change has raised
        else:
            _add_part(lead, group, call.member)
        calls.append(call)
    return calls


def _add_part(lead: _CommitCall[None], group: CommitGroup, member: GroupMember) -> None:
    try:
        group.add_member(lead.rows, member)
    except GroupFullError:
        raise RefusedError(
            f"these commits to reference {lead.reference!r} of realm {lead.rows.realm!r} take more than the"
            f" {lead.rows.settings.commit_group_bytes} bytes that are published together: make fewer at a time"
        ) from None


def _publish_own(call: _CommitCall[Any], group: CommitGroup, last: _CommitCall[Any]) -> HeadwaterError | None:
    """Publish a group of one caller. Returns why it did not happen, if that may be otherwise at the next attempt; None on success.

    last          the call of its last commit; raises the error when the outcome is unknown
    """
    try:
        is_applied = publish_group(call.rows, group, until=call.until, pause=call.pause)
    except UnavailableError as fault:
        if not _may_pass(fault):
            raise
        return fault
    except UnknownOutcomeError as unclear:
        last.say_unknown(unclear)
    return None if is_applied else SwapConflictError("others were faster")


def _may_pass(fault: HeadwaterError) -> bool:
    """Whether a fault may pass within the time-out of a commit. A full disk stays full until a person acts."""
    return isinstance(fault, UnavailableError) and not isinstance(fault, StoreFullError)


class _ChangeRun(NamedTuple, Generic[R]):
    """How a run of the change ended: with a result or a fault, on which head, and with what commit; None: it changed nothing."""

    result: R | None
    fault: Exception | None
    head_id: ObjectId | None
    member: GroupMember | None


class _CommitCall(Generic[R]):
    """One call: its change, how the last run of it ended, and what its caller is told. All times are monotonic seconds."""

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
        self._backoff: CommitBackoff | None = None  # most calls never wait
        self._last: _ChangeRun[R] | None = None

    @property
    def is_over(self) -> bool:
        """Whether the time of this call is over."""
        return self.rows.clock.monotonic() >= self.until

    @property
    def member(self) -> GroupMember | None:
        """The commit of the last run; None when it changed nothing, or failed."""
        return None if self._last is None else self._last.member

    def pause(self, attempts_lost: int, *, attempt_seconds: float = 0.0) -> None:
        """Sleep before the next attempt; see ``CommitBackoff``, of which each call has its own."""
        if self._backoff is None:
            self._backoff = CommitBackoff(self.rows.settings, self.rows.clock)
        self._backoff.pause(attempts_lost, attempt_seconds=attempt_seconds)

    def run_change(self, group: CommitGroup, has_company: Callable[[], bool] = lambda: False) -> None:
        """Run the change on top of a group. Nothing is added to the group by that.

        has_company   whether others wait to go on from here, asked when the change has returned
        raises        what the fence raises. What the change raises is the answer, to be told when it is sure
        """
        tx = group.begin_transaction(self.rows, self._memos)
        if self._fence is not None:
            self._fence()
        _thread.change = self.reference
        try:
            result = self._change(tx)
            _thread.change = None
            is_alone = not group and not has_company()
            member = group.make_member(self.rows, tx, message=self._message, properties=self._properties, is_alone=is_alone)
        except Exception as fault:  # noqa: BLE001  it is the caller's
            # Not raised yet: the head that the change saw may be another member's, which nobody has published. Beaten, this change
            # runs again, and may well not raise.
            self._last = _ChangeRun(None, fault, tx.head_id, None)
        else:
            self._last = _ChangeRun(result, None, tx.head_id, member)
        finally:
            _thread.change = None

    def answer(self) -> CommitResult[R]:
        """Return or raise the outcome of the last run, which is certain by now."""
        assert self._last is not None, "there is no answer before the first run"
        result, fault, head_id, member = self._last
        if fault is not None:
            try:
                raise fault
            finally:
                del fault, self._last  # its traceback holds this frame, and so itself
        commit_id = head_id if member is None else member.id
        elapsed = self.rows.clock.monotonic() - self.started
        return CommitResult(result, member is not None, commit_id, self.attempts, elapsed)  # type: ignore[arg-type]  # no fault: a result

    def say_unknown(self, unclear: UnknownOutcomeError | None) -> NoReturn:
        """Raise UnknownCommitError for its commit. A call without a commit has written nothing, and starts over."""
        if self.member is None:
            raise RestartError
        raise UnknownCommitError(
            f"commit {id_text(self.member.id)} to reference {self.reference!r} of realm {self.rows.realm!r} may have happened:"
            f" {unclear}. Look for it in the log before doing it again",
            commit_id=self.member.id,
            reference=self.reference,
            realm=self.rows.realm,
            attempts=self.attempts,
        ) from unclear

    def give_up(self, fault: HeadwaterError | None) -> NoReturn:
        """Raise CommitTimeoutError: the time is over, and the commit certainly did not happen. ``fault`` is the last error."""
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
        if _thread.change is not None:
            raise RefusedError(
                f"a commit to reference {self.reference!r} of realm {self.rows.realm!r} was begun inside a change for reference"
                f" {_thread.change!r}: a change may run more than once and others wait for it, so it commits nothing itself,"
                " to no reference of any store. Edit through its transaction, or commit after it"
            )


class _ThreadState(threading.local):
    """What this thread is doing: whether it commits, and for which reference it runs a change."""

    is_committing = False
    change: str | None = None


_thread = _ThreadState()


def _forget_commit() -> None:
    """Let a child that was forked inside a change commit: the change goes on in the parent."""
    _thread.is_committing, _thread.change = False, None


os.register_at_fork(after_in_child=_forget_commit)
