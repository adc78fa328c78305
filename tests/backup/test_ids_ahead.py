"""An archive with ids of a clock that was ahead: its export says from when on it can be imported."""

from __future__ import annotations

from pathlib import Path

import pytest
from archived import REALM, SLACK, exported, open_lake, open_on, put

from fake_clock import FakeClock
from headwater import Store
from headwater.backup import load_realm
from headwater.errors import RefusedError
from headwater.fsck import check_store, plan_repairs, repair_realm
from headwater.outcome_text import outcome_lines

YEAR = 365 * 86_400.0


@pytest.fixture
def mended(store: Store, clock: FakeClock) -> Store:
    """A store in which a clock that was a year ahead has written, and which was repaired."""
    put(open_on(store.backend, store.settings, FakeClock(clock.now() + round(YEAR * 1_000_000))), "ahead")
    store.cache.clear()
    clock.advance(SLACK)
    for realm in (REALM, "::system::"):
        list(repair_realm(store, realm, plan_repairs(check_store(store, realm=realm))))
    clock.advance(SLACK)
    return store


def test_export_says_from_when_on_it_can_be_imported(mended: Store, target: Store, clock: FakeClock, tmp_path: Path) -> None:
    done = exported(mended, tmp_path / "acme.realm")
    told = done.as_plain()["importableFrom"]
    with pytest.raises(RefusedError, match=told):
        load_realm(target, "copy", done.file)
    assert any(told in line for line in outcome_lines("export", done.as_plain()))
    clock.advance(YEAR)

    load_realm(target, "copy", done.file)
    assert open_lake(target, "copy").resolve() is not None


def test_other_exports_say_nothing_of_it(store: Store, tmp_path: Path) -> None:
    assert "importableFrom" not in exported(store, tmp_path / "acme.realm").as_plain()
