"""Group commit: the queue of one reference, in which the threads of a process take turns, and share one write.

One baton goes from thread to thread. A thread that finds the queue empty has it at once; the others wait. The holder looks the head
up and runs its change; then the next one runs its own on top of that, and the last one publishes them all::

    A                           B                           C
    has the baton: looks        waits                       waits
    runs its change
    hands on  -------------->   runs on top of A's
    waits for the outcome       hands on  -------------->   runs on top of B's; nobody waits behind it,
                                waits for the outcome       so it writes and swaps for all three
    answers  <---------------   answers  <---------------   hands on to the next thread, signals A and B, answers

When something goes wrong, the baton goes on like this:

    a change takes too long     a waiting thread takes the baton away, and a member publishes what there is. The change's thread
                                learns of it when it returns, and starts over; it commits alone then. Beaten there, it comes back
                                and is given more time, in which the others wait for it
    a change raises             the next thread gets it; the others do not notice
    the group is beaten         the holder keeps it for a while; all members are back at the front of the queue, in their order
    the publisher is stopped    another member gets it, and publishes the same

No thread waits with the lock held, and queues know nothing of each other.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from enum import Enum

from headwater.clock import Clock
from headwater.commits.commit_group import CommitGroup
from headwater.errors import HeadwaterError, UnknownOutcomeError
from headwater.settings import Settings
from headwater.store import RealmKey, RealmStore

_LOOK_SECONDS = 0.05
"""How often a thread that waits looks whether others go on."""


class Signal(Enum):
    """What wakes a thread that waits in a queue."""

    RUN = "you have the baton: run your change"
    PUBLISH = "you have the baton: publish the group"
    ANSWER = "the outcome of your run holds: the group is published"
    SAY_UNKNOWN = "nobody knows whether the group is published"


class TurnTimeoutError(Exception):
    """The commit's time is over, and its turn has not come."""


class Waiter:
    """One thread's place in a queue.

    A waiter is in one of three states, unless its thread was stopped between two steps (see ``CommitQueue._mend``)::

        waiting     in the queue                     attempt is None
        holder      has the baton                    attempt is None while it runs its change, its own while it publishes
        member      waits for the group's outcome    attempt is that of the group

    A holder whose group was beaten is the exception: it waits in the queue again, and keeps the baton while it pauses.

    since         when the commit began, in monotonic seconds
    is_apart      it is published by itself, because its group could not be published and one of the members is the cause
    """

    __slots__ = ("attempt", "is_apart", "queue", "signal", "since", "wake")

    def __init__(self, since: float) -> None:
        self.since = since
        self.is_apart = False
        self.queue: CommitQueue | None = None
        # Invariant: it is in attempt.members, until that attempt has an outcome or its waiters were put back.
        self.attempt: _PublishAttempt | None = None
        # Invariant: wake is locked exactly while there is no signal to be read. Only the queue's lock holder sets a signal.
        self.signal: Signal | None = None
        self.wake = threading.Lock()
        self.wake.acquire()

    @property
    def unclear(self) -> UnknownOutcomeError | None:
        """Why nobody knows the outcome."""
        return None if self.attempt is None else self.attempt.unclear

    def send(self, signal: Signal) -> None:
        self.signal = signal
        self.wake.release()

    def leave(self) -> None:
        """Leave the queue, whatever this thread was doing. Its commit stays in the group if it was added. May be repeated."""
        if self.queue is not None:
            self.queue._remove(self)


class _PublishAttempt:
    """A group, and the waiters whose answers depend on its outcome: they have a commit in it, or saw one.

    group         None: the holder has not looked the head up yet
    started       when its first member began to run
    """

    __slots__ = ("group", "is_closed", "members", "outcome", "started", "unclear")

    def __init__(self, group: CommitGroup | None = None) -> None:
        self.group = group
        self.members: list[Waiter] = []
        self.started = 0.0
        # Invariant: once set it stays, and nobody joins: the group does not change while it is packed and published.
        self.is_closed = False
        # Invariant: set once, when it is no queue's attempt any more. unclear is set before it, and only with SAY_UNKNOWN.
        self.outcome: Signal | None = None
        self.unclear: UnknownOutcomeError | None = None


