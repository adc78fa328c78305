"""Leader election: only the operator that holds the Lease acts, and only while it is certain to hold it.

A leader renews its Lease every two seconds. A standby watches the Lease's record, and takes it over when the record has not changed
for fifteen seconds *on its own monotonic clock*: the times written in the record are for people, so shifted clocks do no harm. Every
write of the Lease is a swap of the state that was seen, so of two that take it over, one loses.

    leader   renew begins      answer: still mine                 ten seconds after the last good renewal *began*: acts no more
               |------------------|                                     |
    other            sees the record change                                          fifteen seconds after it saw that: takes over
                            |------------------------------------------------------------|

A leader that was stopped (SIGSTOP, a frozen machine) and wakes is past its ten seconds: `fence`, which stands before each of its writes,
raises, and the process ends. If the Lease is deleted, its holder ends at its next renewal, and a standby still waits for the full
duration.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from headwater.errors import FencedError, HeadwaterError, NotFoundError, SwapConflictError
from headwater_operator.kube import KubeApi, resource_path

log = structlog.get_logger(__name__)

NO_RECORD = ("", "")
RELEASED = ""


def _monotonic() -> float:
    """Monotonic seconds that include the machine's sleep, where the system provides them."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class LeadHolder(Protocol):
    """The leader election as seen by the rest of the operator."""

    @property
    def is_held(self) -> bool: ...

    @property
    def seen_seconds_ago(self) -> float:
        """Seconds since the Lease was last read or renewed."""
        ...

    def fence(self) -> None:
        """Pass while this process certainly leads.

        raises        FencedError when it is not certain any more: do nothing more
        """
        ...

    def acquire(self, stop: threading.Event) -> bool:
        """Wait for leadership. Returns False when ``stop`` was set first."""
        ...

    def check_lead(self) -> None:
        """Detect an overdue renewal, even while its request hangs.

        raises        FencedError when the lead was lost
        """
        ...

    def release_lead(self) -> None:
        """Release the lead, so that another process need not wait. Nothing may act any more when this is called."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The times of the Lease.

    duration    a record that is unchanged for this long is taken over
    renew_deadline  a leader that could not renew for this long stops acting; less than the duration
    renew, retry    seconds between two renewals, and between two reads or after a failed attempt
    """

    duration: float = 15.0
    renew_deadline: float = 10.0
    renew: float = 2.0
    retry: float = 1.0


@dataclass(frozen=True, slots=True)
class _Sight:
    """A record of the Lease, and since when it is unchanged by our clock."""

    record: tuple[str, str]
    since: float


class UncontestedLead:
    """Leadership without a Lease: for a laptop, or where only one operator can ever run."""

    is_held = True
    seen_seconds_ago = 0.0

    def fence(self) -> None:
        return

    def acquire(self, stop: threading.Event) -> bool:
        return not stop.is_set()

    def check_lead(self) -> None:
        return

    def release_lead(self) -> None:
        return


