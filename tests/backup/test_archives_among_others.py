"""Exports and imports while others act: between any two calls to the database, or after a long sleep."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from archived import REALM, SLACK, copied, exported, open_lake, open_on, put, tables

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.backup import ExportOrder, export_realm, load_realm
from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, read_head
from headwater.errors import FencedError, HeadwaterError, RefusedError, SwapConflictError
from headwater.gc import collect_realm
from headwater.index import IndexValue
from headwater.jobs import LOAD, run_load
from headwater.purge.realm_purge import purge_realm
from headwater.realms import RealmRegistry, RealmState, bootstrap, hash_credentials, new_credentials
from headwater.store import ObjectId, RealmId, RealmKey, StoredObject, object_type
from headwater.store.backends.memory import MemoryBackend
from headwater.tasks import LeaseWatch, TaskLease, TaskQueue
from stored_groups import write_group


@object_type("archived-load")
class Load(StoredObject, frozen=True, kw_only=True):
    """A leaf of any size."""

    raw: bytes


def disturb(store: Store) -> None:
    """Change everything that an export looks at."""
    lake = open_lake(store)
    put(store, f"late-{store.new_id()}")
    lake.delete_branch("dev")
    store.clock.sleep(0.001)
    lake.create_branch("dev")
    lake.create_branch(f"b{store.new_id()}")
    collect_realm(store, REALM)


@pytest.mark.long
def test_export_shows_its_moment_whatever_others_do(store: Store, settings: Settings, clock: FakeClock, tmp_path: Path) -> None:
    moment, acted = clock.now(), list[int]()
    clock.advance(SLACK)
    wanted = exported(store, tmp_path / "wanted.realm", time=moment)
    for call in itertools.count(1):
        backend, now = copied(store.backend), FakeClock(clock.now())
        other, faulty = open_on(backend, settings, now), FaultyBackend(backend)
        task = TaskQueue(other).submit_task("export", realm=REALM).id
        faulty.intervene("*", lambda: _run(lambda: (disturb(other), acted.append(call))), at=call)  # noqa: B023 - called in this round
        order = ExportOrder(realm=REALM, file=tmp_path / f"{call}.realm", time=wanted.manifest.as_of, task=task)

        assert export_realm(open_on(faulty, settings, now), order).end.digest == wanted.end.digest
        if call not in acted:
            break

    assert len(acted) > 20


def test_moment_within_a_group_is_told_by_its_inner_member(
    store: Store, target: Store, clock: FakeClock, tmp_path: Path
) -> None:
    rows = RealmRegistry(store).open_realm(REALM)
    time = clock.now()
    write_group(
        rows, [{b"a": IndexValue(None, b"1")}, {b"b": IndexValue(None, b"2")}, {b"c": IndexValue(None, b"3")}], reference="root"
    )
    clock.advance(SLACK)

    load_realm(target, "copy", exported(store, tmp_path / "group.realm", time=Micros(time + 2)).file)
    found = read_head(RealmRegistry(target).open_realm("copy"), "root")
    assert found is not None
    assert [key for key, _ in found.index("things").range()] == [b"a", b"b"]


def test_object_of_several_rows_comes_back(store: Store, target: Store, clock: FakeClock, tmp_path: Path) -> None:
    raw = bytes(range(256)) * 4096

    def change(tx: Transaction) -> None:
        tx.index("things").put(b"large", IndexValue(tx.add_object(Load(raw=raw + str(tx.new_id()).encode()))))

    Load.compressed = False
    commit_change(RealmRegistry(store).open_realm(REALM), "root", change)
    clock.advance(SLACK)

    load_realm(target, "copy", exported(store, tmp_path / "large.realm").file)
    rows = RealmRegistry(target).open_realm("copy")
    found = read_head(rows, "root")
    assert found is not None
    value = found.index("things").get(b"large")
    assert rows.read_object(value.object_id or ObjectId(1) if value else ObjectId(1), Load).raw.startswith(raw)


def test_realm_that_is_being_loaded_is_neither_bootstrapped_nor_collected(
    archive: Path, settings: Settings, clock: FakeClock
) -> None:
    backend = MemoryBackend()
    faulty = FaultyBackend(backend)
    refused: list[str] = []
    store = open_on(faulty, settings, clock)
    other = open_on(backend, settings, clock)

    def interfere() -> None:
        for act in (
            lambda: bootstrap(RealmRegistry(other), "copy", hash_credentials(new_credentials())),
            lambda: collect_realm(other, "copy"),
        ):
            try:
                act()
            except HeadwaterError as fault:
                refused.append(str(fault))

    faulty.intervene("scan_references", lambda: _run(interfere))
    load_realm(store, "copy", archive)
    assert ["LOADING" in text for text in refused] == [True, True]


def test_realm_purged_while_it_is_loaded_gets_nothing_more(archive: Path, settings: Settings, clock: FakeClock) -> None:
    backend = MemoryBackend()
    faulty = FaultyBackend(backend)
    store = open_on(faulty, settings, clock)
    realms = RealmRegistry(open_on(backend, settings, clock))
    faulty.intervene(
        "create_references", lambda: _run(lambda: realms.move_realm(realms.read_realm("copy"), RealmState.PURGING)), at=1
    )

    with pytest.raises(HeadwaterError):
        load_realm(store, "copy", archive)
    assert realms.read_realm("copy").state is RealmState.PURGING


def test_realm_made_anew_while_loaded_is_left_alone(target: Store, archive: Path) -> None:
    realms = RealmRegistry(target)

    def make_anew(done: int, total: int | None = None, unit: str = "") -> None:
        if (done, unit) == (total, "objects read back"):
            realms.move_realm(realms.read_realm("copy"), RealmState.PURGING)
            purge_realm(target, "copy")
            realms.remove_realm(realms.read_realm("copy"))
            realms.move_realm(realms.create_realm("copy"), RealmState.INITIALIZING)

    with pytest.raises(SwapConflictError, match="created anew"):
        load_realm(target, "copy", archive, progress=make_anew)
    assert realms.read_realm("copy").state is RealmState.INITIALIZING


def test_name_taken_but_not_seen_is_left_alone(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "acme.realm"
    file.symlink_to(tmp_path / "unmounted" / "acme.realm")

    with pytest.raises(RefusedError, match="nothing is overwritten"):
        exported(store, file)
    assert file.is_symlink()
    assert not list(tmp_path.glob(".*"))


def test_import_that_slept_brings_back_no_deleted_branch(archive: Path, settings: Settings, clock: FakeClock) -> None:
    backend, awake = MemoryBackend(), list[Store]()
    faulty = FaultyBackend(backend)
    sleeper = open_on(faulty, settings, clock)
    store = open_on(backend, settings, clock)
    tasks = TaskQueue(store)
    task_id = tasks.submit_task(LOAD, realm="copy", arguments={"file": str(archive)}).id
    claim = TaskQueue(sleeper).claim_task(task_id, "sleeper")
    assert claim is not None

    def take_over() -> None:
        claim_of_other = _taken_over(store, task_id)
        run_load(store, claim_of_other)
        open_lake(store, "copy").delete_branch("dev")
        clock.advance(3600)
        collect_realm(store, "copy")
        awake.append(store)

    faulty.intervene("create_references", lambda: _run(take_over), at=1)
    with pytest.raises(FencedError):
        run_load(sleeper, claim)
    assert awake
    assert [key.name for key in RealmRegistry(store).open_realm("copy").scan_references() if key.name.endswith("/dev")] == []


def test_import_takes_over_references_of_an_earlier_attempt(archive: Path, settings: Settings, clock: FakeClock) -> None:
    backend = MemoryBackend()
    faulty = FaultyBackend(backend)
    faulty.fail("create_references", before=False)
    with pytest.raises(HeadwaterError):
        load_realm(open_on(faulty, settings, clock), "copy", archive)

    store = open_on(backend, settings, clock)
    before = {key.name: key.version for key in store.rows(*_named(store)).scan_references()}
    load_realm(store, "copy", archive)
    after = {key.name: key.version for key in store.rows(*_named(store)).scan_references()}
    assert all(after[name] > version for name, version in before.items())
    assert tables(store, "copy") == ["customers", "orders"]


def test_reference_changed_while_loaded_stops_the_import(archive: Path, settings: Settings, clock: FakeClock) -> None:
    backend = MemoryBackend()
    faulty = FaultyBackend(backend)
    faulty.fail("create_references", before=False)
    with pytest.raises(HeadwaterError):
        load_realm(open_on(faulty, settings, clock), "copy", archive)
    store = open_on(backend, settings, clock)
    rows = store.rows(*_named(store))
    rows.delete_reference(rows.read_reference("grants"))

    with pytest.raises(SwapConflictError, match="grants"):
        load_realm(store, "copy", archive)


def test_export_of_a_realm_that_is_purged_meanwhile_says_so(store: Store, tmp_path: Path) -> None:
    realms = RealmRegistry(store)
    realms.update_realm(realms.read_realm(REALM), deletion_protection=False, purge_hold_seconds=0.0)

    def purge_all(done: int, total: int | None, unit: str) -> None:
        if done == 1:
            realms.move_realm(realms.move_realm(realms.read_realm(REALM), RealmState.INACTIVE), RealmState.PURGING)
            realms.open_realm_for(REALM, RealmState.PURGING).delete_rows(10_000)

    order = ExportOrder(realm=REALM, file=tmp_path / "gone.realm", time=None, task=store.new_id())
    with pytest.raises(RefusedError, match="PURGING"):
        export_realm(store, order, progress=purge_all)
    assert not list(tmp_path.iterdir())


def _taken_over(store: Store, task_id: ObjectId) -> TaskLease:
    """The claim of a worker that has seen the other one stand still for its lease."""
    watch = LeaseWatch(store.clock, store.settings.task_lease_seconds)
    TaskQueue(store).claim_task(task_id, "other", watch)
    store.clock.sleep(store.settings.task_lease_seconds + 1)
    claim = TaskQueue(store).claim_task(task_id, "other", watch)
    assert claim is not None
    return claim


def _named(store: Store) -> tuple[RealmId, RealmKey]:
    realm = RealmRegistry(store).read_realm("copy")
    return realm.id, realm.key


def _run(act: Callable[[], object]) -> None:
    """On a thread of its own, as another process would: the caller may be inside a commit."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join(60)


