"""An export of now: of a new or quiet realm at once, and never a state that was at no moment, however others write meanwhile."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import pytest
from archived import REALM, SLACK, copied, exported, open_lake, open_on, put, tables

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store, open_store
from headwater.backup import (
    ExportOrder,
    ExportResult,
    check_exportable,
    export_realm,
    find_present,
    load_realm,
    newest_readable,
    realm_snapshot,
)
from headwater.backup.archive_format import check_archive
from headwater.catalogs import Catalogs
from headwater.clock import Micros
from headwater.errors import UnavailableError
from headwater.realms import RealmRegistry, bootstrap, hash_credentials, new_credentials
from headwater.store import RealmStore


@pytest.fixture
def by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reference is read in a trip of its own, so that others write between any two."""
    monkeypatch.setattr(realm_snapshot, "_NAMES", 1)


def rows_of(store: Store) -> RealmStore:
    return RealmRegistry(store).open_realm(REALM).without_cache()


def disturbed(store: Store, settings: Settings, clock: FakeClock) -> tuple[Store, FaultyBackend, Store]:
    """A copy of the store, once through a backend that others can act between the calls of, and once as these others use it."""
    backend, now = copied(store.backend), FakeClock(clock.now())
    faulty = FaultyBackend(backend)
    return open_on(faulty, settings, now), faulty, open_on(backend, settings, now)


def test_realm_made_just_now_is_exported_with_all_that_it_has(
    store: Store, target: Store, clock: FakeClock, tmp_path: Path
) -> None:
    realms = RealmRegistry(store)
    realms.create_realm("fresh")
    bootstrap(realms, "fresh", hash_credentials(new_credentials()))
    check_exportable(store, "fresh", None)
    clock.advance(0.001)

    load_realm(target, "copy", exported(store, tmp_path / "fresh.realm", realm="fresh").file)

    assert RealmRegistry(target).read_realm("copy").state == "ACTIVE"


def test_table_put_just_now_is_in_the_archive(store: Store, target: Store, clock: FakeClock, tmp_path: Path) -> None:
    put(store, "late")
    clock.advance(0.001)

    done = exported(store, tmp_path / "now.realm")
    load_realm(target, "copy", done.file)

    assert done.manifest.as_of == clock.now() - 1000  # that of the commit
    assert tables(target, "copy") == ["customers", "late", "orders"]


def test_two_branches_are_shown_as_they_were_together(store: Store, settings: Settings, clock: FakeClock, by_one: None) -> None:
    """The writer changes ``dev`` before ``main``: who reads ``dev``, and ``main`` after both changes, has seen what never was."""
    before = find_present(rows_of(store))
    assert before is not None
    dev, main = (next(name for name in before.pointers if name.endswith(f"/{branch}")) for branch in ("dev", "main"))
    told = set()
    for call in itertools.count(1):
        reader, faulty, writer = disturbed(store, settings, clock)
        acted = []

        def write(writer: Store = writer, acted: list[int] = acted) -> None:
            put(writer, "both", branch="dev")
            put(writer, "both")
            acted.append(1)

        faulty.intervene("read_references", write, at=call)
        found = find_present(rows_of(reader))
        assert found is not None
        is_new = tuple(found.pointers[name] != before.pointers[name] for name in (dev, main))
        assert is_new in ((False, False), (True, True))
        told.add(is_new)
        if not acted:
            break

    assert call > 10
    assert told == {(False, False), (True, True)}


def test_moment_of_an_archive_has_no_commit_that_was_under_way(
    store: Store, settings: Settings, clock: FakeClock, tmp_path: Path
) -> None:
    """A commit has the time at which it began. An export looks before it takes effect, and later the realm is read as of its moment."""
    put(store, "early")
    writer, faulty, other = disturbed(store, settings, clock)
    passing, done = writer.clock, list[Micros]()

    def export() -> None:
        assert isinstance(passing, FakeClock)
        passing.advance(1)
        done.append(exported(other, tmp_path / "now.realm").manifest.as_of)
        passing.advance(1)

    faulty.intervene("swap_reference", export)
    put(writer, "late")
    passing.sleep(SLACK)
    [moment] = done
    then = exported(other, tmp_path / "then.realm", time=moment)

    assert check_archive(tmp_path / "now.realm").pointers == check_archive(then.file).pointers
    assert "late" in tables(other, REALM)


