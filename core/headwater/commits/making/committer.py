"""How a change becomes the truth: look the head up, run the change, write its objects and swap the reference; and know the outcome.

calls         what was asked, and what is told
queues        who may commit to a reference now
groups        what is published together
outcomes      publishing it, and finding out what became of that
pacing        how long to wait before it is tried again
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from headwater.commits.making.calls import Call, Committed, StartOverError, inside
from headwater.commits.making.groups import Group, GroupIsFullError
from headwater.commits.making.outcomes import publish
from headwater.commits.making.pacing import Pace
from headwater.commits.making.queues import Order, Place, Queue, TimeIsOverError
from headwater.commits.making.transaction import Transaction
from headwater.errors import BeatenError, HeadwaterError, StoreFullError, UnavailableError, UnknownOutcomeError
from headwater.store import RealmStore

__all__ = ["Committed", "commit"]

R = TypeVar("R")
_EVICTIONS = 2
"""So often a change may take too long for a group; then it commits alone."""


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

    Commits of several threads to one reference may be published together. Each is a commit of its own, on top of the one before.

    change        gets a Transaction; runs on this thread, and perhaps more than once, so it has no other effect than its edits.
                  What it raises is passed on, and nothing is written. It must not commit itself
    fence         called before every run of ``change``; raises FencedError when the work was taken over by another
    raises        MissingError: no such reference · UnreadableError: its head cannot be read, nothing was changed ·
                  CommitTimeoutError: not committed within the time-out, of which waiting for other threads is part ·
                  StoreFullError: not committed, for the disk is full ·
                  UnknownCommitError: may be committed, and the database does not answer · RefusedError: called within a change
    """
    call = Call(rows, reference, change, message, properties or {}, fence)
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

    def __init__(self, call: Call[Any]) -> None:
        self._call = call
        self._rows = call.rows
        self._clock = call.rows.clock
        self._evictions = 0
        self._pace = Pace(call.rows.settings, self._clock)

    def run(self) -> Committed[Any]:
        while True:
            try:
                return self._in_turn() if self._evictions < _EVICTIONS else self.alone(may_return=True)
            except StartOverError:
                continue

    # in turn with the others

    def _in_turn(self) -> Committed[Any]:
        place = Place(self._call.started)
        try:
            queue = Queue.enter(self._rows, self._call.reference, place)
            while True:
                order: Order | None = queue.wait(place)
                if order is Order.RUN:
                    order = self._take_turn(queue, place)
                if order is Order.PUBLISH:
                    order = self._publish(queue, place)
                if order is Order.ANSWER:
                    return self._call.answer()
                if order is Order.SAY_UNKNOWN:
                    self._call.say_unknown(place.unclear)
        except TimeIsOverError:
            place.leave()
            return self._call.give_up(queue.fault)
        except BaseException:
            place.leave()
            raise

    def _take_turn(self, queue: Queue, place: Place) -> Order | None:
        """Run the change with the baton. What to do next; None: wait for an order."""
        call = self._call
        if call.attempts and call.is_over:
            raise TimeIsOverError
        call.attempts += 1
        group = queue.group
        if group is None or (not group and group.prepared < call.started):  # no answer is older than its question
            try:
                group = Group.look(self._rows, call.reference)
            except UnavailableError as fault:
                self._start_over(queue, place, fault)
                return None
            queue.begin(group)
        queue.run()
        call.run(group, lambda: queue.has_waiting)
        if not queue.stop(place):
            self._evictions += 1
            raise StartOverError
        made = call.made
        if made is not None:
            try:
                group.take_in(self._rows, made)
            except GroupIsFullError:
                queue.step_back(place)
                return None
        if not group:
            place.leave()
            return Order.ANSWER
        return Order.PUBLISH if queue.join(place, is_last=made is not None and made.inner is None) else None

    def _publish(self, queue: Queue, place: Place) -> Order | None:
        group = queue.group
        assert group is not None
        try:
            is_applied = publish(self._rows, group, until=queue.until, pause=self._pace.pause)
        except UnknownOutcomeError as unclear:
            queue.finish(place, Order.SAY_UNKNOWN, unclear)
            return Order.SAY_UNKNOWN
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
        queue.finish(place, Order.ANSWER)
        return Order.ANSWER

    def _start_over(self, queue: Queue, place: Place, fault: HeadwaterError, attempt_seconds: float = 0.0) -> None:
        """With all members of the group; and after a while, in which nobody else begins."""
        queue.start_over(place, fault)
        if not self._call.is_over:
            self._pace.pause(queue.lost, attempt_seconds=attempt_seconds)
        queue.hand_on()

    # alone

    def alone(self, *, may_return: bool = False) -> Committed[Any]:
        """Outside of the queue: look, run, publish, and all of it again when another was faster.

        may_return    StartOverError, to stand in the queue again, when a run was quick at last: its work may be memoised
        """
        call, lost = self._call, 0
        fault: HeadwaterError | None = None
        while not call.is_over:
            call.attempts += 1
            began, is_quick = self._clock.monotonic(), False
            try:
                group = Group.look(self._rows, call.reference)
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
                raise StartOverError
            lost += 1
            self._pace.pause(lost, attempt_seconds=self._clock.monotonic() - began if isinstance(fault, BeatenError) else 0.0)
        return call.give_up(fault)

    def _publish_alone(self, group: Group) -> HeadwaterError | None:
        """Why it did not happen; None: it did."""
        try:
            is_applied = publish(self._rows, group, until=self._call.until, pause=self._pace.pause)
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
