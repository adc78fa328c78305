"""Signals to a program that stays: noted at once, obeyed between two steps, and the second one obeyed at once."""

from __future__ import annotations

import os
import signal
import time

import pytest

from headwater_workers.interruption import Interruption, TerminatedError

BOTH = pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, TerminatedError)])


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@BOTH
def test_signal_waits_for_the_next_check(number: signal.Signals, error: type[BaseException]) -> None:
    with Interruption() as interruption:
        interruption.check()
        send(number)
        with pytest.raises(error):
            interruption.check()


@BOTH
def test_signal_ends_a_pause(number: signal.Signals, error: type[BaseException]) -> None:
    with Interruption() as interruption, pytest.raises(error):
        interruption.pause(lambda seconds: send(number), 1.0)


def test_signal_before_a_pause_keeps_it_from_beginning() -> None:
    slept: list[float] = []
    with Interruption() as interruption:
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interruption.pause(slept.append, 1.0)

    assert slept == []


def test_second_signal_is_obeyed_at_once() -> None:
    with Interruption(), pytest.raises(KeyboardInterrupt):
        send(signal.SIGTERM)
        send(signal.SIGINT)
        time.sleep(0)  # Python handles a signal before its next call


def test_handlers_are_given_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Interruption():
        pass

    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
