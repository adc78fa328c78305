"""References that extensions declare, and those that nobody here knows: a collection keeps what they hold, or refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from extensions import Widget, add_widgets, installed
from fake_clock import FakeClock
from headwater.catalogs import Catalog, Catalogs
from headwater.catalogs.registry import RefKind, content_reference
from headwater.commits import add_reference, declared_references, listed_extensions, remove_reference
from headwater.errors import CorruptionError, HeadwaterError, RefusedError
from headwater.fsck import FindingCode, check_store, repair_realm
from headwater.gc import collect_realm, collect_realms
from headwater.gc.retention import LATE_REFERENCES, RUNS
from headwater.purge import purge_realm
from headwater.realms import REALM_REFERENCES, REALMS
from headwater.restore import RestoreRequest, RestoreTarget, plan_restoration
from headwater.store import RealmStore, Store, UnknownObject
from headwater.store.store_identity import RELEASE, raise_least_release, read_identity, read_least_release
from headwater.tasks import REFERENCE as TASKS
from lakes import HOUR, REALM, put

DAY = 24 * HOUR


@pytest.fixture
def extension(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path / "site"):
        yield


def widgets_in(rows: RealmStore) -> int:
    """How many widgets the database has, whoever points to them."""
    return sum(key.type == Widget.type_name for batch in rows.scan_objects() for key in batch)


def codes(store: Store) -> set[str]:
    return {finding.code.value for finding in check_store(store)}


@pytest.mark.usefixtures("lake", "extension")
def test_collection_keeps_what_a_declared_reference_holds(store: Store, realm_rows: RealmStore, clock: FakeClock) -> None:
    add_widgets(realm_rows, 60)
    clock.advance(DAY)

    assert collect_realm(store, REALM).deleted == 0
    assert widgets_in(realm_rows) == 60


@pytest.mark.usefixtures("lake")
def test_collection_keeps_it_where_the_package_is_not_installed(
    store: Store, realm_rows: RealmStore, clock: FakeClock, tmp_path: Path
) -> None:
    with installed(tmp_path / "site"):
        for _ in range(6):
            add_widgets(realm_rows, 60)
            clock.advance(DAY)
    collect_realm(store, REALM)

    assert widgets_in(realm_rows) == 6 * 60  # 20 commits of references stay
    assert codes(store) == set()


@pytest.mark.usefixtures("lake")
def test_collection_keeps_all_of_a_reference_of_unknown_kind(store: Store, realm_rows: RealmStore, clock: FakeClock) -> None:
    realm_rows.create_reference("widgets")
    for _ in range(25):
        add_widgets(realm_rows, 2, make=False)
        clock.advance(DAY)

    assert [collect_realm(store, REALM).kept.get("head") is not None for _ in range(2)] == [True, True]
    assert widgets_in(realm_rows) == 50
    assert codes(store) == {FindingCode.REFERENCE_UNKNOWN}


@pytest.mark.usefixtures("lake")
def test_many_realms_keep_such_references_as_well(store: Store, realm_rows: RealmStore, clock: FakeClock) -> None:
    realm_rows.create_reference("widgets")
    add_widgets(realm_rows, 60, make=False)
    clock.advance(DAY)
    fates = collect_realms(store, [REALM, "::system::"])

    assert not any(isinstance(fate, HeadwaterError) for fate in fates.values())
    assert widgets_in(realm_rows) == 60


@pytest.mark.usefixtures("lake")
def test_unknown_reference_may_point_to_any_object(store: Store, realm_rows: RealmStore, clock: FakeClock) -> None:
    widget = realm_rows.new_id()
    realm_rows.write_objects([(widget, Widget(text="alone"))], are_new=True)
    realm_rows.create_reference("widgets", widget)
    clock.advance(DAY)
    collect_realm(store, REALM)

    assert widgets_in(realm_rows) == 1


@pytest.mark.usefixtures("old_commits")
def test_object_that_cannot_be_walked_refuses_the_collection(store: Store, realm_rows: RealmStore, clock: FakeClock) -> None:
    strange = realm_rows.new_id()
    realm_rows.write_objects([(strange, UnknownObject(name="of-a-later-one", body=b"\x80"))], are_new=True)
    realm_rows.create_reference("widgets", strange)
    clock.advance(DAY)

    with pytest.raises(CorruptionError, match=r"reference 'widgets' of realm 'acme'.*not know.*of-a-later-one"):
        collect_realm(store, REALM)


@pytest.mark.usefixtures("lake", "extension")
def test_system_realm_keeps_them_too(store: Store, clock: FakeClock) -> None:
    add_widgets(store.system, 5)
    clock.advance(DAY)
    collect_realm(store, "::system::")

    assert widgets_in(store.system) == 5


@pytest.mark.usefixtures("lake", "extension")
def test_removed_reference_goes_after_the_graces(store: Store, realm_rows: RealmStore, clock: FakeClock) -> None:
    add_widgets(realm_rows, 5)
    remove_reference(realm_rows, "widgets")
    for _ in range(3):
        clock.advance(DAY)
        collect_realm(store, REALM)

    assert (widgets_in(realm_rows), listed_extensions(realm_rows)) == (0, [])
    assert "widgets" not in [key.name for key in realm_rows.scan_references()]


@pytest.mark.usefixtures("extension")
def test_purged_catalog_takes_its_own_along(store: Store, realm_rows: RealmStore, lake: Catalog, clock: FakeClock) -> None:
    name = f"cat/{lake.definition.id}/widgets"
    add_widgets(realm_rows, 5, name=name)
    catalogs = Catalogs(realm_rows)
    catalogs.delete_catalog("lake")
    for _ in range(8):
        clock.advance(20 * DAY)
        collect_realm(store, REALM)

    assert [key.name for key in realm_rows.scan_references() if key.name.startswith("cat/")] == []
    assert widgets_in(realm_rows) == 0


def test_branch_in_no_list_is_kept(store: Store, realm_rows: RealmStore, lake: Catalog, clock: FakeClock) -> None:
    """A creator that died between two steps left it, or its list was restored without it."""
    first = put(lake, 1)
    realm_rows.create_reference(content_reference(lake.definition.id, RefKind.BRANCH, "lost"), first)
    for version in range(2, 6):
        put(lake, version)
        clock.advance(DAY)
    collect_realm(store, REALM)
    assert codes(store) == {FindingCode.ROW_WITHOUT_NAME}
    lake.delete_branch("lost")
    lake.undelete_branch("lost")

    assert lake.resolve("lost") is not None
    assert codes(store) == set()


def test_branch_in_no_list_that_holds_nothing_does_no_harm(
    store: Store, realm_rows: RealmStore, lake: Catalog, clock: FakeClock
) -> None:
    """Up to release 0.1.0 collections took what it pointed to."""
    realm_rows.create_reference(content_reference(lake.definition.id, RefKind.BRANCH, "lost"), realm_rows.new_id())
    clock.advance(DAY)
    collect_realm(store, REALM)

    assert codes(store) == {FindingCode.ROW_WITHOUT_NAME}


@pytest.mark.usefixtures("lake", "extension")
def test_first_such_reference_raises_the_least_release(store: Store, realm_rows: RealmStore) -> None:
    identity, before = read_identity(store), read_least_release(store)[0]
    add_reference(realm_rows, "widgets")

    assert (before, read_least_release(store)[0]) == (0, RELEASE)
    assert read_identity(store) == identity


@pytest.mark.usefixtures("old_commits")
def test_lower_release_refuses_maintenance(store: Store) -> None:
    raise_least_release(store, RELEASE + 1, "9.9.0")

    for maintain in (
        lambda: collect_realm(store, REALM),
        lambda: purge_realm(store, REALM),
        lambda: list(repair_realm(store, REALM, [])),
    ):
        with pytest.raises(RefusedError, match=r"release 9\.9\.0"):
            maintain()
    assert FindingCode.RELEASE_TOO_OLD in codes(store)
    assert any("9.9.0" in note for note in collect_realm(store, REALM, dry_run=True).notes)


@pytest.mark.usefixtures("old_commits")
def test_number_never_falls(store: Store) -> None:
    raise_least_release(store, 7, "9.9.0")
    raise_least_release(store)

    assert read_least_release(store) == (7, "9.9.0")


@pytest.mark.usefixtures("old_commits", "extension")
def test_restoration_says_that_it_leaves_them_alone(realm_rows: RealmStore, clock: FakeClock) -> None:
    add_widgets(realm_rows, 1)
    clock.advance(30)
    then = clock.now()
    clock.advance(20)
    plan = plan_restoration(realm_rows, RestoreRequest(reference="lake", aim=RestoreTarget(time=then)))
    with pytest.raises(RefusedError, match="belongs to an extension"):
        plan_restoration(realm_rows, RestoreRequest(reference="reference:widgets", aim=RestoreTarget(time=then)))

    assert not plan.is_needed


@pytest.mark.usefixtures("lake")
def test_undeclared_name_is_refused(realm_rows: RealmStore) -> None:
    with pytest.raises(RefusedError, match=r"no installed package declares a reference 'widgets'"):
        add_reference(realm_rows, "widgets")


@pytest.mark.parametrize("pattern", ["claims", "cat/*/heads", "cat/*/heads/x", "files/x", "Widgets", "", "cat/x*/y"])
def test_names_of_our_own_cannot_be_declared(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"reference"):
        declared_references.DeclaredReference(pattern=pattern, text="")


def test_own_references_are_those_that_collections_list() -> None:
    """A new kind of reference needs a higher RELEASE: say there what is new, then add its name."""
    assert {
        False: (*REALM_REFERENCES, *LATE_REFERENCES),
        True: (REALMS, TASKS, RUNS),
    } == declared_references.OWN_REFERENCES
    assert RELEASE == 1
