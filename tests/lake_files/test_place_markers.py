"""Markers in places: what a crash may leave, and what tells of another store."""

from __future__ import annotations

from pathlib import Path

import pytest
from searched_lake import SearchedLake

from fake_clock import FakeClock
from headwater import Settings
from headwater.errors import ConflictError, UnavailableError
from headwater.gc import collect_realm
from headwater.iceberg.table_storage import TableStorage
from headwater.lake_files.file_kinds import is_marker
from headwater.lake_files.file_reasons import FileReason, PlaceReason
from headwater.lake_files.place_markers import (
    MarkerState,
    PlaceMarkers,
    RunRecord,
    accept_markers,
    read_run,
    write_run,
)
from headwater.store.store_identity import read_identity
from lakes import REALM, copied, open_on, rows_of

CATALOG = "0123456789abcdef"


class BreakingStorage(TableStorage):
    """A storage that dies with a call, before or after it took effect."""

    def __init__(self, *, at: str, is_after: bool) -> None:
        super().__init__()
        self._at, self._is_after = at, is_after

    def write_new(self, location: str, data: bytes) -> None:
        self._do("write", lambda: super(BreakingStorage, self).write_new(location, data))

    def delete(self, location: str) -> None:
        self._do("delete", lambda: super(BreakingStorage, self).delete(location))

    def _do(self, what: str, act: object) -> None:
        if what != self._at or self._is_after:
            act()  # type: ignore[operator]
        if what == self._at:
            raise UnavailableError("died")


@pytest.fixture
def place(lake: SearchedLake) -> str:
    lake.write("orders/data/x.parquet")
    return lake.location("orders")


def there(place: str) -> list[str]:
    return sorted(path.name for path in Path(place.removeprefix("file://")).iterdir() if is_marker(path.name))


def advance(lake: SearchedLake, place: str, run: int, storage: TableStorage | None = None) -> None:
    markers = PlaceMarkers(lake.rows, CATALOG, storage or TableStorage())
    markers.advance({place: there(place)}, run, fence=lambda: None)


def judged(lake: SearchedLake, place: str) -> MarkerState:
    return PlaceMarkers(lake.rows, CATALOG, TableStorage()).judge(place, there(place))[0]


def test_place_has_one_marker_after_each_run(lake: SearchedLake, place: str) -> None:
    for run in (1, 2, 3):
        advance(lake, place, run)

        [name] = there(place)
        assert name.startswith(f"_headwater-place-{run:06d}-")
        assert judged(lake, place) is MarkerState.SOUND


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("earlier_runs", [0, 1])
def test_run_that_died_while_it_wrote_is_accepted(lake: SearchedLake, place: str, earlier_runs: int, is_after: bool) -> None:
    for run in range(earlier_runs):
        advance(lake, place, run + 1)
    with pytest.raises(UnavailableError):
        advance(lake, place, 7, BreakingStorage(at="write", is_after=is_after))

    assert judged(lake, place) is MarkerState.SOUND
    advance(lake, place, 8)
    assert (judged(lake, place), len(there(place))) == (MarkerState.SOUND, 1)


def test_marker_that_could_not_be_deleted_is_accepted(lake: SearchedLake, place: str) -> None:
    advance(lake, place, 1)
    for run in (2, 3):
        advance(lake, place, run, BreakingStorage(at="delete", is_after=False))
        assert judged(lake, place) is MarkerState.SOUND

    assert len(there(place)) == 3
    advance(lake, place, 4)
    assert len(there(place)) == 1


def test_marker_that_this_store_does_not_know_is_foreign(lake: SearchedLake, place: str) -> None:
    lake.write("orders/_headwater-place-000001-0123456789abcdef.json")

    assert judged(lake, place) is MarkerState.FOREIGN


def test_deleted_marker_is_missing_and_written_anew(lake: SearchedLake, place: str) -> None:
    advance(lake, place, 1)
    (Path(place.removeprefix("file://")) / there(place)[0]).unlink()

    assert judged(lake, place) is MarkerState.MISSING
    advance(lake, place, 2)
    assert judged(lake, place) is MarkerState.SOUND


