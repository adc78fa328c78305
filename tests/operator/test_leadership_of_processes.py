"""Processes that contend for a Lease are ended, killed, stopped and woken: one acts at a time, and another soon does."""

from __future__ import annotations

import itertools
import json
import random
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater_operator.kube import resource_path
from kube_fixtures import Installation, installation
from kubetest import Cluster, Namespace, Operator, Process, wait_for
from kubetest.processes import start_process

__all__ = ["installation"]

pytestmark = pytest.mark.long

LOST = 6
TIMING = {"duration": 2.0, "renew_deadline": 1.2, "renew": 0.3, "retry": 0.1}


class Contest:
    """Processes with one Lease, and what each of them did when."""

    def __init__(self, namespace: Namespace, folder: Path) -> None:
        self._namespace = namespace
        self._folder = folder
        self._acts = folder / "acts"
        self._numbers = itertools.count()
        self.processes: dict[str, Process] = {}

    def start(self) -> str:
        """Another contender; returns its name at once."""
        name = f"contender-{next(self._numbers)}"
        program = str(Path(__file__).with_name("lease_process.py"))
        arguments = [str(self._namespace.cluster.kubeconfig), self._namespace.name, name, str(self._acts), json.dumps(TIMING)]
        log = self._folder / f"{name}.log"
        popen = start_process(
            name, [sys.executable, program, *arguments], log=log, environment=self._namespace.cluster.environment
        )
        self.processes[name] = Process(name, popen, log)
        return name

    def turns(self) -> list[str]:
        """Who acted, one after the other: a name stands here twice when another acted in between."""
        lines = self._acts.read_text().splitlines() if self._acts.exists() else []
        acts = sorted((float(at), name) for at, name in (line.split() for line in lines))
        return [name for name, _ in itertools.groupby(name for _, name in acts)]

    def wait_for_another(self, than: str) -> str:
        """The one that acts after this one."""
        return wait_for(lambda: next(iter(self.turns()[-1:]), than) != than and self.turns()[-1], why=self.turns) or ""

    def holder(self) -> str:
        lease = self._namespace.cluster.api.get_resource(resource_path("Lease", self._namespace.name, "contended"))
        return str(lease["spec"].get("holderIdentity") or "")

    def transitions(self) -> int:
        lease = self._namespace.cluster.api.get_resource(resource_path("Lease", self._namespace.name, "contended"))
        return int(lease["spec"]["leaseTransitions"])

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()


@pytest.fixture
def contest(namespace: Namespace, tmp_path: Path) -> Iterator[Contest]:
    begun = Contest(namespace, tmp_path)
    yield begun
    begun.end()


@pytest.mark.rare(2)
def test_one_acts_at_a_time_whatever_happens_to_it(contest: Contest) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    for _ in range(3):
        contest.start()
    stopped: list[str] = []
    leader = contest.wait_for_another("")
    for _ in range(15):
        process = contest.processes[leader]
        fate = chance.choice([process.popen.terminate, process.kill, process.pause])
        fate()
        if fate == process.pause:
            stopped.append(leader)
        contest.start()
        leader = contest.wait_for_another(leader)
        if stopped and chance.random() < 0.5:
            contest.processes[stopped.pop()].resume()
    for name in stopped:
        contest.processes[name].resume()
    before_the_end = contest.turns()

    wait_for(lambda: contest.holder() == leader)
    turns = contest.turns()
    assert len(turns) == len(set(turns)) == 16, f"seed {seed}: {turns}"
    assert turns == before_the_end, f"seed {seed}"
    assert contest.transitions() == 15, f"seed {seed}"


def test_leader_that_wakes_too_late_ends_before_acting(contest: Contest) -> None:
    first = contest.start()
    contest.wait_for_another("")
    contest.start()
    contest.processes[first].pause()
    second = contest.wait_for_another(first)
    contest.processes[first].resume()
    code = contest.processes[first].popen.wait(10)

    assert code == LOST
    assert contest.turns() == [first, second]


def test_leader_stopped_for_long_ends_even_without_a_successor(contest: Contest) -> None:
    first = contest.start()
    contest.wait_for_another("")
    process = contest.processes[first]
    process.pause()
    stopped = time.monotonic()
    wait_for(lambda: time.monotonic() - stopped > TIMING["renew_deadline"])
    process.resume()

    assert process.popen.wait(10) == LOST


