"""The operator at scale: 1,000 Realms and 3,000 Catalogs on the API server of the tests, with a store on SQLite on disk.

Operator, API server and this script are processes of their own on one machine, so each has a part of it only.
Settings are the shipped ones.
Run it with ``make bench SUITE=kubernetes``; ``--quick`` is small and shows that it works.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from benchmarks.disk import ROOT, working_folder
from benchmarks.report import Row, at_most, say, show, write_results

from headwater.reconcile import FileCredentials, ManagerIdentity, read_manifest, reconcile_catalog, reconcile_realm
from headwater.settings import Settings
from headwater.store import RealmId, open_store

sys.path.append(str(ROOT / "tests"))
from kubetest import Cluster, Namespace, Operator, start_cluster, start_operator, wait_for

SUITE = "kubernetes"
BACKEND = "sqlite"
CATALOGS_OF_A_REALM = 3
LONG = 3600.0


@dataclass(frozen=True)
class Scale:
    realms: int
    rest_seconds: float
    latencies: int
    terms: int
    kills: int

    @property
    def catalogs(self) -> int:
        return self.realms * CATALOGS_OF_A_REALM

    @property
    def resources(self) -> int:
        return self.realms + self.catalogs


FULL = Scale(realms=1000, rest_seconds=600, latencies=30, terms=10, kills=5)
QUICK = Scale(realms=20, rest_seconds=10, latencies=3, terms=2, kills=1)


def main(arguments: list[str]) -> int:
    is_quick = "--quick" in arguments
    scale, load = (QUICK if is_quick else FULL), os.getloadavg()[0]
    with working_folder() as folder:
        floor = core_alone(scale, folder)
        with start_cluster(folder) as cluster:
            rows = list(measure(Bench(cluster, cluster.make_namespace("bench"), scale, folder), floor))
    print(show(rows))
    settings = {"realms": scale.realms, "catalogs": scale.catalogs, "rest_seconds": scale.rest_seconds, "load_before": load}
    print(f"\nwritten to {write_results(SUITE, rows, settings=settings, is_quick=is_quick)}")
    return 0


def measure(bench: Bench, floor: Floor) -> Iterator[Row]:
    scale, name = bench.scale, f"{bench.scale.realms:,} Realms and {bench.scale.catalogs:,} Catalogs"
    say(f"{name}: applying them while no operator runs")
    bench.create_all()
    try:
        yield from first_start(bench, name, floor)
        yield from rest(bench, scale)
        yield from latency(bench, scale)
        yield from second_start(bench)
        yield from hand_overs(bench, scale)
    finally:
        bench.end()


# The cases


def first_start(bench: Bench, name: str, floor: Floor) -> Iterator[Row]:
    say("first start: until all are ready")
    before = bench.cluster.writes()
    operator, watched = bench.start_operator()
    seconds = bench.wait_until_all_are_ready(operator, watched)
    yield Row(f"{name}: process start to all Ready", BACKEND, seconds, "s", floor.seconds)
    yield Row("resources made Ready", BACKEND, bench.scale.resources / seconds, "resources/s", floor.per_second)
    yield Row("CPU of the operator until all Ready", BACKEND, watched.cpu_seconds(), "s", floor.cpu_seconds)
    yield Row("peak RSS until all Ready", BACKEND, watched.peak_mib, "MiB", target=at_most(400))
    bench.settle(operator)
    made = difference(before, bench.cluster.writes())
    for kind, count in (("Realm", bench.scale.realms), ("Catalog", bench.scale.catalogs)):
        yield Row(f"writes of a {kind} and its status", BACKEND, about(made, f"{kind.lower()}s") / count, "writes", 2)
    yield Row("Secrets written per Realm", BACKEND, about(made, "secrets") / bench.scale.realms, "writes", 1)
    yield Row("Events written per resource", BACKEND, about(made, "events") / bench.scale.resources, "writes")
    yield Row("steady RSS", BACKEND, watched.rss_mib(), "MiB", target=at_most(400))
    yield Row("store on disk", BACKEND, bench.store_mib(), "MiB", floor.store_mib)


def rest(bench: Bench, scale: Scale) -> Iterator[Row]:
    say(f"at rest for {scale.rest_seconds:g} s")
    operator, watched = bench.leader
    before, cpu, passes = bench.cluster.writes(), watched.cpu_seconds(), operator.passes()
    time.sleep(scale.rest_seconds)
    minutes = scale.rest_seconds / 60
    made, cpu, passes = difference(before, bench.cluster.writes()), watched.cpu_seconds() - cpu, operator.passes() - passes
    renewals = about(made, "leases")
    span = f"at rest for {minutes:.3g} min"
    yield Row(f"{span}: API writes, without the Lease", BACKEND, sum(made.values()) - renewals, "writes", target=at_most(0))
    yield Row(f"{span}: renewals of the Lease", BACKEND, renewals, "writes")
    yield Row(f"{span}: looks at a resource", BACKEND, passes, "looks")
    yield Row(f"{span}: CPU", BACKEND, cpu / minutes, "s/min")
    yield Row(f"{span}: RSS afterwards", BACKEND, watched.rss_mib(), "MiB", target=at_most(400))


def latency(bench: Bench, scale: Scale) -> Iterator[Row]:
    say("one more realm among all the others")
    seconds = [bench.one_more(f"more-{number}") for number in range(scale.latencies)]
    title = f"kubectl apply to Ready, one more realm, median of {len(seconds)}"
    yield Row(title, BACKEND, statistics.median(seconds), "s", bench.apply_floor())
    yield Row("the same, worst", BACKEND, max(seconds), "s")


def second_start(bench: Bench) -> Iterator[Row]:
    say("restart with all of them present")
    bench.stop_leader()
    total = sum(1 for _ in bench.bodies())
    before = bench.cluster.writes()
    operator, watched = bench.start_operator()
    wait_for(operator.ready, seconds=LONG, why=operator.last_words)
    yield Row("restart: process start to /readyz", BACKEND, watched.age(), "s", target=at_most(60))
    wait_for(lambda: has_seen(operator, total), seconds=LONG, every=0.1, why=operator.last_words)
    yield Row("restart: process start until all were looked at", BACKEND, watched.age(), "s", target=at_most(60))
    yield Row("restart: CPU until then", BACKEND, watched.cpu_seconds(), "s")
    bench.settle(operator)
    yield Row("restart: peak RSS", BACKEND, watched.peak_mib, "MiB", target=at_most(400))
    made = difference(before, bench.cluster.writes())
    others = sum(made.values()) - about(made, "leases")
    yield Row("restart: API writes, without the Lease", BACKEND, others, "writes", target=at_most(0))


def hand_overs(bench: Bench, scale: Scale) -> Iterator[Row]:
    for signal_name, rounds, bound in (("SIGTERM", scale.terms, 3), ("SIGKILL", scale.kills, 20)):
        say(f"hand-over at {signal_name}, {rounds} rounds")
        held, done, both = [], [], 0
        for number in range(rounds):
            result = bench.hand_over(signal_name, f"{signal_name.lower()}-{number}")
            held.append(result.held_seconds)
            done.append(result.done_seconds)
            both += result.moments_with_two
        yield Row(
            f"hand-over at {signal_name}: until the standby leads, median of {rounds}", BACKEND, statistics.median(held), "s"
        )
        yield Row(f"hand-over at {signal_name}: the same, worst", BACKEND, max(held), "s", target=at_most(bound))
        yield Row(f"hand-over at {signal_name}: until a Realm applied at that moment is Ready, worst", BACKEND, max(done), "s")
        yield Row(f"hand-over at {signal_name}: moments with two leaders", BACKEND, both, "moments", target=at_most(0))


# What is measured


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Writes by verb and resource between two looks."""
    return {what: count - before.get(what, 0) for what, count in after.items()}


