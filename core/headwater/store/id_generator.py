"""Generates object ids that are unique across processes and machines: a leased node number, the time, and a sequence.

A node number is leased by compare-and-swap for a window of id time. The next owner's window begins where the previous one ended, so
the ids of two owners differ even when their clocks do not agree.

Whether an id is inside the window is judged by the time that goes into the id. So a process that slept past the end of its lease finds
the window closed as soon as it reads the clock.

A lease names the process and machine that holds it, in a form from which another process on that machine can see that it has ended.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

import msgspec

from headwater.clock import Clock, Micros, as_text
from headwater.errors import (
    CorruptionError,
    HeadwaterError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.store.ids import END_MILLIS, EPOCH_MILLIS, FIRST_MILLIS, NODES, SEQUENCES, ObjectId, fixed_id, node_of
from headwater.store.realm_store import RealmStore
from headwater.store.stored_objects import StoredObject, Versioned, object_type

_PARTS = 6
DRIFT_MILLIS = 1000
"""How far the wall clock may drift from the machine's uptime by slewing alone, without having been set."""


class _Mark(NamedTuple):
    """Identifies a process: its machine's boot, the namespace of its pid, its start, and the wall-clock time of that boot."""

    boot: str
    namespace: str
    began: str
    offset_millis: int


def owner_text(now_millis: int) -> str:
    """The owner text of a lease: host and process for people, and what ``has_process_ended`` needs. Every call returns another text.

    The process number alone does not tell two containers of one name apart, nor two leases of one process.

    now_millis    the wall clock's time in milliseconds, from any fixed origin
    """
    boot, namespace, began, offset = _mark_of(os.getpid(), now_millis) or ("", "", "", 0)
    return f"{socket.gethostname()}:{os.getpid()}:{boot}:{namespace}:{began}:{offset}.{secrets.token_hex(8)}"


def has_process_ended(owner: str, now_millis: int) -> bool:
    """Whether the process of an owner text has certainly ended, and the wall clock was not set since it wrote the text.

    False for every process about which this machine cannot know: of other machines, other containers, or systems without /proc.
    """
    parts = owner.split(":")
    here = _mark_of(os.getpid(), now_millis)
    if here is None or len(parts) != _PARTS or parts[2:4] != [here.boot, here.namespace] or not parts[1].isdecimal():
        return False
    offset = parts[5].partition(".")[0]
    if not offset.lstrip("-").isdecimal() or abs(int(offset) - here.offset_millis) > DRIFT_MILLIS:
        return False
    return _has_ended(int(parts[1]), parts[4])