class Leadership:
    """The leader election of one process by a Lease.

    api           writes without a bucket and without a fence of its own, and gives up on an answer soon
    identity      unique to this process, also across restarts
    on_lost       called once, from any thread, when the lead is lost; ends the process
    """

    def __init__(
        self,
        api: KubeApi,
        *,
        namespace: str,
        name: str,
        identity: str,
        timing: LeaseTiming = LeaseTiming(),
        on_lost: Callable[[str], None] = lambda why: None,
        monotonic: Callable[[], float] = _monotonic,
    ) -> None:
        self._api = api
        self._collection = resource_path("Lease", namespace, None)
        self._path = resource_path("Lease", namespace, name)
        self._metadata = {"name": name, "namespace": namespace}
        self.identity = identity
        self._timing = timing
        self._on_lost = on_lost
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._lease: dict[str, Any] | None = None
        self._sight: _Sight | None = None
        self._seen_at: float | None = None
        self._certain_until: float | None = None
        self._is_lost = False
        self._has_been_there = False
        self._said: tuple[str, ...] = ()

    @property
    def is_held(self) -> bool:
        until = self._certain_until
        return until is not None and self._monotonic() < until

    @property
    def seen_seconds_ago(self) -> float:
        return float("inf") if self._seen_at is None else self._monotonic() - self._seen_at

    def fence(self) -> None:
        until = self._certain_until
        if until is None:
            raise FencedError(f"{self.identity} does not hold the Lease {self._path}")
        if self._monotonic() >= until:
            self._lose("its renewal is overdue")
            raise FencedError(f"{self.identity} may have lost the Lease {self._path}: its renewal is overdue")

    def acquire(self, stop: threading.Event) -> bool:
        """Wait for the Lease, then keep renewing it in a thread. An unavailable API server is retried."""
        while not stop.is_set():
            try:
                if self._tried():
                    self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
                    self._thread.start()
                    log.info("leader elected", identity=self.identity, lease=self._path)
                    return True
                self._say("waiting for the lease", holder=_holder_of(self._lease))
            except SwapConflictError:
                self._say("another took the lease first")
            except HeadwaterError as fault:
                self._say("the lease cannot be read or taken", error=str(fault))
            stop.wait(self._timing.retry)
        return False

    def check_lead(self) -> None:
        if self._certain_until is not None:
            self.fence()

    def release_lead(self) -> None:
        self._stopped.set()
        was_held = self.is_held
        if self._thread is not None:
            self._thread.join(self._timing.renew_deadline)
            was_held = was_held and not self._thread.is_alive()
        with self._lock:
            self._certain_until = None
        if was_held and self._lease is not None and not self._is_lost:
            try:
                self._lease = self._api.replace_resource(self._path, self._body(RELEASED, self._lease))
            except HeadwaterError as fault:
                log.warning("the lease was not given back; it runs out by itself", lease=self._path, error=str(fault))
            else:
                log.info("lease released", identity=self.identity, lease=self._path)

    def _tried(self) -> bool:
        """Read the Lease, and take it if it is free. Returns True once it is ours."""
        looked_at = self._monotonic()
        lease = self._lease = self._api.find_resource(self._path)
        self._seen_at = self._monotonic()
        if not self._is_free(lease, looked_at):
            return False
        started = self._monotonic()
        if lease is None:
            taken = self._api.create_resource(self._collection, self._body(self.identity, None))
        else:
            taken = self._api.replace_resource(self._path, self._body(self.identity, lease))
        self._hold(taken, started)
        return True

    def _is_free(self, lease: dict[str, Any] | None, looked_at: float) -> bool:
        """Whether it was released, or its record was unchanged for its duration. The answer may be outdated: the swap detects that."""
        record, duration = _record_of(lease), max(self._timing.duration, _duration_of(lease))
        former = self._sight
        if former is None or former.record != record:
            self._sight = _Sight(record, self._monotonic())
        self._has_been_there = self._has_been_there or lease is not None
        if not self._has_been_there:
            return True  # nobody ever led. If it was deleted since we saw it, its holder may not have noticed yet
        if lease is not None and _holder_of(lease) in (
            RELEASED,
            self.identity,
        ):  # ours: a write of ours arrived whose answer did not
            return True
        return former is not None and former.record == record and looked_at - former.since >= duration

    def _keep(self) -> None:
        """Renew until stopped or lost."""
        wait = self._timing.renew
        while not self._stopped.wait(wait):
            try:
                self.fence()
                self._renew()
                wait = self._timing.renew
            except FencedError:
                return
            except HeadwaterError as fault:
                wait = self._timing.retry
                log.warning("the lease was not renewed", lease=self._path, error=str(fault))

    def _renew(self) -> None:
        """Replace our record by a newer one, by a swap.

        raises        FencedError when it is another's, or gone
        """
        started = self._monotonic()
        assert self._lease is not None
        try:
            renewed = self._api.replace_resource(self._path, self._body(self.identity, self._lease))
        except SwapConflictError:
            self._look_again()  # a foreign write, or one of ours that arrived although its answer did not
        except NotFoundError:
            raise self._lost("somebody deleted it") from None
        else:
            self._hold_on(renewed, started)

    def _look_again(self) -> None:
        lease = self._api.find_resource(self._path)
        if _holder_of(lease) != self.identity:
            raise self._lost(f"{_holder_of(lease) or 'nobody'} holds it")
        with self._lock:
            self._lease = lease
        started = self._monotonic()
        self._hold_on(self._api.replace_resource(self._path, self._body(self.identity, lease)), started)

    def _hold_on(self, lease: dict[str, Any], started: float) -> None:
        """Record a renewal. An answer after the deadline is too late: lost certainty does not come back."""
        self.fence()
        self._hold(lease, started)

    def _hold(self, lease: dict[str, Any], started: float) -> None:
        self._seen_at = self._monotonic()
        with self._lock:
            self._lease = lease
            if not self._stopped.is_set() and not self._is_lost:  # once leadership may have been lost, it is lost
                self._certain_until = started + self._timing.renew_deadline

    def _say(self, what: str, **more: str) -> None:
        """Log a message unless it equals the last one: these reads happen each second."""
        said = (what, *more.values())
        if said != self._said:
            log.info(what, identity=self.identity, lease=self._path, **more)
        self._said = said

    def _lost(self, why: str) -> FencedError:
        self._lose(why)
        return FencedError(f"{self.identity} has lost the Lease {self._path}: {why}")

    def _lose(self, why: str) -> None:
        with self._lock:
            self._certain_until = min(self._certain_until or 0.0, self._monotonic())
            is_first, self._is_lost = not self._is_lost, True
        if is_first:
            log.error("leader lost", identity=self.identity, lease=self._path, why=why)
            self._on_lost(why)

    def _body(self, holder: str, former: dict[str, Any] | None) -> dict[str, Any]:
        """The Lease with a new record. Other fields stay."""
        spec = dict((former or {}).get("spec") or {})
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if holder not in (RELEASED, spec.get("holderIdentity")):
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + (former is not None)
        spec |= {"leaseDurationSeconds": max(1, round(self._timing.duration)), "renewTime": now, "holderIdentity": holder}
        if holder == RELEASED:
            del spec["holderIdentity"]  # an empty one may be refused
        if former is not None:
            return former | {"spec": spec}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": self._metadata, "spec": spec}


def _record_of(lease: dict[str, Any] | None) -> tuple[str, str]:
    """The fields that change with each renewal."""
    if lease is None:
        return NO_RECORD
    spec = lease.get("spec") or {}
    return (str(lease["metadata"].get("resourceVersion")), str(spec.get("renewTime")))


def _holder_of(lease: dict[str, Any] | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or RELEASED)


def _duration_of(lease: dict[str, Any] | None) -> float:
    """The duration that the holder relies on; it is respected even if its settings differ from ours."""
    try:
        return float(((lease or {}).get("spec") or {}).get("leaseDurationSeconds") or 0)
    except (TypeError, ValueError):
        return 0.0
