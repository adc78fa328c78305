"""A watch of our resources in a thread of its own, on an API server that sends bookmarks quickly and can be told what to do."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from headwater.clock import Clock, SystemClock
from headwater_operator.kube import KubeApi, KubeConnection, connect_cluster, plain_connection, resource_path
from headwater_operator.runtime.informer_cache import ResourceCache, ResourceKey
from headwater_operator.runtime.watch import ResourceWatch, WatchScope, WatchTiming
from headwater_operator.runtime.workqueue import WorkQueue
from kubetest.cluster import PersonConnection
from kubetest.emulated import Emulated, start_emulated
from kubetest.recorded_shapes import assert_recorded
from kubetest.waits import wait_for

__all__ = ["QuickServer", "RunningWatch", "quick_server"]

CRDS = Path(__file__).parents[2] / "crds"


@dataclass
class QuickServer:
    """An API server with our resources, and nothing else in it."""

    emulated: Emulated
    api: KubeApi

    def control(self, method: str, what: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.emulated.url}/_control/{what}", data, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def requests(self, **wanted: str) -> list[dict[str, Any]]:
        query = "&".join(f"{name}={value}" for name, value in wanted.items())
        found: list[dict[str, Any]] = self.control("GET", f"requests?{query}")["requests"]
        return found

    def make(self, *bodies: dict[str, Any], namespace: str = "default") -> None:
        for body in bodies:
            metadata = {"namespace": namespace, **body["metadata"]}
            self.api.create_resource(resource_path(body["kind"], namespace, None), {**body, "metadata": metadata})

    def remove(self, kind: str, name: str, namespace: str = "default") -> None:
        self.api.delete_resource(resource_path(kind, namespace, name))


@contextmanager
def quick_server(folder: Path) -> Iterator[QuickServer]:
    emulated = start_emulated(folder, "--bookmark-seconds", "0.2")
    connection = plain_connection(emulated.url)
    try:
        server = QuickServer(emulated, KubeApi(PersonConnection(connection)))  # type: ignore[arg-type]  # it does what one does
        for file in sorted(CRDS.glob("*.yaml")):
            crd = yaml.safe_load(file.read_text(encoding="utf-8"))
            server.api.create_resource(resource_path("CustomResourceDefinition", None, None), crd)
        yield server
        assert_recorded(emulated.url)
    finally:
        connection.close()
        emulated.stop()


@dataclass
class RunningWatch:
    """``fault`` is what ended it."""

    watch: ResourceWatch
    cache: ResourceCache
    queue: WorkQueue[ResourceKey]
    fault: BaseException | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def make(
        cls,
        *,
        clock: Clock | None = None,
        connection: KubeConnection | None = None,
        namespaces: Iterable[str] = (),
        label_selector: str = "",
        **timing: float,
    ) -> RunningWatch:
        clock = clock or SystemClock()
        cache, queue, api = ResourceCache(), WorkQueue[ResourceKey](clock), KubeApi(connection or connect_cluster())
        scope = WatchScope(tuple(namespaces), label_selector)
        return cls(ResourceWatch(cache, queue, api, clock=clock, scope=scope, timing=WatchTiming(**timing)), cache, queue)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="watch of a test")
        self._thread.start()

    def wait_until_open(self, server: QuickServer) -> None:
        """Until kopf has listed everything, and begun to watch it."""
        self.wait_until_listed()
        wait_for(
            lambda: {one["resource"] for one in server.requests(user_agent="kopf", verb="watch")} == {"realms", "catalogs"}
        )

    def stop(self) -> None:
        self.watch.stop()
        self._thread.join(15)
        assert not self._thread.is_alive()

    def wait_until_listed(self) -> None:
        wait_for(lambda: self.watch.is_listed or self.ended.is_set(), why=lambda: self.fault)
        assert self.fault is None

    def wait_for_names(self, kind: str, *names: str) -> None:
        def seen() -> list[str]:
            return [key.name for key in self.cache.keys(kind)]

        wait_for(lambda: sorted(seen()) == sorted(names), why=seen)

    def taken(self) -> set[str]:
        """The names that are in the queue, which is empty afterwards."""
        found = set()
        while (key := self.queue.take_key(timeout=0)) is not None:
            found.add(key.name)
            self.queue.mark_done(key)
        return found

    def _run(self) -> None:
        try:
            self.watch.run()
        except BaseException as fault:  # noqa: BLE001 - the test asks for it
            self.fault = fault
        finally:
            self.ended.set()
