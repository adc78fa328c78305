"""A reference that the database lost, or a list of branches: what it kept is not garbage."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import Catalogs
from headwater.commits import read_collection
from headwater.errors import CorruptionError
from headwater.fsck import FindingCode, check_store, plan_repairs, repair_realm
from headwater.gc import collect_realm
from headwater.settings import Settings
from headwater.store import Store
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, REALM, lake, make_lake, make_realm, open_on, put, rows_of, unreadable_heads


@pytest.fixture
def backend(settings: Settings, clock: FakeClock) -> MemoryBackend:
    """Two branches with old commits; the row that lists them is gone."""
    made = MemoryBackend()
    store = open_on(made, settings, clock)
    make_realm(store)
    catalog = make_lake(store)
    catalog.create_branch("dev")
    put(catalog, 1)
    put(catalog, 1, branch="dev")
    clock.advance(10 * HOUR)
    rows = rows_of(store)
    [name] = (row.name for row in rows.scan_references() if row.name.endswith("/refs"))
    row = rows.find_row(name)
    assert row is not None
    made.remove_reference(row)
    return made


@pytest.fixture
def store(backend: MemoryBackend, settings: Settings, clock: FakeClock) -> Store:
    return open_on(backend, settings, clock)


def test_collection_deletes_nothing_and_names_the_list(
    store: Store, backend: MemoryBackend, settings: Settings, clock: FakeClock
) -> None:
    with pytest.raises(CorruptionError, match=r"/refs' of realm 'acme', which lists the branches .* 2 of them are"):
        collect_realm(store, REALM)

    assert unreadable_heads(backend, settings, clock) == []


def test_catalog_is_not_completed_with_an_empty_list(store: Store) -> None:
    with pytest.raises(CorruptionError, match="it was lost"):
        Catalogs(rows_of(store)).create_catalog("lake", base_location="s3://lake/")


def test_fsck_tells_it_and_a_repair_leaves_it_to_people(store: Store) -> None:
    findings = check_store(store, realm=REALM)
    done = list(repair_realm(store, REALM, plan_repairs(findings)))

    assert FindingCode.LIST_UNREADABLE in [finding.code for finding in findings]
    assert all("it was lost" in step.result for step in done)


@pytest.mark.parametrize("name", ["grants", "root", "claims"])
def test_realm_without_a_reference_of_its_own_is_not_collected(settings: Settings, clock: FakeClock, name: str) -> None:
    store = open_on(MemoryBackend(), settings, clock)
    make_realm(store)
    put(make_lake(store), 1)
    row = rows_of(store).find_row(name)
    assert row is not None
    store.backend.remove_reference(row)
    clock.advance(10 * HOUR)

    with pytest.raises(CorruptionError, match=rf"has no reference {name}, which every realm has"):
        collect_realm(store, REALM)
    record = read_collection(rows_of(store))
    assert record is None or not record.value.sweeping


def test_catalog_whose_making_stopped_before_its_list_is_collected(settings: Settings, clock: FakeClock) -> None:
    backend = MemoryBackend()
    make_realm(open_on(backend, settings, clock))
    faulty = FaultyBackend(backend)
    faulty.fail("create_references", at=1, fault=KeyboardInterrupt())  # type: ignore[arg-type]  # raised as it is
    with pytest.raises(KeyboardInterrupt):
        Catalogs(rows_of(open_on(faulty, settings, clock))).create_catalog("lake", base_location="s3://lake/")
    clock.advance(10 * HOUR)
    store = open_on(backend, settings, clock)
    collect_realm(store, REALM)

    assert make_lake(store).branches() != []
    assert lake(store).definition.name == "lake"
