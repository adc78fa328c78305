"""When something is not as it must be, nothing is deleted; and what is deleted is counted as it was."""

from __future__ import annotations

import msgspec
import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.catalogs import Catalog
from headwater.clock import Micros
from headwater.errors import CorruptionError, NotFoundError, RefusedError, UnavailableError
from headwater.gc import collect_realm
from headwater.realms import RealmRegistry, RealmState
from headwater.settings import Settings
from headwater.store import ObjectId, ObjectKey, ObjectRow, RealmStore, Store, StoredObject, UnknownObject, id_text, object_type
from headwater.store.backends.memory import MemoryBackend
from lakes import HOUR, lake, make_lake, make_realm, open_on, put, rows_of


@object_type("test-refused-note")
class Note(StoredObject, frozen=True, kw_only=True):
    text: str = ""


def keys_in(rows: RealmStore) -> list[ObjectKey]:
    return [key for batch in rows.scan_objects() for key in batch]


def rewrite(rows: RealmStore, object_id: ObjectId, **changes: object) -> None:
    [row] = rows.store.backend.read_objects(rows.key, [(object_id, 0)])
    assert isinstance(row, ObjectRow)
    rows.store.backend.write_objects([msgspec.structs.replace(row, **changes)])  # type: ignore[arg-type]


def lose(rows: RealmStore, object_id: ObjectId) -> None:
    rows.delete_unchanged([key for key in keys_in(rows) if key.id == object_id])
    rows.store.cache.clear()


def test_collection_deletes_nothing_while_a_reference_dangles(
    store: Store, realm_rows: RealmStore, old_commits: list[ObjectId]
) -> None:
    lose(realm_rows, old_commits[2])
    before = keys_in(realm_rows)

    with pytest.raises(CorruptionError, match="dangles"):
        collect_realm(store, "acme")
    assert keys_in(realm_rows) == before


def test_collection_deletes_nothing_while_a_kept_object_is_missing(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId]
) -> None:
    head = lake.resolve()
    assert head is not None
    lose(realm_rows, next(iter(head.commit.points_to())))
    before = keys_in(realm_rows)

    with pytest.raises(CorruptionError, match=f"referred to by object {id_text(head.id)}, but not there; nothing of the realm"):
        collect_realm(store, "acme")
    assert keys_in(realm_rows) == before


def test_collection_deletes_nothing_beside_a_kept_object_of_unknown_type(
    store: Store, realm_rows: RealmStore, lake: Catalog, old_commits: list[ObjectId]
) -> None:
    head = lake.resolve()
    assert head is not None
    realm_rows.write_objects([(next(iter(head.commit.points_to())), UnknownObject(name="from-tomorrow", body=b"\xc0"))])
    store.cache.clear()
    before = keys_in(realm_rows)

    with pytest.raises(CorruptionError, match="from-tomorrow"):
        collect_realm(store, "acme")
    assert keys_in(realm_rows) == before


def test_collection_deletes_nothing_while_a_row_is_of_the_future(
    store: Store, realm_rows: RealmStore, old_commits: list[ObjectId], clock: FakeClock, settings: Settings
) -> None:
    ahead = Micros(clock.now() + round(settings.clock_bound_seconds * 1_000_000) + 1)
    rewrite(realm_rows, old_commits[0], created=ahead)
    before = keys_in(realm_rows)

    with pytest.raises(RefusedError, match="set the clocks right"):
        collect_realm(store, "acme")
    assert keys_in(realm_rows) == before


def test_row_ahead_within_the_clock_bound_stops_nothing(
    store: Store, realm_rows: RealmStore, old_commits: list[ObjectId], clock: FakeClock, settings: Settings
) -> None:
    rewrite(realm_rows, old_commits[0], created=Micros(clock.now() + round(settings.clock_bound_seconds * 1_000_000)))

    assert collect_realm(store, "acme").deleted


@pytest.mark.parametrize("call", ["scan_objects", "swap_reference"])
def test_writes_during_a_long_collection_are_not_of_the_future(
    store: Store, old_commits: list[ObjectId], clock: FakeClock, call: str
) -> None:
    def work_on() -> None:
        clock.advance(HOUR)
        put(lake(store), 4)

    backend = FaultyBackend(store.backend)
    backend.intervene(call, work_on)

    assert collect_realm(open_on(backend, store.settings, clock), "acme").deleted


def test_collection_deletes_nothing_while_a_commit_is_of_the_future(settings: Settings, clock: FakeClock) -> None:
    backend = MemoryBackend()
    make_realm(open_on(backend, settings, clock))
    old = put(make_lake(open_on(backend, settings, clock)), 1)
    hasty_clock = FakeClock(clock.now() + 3_600_000_000)
    put(lake(open_on(backend, settings, hasty_clock)), 2)
    store = open_on(backend, settings, clock)
    rows = rows_of(store)
    for key in keys_in(rows):
        rewrite(rows, key.id, created=Micros(0))

    with pytest.raises(RefusedError, match=r"commit .* set the clocks right"):
        collect_realm(store, "acme")
    assert old in [key.id for key in keys_in(rows)]


