"""Beyond the memory for exact marks a filter holds the leaves, and what it errs in can keep too much, never too little."""

import dataclasses
from collections.abc import Iterator

import pytest

from backend_fixtures import BACKENDS
from fake_clock import FakeClock
from headwater.catalogs import ContentKey, IcebergTable, Put
from headwater.commits import mark_reachable
from headwater.errors import FencedError
from headwater.gc import collect_realm
from headwater.gc.collector import open_marker
from headwater.gc.live_set import LiveSet
from headwater.gc.mark_phase import LiveMarker
from headwater.gc.retention import KeepReason, open_scope
from headwater.settings import Settings
from headwater.store import ObjectId, Store, is_leaf
from lakes import HOUR, copied, make_lake, make_realm, open_on, put, rows_of, unreadable_heads


@pytest.fixture
def tight(settings: Settings) -> Settings:
    """Room for ten exact marks, and indexes in stripes."""
    return dataclasses.replace(settings, mark_exact_bytes=100, index_embedded_bytes=300, index_stripe_bytes=400)


@pytest.fixture(params=["memory"])
def store(request: pytest.FixtureRequest, tight: Settings, clock: FakeClock) -> Iterator[Store]:
    """A realm that keeps more objects than that, and has garbage."""
    with open_on(BACKENDS[request.param](request), tight, clock) as opened:
        make_realm(opened)
        catalog = make_lake(opened)
        tables = [
            Put(ContentKey.of(f"t{number}"), IcebergTable(metadata_location=f"s3://lake/{number}")) for number in range(15)
        ]
        catalog.commit("main", tables)
        catalog.create_branch("dev")
        for version in range(3):
            put(catalog, version)
            clock.advance(HOUR)
        yield opened


def reached(store: Store) -> set[ObjectId]:
    """What all heads lead to, by a walk of its own."""
    seen: set[ObjectId] = set()
    for row in rows_of(store).scan_references():
        if row.pointer is not None and row.deleted is None:
            mark_reachable(rows_of(store), [row.pointer], lambda new, _: new not in seen and not seen.add(new))  # type: ignore[func-returns-value]
    return seen


def marked(store: Store, marks: LiveSet | None = None) -> LiveMarker:
    marker = open_marker(open_scope(store, "acme"))
    marker.marks = marker.marks if marks is None else marks
    marker.mark(marker.scope.find_references())
    return marker


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgresql", "mongodb"], indirect=True)
def test_realm_beyond_the_memory_for_exact_marks_is_collected(store: Store, tight: Settings, clock: FakeClock) -> None:
    done = collect_realm(store, "acme")

    assert done.deleted
    assert done.kept["filter"]
    assert unreadable_heads(store.backend, tight, clock) == []


def test_filter_deletes_what_exact_marks_would(store: Store, settings: Settings, clock: FakeClock) -> None:
    exact = open_on(copied(store.backend), settings, clock)

    assert collect_realm(store, "acme").garbage == collect_realm(exact, "acme").garbage > 0


def test_everything_that_points_on_is_marked_exactly(store: Store) -> None:
    marker = marked(store)
    types = {key.id: key.type for batch in rows_of(store).scan_objects() for key in batch}

    inner = [object_id for object_id in reached(store) if not is_leaf(types[object_id])]
    assert all(marker.marks.is_exact(object_id) for object_id in inner)
    assert KeepReason.FILTER in marker.marks.reasons_of(sorted(reached(store)))


def test_filter_that_claims_everything_ends_no_descent(store: Store) -> None:
    liar = LiveSet(10)
    for number in range(100_000):
        liar.mark_leaf(ObjectId(number), KeepReason.HEAD)
    assert liar.reason_of(next(iter(reached(store)))) is KeepReason.FILTER
    types = {key.id: key.type for batch in rows_of(store).scan_objects() for key in batch}

    inner = [object_id for object_id in reached(store) if not is_leaf(types[object_id])]
    assert all(marked(store, liar).marks.is_exact(object_id) for object_id in inner)


def test_end_of_a_task_ends_its_marking(store: Store) -> None:
    marker = open_marker(open_scope(store, "acme"))
    looks: list[int] = []

    def look() -> None:
        looks.append(len(looks))
        if len(looks) == 5:
            raise FencedError("another worker has it")

    marker.look = look
    with pytest.raises(FencedError):
        marker.mark(marker.scope.find_references())
