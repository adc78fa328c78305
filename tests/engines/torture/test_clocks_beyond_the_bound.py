"""A process whose clock is shifted further than clocks may differ: collections refuse to delete anything, and say why."""

from __future__ import annotations

from pathlib import Path

import pytest
from torture_clock import FastClock, Timeline
from torture_storm import SETTINGS, SPEED

from forked_children import run_forked
from headwater.catalogs import Catalogs, ContentKey, IcebergTable, Put
from headwater.errors import RefusedError
from headwater.gc import collect_realm
from headwater.realms import RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.store import open_store

BOUND = SETTINGS.clock_bound_seconds


def prepare(url: str, timeline: Timeline) -> None:
    with open_store(url, settings=SETTINGS, clock=FastClock(timeline)) as store:
        realms = RealmRegistry(store)
        realms.create_realm("acme")
        bootstrap(realms, "acme", hash_credentials(new_credentials()))
        Catalogs(realms.open_realm("acme")).create_catalog("lake", base_location="s3://lake/")


def write(url: str, timeline: Timeline, *, shift_seconds: float) -> None:
    """In a process of its own, whose clock goes before."""

    def work(_: int) -> None:
        with open_store(url, settings=SETTINGS, clock=FastClock(timeline, shift_seconds=shift_seconds)) as store:
            catalog = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
            catalog.commit(None, [Put(ContentKey.of("orders"), IcebergTable(metadata_location="s3://lake/orders.json"))])

    run_forked(1, work)


@pytest.fixture
def timeline() -> Timeline:
    return Timeline.before_now(speed=SPEED, seconds=60)


def test_writer_within_the_bound_is_collected_around(tmp_path: Path, timeline: Timeline) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    prepare(url, timeline)
    write(url, timeline, shift_seconds=0.9 * BOUND)

    with open_store(url, settings=SETTINGS, clock=FastClock(timeline)) as store:
        assert collect_realm(store, "acme").garbage == 0


def test_writer_beyond_the_bound_keeps_the_collector_from_deleting(tmp_path: Path, timeline: Timeline) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    prepare(url, timeline)
    write(url, timeline, shift_seconds=20 * BOUND)

    with (
        open_store(url, settings=SETTINGS, clock=FastClock(timeline)) as store,
        pytest.raises(RefusedError, match=r"in realm 'acme' has the time .* ahead of this machine's .*: set the clocks right"),
    ):
        collect_realm(store, "acme")