def about(writes: dict[str, int], plural: str) -> int:
    """Those of one kind, with its status."""
    return sum(count for what, count in writes.items() if what.split(" ")[1].split("/")[0] == plural)


def has_seen(operator: Operator, total: int) -> bool:
    return operator.passes() >= total and operator.metric("headwater_operator_queue_depth") == 0


@dataclass
class Watched:
    """A process under observation: its memory every tenth of a second, with its children."""

    pid: int
    started: float = field(default_factory=time.monotonic)
    peak_mib: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> Watched:
        threading.Thread(target=self._sample, daemon=True).start()
        return self

    def age(self) -> float:
        return time.monotonic() - self.started

    def rss_mib(self) -> float:
        return psutil.Process(self.pid).memory_info().rss / 1024**2

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system

    def _sample(self) -> None:
        while not self.ended.wait(0.1):
            try:
                self.peak_mib = max(self.peak_mib, self.rss_mib())
            except psutil.Error:
                return


@dataclass(frozen=True)
class Floor:
    """What the store alone takes for the same realms and catalogs: the core in one thread, no Kubernetes."""

    seconds: float
    cpu_seconds: float
    per_second: float
    store_mib: float


@dataclass(frozen=True)
class HandOver:
    held_seconds: float
    done_seconds: float
    moments_with_two: int