@pytest.mark.long
@pytest.mark.parametrize("to", [RealmState.INACTIVE, RealmState.PURGING, None])
def test_load_ends_whatever_becomes_of_another_realm(
    archive: Path, settings: Settings, clock: FakeClock, to: RealmState | None
) -> None:
    """None: the other one is purged and deleted."""
    for call in itertools.count(1):
        store = open_on(MemoryBackend(), settings, clock)
        realms = RealmRegistry(store)
        realms.create_realm("other")
        bootstrap(realms, "other", hash_credentials(new_credentials()))
        if to is not RealmState.INACTIVE:
            realms.move_realm(realms.read_realm("other"), RealmState.INACTIVE)
            clock.advance(settings.purge_hold_seconds + 1)
        fences = itertools.count(1)

        def fence(fences: Iterator[int] = fences, call: int = call, realms: RealmRegistry = realms) -> None:
            if next(fences) == call:
                _let_go(realms, "other", to)

        loaded = load_realm(store, "copy", archive, fence=fence)

        assert loaded.realm.state is RealmState.ACTIVE, call
        if next(fences) <= call:
            break
    assert call > 3


def _let_go(realms: RealmRegistry, name: str, to: RealmState | None) -> None:
    realms.move_realm(realms.read_realm(name), to or RealmState.PURGING)
    if to is None:
        purge_realm(realms.store, name)
        realms.remove_realm(realms.read_realm(name))
