"""Fixtures of tests that touch a cluster. A folder's conftest takes those that it needs by importing them."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headwater.settings import Settings
from headwater.store import Store, open_store
from kubetest import Cluster, Namespace, Operator, Process, Worker, start_cluster, start_operator, start_worker

__all__ = ["Installation", "cluster", "controlled_cluster", "installation", "namespace", "operator", "worker"]

SHORT = {
    "UNSAFE_SHORT_GRACES": "true",
    "WRITER_GRACE": "2s",
    "READER_GRACE": "2s",
    "COMMIT_TIMEOUT": "10s",
    "PURGE_HOLD": "1s",
    "TASK_LEASE": "3s",
    "TASK_HEARTBEAT": "500ms",
    "TASK_BACKOFF": "1s",
    "DISPATCH": "200ms",
    "SPARK_MASTER": "off",
    "OPERATOR_RESYNC": "2s",
}
"""Settings with which a test need not wait long; the names go without their prefix."""


@dataclass
class Installation:
    """Headwater in a cluster: operators and workers on one store, watching one namespace (or all of them).

    changes       settings that differ from the short ones above, for all that is started
    watched       the namespaces that are looked after; empty for all
    """

    cluster: Cluster
    folder: Path
    home: str
    watched: tuple[str, ...]
    changes: dict[str, str] = field(default_factory=dict)
    started: list[Process] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def store_url(self) -> str:
        return self.changes.get("STORE", f"sqlite:///{self.folder}/store.db")

    @property
    def environment(self) -> dict[str, str]:
        settings = SHORT | {"STORE": self.store_url} | self.changes
        operator = {"OPERATOR_NAMESPACE": self.home, "OPERATOR_NAMESPACES": ",".join(self.watched)}
        return self.cluster.environment | {f"HEADWATER_{name}": value for name, value in (operator | settings).items()}

    def start_operator(self, *, wait: bool = True, **changes: str) -> Operator:
        """``start_operator(OPERATOR_RESYNC="1h")`` runs `headwater-operator run` with these settings changed."""
        name = f"operator-{next(self.numbers)}"
        changed = self.environment | {f"HEADWATER_{key}": value for key, value in changes.items()}
        changed.setdefault("HEADWATER_OPERATOR_IDENTITY", name)
        operator = start_operator(changed, self.folder / f"{name}.log", name=name)
        self.started.append(operator)
        return operator.wait_until_ready() if wait else operator

    def start_worker(self, **changes: str) -> Worker:
        name = f"worker-{next(self.numbers)}"
        changed = self.environment | {f"HEADWATER_{key}": value for key, value in changes.items()}
        worker = start_worker(changed, self.folder / f"{name}.log", name=name)
        self.started.append(worker)
        return worker

    def open_store(self) -> Store:
        """For a look from outside, or for a change behind the operator's back. Close it."""
        settings = Settings.from_environment(self.environment)
        return open_store(settings.store, settings=settings)

    def end(self) -> None:
        """Kill what still runs. What it said last is shown where a test failed."""
        for process in self.started:
            process.kill()
            sys.stdout.write(process.last_words())


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One API server for all tests of a run; each has namespaces of its own in it."""
    with start_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def controlled_cluster(cluster: Cluster) -> Cluster:
    """The cluster, where its API server can be told to fail and what was asked."""
    if cluster.server.control is None:
        pytest.skip("a real API server cannot be told to fail, nor what it was asked")
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Namespace:
    """A namespace of this test's own."""
    return cluster.make_namespace()


@pytest.fixture
def installation(namespace: Namespace, tmp_path: Path) -> Iterator[Installation]:
    """Operators and workers of this test's own, on an empty store, for the test's namespace only; nothing runs yet."""
    made = Installation(namespace.cluster, tmp_path, home=namespace.name, watched=(namespace.name,))
    yield made
    made.end()


@pytest.fixture
def operator(installation: Installation) -> Callable[..., Operator]:
    """``operator()`` runs an operator for this test's namespace, and returns when it is ready."""
    return installation.start_operator


@pytest.fixture
def worker(installation: Installation) -> Callable[..., Worker]:
    """``worker()`` runs a worker on the same store, and returns when it works."""
    return installation.start_worker
