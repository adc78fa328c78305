"""A restoration that ends between any two calls of the database is finished by the next attempt; and the same on every database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from msgspec.structs import replace
from pasts import catalogs_of, claimed, contents, drop, lake_of, make_realm, passed, put, request, restored, rows_of, submitted

from backend_fixtures import STORES
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store, open_store
from headwater.catalogs import Catalogs, ContentKey, Delete, Put
from headwater.clock import Micros
from headwater.commits import read_pins
from headwater.errors import FencedError
from headwater.fsck import check_store
from headwater.gc import collect_realm
from headwater.jobs import run_restore
from headwater.restore import RequestMoment, restore_state
from headwater.store import Backend, ObjectId, ScanSplit, id_text
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import TaskQueue


class ProcessKilled(BaseException):
    """Goes through everything, like a SIGKILL."""


def make_past(store: Store, clock: FakeClock) -> Micros:
    """Two catalogs of which one is deleted, with branches that were changed and deleted; returns the time before that."""
    make_realm(store)
    for name in ("lake", "pond"):
        catalogs_of(store).create_catalog(name, base_location=f"s3://{name}/")
    lake, pond = lake_of(store), catalogs_of(store).open_catalog("pond")
    put(lake, "orders")
    lake.create_branch("dev")
    put(lake, "customers", branch="dev")
    put(pond, "fish")
    moment = passed(clock)
    drop(lake, "orders")
    lake.delete_branch("dev")
    catalogs_of(store).delete_catalog("pond")
    clock.advance(1)
    return moment


def past_of(store: Store) -> list[set[str]]:
    lake, pond = lake_of(store), catalogs_of(store).open_catalog("pond")
    return [set(contents(lake)), set(contents(lake, "dev")), set(contents(pond))]


BEFORE = [{"orders"}, {"orders", "customers"}, {"fish"}]


@pytest.fixture(params=STORES)
def any_store(request: pytest.FixtureRequest, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_store(STORES[request.param](request), settings=settings, clock=clock) as opened:
        yield opened


def test_realm_is_restored_on_every_database(any_store: Store, clock: FakeClock) -> None:
    moment = make_past(any_store, clock)
    restored(any_store, request("", moment))

    assert past_of(any_store) == BEFORE
    assert restored(any_store, request("", moment))["changed"] == 0
    assert [str(finding) for finding in check_store(any_store)] == []


def test_deleted_catalog_comes_back_or_goes_on_every_database(any_store: Store, clock: FakeClock) -> None:
    make_realm(any_store)
    catalogs_of(any_store).create_catalog("lake", base_location="s3://lake/")
    put(lake_of(any_store), "orders")
    catalogs_of(any_store).delete_catalog("lake")
    collect_realm(any_store, "acme")
    back = catalogs_of(any_store).undelete_catalog("lake")
    assert set(contents(lake_of(any_store))) == {"orders"}
    catalogs_of(any_store).delete_catalog("lake")
    for _ in range(4):
        clock.advance(25 * 3600)
        collect_realm(any_store, "acme")

    assert catalogs_of(any_store).list_deleted() == []
    assert not any(row.name.startswith(f"cat/{back.id}") for row in rows_of(any_store).scan_references())


@pytest.mark.long
def test_restoration_is_finished_wherever_it_was_killed(settings: Settings) -> None:
    clock = FakeClock()
    with open_store("memory://", settings=settings, clock=clock) as prepared:
        moment = make_past(prepared, clock)
        for call in count(1):
            backend = copied(prepared.backend)
            faults = FaultyBackend(backend)
            killed = Store(faults, url="memory://", settings=settings, clock=clock)  # type: ignore[arg-type]
            killed.new_id()
            faults.fail("*", at=call, times=1_000_000, fault=ProcessKilled())  # type: ignore[arg-type]
            is_done = is_restored(killed, moment)
            with Store(backend, url="memory://", settings=settings, clock=clock) as other:
                restore_state(rows_of(other), ObjectId(1), request("", moment))

                assert past_of(other) == BEFORE
                assert read_pins(rows_of(other)) == []
            if is_done:
                break


def copied(backend: Backend) -> MemoryBackend:
    """The same rows in a memory of their own."""
    copy = MemoryBackend()
    for one in backend.scan_references(ScanSplit(), None, 10_000):
        copy.create_references([row for row in backend.read_references(one.realm, [one.name]) if row is not None])
    for key in backend.scan_objects(ScanSplit(), None, 10_000):
        copy.write_objects([row for row in backend.read_objects(key.realm, [(key.id, key.part)]) if row is not None])
    return copy


def is_restored(store: Store, moment: Micros) -> bool:
    try:
        restore_state(rows_of(store), ObjectId(1), request("", moment))
    except ProcessKilled:
        return False
    return True


def test_attempt_that_was_taken_over_writes_nothing_more(store: Store, clock: FakeClock) -> None:
    moment = make_past(store, clock)
    task = submitted(store, request("", moment))
    claim = claimed(store, task)
    claim.hand_back("another takes over")
    claimed(store, task)

    with pytest.raises(FencedError):
        run_restore(store, claim)
    assert Catalogs(rows_of(store)).find_catalog("pond") is None
    assert past_names(store) == {"main"}


def past_names(store: Store) -> set[str]:
    return {named.name for named in lake_of(store).branches()}


@pytest.mark.parametrize("call", range(1, 5))
def test_commits_of_others_meanwhile_are_undone_or_come_after(settings: Settings, clock: FakeClock, call: int) -> None:
    with open_store("memory://", settings=settings, clock=clock) as opened:
        make_realm(opened)
        catalogs_of(opened).create_catalog("lake", base_location="s3://lake/")
        old = put(lake_of(opened), "orders", 1)
        put(lake_of(opened), "orders", 2)
        other = Store(opened.backend, url="memory://", settings=settings, clock=clock)
        calls: list[int] = []

        def fence() -> None:
            calls.append(1)
            if len(calls) == call:
                run_in_thread(lambda: put(lake_of(other), "late"))

        restore_state(rows_of(opened), ObjectId(1), request("lake/main", old, is_commit=True), fence=fence)
        restored_at = [entry.seq for entry in lake_of(opened).log() if entry.message.startswith("restore")]
        late_at = [entry.seq for entry in lake_of(opened).log() if entry.message.startswith("late")]

        assert set(contents(lake_of(opened))) == ({"orders", "late"} if late_at > restored_at else {"orders"})
        assert len(late_at) == len(restored_at) == 1


def run_in_thread(work: Callable[[], object]) -> None:
    """As another process would: who commits may be asked to stop, and not to commit."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)


