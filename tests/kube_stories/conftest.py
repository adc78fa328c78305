"""Stories of users: kubectl on one side, an operator, a worker and a store on the other, all of them real."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from stories import Story

from headwater.store import Store
from kube_fixtures import Installation, cluster, controlled_cluster, installation, namespace, operator, worker
from kubetest import start_cluster

__all__ = ["cluster", "controlled_cluster", "installation", "namespace", "operator", "worker"]


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A cluster of its own where one operator looks after all namespaces, with a worker on the same store."""
    folder = tmp_path_factory.mktemp("running")
    with start_cluster(folder) as started:
        made = Installation(started, folder, home=started.make_namespace("headwater").name, watched=())
        try:
            made.start_operator()
            made.start_worker()
            yield made
        finally:
            made.end()


@pytest.fixture(scope="session")
def running_store(running: Installation) -> Iterator[Store]:
    """The store of the running operator, opened beside it."""
    with running.open_store() as store:
        yield store


@pytest.fixture
def story(running: Installation, running_store: Store) -> Iterator[Story]:
    before = {process.log: len(process.said) for process in running.started}
    namespace = running.cluster.make_namespace("story")
    yield Story(namespace, running_store, namespace.name)
    for process in running.started:  # shown where the test failed
        sys.stdout.write(f"--- {process.name} said:\n{process.said[before[process.log] :]}")
