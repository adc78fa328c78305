"""Ids made here, unique everywhere: a node number leased by compare-and-swap, the time, and a sequence within the millisecond.

A lease is a window of id time. The next owner's window begins where the last one ended, so that ids of two owners differ
even when their clocks do; and a process that slept across the end of its lease finds the window closed when it reads the time.
"""

from __future__ import annotations

import os
import random
import socket
import threading

from headwater.clock import Clock
from headwater.errors import BeatenError, HeadwaterError, UnavailableError, UnknownOutcomeError
from headwater.store.identity import EPOCH_MILLIS, NODES, SEQUENCES, ObjectId, compose_id, fixed_id
from headwater.store.objects import StoredObject, Versioned, object_type
from headwater.store.realm_rows import RealmStore

__all__ = ["IdGenerator", "NodeLease", "node_lease_id"]

_LEASES = 0
_BATCH = 64


def node_lease_id(node: int) -> ObjectId:
    return fixed_id(_LEASES, node)


@object_type("node", updateable=True)
class NodeLease(StoredObject, frozen=True, kw_only=True):
    """Who may make ids with one node number, from ``start`` (inclusive) to ``end`` (exclusive), in milliseconds of id time."""

    start: int
    end: int
    owner: str


class IdGenerator:
    """Makes ids; leases a node at the first one. Thread-safe; after a fork the child leases anew."""

    def __init__(self, rows: RealmStore, *, clock: Clock, lease_seconds: float, renew_seconds: float) -> None:
        self._rows = rows
        self._clock = clock
        self._lease_millis = round(lease_seconds * 1000)
        self._renew_millis = round(renew_seconds * 1000)
        self._node = 0
        self._last = 0
        self._sequence = 0
        self.forget()

    def forget(self) -> None:
        """Drop the lease without giving it back: it is the parent's."""
        self._lock = threading.Lock()
        self._lease: Versioned[NodeLease] | None = None

    def next(self) -> ObjectId:
        """A new id, greater than the ones before.

        raises        UnavailableError when no node can be leased
        """
        with self._lock:
            millis = self._reading()
            self._sequence = self._sequence + 1 if millis == self._last else 0
            self._last = millis
            return compose_id(millis, self._node, self._sequence)

    def release(self) -> None:
        """Give the node back: its next owner starts after the last millisecond used here. Best effort."""
        with self._lock:
            lease, self._lease = self._lease, None
            if lease is None:
                return
            ended = NodeLease(start=lease.value.start, end=max(self._last + 1, lease.value.start), owner="")
            try:
                self._rows.update(lease, ended)
            except HeadwaterError:
                return  # the lease ends by itself

    def _reading(self) -> int:
        """The time of the next id, inside the lease: validity and time come from this one reading.

        Where the clock stands still for longer than the sequence lasts, ids run ahead of it; they never wait for it.
        """
        now = self._clock.now() // 1000 - EPOCH_MILLIS
        is_used_up = self._sequence == SEQUENCES - 1
        millis = max(now, self._last + is_used_up)
        if self._lease is None or millis >= self._lease.value.end:
            return self._take(millis)
        if millis >= self._lease.value.end - self._renew_millis and not self._renew(millis):
            return self._take(millis)
        return millis

    def _renew(self, now: int) -> bool:
        """Make the lease longer. Returns whether it is still ours."""
        assert self._lease is not None
        longer = NodeLease(start=self._lease.value.start, end=now + self._lease_millis, owner=self._lease.value.owner)
        try:
            self._lease = self._rows.update(self._lease, longer)
        except BeatenError:
            return False
        except (UnavailableError, UnknownOutcomeError):
            return True  # up to the old end; tried again with the next id
        return True

    def _take(self, now: int) -> int:
        """Lease a node. Returns the first millisecond to use, beyond all that went before: the new node's number may be smaller."""
        now = max(now, self._last + 1)
        first = random.randrange(NODES)
        for start in range(0, NODES, _BATCH):
            nodes = [(first + start + offset) % NODES for offset in range(_BATCH)]
            leases = self._rows.read_many_versioned([node_lease_id(node) for node in nodes], NodeLease)
            for node, seen in zip(nodes, leases, strict=True):
                if (seen is None or seen.value.end <= now) and self._try_to_take(node, seen, now):
                    return now
        raise UnavailableError(f"all {NODES} nodes are leased: stop processes that make ids, or wait until a lease ends")

    def _try_to_take(self, node: int, seen: Versioned[NodeLease] | None, now: int) -> bool:
        owner = f"{socket.gethostname()}:{os.getpid()}"
        lease = NodeLease(start=now, end=now + self._lease_millis, owner=owner)
        try:
            self._lease = self._rows.insert(node_lease_id(node), lease) if seen is None else self._rows.update(seen, lease)
        except (BeatenError, UnknownOutcomeError):
            return False  # an unclear answer burns this node until the lease ends
        self._node = node
        return True
