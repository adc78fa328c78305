"""Work done by forked children of the test's process, with their answers brought home."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any


def run_forked(count: int, work: Callable[[int], Any], *, meanwhile: Callable[[], Any] = lambda: None) -> list[Any]:
    """What ``work(number)`` returned in each child; they all run at once, and the parent does ``meanwhile``.

    A child's fault fails the test here.
    """
    children = [_fork(work, number) for number in range(count)]
    meanwhile()
    answers = [_answer(pid, pipe) for pid, pipe in children]
    faults = [fault for fault, _ in answers if fault]
    assert not faults, faults
    return [answer for _, answer in answers]


def _fork(work: Callable[[int], Any], number: int) -> tuple[int, int]:
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    try:
        answer = ("", work(number))
    except BaseException as fault:  # noqa: BLE001  the parent raises it; a child must not run the rest of the tests
        answer = (repr(fault), None)
    with os.fdopen(write, "wb") as pipe:
        pickle.dump(answer, pipe)
    os._exit(0)


def _answer(pid: int, pipe: int) -> tuple[str, Any]:
    with os.fdopen(pipe, "rb") as answers:
        answer: tuple[str, Any] = pickle.load(answers)
    os.waitpid(pid, 0)
    return answer