def _has_ended(pid: int, began: str) -> bool:
    """Whether the pid is free, or belongs to another process by now. A process that may not be inspected counts as running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    now_began = _began(pid)
    return now_began is not None and now_began != began


def _mark_of(pid: int, now_millis: int) -> _Mark | None:
    """The mark of a process; None where the system does not provide it."""
    began = _began(pid)
    with suppress(OSError, AttributeError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
        since = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        if boot and namespace and began:
            return _Mark(boot, namespace, began, now_millis - since)
    return None


def _began(pid: int) -> str | None:
    """The start of a process, in clock ticks since boot; None where it is not available, and for a zombie.

    Source: proc(5), ``/proc/pid/stat``: the name stands in brackets and may hold anything; the state is the third field, the start
    the 22nd.
    """
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "ended" if fields[0] in "ZX" else fields[19]
    return None


_LEASES = 0
_LOOKS = 3
_BATCH = 64
"""How many leases the first round trip reads; all others follow in a second one."""


def node_lease_id(node: int) -> ObjectId:
    """The object id of the lease of a node, 0 to 1023, in the system realm."""
    return fixed_id(_LEASES, node)


def id_time_text(millis: int) -> str:
    """A time in id milliseconds as readable text."""
    return as_text(Micros((millis + EPOCH_MILLIS) * 1000))


@object_type("node", updateable=True)
class NodeLease(StoredObject, frozen=True, kw_only=True):
    """The right to make ids with one node number, from ``start`` (inclusive) to ``end`` (exclusive), in milliseconds of id time.

    ``owner`` names host and process, lets others check whether that process has ended, and differs between leases; it is empty when
    the node was given back.
    """

    start: int
    end: int
    owner: str


HeldLease: TypeAlias = Versioned[NodeLease]


class NodeLeases:
    """Takes, renews and returns leases. Does not track which of them are held; thread-safe.

    lease_millis   how long a lease lasts
    ahead_millis   how far ids may run ahead of the clock of the process that makes them
    """

    def __init__(self, realm_store: RealmStore, *, lease_millis: int, ahead_millis: int) -> None:
        self._realm_store = realm_store
        self._lease_millis = lease_millis
        self._ahead_millis = ahead_millis

    def lease_node(self, now: int) -> HeldLease:
        """Lease a node from ``now`` on: one that was never leased, or whose last window ended by then.

        When all are leased, takes over the node of a killed process of this machine, starting after every id that it can have made.

        raises        UnavailableError when all are leased, or when the outcome of leasing one is unknown: then no process uses it
                      until the window ends; RefusedError when the time does not fit into an id
        """
        if now >= END_MILLIS:
            raise RefusedError(
                f"ids end at {id_time_text(END_MILLIS)}, and the next one would be of {id_time_text(now)}: set this machine's clock right"
            )
        first, ends, left = secrets.randbelow(NODES), [], list[tuple[int, HeldLease]]()
        ring = [(first + offset) % NODES for offset in range(NODES)]
        for batch in (ring[:_BATCH], ring[_BATCH:]):
            for node, seen in self._read(batch):
                if seen is not None and seen.value.end > now:
                    ends.append(seen.value.end)
                    left.append((node, seen))
                elif taken := self._try_to_take(node, seen, now):
                    return taken
        if taken := self._take_over(left):
            return taken
        free = f": the next one ends at {id_time_text(min(ends))}" if ends else ""
        raise UnavailableError(
            f"all {NODES} nodes are leased{free}; stop processes that make ids in this store, or try again after that"
        )

    def _take_over(self, leased: Sequence[tuple[int, HeldLease]]) -> HeldLease | None:
        """Take over the node of a killed process of this machine; None when there is none.

        That process read the same clock, which was not set since, though it may have been slewed. So its ids lie before now plus
        the tolerated drift plus the time by which ids may run ahead of the clock.
        """
        now = self._reading()
        gone = [(node, seen) for node, seen in leased if has_process_ended(seen.value.owner, now)]
        if not gone:
            return None
        self._realm_store.clock.sleep(
            DRIFT_MILLIS / 1000
        )  # or the first id would be further ahead of the clock than ids may be
        start = now + DRIFT_MILLIS + self._ahead_millis
        taken = (self._try_to_take(node, seen, start) for node, seen in gone if seen.value.start <= start)
        return next((lease for lease in taken if lease is not None), None)

    def renew_lease(self, held: HeldLease, now: int) -> HeldLease | None:
        """Renew a lease: its new end is as far from ``now`` as that of a new lease. None when another process owns the node.

        raises        UnavailableError or UnknownOutcomeError: the lease holds to its old end
        """
        longer = msgspec.structs.replace(held.value, end=self._end(now))
        try:
            return self._realm_store.update_object(held, longer)
        except (
            SwapConflictError,
            UnknownOutcomeError,
        ):  # beaten perhaps by ourselves: the answer to an earlier renewal was lost
            return self._look_again(held.id, held.value)

    def return_lease(self, held: HeldLease, end: int) -> None:
        """Shorten the lease to end at ``end``. Best effort: it also expires by itself."""
        ended = NodeLease(start=held.value.start, end=end, owner="")
        try:
            try:
                self._realm_store.update_object(held, ended)
            except SwapConflictError:
                stored = self._look_again(held.id, held.value)
                if stored is not None:
                    self._realm_store.update_object(stored, ended)
        except HeadwaterError:
            return

    def _read(self, nodes: Sequence[int]) -> list[tuple[int, HeldLease | None]]:
        """Read the leases of nodes. Unreadable leases are left out: their owner is unknown, so this process must not take them."""
        leases = self._realm_store.read_each_versioned([node_lease_id(node) for node in nodes], NodeLease)
        return [(node, lease) for node, lease in zip(nodes, leases, strict=True) if not isinstance(lease, CorruptionError)]

    def _try_to_take(self, node: int, seen: HeldLease | None, now: int) -> HeldLease | None:
        lease, lease_id = NodeLease(start=now, end=self._end(now), owner=owner_text(self._reading())), node_lease_id(node)
        try:
            return (
                self._realm_store.insert_object(lease_id, lease)
                if seen is None
                else self._realm_store.update_object(seen, lease)
            )
        except SwapConflictError:
            return None
        except UnknownOutcomeError as unclear:
            try:
                stored = self._look_again(lease_id, lease)
            except HeadwaterError as fault:
                raise UnavailableError(f"no node could be leased: {fault}") from unclear
            if stored is None:  # not to be tried on and on: each try may take as long as a call may
                raise UnavailableError(f"no node could be leased: {unclear}") from unclear
            return stored

    def _look_again(self, lease_id: ObjectId, ours: NodeLease) -> HeldLease | None:
        """The stored lease, if it is ours, written once more: a failover that took it back would let another process make our ids.

        raises        UnavailableError, UnknownOutcomeError: it is not confirmed
        """
        for _ in range(_LOOKS):
            stored = self._realm_store.find_versioned(lease_id, NodeLease)
            if stored is None or stored.value.owner != ours.owner:
                return None
            with suppress(SwapConflictError):  # an earlier write of ours has arrived only now
                return self._realm_store.confirm_object(stored)
        raise UnavailableError(f"the lease of node {node_of(lease_id)} changes too fast: try again")

    def _reading(self) -> int:
        """The clock's reading in id time. A caller's ``now`` may be ahead of it, or stale after waiting for the database."""
        return self._realm_store.clock.wall() // 1000 - EPOCH_MILLIS

    def _end(self, now: int) -> int:
        return min(now + self._lease_millis, END_MILLIS)


def check_id_time(millis: int) -> None:
    """Raise RefusedError for a clock reading that does not fit into an id."""
    if not FIRST_MILLIS <= millis < END_MILLIS:
        raise RefusedError(
            f"this machine's clock says {id_time_text(millis)}, and ids can tell the time from {id_time_text(FIRST_MILLIS)}"
            f" to {id_time_text(END_MILLIS)}: set the clock right"
        )


AHEAD_SECONDS = 10
"""How far ids may run ahead of the clock: little compared with the difference of clocks that a store tolerates."""
MOST_IDS = AHEAD_SECONDS * 1000 * SEQUENCES
"""The most ids that one call may request: as many as fit into AHEAD_SECONDS."""

_AHEAD = MOST_IDS
_BITS = SEQUENCES.bit_length() - 1
_TRIES = 16
_LONGEST_NAP_SECONDS = 0.25
_IS_LOCKED = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether a step of an iterator is atomic among threads, thanks to Python's global lock. Without it, runs are not used."""


