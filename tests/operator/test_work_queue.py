"""The queue of the operator: each key once, in the order of its time, one thread at a time for each."""

from __future__ import annotations

import random
import threading
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fake_clock import FakeClock
from headwater.clock import SystemClock
from headwater_operator.runtime.workqueue import RetryBackoff, WorkQueue


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(clock)


def take_all(queue: WorkQueue[str]) -> list[str]:
    taken = []
    while (key := queue.take_key(timeout=0)) is not None:
        taken.append(key)
        queue.mark_done(key)
    return taken


def test_key_that_is_added_twice_is_handed_out_once(queue: WorkQueue[str]) -> None:
    queue.enqueue("a")
    queue.enqueue("a")

    assert take_all(queue) == ["a"]


def test_keys_come_in_the_order_in_which_they_became_ready(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.enqueue_after("late", 5)
    queue.enqueue_after("early", 3)
    queue.enqueue("now")
    clock.advance(10)
    queue.enqueue("last")

    assert take_all(queue) == ["now", "early", "late", "last"]


def test_delayed_key_waits_for_its_time(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.enqueue_after("a", 5)

    assert queue.take_key(timeout=0) is None
    clock.advance(5)
    assert queue.take_key(timeout=0) == "a"


@pytest.mark.parametrize("waits", [(5, 60), (60, 5)])
def test_earlier_of_two_times_counts(queue: WorkQueue[str], clock: FakeClock, waits: tuple[float, float]) -> None:
    for wait in waits:
        queue.enqueue_after("a", wait)

    clock.advance(5)
    assert take_all(queue) == ["a"]
    clock.advance(60)
    assert take_all(queue) == []


def test_retry_and_a_delay_together_mean_the_earlier_one(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.retry("a")
    queue.enqueue_after("a", 300)

    clock.advance(1)
    assert take_all(queue) == ["a"]


def test_key_added_during_its_work_is_done_again(queue: WorkQueue[str]) -> None:
    queue.enqueue("a")
    assert queue.take_key(timeout=0) == "a"
    queue.enqueue("a")

    assert queue.take_key(timeout=0) is None
    queue.mark_done("a")
    assert queue.take_key(timeout=0) == "a"


def test_delay_asked_for_during_the_work_gives_way_to_news(queue: WorkQueue[str]) -> None:
    queue.enqueue("a")
    assert queue.take_key(timeout=0) == "a"
    queue.enqueue_after("a", 300)
    queue.enqueue("a")
    queue.mark_done("a")

    assert queue.take_key(timeout=0) == "a"


def test_waits_between_retries_double_up_to_the_longest(clock: FakeClock) -> None:
    class NoJitter(random.Random):
        def random(self) -> float:
            return 1.0

    queue = WorkQueue[str](clock, backoff=RetryBackoff(1.0, 60.0, NoJitter()))

    assert [queue.retry("a") for _ in range(8)] == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60])


def test_waits_between_retries_are_jittered_over_their_whole_range(clock: FakeClock) -> None:
    backoff = RetryBackoff(1.0, 60.0, random.Random(4))

    waits = [backoff.seconds(10) for _ in range(500)]

    assert min(waits) < 10 < 50 < max(waits) <= 60


def test_success_makes_the_next_failure_the_first_one(queue: WorkQueue[str]) -> None:
    for _ in range(10):
        queue.retry("a")
    queue.forget_failures("a")

    assert queue.retry("a") <= 1


def test_server_that_names_a_wait_gets_at_least_that(queue: WorkQueue[str]) -> None:
    assert queue.retry("a", least_seconds=7) == 7


def test_dropped_key_is_not_handed_out(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.enqueue_after("a", 5)
    queue.drop("a")
    clock.advance(5)

    assert queue.take_key(timeout=0) is None


def test_queue_says_how_much_waits_and_for_how_long(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.enqueue("a")
    queue.enqueue("b")
    queue.enqueue_after("c", 60)
    clock.advance(4)
    queue.take_key(timeout=0)
    clock.advance(1)

    assert (queue.depth, queue.delayed, queue.in_work, queue.oldest_seconds) == (1, 1, 1, 5)


def test_empty_queue_has_no_age(queue: WorkQueue[str]) -> None:
    queue.enqueue_after("a", 60)

    assert (queue.depth, queue.oldest_seconds) == (0, 0)


def test_closing_wakes_everybody_who_waits() -> None:
    queue = WorkQueue[str](SystemClock())
    got: list[str | None] = []
    threads = [threading.Thread(target=lambda: got.append(queue.take_key())) for _ in range(3)]
    for thread in threads:
        thread.start()
    queue.close()
    for thread in threads:
        thread.join(10)

    assert got == [None, None, None]


def test_waiting_thread_gets_an_earlier_key_first() -> None:
    queue = WorkQueue[str](SystemClock())
    queue.enqueue_after("later", 3600)
    got: list[str | None] = []
    thread = threading.Thread(target=lambda: got.append(queue.take_key(timeout=30)))
    thread.start()
    queue.enqueue("now")
    thread.join(10)

    assert got == ["now"]


def test_threads_never_share_a_key_and_lose_none() -> None:
    queue = WorkQueue[int](SystemClock(), backoff=RetryBackoff(0.0001, 0.001))
    busy: set[int] = set()
    faults: list[int] = []
    seen: Counter[int] = Counter()
    wished: Counter[int] = Counter()
    lock = threading.Lock()

    def work() -> None:
        while (key := queue.take_key(timeout=5)) is not None:
            with lock:
                if key in busy:
                    faults.append(key)
                busy.add(key)
                seen[key] = wished[key]
            if key % 7 == 0 and random.random() < 0.3:
                queue.retry(key)
            with lock:
                busy.discard(key)
            queue.mark_done(key)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for round_ in range(200):
        for key in range(20):
            with lock:
                wished[key] = round_
            queue.enqueue(key)
    deadline = SystemClock().monotonic() + 30
    while (queue.depth or queue.delayed or queue.in_work) and SystemClock().monotonic() < deadline:
        threading.Event().wait(0.005)
    queue.close()
    for worker in workers:
        worker.join(10)

    assert not faults
    assert seen == wished


KEYS = st.sampled_from("abcd")


class QueueModel(RuleBasedStateMachine):
    """A naive model: a dictionary of times, and the set of what is worked on."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.queue = WorkQueue[str](self.clock)
        self.times: dict[str, float] = {}
        self.working: set[str] = set()

    @rule(key=KEYS, seconds=st.integers(0, 50))
    def add_after(self, key: str, seconds: int) -> None:
        self.queue.enqueue_after(key, seconds)
        self._ask(key, self.clock.monotonic() + seconds)

    @rule(key=KEYS)
    def retry(self, key: str) -> None:
        self._ask(key, self.clock.monotonic() + self.queue.retry(key))

    @rule(key=KEYS)
    def drop(self, key: str) -> None:
        self.queue.drop(key)
        self.times.pop(key, None)

    @rule(seconds=st.integers(1, 30))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def get(self) -> None:
        now = self.clock.monotonic()
        ready = {key: time for key, time in self.times.items() if time <= now and key not in self.working}
        key = self.queue.take_key(timeout=0)
        if key is None:
            assert not ready
        else:
            assert ready[key] == min(ready.values())
            del self.times[key]
            self.working.add(key)

    @rule(key=KEYS)
    def done(self, key: str) -> None:
        if key in self.working:
            self.working.discard(key)
            self.queue.mark_done(key)

    @invariant()
    def counts_agree(self) -> None:
        now = self.clock.monotonic()
        waiting = [time for key, time in self.times.items() if time <= now and key not in self.working]
        assert self.queue.depth == len(waiting)
        assert self.queue.oldest_seconds == pytest.approx(max((now - time for time in waiting), default=0.0))
        assert self.queue.in_work == len(self.working)

    def _ask(self, key: str, time: float) -> None:
        self.times[key] = min(time, self.times.get(key, time))


TestQueueModel = QueueModel.TestCase
TestQueueModel.settings = settings(max_examples=60, stateful_step_count=40)
