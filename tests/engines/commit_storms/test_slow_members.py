"""A member that is slow, or never comes back, holds nobody else up, and is committed all the same when it does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from callers import Caller, at_once, in_line
from counters import ADD, Answer, assert_exact, counted, tell
from grounds import Ground

from headwater.commits import Transaction, read_log
from headwater.settings import Settings

Make = Callable[[Settings], Ground]
SHORT = Settings(commit_timeout_seconds=20, commit_member_seconds=0.02)


class Stuck:
    """A change that adds one, and hangs in its first ``runs`` runs until it is let go."""

    def __init__(self, runs: int = 1) -> None:
        self.entered = threading.Event()
        self.free = threading.Event()
        self.left = runs
        self.runs = 0

    def __call__(self, tx: Transaction) -> int:
        self.runs += 1
        number = counted(ADD)(tx)
        if self.left:
            self.left -= 1
            self.entered.set()
            assert self.free.wait(60)
        return number


def add(ground: Ground, client: object) -> Answer:
    return tell(ground.rows, client)


def test_others_go_on_while_the_first_of_a_group_hangs(make_ground: Make) -> None:
    ground, stuck = make_ground(SHORT), Stuck()
    hanging = Caller(lambda: tell(ground.rows, "stuck", ADD, stuck))
    assert stuck.entered.wait(60)
    others = at_once([lambda client=client: [add(ground, client) for _ in range(3)] for client in range(4)])  # type: ignore[misc]
    assert hanging.is_alive()
    stuck.free.set()
    journal = [hanging.result(), *(answer for answers in others for answer in answers)]

    assert assert_exact(ground.rows, journal, deleted=ground.witness.deleted) == 13
    assert journal[0].number == 13


def test_others_go_on_while_a_member_in_the_middle_hangs(make_ground: Make) -> None:
    ground, stuck = make_ground(SHORT), Stuck()
    hold = ground.faults.hang(ground.swap)
    with in_line() as held:
        held.call(lambda: add(ground, 0))  # publishes, and hangs
        before = held.call(lambda: add(ground, 1))
        hanging = held.call(lambda: tell(ground.rows, "stuck", ADD, stuck))
        after = held.call(lambda: add(ground, 2))
        hold.release()
        before.wait()
        after.wait()
        assert hanging.is_alive()
        stuck.free.set()
    journal = [caller.result() for caller in held.callers]

    assert assert_exact(ground.rows, journal, deleted=ground.witness.deleted) == 4
    assert stuck.runs > 1


def test_member_that_is_always_slow_commits_alone_in_the_end(make_ground: Make) -> None:
    ground = make_ground(SHORT)
    runs: list[int] = []

    def slow(tx: Transaction) -> int:
        runs.append(1)
        time.sleep(0.05)
        return counted(ADD)(tx)

    works = [lambda: [tell(ground.rows, "slow", ADD, slow) for _ in range(2)]]
    works += [lambda client=client: [add(ground, client) for _ in range(3)] for client in range(3)]  # type: ignore[misc]
    journal = [answer for answers in at_once(works) for answer in answers]

    assert assert_exact(ground.rows, journal, deleted=ground.witness.deleted) == 11
    assert len(runs) <= 2 * 8


def test_others_commit_while_many_hang(make_ground: Make) -> None:
    ground, stuck = make_ground(SHORT), [Stuck(runs=2) for _ in range(5)]
    hanging = [Caller(lambda one=one: tell(ground.rows, one, ADD, one)) for one in stuck]  # type: ignore[misc]
    assert stuck[0].entered.wait(60) or stuck[1].entered.wait(60)
    others = at_once([lambda client=client: [add(ground, client) for _ in range(3)] for client in range(3)])  # type: ignore[misc]
    for one in stuck:
        one.free.set()
    journal = [*(caller.result() for caller in hanging), *(answer for answers in others for answer in answers)]

    assert assert_exact(ground.rows, journal, deleted=ground.witness.deleted) == 14


def test_edits_of_a_left_out_member_are_nobody_elses(make_ground: Make) -> None:
    ground, stuck = make_ground(SHORT), Stuck()
    hanging = Caller(lambda: tell(ground.rows, "stuck", ADD, stuck))
    assert stuck.entered.wait(60)
    other = add(ground, 0)
    newest = next(read_log(ground.rows, "main"))
    assert (other.number, newest.id, len(newest.commit.operations)) == (1, other.commit_id, 1)
    stuck.free.set()

    assert hanging.result().number == 2


def test_member_left_out_raises_what_its_last_run_raised(make_ground: Make) -> None:
    ground, stuck = make_ground(SHORT), Stuck()

    def change(tx: Transaction) -> int:
        stuck(tx)
        raise ValueError(f"run {stuck.runs}")

    def attempt() -> str:
        try:
            tell(ground.rows, "stuck", ADD, change)
        except ValueError as fault:
            return str(fault)
        return "nothing"

    hanging = Caller(attempt)
    assert stuck.entered.wait(60)
    add(ground, 0)
    stuck.free.set()

    assert hanging.result() == f"run {stuck.runs}"
    assert len(list(read_log(ground.rows, "main"))) == 1
