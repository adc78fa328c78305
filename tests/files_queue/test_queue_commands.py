"""``headwater file-queue``: what waits, and what is to become of the requests that were set aside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headwater.cli import main
from headwater.clock import Micros
from headwater.settings import Settings
from headwater.store import open_store
from headwater_workers.celery_app import broker_of
from headwater_workers.file_queue import QueuedRequest, RequestQueue, SetAsideRequest, Settlement, open_request_queue

TABLE = "00000000000000aa-00000000000000bb"
KEYS = ["a" * 32, "b" * 32]
Run = Callable[..., Result]


@pytest.fixture
def queue(tmp_path: Path) -> RequestQueue:
    """A queue where one of three requests waits and two were set aside."""
    open_store(f"sqlite:///{tmp_path}/store.db").close()
    opened = open_request_queue(broker_of(Settings(store=f"sqlite:///{tmp_path}/store.db")))
    opened.push(TABLE, [QueuedRequest(key, b"") for key in KEYS])
    batch = opened.take(2)
    assert batch is not None
    aside = [
        SetAsideRequest(
            key=request.key, table=TABLE, request=f"job-{request.key[0]}", kind="commit", reason="a bug of ours", strikes=5,
            time=Micros(1_780_000_000_000_000), body=b"",
        )
        for request in batch.requests
    ]  # fmt: skip
    opened.settle_batch(batch, Settlement(set_aside=aside))
    opened.push(TABLE, [QueuedRequest("c" * 32, b"")])
    opened.add_counts({"applied": 7})
    return opened


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*words: str) -> Result:
        return CliRunner().invoke(main, ["--store", f"sqlite:///{tmp_path}/store.db", "file-queue", *words])

    return call


def test_show_counts_requests_by_table(queue: RequestQueue, run: Run) -> None:
    shown = json.loads(run("show", "-o", "json").stdout)

    table = {"realmKey": "00000000000000aa", "table": "00000000000000bb", "waiting": 1, "held": 0, "delayed": 0}
    assert shown == {"tables": [table], "setAside": 2, "counts": {"applied": 7}}


def test_aside_lists_requests_with_reasons(queue: RequestQueue, run: Run) -> None:
    listed = run("aside").stdout.splitlines()

    assert [line.split()[0] for line in listed[1:]] == KEYS
    assert all("job-" in line and line.endswith("a bug of ours") for line in listed[1:])


def test_retry_puts_a_request_back(queue: RequestQueue, run: Run) -> None:
    assert run("retry", KEYS[0]).stdout == "1 request put back into the queue\n"

    assert [record.key for record in queue.list_set_aside()] == [KEYS[1]]
    assert queue.figures().waiting == {TABLE: 2}


def test_discard_forgets_requests(queue: RequestQueue, run: Run) -> None:
    assert run("discard", *KEYS).stdout == "2 requests discarded\n"

    assert queue.list_set_aside() == []
    assert queue.figures().waiting == {TABLE: 1}


def test_key_that_is_not_there_is_named(queue: RequestQueue, run: Run) -> None:
    result = run("retry", "nothing")

    assert result.exit_code == 3
    assert "no request with the key 'nothing' was set aside" in result.stderr
