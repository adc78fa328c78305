"""Who may commit to a reference now: one baton, handed from thread to thread.

Every reference that this process commits to has a queue. Who finds it empty has the baton at once; the others wait. The holder
looks up the head and runs its change; then the next one runs its own on top of that, and the last one publishes them all::

    A                           B                           C
    has the baton: looks        waits                       waits
    runs its change
    hands on  -------------->   runs on top of A's
    waits for the outcome       hands on  -------------->   runs on top of B's; nobody waits behind it,
                                waits for the outcome       so it writes and swaps for all three
    answers  <---------------   answers  <---------------   tells them, hands on to who came meanwhile, answers

What may go wrong with a holder, and who then has the baton:

    its change takes too long   whoever waits takes the baton away; a member publishes what there is; the change's thread learns it
                                when it returns, and starts over
    it raises                   it leaves, and hands on
    it is beaten                all members go back to the front of the queue, in their order; it waits a while, and hands on
    it is stopped in publishing a member goes on with that

No thread waits with the lock held, and queues know nothing of each other.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from enum import Enum

from headwater.clock import Clock
from headwater.commits.groups import Group
from headwater.errors import HeadwaterError, UnknownOutcomeError
from headwater.settings import Settings
from headwater.store import RealmKey, RealmStore
from headwater.store.realm_rows import Whole

__all__ = ["Order", "Place", "Queue", "TimeIsOverError"]


class Order(Enum):
    """What a thread is told that waits in a queue."""

    RUN = "you have the baton: run your change"
    PUBLISH = "you have the baton: publish the group"
    ANSWER = "your group is published, or you need none"
    SAY_UNKNOWN = "nobody knows whether your group is published"


class TimeIsOverError(Exception):
    """The commit's time is over, and it waits for its turn still."""


class Place:
    """One commit's place in a queue. ``wake`` is released once for each order."""

    __slots__ = ("is_waiting", "order", "since", "unclear", "wake")

    def __init__(self, since: float) -> None:
        self.since = since
        self.is_waiting = False
        self.order: Order | None = None
        self.unclear: UnknownOutcomeError | None = None
        self.wake = threading.Lock()
        self.wake.acquire()

    def tell(self, order: Order, unclear: UnknownOutcomeError | None = None) -> None:
        self.order, self.unclear = order, unclear
        self.wake.release()


