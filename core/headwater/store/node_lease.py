"""Which process of which machine this is, in a form by which another process on the same machine can tell that it has ended.

Node numbers, each leased by compare-and-swap for a window of id time.

The next owner's window begins where the last one ended, so that ids of two owners differ even when their clocks do.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from headwater.clock import Micros, as_text
from headwater.errors import (
    CorruptionError,
    HeadwaterError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.store.ids import END_MILLIS, EPOCH_MILLIS, FIRST_MILLIS, NODES, ObjectId, fixed_id
from headwater.store.realm_store import RealmStore
from headwater.store.stored_objects import StoredObject, Versioned, object_type

_PARTS = 6
DRIFT_MILLIS = 1000
"""How far a clock on the wall may have moved against the time since the machine started: slewed, and not set."""


class _Mark(NamedTuple):
    """A process: the start of its machine, the namespace of its number, and when it began; with the wall clock's time at that start."""

    boot: str
    namespace: str
    began: str
    offset_millis: int


def owner_text(now_millis: int) -> str:
    """Host and process for people, and what ``has_process_ended`` needs; another text with every call.

    The process number alone does not tell two containers of one name apart, nor two leases of one process.

    now_millis    the wall clock's time, from whichever moment it is counted
    """
    boot, namespace, began, offset = _mark_of(os.getpid(), now_millis) or ("", "", "", 0)
    return f"{socket.gethostname()}:{os.getpid()}:{boot}:{namespace}:{began}:{offset}.{secrets.token_hex(8)}"


def has_process_ended(owner: str, now_millis: int) -> bool:
    """Whether the process of such a text has certainly ended, and the wall clock was not set since it wrote the text.

    False for all of which this machine cannot know: those of other machines, of other containers, of systems without /proc.
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
    """Whether no process has the number, or another one by now. One that may not be looked at is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    found = _began(pid)
    return found is not None and found != began


