"""The label of the server that writes: on one pod, moved by whoever holds the Lease, and by nobody else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from answer_server import answering

from headwater.errors import FencedError
from headwater_operator.kube import KubeApi, resource_path
from headwater_operator.writer_election import WRITER_LABEL, ServerWatch, WriterLabel
from kubetest import Namespace, wait_for

OURS = {"app.kubernetes.io/component": "server", "app.kubernetes.io/instance": "lake"}
SELECTOR = ",".join(f"{name}={value}" for name, value in OURS.items())


class ServerPods:
    """Pods in a namespace, by name; those that this test makes."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.api = KubeApi(namespace.cluster.connection)  # by the name of Headwater's programs: what it asks has to be recorded

    def make(self, name: str, **labels: str) -> None:
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": OURS | {key.replace("_", "."): value for key, value in labels.items()}},
            "spec": {"containers": [{"name": "server", "image": "headwater-server:0"}]},
        }
        self.namespace.cluster.api.create_resource(resource_path("Pod", self.namespace.name, None), body)

    def add_label(self, name: str) -> None:
        change = {"metadata": {"labels": {WRITER_LABEL: "true"}}}
        self.api.patch_resource(resource_path("Pod", self.namespace.name, name), change, kind="merge")

    def labelled(self) -> list[str]:
        listed = self.api.list_resources(resource_path("Pod", self.namespace.name, None), label_selector=f"{WRITER_LABEL}=true")
        return sorted(pod["metadata"]["name"] for pod in listed)

    def label(self, pod: str) -> WriterLabel:
        return WriterLabel(self.namespace.name, SELECTOR, pod)


@pytest.fixture
def pods(namespace: Namespace) -> ServerPods:
    made = ServerPods(namespace)
    made.make("a")
    made.make("b")
    return made


def test_label_moves_to_the_pod_of_the_holder(pods: ServerPods) -> None:
    pods.label("a").move_here(pods.api)
    first = pods.labelled()
    pods.label("b").move_here(pods.api)

    assert (first, pods.labelled()) == (["a"], ["b"])


def test_other_pods_lose_the_label_first(pods: ServerPods) -> None:
    pods.label("a").move_here(pods.api)
    moved: list[list[str]] = []
    watched = KubeApi(pods.api.connection, fence=lambda: moved.append(pods.labelled()))
    pods.label("b").move_here(watched)

    assert moved == [["a"], []]


def test_label_that_is_in_its_place_is_not_written_again(pods: ServerPods) -> None:
    pods.label("a").move_here(pods.api)
    writes: list[str] = []
    pods.label("a").move_here(KubeApi(pods.api.connection, fence=lambda: writes.append("write")))

    assert writes == []


def test_all_wrong_labels_go_at_once(pods: ServerPods) -> None:
    pods.make("c")
    for name in ("b", "c"):
        pods.add_label(name)
    pods.label("a").move_here(pods.api)

    assert pods.labelled() == ["a"]


def test_pods_of_another_release_keep_their_label(pods: ServerPods) -> None:
    pods.make("other", **{"app_kubernetes_io/instance": "sea"})
    pods.add_label("other")
    pods.label("a").move_here(pods.api)

    assert pods.labelled() == ["a", "other"]


def test_label_is_not_moved_without_the_lease(pods: ServerPods) -> None:
    def refuse() -> None:
        raise FencedError("somebody else holds it")

    with pytest.raises(FencedError):
        pods.label("a").move_here(KubeApi(pods.api.connection, fence=refuse))

    assert pods.labelled() == []


@pytest.fixture
def probe() -> Iterator[HTTPServer]:
    """A `/readyz` whose status a test sets."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(server.status)  # type: ignore[attr-defined]  # an attribute of the test's own
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.status = 503  # type: ignore[attr-defined]  # see above
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def watch_server(probe: HTTPServer) -> Iterator[Callable[[Callable[[], None]], ServerWatch]]:
    begun: list[ServerWatch] = []

    def watch(on_gone: Callable[[], None]) -> ServerWatch:
        begun.append(ServerWatch(f"http://127.0.0.1:{probe.server_port}/readyz", on_gone, look_seconds=0.01))
        begun[-1].begin_looks()
        return begun[-1]

    yield watch
    for watching in begun:
        watching.end_looks()


def test_server_counts_once_it_is_ready(probe: Any, watch_server: Callable[..., ServerWatch]) -> None:
    watch = watch_server(lambda: None)
    before = watch.is_ready
    probe.status = 200
    watch.wait_until_ready()

    assert (before, watch.is_ready) == (False, True)


def test_server_that_is_gone_is_told_once(probe: Any, watch_server: Callable[..., ServerWatch]) -> None:
    probe.status, told = 200, []
    watch = watch_server(lambda: told.append("gone"))
    watch.wait_until_ready()
    probe.status = 503
    wait_for(lambda: told, seconds=5)
    watch.end_looks()

    assert told == ["gone"]


def test_server_that_speaks_tls_is_looked_at_on_its_own_pod(certificates: dict[str, str]) -> None:
    """By an address that no certificate names."""
    with answering(**certificates) as server:
        watch = ServerWatch(server.url.replace("127.0.0.1", "localhost") + "/readyz", lambda: None, look_seconds=0.01)
        watch.begin_looks()
        watch.wait_until_ready()
        asked = [one.path for one in server.asked]
        watch.end_looks()

    assert asked[0] == "/readyz"