class Queue:
    """The commits of this process to one reference. Goes when nobody is in it.

    group         what the holder adds to; None: the next holder looks the head up
    fault         why the last group was not published
    lost          how many groups were not, one after the other
    """

    def __init__(self, key: _Key, settings: Settings, clock: Clock) -> None:
        self.group: Group | None = None
        self.fault: HeadwaterError | None = None
        self.lost = 0
        self._key = key
        self._clock = clock
        self._limit = settings.commit_member_seconds
        self._most = settings.commit_group_members
        self._timeout = settings.commit_timeout_seconds
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: deque[Place] = deque()
        self._holder: Place | None = None
        self._members: list[Place] = []
        """Those of the group whose threads wait for its outcome."""
        self._started = 0.0
        """When the group's first member began to run."""
        self._running_since: float | None = None
        """When the holder's change was called; None while it does something else."""
        self._is_closed = False
        """The group takes nobody in any more."""
        self._is_gone = False

    @staticmethod
    def enter(rows: RealmStore, reference: str, place: Place) -> Queue:
        """Stand in the queue of a reference, at its end."""
        key = (rows.store, rows.key, reference)
        while True:
            queue = _queues.get(key)
            if queue is None:
                queue = _queues.setdefault(key, Queue(key, rows.settings, rows.clock))
            if queue._admit(place):
                return queue

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def wait(self, place: Place) -> Order:
        """Wait for an order.

        raises        TimeIsOverError when the commit's time is over before its turn
        """
        while not place.wake.acquire(timeout=self._patience(place)):
            with self._lock:
                now = self._clock.monotonic()
                if place.order is None and place.is_waiting and now - place.since >= self._timeout:
                    raise TimeIsOverError
                self._evict(now)
        order, place.order = place.order, None
        assert order is not None
        return order

    # for the holder

    @property
    def until(self) -> float:
        """When the time of the last of the group's members is over."""
        return max(place.since for place in self._members) + self._timeout

    def run(self) -> None:
        """The holder is about to call its change, or what belongs to it."""
        self._running_since = now = self._clock.monotonic()
        if not self.group:  # nobody is in it yet
            self._started = now

    def stop(self, place: Place) -> bool:
        """Its change has returned. Whether it is the holder still."""
        if self._process != os.getpid():
            return False
        with self._lock:
            if self._holder is not place:
                return False
            self._running_since = None
            return True

    def join(self, place: Place, *, is_last: bool) -> bool:
        """It is part of the group, by its commit or because it saw one. Whether it has to publish; else another one goes on."""
        with self._lock:
            self._members.append(place)
            if is_last or not self._waiting or self._is_full():
                self._is_closed = True
                return True
            self._hand_on()
            return False

    def step_back(self, place: Place) -> None:
        """It did not fit into the group, which is published now: it is the first of the next one."""
        with self._lock:
            self._is_closed = True
            self._put_back([place])
            self._hand_on()

    def finish(self, place: Place, order: Order, unclear: UnknownOutcomeError | None = None) -> None:
        """The group's outcome, as far as it ever will be, is known: tell its members, and hand on."""
        with self._lock:
            members, self._members = self._members, []
            if order is Order.ANSWER:
                self.fault, self.lost = None, 0
            self._drop_group()
            self._hand_on()
        for member in members:
            if member is not place:
                member.tell(order, unclear)

    def start_over(self, place: Place, fault: HeadwaterError) -> None:
        """The group was not published: its members wait at the front again, in their order, and the holder with them.

        It keeps the baton until it says ``hand_on``, so that it can wait a while.
        """
        with self._lock:
            self.fault = fault
            self.lost += 1
            if place not in self._members:
                self._members.append(place)
            self._put_back(self._members)
            self._members = []
            self._drop_group()

    def hand_on(self) -> None:
        with self._lock:
            self._hand_on()

    def leave(self, place: Place) -> None:
        """Whatever this thread was doing here: it goes. Its commit stays in the group if it was taken in. May be repeated."""
        if self._process != os.getpid():
            return
        with self._lock:
            if place.is_waiting:
                place.is_waiting = False
                self._waiting.remove(place)
            if place in self._members:
                self._members.remove(place)
            if self._holder is place:
                self._hand_on()

    # inside, with the lock held

    def _admit(self, place: Place) -> bool:
        with self._lock:
            if self._is_gone:
                return False
            if self._holder is None:  # then nobody waits: who goes hands on
                self._holder = place
                place.tell(Order.RUN)
            else:
                place.is_waiting = True
                self._waiting.append(place)
            return True

    def _hand_on(self) -> None:
        """The holder has the baton no more: to a member that publishes, to the next in the queue, or to nobody."""
        self._holder = self._running_since = None
        if self.group is not None and self.group.is_torn:
            self._put_back(self._members)
            self._members = []
            self._drop_group()
        if self._members and (self._is_closed or not self._waiting or self._is_full()):
            self._is_closed = True
            self._give(self._members[-1], Order.PUBLISH)
            return
        if self._is_closed:
            self._drop_group()  # nobody is left who asks what becomes of it
        if self._waiting:
            place = self._waiting.popleft()
            place.is_waiting = False
            self._give(place, Order.RUN)
        else:
            self._is_gone = True
            if _queues.get(self._key) is self:
                del _queues[self._key]

    def _give(self, place: Place, order: Order) -> None:
        self._holder = place
        place.tell(order)

    def _put_back(self, places: list[Place]) -> None:
        for place in reversed(places):
            place.is_waiting = True
            self._waiting.appendleft(place)

    def _drop_group(self) -> None:
        self.group, self._is_closed = None, False

    def _is_full(self) -> bool:
        most = max(len(self._members), 0 if self.group is None else len(self.group))
        return most >= self._most or self._clock.monotonic() - self._started >= self._limit

    def _evict(self, now: float) -> None:
        """Take the baton from a holder whose change takes too long. Its group is as old, so it is published now.

        No one but the evicted thread reads the group from then on: nothing is taken in any more.
        """
        if self._running_since is not None and now - self._running_since >= self._limit:
            self._is_closed = True
            self._hand_on()

    def _patience(self, place: Place) -> float:
        """Seconds until it is worth a look whether somebody takes too long."""
        now = self._clock.monotonic()
        since = self._running_since
        wait = self._limit if since is None else since + self._limit - now
        if place.is_waiting:
            wait = min(wait, place.since + self._timeout - now)
        return max(wait, 0.0) + 0.0005


_Key = tuple[Whole, RealmKey, str]
_queues: dict[_Key, Queue] = {}


def _begin_anew() -> None:
    """Threads of the parent are not there any more in a forked child, and its queues are nobody's."""
    _queues.clear()


os.register_at_fork(after_in_child=_begin_anew)
