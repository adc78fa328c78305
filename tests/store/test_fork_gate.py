"""A turnstile: many are inside at once, and it is shut only when all are out."""

from __future__ import annotations

import threading

from headwater.store.stores import ForkGate


def test_many_are_inside_at_once() -> None:
    turnstile, all_inside = ForkGate(), threading.Barrier(4, timeout=10)

    def pass_through() -> None:
        with turnstile:
            all_inside.wait()

    threads = [threading.Thread(target=pass_through) for _ in range(3)]
    for thread in threads:
        thread.start()
    pass_through()
    for thread in threads:
        thread.join()

    assert not all_inside.broken


def test_turnstile_that_is_shut_waits_for_those_inside() -> None:
    turnstile, events = ForkGate(), list[str]()
    inside, may_leave = threading.Event(), threading.Event()

    def stay() -> None:
        with turnstile:
            inside.set()
            may_leave.wait(10)
            events.append("left")

    def shut() -> None:
        turnstile.shut_gate()
        events.append("shut")

    threads = [threading.Thread(target=stay), threading.Thread(target=shut)]
    threads[0].start()
    inside.wait(10)
    threads[1].start()
    threads[1].join(0.1)
    may_leave.set()
    for thread in threads:
        thread.join()

    assert events == ["left", "shut"]


def test_turnstile_lets_nobody_in_before_it_opens_again() -> None:
    turnstile, events = ForkGate(), list[str]()
    turnstile.shut_gate()

    def enter() -> None:
        with turnstile:
            events.append("in")

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join(0.1)
    events.append("opened")
    turnstile.open_gate()
    thread.join()

    assert events == ["opened", "in"]


def test_fault_inside_lets_go() -> None:
    turnstile = ForkGate()
    try:
        with turnstile:
            raise ValueError
    except ValueError:
        turnstile.shut_gate()

    turnstile.open_gate()


def test_signal_handler_that_passes_leaves_its_thread_inside() -> None:
    turnstile = ForkGate()
    shutting = threading.Thread(target=turnstile.shut_gate)
    with turnstile:
        pass_within(turnstile)
        shutting.start()
        shutting.join(0.1)
        assert shutting.is_alive()
    shutting.join(10)

    assert not shutting.is_alive()


def pass_within(turnstile: ForkGate) -> None:
    with turnstile:
        pass
