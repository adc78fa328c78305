"""A process that ends between any two calls of the database leaves nothing that the next one cannot complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store, open_store
from headwater.catalogs import CATALOGS, CatalogDefinition, Catalogs, RefKind, reference_names, release_name
from headwater.catalogs.registry import OwnRefKind, content_reference, own_reference
from headwater.clock import Micros
from headwater.commits import read_head
from headwater.store import RealmId, RealmKey, RealmStore

Act = Callable[[Catalogs], object]


class ProcessEnded(BaseException):
    """Goes through everything, like a SIGKILL."""


@pytest.fixture
def faults(clock: FakeClock, settings: Settings) -> Iterator[FaultyBackend]:
    with open_store("memory://", settings=settings, clock=clock) as opened:
        yield FaultyBackend(opened.backend)


@pytest.fixture
def faulty_store(faults: FaultyBackend, clock: FakeClock, settings: Settings) -> Iterator[Store]:
    with Store(faults, url="memory://", settings=settings, clock=clock) as opened:
        opened.new_id()
        yield opened


def fresh_realm(store: Store) -> RealmStore:
    rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
    rows.ensure_reference(CATALOGS)
    return rows


def make(catalogs: Catalogs) -> CatalogDefinition:
    return catalogs.create_catalog("lake", base_location="s3://lake/")


def end_process_at(faults: FaultyBackend, call: int) -> None:
    faults.fail("*", at=call, times=1_000_000, fault=ProcessEnded())  # type: ignore[arg-type]


def is_finished(faults: FaultyBackend, call: int, rows: RealmStore, act: Act) -> bool:
    """Do something in a process that ends at its n-th call; whether it came to its end before."""
    end_process_at(faults, call)
    try:
        act(Catalogs(rows))
    except ProcessEnded:
        return False
    finally:
        faults.heal()
        rows.store.cache.clear()
    return True


def test_making_a_catalog_is_completed_wherever_it_was_interrupted(faulty_store: Store, faults: FaultyBackend) -> None:
    for call in count(1):
        rows = fresh_realm(faulty_store)
        done = is_finished(faults, call, rows, make)
        made = Catalogs(rows).create_catalog("lake", base_location="s3://lake/")

        assert [definition.id for definition in Catalogs(rows).list_catalogs()] == [made.id]
        assert {row.name for row in rows.scan_references()} == {CATALOGS, *(entry.name for entry in reference_names(rows))}
        assert read_head(rows, own_reference(made.id, OwnRefKind.GRANTS)) is not None
        assert rows.find_reference(content_reference(made.id, RefKind.BRANCH, "main")) is not None
        if done:
            break


def test_rows_of_an_interrupted_catalog_are_seen_by_the_collector(faulty_store: Store, faults: FaultyBackend) -> None:
    for call in count(1):
        rows = fresh_realm(faulty_store)
        done = is_finished(faults, call, rows, make)

        assert {row.name for row in rows.scan_references()} <= {CATALOGS, *(entry.name for entry in reference_names(rows))}
        if done:
            break


def test_branch_that_outlasted_its_listing_is_made_anew(faulty_store: Store, faults: FaultyBackend, clock: FakeClock) -> None:
    rows = fresh_realm(faulty_store)
    definition = Catalogs(rows).create_catalog("lake", base_location="s3://lake/")
    name = content_reference(definition.id, RefKind.BRANCH, "dev")
    faults.intervene("create_reference", lambda: sleep_until_released(rows, name, clock))

    Catalogs(rows).open_catalog("lake").create_branch("dev")

    assert rows.find_reference(name, fresh=True) is not None
    assert name in [entry.name for entry in reference_names(rows)]


def sleep_until_released(rows: RealmStore, name: str, clock: FakeClock) -> None:
    clock.advance(3600)
    assert release_name(rows, name, older_than=Micros(2**62))


def test_purge_is_finished_wherever_it_was_interrupted(faulty_store: Store, faults: FaultyBackend) -> None:
    for call in count(1):
        rows = fresh_realm(faulty_store)
        made = make(Catalogs(rows))
        Catalogs(rows).delete_catalog("lake")
        done = is_finished(faults, call, rows, lambda catalogs: catalogs.purge_catalog("lake"))
        Catalogs(rows).purge_catalog("lake")

        assert [one.is_held for one in Catalogs(rows).list_deleted()] == [False]
        assert rows.find_reference(content_reference(made.id, RefKind.BRANCH, "main"), fresh=True) is None
        if done:
            break


def test_undeletion_is_either_done_or_can_be_done_again(faulty_store: Store, faults: FaultyBackend) -> None:
    for call in count(1):
        rows = fresh_realm(faulty_store)
        make(Catalogs(rows))
        deleted = Catalogs(rows).delete_catalog("lake")
        done = is_finished(faults, call, rows, lambda catalogs: catalogs.undelete_catalog("lake"))
        if Catalogs(rows).find_catalog("lake") is None:
            Catalogs(rows).undelete_catalog("lake")

        assert [(one.id, one.held_until) for one in Catalogs(rows).list_catalogs()] == [(deleted.id, None)]
        if done:
            break


def test_catalogs_own_references_are_made_in_one_round_trip(faults: FaultyBackend, faulty_store: Store) -> None:
    rows = fresh_realm(faulty_store)
    before = len(faults.calls)
    Catalogs(rows).create_catalog("lake", base_location="s3://lake/")

    made = faults.calls[before:]
    assert (made.count("create_references"), made.count("create_reference")) == (1, 1)  # the latter is its default branch


def test_catalog_that_is_whole_is_completed_without_a_write(faults: FaultyBackend, faulty_store: Store) -> None:
    catalogs = Catalogs(fresh_realm(faulty_store))
    definition = catalogs.create_catalog("lake", base_location="s3://lake/")
    before = len(faults.calls)
    catalogs.complete_catalog(definition)

    assert {"create_references", "create_reference", "swap_reference"}.isdisjoint(faults.calls[before:])
