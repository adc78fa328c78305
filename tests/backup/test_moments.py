"""What an export shows of a realm that is written to: each reference as it was at one moment, names as they were listed then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from archived import REALM, SLACK, exported, open_lake, put, tables

from fake_clock import FakeClock
from headwater.backup import ExportOrder, export_realm, load_realm
from headwater.catalogs import Catalogs, RefKind, finish_deletions
from headwater.catalogs.catalog_refs import CatalogRefs
from headwater.clock import Micros, as_text
from headwater.commits import COLLECTION_ID, CollectionRecord, read_pins
from headwater.errors import ExpiredError, HeadwaterError, NotFoundError, RefusedError, SwapConflictError, UnavailableError
from headwater.fsck import FindingCode, RepairAction, check_store, plan_repairs, repair_realm
from headwater.gc import collect_realm
from headwater.realms import REALM_REFERENCES, RealmRegistry, RealmState, bootstrap, hash_credentials, new_credentials
from headwater.store import RealmStore, Store
from headwater.tasks import TaskQueue

AsOf = Callable[[Micros], Store]


@pytest.fixture
def rows(store: Store) -> RealmStore:
    return RealmRegistry(store).open_realm(REALM)


@pytest.fixture
def moment(clock: FakeClock) -> Micros:
    """Now; from here on the clock moves."""
    now = clock.now()
    clock.advance(1)
    return now


@pytest.fixture
def as_of(store: Store, target: Store, clock: FakeClock, tmp_path: Path) -> AsOf:
    """The store where the realm is imported as ``copy``, as it was at a moment, once that can be read."""

    def make(time: Micros) -> Store:
        clock.advance(SLACK)
        load_realm(target, "copy", exported(store, tmp_path / "then.realm", time=time).file)
        return target

    return make


def branches(store: Store) -> list[str]:
    return [branch.name for branch in open_lake(store, "copy").branches()]


def test_commit_after_the_moment_is_left_out(store: Store, moment: Micros, as_of: AsOf) -> None:
    put(store, "late")

    assert tables(as_of(moment), "copy") == ["customers", "orders"]


def test_commit_of_the_very_moment_is_in(store: Store, clock: FakeClock, as_of: AsOf) -> None:
    put(store, "just")

    assert "just" in tables(as_of(clock.now()), "copy")


def test_branch_that_was_made_later_is_left_out(store: Store, moment: Micros, as_of: AsOf) -> None:
    open_lake(store).create_branch("late")

    assert branches(as_of(moment)) == ["dev", "main"]


def test_branch_that_was_deleted_later_is_there(store: Store, moment: Micros, as_of: AsOf) -> None:
    open_lake(store).delete_branch("dev")

    assert tables(as_of(moment), "copy", "dev") == ["customers", "drafts", "orders"]


def test_branch_that_was_deleted_before_is_not_there(store: Store, clock: FakeClock, as_of: AsOf) -> None:
    open_lake(store).delete_branch("dev")
    clock.advance(1)

    assert branches(as_of(clock.now())) == ["main"]


def test_branch_deleted_before_and_made_later_is_not_there(store: Store, clock: FakeClock, as_of: AsOf) -> None:
    open_lake(store).delete_branch("dev")
    clock.advance(1)
    moment = clock.now()
    clock.advance(1)
    open_lake(store).create_branch("dev")

    assert branches(as_of(moment)) == ["main"]


def test_branch_deleted_and_made_later_is_as_it_was(store: Store, moment: Micros, clock: FakeClock, as_of: AsOf) -> None:
    open_lake(store).delete_branch("dev")
    clock.advance(1)
    open_lake(store).create_branch("dev")

    assert "drafts" in tables(as_of(moment), "copy", "dev")


def test_branch_is_there_that_another_creator_lists_later(store: Store, moment: Micros, as_of: AsOf) -> None:
    lake = open_lake(store)
    with suppress(SwapConflictError):
        lake.refs.reserve_name(RefKind.BRANCH, "dev").list_name()

    assert branches(as_of(moment)) == ["dev", "main"]


def test_branch_that_was_moved_later_is_where_it_was(store: Store, moment: Micros, as_of: AsOf) -> None:
    lake = open_lake(store)
    lake.assign_branch("dev", lake.branch("main").head)  # type: ignore[arg-type]  # it has one
    put(store, "late", branch="dev")

    assert "drafts" in tables(as_of(moment), "copy", "dev")


def test_branch_that_was_moved_before_is_where_it_was_put(store: Store, clock: FakeClock, as_of: AsOf) -> None:
    lake = open_lake(store)
    lake.assign_branch("dev", lake.branch("main").head)  # type: ignore[arg-type]  # it has one
    clock.advance(1)
    moment = clock.now()
    clock.advance(1)
    put(store, "late", branch="dev")

    assert tables(as_of(moment), "copy", "dev") == ["customers", "orders"]


def test_catalog_that_was_deleted_later_is_there(store: Store, rows: RealmStore, moment: Micros, as_of: AsOf) -> None:
    Catalogs(rows).delete_catalog("lake")
    finish_deletions(rows)

    assert tables(as_of(moment), "copy") == ["customers", "orders"]


def test_catalog_that_was_made_later_is_left_out(rows: RealmStore, moment: Micros, as_of: AsOf) -> None:
    Catalogs(rows).create_catalog("late", base_location="s3://late/")

    with pytest.raises(NotFoundError):
        Catalogs(RealmRegistry(as_of(moment)).open_realm("copy")).open_catalog("late")


def test_catalog_half_made_at_the_moment_is_finished_by_repair(
    rows: RealmStore, clock: FakeClock, as_of: AsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as slow:
        slow.setattr(
            CatalogRefs, "ensure_branch", lambda branches, name: branches.reserve_name(RefKind.BRANCH, name).list_name()
        )
        Catalogs(rows).create_catalog("young", base_location="s3://young/")
    moment = clock.now()
    clock.advance(1)
    Catalogs(rows).create_catalog("young", base_location="s3://young/")

    target = as_of(moment)
    found = check_store(target, realm="copy")
    assert {finding.code for finding in found} == {FindingCode.CATALOG_INCOMPLETE}
    assert [step.action for step in repair_realm(target, "copy", plan_repairs(found))] == [RepairAction.COMPLETE_CATALOG]
    assert check_store(target, realm="copy") == []


def test_realm_that_sleeps_can_be_exported(store: Store, tmp_path: Path) -> None:
    realms = RealmRegistry(store)
    realms.move_realm(realms.read_realm(REALM), RealmState.INACTIVE)

    assert exported(store, tmp_path / "asleep.realm").end.objects > 10


def test_moment_is_refused_while_a_commit_may_be_under_way(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    now = clock.now()
    clock.advance(44)

    with pytest.raises(RefusedError, match=as_text(now + 45_000_000)):
        exported(store, tmp_path / "early.realm", time=now)
    clock.advance(1)
    assert exported(store, tmp_path / "early.realm", time=now).manifest.as_of == now


def test_moment_of_which_deletions_may_be_forgotten_is_refused(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    moment = clock.now()
    clock.advance(61)

    with pytest.raises(ExpiredError, match="is remembered since"):
        exported(store, tmp_path / "late.realm", time=moment)


def test_moment_before_the_last_collections_grace_is_refused(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    moment = clock.now()
    clock.advance(50)
    RealmRegistry(store).open_realm(REALM).insert_object(COLLECTION_ID, CollectionRecord(reader_cutoff=Micros(moment + 1)))

    with pytest.raises(ExpiredError, match="is remembered since"):
        exported(store, tmp_path / "collected.realm", time=moment)


def test_realm_not_filled_at_the_moment_is_refused_until_when(
    store: Store, moment: Micros, clock: FakeClock, archive: Path, tmp_path: Path
) -> None:
    load_realm(store, "fresh", archive)
    clock.advance(SLACK)

    with pytest.raises(NotFoundError, match="it was filled later"):
        exported(store, tmp_path / "fresh.realm", realm="fresh", time=moment)


def test_realm_is_not_exported_as_of_its_bootstrap(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    realms = RealmRegistry(store)
    realms.move_realm(realms.create_realm("fresh"), RealmState.INITIALIZING)
    realms.open_realm_for("fresh", RealmState.INITIALIZING).ensure_references(REALM_REFERENCES)
    moment = clock.now()
    clock.advance(1)
    bootstrap(realms, "fresh", hash_credentials(new_credentials()))
    clock.advance(SLACK)

    with pytest.raises(NotFoundError, match="it was filled later"):
        exported(store, tmp_path / "fresh.realm", realm="fresh", time=moment)


def test_no_export_begins_during_a_sweep(store: Store, moment: Micros, clock: FakeClock, tmp_path: Path) -> None:
    put(store, "late")
    clock.advance(SLACK)
    RealmRegistry(store).open_realm(REALM).insert_object(COLLECTION_ID, CollectionRecord(sweeping=True))

    with pytest.raises(UnavailableError, match="is sweeping"):
        exported(store, tmp_path / "swept.realm", time=moment)


def test_commits_are_pinned_only_while_they_are_written(store: Store, rows: RealmStore, tmp_path: Path) -> None:
    during: list[int] = []

    def look(done: int, total: int | None, unit: str) -> None:
        during.append(len(read_pins(rows)))

    export_realm(store, ExportOrder(realm=REALM, file=tmp_path / "pinned.realm", time=None, task=store.new_id()), progress=look)
    assert min(during) > 5
    assert read_pins(rows) == []


def test_export_that_is_held_keeps_its_pins_until_then(
    store: Store, rows: RealmStore, clock: FakeClock, tmp_path: Path
) -> None:
    until = Micros(clock.now() + 3_600_000_000)
    order = ExportOrder(realm=REALM, file=tmp_path / "held.realm", time=None, task=store.new_id(), held_until=until)
    export_realm(store, order)
    collect_realm(store, REALM)

    assert {pin.held_until for pin in read_pins(rows)} == {until}
    assert [finding for finding in check_store(store) if finding.code is FindingCode.PIN_STALE] == []
    clock.advance(3600)
    collect_realm(store, REALM)
    assert read_pins(rows) == []


def test_export_that_fails_pins_nothing_any_more(store: Store, rows: RealmStore, tmp_path: Path) -> None:
    with pytest.raises(HeadwaterError):
        exported(store, tmp_path / "no such folder" / "file.realm")

    assert read_pins(rows) == []


def test_collection_takes_nothing_that_is_being_exported(
    store: Store, moment: Micros, clock: FakeClock, target: Store, tmp_path: Path
) -> None:
    realms = RealmRegistry(store)
    wanted = msgspec.structs.replace(realms.read_realm(REALM).retention, content_commits=1, content_age_seconds=0)
    realms.update_realm(realms.read_realm(REALM), retention=wanted)
    clock.advance(SLACK)
    collected: list[int] = []

    def collect_meanwhile(done: int, total: int | None, unit: str) -> None:
        if not collected:
            open_lake(store).delete_branch("dev")
            put(store, "late")
            put(store, "later")
            clock.advance(3600)
            collected.append(collect_realm(store, REALM).deleted)

    task = TaskQueue(store).submit_task("export", realm=REALM).id  # pins without an active task are taken away
    order = ExportOrder(realm=REALM, file=tmp_path / "busy.realm", time=moment, task=task)
    export_realm(store, order, progress=collect_meanwhile)
    assert collected[0] > 0
    load_realm(target, "copy", order.file)
    assert tables(target, "copy", "dev") == ["customers", "drafts", "orders"]
