"""What a queue of requests promises, on every broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from headwater.clock import Micros
from headwater.errors import UnavailableError
from headwater_workers.file_queue import (
    FolderRequestQueue,
    QueuedRequest,
    RequestBatch,
    RequestQueue,
    SetAsideRequest,
    Settlement,
)

OpenQueue = Callable[..., RequestQueue]
A, B, C = "00000000000000aa-a", "00000000000000aa-b", "00000000000000bb-c"
DONE = Settlement()


def requests(count: int, text: bytes = b"body") -> list[QueuedRequest]:
    return [QueuedRequest(uuid.uuid4().hex, text + b" %d" % number) for number in range(count)]


def take(queue: RequestQueue, limit: int = 100, seconds: float = 5.0) -> RequestBatch:
    """The next batch, as soon as there is one."""
    end = time.monotonic() + seconds
    while (batch := queue.take(limit)) is None:
        assert time.monotonic() < end, queue.figures()
        time.sleep(0.01)
    return batch


def set_aside(request: QueuedRequest, table: str, name: str = "job") -> SetAsideRequest:
    return SetAsideRequest(
        key=request.key, table=table, request=name, kind="commit", reason="why", strikes=5, time=Micros(7), body=request.body
    )


@pytest.fixture
def queue(open_queue: OpenQueue) -> RequestQueue:
    return open_queue()


def test_batch_holds_the_requests_as_they_were_pushed(queue: RequestQueue) -> None:
    pushed = requests(3, b"\x00\xff any bytes")
    queue.push(A, pushed)

    batch = take(queue)

    assert (batch.table, sorted(batch.requests, key=lambda each: each.body)) == (A, pushed)
    assert queue.take(100) is None


def test_settled_requests_are_gone(queue: RequestQueue) -> None:
    queue.push(A, requests(3))

    queue.settle_batch(take(queue), DONE)

    figures = queue.figures()
    assert (figures.waiting, figures.held, figures.delayed) == ({}, {}, {})
    assert not queue.has_requests()


def test_batch_is_of_one_table_and_limited(queue: RequestQueue) -> None:
    queue.push(A, requests(5))
    queue.push(B, requests(5))

    batches = [take(queue, 3) for _ in range(4)]

    assert sorted((batch.table, len(batch.requests)) for batch in batches) == [(A, 2), (A, 3), (B, 2), (B, 3)]


def test_tables_are_served_in_turn(queue: RequestQueue) -> None:
    queue.push(A, requests(10))
    queue.push(B, requests(2))
    queue.push(C, requests(1))

    served = []
    for _ in range(6):
        batch = take(queue, 2)
        served.append(batch.table)
        queue.settle_batch(batch, DONE)

    assert served[:3] == [A, B, C] and served[3:] == [A, A, A]


def test_table_that_comes_later_is_served_next(queue: RequestQueue) -> None:
    queue.push(A, requests(1000))
    queue.settle_batch(take(queue, 10), DONE)
    queue.push(B, requests(1))

    served = {take(queue, 10).table for _ in range(2)}

    assert B in served


def test_batch_of_a_lost_reader_comes_back_with_strikes(open_queue: OpenQueue) -> None:
    queue = open_queue(lease_seconds=0.05)
    queue.push(A, requests(2))

    first = take(queue)
    again = [take(queue), take(queue)]

    assert {each.key for batch in again for each in batch.requests} == {each.key for each in first.requests}
    assert [[each.strikes for each in batch.requests] for batch in again] == [[1], [1]]


@pytest.mark.long
def test_renewed_batch_stays_with_its_reader(open_queue: OpenQueue) -> None:
    queue = open_queue(lease_seconds=0.5)
    queue.push(A, requests(1))
    batch = take(queue)
    for _ in range(4):
        time.sleep(0.2)
        queue.renew_batches([batch])

        assert queue.take(1) is None


def test_request_with_strikes_comes_alone(queue: RequestQueue) -> None:
    queue.push(A, [replace(request, strikes=number % 2) for number, request in enumerate(requests(4))])

    batches = [take(queue) for _ in range(4)]

    assert sorted(len(batch.requests) for batch in batches) == [1, 1, 1, 1]


def test_delayed_request_comes_after_its_delay(queue: RequestQueue) -> None:
    queue.push(A, requests(2))
    batch = take(queue)
    queue.settle_batch(batch, Settlement([replace(batch.requests[0], tries=1)], delay_seconds=0.2))
    at_once = queue.take(100)
    figures = queue.figures()
    assert queue.has_requests()

    again = take(queue)

    assert at_once is None and figures.delayed == {A: 1}
    assert again.requests == (replace(batch.requests[0], tries=1),)


def test_late_settlement_has_no_effect(open_queue: OpenQueue) -> None:
    queue = open_queue(lease_seconds=0.05)
    queue.push(A, requests(1))
    late = take(queue)
    again = take(queue)
    queue.settle_batch(late, Settlement(set_aside=[set_aside(late.requests[0], A)]))

    queue.settle_batch(again, DONE)

    assert queue.list_set_aside() == []


def test_push_meets_a_reader_that_takes_empty_folders_away(open_queue: OpenQueue) -> None:
    reader, queue = open_queue(), open_queue()
    taken: list[str] = []
    pushed = requests(300)

    def read() -> None:
        while len(taken) < len(pushed):
            if batch := reader.take(10):
                taken.extend(each.key for each in batch.requests)
                reader.settle_batch(batch, DONE)

    reading = Thread(target=read)
    reading.start()
    for request in pushed:
        queue.push(A, [request])
    reading.join(60)

    assert sorted(taken) == sorted(each.key for each in pushed)


def test_settlement_that_failed_may_be_repeated(tmp_path: Path) -> None:
    queue = FolderRequestQueue(tmp_path)
    queue.push(A, requests(2))
    batch = take(queue)
    settlement = Settlement(set_aside=[set_aside(batch.requests[0], A)])
    (tmp_path / "aside").touch()  # a file where a folder should be

    with pytest.raises(UnavailableError, match="the embedded broker in"):
        queue.settle_batch(batch, settlement)
    (tmp_path / "aside").unlink()
    queue.settle_batch(batch, settlement)

    assert (len(queue.list_set_aside()), queue.has_requests()) == (1, False)


def test_no_more_batches_are_held_than_may_be(open_queue: OpenQueue) -> None:
    one, other = open_queue(cap=2), open_queue(cap=2)
    one.push(A, requests(3))
    held = [take(one, 1), take(other, 1)]
    beyond = other.take(1)
    one.settle_batch(held[0], DONE)

    assert beyond is None
    assert other.take(1) is not None


def test_place_of_a_lost_reader_is_free_again(open_queue: OpenQueue) -> None:
    lost, queue = open_queue(cap=1, lease_seconds=0.05), open_queue(cap=1)
    lost.push(A, requests(1))
    take(lost)
    lost.close()

    assert take(queue).requests[0].strikes == 1


def test_wait_ends_with_a_push(queue: RequestQueue) -> None:
    pusher = Thread(target=lambda: (time.sleep(0.2), queue.push(A, requests(1))))
    started = time.monotonic()
    pusher.start()
    queue.wait(200)
    pusher.join()

    assert 0.1 < time.monotonic() - started < 150


def test_wait_ends_by_itself(queue: RequestQueue) -> None:
    started = time.monotonic()
    queue.wait(0.2)

    assert time.monotonic() - started > 0.1


def test_request_that_was_set_aside_is_found_and_retried(queue: RequestQueue) -> None:
    queue.push(A, requests(2))
    batch = take(queue)
    queue.settle_batch(batch, Settlement(set_aside=[set_aside(batch.requests[1], A)]))
    found = queue.find_reasons(A, ["job", "other"]), queue.find_reasons(B, ["job"]), queue.figures().set_aside

    retried = queue.retry_set_aside([batch.requests[1].key])

    assert found == ({"job": "why"}, {}, 1)
    assert (retried, queue.list_set_aside()) == (1, [])
    assert take(queue).requests == (batch.requests[1],)


def test_request_that_was_set_aside_can_be_discarded(queue: RequestQueue) -> None:
    queue.push(A, requests(2))
    batch = take(queue)
    queue.settle_batch(batch, Settlement(set_aside=[set_aside(each, A, each.key) for each in batch.requests]))

    assert queue.discard_set_aside([batch.requests[0].key, "unknown"]) == 1
    assert [each.key for each in queue.list_set_aside()] == [batch.requests[1].key]
    assert queue.find_reasons(A, [batch.requests[0].key]) == {}


def test_figures_count_by_table(queue: RequestQueue) -> None:
    queue.push(A, requests(3))
    queue.push(B, requests(2))
    batch = take(queue, 1)
    queue.add_counts({"applied": 2, "refused": 1})
    queue.add_counts({"applied": 3})

    figures = queue.figures()

    assert figures.held == {batch.table: 1}
    assert sum(figures.waiting.values()) == 4 and set(figures.waiting) == {A, B}
    assert figures.counts == {"applied": 5, "refused": 1}


@pytest.mark.long
def test_thousands_of_requests_wait_their_turn(queue: RequestQueue) -> None:
    queue.push(A, requests(3000, b"x" * 1000))

    taken: set[str] = set()
    while batch := queue.take(100):
        taken |= {each.key for each in batch.requests}
        queue.settle_batch(batch, DONE)

    assert len(taken) == 3000