class IdGenerator:
    """Makes ids; leases a node for the first one. Thread-safe; after a fork the child leases its own node.

    It counts ticks: milliseconds of id time, ``<< 12``, plus the sequence within the millisecond. The next tick is the clock's or, if
    the clock has not advanced, the one after the last. Ids are reserved for one millisecond at a time, and taken one by one from
    that run without a lock, until the clock leaves the millisecond.

    ``_lock`` guards the fields and is never held during a database call; ``_leasing`` is held by the one thread that makes such calls.

    lease_seconds  how long a node is leased
    renew_seconds  how long before its end a lease is renewed
    source         Snowflake, Twitter 2010: time, node and sequence in one number; the Apache Polaris persistence proposal for
                   node numbers that are leased in the same database. docs/develop/decisions/0001 says where this differs
    """

    _lease: HeldLease | None
    _renew_from: int
    """The millisecond at which the lease becomes due for renewal."""
    _current: tuple[int, Iterator[ObjectId]]
    """The run: the time (microseconds since 1970) at which the clock leaves its millisecond, and its ids that are left."""

    def __init__(self, realm_store: RealmStore, *, clock: Clock, lease_seconds: float, renew_seconds: float) -> None:
        self._clock = clock
        self._lease_millis = round(lease_seconds * 1000)
        self._renew_millis = round(renew_seconds * 1000)
        self._nodes = NodeLeases(realm_store, lease_millis=self._lease_millis, ahead_millis=AHEAD_SECONDS * 1000)
        self._is_closed = False
        self._last = -1
        """The last tick that was reserved."""
        self._highest = 0
        """The highest tick that the clock ever showed."""
        self.nodes: set[int] = set()
        """The nodes that this process has leased so far: an id with any other node was made by another process."""
        self.forget()

    def forget(self) -> None:
        """Drop the lease without returning it: it belongs to the parent process."""
        self.nodes = set()
        self._lock = threading.Lock()
        self._leasing = threading.Lock()
        self._failed: UnavailableError | None = None
        """How the last attempt to lease a node failed; never raised itself."""
        self._drop()

    def next(self) -> ObjectId:
        """A new id, greater than every id whose call had returned before this one began.

        raises        UnavailableError when no node can be leased, or ids are too far ahead of a clock that stands still;
                      RefusedError when the store is closed, or the clock's time does not fit into an id
        """
        until, run = self._current  # in one step: a run and its end belong together
        if self._clock.wall() < until:
            for made in run:  # one step of a built-in iterator: no two threads get the same
                return made
        return self._run(1)[0]

    def next_many(self, n: int) -> list[ObjectId]:
        """``n`` new ids, each greater than the one before and than all made earlier; there may be gaps between them.

        A million ids take 244 ms of id time. A caller that needs more than fit into AHEAD_SECONDS waits for the clock.

        n             0 to MOST_IDS
        raises        RefusedError for another number, and what ``next`` raises
        """
        if n < 0:
            raise RefusedError(f"{n} ids cannot be made: ask for 0 or more")
        if n > MOST_IDS:
            raise RefusedError(f"{n} ids cannot be made at once: ask for up to {MOST_IDS}, and again when they are used")
        ids: list[ObjectId] = []
        while len(ids) < n:
            ids += self._run(n - len(ids))
        return ids

    def close(self) -> None:
        """Make no more ids, and return the node: its next owner starts after the last millisecond used here. Best effort."""
        with self._lock:
            self._is_closed = True
            self._current = 0, iter(())
        with self._leasing:  # whoever leases or renews at this moment knows by now what became of it
            with self._lock:
                lease = self._lease
                self._drop()
            if lease is not None:
                self._nodes.return_lease(lease, (self._last >> _BITS) + 1)

    def leave(self, node: int) -> None:
        """Make no more ids with a node, and do not return it: another process uses it. The next id leases another node.

        Does nothing unless that is the current node: several calls may report it one after another.
        """
        with self._leasing, self._lock:
            if self._lease is not None and node_of(self._lease.id) == node:
                self._drop()

    def _run(self, n: int) -> list[ObjectId]:
        """Between 1 and ``n`` ids of one window."""
        for _ in range(_TRIES):
            self._tend(n)
            with self._lock:
                if rest := self._rest(n):  # perhaps of a run that another thread has just set aside
                    return rest
                first, limit = self._next_tick(), self._limit()
                if first < limit:
                    end, node_bits = min(first + n, limit), self._node_bits
                    self._set_aside(end, limit)
                    break
        else:
            raise UnavailableError(self._why_none())
        return _ids(first, end, node_bits)

    def _rest(self, n: int) -> list[ObjectId]:
        until, run = self._current
        return list(itertools.islice(run, n)) if self._clock.wall() < until else []

    def _next_tick(self) -> int:
        """Compute the tick of the next id from one clock reading. Returns it, and whether it is inside the window."""
        self._highest = max(self._highest, self._clock.wall() // 1000 - EPOCH_MILLIS << _BITS)
        return max(self._highest, self._last + 1)

    def _limit(self) -> int:
        """The tick (exclusive) up to which ids may be made."""
        return 0 if self._lease is None or self._is_closed else min(self._lease.value.end << _BITS, self._highest + _AHEAD)

    def _set_aside(self, end: int, limit: int) -> None:
        """Reserve a new run: from tick ``end`` to the end of the millisecond that contains the tick before it."""
        after = (end - 1 | SEQUENCES - 1) + 1
        self._last = (min(after, limit) if _IS_LOCKED else end) - 1
        self._current = ((after >> _BITS) + EPOCH_MILLIS) * 1000, iter(_ids_within(end, self._last + 1, self._node_bits))

    def _why_none(self) -> str:
        if self._last + 1 >= self._highest + _AHEAD:
            return (
                f"ids are {AHEAD_SECONDS} seconds ahead of the clock, whose highest reading is"
                f" {id_time_text(self._highest >> _BITS)}: try again when it has moved on"
            )
        return f"leases of {self._lease_millis} ms end before they can be used: raise HEADWATER_NODE_LEASE"

    def _tend(self, n: int) -> None:
        """Lease or renew a node if that is needed to make ``n`` ids, or some of them."""
        with self._lock:
            if self._is_closed:
                raise RefusedError("this store is closed and makes no more ids: open it again")
            tick, lease, failed = self._next_tick(), self._lease, self._failed
            millis, is_far_ahead = tick >> _BITS, tick >= self._highest + _AHEAD
        if lease is None or millis >= lease.value.end:
            self._take_in_turn(lease, failed)
        elif millis >= self._renew_from and self._leasing.acquire(blocking=False):
            try:
                self._renew(lease, millis)  # the other threads go on meanwhile, up to the window's end
            finally:
                self._leasing.release()
        if is_far_ahead:
            self._clock.sleep(min(max(n // SEQUENCES, 1) / 1000, _LONGEST_NAP_SECONDS))

    def _take_in_turn(self, over: HeldLease | None, failed: UnavailableError | None) -> None:
        """Lease a node, one thread at a time. Threads that waited for a failed attempt fail too, instead of each waiting as long again."""
        with self._leasing:
            with self._lock:
                if self._lease is not over or self._is_closed:
                    return
                reading = self._clock.wall() // 1000 - EPOCH_MILLIS
                start = max(reading, (self._last >> _BITS) + 1)  # beyond all before: the new node's number may be smaller
            if self._failed is not None and self._failed is not failed:
                raise UnavailableError(*self._failed.args)
            check_id_time(reading)
            try:
                lease = self._nodes.lease_node(start)
            except UnavailableError as fault:
                self._failed = UnavailableError(*fault.args)
                raise
            self._hold(lease, renew_from=lease.value.end - self._renew_millis)

    def _renew(self, lease: HeldLease, millis: int) -> None:
        if self._lease is not lease:
            return  # just done by another
        retry = millis + max(self._renew_millis // 60, 1)
        try:
            longer = self._nodes.renew_lease(lease, millis)
        except (UnavailableError, UnknownOutcomeError):
            longer = lease  # it holds to its end; tried again after a while, as each try may take as long as a call may
        if longer is None:
            with self._lock:
                self._drop()
        else:
            self._hold(longer, renew_from=max(longer.value.end - self._renew_millis, retry))

    def _hold(self, lease: HeldLease, *, renew_from: int) -> None:
        with self._lock:
            self._lease = lease
            self._node_bits = node_of(lease.id) << _BITS
            self.nodes.add(node_of(lease.id))
            self._renew_from = renew_from
            self._last = max(self._last, (lease.value.start << _BITS) - 1)

    def _drop(self) -> None:
        self._lease, self._renew_from, self._node_bits = None, 0, 0
        self._current = 0, iter(())


def _ids(first: int, end: int, node_bits: int) -> list[ObjectId]:
    """The ids of the ticks from ``first`` (inclusive) to ``end`` (exclusive)."""
    ids: list[int] = []
    while first < end:
        stop = min((first | SEQUENCES - 1) + 1, end)  # the end of the millisecond
        ids.extend(_ids_within(first, stop, node_bits))
        first = stop
    return cast(list[ObjectId], ids)


def _ids_within(first: int, end: int, node_bits: int) -> Sequence[ObjectId]:
    """The ids of ticks within one millisecond. A lazy range, because nearly all of them are never requested."""
    base = (first >> 12 << 22) | node_bits | (first & 0xFFF)
    return cast(Sequence[ObjectId], range(base, base + end - first))