@pytest.mark.parametrize("change", ["a new branch", "a deleted branch", "a branch made anew", "a new catalog"])
def test_references_that_come_and_go_are_there_or_not(
    store: Store, settings: Settings, clock: FakeClock, by_one: None, change: str, tmp_path: Path
) -> None:
    """Whatever comes between two reads: the archive is that of the realm before the change, or of the realm after it."""

    def act(writer: Store) -> None:
        lake = open_lake(writer)
        if change == "a new branch":
            lake.create_branch("b1")
        elif change == "a new catalog":
            Catalogs(RealmRegistry(writer).open_realm(REALM)).create_catalog("pond", base_location="s3://pond/")
        else:
            lake.delete_branch("dev")
            if change == "a branch made anew":
                lake.create_branch("dev")

    settled = find_present(rows_of(store))
    assert settled is not None
    for call in itertools.count(1):
        reader, faulty, writer = disturbed(store, settings, clock)
        acted = []
        faulty.intervene("read_references", lambda: (act(writer), acted.append(1)), at=call)  # type: ignore[func-returns-value, arg-type] # noqa: B023 - called in this round
        found = find_present(rows_of(reader))
        after = find_present(rows_of(writer))
        assert found is not None and after is not None
        assert found.pointers in (settled.pointers, after.pointers)
        if not acted:
            break


def busy(faulty: FaultyBackend, writer: Store) -> None:
    """Have somebody commit before each of many reads of references, in a thread of its own, as another process would."""

    def write() -> None:
        thread = threading.Thread(target=lambda: put(writer, f"t{writer.new_id()}"))
        thread.start()
        thread.join()

    for read in range(1, 60):
        faulty.intervene("read_references", write, at=read)


def test_busy_realm_is_shown_as_it_was_earlier(store: Store, settings: Settings, clock: FakeClock, tmp_path: Path) -> None:
    reader, faulty, writer = disturbed(store, settings, clock)
    busy(faulty, writer)

    done = export_realm(reader, ExportOrder(realm=REALM, file=tmp_path / "busy.realm", time=None, task=store.new_id()))

    assert done.manifest.as_of == newest_readable(clock.now(), settings)


def test_young_and_busy_realm_is_refused(store: Store, settings: Settings, clock: FakeClock) -> None:
    clock.advance(-SLACK)
    reader, faulty, writer = disturbed(store, settings, clock)
    busy(faulty, writer)

    with pytest.raises(UnavailableError, match=r"realm 'acme' was changed during each of 5 looks.*can be exported from 2026"):
        check_exportable(reader, REALM, None)


def test_clock_behind_the_archive_writes_nothing(
    store: Store, target: Store, settings: Settings, clock: FakeClock, tmp_path: Path
) -> None:
    """It could give an id that an object of the archive has, and its object would be taken for that one."""
    put(store, "late")
    clock.advance(0.001)
    load_realm(target, "copy", exported(store, tmp_path / "now.realm").file)
    behind = FakeClock(Micros(clock.now() - 2_000_000))
    with open_store(target.url, settings=settings, clock=behind) as other:
        with pytest.raises(UnavailableError, match="realm 'copy' was loaded from an archive with ids made until 2026"):
            put(other, "early", realm="copy")
        behind.advance(3)

        assert put(other, "early", realm="copy") is not None


def test_commit_under_way_on_another_branch_is_in_the_moment_that_was_waited_for(
    store: Store, target: Store, settings: Settings, clock: FakeClock, tmp_path: Path
) -> None:
    """It has the time at which it began, before the last change of the archive: only waiting makes the two agree."""
    slow, faulty, other = disturbed(store, settings, clock)
    slow.new_id()
    at_once = list[ExportResult]()

    def others() -> None:
        other.clock.sleep(1)
        put(other, "late")
        other.clock.sleep(1)
        at_once.append(exported(other, tmp_path / "now.realm"))

    faulty.intervene("swap_reference", others)
    put(slow, "early", branch="dev")
    for passing in (other.clock, clock):
        passing.sleep(SLACK)
    waited = exported(other, tmp_path / "then.realm", time=at_once[0].manifest.as_of)
    for name, archive in (("now", at_once[0]), ("then", waited)):
        load_realm(target, name, archive.file)

    assert tables(target, "now", "dev") == ["customers", "drafts", "orders"]
    assert tables(target, "then", "dev") == ["customers", "drafts", "early", "orders"]
    assert tables(target, "now") == tables(target, "then") == ["customers", "late", "orders"]
