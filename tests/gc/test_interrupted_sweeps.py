"""A sweep that ends before its end is gone on with: by the same marks and cut-offs, from where its splits stood."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import COLLECTION_ID, CollectionRecord, MarkChunk, read_collection
from headwater.errors import CorruptionError, HeadwaterError, UnavailableError
from headwater.gc import CollectionResult, collect_realm
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore, Store, StoredObject, object_type
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, copied, lake, make_lake, make_realm, open_on, put, rows_of, unreadable_heads

GARBAGE = 70


class Killed(BaseException):
    """The process is gone."""


@object_type("test-swept")
class Litter(StoredObject, frozen=True, kw_only=True):
    text: str = ""


@pytest.fixture
def small(settings: Settings) -> Settings:
    """Batches of one row, so that where a sweep stands is saved often."""
    return dataclasses.replace(settings, delete_batch=1)


@pytest.fixture
def backend(small: Settings, clock: FakeClock) -> MemoryBackend:
    """A lake with some history, and much that nothing points to."""
    made = MemoryBackend()
    store = open_on(made, small, clock)
    make_realm(store)
    catalog = make_lake(store)
    for version in (1, 2, 3):
        put(catalog, version)
        clock.advance(HOUR)
    litter(rows_of(store), GARBAGE)
    clock.advance(HOUR)
    return made


def litter(rows: RealmStore, count: int) -> list[ObjectId]:
    ids = rows.new_ids(count)
    rows.write_objects((object_id, Litter(text="x")) for object_id in ids)
    return ids


def left(store: Store) -> int:
    return sum(key.type == "test-swept" for batch in rows_of(store).scan_objects() for key in batch)


def interrupted(backend: MemoryBackend, small: Settings, clock: FakeClock, *, at: int) -> CollectionRecord:
    """The record that a run left which was killed at its nth deletion."""
    faulty = FaultyBackend(backend)
    faulty.fail("delete_objects", at=at, fault=Killed())  # type: ignore[arg-type]  # raised as it is
    with pytest.raises(Killed):
        collect_realm(open_on(faulty, small, clock), "acme", owner="first")
    record = read_collection(rows_of(open_on(backend, small, clock)))
    assert record is not None
    return record.value


def go_on(backend: MemoryBackend, small: Settings, clock: FakeClock) -> CollectionResult:
    clock.advance(HOUR)
    return collect_realm(open_on(backend, small, clock), "acme", owner="second")


def test_next_run_goes_on_by_the_same_cut_offs(backend: MemoryBackend, small: Settings, clock: FakeClock) -> None:
    record = interrupted(backend, small, clock, at=5)
    done = go_on(backend, small, clock)

    assert (done.writer_cutoff, done.reader_cutoff) == (record.writer_cutoff, record.reader_cutoff)
    assert any("gone on with" in note and "first" in note for note in done.notes)
    assert done.resumed == 1


def test_next_run_marks_nothing(backend: MemoryBackend, small: Settings, clock: FakeClock) -> None:
    interrupted(backend, small, clock, at=5)
    store = open_on(backend, small, clock)
    head = lake(store).resolve()
    assert head is not None
    needed = next(iter(head.commit.points_to()))
    store.backend.delete_objects([key for batch in rows_of(store).scan_objects() for key in batch if key.id == needed])

    assert go_on(backend, small, clock).resumed == 1
    with pytest.raises(CorruptionError):  # a run that marks finds it missing
        go_on(backend, small, clock)


def test_sweep_looks_at_nothing_again_before_its_splits(backend: MemoryBackend, small: Settings, clock: FakeClock) -> None:
    store = open_on(backend, small, clock)
    first = next(key for batch in rows_of(store).scan_objects() for key in batch if key.type == "test-swept")
    [row] = backend.read_objects(first.realm, [(first.id, 0)])
    assert row is not None
    interrupted(backend, small, clock, at=45)
    backend.insert_object(row)  # as nobody does: behind where the sweep stands
    go_on(backend, small, clock)

    assert left(store) == 1


def test_deletions_of_all_attempts_are_counted_together(backend: MemoryBackend, small: Settings, clock: FakeClock) -> None:
    whole = collect_realm(open_on(copied(backend), small, FakeClock(clock.now())), "acme")
    record = interrupted(backend, small, clock, at=41)
    done = go_on(backend, small, clock)

    assert record.sweep is not None
    assert record.sweep.counts["deleted"] == 40
    assert (done.deleted, done.deleted_types, done.scanned) == (whole.deleted, whole.deleted_types, whole.scanned)


def test_garbage_made_meanwhile_waits_for_the_run_after(backend: MemoryBackend, small: Settings, clock: FakeClock) -> None:
    interrupted(backend, small, clock, at=5)
    litter(rows_of(open_on(backend, small, clock)), 3)
    go_on(backend, small, clock)
    assert left(open_on(backend, small, clock)) == 3

    go_on(backend, small, clock)
    assert left(open_on(backend, small, clock)) == 0


def test_sweep_that_dies_anywhere_is_ended_by_the_next(backend: MemoryBackend, small: Settings, clock: FakeClock) -> None:
    few = dataclasses.replace(small, delete_batch=7)
    interrupted(backend, few, clock, at=2)
    for call in itertools.count(1):
        again, now = copied(backend), FakeClock(clock.now())
        faulty = FaultyBackend(again)
        faulty.fail("*", at=call, fault=Killed())  # type: ignore[arg-type]
        try:
            collect_realm(open_on(faulty, few, now), "acme")
        except Killed:
            go_on(again, few, now)
            assert left(open_on(again, few, now)) == 0
            assert unreadable_heads(again, few, now) == []
            continue
        break
    assert call > 20


def test_marks_that_cannot_be_read_are_made_anew(backend: MemoryBackend, small: Settings, clock: FakeClock) -> None:
    record = interrupted(backend, small, clock, at=5)
    assert record.sweep is not None
    rows = rows_of(open_on(backend, small, clock))
    rows.write_objects([(record.sweep.marks[0], MarkChunk(data=b"nonsense"))])
    done = go_on(backend, small, clock)

    assert any("cannot be gone on with" in note and "marked anew" in note for note in done.notes)
    assert (left(open_on(backend, small, clock)), done.resumed) == (0, 0)


def test_marks_of_a_sweep_that_is_over_are_garbage(backend: MemoryBackend, small: Settings, clock: FakeClock) -> None:
    interrupted(backend, small, clock, at=5)
    go_on(backend, small, clock)
    done = go_on(backend, small, clock)

    assert done.deleted_types["marks"][0] >= 1


def test_sweep_that_was_overtaken_stops(backend: MemoryBackend, small: Settings, clock: FakeClock) -> None:
    faulty = FaultyBackend(backend)
    faulty.intervene(
        "delete_objects", lambda: collect_realm(open_on(backend, small, clock), "acme", owner="second") and None, at=30
    )

    with pytest.raises(UnavailableError, match="second"):
        collect_realm(open_on(faulty, small, clock), "acme", owner="first")
    record = read_collection(rows_of(open_on(backend, small, clock)))
    assert record is not None
    assert (record.value.sweeping, record.value.sweep) == (False, None)


def test_sweep_that_fails_is_left_to_the_next_attempt(backend: MemoryBackend, small: Settings, clock: FakeClock) -> None:
    faulty = FaultyBackend(backend)
    faulty.fail("delete_objects", at=10)
    with pytest.raises(HeadwaterError, match="injected"):
        collect_realm(open_on(faulty, small, clock), "acme")

    assert go_on(backend, small, clock).resumed == 1


def test_record_of_an_earlier_release_is_continued_by_marking(
    backend: MemoryBackend, small: Settings, clock: FakeClock
) -> None:
    rows = rows_of(open_on(backend, small, clock))
    rows.insert_object(COLLECTION_ID, CollectionRecord(sweeping=True, owner="someone"))
    done = go_on(backend, small, clock)

    assert any("someone" in note and "marked anew" in note for note in done.notes)
    assert done.deleted >= GARBAGE
