"""The insides of an operator without threads and watches: it sees and does what a test tells it to, on a clock that stands still."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cut_connections import FaultyConnection

from fake_clock import FakeClock
from headwater.jobs import COLLECT, PURGE, run_collection, run_purge
from headwater.store import Store
from headwater.tasks import TaskQueue
from headwater_operator.kube import KubeApi
from headwater_operator.metrics.operator_metrics import OperatorMetrics
from headwater_operator.resource.reconciler import Reconciler
from headwater_operator.runtime.informer_cache import ResourceCache, ResourceKey
from headwater_operator.runtime.operator_settings import OperatorSettings
from headwater_operator.runtime.workqueue import WorkQueue
from kubetest import Namespace

__all__ = ["Desk", "Killed", "Writes", "make_catalog", "make_realm"]

API = "headwater.dev/v1alpha1"
WORK = {PURGE: run_purge, COLLECT: run_collection}


class Killed(BaseException):
    """The process ended here: nothing catches this."""


class Writes:
    """How many there were to a namespace, where all who write to it count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self) -> None:
        with self._lock:
            self.count += 1


def make_realm(name: str = "acme", *, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": API, "kind": "Realm", "metadata": metadata, "spec": {"realmId": name, **spec}}


def make_catalog(
    name: str = "sales", realm: str = "acme", *, annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    storage = {"baseLocation": f"s3://lake/{realm}/{name}/"}
    return {
        "apiVersion": API,
        "kind": "Catalog",
        "metadata": metadata,
        "spec": {"realm": realm, "name": name, "storage": storage, **spec},
    }


@dataclass
class Desk:
    """One operator on a store, for one namespace.

    fence         called before each step and each write
    worker_store  the same store as a worker has opened it, where that must not be the operator's
    cluster       the name that it was given; empty: none
    others        further namespaces that it looks after
    writes        shared by all who write to the namespace: between two of them there is nothing new to be seen. None: anybody may write
    """

    namespace: Namespace
    store: Store
    worker_store: Store | None = None
    fence: Callable[[], None] = lambda: None
    resync_seconds: float = 300.0
    cluster: str = "tests"
    metrics: OperatorMetrics = field(default_factory=OperatorMetrics)
    others: tuple[Namespace, ...] = ()
    worked: list[ResourceKey] = field(default_factory=list)
    writes: Writes | None = None
    seen: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.store.clock, FakeClock)
        self.clock = self.store.clock
        self.http = FaultyConnection(self.namespace.cluster.connection, self._wrote)
        self.api = KubeApi(self.http, fence=self.fence)  # type: ignore[arg-type]  # it does what a connection does
        self.cache = ResourceCache()
        self.queue = WorkQueue[ResourceKey](self.clock)
        self.settings = OperatorSettings(resync_seconds=self.resync_seconds, cluster=self.cluster)
        self.reconciler = Reconciler(
            self.store, self.api, self.cache, self.queue, self.store.settings, self.settings, self.metrics, self.fence
        )

    def look(self) -> None:
        """See what there is now, as a watch would tell it."""
        written = self.writes.count if self.writes is not None else None
        if written == self.seen:
            return
        for kind in ("Realm", "Catalog"):
            watched = (self.namespace, *self.others)
            bodies = [body for one in watched for body in one.cluster.api.list_resources(one.path(kind))]
            named = [{**body, "apiVersion": API, "kind": kind} for body in bodies]
            for key in self.cache.replace_all(kind, named):
                self.queue.enqueue(key)
        self.seen = -1 if written is None else written

    def work(self) -> int:
        """Reconcile all that is ready, seeing after each one what came of it. Returns how many there were."""
        self.look()
        count = 0
        while (key := self.queue.take_key(timeout=0)) is not None:
            try:
                self.reconciler.reconcile(key)
            finally:
                self.queue.mark_done(key)
            self.worked.append(key)
            count += 1
            assert count < 500, f"this never ends: {self.worked[-20:]}"
            self.look()
        return count

    def go_on(self, seconds: float, *, until: Callable[[], object] = lambda: False, step: float = 1.0) -> None:
        """Work, and let time pass, until the time is over, or something is so."""
        end = self.clock.monotonic() + seconds
        self.work()
        while not until() and self.clock.monotonic() < end:
            self.clock.advance(min(step, end - self.clock.monotonic()))
            self.work()

    def work_off(self) -> int:
        """Do what a worker would: the purges and collections that are due. Returns how many there were."""
        store = self.worker_store or self.store
        tasks, now = TaskQueue(store), self.clock.now()
        due = [seen for seen in tasks.list_tasks() if seen.value.is_active and seen.value.due <= now]
        for seen in due:
            claim = tasks.claim_task(seen.id, "a worker")
            assert claim is not None
            claim.finish_task(WORK[seen.value.kind](store, claim))
        return len(due)

    def apply(self, *bodies: dict[str, Any]) -> None:
        """As a person applies them: spec and annotations are as given, and nothing else changes."""
        for body in bodies:
            path = self.namespace.path(body["kind"], body["metadata"]["name"])
            self.namespace.cluster.api.patch_resource(path, body, kind="apply", manager="a-person")
            self._wrote()

    def put_in_the_way(self, name: str = "acme-root-credentials") -> None:
        """A Secret of somebody else, by the name under which the credentials of a Realm are kept."""
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"token": "theirs"}}
        self.namespace.cluster.api.create_resource(self.namespace.path("Secret"), body)
        self._wrote()

    def delete(self, kind: str, name: str) -> None:
        self.namespace.cluster.api.delete_resource(self.namespace.path(kind, name))
        self._wrote()

    def annotate(self, kind: str, name: str, **annotations: str | None) -> None:
        """``annotate("Realm", "acme", run_now="gc")``; None takes one away."""
        named = {f"headwater.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.namespace.cluster.api.patch_resource(
            self.namespace.path(kind, name), {"metadata": {"annotations": named}}, kind="merge"
        )
        self._wrote()

    def status(self, kind: str, name: str) -> dict[str, Any]:
        return dict(self.namespace.read(kind, name).get("status") or {})

    def reason(self, kind: str, name: str, condition: str = "Ready") -> tuple[str, str]:
        """Status and reason of a condition; empty texts where it is not there."""
        found = self.namespace.condition(kind, name, condition)
        return str(found.get("status", "")), str(found.get("reason", ""))

    def is_ready(self, kind: str, name: str) -> bool:
        return self.reason(kind, name) == ("True", "Reconciled")

    def _wrote(self) -> None:
        if self.writes is not None:
            self.writes.add()
