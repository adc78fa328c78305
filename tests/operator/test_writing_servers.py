"""Servers with the election beside each: one pod is labelled at a time, another soon is when it goes, and all of them answer always."""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from free_ports import free_port
from headwater.cli import main
from headwater_operator.kube import resource_path
from headwater_operator.writer_election import WRITER_LABEL
from kubetest import Namespace, Process, wait_for
from kubetest.processes import start_process

pytestmark = pytest.mark.long

TIMING = {"DURATION": "2s", "RENEW_DEADLINE": "1200ms", "RENEW": "300ms", "RETRY": "100ms"}
LABELS = {"app.kubernetes.io/component": "server"}


@dataclass
class ServerPod:
    """What runs in a pod: a server, and the election beside it."""

    name: str
    port: int
    probes: int
    server: Process
    election: Process

    @property
    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.probes}/readyz", timeout=5) as answer:
                return int(answer.status) == 200
        except OSError:
            return False

    def make_namespace(self, name: str) -> None:
        """A commit through this server."""
        url = f"http://127.0.0.1:{self.port}/iceberg/v1/acme~lake/namespaces"
        body = json.dumps({"namespace": [name], "properties": {}}).encode()
        asked = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert answer.status == 200

    def kill(self) -> None:
        self.election.kill()
        self.server.kill()


class ServerDeployment:
    """Pods on one store and one Lease, and how often more than one of them was labelled."""

    def __init__(self, namespace: Namespace, folder: Path, store: str) -> None:
        self.namespace = namespace
        self.pods: dict[str, ServerPod] = {}
        self.doubles: list[list[str]] = []
        self._folder = folder
        self._store = store
        self._numbers = itertools.count()
        self._ended = threading.Event()
        self._counter = threading.Thread(target=self._count_labels)
        self._counter.start()

    def start(self) -> ServerPod:
        """Another pod, whose server is ready."""
        name = f"server-{next(self._numbers)}"
        body = {"metadata": {"name": name, "labels": LABELS}, "spec": {"containers": [{"name": "server", "image": "s:0"}]}}
        api = self.namespace.cluster.api
        api.create_resource(resource_path("Pod", self.namespace.name, None), {"apiVersion": "v1", "kind": "Pod", **body})
        port, probes = free_port(), free_port()
        environment = self.namespace.cluster.environment | {"HEADWATER_STORE": self._store}
        served = ["headwater", "serve", "--listen", f"127.0.0.1:{port}"]
        server = self._run(f"{name}-server", served, environment | {"HEADWATER_SERVER_PROBES": f"127.0.0.1:{probes}"})
        elected = ["headwater-operator", "elect-writer", f"--server=http://127.0.0.1:{probes}/readyz"]
        election = self._run(
            f"{name}-election",
            [*elected, "--pods=app.kubernetes.io/component=server"],
            environment
            | {"POD_NAME": name, "POD_NAMESPACE": self.namespace.name, "HEADWATER_OPERATOR_LEASE_NAME": "servers"}
            | {f"HEADWATER_OPERATOR_LEASE_{key}": value for key, value in TIMING.items()},
        )
        self.pods[name] = pod = ServerPod(name, port, probes, server, election)
        wait_for(lambda: pod.is_ready, why=server.last_words)
        return pod

    def labelled(self) -> list[str]:
        listed = self.namespace.cluster.api.list_resources(
            resource_path("Pod", self.namespace.name, None), label_selector=f"{WRITER_LABEL}=true"
        )
        return [pod["metadata"]["name"] for pod in listed]

    def writer(self, than: str = "") -> ServerPod:
        """The pod that is labelled, once that is another one."""
        name = wait_for(lambda: [name for name in self.labelled() if name != than], why=self.last_words)[0]
        return self.pods[name]

    def pair(self) -> tuple[ServerPod, ServerPod]:
        """The pod that writes and one that stands by; what a test before this one ended is replaced."""
        for name, pod in list(self.pods.items()):
            if not (pod.server.is_running and pod.election.is_running):
                self.pods.pop(name).kill()
                self.namespace.cluster.api.delete_resource(resource_path("Pod", self.namespace.name, name))
        while len(self.pods) < 2:
            self.start()
        for pod in self.pods.values():
            wait_for(lambda pod=pod: "waiting for the lease" in pod.election.said or "leader elected" in pod.election.said)
        writer = self.writer()
        return writer, next(pod for pod in self.pods.values() if pod is not writer)

    def last_words(self) -> str:
        return "\n".join(process.last_words() for pod in self.pods.values() for process in (pod.server, pod.election))

    def end(self) -> None:
        self._ended.set()
        self._counter.join()
        for pod in self.pods.values():
            pod.kill()

    def _run(self, name: str, words: list[str], environment: dict[str, str]) -> Process:
        log = self._folder / f"{name}.log"
        command = [str(Path(sys.executable).with_name(words[0])), *words[1:]]
        return Process(name, start_process(name, command, log=log, environment=environment), log)

    def _count_labels(self) -> None:
        while not self._ended.wait(0.02):
            names = self.labelled()
            self.doubles += [names] if len(names) > 1 else []


def make_lake(store: str, folder: Path) -> None:
    for words in (
        ["realm", "create", "acme", "--credentials", str(folder / "root.json")],
        ["catalog", "create", "acme/lake", "--base-location", f"file://{folder}/lake"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(["--store", store, *words])
        assert ended.value.code == 0


@pytest.fixture(scope="module")
def servers(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerDeployment]:
    folder = tmp_path_factory.mktemp("servers")
    url = f"sqlite:///{folder}/store.db"
    make_lake(url, folder)
    deployment = ServerDeployment(cluster.make_namespace(), folder, url)
    yield deployment
    deployment.end()


def test_standby_takes_over_from_a_killed_pod(servers: ServerDeployment) -> None:
    writer, standby = servers.pair()
    writer.make_namespace("before_kill")
    writer.kill()
    successor = servers.writer(than=writer.name)
    successor.make_namespace("after_kill")

    assert successor is standby
    assert servers.doubles == []


def test_standby_takes_over_where_only_the_server_died(servers: ServerDeployment) -> None:
    writer, standby = servers.pair()
    writer.server.kill()

    assert servers.writer(than=writer.name) is standby
    assert "lease released" in writer.election.said
    assert servers.doubles == []


def test_election_that_is_told_to_end_hands_over(servers: ServerDeployment) -> None:
    writer, standby = servers.pair()
    code = writer.election.stop()

    assert code == 0
    assert "lease released" in writer.election.said
    assert servers.writer(than=writer.name) is standby
    assert writer.is_ready and servers.doubles == []


def test_servers_go_on_without_the_api_server(servers: ServerDeployment) -> None:
    writer, standby = servers.pair()
    with servers.namespace.cluster.is_silent():
        time.sleep(2.5)  # longer than the Lease lasts
        writer.make_namespace("api_server_away")
        standby.make_namespace("standby_writes_too")

    assert [pod.election.is_running for pod in (writer, standby)] == [True, True]
    wait_for(lambda: len(servers.labelled()) == 1)
    assert servers.doubles == []