@dataclass
class Bench:
    cluster: Cluster
    namespace: Namespace
    scale: Scale
    folder: Path
    changes: dict[str, str] = field(default_factory=dict)
    """Settings of the operator that differ from the shipped ones."""
    running: list[tuple[Operator, Watched]] = field(default_factory=list)
    numbers: int = 0

    @property
    def leader(self) -> tuple[Operator, Watched]:
        return self.running[0]

    @property
    def database(self) -> Path:
        return self.folder / "headwater.db"

    def create_all(self) -> None:
        """By many connections at once: how fast they come is not what is measured."""
        bodies = list(resources(self.scale))
        with ThreadPoolExecutor(8) as pool:
            made = pool.map(lambda body: self.cluster.api.create_resource(self.namespace.path(body["kind"]), body), bodies)
            assert len(list(made)) == self.scale.resources

    def start_operator(self) -> tuple[Operator, Watched]:
        self.numbers += 1
        environment = self.cluster.environment | {
            "HEADWATER_STORE": f"sqlite:///{self.database}",
            "HEADWATER_OPERATOR_NAMESPACE": self.namespace.name,
            "HEADWATER_OPERATOR_IDENTITY": f"operator-{self.numbers}",
            "HEADWATER_LOG_FORMAT": "json",
            **self.changes,
        }
        operator = start_operator(environment, self.folder / f"operator-{self.numbers}.log", name=f"operator-{self.numbers}")
        started = (operator, Watched(operator.pid).watch())
        self.running.append(started)
        return started

    def stop_leader(self) -> None:
        operator, watched = self.running.pop(0)
        watched.ended.set()
        operator.stop()

    def end(self) -> None:
        for operator, watched in self.running:
            watched.ended.set()
            operator.kill()

    def wait_until_all_are_ready(self, operator: Operator, watched: Watched) -> float:
        """Seconds since the process was started. The operator's own figures say when, the resources whether it is true."""

        def ready() -> float:
            return operator.metric("headwater_operator_resources", condition="Ready", status="True")

        wait_for(operator.alive, seconds=60, why=operator.last_words)
        wait_for(lambda: ready() >= self.scale.resources, seconds=LONG, every=0.2, why=operator.last_words)
        seconds = watched.age()
        assert self.all_are_ready()
        return seconds

    def all_are_ready(self) -> bool:
        return all(
            any(one["type"] == "Ready" and one["status"] == "True" for one in body["status"]["conditions"])
            for body in self.bodies()
        )

    def bodies(self) -> Iterable[dict[str, Any]]:
        for kind in ("Realm", "Catalog"):
            yield from self.cluster.api.list_resources(self.namespace.path(kind))

    def settle(self, operator: Operator) -> None:
        """Until nothing waits to be looked at, and nothing was written for five seconds."""

        def written() -> int:
            writes = self.cluster.writes()
            return sum(writes.values()) - about(writes, "leases")

        before = -1
        while before != (before := written()) or operator.metric("headwater_operator_queue_depth"):
            time.sleep(5)

    def store_mib(self) -> float:
        with sqlite3.connect(self.database) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return self.database.stat().st_size / 1024**2

    def apply(self, name: str) -> None:
        self.namespace.apply(realm_body(name))

    def one_more(self, name: str) -> float:
        started = time.monotonic()
        self.apply(name)
        wait_for(lambda: self.namespace.condition("Realm", name, "Ready").get("status") == "True", seconds=120, every=0.01)
        return time.monotonic() - started

    def apply_floor(self) -> float:
        """kubectl apply alone, of something that nobody looks after."""
        started = time.monotonic()
        self.namespace.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "floor"}, "data": {"a": "b"}})
        return time.monotonic() - started

    def hand_over(self, signal_name: str, realm: str) -> HandOver:
        leader = self.leader[0]
        standby, _ = self.start_operator()
        wait_for(standby.alive, seconds=60, why=standby.last_words)
        time.sleep(3)  # it has seen the Lease by now
        applying = threading.Thread(target=self.apply, args=(realm,))
        started = time.monotonic()
        applying.start()
        leader.popen.terminate() if signal_name == "SIGTERM" else leader.popen.kill()
        two = 0

        def is_held() -> bool:
            nonlocal two
            held = standby.is_leader()
            two += held and leader.is_leader()
            return held

        wait_for(is_held, seconds=120, every=0.02, why=standby.last_words)
        held_seconds = time.monotonic() - started
        applying.join()
        wait_for(lambda: self.namespace.condition("Realm", realm, "Ready").get("status") == "True", seconds=120, every=0.02)
        done_seconds = time.monotonic() - started
        self.running.pop(0)[1].ended.set()
        leader.popen.wait(30)
        return HandOver(held_seconds, done_seconds, two)


