"""Explanations lead from a reference down to the object in words, and say when it goes as far as that can be told."""

from __future__ import annotations

import dataclasses

import pytest
from harm import HOUR, REALM, lose, make_lake, make_realm, open_on, put, rows_of, table_of

from backend_fixtures import STORES
from fake_clock import FakeClock
from headwater import Settings, open_store
from headwater.catalogs import Catalog
from headwater.clock import as_text
from headwater.commits import pin_commits
from headwater.fsck.explanation import explain
from headwater.gc import collect_realm
from headwater.realms import HistoryRetention, RealmRegistry
from headwater.store import ObjectId, RealmStore, Store, UnknownObject, id_text
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import TaskQueue


def keep(store: Store, *, commits: int, seconds: float = 0.0) -> None:
    wanted = HistoryRetention(content_commits=commits, content_age_seconds=seconds)
    RealmRegistry(store).update_realm(RealmRegistry(store).read_realm(REALM), retention=wanted)


def seconds_from_now(store: Store, time: int | None) -> float:
    assert time is not None
    return (time - store.clock.now()) / 1_000_000


def test_way_is_told_from_the_branch_to_the_key(store: Store, lake: Catalog, commits: list[ObjectId]) -> None:
    told = explain(store, REALM, table_of(lake))

    branch, commit, table = told.path
    assert branch == "branch main of catalog lake"
    assert commit.startswith(f"commit {id_text(commits[2])}: seq 3, 20") and commit.endswith("'v3'")
    assert table == f"iceberg-table {id_text(table_of(lake))}: key orders"


def test_way_goes_through_lists_and_stripes(settings: Settings, clock: FakeClock) -> None:
    small = dataclasses.replace(settings, index_embedded_bytes=1024, index_stripe_bytes=1024)
    with open_on(MemoryBackend(), small, clock) as store:
        make_realm(store)
        lake = make_lake(store)
        put(lake, 1, *(f"t{number:03}" for number in range(200)))
        told = explain(store, REALM, table_of(lake, "t007"))

    assert [step.partition(" ")[0] for step in told.chain][-2:] == ["stripe", "iceberg-table"]
    assert any(step.startswith("stripe ") and step.endswith("of index 'content'") for step in told.path)
    assert told.path[-1].endswith("key t007")


def test_object_kept_by_the_grace_goes_when_it_is_over(store: Store, lake: Catalog, commits: list[ObjectId]) -> None:
    former = table_of(lake)
    put(lake, 4)
    told = explain(store, REALM, former)

    assert (told.why, seconds_from_now(store, told.goes)) == ("grace", pytest.approx(60 + 15, abs=1))


def test_collection_at_that_time_deletes_it_and_none_before(
    store: Store, lake: Catalog, commits: list[ObjectId], clock: FakeClock
) -> None:
    former = table_of(lake)
    put(lake, 4)
    goes = explain(store, REALM, former).goes
    clock.advance(seconds_from_now(store, goes) - 1)
    collect_realm(store, REALM)
    assert explain(store, REALM, former).goes == goes
    clock.advance(2)

    assert collect_realm(store, REALM).deleted > 0
    assert store.backend.read_objects(rows_of(store).key, [(former, 0)]) == [None]


def test_object_kept_by_an_age_goes_when_that_old(store: Store, lake: Catalog, commits: list[ObjectId]) -> None:
    keep(store, commits=1, seconds=10 * HOUR)
    told = explain(store, REALM, commits[1])

    assert told.why == "retention"
    assert seconds_from_now(store, told.goes) == pytest.approx(9 * HOUR, abs=60)
    assert f"until {as_text(told.goes or 0)}" in told.sentence


def test_object_kept_by_a_number_goes_after_so_many_commits(store: Store, lake: Catalog, commits: list[ObjectId]) -> None:
    keep(store, commits=5)
    told = explain(store, REALM, commits[1])

    assert told.goes is None
    assert "until 4 more commits are made there" in told.sentence


def test_head_goes_at_no_time_that_could_be_told(store: Store, commits: list[ObjectId]) -> None:
    told = explain(store, REALM, commits[2])

    assert (told.why, told.goes) == ("head", None)


def test_object_kept_longer_by_another_branch_is_told_by_that(store: Store, lake: Catalog, commits: list[ObjectId]) -> None:
    lake.create_branch("dev")
    former = table_of(lake)
    put(lake, 4)

    assert explain(store, REALM, former).path[0] == "branch dev of catalog lake"


def test_pin_names_its_task(
    store: Store, lake: Catalog, realm_rows: RealmStore, commits: list[ObjectId], clock: FakeClock
) -> None:
    task = TaskQueue(store).submit_task("export", realm=REALM)
    pin_commits(realm_rows, task.id, {commits[2]: [f"cat/{lake.definition.id}/heads/main"]})
    put(lake, 4)
    clock.advance(HOUR)

    told = explain(store, REALM, commits[2])
    assert f"task {id_text(task.id)} (export of realm 'acme', WAITING) has pinned commit {id_text(commits[2])}" in told.sentence
    assert told.goes is None


def test_unknown_type_that_nothing_leads_to_is_left_alone(store: Store, realm_rows: RealmStore, clock: FakeClock) -> None:
    stranger = store.new_id()
    realm_rows.write_objects([(stranger, UnknownObject(name="later-thing", body=b"\x80"))])
    clock.advance(HOUR)

    told = explain(store, REALM, stranger)
    assert (told.is_kept, told.why) == (True, "unknown type")


def test_garbage_that_a_damage_protects_is_told_with_the_damage(
    store: Store, lake: Catalog, realm_rows: RealmStore, commits: list[ObjectId]
) -> None:
    lose(realm_rows, commits[2])

    told = explain(store, REALM, commits[0])
    assert not told.is_kept
    assert "deletes nothing as long as reference" in told.sentence


@pytest.mark.parametrize("database", STORES)
def test_explanations_are_the_same_on_every_database(
    request: pytest.FixtureRequest, settings: Settings, clock: FakeClock, database: str
) -> None:
    with open_store(STORES[database](request), settings=settings, clock=clock) as store:
        make_realm(store)
        lake = make_lake(store)
        put(lake, 1)
        told = explain(store, REALM, table_of(lake))

    assert (told.why, told.path[-1].rpartition(": ")[2]) == ("head", "key orders")
