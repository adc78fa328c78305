"""Archives carry the references of extensions, or the export refuses and names them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from archived import REALM, SLACK, exported

from extensions import add_widgets, installed
from fake_clock import FakeClock
from headwater import Store
from headwater.backup import load_realm
from headwater.backup.archive_format import check_archive, read_archive_manifest
from headwater.commits import listed_extensions, read_head
from headwater.errors import RefusedError
from headwater.fsck import check_store
from headwater.gc import collect_realm
from headwater.realms import RealmRegistry
from headwater.store import RealmStore
from headwater.store.store_identity import RELEASE, raise_least_release, read_least_release


@pytest.fixture
def rows(store: Store) -> RealmStore:
    return RealmRegistry(store).open_realm(REALM)


@pytest.fixture
def widgets(rows: RealmStore, clock: FakeClock, tmp_path: Path) -> RealmStore:
    with installed(tmp_path / "site"):
        add_widgets(rows, 60)
    clock.advance(SLACK)
    return rows


@pytest.mark.usefixtures("widgets")
def test_archive_carries_the_references_of_extensions(store: Store, target: Store, clock: FakeClock, tmp_path: Path) -> None:
    archive = exported(store, tmp_path / "with.realm").file
    load_realm(target, "copy", archive)
    clock.advance(86_400)
    collect_realm(target, "copy")
    copy = RealmRegistry(target).open_realm("copy")
    head = read_head(copy, "widgets")

    assert archive.read_bytes()[7] == 3
    assert head is not None
    assert len(head.index("by-number")) == 60
    assert [entry.name for entry in listed_extensions(copy)] == ["widgets"]
    assert read_least_release(target)[0] == RELEASE
    assert check_store(target, realm="copy") == []


def test_other_archives_are_as_before(archive: Path) -> None:
    manifest = read_archive_manifest(archive)

    assert archive.read_bytes()[7] == 1
    assert (manifest.extensions, manifest.least_release) == ([], 0)


@pytest.mark.usefixtures("rows")
def test_reference_that_no_list_names_refuses_the_export(
    store: Store, rows: RealmStore, clock: FakeClock, tmp_path: Path
) -> None:
    rows.create_reference("gadgets")
    add_widgets(rows, 1, name="gadgets", make=False)
    clock.advance(SLACK)

    with pytest.raises(RefusedError, match=r"realm 'acme' has references that no list names \('gadgets'\)"):
        exported(store, tmp_path / "without.realm")
    assert not (tmp_path / "without.realm").exists()


@pytest.mark.usefixtures("widgets")
def test_archive_of_a_later_release_is_refused(store: Store, target: Store, tmp_path: Path) -> None:
    raise_least_release(store, RELEASE + 1, "9.9.0")
    archive = exported(store, tmp_path / "later.realm").file

    with pytest.raises(RefusedError, match=r"\(widgets\) that only release 9\.9\.0"):
        load_realm(target, "copy", archive)
    assert RealmRegistry(target).find_realm("copy") is None


def test_store_of_a_later_release_takes_no_import(target: Store, archive: Path) -> None:
    raise_least_release(target, RELEASE + 1, "9.9.0")

    with pytest.raises(RefusedError, match=r"an import by this release"):
        load_realm(target, "copy", archive)


@pytest.mark.usefixtures("widgets")
def test_export_is_of_the_moment(store: Store, rows: RealmStore, clock: FakeClock, tmp_path: Path) -> None:
    then = clock.now()
    clock.advance(1)
    add_widgets(rows, 90, make=False)
    clock.advance(SLACK)
    file = exported(store, tmp_path / "then.realm", time=then).file

    assert check_archive(file).end.types["test-widget"] == 60
    assert msgspec.json.decode(msgspec.json.encode(read_archive_manifest(file)))["extensions"] == ["widgets"]