def is_leading(operator: Operator) -> bool:
    return operator.metric("headwater_operator_leader") == 1


def pair(installation: Installation) -> tuple[Operator, Operator]:
    """An operator that leads, and one that stands by."""
    first = installation.start_operator()
    wait_for(lambda: is_leading(first))
    return first, installation.start_operator()


def seconds_to_lead(operator: Operator, *, within: float) -> float:
    began = time.monotonic()
    wait_for(lambda: is_leading(operator) and operator.ready(), seconds=within + 5, every=0.02, why=operator.last_words)
    return time.monotonic() - began


def test_operator_that_ends_hands_over_within_three_seconds(installation: Installation) -> None:
    first, second = pair(installation)
    first.popen.terminate()
    seconds = seconds_to_lead(second, within=3)

    assert seconds < 3
    assert first.popen.wait(20) == 0


def test_operator_that_is_killed_is_replaced_within_twenty_seconds(installation: Installation) -> None:
    first, second = pair(installation)
    first.kill()

    assert seconds_to_lead(second, within=20) < 20


def test_operator_that_was_stopped_and_wakes_ends_at_once(installation: Installation) -> None:
    first, second = pair(installation)
    first.pause()
    seconds_to_lead(second, within=20)
    first.resume()

    assert first.popen.wait(120) == LOST
    assert "leader lost" in first.said
    assert is_leading(second)


def test_operator_that_stands_by_looks_after_nothing(installation: Installation, namespace: Namespace) -> None:
    first, second = pair(installation)
    namespace.apply({"apiVersion": "headwater.dev/v1alpha1", "kind": "Realm", "metadata": {"name": "acme"}, "spec": {}})
    namespace.wait_for_condition("Realm", "acme", "Ready")

    assert "acme" in first.said
    assert "acme" not in second.said


def test_leader_alone_lists_and_watches(controlled_cluster: Cluster, installation: Installation) -> None:
    made = last_request(controlled_cluster)
    first = installation.start_operator()
    wait_for(lambda: is_leading(first) and asked_by_kopf(controlled_cluster, since=made) >= WATCHED)
    led = last_request(controlled_cluster)
    second = installation.start_operator()
    wait_for(second.ready)

    stood_by = asked_by_kopf(controlled_cluster, since=led)
    taken = last_request(controlled_cluster)
    first.popen.terminate()
    seconds_to_lead(second, within=20)

    assert stood_by == set()
    wait_for(lambda: asked_by_kopf(controlled_cluster, since=taken) >= WATCHED)


WATCHED = {(verb, resource) for verb in ("list", "watch") for resource in ("realms", "catalogs")}


def asked_by_kopf(cluster: Cluster, *, since: int) -> set[tuple[str, str]]:
    """What was asked about Realms and Catalogs; the leader itself lists them from time to time, too."""
    requests = _requests(cluster, since)["requests"]
    return {(one["verb"], one["resource"]) for one in requests if one["user_agent"].startswith("kopf")}


def last_request(cluster: Cluster) -> int:
    return int(_requests(cluster, 0)["total"])


def _requests(cluster: Cluster, since: int) -> dict[str, Any]:
    path = "/apis/headwater.dev/v1alpha1/"
    url = f"{cluster.server.control}/_control/requests?since={since}&path={path}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return dict(json.load(answer))


def test_operator_ends_in_time_without_an_api_server(controlled_cluster: Cluster, installation: Installation) -> None:
    first = installation.start_operator()
    wait_for(lambda: is_leading(first))
    fault = {"action": "delay", "seconds": 30, "times": -1, "namespace": installation.home}
    control = f"{controlled_cluster.server.control}/_control/faults"
    tell(control, "POST", fault)
    try:
        code = first.stop(seconds=25)
    finally:
        tell(control, "DELETE")

    assert code in (0, LOST)


def tell(url: str, method: str, body: object = None) -> None:
    request = urllib.request.Request(url, method=method, data=json.dumps(body).encode())
    urllib.request.urlopen(request, timeout=10).close()
