"""A realm that was exported and imported is the realm that it was, wherever both lie."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from archived import REALM, SLACK, claim_of, exported, make_realm, open_lake, put, tables

from backend_fixtures import BACKENDS
from fake_clock import FakeClock
from headwater import Settings, Store
from headwater.backup import load_realm
from headwater.fsck import FindingCode, check_store
from headwater.gc import collect_realm
from headwater.jobs import EXPORT, LOAD, run_export, run_load
from headwater.realms import RealmRegistry, RealmState, find_root
from headwater.store import ScanSplit


def test_imported_realm_has_the_tables_of_all_branches(target: Store, archive: Path) -> None:
    load_realm(target, "copy", archive)

    assert tables(target, "copy") == ["customers", "orders"]
    assert tables(target, "copy", "dev") == ["customers", "drafts", "orders"]


def test_imported_realm_has_its_principals_with_their_credentials(store: Store, target: Store, archive: Path) -> None:
    load_realm(target, "copy", archive)

    assert find_root(RealmRegistry(target), "copy") == find_root(RealmRegistry(store), REALM)


def test_imported_realm_has_its_definition_but_for_its_manager(store: Store, target: Store, archive: Path) -> None:
    made = load_realm(target, "copy", archive).realm

    assert made.state is RealmState.ACTIVE
    assert (made.properties, made.deletion_protection) == ({"team": "data"}, True)
    assert made.retention == RealmRegistry(store).read_realm(REALM).retention


def test_objects_are_the_same_bytes_under_the_same_ids(store: Store, target: Store, archive: Path) -> None:
    made = load_realm(target, "copy", archive).realm
    source = RealmRegistry(store).read_realm(REALM)

    keys = target.backend.scan_objects(ScanSplit(made.key), None, 1000)
    wanted = [(key.id, key.part) for key in keys if key.type != "load-progress"]
    before = {row.id: row.value for row in store.backend.read_objects(source.key, wanted) if row is not None}
    after = {row.id: row.value for row in target.backend.read_objects(made.key, wanted) if row is not None}
    assert len(after) > 10
    assert after == before


def test_imported_realm_exported_again_has_the_same_content(
    store: Store, target: Store, archive: Path, clock: FakeClock, tmp_path: Path
) -> None:
    first = load_realm(target, "copy", archive).checked.end
    clock.advance(SLACK)

    second = exported(target, tmp_path / "again.realm", realm="copy").end

    assert msgspec.structs.replace(second, before=first.before, blocks=first.blocks) == first


def test_same_moment_exported_twice_has_the_same_content(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    moment = clock.now()
    present = exported(store, tmp_path / "present.realm")
    clock.advance(SLACK)
    first = exported(store, tmp_path / "first.realm", time=moment)
    second = exported(store, tmp_path / "second.realm", time=moment)
    assert present.end.digest == first.end.digest

    assert first.end.digest == second.end.digest


def test_another_table_is_other_content(store: Store, archive: Path, clock: FakeClock, tmp_path: Path) -> None:
    before = exported(store, tmp_path / "before.realm").end.digest
    put(store, "more")
    clock.advance(SLACK)

    assert exported(store, tmp_path / "after.realm").end.digest != before


def test_imported_realm_goes_on_with_its_life(target: Store, archive: Path, clock: FakeClock) -> None:
    load_realm(target, "copy", archive)
    open_lake(target, "copy").create_branch("later")
    clock.advance(3600)
    collect_realm(target, "copy")

    assert tables(target, "copy", "later") == ["customers", "orders"]


def test_imports_of_one_archive_stand_side_by_side(store: Store, archive: Path) -> None:
    load_realm(store, "left", archive)
    load_realm(store, "right", archive)

    assert tables(store, "left") == tables(store, "right") == tables(store, REALM)


@pytest.mark.parametrize(("source", "aim"), [("sqlite", "postgresql"), ("postgresql", "mongodb"), ("mongodb", "unordered")])
def test_tasks_move_realms_between_all_databases(
    request: pytest.FixtureRequest, source: str, aim: str, settings: Settings, clock: FakeClock, tmp_path: Path
) -> None:
    left, right = (Store(BACKENDS[name](request), url="memory://", settings=settings, clock=clock) for name in (source, aim))
    with left, right:
        make_realm(left)
        put(left, "orders")
        clock.advance(SLACK)
        file = str(tmp_path / "moved.realm")

        written = run_export(left, claim_of(left, EXPORT, REALM, file=file))
        brought = run_load(right, claim_of(right, LOAD, "moved", file=file))

        assert written["digest"] == brought["digest"]
        assert tables(right, "moved") == ["orders"]


def test_archive_can_be_imported_without_serving_anybody(target: Store, archive: Path) -> None:
    assert load_realm(target, "copy", archive, is_active=False).realm.state is RealmState.INACTIVE


def test_imported_heads_need_no_history_before_them(store: Store, target: Store, clock: FakeClock, tmp_path: Path) -> None:
    for number in range(5):
        put(store, f"table-{number}")
    clock.advance(SLACK)
    load_realm(target, "copy", exported(store, tmp_path / "long.realm").file)
    put(target, "later", realm="copy")

    assert check_store(target, realm="copy") == []
    assert collect_realm(target, "copy").deleted == 0


def test_commit_lost_after_an_import_is_damage(store: Store, target: Store, archive: Path, clock: FakeClock) -> None:
    load_realm(target, "copy", archive)
    clock.advance(1)
    commits = [put(target, f"table-{number}", realm="copy") for number in range(3)]
    rows = RealmRegistry(target).open_realm("copy")
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id == commits[0]])

    [finding] = check_store(target, realm="copy")
    assert finding.code is FindingCode.HISTORY_BROKEN
