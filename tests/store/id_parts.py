"""Ids taken apart, and node leases as another process would see and make them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fake_clock import FakeClock
from headwater.store import Backend, NodeLease, ObjectId, Store, node_lease_id
from headwater.store.backends.memory import MemoryBackend
from headwater.store.ids import EPOCH_MILLIS, NODES

HOUR = 3600.0
FOREVER = 1 << 40


def node_of(object_id: ObjectId) -> int:
    return object_id >> 12 & 0x3FF


def millis_of(object_id: ObjectId) -> int:
    return object_id >> 22


def millis_now(store: Store) -> int:
    return store.clock.now() // 1000 - EPOCH_MILLIS


def lease_of(store: Store, object_id: ObjectId) -> NodeLease:
    return lease_on(store, node_of(object_id))


def lease_on(store: Store, node: int) -> NodeLease:
    return store.system.read_versioned(node_lease_id(node), NodeLease).value


def leases(store: Store) -> list[NodeLease]:
    """All that were ever taken."""
    found = store.system.read_many_versioned([node_lease_id(node) for node in range(NODES)], NodeLease)
    return [lease.value for lease in found if lease is not None]


def leased_nodes(store: Store) -> int:
    return len(leases(store))


def fill(store: Store, *, but: Iterable[int] = (), end: int = FOREVER) -> None:
    """Let another process have all nodes but some, to the end of that millisecond of id time."""
    kept, other = set(but), NodeLease(start=0, end=end, owner="other")
    store.system.write_objects([(node_lease_id(node), other) for node in range(NODES) if node not in kept])


def steal(store: Store, node: int) -> NodeLease:
    """Take a node over, whether or not its lease has ended."""
    now = millis_now(store)
    seen = store.system.read_versioned(node_lease_id(node), NodeLease)
    return store.system.update_object(seen, NodeLease(start=now, end=now + 3_600_000, owner="thief")).value


class StuckClock(FakeClock):
    """A clock that does not move by sleeping, as that of a machine does after a step back, until it has caught up."""

    def sleep(self, seconds: float) -> None:
        self.naps = [*getattr(self, "naps", []), seconds]


class SharedBackend:
    """A backend of several stores in this process, which the first of them that closes does not close."""

    def __init__(self, backend: Backend | None = None) -> None:
        self._backend = backend or MemoryBackend()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def close(self) -> None:
        """Nothing: the others go on."""
