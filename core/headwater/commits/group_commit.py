"""Who may commit to a reference now: one baton, handed from thread to thread.

Every reference that this process commits to has a queue. Who finds it empty has the baton at once; the others wait. The holder
looks the head up and runs its change; then the next one runs its own on top of that, and the last one publishes them all::

    A                           B                           C
    has the baton: looks        waits                       waits
    runs its change
    hands on  -------------->   runs on top of A's
    waits for the outcome       hands on  -------------->   runs on top of B's; nobody waits behind it,
                                waits for the outcome       so it writes and swaps for all three
    answers  <---------------   answers  <---------------   hands on to who came meanwhile, tells A and B, answers

Who has the baton when something goes wrong:

    a change takes too long     whoever waits takes the baton away, and a member publishes what there is. The change's thread learns
                                of it when it returns, and starts over
    a change raises             the next; the others do not notice
    the group is beaten         still the holder, for a while; all members are back at the front of the queue, in their order
    the publisher is stopped    another member, who publishes the same

No thread waits with the lock held, and queues know nothing of each other.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from enum import Enum

from headwater.clock import Clock
from headwater.commits.batch import CommitBatch
from headwater.errors import HeadwaterError, UnknownOutcomeError
from headwater.settings import Settings
from headwater.store import RealmKey, RealmStore

_LOOK_SECONDS = 0.05
"""How often a thread that waits looks whether others go on."""


class Signal(Enum):
    """What a thread is told that waits in a queue."""

    RUN = "you have the baton: run your change"
    PUBLISH = "you have the baton: publish the group"
    ANSWER = "what came of your run holds: the group is published"
    SAY_UNKNOWN = "nobody knows whether the group is published"


class TurnTimeoutError(Exception):
    """The commit's time is over, and its turn has not come."""


class Waiter:
    """One commit's place in a queue, or in a round.

    since         when the commit began, in monotonic seconds
    round         the one that it is part of; None: its turn has not come
    is_apart      it is published by itself, for its group could not be, and one of its members is to blame
    wake          held by who waits here; let go for each order
    """

    __slots__ = ("is_apart", "order", "queue", "round", "since", "wake")

    def __init__(self, since: float) -> None:
        self.since = since
        self.queue: CommitQueue | None = None
        self.round: _Round | None = None
        self.is_apart = False
        self.order: Signal | None = None
        self.wake = threading.Lock()
        self.wake.acquire()

    @property
    def unclear(self) -> UnknownOutcomeError | None:
        """Why nobody knows the outcome."""
        return None if self.round is None else self.round.unclear

    def tell(self, order: Signal) -> None:
        self.order = order
        self.wake.release()

    def leave(self) -> None:
        """Whatever this thread was doing: it goes. Its commit stays in the group if it was taken in. May be repeated."""
        if self.queue is not None:
            self.queue._leave(self)


class _Round:
    """A group, and the places of those whose threads wait for its outcome: they have a commit in it, or saw one.

    started       when its first member began to run
    is_closed     it takes nobody in any more
    order         what its members are told in the end
    """

    __slots__ = ("group", "is_closed", "order", "places", "started", "unclear")

    def __init__(self, group: CommitBatch | None = None) -> None:
        self.group = group
        self.places: list[Waiter] = []
        self.started = 0.0
        self.is_closed = False
        self.order: Signal | None = None
        self.unclear: UnknownOutcomeError | None = None