class CommitQueue:
    """The commits of this process to one reference. Methods for the holder are called by the thread that has the baton alone."""

    def __init__(self, key: _Key, settings: Settings, clock: Clock) -> None:
        self._key = key
        self._clock = clock
        self._member_seconds = settings.commit_member_seconds
        self._group_members = settings.commit_group_members
        self._timeout = settings.commit_timeout_seconds
        self._process = os.getpid()
        # The lock of all that follows. It is never held while a thread waits, runs a change or asks the database.
        self._lock = threading.Lock()
        # Invariant: once set it stays, nobody is admitted, and _queues leads to another queue or to none.
        self._is_gone = False
        # Invariant: first come, first served; waiters that were put back stand in front, in the order that they had.
        self._waiting: deque[Waiter] = deque()
        # Invariant: at most one waiter has the baton. It is None only under the lock, in a queue that
        # is gone, or after a thread was stopped between two steps: then the next waiter that looks hands it on.
        self._holder: Waiter | None = None
        # Invariant: only the holder adds to its group and to its members.
        self._attempt = _PublishAttempt()
        # Invariant: not None only while the holder's change runs: then, and only then, may the baton be taken away.
        self._running_since: float | None = None
        self._allowed_seconds = self._member_seconds  # how long it may run then
        # Invariant: both are reset by the first group that is published.
        self.fault: HeadwaterError | None = None  # why the last group was not published
        self.lost = 0  # how many groups were not, one after the other

    @staticmethod
    def enter(rows: RealmStore, reference: str, waiter: Waiter) -> CommitQueue:
        """Stand in the queue of a reference, at its end."""
        key = (rows.store, rows.key, reference)
        while True:
            queue = _queues.get(key)
            if queue is None:
                queue = _queues.setdefault(key, CommitQueue(key, rows.settings, rows.clock))
            if queue._admit(waiter):
                return queue

    def wait_for_signal(self, waiter: Waiter) -> Signal:
        """Wait until this thread is to do something.

        raises        TurnTimeoutError when the commit's time is over before its turn
        """
        while not waiter.wake.acquire(timeout=self._patience(waiter)):
            with self._lock:
                self._look_after(waiter)
                if waiter.signal is not None:
                    waiter.wake.acquire(blocking=False)
                    break
        signal, waiter.signal = waiter.signal, None
        assert signal is not None, "woken without a signal"
        return signal

    # for the holder

    @property
    def group(self) -> CommitGroup | None:
        """What the holder adds to; None: it looks the head up."""
        return self._attempt.group

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    @property
    def until(self) -> float:
        """When the time of the last of the group's members is over."""
        return max(waiter.since for waiter in self._attempt.members) + self._timeout

    def begin_group(self, group: CommitGroup) -> None:
        """Begin a new group on the head that the holder has looked up."""
        self._attempt = _PublishAttempt(group)

    def start_change(self, *, is_unhurried: bool = False) -> None:
        """The holder is about to call its change: the baton may be taken from it once that takes too long.

        is_unhurried  not before half of the time-out is over: until then, those who wait have time left themselves
        """
        self._allowed_seconds = self._timeout / 2 if is_unhurried else self._member_seconds
        self._running_since = now = self._clock.monotonic()
        if not self._attempt.group:  # nobody is in it yet
            self._attempt.started = now

    def end_change(self, waiter: Waiter) -> bool:
        """Note that the holder's change has returned. Returns whether it still has the baton."""
        # In a forked child the queue is the parent's, and so is the commit: this thread starts over with a queue of its own.
        if self._process != os.getpid():
            return False
        with self._lock:
            if self._holder is not waiter:
                return False
            self._running_since = None
            return True

    def join_group(self, waiter: Waiter, *, is_last: bool) -> bool:
        """Make the holder part of the group, by its commit or because it saw one. Returns whether it has to publish."""
        with self._lock:
            assert self._holder is waiter, "only the holder joins the group"
            assert not self._attempt.is_closed, "nobody joins a closed group"
            waiter.attempt = self._attempt
            self._attempt.members.append(waiter)
            if is_last or waiter.is_apart or not self._waiting or self._is_full():
                self._attempt.is_closed = True
                return True
            self._hand_on()
            return False

    def step_back(self, waiter: Waiter) -> None:
        """Close the group, into which the holder's commit did not fit. The holder is the first of the next one."""
        with self._lock:
            assert self._holder is waiter, "only the holder steps back"
            self._attempt.is_closed = True
            self._put_back([waiter])
            self._hand_on()

    def finish_group(self, waiter: Waiter, outcome: Signal, unclear: UnknownOutcomeError | None = None) -> None:
        """Note the group's final outcome, hand on, and signal its members."""
        with self._lock:
            assert self._holder is waiter, "only the holder publishes"
            ended = self._attempt
            # The outcome is written down before anybody is signalled: this thread may be stopped between any two of these lines,
            # and a member that misses its signal then finds the outcome when it looks (see _mend). The other way round it would
            # find a new attempt without it, stand in the queue again and commit twice.
            ended.unclear = unclear
            ended.outcome = outcome
            self._attempt = _PublishAttempt()
            if outcome is Signal.ANSWER:
                self.fault, self.lost = None, 0
            # The next one begins before the members answer: it needs the database, and they need only the processor.
            self._hand_on()
            for member in ended.members:
                if member is not waiter:
                    member.send(outcome)

    def split_group(self, waiter: Waiter) -> None:
        """Put the members of a group that could not be written back to the front; each is published alone, and the cause shows itself."""
        with self._lock:
            assert self._holder is waiter, "only the holder splits the group"
            members = self._attempt.members
            for member in members:
                member.is_apart = True
            self._attempt = _PublishAttempt()
            self._put_back(members)
            self._hand_on()

    def start_over(self, waiter: Waiter, fault: HeadwaterError) -> None:
        """Put the members of a group that was not published back to the front, in their order, and the holder with them.

        It keeps the baton until it says ``hand_on``, so that it can wait a while::

            holder              members             others
            is beaten
            puts all back       wait in front       wait behind them
            pauses              wait                wait: whoever ran now would be beaten like this one
            hands on   ------>  the first runs on the new head; the holder's own turn comes in its place
        """
        with self._lock:
            assert self._holder is waiter, "only the holder starts over"
            self.fault = fault
            self.lost += 1
            members = self._attempt.members
            self._attempt = _PublishAttempt()
            self._put_back(members or [waiter])

    def hand_on(self) -> None:
        with self._lock:
            self._hand_on()

    def _admit(self, waiter: Waiter) -> bool:
        with self._lock:
            if self._is_gone:
                return False
            waiter.queue = self
            self._waiting.append(waiter)
            if self._holder is None:
                self._hand_on()
            return True

    def _remove(self, waiter: Waiter) -> None:
        if self._process != os.getpid():
            return  # the parent's, whose threads may have held the lock
        with self._lock:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            if waiter in self._attempt.members:
                self._attempt.members.remove(waiter)
            if self._holder is waiter:
                self._hand_on()

    def _hand_on(self) -> None:
        """Take the baton from the holder and give it to a member that publishes, to the next in the queue, or to nobody."""
        self._holder = self._running_since = None
        attempt = self._attempt
        group, members = attempt.group, attempt.members
        if group is not None and group.is_torn:
            # A thread was stopped while it added its commit. What it left cannot be published, and was not: all run again.
            self._attempt = _PublishAttempt()
            self._put_back(members)
        elif members and (attempt.is_closed or not self._waiting or self._is_full()):
            # Nobody joins any more. Any member can publish, for the group has all of their commits; the last one is the one that
            # would have if it had not been stopped.
            attempt.is_closed = True
            self._give(members[-1], Signal.PUBLISH)
            return
        elif attempt.is_closed or (group is not None and group.is_ended):
            # All members have left: nobody asks for the outcome, and a group that is closed or ended takes nobody in. One that is
            # open is kept even without members, for the next holder builds on what is in it.
            self._attempt = _PublishAttempt()
        if self._waiting:
            self._give(self._waiting.popleft(), Signal.RUN)
        else:
            # Out of the map first: a thread that enters from now on finds no queue, or one that refuses, and makes a new one.
            if _queues.get(self._key) is self:
                del _queues[self._key]
            self._is_gone = True

    def _give(self, waiter: Waiter, signal: Signal) -> None:
        # Before the signal: a thread that is stopped in between is found by _mend as a holder without a signal.
        self._holder = waiter
        waiter.send(signal)

    def _put_back(self, waiters: list[Waiter]) -> None:
        for waiter in reversed(waiters):
            waiter.attempt = None
            self._waiting.appendleft(waiter)

    def _is_full(self) -> bool:
        if self._waiting and self._waiting[0].is_apart:
            return True
        attempt = self._attempt
        size = max(len(attempt.members), 0 if attempt.group is None else len(attempt.group))
        return size >= self._group_members or self._clock.monotonic() - attempt.started >= self._member_seconds

    def _look_after(self, waiter: Waiter) -> None:
        """Do what a waiting thread does from time to time: end it when its time is over, or put right what another one left."""
        if waiter.signal is not None:
            return
        now = self._clock.monotonic()
        # A member does not time out here: its commit is in the group, and only the outcome says what became of it.
        if waiter.attempt is None and now - waiter.since >= self._timeout:
            raise TurnTimeoutError
        if self._running_since is not None and now - self._running_since >= self._allowed_seconds:
            self._take_baton_away()
        else:
            self._mend(waiter)

    def _take_baton_away(self) -> None:
        """Take the baton from a holder whose change takes too long. Its group is as old, so it is published now.

        ::

            A                            B                                  C
            its change runs and runs     waits (a member of A's group)      waits in the queue
                                                                            looks: 50 ms are over, hands on
                                         is signalled to publish it
            returns: not the holder      writes and swaps
            starts over, at the end      answers                            runs its change in a new group

        Only the evicted thread still reads the group then, and it takes nothing in: ``end_change`` tells it first. So the group is
        closed before the baton is given, and does not change while another thread packs it.
        """
        self._attempt.is_closed = True
        self._hand_on()

    def _mend(self, waiter: Waiter) -> None:
        """Finish what a thread left undone when an exception such as Ctrl-C stopped it between two steps."""
        if waiter.attempt is not None and waiter.attempt.outcome is not None:
            waiter.send(waiter.attempt.outcome)  # its publisher was stopped before it came to this member
        elif self._holder is waiter:
            # Stopped after the baton was given, before the signal.
            waiter.send(Signal.RUN if waiter.attempt is None else Signal.PUBLISH)
        else:
            if waiter.attempt is not self._attempt and waiter not in self._waiting:
                self._put_back([waiter])  # stopped after a new attempt began, before all members were back in the queue
            if self._holder is None:
                self._hand_on()

    def _patience(self, waiter: Waiter) -> float:
        """Seconds until the next look."""
        now, since = self._clock.monotonic(), self._running_since
        wait = _LOOK_SECONDS
        if since is not None:
            wait = min(wait, since + self._allowed_seconds - now)
        if waiter.attempt is None:
            wait = min(wait, waiter.since + self._timeout - now)
        return max(wait, 0.0) + 0.0005


_Key = tuple[object, RealmKey, str]
"""Store, realm and reference."""
_queues: dict[_Key, CommitQueue] = {}


def _forget_queues() -> None:
    """Drop all queues in a forked child: the threads that wait in them exist in the parent alone."""
    _queues.clear()


os.register_at_fork(after_in_child=_forget_queues)