def test_inactive_realm_is_collected(store: Store, old_commits: list[ObjectId]) -> None:
    realms = RealmRegistry(store)
    realms.move_realm(realms.read_realm("acme"), RealmState.INACTIVE)

    assert collect_realm(store, "acme").deleted


def test_realm_on_its_way_in_or_out_is_not_collected(store: Store) -> None:
    RealmRegistry(store).create_realm("acme")

    with pytest.raises(RefusedError, match="CREATED"):
        collect_realm(store, "acme")


def test_collection_of_no_realm_is_refused(store: Store) -> None:
    with pytest.raises(NotFoundError):
        collect_realm(store, "acme")


def test_young_rows_that_nothing_points_to_stay(
    store: Store, realm_rows: RealmStore, old_commits: list[ObjectId], clock: FakeClock, settings: Settings
) -> None:
    note = realm_rows.new_id()
    realm_rows.write_objects([(note, Note(text="of a commit that is under way"))])
    clock.advance(settings.writer_grace_seconds - 1)
    collect_realm(store, "acme")

    assert note in [key.id for key in keys_in(realm_rows)]


def test_old_rows_that_nothing_points_to_go(
    store: Store, realm_rows: RealmStore, old_commits: list[ObjectId], clock: FakeClock, settings: Settings
) -> None:
    note = realm_rows.new_id()
    realm_rows.write_objects([(note, Note(text="x" * 10))])
    clock.advance(settings.writer_grace_seconds + 1)
    collect_realm(store, "acme")

    assert note not in [key.id for key in keys_in(realm_rows)]


def test_deleted_counts_the_rows_that_are_gone(store: Store, realm_rows: RealmStore, old_commits: list[ObjectId]) -> None:
    before = {key.id for key in keys_in(realm_rows)}
    done = collect_realm(store, "acme")

    assert done.deleted == len(before - {key.id for key in keys_in(realm_rows)}) > 0


def test_scanned_row_is_kept_for_a_reason_or_garbage(store: Store, old_commits: list[ObjectId]) -> None:
    done = collect_realm(store, "acme")

    assert done.scanned == sum(done.kept.values()) + done.garbage
    assert sum(sum(reasons.values()) for reasons in done.types.values()) == done.scanned


def test_dry_run_changes_nothing(store: Store, realm_rows: RealmStore, old_commits: list[ObjectId]) -> None:
    rows, references = keys_in(realm_rows), list(realm_rows.scan_references())
    collect_realm(store, "acme", dry_run=True)

    assert (keys_in(realm_rows), list(realm_rows.scan_references())) == (rows, references)


def test_dry_run_tells_what_a_collection_does(store: Store, old_commits: list[ObjectId]) -> None:
    planned, done = collect_realm(store, "acme", dry_run=True), collect_realm(store, "acme")

    assert (planned.garbage, planned.garbage_bytes, planned.kept) == (done.deleted, done.deleted_bytes, done.kept)
    assert planned.deleted == 0


def test_dry_run_leases_no_node(store: Store, old_commits: list[ObjectId]) -> None:
    backend = FaultyBackend(store.backend)
    collect_realm(open_on(backend, store.settings, store.clock), "acme", dry_run=True)

    assert {"write_objects", "insert_object", "update_object", "swap_reference"}.isdisjoint(backend.calls)


def test_row_that_was_rewritten_after_the_scan_stays(
    store: Store, realm_rows: RealmStore, old_commits: list[ObjectId], clock: FakeClock
) -> None:
    backend = FaultyBackend(store.backend)
    backend.intervene("delete_objects", lambda: rewrite(realm_rows, old_commits[0], created=clock.now()))
    done = collect_realm(open_on(backend, store.settings, clock), "acme")

    assert old_commits[0] in [key.id for key in keys_in(realm_rows)]
    assert done.deleted == done.garbage - 1


def test_two_collections_at_once_are_refused(store: Store, old_commits: list[ObjectId], clock: FakeClock) -> None:
    backend = FaultyBackend(store.backend)
    backend.intervene("scan_objects", lambda: collect_realm(store, "acme") and None)

    with pytest.raises(UnavailableError, match="another collection"):
        collect_realm(open_on(backend, store.settings, clock), "acme")


def test_short_graces_are_named_in_every_run(store: Store, old_commits: list[ObjectId]) -> None:
    assert "unsafe_short_graces" in collect_realm(store, "acme").notes[0]