def _mark_of(pid: int, now_millis: int) -> _Mark | None:
    """None where the system does not tell."""
    began = _began(pid)
    with suppress(OSError, AttributeError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
        since = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        if boot and namespace and began:
            return _Mark(boot, namespace, began, now_millis - since)
    return None


def _began(pid: int) -> str | None:
    """When a process began, in ticks since the machine did; None where that is not told, and for one that ended and lingers.

    Source: proc(5), ``/proc/pid/stat``: the name stands in brackets and may hold anything; the state is the third field, the start
    the 22nd.
    """
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "ended" if fields[0] in "ZX" else fields[19]
    return None


_LEASES = 0
_BATCH = 64
"""How many leases are looked at first; all others follow in one more round trip."""


def node_lease_id(node: int) -> ObjectId:
    """Where in the system realm the lease of a node, 0 to 1023, is stored."""
    return fixed_id(_LEASES, node)


def id_time_text(millis: int) -> str:
    """A moment of id time as people write it."""
    return as_text(Micros((millis + EPOCH_MILLIS) * 1000))


@object_type("node", updateable=True)
class NodeLease(StoredObject, frozen=True, kw_only=True):
    """Who may make ids with one node number, from ``start`` (inclusive) to ``end`` (exclusive), in milliseconds of id time.

    ``owner`` names host and process, also for those who ask whether it is gone, and differs from lease to lease; it is empty when the
    node was given back.
    """

    start: int
    end: int
    owner: str


HeldLease: TypeAlias = Versioned[NodeLease]


class NodeLeases:
    """Takes, renews and gives back leases. Knows nothing of who holds one; thread-safe.

    lease_millis   how long a lease lasts
    ahead_millis   how far ids may run ahead of the clock of whoever makes them
    """

    def __init__(self, rows: RealmStore, *, lease_millis: int, ahead_millis: int) -> None:
        self._rows = rows
        self._lease_millis = lease_millis
        self._ahead_millis = ahead_millis

    def lease_node(self, now: int) -> HeldLease:
        """Lease a node from ``now`` on: one that nobody ever had, or whose last window ended by then.

        When all are leased, that of a process of this machine that was killed, starting after every id that it can have made.

        raises        UnavailableError when all are leased, or it is not known whether one was: then nobody uses it until the window
                      ends; RefusedError when no id can tell that time
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
        """The node of a process of this machine that was killed; None when there is none.

        That process read the clock that is read here, which was not set since, though it may have been slewed. So what it made lies
        before now, and that, and what ids may run ahead of the clock.
        """
        now = self._reading()
        gone = [(node, seen) for node, seen in leased if has_process_ended(seen.value.owner, now)]
        if not gone:
            return None
        self._rows.clock.sleep(DRIFT_MILLIS / 1000)  # or the first id would be further ahead of the clock than ids may be
        start = now + DRIFT_MILLIS + self._ahead_millis
        taken = (self._try_to_take(node, seen, start) for node, seen in gone if seen.value.start <= start)
        return next((lease for lease in taken if lease is not None), None)

    def renew_lease(self, held: HeldLease, now: int) -> HeldLease | None:
        """The lease with an end as far from ``now`` as that of a new one; None when the node is another's.

        raises        UnavailableError or UnknownOutcomeError: the lease holds to its old end
        """
        longer = msgspec.structs.replace(held.value, end=self._end(now))
        try:
            return self._rows.update_object(held, longer)
        except (
            SwapConflictError,
            UnknownOutcomeError,
        ):  # beaten perhaps by ourselves: the answer to an earlier renewal was lost
            return self._look_again(held.id, held.value)

    def return_lease(self, held: HeldLease, end: int) -> None:
        """Let the window end at ``end``. Best effort: it ends by itself."""
        ended = NodeLease(start=held.value.start, end=end, owner="")
        try:
            try:
                self._rows.update_object(held, ended)
            except SwapConflictError:
                found = self._look_again(held.id, held.value)
                if found is not None:
                    self._rows.update_object(found, ended)
        except HeadwaterError:
            return

    def _read(self, nodes: Sequence[int]) -> list[tuple[int, HeldLease | None]]:
        """The leases of those nodes, without those that cannot be read: whoever had them, they are not ours to take."""
        leases = self._rows.read_each_versioned([node_lease_id(node) for node in nodes], NodeLease)
        return [(node, lease) for node, lease in zip(nodes, leases, strict=True) if not isinstance(lease, CorruptionError)]

    def _try_to_take(self, node: int, seen: HeldLease | None, now: int) -> HeldLease | None:
        lease, lease_id = NodeLease(start=now, end=self._end(now), owner=owner_text(self._reading())), node_lease_id(node)
        try:
            return self._rows.insert_object(lease_id, lease) if seen is None else self._rows.update_object(seen, lease)
        except SwapConflictError:
            return None
        except UnknownOutcomeError as unclear:
            try:
                found = self._look_again(lease_id, lease)
            except HeadwaterError as fault:
                raise UnavailableError(f"no node could be leased: {fault}") from unclear
            if found is None:  # not to be tried on and on: each try may take as long as a call may
                raise UnavailableError(f"no node could be leased: {unclear}") from unclear
            return found

    def _look_again(self, lease_id: ObjectId, ours: NodeLease) -> HeldLease | None:
        found = self._rows.find_versioned(lease_id, NodeLease)
        return found if found is not None and found.value.owner == ours.owner else None

    def _reading(self) -> int:
        """What the clock says, in id time. A ``now`` that a caller passes may be ahead of it, or stale from waiting for the database."""
        return self._rows.clock.wall() // 1000 - EPOCH_MILLIS

    def _end(self, now: int) -> int:
        return min(now + self._lease_millis, END_MILLIS)


def check_id_time(millis: int) -> None:
    """Raise RefusedError for a reading that no id can tell."""
    if not FIRST_MILLIS <= millis < END_MILLIS:
        raise RefusedError(
            f"this machine's clock says {id_time_text(millis)}, and ids can tell the time from {id_time_text(FIRST_MILLIS)}"
            f" to {id_time_text(END_MILLIS)}: set the clock right"
        )
