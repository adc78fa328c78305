"""The API server of these tests, as a process, and a client that says what it asks byte by byte."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import yaml
from emulator_digest import compute_digest, read_committed_digest
from probe_client import Client, start, stop
from transcripts import DATA, Player

is_forced = os.environ.get("HEADWATER_KUBEAPI_CONFORMANCE") == "1"
collect_ignore_glob = [] if is_forced or compute_digest() != read_committed_digest() else ["test_[!e]*.py"]
"""What passed with just these files is not repeated; ``test_emulator_digest.py`` says so."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server that the tests of one file share."""
    process, url = start()
    yield url
    stop(process)


@pytest.fixture(scope="module")
def widgets(server: str) -> str:
    """The URL of a server that knows the recorded resource."""
    made = Player(server).ask(
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        yaml.safe_load((DATA / "crd.yaml").read_text(encoding="utf-8")),
        media="application/json",
    )
    assert made.status in (201, 409), made.body
    return server


@pytest.fixture
def client(widgets: str) -> Iterator[Client]:
    """Talks to the server, in a namespace of its own."""
    with Client(widgets) as made:
        yield made


@pytest.fixture
def quick_bookmarks() -> Iterator[Client]:
    """Of a server that bookmarks its watches many times a second."""
    yield from client_of("--bookmark-seconds", "0.1")


@pytest.fixture
def small_memory() -> Iterator[Client]:
    """Of a server that remembers little."""
    yield from client_of("--kept-changes", "5", "--kept-requests", "10")


@pytest.fixture
def bare() -> Iterator[Client]:
    """Of a server without controllers, as a kube-apiserver alone is."""
    yield from client_of("--no-controllers")


def client_of(*options: str) -> Iterator[Client]:
    process, url = start(*options)
    with Client(url) as made:
        yield made
    stop(process)
