"""How a change becomes the truth: look the head up, run the change, write its objects and swap the reference; and know the outcome.

Commits of one process to one reference take turns (``queues``), and those that wait for each other are published together
(``groups``). What became of a write is found out in ``outcomes``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from headwater.commits.ancestry import descends, load_head
from headwater.commits.groups import Group, GroupIsFullError, Member
from headwater.commits.outcomes import publish
from headwater.commits.pacing import Pace
from headwater.commits.queues import Order, Place, Queue, TimeIsOverError
from headwater.commits.transaction import Memos, Transaction
from headwater.errors import (
    BeatenError,
    CommitTimeoutError,
    HeadwaterError,
    RefusedError,
    UnavailableError,
    UnknownCommitError,
    UnknownOutcomeError,
)
from headwater.store import ObjectId, RealmStore, id_text

__all__ = ["Committed", "commit", "descends", "load_head"]

R = TypeVar("R")
_EVICTIONS = 2
"""So often a change may take too long for a group; then it commits alone."""


@dataclass(frozen=True, slots=True)
class Committed(Generic[R]):
    """What came of a commit: the change's own result, and whether it changed anything.

    commit_id     the head afterwards: the new commit, or the old head when nothing changed (None when there is no commit yet)
    """

    result: R
    changed: bool
    commit_id: ObjectId | None
    attempts: int
    elapsed_seconds: float = field(default=0.0, compare=False)


def commit(
    rows: RealmStore,
    reference: str,
    change: Callable[[Transaction], R],
    *,
    message: str = "",
    properties: dict[str, Any] | None = None,
    fence: Callable[[], None] | None = None,
) -> Committed[R]:
    """Run ``change`` on the head of a reference and make what it edited the new head.

    Commits of several threads to one reference may be published together. Each has a commit of its own, on top of the one before.

    change        gets a Transaction; runs on this thread, and perhaps more than once, so it has no other effect than its edits.
                  What it raises is passed on, and nothing is written. It must not commit itself
    fence         called before every run of ``change``; raises FencedError when the work was taken over by another
    raises        MissingError: no such reference · UnreadableError: its head cannot be read, nothing was changed ·
                  CommitTimeoutError: not committed within the time-out, of which waiting for other threads is part ·
                  UnknownCommitError: may be committed, and the database does not answer · RefusedError: called within a change
    """
    return _Committer(rows, reference, change, message, properties or {}, fence).run()


class _Run(NamedTuple, Generic[R]):
    """How a run of the change ended: with a result or a fault, on which head, and the commit that it made; None: it changed nothing."""

    result: R | None
    fault: Exception | None
    head_id: ObjectId | None
    made: Member | None


class _StartOverError(Exception):
    """This run counts for nothing: the baton was taken away, or the outcome of the group that it saw is not known."""


class _Committer(Generic[R]):
    def __init__(
        self,
        rows: RealmStore,
        reference: str,
        change: Callable[[Transaction], R],
        message: str,
        properties: dict[str, Any],
        fence: Callable[[], None] | None,
    ) -> None:
        self._rows = rows
        self._reference = reference
        self._change = change
        self._message = message
        self._properties = properties
        self._fence = fence
        self._clock = rows.clock
        self._timeout = rows.settings.commit_timeout_seconds
        self._limit = rows.settings.commit_member_seconds
        self._started = self._clock.monotonic()
        self._attempts = 0
        self._evictions = 0
        self._last: _Run[R] | None = None
        self._memos: Memos = {}
        self._pace = Pace(rows.settings, self._clock)

    def run(self) -> Committed[R]:
        self._refuse_nesting()
        if _inside.is_committing:  # a signal's handler, or a fence: it cannot wait for the commit that it interrupts
            return self._alone()
        try:
            _inside.is_committing = True
            while True:
                try:
                    return self._in_turn() if self._evictions < _EVICTIONS else self._alone(may_return=True)
                except _StartOverError:
                    continue
        finally:
            _inside.is_committing = False

    def _refuse_nesting(self) -> None:
        if _inside.change is not None:
            raise RefusedError(
                f"a commit to reference {self._reference!r} of realm {self._rows.realm!r} was begun inside a change for reference"
                f" {_inside.change!r}: a change may run more than once and others wait for it, so it commits nothing itself,"
                " to no reference of any store. Edit through its transaction, or commit after it"
            )

    # in turn with the others

    def _in_turn(self) -> Committed[R]:
        place = Place(self._started)
        try:
            queue = Queue.enter(self._rows, self._reference, place)
            while True:
                order: Order | None = queue.wait(place)
                if order is Order.RUN:
                    order = self._take_turn(queue, place)
                if order is Order.PUBLISH:
                    order = self._publish(queue, place)
                if order is Order.ANSWER:
                    return self._answer()
                if order is Order.SAY_UNKNOWN:
                    self._say_unknown(place.unclear)
        except TimeIsOverError:
            place.leave()
            return self._give_up(queue.fault)
        except BaseException:
            place.leave()
            raise

    def _take_turn(self, queue: Queue, place: Place) -> Order | None:
        """Run the change with the baton. What to do next; None: wait for an order."""
        if self._attempts and self._is_over():
            raise TimeIsOverError
        self._attempts += 1
        group = queue.group
        if group is None or (not group and group.prepared < self._started):  # no answer is older than its question
            try:
                group = Group.look(self._rows, self._reference)
            except UnavailableError as fault:
                self._start_over(queue, place, fault)
                return None
            queue.begin(group)
        queue.run()
        run = self._run(group, queue)
        if not queue.stop(place):
            self._evictions += 1
            raise _StartOverError
        self._last = run
        try:
            if run.made is not None:
                group.take_in(self._rows, run.made)
        except GroupIsFullError:
            queue.step_back(place)
            return None
        if not group:
            place.leave()
            return Order.ANSWER
        is_last = run.made is not None and run.made.inner is None
        return Order.PUBLISH if queue.join(place, is_last=is_last) else None

    def _publish(self, queue: Queue, place: Place) -> Order | None:
        group = queue.group
        assert group is not None
        try:
            is_applied = publish(self._rows, group, until=queue.until, pause=self._pace.pause)
        except UnavailableError as fault:
            self._start_over(queue, place, fault)
            return None
        except UnknownOutcomeError as unclear:
            queue.finish(place, Order.SAY_UNKNOWN, unclear)
            return Order.SAY_UNKNOWN
        except Exception:
            group.is_torn = not group.is_open  # this member cannot publish it: each of the others shall try by itself
            raise
        if not is_applied:
            self._start_over(queue, place, BeatenError("others were faster"), self._clock.monotonic() - group.prepared)
            return None
        queue.finish(place, Order.ANSWER)
        return Order.ANSWER

    def _start_over(self, queue: Queue, place: Place, fault: HeadwaterError, attempt_seconds: float = 0.0) -> None:
        """With all members of the group; and after a while, in which nobody else begins."""
        queue.start_over(place, fault)
        if not self._is_over():
            self._pace.pause(queue.lost, attempt_seconds=attempt_seconds)
        queue.hand_on()

    # alone

    def _alone(self, *, may_return: bool = False) -> Committed[R]:
        """Outside of the queue, for a change that would hold the others up: look, run, swap, and again when another was faster.

        may_return    to the queue, when a run was quick at last: its work may be memoised
        """
        lost, fault = 0, HeadwaterError()
        while not self._is_over():
            self._attempts += 1
            attempt_seconds = 0.0
            try:
                group = Group.look(self._rows, self._reference)
            except UnavailableError as raised:
                fault = raised
            else:
                began = self._clock.monotonic()
                self._last = self._run(group)
                is_quick = self._clock.monotonic() - began < self._limit
                if self._last.made is None:
                    return self._answer()
                group.take_in(self._rows, self._last.made)
                try:
                    if publish(self._rows, group, until=self._started + self._timeout, pause=self._pace.pause):
                        return self._answer()
                    fault, attempt_seconds = BeatenError("others were faster"), self._clock.monotonic() - group.prepared
                except UnavailableError as raised:
                    fault = raised
                except UnknownOutcomeError as unclear:
                    self._say_unknown(unclear)
                if may_return and is_quick:
                    self._evictions -= 1
                    raise _StartOverError
            lost += 1
            self._pace.pause(lost, attempt_seconds=attempt_seconds)
        return self._give_up(fault)

    # both

    def _run(self, group: Group, queue: Queue | None = None) -> _Run[R]:
        """Call the change on what the group holds. Nothing is taken in by that."""
        tx = group.begin(self._rows, self._memos)
        if self._fence is not None:
            self._fence()
        _inside.change = self._reference
        try:
            result = self._change(tx)
            _inside.change = None
            is_alone = not group and (queue is None or not queue.has_waiting)
            made = group.make(self._rows, tx, message=self._message, properties=self._properties, is_alone=is_alone)
        except Exception as fault:  # noqa: BLE001  it is the caller's, who gets it as soon as what it saw is sure
            return _Run(None, fault, tx.head_id, None)
        finally:
            _inside.change = None
        return _Run(result, None, tx.head_id, made)

    def _answer(self) -> Committed[R]:
        assert self._last is not None
        result, fault, head_id, made = self._last
        if fault is not None:
            try:
                raise fault
            finally:
                del fault, self._last  # they hold each other
        commit_id = head_id if made is None else made.id
        return Committed(result, made is not None, commit_id, self._attempts, self._elapsed())  # type: ignore[arg-type]  # no fault: a result

    def _say_unknown(self, unclear: UnknownOutcomeError | None) -> NoReturn:
        assert self._last is not None
        if self._last.made is None:
            raise _StartOverError  # it has written nothing, so its own outcome is known
        commit_id = self._last.made.id
        raise UnknownCommitError(
            f"commit {id_text(commit_id)} to reference {self._reference!r} of realm {self._rows.realm!r} may have happened:"
            f" {unclear}. Look for it in the log before doing it again",
            commit_id=commit_id,
            reference=self._reference,
            realm=self._rows.realm,
            attempts=self._attempts,
        ) from unclear

    def _elapsed(self) -> float:
        return self._clock.monotonic() - self._started

    def _is_over(self) -> bool:
        return self._elapsed() >= self._timeout

    def _give_up(self, fault: HeadwaterError | None) -> NoReturn:
        elapsed = self._elapsed()
        tried = (
            f" and {self._attempts} attempts"
            if self._attempts
            else ", waiting for its turn behind other commits of this process"
        )
        raise CommitTimeoutError(
            f"commit to reference {self._reference!r} of realm {self._rows.realm!r} did not happen within {elapsed:.1f} s{tried}"
            f"{f' ({fault})' if fault else ''}: try again later",
            attempts=self._attempts,
            elapsed_seconds=elapsed,
        ) from None


class _Inside(threading.local):
    """What this thread is doing: whether it commits, and for which reference it runs a change."""

    is_committing = False
    change: str | None = None


_inside = _Inside()


def _forget() -> None:
    """A child that was forked inside a change may commit: the change goes on in the parent."""
    _inside.is_committing, _inside.change = False, None


os.register_at_fork(after_in_child=_forget)
