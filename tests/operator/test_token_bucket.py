"""The token bucket: a burst at first, then a steady rate, in the order of coming, until it is closed."""

from __future__ import annotations

import threading

import pytest

from fake_clock import FakeClock
from headwater.errors import UnavailableError
from headwater_operator.runtime.rate_limit import TokenBucket


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def bucket(clock: FakeClock, waits: list[float]) -> TokenBucket:
    """Ten tokens a second, five at once; waiting moves the clock."""

    def wait(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(seconds)

    return TokenBucket(10, 5, monotonic=clock.monotonic, wait=wait)


def test_burst_passes_at_once(bucket: TokenBucket, waits: list[float]) -> None:
    for _ in range(5):
        bucket.reserve_token()

    assert waits == []


def test_tokens_come_at_the_rate_after_the_burst(bucket: TokenBucket, clock: FakeClock) -> None:
    for _ in range(55):
        bucket.reserve_token()

    assert clock.monotonic() == pytest.approx(5.0)


def test_quiet_time_fills_the_stock_no_further_than_the_burst(
    bucket: TokenBucket, clock: FakeClock, waits: list[float]
) -> None:
    clock.advance(3600)
    for _ in range(6):
        bucket.reserve_token()

    assert waits == [pytest.approx(0.1)]


def test_closed_bucket_lets_nobody_through(bucket: TokenBucket) -> None:
    bucket.close()

    with pytest.raises(UnavailableError, match="stopping"):
        bucket.reserve_token()


def test_closing_ends_the_wait_of_everybody() -> None:
    bucket, ended = TokenBucket(0.001, 1), []
    bucket.reserve_token()

    def take() -> None:
        with pytest.raises(UnavailableError):
            bucket.reserve_token()
        ended.append(True)

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    bucket.close()
    for thread in threads:
        thread.join(10)

    assert ended == [True, True, True]


def test_threads_together_stay_within_the_rate() -> None:
    promised: list[float] = []
    clock, lock = FakeClock(), threading.Lock()

    def wait(seconds: float) -> None:
        with lock:
            promised.append(seconds)

    bucket = TokenBucket(100, 10, monotonic=clock.monotonic, wait=wait)
    threads = [threading.Thread(target=lambda: [bucket.reserve_token() for _ in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(promised) == pytest.approx([n / 100 for n in range(1, 391)])
