"""Settings that keep more than those of the last collection begin where that one ended: what is gone is gone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import msgspec
import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import Catalog
from headwater.clock import Micros
from headwater.commits import read_collection
from headwater.errors import UnavailableError
from headwater.fsck import check_store
from headwater.gc import collect_realm
from headwater.settings import Settings
from headwater.store import Backend, Store
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, lake, make_lake, make_realm, open_on, put, rows_of, unreadable_heads

SHORT = {
    "reader_grace_seconds": 5.0,
    "writer_grace_seconds": 3.0,
    "commit_timeout_seconds": 2.0,
    "unsafe_short_graces": True,
}
"""What the demo sets."""
Act = Callable[[Catalog, FakeClock], object]


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def short(backend: Backend, settings: Settings, clock: FakeClock) -> Store:
    """A process under short graces, with a realm that keeps one commit."""
    store = open_on(backend, dataclasses.replace(settings, **SHORT), clock)
    make_realm(store)
    make_lake(store)
    return store


def opened(backend: Backend, clock: FakeClock, **longer: float) -> Store:
    """Another process, as shipped but for what is named."""
    return open_on(backend, dataclasses.replace(Settings(store="memory://"), **longer), clock)  # type: ignore[arg-type]


def delete_branch(at: Catalog, clock: FakeClock) -> None:
    at.create_branch("dev", "main")
    put(at, 10, branch="dev")
    clock.advance(1)
    put(at, 11, branch="dev")
    clock.advance(1)
    at.delete_branch("dev")


def assign_branch(at: Catalog, clock: FakeClock) -> None:
    base = put(at, 10)
    clock.advance(1)
    put(at, 11)
    clock.advance(1)
    at.assign_branch("main", base)


def commit_much(at: Catalog, clock: FakeClock) -> None:
    for version in range(10, 16):
        put(at, version)
        clock.advance(1)


@pytest.mark.parametrize("waited", range(3, 24, 4))
@pytest.mark.parametrize("act", [delete_branch, assign_branch, commit_much])
@pytest.mark.parametrize(
    "longer",
    [{}, {"reader_grace_seconds": 24 * HOUR}, {"writer_grace_seconds": 24 * HOUR}, {"commit_timeout_seconds": 600.0}],
    ids=str,
)
def test_longer_settings_refuse_no_collection(
    short: Store, backend: Backend, clock: FakeClock, act: Act, waited: int, longer: dict[str, float]
) -> None:
    put(lake(short), 1)
    clock.advance(60)
    act(lake(short), clock)
    clock.advance(waited)
    collect_realm(short, "acme")
    clock.advance(1)
    store = opened(backend, clock, **longer)

    assert list(check_store(store, realm="acme")) == []
    collect_realm(store, "acme")
    assert unreadable_heads(backend, store.settings, clock) == []


@pytest.mark.parametrize("waited", [3, 7, 11])
def test_record_of_earlier_release_refuses_no_collection(short: Store, backend: Backend, clock: FakeClock, waited: int) -> None:
    put(lake(short), 1)
    delete_branch(lake(short), clock)
    clock.advance(waited)
    collect_realm(short, "acme")
    rows = rows_of(short)
    record = read_collection(rows)
    assert record is not None
    rows.update_object(record, msgspec.structs.replace(record.value, kept_since=Micros(0)))
    store = opened(backend, clock)

    assert list(check_store(store, realm="acme")) == []
    assert collect_realm(store, "acme").deleted == 0


def test_interrupted_sweep_goes_on_under_longer_settings(short: Store, backend: Backend, clock: FakeClock) -> None:
    put(lake(short), 1)
    delete_branch(lake(short), clock)
    commit_much(lake(short), clock)
    clock.advance(7)
    faulty = FaultyBackend(backend)
    faulty.fail("delete_objects", at=1, fault=UnavailableError("gone"))
    with pytest.raises(UnavailableError):
        collect_realm(open_on(faulty, short.settings, clock), "acme")
    store = opened(backend, clock)

    assert collect_realm(store, "acme").resumed == 1
    assert list(check_store(store, realm="acme")) == []
    assert collect_realm(store, "acme").deleted == 0