def test_restoration_that_an_earlier_release_has_begun_is_known(store: Store, clock: FakeClock) -> None:
    """Its commits name the task among their words: what others did on top of them stays."""
    make_realm(store)
    catalogs_of(store).create_catalog("lake", base_location="s3://lake/")
    lake, key = lake_of(store), ContentKey.of("orders")
    put(lake, "orders")
    orders, moment = lake.get_content("main", key), passed(clock)
    drop(lake, "orders")
    assert orders is not None and orders.id is not None
    owner = submitted(store, request("lake/main", moment))
    lake.commit("main", [Put(key, replace(orders, id=None))], content_ids={key: orders.id}, properties={"task": id_text(owner)})
    put(lake, "late")

    restore_state(
        rows_of(store),
        owner,
        request("lake/main", moment),
        asked=RequestMoment(TaskQueue(store).read_task(owner).value.created),
    )

    assert set(contents(lake)) == {"orders", "late"}


def test_words_of_a_commit_pass_for_no_restoration(store: Store, clock: FakeClock) -> None:
    make_realm(store)
    catalogs_of(store).create_catalog("lake", base_location="s3://lake/")
    lake = lake_of(store)
    put(lake, "orders")
    moment = passed(clock)
    owner = submitted(store, request("lake/main", moment))
    lake.commit("main", [Delete(ContentKey.of("orders"))], properties={"task": id_text(owner)})

    restore_state(
        rows_of(store),
        owner,
        request("lake/main", moment),
        asked=RequestMoment(TaskQueue(store).read_task(owner).value.created),
    )

    assert set(contents(lake)) == {"orders"}
