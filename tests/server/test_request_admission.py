"""Admission: handlers run in bounded numbers, the queue has an end, and what is beyond is refused before any work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest
from things import Things

from asgi_client import AsgiAnswer, AsgiClient
from fake_clock import FakeClock
from headwater import Settings
from headwater_server.admission import HandlerTimeoutError, RequestAdmission
from headwater_server.error_answers import OverloadedError
from headwater_server.server_application import ServerApplication

SECONDS = 20.0


@pytest.fixture
def admission(clock: FakeClock) -> Iterator[RequestAdmission]:
    admission = RequestAdmission(Settings(server_threads=1, server_queue=1, server_queue_timeout_seconds=5), clock)
    yield admission
    admission.shut_down()


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def told() -> None:
        await story()

    asyncio.run(told())


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to pass")


def test_queue_has_an_end(admission: RequestAdmission) -> None:
    may_end = threading.Event()

    async def story() -> None:
        works = [asyncio.create_task(admission.run(may_end.wait, seconds=SECONDS, is_change=True)) for _ in range(2)]
        await until(lambda: (admission.running, admission.waiting, admission.changes_begun) == (1, 1, 2))
        with pytest.raises(OverloadedError):
            admission.check_room()
        with pytest.raises(OverloadedError):
            await admission.run(may_end.wait, seconds=SECONDS)
        may_end.set()
        assert await asyncio.gather(*works) == [True, True]
        await until(lambda: admission.changes_begun == 0)
        admission.check_room()

    run(story)


def test_work_that_waited_too_long_does_not_begin(admission: RequestAdmission, clock: FakeClock) -> None:
    may_end, done = threading.Event(), threading.Event()

    async def story() -> None:
        first = asyncio.create_task(admission.run(may_end.wait, seconds=SECONDS))
        second = asyncio.create_task(admission.run(done.set, seconds=SECONDS))
        await until(lambda: admission.waiting == 1)
        clock.advance(6)
        may_end.set()
        await first
        with pytest.raises(OverloadedError, match="5s"):
            await second

    run(story)
    assert not done.is_set()


def test_work_that_takes_too_long_still_counts(admission: RequestAdmission) -> None:
    may_end = threading.Event()

    async def story() -> None:
        with pytest.raises(HandlerTimeoutError):
            await admission.run(may_end.wait, seconds=0.01, is_change=True)
        assert (admission.running, admission.changes_begun) == (1, 1)
        with pytest.raises(OverloadedError):
            await admission.run(may_end.wait, seconds=0.01)
        may_end.set()
        await until(lambda: admission.running == 0)

    run(story)


def test_fault_of_late_work_is_forgotten(admission: RequestAdmission) -> None:
    may_end = threading.Event()

    def fail() -> None:
        may_end.wait()
        raise ValueError

    async def story() -> None:
        with pytest.raises(HandlerTimeoutError):
            await admission.run(fail, seconds=0.01)
        may_end.set()
        await until(lambda: admission.running == 0)

    run(story)


def test_overload_is_answered_while_others_run(make_application: Callable[..., ServerApplication], things: Things) -> None:
    application = make_application(threads=1, queue=1)
    client = AsgiClient(application)
    answers: list[AsgiAnswer] = []

    async def story() -> None:
        works = [asyncio.create_task(client.send("POST", f"/api/v1/things/{name}/wait")) for name in "ab"]
        await until(lambda: application.admission.waiting == 1)
        answers.append(await client.send("POST", "/api/v1/things", b'{"name": "c"}'))
        answers.append(await client.send("GET", "/healthz"))
        things.may_end.set()
        answers.extend(await asyncio.gather(*works))

    run(story)
    assert [answer.status for answer in answers] == [429, 200, 204, 204]
    assert things.made == ["a", "b"]


@pytest.mark.parametrize(("method", "status"), [("POST", 500), ("GET", 503)])
def test_late_answer_says_what_may_have_happened(
    make_application: Callable[..., ServerApplication], method: str, status: int
) -> None:
    answer = AsgiClient(make_application(request_timeout_seconds=0.02)).request(method, "/api/v1/things/a/wait")

    assert answer.error[0] == status


def test_bodies_share_a_budget(make_application: Callable[..., ServerApplication], things: Things) -> None:
    client = AsgiClient(make_application(body_bytes=100, bodies_bytes=100))

    async def story() -> None:
        works = [asyncio.create_task(client.send("POST", "/api/v1/things/a/raw", b"x" * 60)) for _ in range(3)]
        statuses = sorted([answer.status for answer in await asyncio.gather(*works)])
        assert statuses == [200, 429, 429]
        assert (await client.send("POST", "/api/v1/things/a/raw", b"x" * 100)).status == 200

    run(story)


def test_draining_server_reads_and_changes_nothing(application: ServerApplication, things: Things) -> None:
    client = AsgiClient(application)
    answers: list[AsgiAnswer] = []

    async def story() -> None:
        running = asyncio.create_task(client.send("POST", "/api/v1/things/a/wait"))
        await until(lambda: application.admission.running == 1)
        application.drain.begin()
        assert not application.drain.may_stop
        answers.append(await client.send("POST", "/api/v1/things", b'{"name": "b"}'))
        answers.append(await client.send("GET", "/api/v1/things"))
        answers.append(await client.send("GET", "/readyz"))
        things.may_end.set()
        answers.append(await running)
        await until(lambda: application.drain.may_stop)

    run(story)
    assert [answer.status for answer in answers] == [503, 200, 503, 204]
    assert {answer.headers["connection"] for answer in answers} == {"close"}
    assert things.made == ["a"]