def test_older_marker_alone_is_foreign(lake: SearchedLake, place: str) -> None:
    advance(lake, place, 1)
    [old] = there(place)
    text = (lake.folder / "orders" / old).read_text()
    advance(lake, place, 2)
    (lake.folder / "orders" / there(place)[0]).unlink()
    (lake.folder / "orders" / old).write_text(text)

    assert judged(lake, place) is MarkerState.FOREIGN


def test_accepted_markers_are_replaced_by_the_next_run(lake: SearchedLake, place: str) -> None:
    lake.write("orders/_headwater-place-000001-0123456789abcdef.json")

    assert accept_markers(lake.rows, CATALOG, {place: there(place)}) == 1
    assert judged(lake, place) is MarkerState.SOUND
    advance(lake, place, 2)
    assert (judged(lake, place), len(there(place))) == (MarkerState.SOUND, 1)


def test_run_is_recorded_once(lake: SearchedLake) -> None:
    seen = read_run(lake.rows, CATALOG)
    write_run(lake.rows, CATALOG, seen, RunRecord(number=1), fence=lambda: None)

    assert read_run(lake.rows, CATALOG).number == 1
    with pytest.raises(ConflictError, match="run it again"):
        write_run(lake.rows, CATALOG, seen, RunRecord(number=1), fence=lambda: None)


def test_store_has_one_identity(lake: SearchedLake) -> None:
    assert read_identity(lake.store) == read_identity(lake.store)


@pytest.fixture
def held(lake: SearchedLake) -> SearchedLake:
    """A lake with a candidate: it was live once, and its rows are gone."""
    lake.put_table("orders", lake.write("orders/data/a.parquet"))
    return lake


def forget_all(lake: SearchedLake) -> None:
    """Let the table name nothing, and take what named something away, as a collection does."""
    lake.put_table("orders")
    lake.store.clock.advance(4 * 3600.0)  # type: ignore[attr-defined]
    collect_realm(lake.store, REALM)
    lake.store.cache.clear()


def second_process(lake: SearchedLake, settings: Settings, clock: FakeClock) -> SearchedLake:
    """The same lake seen from a copy of the database."""
    store = open_on(copied(lake.store.backend), settings, clock)
    other = object.__new__(SearchedLake)
    other.__dict__ |= lake.__dict__ | {"store": store, "rows": rows_of(store), "guests": set(), "readings": []}
    return other


@pytest.mark.parametrize("is_copy_first", [False, True])
def test_copies_of_a_database_both_yield_nothing(
    held: SearchedLake, settings: Settings, clock: FakeClock, is_copy_first: bool
) -> None:
    with held.search():
        pass
    forget_all(held)
    assert held.dead()["orders/data/a.parquet"] is FileReason.IN_GRACE
    copy = second_process(held, settings, clock)
    first, second = (copy, held) if is_copy_first else (held, copy)

    assert first.dead()["orders/data/a.parquet"] is FileReason.IN_GRACE
    assert second.blocked() == {"orders": PlaceReason.MARKER_DIFFERS}
    assert first.blocked() == {"orders": PlaceReason.MARKER_DIFFERS}
    assert first.dead() == second.dead() == {}


def test_database_that_was_rolled_back_yields_nothing(held: SearchedLake, settings: Settings, clock: FakeClock) -> None:
    with held.search():
        pass
    forget_all(held)
    earlier = second_process(held, settings, clock)
    held.dead()
    held.dead()

    assert earlier.blocked() == {"orders": PlaceReason.MARKER_DIFFERS}


def test_marker_in_a_folder_of_others_is_foreign(lake: SearchedLake) -> None:
    lake.put_table("orders", lake.write("pool/t/data/a.parquet"))
    prefixes = [lake.location("pool")]
    lake.dead(prefixes=prefixes)
    forget_all(lake)
    lake.write("pool/t/_headwater-place-000001-0123456789abcdef.json")

    assert lake.blocked(prefixes=prefixes) == {"pool": PlaceReason.MARKER_DIFFERS}
    assert len(there(lake.location("pool/t"))) == 2
