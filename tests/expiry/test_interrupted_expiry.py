"""An expiry that dies, or whose database fails, at any call: the next one comes to the same end, and no table is expired twice."""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from expiring_lake import ExpiringLake
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.errors import HeadwaterError
from headwater.fsck import check_store
from headwater.gc import collect_realm
from headwater.settings import Settings
from lakes import copied, open_on
from tiers import Sample

TABLES = ("lines", "orders", "refunds")
SETTINGS = Settings(expire_batch=2)


class Killed(BaseException):
    """Nothing may catch it: the process is gone."""


@pytest.fixture
def prepared(lake: ExpiringLake) -> ExpiringLake:
    for name in TABLES:
        lake.create(name, snapshots=3)
    return lake


def beside(lake: ExpiringLake, faulty: FaultyBackend) -> ExpiringLake:
    """The lake as another process has it, on a copy of the rows."""
    clock = FakeClock(lake.clock.now())
    return ExpiringLake(open_on(faulty, SETTINGS, clock), clock, lake.warehouse, lake.homes)


def expired_names(lake: ExpiringLake) -> Counter[str]:
    """How often commits have expired each table."""
    messages = (entry.message for entry in lake.catalog.log())
    expired = (text.removeprefix("expire snapshots of ").split(", ") for text in messages if text.startswith("expire"))
    return Counter(itertools.chain.from_iterable(expired))


def assert_expired_once(lake: ExpiringLake) -> None:
    assert [lake.snapshots(name) for name in TABLES] == [[3]] * 3
    assert expired_names(lake) == Counter(f"sales.{name}" for name in TABLES)
    for name in TABLES:
        assert Path(lake.load(name).metadata_location.removeprefix("file://")).is_file()


@pytest.mark.parametrize("is_dead", [True, False], ids=["dies", "fails once"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_expiry_is_ended_by_the_next(prepared: ExpiringLake, before: bool, is_dead: bool, sample: Sample) -> None:
    for call in sample.one_in(19, itertools.count(1)):
        faulty = FaultyBackend(copied(prepared.store.backend))
        lake = beside(prepared, faulty)
        expiry = lake.expiry()
        faulty.fail("*", at=call, times=1_000_000 if is_dead else 1, before=before, fault=Killed() if is_dead else None)
        calls = len(faulty.calls)
        with suppress(Killed, HeadwaterError):
            expiry.expire()
        is_over = len(faulty.calls) - calls < call

        after = beside(prepared, FaultyBackend(faulty.backend))
        after.expire()

        assert_expired_once(after)
        if is_over:
            break


def test_upkeep_knows_what_expiry_remembers(prepared: ExpiringLake) -> None:
    prepared.expire()
    prepared.clock.advance(90 * 24 * 3600.0)

    collect_realm(prepared.store, "acme")

    assert check_store(prepared.store) == []
    assert prepared.expire().unchanged == 3
