"""Who acts: of several operators the one that holds the Lease, and it only for as long as that is certain.

A leader renews its Lease every two seconds. Whoever waits watches the Lease's record, and takes it over when the record has stood still
for fifteen seconds *on its own monotonic clock*: the times written in the record are for people, so shifted clocks do no harm. Every
write of the Lease is a swap of the state that was seen, so of two that take it over, one loses.

    leader   renew begins      answer: still mine                 ten seconds after the last good renewal *began*: acts no more
               |------------------|                                     |
    other            sees the record change                                          fifteen seconds after it saw that: takes over
                            |------------------------------------------------------------|

A leader that was stopped (SIGSTOP, a frozen machine) and wakes is past its ten seconds: `fence`, which stands before each of its writes,
raises, and the process ends. If somebody deletes the Lease, its holder ends at its next renewal, and who waited waits its time out.
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
    """Seconds that go on while the machine sleeps, where the system can say them."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class LeadHolder(Protocol):
    """What the rest of the operator knows of leading."""

    @property
    def is_held(self) -> bool: ...

    @property
    def seen_seconds_ago(self) -> float:
        """How long ago the Lease was read or renewed last."""
        ...

    def fence(self) -> None:
        """Passes while this process surely leads.

        raises        FencedError when it is not certain any more: do nothing more
        """
        ...

    def acquire(self, stop: threading.Event) -> bool:
        """Wait for the lead. False when ``stop`` was set before."""
        ...

    def check_lead(self) -> None:
        """Notice a renewal that is overdue, also when its request hangs.

        raises        FencedError when the lead was lost
        """
        ...

    def release_lead(self) -> None:
        """Give the lead up, so that another need not wait. Nothing may act any more when this is called."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """duration    a record that stood still for this long is taken over
    renew_deadline  a leader that could not renew for this long acts no more; less than the duration
    renew, retry    seconds between two renewals, and between two looks or after a failed try
    """

    duration: float = 15.0
    renew_deadline: float = 10.0
    renew: float = 2.0
    retry: float = 1.0


@dataclass(frozen=True, slots=True)
class _Sight:
    """A record of the Lease and since when it has been seen to stand still, on our clock."""

    record: tuple[str, str]
    since: float


class UncontestedLead:
    """Leading without a Lease: for a laptop, and where only one operator can ever run."""

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
    """The Lease, as one process sees it.

    api           writes without a bucket and without a fence of its own, and gives up on an answer soon
    identity      unlike any other process', also unlike this one's before a restart
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
        """Wait for the Lease, then keep renewing it in a thread. An API server that does not answer is asked again."""
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
        """Look, and take the Lease if nobody holds it. True: it is ours from now on."""
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
        """Whether it was given back, or its record has stood still. The answer may be old by now: the swap finds out."""
        record, duration = _record_of(lease), max(self._timing.duration, _duration_of(lease))
        former = self._sight
        if former is None or former.record != record:
            self._sight = _Sight(record, self._monotonic())
        self._has_been_there = self._has_been_there or lease is not None
        if not self._has_been_there:
            return True  # nobody ever led; were it gone since we saw it, its holder might not have noticed yet
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
        """Swap our record for a newer one.

        raises        FencedError when it is another's, or gone
        """
        started = self._monotonic()
        assert self._lease is not None
        try:
            renewed = self._api.replace_resource(self._path, self._body(self.identity, self._lease))
        except SwapConflictError:
            self._look_again()  # another's write, or one of ours that arrived although its answer did not
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
        """An answer that comes after the deadline comes too late: what was not certain for a moment does not become so again."""
        self.fence()
        self._hold(lease, started)

    def _hold(self, lease: dict[str, Any], started: float) -> None:
        self._seen_at = self._monotonic()
        with self._lock:
            self._lease = lease
            if not self._stopped.is_set() and not self._is_lost:  # once it may have been lost, it is
                self._certain_until = started + self._timing.renew_deadline

    def _say(self, what: str, **more: str) -> None:
        """Log it, unless it is what was said last: these looks come each second."""
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
        """The Lease with a new record. Whatever else others wrote into it stays."""
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
    """What changes with each renewal."""
    if lease is None:
        return NO_RECORD
    spec = lease.get("spec") or {}
    return (str(lease["metadata"].get("resourceVersion")), str(spec.get("renewTime")))


def _holder_of(lease: dict[str, Any] | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or RELEASED)


def _duration_of(lease: dict[str, Any] | None) -> float:
    """What the holder counts on; one with other settings than ours is not cut short."""
    try:
        return float(((lease or {}).get("spec") or {}).get("leaseDurationSeconds") or 0)
    except (TypeError, ValueError):
        return 0.0
