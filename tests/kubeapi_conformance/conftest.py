"""The API server of these tests, as a process, and a client that says what it asks byte by byte."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from probing import Client
from transcripts import DATA, Player


def start(*options: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "kubeapi", "--port", "0", *options],
        env={"PYTHONPATH": str(Path(__file__).parents[1]), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["url"]


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(10)
    assert process.stdout is not None
    process.stdout.close()


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


def client_of(*options: str) -> Iterator[Client]:
    process, url = start(*options)
    with Client(url) as made:
        yield made
    stop(process)