# The floor


def core_alone(scale: Scale, folder: Path) -> Floor:
    say("floor: the core alone, in one thread, without Kubernetes")
    database = folder / "floor.db"
    started, times = time.monotonic(), time.process_time()
    settings, manager = Settings(), ManagerIdentity(cluster="floor")
    credentials = FileCredentials(folder / "credentials")
    with open_store(f"sqlite:///{database}", settings=settings) as store:
        for body in resources(scale):
            realm_id = RealmId(body["spec"].get("realm", ""))
            manifest: Any = read_manifest(body, settings=settings, realm_id=realm_id or None)
            outcome = (
                reconcile_realm(store, manifest, credentials=credentials, manager=manager)
                if body["kind"] == "Realm"
                else reconcile_catalog(store, manifest, credentials=credentials, manager=manager, may_be_unmanaged=True)
            )
            assert outcome.is_settled, outcome
    seconds = time.monotonic() - started
    return Floor(seconds, time.process_time() - times, scale.resources / seconds, database.stat().st_size / 1024**2)


def resources(scale: Scale) -> Iterator[dict[str, Any]]:
    for number in range(scale.realms):
        yield realm_body(f"realm-{number:04}")
    for number in range(scale.realms):
        for word in ("raw", "clean", "marts")[:CATALOGS_OF_A_REALM]:
            yield catalog_body(word, f"realm-{number:04}")


def realm_body(name: str) -> dict[str, Any]:
    spec = {"properties": {"owner": "data-platform", "cost-centre": "4711"}, "maintenance": {"timeZone": "Europe/Berlin"}}
    return {"apiVersion": "headwater.dev/v1alpha1", "kind": "Realm", "metadata": {"name": name}, "spec": spec}


def catalog_body(word: str, realm: str) -> dict[str, Any]:
    return {
        "apiVersion": "headwater.dev/v1alpha1",
        "kind": "Catalog",
        "metadata": {"name": f"{realm}-{word}"},
        "spec": {"realm": realm, "name": word, "storage": {"baseLocation": f"s3://lake/{realm}/{word}"}},
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
