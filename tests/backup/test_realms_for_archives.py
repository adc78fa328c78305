"""Which realms an import may fill: new ones, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from archived import REALM

from fake_clock import FakeClock
from headwater import Store
from headwater.backup import load_realm
from headwater.errors import RefusedError
from headwater.purge.realm_purge import purge_realm
from headwater.realms import RealmManager, RealmRegistry, RealmState

Make = Callable[[RealmState], None]


@pytest.fixture
def make(target: Store, clock: FakeClock) -> Make:
    """A realm ``copy`` in a state."""

    def make(state: RealmState) -> None:
        realms = RealmRegistry(target)
        realm = realms.create_realm("copy", purge_hold_seconds=0.0)
        way = [RealmState.INITIALIZING, RealmState.INACTIVE, RealmState.PURGING, RealmState.PURGED]
        for step in [RealmState.INITIALIZING, RealmState.ACTIVE] if state is RealmState.ACTIVE else way:
            if realm.state is not state:
                if step is RealmState.PURGED:
                    purge_realm(target, "copy")
                    return
                realm = realms.move_realm(realm, step)

    return make


@pytest.mark.parametrize(
    "state",
    [RealmState.INITIALIZING, RealmState.ACTIVE, RealmState.INACTIVE, RealmState.PURGING, RealmState.PURGED],
)
def test_realm_in_another_state_is_left_alone_with_its_reason(
    target: Store, make: Make, archive: Path, state: RealmState
) -> None:
    make(state)

    with pytest.raises(RefusedError, match=state.value):
        load_realm(target, "copy", archive)
    assert RealmRegistry(target).read_realm("copy").state is state


def test_realm_only_created_takes_the_archives_definition(target: Store, archive: Path) -> None:
    RealmRegistry(target).create_realm("copy", properties={"of": "nobody"}, purge_hold_seconds=7.0)

    made = load_realm(target, "copy", archive).realm
    assert (made.properties, made.purge_hold_seconds) == ({"team": "data"}, None)


def test_realm_that_a_resource_has_created_is_left_to_it(target: Store, archive: Path) -> None:
    RealmRegistry(target).create_realm("copy", manager=RealmManager(name="copy"))

    with pytest.raises(RefusedError, match="a resource manages it"):
        load_realm(target, "copy", archive)


def test_realm_that_is_loading_something_unknown_is_left_alone(target: Store, archive: Path) -> None:
    realms = RealmRegistry(target)
    realms.move_realm(realms.create_realm("copy"), RealmState.LOADING)
    realms.open_realm_for("copy", RealmState.LOADING).create_reference("root")

    with pytest.raises(RefusedError, match="no import tells"):
        load_realm(target, "copy", archive)


@pytest.mark.parametrize("name", ["::system::", "with space", ""])
def test_realm_has_a_proper_id(target: Store, archive: Path, name: str) -> None:
    with pytest.raises(RefusedError):
        load_realm(target, name, archive)


def test_archive_of_a_protected_realm_is_purged_before_it_serves(target: Store, archive: Path) -> None:
    seen: list[bool] = []

    def look(done: int, total: int | None, unit: str) -> None:
        realm = RealmRegistry(target).find_realm("copy")
        seen.extend([] if realm is None else [realm.deletion_protection])

    assert load_realm(target, "copy", archive, progress=look).realm.deletion_protection
    assert set(seen) == {False}


def test_imported_realm_has_no_manager_and_another_key(store: Store, target: Store, archive: Path) -> None:
    made = load_realm(target, "copy", archive).realm

    assert (made.manager, made.key == RealmRegistry(store).read_realm(REALM).key) == (None, False)
