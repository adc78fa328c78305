"""Exports and imports that end before they are done: whoever does them again comes to the same end."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from archived import REALM, SLACK, claim_of, exported, open_on, put, tables

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.backup import ExportOrder, check_archive, export_realm, load_realm
from headwater.backup.realm_load import LOAD_PROGRESS_ID, LoadProgress
from headwater.commits import COLLECTION_ID, CollectionRecord, read_pins
from headwater.errors import FencedError, HeadwaterError, NotFoundError, RefusedError, UnavailableError
from headwater.jobs import EXPORT, LOAD, run_export, run_load
from headwater.jobs.task_runs import list_runs
from headwater.purge.realm_purge import purge_realm
from headwater.realms import RealmRegistry, RealmState
from headwater.store import Backend, id_text
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import TaskLease, TaskNotReadyError, TaskQueue


class Killed(BaseException):
    """Stands for the death of a process: nothing catches it, and only what its end would do happens."""


def die() -> None:
    raise Killed


class SlowBackend(FaultyBackend):
    """A database of which each call takes a second."""

    def __init__(self, backend: Backend, clock: FakeClock) -> None:
        super().__init__(backend)
        self._clock = clock

    def __getattr__(self, name: str) -> object:
        self._clock.advance(1)
        return super().__getattr__(name)


def claim_again(store: Store, claim: TaskLease) -> TaskLease:
    """The next attempt, after this one was handed back."""
    claim.hand_back("the worker stops")
    again = TaskQueue(store).claim_task(claim.id, "another worker")
    assert again is not None
    return again


def dying_imports(archive: Path, settings: Settings, clock: FakeClock) -> Iterator[tuple[MemoryBackend, int]]:
    """An import that dies before its n-th call to the database, for every n."""
    for call in itertools.count(1):
        backend = MemoryBackend()
        faulty = FaultyBackend(backend)
        faulty.intervene("*", die, at=call)
        try:
            load_realm(open_on(faulty, settings, clock), "copy", archive)
        except Killed:
            yield backend, call
            continue
        return


def test_import_that_died_serves_nobody_until_done_again(archive: Path, settings: Settings, clock: FakeClock) -> None:
    died = 0
    for backend, _ in dying_imports(archive, settings, clock):
        store = open_on(backend, settings, clock)
        found = RealmRegistry(store).find_realm("copy")
        is_whole = found is not None and found.state is RealmState.ACTIVE and len(tables(store, "copy")) == 2
        assert found is None or found.state in (RealmState.CREATED, RealmState.LOADING) or is_whole

        load_realm(store, "copy", archive)

        assert tables(store, "copy", "dev") == ["customers", "drafts", "orders"]
        died += 1
    assert died > 20


def test_import_whose_answers_are_lost_comes_to_its_end(archive: Path, settings: Settings, clock: FakeClock) -> None:
    backend = MemoryBackend()
    for call in range(1, 200):
        faulty = FaultyBackend(backend)
        faulty.fail("*", at=call, before=False)
        try:
            load_realm(open_on(faulty, settings, clock), "copy", archive)
        except HeadwaterError:
            continue
        break

    assert tables(open_on(backend, settings, clock), "copy") == ["customers", "orders"]


def test_import_goes_on_behind_the_last_block_that_it_wrote(
    store: Store, settings: Settings, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.backup.archive_format.BLOCK_BYTES", 500)
    archive = exported(store, tmp_path / "many.realm").file
    backend = MemoryBackend()
    faulty = FaultyBackend(backend)
    faulty.intervene("write_objects", die, at=10)
    with pytest.raises(Killed):
        load_realm(open_on(faulty, settings, clock), "copy", archive)

    left = open_on(backend, settings, clock)
    progress = left.rows(RealmRegistry(left).read_realm("copy").id, RealmRegistry(left).read_realm("copy").key).read_versioned(
        LOAD_PROGRESS_ID, LoadProgress
    )
    load_realm(left, "copy", archive)
    assert progress.value.block > 5
    assert tables(left, "copy") == ["customers", "orders"]


def test_import_broken_off_refuses_another_archive(
    store: Store, archive: Path, settings: Settings, clock: FakeClock, tmp_path: Path
) -> None:
    backend = MemoryBackend()
    faulty = FaultyBackend(backend)
    faulty.intervene("create_references", die)
    with pytest.raises(Killed):
        load_realm(open_on(faulty, settings, clock), "copy", archive)
    put(store, "more")
    clock.advance(SLACK)

    other = exported(store, tmp_path / "other.realm").file
    with pytest.raises(RefusedError, match="another archive"):
        load_realm(open_on(backend, settings, clock), "copy", other)


def test_realm_loaded_in_part_can_be_purged_and_imported_anew(archive: Path, settings: Settings, clock: FakeClock) -> None:
    backend = MemoryBackend()
    faulty = FaultyBackend(backend)
    faulty.intervene("create_references", die)
    with pytest.raises(Killed):
        load_realm(open_on(faulty, settings, clock), "copy", archive)

    store = open_on(backend, settings, clock)
    realms = RealmRegistry(store)
    realms.move_realm(realms.read_realm("copy"), RealmState.PURGING)
    purge_realm(store, "copy")
    realms.remove_realm(realms.read_realm("copy"))
    load_realm(store, "copy", archive)
    assert tables(store, "copy") == ["customers", "orders"]


def test_import_leaves_nothing_beside_what_it_brought(target: Store, archive: Path) -> None:
    run_load(target, claim_of(target, LOAD, "copy", file=str(archive)))

    rows = RealmRegistry(target).open_realm("copy")
    assert rows.find_versioned(LOAD_PROGRESS_ID, LoadProgress) is None
    assert sum(len(batch) for batch in rows.scan_objects()) == check_archive(archive).end.objects


def test_import_of_a_dead_worker_is_told_by_the_next(target: Store, archive: Path) -> None:
    claim = claim_of(target, LOAD, "copy", file=str(archive))
    first = run_load(target, claim)
    again = claim_again(target, claim)

    assert run_load(target, again) == first
    assert len(list_runs(target, kind=LOAD)) == 1


def test_import_of_a_task_that_was_taken_over_stops(target: Store, archive: Path) -> None:
    claim = claim_of(target, LOAD, "copy", file=str(archive))
    claim_again(target, claim)

    with pytest.raises(FencedError):
        run_load(target, claim)
    assert RealmRegistry(target).find_realm("copy") is None


def test_export_that_died_is_done_again_and_leaves_no_pin(
    store: Store, settings: Settings, clock: FakeClock, tmp_path: Path
) -> None:
    wanted, died = exported(store, tmp_path / "wanted.realm").end.digest, 0
    for call in itertools.count(1):
        faulty = FaultyBackend(store.backend)
        faulty.intervene("*", die, at=call)
        order = ExportOrder(realm=REALM, file=tmp_path / f"{call}.realm", time=None, task=store.new_id())
        try:
            export_realm(open_on(faulty, settings, clock), order)
        except Killed:
            died += 1
            assert export_realm(store, order).end.digest == wanted
            continue
        break

    assert died > 15
    assert read_pins(RealmRegistry(store).open_realm(REALM)) == []
    assert not list(tmp_path.glob(".*"))


def test_export_takes_away_what_a_killed_one_wrote(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "acme.realm"
    claim = claim_of(store, EXPORT, REALM, file=str(file))
    left = tmp_path / f".acme.realm.{id_text(claim.id)}-1.partial"
    left.write_bytes(b"HWREALM")

    run_export(store, claim_again(store, claim))
    assert (left.exists(), check_archive(file).manifest.realm) == (False, REALM)


def test_export_of_a_dead_worker_is_told_by_the_next(store: Store, tmp_path: Path) -> None:
    claim = claim_of(store, EXPORT, REALM, file=str(tmp_path / "acme.realm"))
    first = run_export(store, claim)

    assert run_export(store, claim_again(store, claim)) == first


def test_slow_work_asks_again_whether_it_goes_on(store: Store, settings: Settings, clock: FakeClock, tmp_path: Path) -> None:
    put(store, *(f"t{number}" for number in range(3000)))
    clock.advance(SLACK)
    patient = dataclasses.replace(settings, reader_grace_seconds=6000.0)
    slow, asked = open_on(SlowBackend(store.backend, clock), patient, clock), list[float]()
    order = ExportOrder(realm=REALM, file=tmp_path / "slow.realm", time=None, task=store.new_id())

    export_realm(slow, order, fence=lambda: asked.append(clock.monotonic()))
    load_realm(slow, "copy", order.file, fence=lambda: asked.append(clock.monotonic()))
    assert max(later - sooner for sooner, later in pairwise(asked)) <= 15


def test_export_of_a_task_taken_over_writes_no_file(store: Store, tmp_path: Path) -> None:
    claim = claim_of(store, EXPORT, REALM, file=str(tmp_path / "acme.realm"))
    claim_again(store, claim)

    with pytest.raises(FencedError):
        run_export(store, claim)
    assert not list(tmp_path.iterdir())


def test_export_whose_moment_is_not_over_is_tried_again(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    claim = claim_of(store, EXPORT, REALM, file=str(tmp_path / "acme.realm"), asOf=clock.now())

    with pytest.raises(UnavailableError, match="by itself"):
        run_export(store, claim)


def test_export_gives_its_worker_back_while_a_collection_sweeps(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    sweeping = RealmRegistry(store).open_realm(REALM).insert_object(COLLECTION_ID, CollectionRecord(sweeping=True))
    claim = claim_of(store, EXPORT, REALM, file=str(tmp_path / "acme.realm"))

    with pytest.raises(TaskNotReadyError, match="is sweeping") as waits:
        run_export(store, claim)
    assert (waits.value.seconds, list_runs(store)) == (10, [])

    RealmRegistry(store).open_realm(REALM).update_object(sweeping, CollectionRecord())
    assert run_export(store, claim)["realm"] == REALM


def test_export_of_a_moment_soon_forgotten_outlasts_a_sweep(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    claim = claim_of(store, EXPORT, REALM, file=str(tmp_path / "acme.realm"), asOf=clock.now())
    clock.advance(1)
    put(store, "late")
    clock.advance(50)
    RealmRegistry(store).open_realm(REALM).insert_object(COLLECTION_ID, CollectionRecord(sweeping=True))

    with pytest.raises(UnavailableError, match="is sweeping"):
        run_export(store, claim)


@pytest.mark.parametrize(("kind", "work"), [(EXPORT, run_export), (LOAD, run_load)])
def test_file_of_another_machine_is_left_to_that_machine(
    store: Store, archive: Path, kind: str, work: Callable[[Store, TaskLease], object]
) -> None:
    claim = claim_of(store, kind, REALM if kind == EXPORT else "copy", file=str(archive), host="elsewhere")

    with pytest.raises(UnavailableError, match="elsewhere"):
        work(store, claim)


def test_export_is_kept_as_a_run_with_its_counts(store: Store, tmp_path: Path) -> None:
    outcome = run_export(store, claim_of(store, EXPORT, REALM, file=str(tmp_path / "acme.realm")))

    assert list_runs(store, kind=EXPORT)[0].counts == outcome


def test_export_of_a_realm_that_was_made_anew_is_refused(store: Store, tmp_path: Path) -> None:
    order = ExportOrder(realm=REALM, file=tmp_path / "acme.realm", time=None, task=store.new_id(), realm_key=7)

    with pytest.raises(RefusedError, match="created anew"):
        export_realm(store, order)


def test_export_of_no_realm_is_told_so(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        exported(store, tmp_path / "none.realm", realm="none")
