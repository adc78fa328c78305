"""The state at a moment: one answer and one error for logs, texts, restorations and exports; and none by a clock that was ahead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pasts import contents, lake_of, passed, planned, put, request

from fake_clock import FakeClock
from headwater import Store
from headwater.backup import ExportOrder, export_realm
from headwater.catalogs import Catalog, LogFilter
from headwater.clock import Micros, as_text
from headwater.errors import ExpiredError, HeadwaterError, NotFoundError, RefusedError
from headwater.store import ObjectId, id_text

YEAR = 365 * 86400.0
Asks = Callable[[Micros], object]


def read_at(catalog: Catalog, time: int) -> object:
    return catalog.resolve(f"main*{as_text(time)}")


@pytest.fixture
def asks(store: Store, lake: Catalog, tmp_path: Path) -> dict[str, Asks]:
    """Three ways to ask what main was."""
    order = lambda time: ExportOrder(realm="acme", file=tmp_path / f"{time}.realm", time=time, task=store.new_id())  # noqa: E731
    return {
        "read": lambda time: read_at(lake, time),
        "restore": lambda time: planned(store, request("lake/main", time)),
        "export": lambda time: export_realm(store, order(time)),
    }


@pytest.fixture
def poisoned(store: Store, lake: Catalog, clock: FakeClock) -> tuple[Micros, ObjectId]:
    """Three commits of main, of which the second is by a process five years ahead; a moment before it, and its id."""
    put(lake, "orders", 1)
    clock.advance(3600)
    moment = passed(clock)
    clock.advance(3600)
    ahead = FakeClock(clock.now() + round(5 * YEAR * 1_000_000))
    bad = put(lake_of(Store(store.backend, url="memory://", settings=store.settings, clock=ahead)), "orders", 2)
    store.cache.clear()
    put(lake, "orders", 3)
    clock.advance(7200)
    return moment, bad


@pytest.mark.parametrize("way", ["read", "restore", "export"])
def test_clock_that_was_ahead_is_refused(
    asks: dict[str, Asks], poisoned: tuple[Micros, ObjectId], clock: FakeClock, way: str
) -> None:
    with pytest.raises(RefusedError, match=r"a clock was ahead.*headwater fsck") as refused:
        asks[way](Micros(clock.now() - 6000_000_000))
    assert as_text(clock.now()) in str(refused.value)


def test_log_until_a_time_refuses_clock_that_was_ahead(lake: Catalog, poisoned: tuple[Micros, ObjectId]) -> None:
    with pytest.raises(RefusedError, match="a clock was ahead"):
        list(lake.log("main", where=LogFilter(until=poisoned[0])))


def test_commit_pushed_ahead_is_refused_when_its_time_has_come(
    lake: Catalog, poisoned: tuple[Micros, ObjectId], clock: FakeClock
) -> None:
    late = clock.now()
    clock.advance(6 * YEAR)
    put(lake, "orders", 4)

    with pytest.raises(RefusedError, match="may have been made before or after that"):
        read_at(lake, late)
    assert contents(lake, f"main*{as_text(clock.now())}") == {"orders": "s3://lake/orders/metadata/4.json"}


def test_commit_is_named_beyond_clock_that_was_ahead(lake: Catalog, poisoned: tuple[Micros, ObjectId]) -> None:
    assert contents(lake, f"main@{id_text(poisoned[1])}~1") == {"orders": "s3://lake/orders/metadata/1.json"}


def test_time_before_everything_has_one_answer(asks: dict[str, Asks], clock: FakeClock) -> None:
    faults = {way: fault_of(ask, Micros(clock.now() - round(14400e6))) for way, ask in asks.items()}

    assert {type(fault) for fault in faults.values()} == {NotFoundError}
    assert [way for way, fault in faults.items() if "there is no state of" not in str(fault)] == []


def test_time_beyond_kept_moves_has_one_answer(asks: dict[str, Asks], lake: Catalog, clock: FakeClock) -> None:
    base = put(lake, "orders", 1)
    put(lake, "orders", 2)
    moment = passed(clock)
    clock.advance(4 * 3600)
    lake.assign_branch("main", base)
    faults = {way: fault_of(ask, moment) for way, ask in asks.items()}

    assert {type(fault) for fault in faults.values()} == {ExpiredError}
    assert str(faults["read"]).endswith(str(faults["restore"]))


def test_branch_that_was_put_elsewhere_is_read_where_it_was(lake: Catalog, clock: FakeClock) -> None:
    base, left = put(lake, "orders", 1), put(lake, "orders", 2)
    moment = passed(clock)
    lake.assign_branch("main", base)
    put(lake, "orders", 3)

    found = lake.resolve(f"main*{moment // 1000}")
    assert found is not None
    assert found.id == left


def fault_of(ask: Asks, time: Micros) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as raised:
        ask(time)
    return raised.value
