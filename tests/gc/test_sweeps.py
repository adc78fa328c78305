"""What a sweep deletes, how fast, and what it refuses to: on each database, in one split or several."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterator

import pytest

from backend_fixtures import BACKENDS
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import ContentKey, IcebergTable, Put
from headwater.clock import Micros
from headwater.commits import SweptSplit, pin_commits, read_collection, read_pins
from headwater.errors import FencedError, UnavailableError
from headwater.gc import KeepReason, PhaseTimer, collect_realm
from headwater.gc.live_set import LiveSet, RowClassifier
from headwater.gc.sweep import CollectionResult, RealmSweep, ScanLandmarks
from headwater.jobs import run_collection
from headwater.jobs.task_runs import list_runs
from headwater.settings import Settings
from headwater.store import ObjectId, ObjectKey, RealmKey, RealmStore, Store, StoredObject, UnknownObject, object_type
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import TaskLease, TaskQueue, TaskStoppedError
from headwater.throttle import Fence, FenceWatch, RowRate, Throttle
from lakes import HOUR, lake, make_lake, make_realm, open_on, put, rows_of, unreadable_heads


@object_type("test-sweepings")
class Dust(StoredObject, frozen=True, kw_only=True):
    text: str = ""


def litter(rows: RealmStore, count: int) -> list[ObjectId]:
    ids = rows.new_ids(count)
    rows.write_objects((object_id, Dust(text="x" * 10)) for object_id in ids)
    return ids


def dust(rows: RealmStore) -> list[ObjectKey]:
    return [key for batch in rows.scan_objects() for key in batch if key.type == "test-sweepings"]


def claim_of(store: Store) -> TaskLease:
    tasks = TaskQueue(store)
    claim = tasks.claim_task(tasks.submit_task("gc", realm="acme").id, "worker")
    assert claim is not None
    return claim


@pytest.fixture(params=["memory", "sqlite", "postgresql", "mongodb", "unordered"])
def any_store(request: pytest.FixtureRequest, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    with open_on(BACKENDS[request.param](request), dataclasses.replace(settings, delete_batch=4), clock) as opened:
        make_realm(opened)
        put(make_lake(opened), 1)
        yield opened


@pytest.fixture
def littered(settings: Settings, clock: FakeClock) -> Store:
    """A realm in memory, with ten old rows that nothing points to."""
    opened = open_on(MemoryBackend(), dataclasses.replace(settings, delete_batch=2), clock)
    make_realm(opened)
    put(make_lake(opened), 1)
    litter(rows_of(opened), 10)
    clock.advance(HOUR)
    return opened


def test_worker_collects_on_any_database_and_keeps_a_record(any_store: Store, clock: FakeClock) -> None:
    rows = rows_of(any_store)
    litter(rows, 10)
    clock.advance(HOUR)
    run_collection(any_store, claim_of(any_store))

    [run] = list_runs(any_store, kind="gc")
    assert run.counts["deletedTypes"]["test-sweepings"]["rows"] == run.counts["types"]["test-sweepings"]["garbage"] == 10
    assert dust(rows) == []
    assert not unreadable_heads(any_store.backend, any_store.settings, clock)


def test_splits_swept_side_by_side_delete_as_one(any_store: Store, clock: FakeClock) -> None:
    rows = rows_of(any_store)
    kept = litter(rows, 20)[::2]
    sweeper, result = sweeper_of(rows, kept)
    sweeper.sweep([SweptSplit(split.after, split.until) for split in rows.split_objects(3)], lambda *_: None)

    assert {key.id for key in dust(rows)} == set(kept)
    assert result.deleted_types["test-sweepings"][0] == 10


def sweeper_of(
    rows: RealmStore, kept: list[ObjectId], *, fence: Fence = lambda: None, save: Callable[[object], None] = lambda _: None
) -> tuple[RealmSweep, CollectionResult]:
    """Of a sweep that deletes all dust but this, and nothing else."""
    marks, result = (
        LiveSet(1 << 20),
        CollectionResult(realm="acme", dry_run=False, writer_cutoff=Micros(0), reader_cutoff=Micros(0)),
    )
    for batch in rows.scan_objects():
        for key in batch:
            if key.type != "test-sweepings" or key.id in kept:
                marks.mark(key.id, KeepReason.HEAD)
    now = rows.clock.now()
    pacing, phases = Throttle(rows.settings, rows.clock, fence), PhaseTimer(rows.clock, result.seconds)
    return RealmSweep(rows, lambda: RowClassifier(rows, marks, now), pacing, result, phases, save), result


def test_fault_in_one_split_stops_the_others(littered: Store) -> None:
    rows, first, met = rows_of(littered), threading.Lock(), list[RealmSweep]()

    def fence() -> None:
        if first.acquire(blocking=False):
            raise FencedError("taken over")
        assert met[0].stopped.wait(30)

    sweeper, result = sweeper_of(rows, [], fence=fence)
    met.append(sweeper)
    half = SweptSplit(until=dust(rows)[4].position)
    with pytest.raises(FencedError):
        sweeper.sweep([half, SweptSplit(after=half.until)], lambda *_: None)

    assert result.deleted <= 2  # a batch that was about to be deleted
    assert len(dust(rows)) == 10 - result.deleted


@pytest.mark.parametrize("splits", [1, 2, 5])
def test_scan_is_cut_without_gap_or_overlap(splits: int) -> None:
    landmarks, keys = (
        ScanLandmarks(),
        [ObjectKey(RealmKey(1), ObjectId(n), 0, "x", Micros(0), None, 1, 0) for n in range(100_000)],
    )
    for at in range(0, len(keys), 100):
        landmarks.pass_by(keys[at : at + 100])
    cut = landmarks.cut(splits)

    assert len(cut) == splits
    assert (cut[0].after, cut[-1].until) == (None, None)
    assert all(one.until == other.after for one, other in itertools.pairwise(cut))
    sizes = [b - a for a, b in itertools.pairwise([0, *(s.until[1] for s in cut if s.until), 100_000])]
    assert max(sizes) < 1.3 * 100_000 / splits


def test_small_scan_is_not_cut(littered: Store) -> None:
    landmarks = ScanLandmarks()
    landmarks.pass_by(dust(rows_of(littered)))

    assert landmarks.cut(4) == (SweptSplit(),)


def test_deletions_keep_their_limit(littered: Store, clock: FakeClock) -> None:
    slow = open_on(littered.backend, dataclasses.replace(littered.settings, delete_rows_per_second=2), clock)
    began = clock.monotonic()
    done = collect_realm(slow, "acme")

    assert clock.monotonic() - began == pytest.approx(done.deleted / 2)


def test_scans_keep_their_limit(littered: Store, clock: FakeClock) -> None:
    slow = open_on(littered.backend, dataclasses.replace(littered.settings, scan_rows_per_second=5), clock)
    began = clock.monotonic()
    done = collect_realm(slow, "acme", dry_run=True)

    assert clock.monotonic() - began == pytest.approx(done.scanned / 5)


def test_sweep_that_waits_for_its_pace_looks_at_the_fence(clock: FakeClock) -> None:
    looks: list[float] = []
    RowRate(1, clock).wait_for(10, FenceWatch(lambda: looks.append(clock.monotonic()), clock))

    assert looks == [float(second) for second in range(10)]


def test_object_of_an_unknown_type_stays(littered: Store) -> None:
    rows = rows_of(littered)
    strange = rows.new_id()
    rows.write_objects([(strange, UnknownObject(name="from-tomorrow", body=b"\x80"))])
    littered.clock.sleep(HOUR)
    done = collect_realm(littered, "acme")

    assert done.types["from-tomorrow"] == {"unknown type": 1}
    assert rows.find_object(strange, StoredObject) is not None


def test_row_that_changed_meanwhile_is_not_counted_as_deleted(littered: Store, clock: FakeClock) -> None:
    rows = rows_of(littered)
    first = dust(rows)[0]
    faulty = FaultyBackend(littered.backend)
    faulty.intervene("delete_objects", lambda: rows.write_objects([(first.id, Dust(text="new"))]) and None)
    done = collect_realm(open_on(faulty, littered.settings, clock), "acme")

    assert done.deleted_types["test-sweepings"] == (9, 9 * first.bytes)
    assert (done.garbage - done.deleted, [key.id for key in dust(rows)]) == (1, [first.id])


def test_over_full_filter_deletes_nothing_and_is_sized_right_next(littered: Store, clock: FakeClock) -> None:
    tables = [
        Put(ContentKey.of(f"t{number}"), IcebergTable(metadata_location=f"s3://lake/t{number}")) for number in range(1500)
    ]
    lake(littered).commit("main", tables)
    rows = rows_of(littered)
    tight = open_on(littered.backend, dataclasses.replace(littered.settings, mark_exact_bytes=100), clock)
    with pytest.raises(UnavailableError, match="nothing was deleted"):
        collect_realm(tight, "acme")

    record = read_collection(rows)
    assert record is not None
    assert (len(dust(rows)), record.value.sweeping) == (10, False)
    assert collect_realm(tight, "acme").deleted_types["test-sweepings"][0] > 8  # but for what it errs in


def test_pins_of_a_task_that_has_ended_are_taken_away(littered: Store) -> None:
    rows, claim = rows_of(littered), claim_of(littered)
    pin_commits(rows, claim.id, {read_head(rows): ["catalogs"]})
    collect_realm(littered, "acme")
    assert len(read_pins(rows)) == 1

    claim.finish_task({})
    assert collect_realm(littered, "acme").pins_released == 1
    assert read_pins(rows) == []


def read_head(rows: RealmStore) -> ObjectId:
    pointer = rows.read_reference("catalogs").pointer
    assert pointer is not None
    return pointer


def test_cancelled_sweep_takes_its_flag_away(littered: Store, clock: FakeClock) -> None:
    claim = claim_of(littered)
    assert stopped(
        littered, clock, claim, lambda: TaskQueue(littered).cancel_task(claim.id) and claim.heartbeat() and None
    ) == (
        False,
        None,
    )


def test_sweep_that_was_handed_back_is_gone_on_with(littered: Store, clock: FakeClock) -> None:
    claim = claim_of(littered)
    is_on, sweep = stopped(littered, clock, claim, lambda: claim.request_stop("the worker shuts down"))
    claim.hand_back("the worker shuts down")

    assert (is_on, sweep is not None) == (True, True)
    assert run_collection(littered, claim_of(littered))["resumed"] == 1
    assert dust(rows_of(littered)) == []


def stopped(store: Store, clock: FakeClock, claim: TaskLease, stop: Callable[[], None]) -> tuple[bool, object]:
    """What the record says after a collection that was asked to stop before its second deletion."""
    faulty = FaultyBackend(store.backend)
    faulty.intervene("delete_objects", stop, at=2)
    with pytest.raises(TaskStoppedError):
        run_collection(open_on(faulty, store.settings, clock), claim)
    record = read_collection(rows_of(store))
    assert record is not None
    return record.value.sweeping, record.value.sweep


def test_record_of_a_failed_collection_tells_how_far_it_came(littered: Store, clock: FakeClock) -> None:
    faulty = FaultyBackend(littered.backend)
    faulty.fail("delete_objects", at=3)
    with pytest.raises(UnavailableError):
        run_collection(open_on(faulty, littered.settings, clock), claim_of(littered))

    [run] = list_runs(littered, kind="gc")
    assert (run.counts["deleted"], run.counts["garbage"] > 4, bool(run.error)) == (4, True, True)
