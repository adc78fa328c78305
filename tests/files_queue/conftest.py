"""Queues of requests on file references, on both kinds of broker."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater_workers.file_queue import FolderRequestQueue, RedisRequestQueue, RequestQueue
from servers.redis_broker import redis_server

OpenQueue = Callable[..., RequestQueue]


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(params=["folder", pytest.param("redis", marks=pytest.mark.long)])
def open_queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenQueue]:
    """``open_queue(cap=...)`` opens a reader and writer of one queue; all are closed with the test."""
    opened: list[RequestQueue] = []
    name = uuid.uuid4().hex
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""

    def open_one(*, cap: int = 4, lease_seconds: float = 30.0) -> RequestQueue:
        queue: RequestQueue
        if url:
            queue = RedisRequestQueue(url, name, cap=cap, lease_seconds=lease_seconds)
        else:
            queue = FolderRequestQueue(tmp_path / "queue", cap=cap, lease_seconds=lease_seconds)
        opened.append(queue)
        return queue

    yield open_one
    for queue in opened:
        queue.close()