class CommitQueue:
    """The commits of this process to one reference. Goes when nobody is in it.

    fault         why the last group was not published
    lost          how many groups were not, one after the other
    """

    def __init__(self, key: _Key, settings: Settings, clock: Clock) -> None:
        self.fault: HeadwaterError | None = None
        self.lost = 0
        self._key = key
        self._clock = clock
        self._limit = settings.commit_member_seconds
        self._most = settings.commit_group_members
        self._timeout = settings.commit_timeout_seconds
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: deque[Waiter] = deque()
        self._holder: Waiter | None = None
        self._round = _Round()
        self._running_since: float | None = None
        """When the holder's change was called; None while it does something else."""
        self._is_gone = False

    @staticmethod
    def enter(rows: RealmStore, reference: str, place: Waiter) -> CommitQueue:
        """Stand in the queue of a reference, at its end."""
        key = (rows.store, rows.key, reference)
        while True:
            queue = _queues.get(key)
            if queue is None:
                queue = _queues.setdefault(key, CommitQueue(key, rows.settings, rows.clock))
            if queue._admit(place):
                return queue

    def wait(self, place: Waiter) -> Signal:
        """Wait for an order.

        raises        TimeIsOverError when the commit's time is over before its turn
        """
        while not place.wake.acquire(timeout=self._patience(place)):
            with self._lock:
                self._tend(place)
                if place.order is not None:
                    place.wake.acquire(blocking=False)
                    break
        order, place.order = place.order, None
        assert order is not None
        return order

    # for the holder

    @property
    def group(self) -> CommitBatch | None:
        """What the holder adds to; None: it looks the head up."""
        return self._round.group

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    @property
    def until(self) -> float:
        """When the time of the last of the group's members is over."""
        return max(place.since for place in self._round.places) + self._timeout

    def begin(self, group: CommitBatch) -> None:
        """Begin a new round with what the holder has looked up."""
        self._round = _Round(group)

    def run(self) -> None:
        """The holder is about to call its change: from now on it may be evicted."""
        self._running_since = now = self._clock.monotonic()
        if not self._round.group:  # nobody is in it yet
            self._round.started = now

    def stop(self, place: Waiter) -> bool:
        """Its change has returned. Whether it has the baton still."""
        if self._process != os.getpid():
            return False
        with self._lock:
            if self._holder is not place:
                return False
            self._running_since = None
            return True

    def join(self, place: Waiter, *, is_last: bool) -> bool:
        """It is part of the group, by its commit or because it saw one. Whether it has to publish; else another one goes on."""
        with self._lock:
            place.round = self._round
            self._round.places.append(place)
            if is_last or place.is_apart or not self._waiting or self._is_full():
                self._round.is_closed = True
                return True
            self._hand_on()
            return False

    def step_back(self, place: Waiter) -> None:
        """It did not fit into the group, which is published now: it is the first of the next one."""
        with self._lock:
            self._round.is_closed = True
            self._put_back([place])
            self._hand_on()

    def finish(self, place: Waiter, order: Signal, unclear: UnknownOutcomeError | None = None) -> None:
        """The group's outcome, as far as it ever will be, is known: hand on, and tell its members."""
        with self._lock:
            over = self._round
            over.unclear = unclear
            over.order = order  # first: whoever misses being told finds it there
            self._round = _Round()
            if order is Signal.ANSWER:
                self.fault, self.lost = None, 0
            self._hand_on()
            for member in over.places:
                if member is not place:
                    member.tell(order)

    def part(self) -> None:
        """The group could not be written: its members wait at the front again, and each will find out whether it is to blame."""
        with self._lock:
            places = self._round.places
            for member in places:
                member.is_apart = True
            self._round = _Round()
            self._put_back(places)
            self._hand_on()

    def start_over(self, place: Waiter, fault: HeadwaterError) -> None:
        """The group was not published: its members wait at the front again, in their order, and the holder with them.

        It keeps the baton until it says ``hand_on``, so that it can wait a while.
        """
        with self._lock:
            self.fault = fault
            self.lost += 1
            places = self._round.places
            self._round = _Round()
            self._put_back(places or [place])

    def hand_on(self) -> None:
        with self._lock:
            self._hand_on()

    # inside, with the lock held

    def _admit(self, place: Waiter) -> bool:
        with self._lock:
            if self._is_gone:
                return False
            place.queue = self
            self._waiting.append(place)
            if self._holder is None:
                self._hand_on()
            return True

    def _leave(self, place: Waiter) -> None:
        if self._process != os.getpid():
            return  # the parent's, whose threads may have held the lock
        with self._lock:
            if place in self._waiting:
                self._waiting.remove(place)
            if place in self._round.places:
                self._round.places.remove(place)
            if self._holder is place:
                self._hand_on()

    def _hand_on(self) -> None:
        """The holder has the baton no more: to a member that publishes, to the next in the queue, or to nobody."""
        self._holder = self._running_since = None
        now = self._round
        if now.group is not None and now.group.is_torn:
            self._round = _Round()
            self._put_back(now.places)
        elif now.places and (now.is_closed or not self._waiting or self._is_full()):
            now.is_closed = True
            self._give(now.places[-1], Signal.PUBLISH)
            return
        elif now.is_closed or (now.group is not None and now.group.is_ended):
            self._round = _Round()  # nobody is left who asks what becomes of it
        if self._waiting:
            self._give(self._waiting.popleft(), Signal.RUN)
        else:
            if _queues.get(self._key) is self:
                del _queues[self._key]
            self._is_gone = True

    def _give(self, place: Waiter, order: Signal) -> None:
        self._holder = place
        place.tell(order)

    def _put_back(self, places: list[Waiter]) -> None:
        for place in reversed(places):
            place.round = None
            self._waiting.appendleft(place)

    def _is_full(self) -> bool:
        now = self._round
        most = max(len(now.places), 0 if now.group is None else len(now.group))
        if self._waiting and self._waiting[0].is_apart:
            return True
        return most >= self._most or self._clock.monotonic() - now.started >= self._limit

    # what waiting threads do every now and then, with the lock held

    def _tend(self, place: Waiter) -> None:
        if place.order is not None:
            return
        now = self._clock.monotonic()
        if place.round is None and now - place.since >= self._timeout:
            raise TurnTimeoutError
        if self._running_since is not None and now - self._running_since >= self._limit:
            self._evict()
        else:
            self._mend(place)

    def _evict(self) -> None:
        """Take the baton from a holder whose change takes too long. Its group is as old, so it is published now.

        No one but the evicted thread reads the group from then on: nothing is taken in any more.
        """
        self._round.is_closed = True
        self._hand_on()

    def _mend(self, place: Waiter) -> None:
        """See to what a thread left undone that an exception from outside, as Ctrl-C raises it, stopped between any two steps."""
        if place.round is not None and place.round.order is not None:
            place.tell(place.round.order)
        elif self._holder is place:
            place.tell(Signal.RUN if place.round is None else Signal.PUBLISH)
        else:
            if place.round is not self._round and place not in self._waiting:
                self._put_back([place])
            if self._holder is None:
                self._hand_on()

    def _patience(self, place: Waiter) -> float:
        """Seconds until it is worth a look whether something is to be done."""
        now, since = self._clock.monotonic(), self._running_since
        wait = _LOOK_SECONDS
        if since is not None:
            wait = min(wait, since + self._limit - now)
        if place.round is None:
            wait = min(wait, place.since + self._timeout - now)
        return max(wait, 0.0) + 0.0005


_Key = tuple[object, RealmKey, str]
"""Store, realm and reference."""
_queues: dict[_Key, CommitQueue] = {}


def _begin_anew() -> None:
    """Threads of the parent are not there any more in a forked child, and its queues are nobody's."""
    _queues.clear()


os.register_at_fork(after_in_child=_begin_anew)
