"""A collection on a machine whose clock is wrong, or was, deletes no file early."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from collected_tables import HOUR, CollectedTable, make_collected_table

from fake_clock import FakeClock
from headwater import Settings, Store, open_store
from headwater.clock import Micros, SystemClock
from headwater.store import DoubtfulClockError

WRONG = [-5 * HOUR, 5 * HOUR]


@pytest.mark.parametrize("seconds", [2 * HOUR, 100 * HOUR])
def test_clock_set_ahead_after_the_mark_deletes_nothing(table: CollectedTable, clock: FakeClock, seconds: float) -> None:
    table.make_unreferenced()
    table.collect()
    clock.advance(HOUR)
    clock.set_ahead(seconds)
    collected = table.collect()

    assert collected.deleted == 0
    assert "this machine's clock was set" in collected.notes[0]


def test_clock_behind_at_the_mark_and_right_later_deletes_nothing(table: CollectedTable, clock: FakeClock) -> None:
    table.collect()
    clock.set_ahead(-5 * HOUR)
    table.make_unreferenced()
    table.collect()
    clock.set_ahead(5 * HOUR)

    assert table.collect().deleted == 0


def test_files_go_a_delay_after_the_clock_was_set(table: CollectedTable, clock: FakeClock) -> None:
    table.make_unreferenced()
    table.collect()
    clock.set_ahead(5 * HOUR)
    table.collect()
    clock.advance(3 * HOUR - 1)
    assert table.collect().deleted == 0
    clock.advance(2)

    assert table.collect().deleted == 1


def test_plan_forgets_nothing_about_the_clock(table: CollectedTable, clock: FakeClock) -> None:
    table.make_unreferenced()
    table.collect()
    clock.set_ahead(5 * HOUR)
    plan = table.collector().plan()

    assert (plan.deleted, plan.waiting) == (0, 1)
    clock.advance(4 * HOUR)
    assert table.collect().deleted == 0  # only a collection notes that the clock was set


def test_clock_far_ahead_is_doubted_before_anything_is_marked(table: CollectedTable, clock: FakeClock) -> None:
    (filename,) = table.make_unreferenced()
    table.collect()
    clock.set_ahead(400 * 24 * HOUR)
    other = table.make_unreferenced()

    with pytest.raises(DoubtfulClockError):
        table.collect()
    assert table.is_stored(filename)
    assert table.marked_at(other[0]) is None


class WrongClock(SystemClock):
    """The machine's clock, so many seconds ahead."""

    def __init__(self, ahead: float) -> None:
        super().__init__()
        self._ahead = round(ahead * 1_000_000)

    def now(self) -> Micros:
        return Micros(super().now() + self._ahead)

    def wall(self) -> Micros:
        return Micros(super().wall() + self._ahead)


@pytest.fixture
def open_with(postgresql_url: str) -> Iterator[Callable[[float, float], Store]]:
    """Another process on one PostgreSQL: so many seconds ahead, with so many seconds of delay."""
    with ExitStack() as opened:
        yield lambda ahead, delay: opened.enter_context(
            open_store(postgresql_url, settings=Settings(files_delete_delay_seconds=delay), clock=WrongClock(ahead))
        )


@pytest.mark.long
@pytest.mark.parametrize(("marker", "deleter"), list(itertools.product([0.0, *WRONG], repeat=2)))
def test_all_machines_go_by_the_clock_of_the_server(
    open_with: Callable[[float, float], Store], tmp_path: Path, marker: float, deleter: float
) -> None:
    table = make_collected_table(open_with(0, HOUR), tmp_path / "orders" / "data")
    table.make_unreferenced(2)

    assert replace(table, store=open_with(marker, HOUR)).collect().marked == 2
    assert replace(table, store=open_with(deleter, HOUR)).collect().deleted == 0
    assert replace(table, store=open_with(deleter, 0.001)).collect().deleted == 2
