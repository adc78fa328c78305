"""A restoration that was interrupted leaves alone what others did since it was asked for: an earlier attempt may have done its part."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pasts import catalogs_of, claimed, contents, drop, lake_of, passed, put, request, rows_of, submitted

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalog
from headwater.clock import Micros
from headwater.errors import FencedError
from headwater.jobs import run_restore
from headwater.restore import restore_state
from headwater.store import ObjectId

Interrupted = Callable[[Callable[[], object]], dict[str, object]]


@pytest.fixture
def moment(lake: Catalog, clock: FakeClock) -> Micros:
    """A moment after which a branch was deleted, a tag moved, and branch and catalog were made."""
    put(lake, "orders")
    lake.create_branch("dev")
    lake.create_tag("v1")
    moment = passed(clock)
    drop(lake, "orders")
    lake.delete_branch("dev")
    lake.assign_tag("v1", put(lake, "late"))
    lake.create_branch("old")
    clock.advance(1)
    return moment


@pytest.fixture
def interrupted(store: Store, moment: Micros, clock: FakeClock) -> Interrupted:
    """Restores the realm, dies before it could tell, lets others act, and restores again; returns the second attempt's outcome."""

    def restore_twice(others_act: Callable[[], object]) -> dict[str, object]:
        task = submitted(store, request("", moment, prune=True))
        first = claimed(store, task)
        run_restore(store, first)
        first.hand_back("it died before it could tell")
        clock.advance(1)
        others_act()
        clock.advance(1)
        return run_restore(store, claimed(store, task))

    return restore_twice


def branches(store: Store) -> list[str]:
    return [named.name for named in lake_of(store).branches()]


def test_branch_that_was_made_after_it_is_not_pruned(store: Store, interrupted: Interrupted) -> None:
    outcome = interrupted(lambda: lake_of(store).create_branch("fresh"))

    assert branches(store) == ["dev", "fresh", "main"]
    assert outcome["notes"] == ["lake/fresh: made since this restoration was asked for: it stays so"]


def test_branch_that_was_pruned_and_brought_back_stays(store: Store, interrupted: Interrupted) -> None:
    interrupted(lambda: lake_of(store).undelete_branch("old"))

    assert "old" in branches(store)


def test_branch_that_was_deleted_after_it_stays_deleted(store: Store, interrupted: Interrupted) -> None:
    interrupted(lambda: lake_of(store).delete_branch("dev"))

    assert branches(store) == ["main"]


def test_tag_that_was_moved_after_it_stays_where_it_is(store: Store, interrupted: Interrupted) -> None:
    newest: list[ObjectId] = []

    def move() -> None:
        newest.append(put(lake_of(store), "newer"))
        lake_of(store).assign_tag("v1", newest[0])

    interrupted(move)

    assert [tag.head for tag in lake_of(store).tags()] == newest


def test_commits_after_an_idle_restoration_stay(store: Store, lake: Catalog, clock: FakeClock) -> None:
    put(lake, "orders")
    lake.create_branch("dev")
    moment = passed(clock)
    drop(lake, "orders", branch="dev")
    task = submitted(store, request("lake", moment))
    first = claimed(store, task)
    run_restore(store, first)
    first.hand_back("it died before it could tell")
    clock.advance(1)
    put(lake, "late")
    outcome = run_restore(store, claimed(store, task))

    assert set(contents(lake)) == {"orders", "late"}
    assert outcome["notes"] == ["lake/main: committed to since this restoration was asked for: it stays so"]


def test_field_of_a_catalog_that_was_changed_after_it_stays(store: Store, lake: Catalog, clock: FakeClock) -> None:
    moment, catalogs = passed(clock), catalogs_of(store)
    catalogs.update_catalog(catalogs.read_catalog("lake"), properties={"owner": "then"}, allowed_locations=("s3://other/",))
    clock.advance(1)
    task = submitted(store, request("lake", moment))
    first = claimed(store, task)
    run_restore(store, first)
    first.hand_back("it died before it could tell")
    clock.advance(1)
    catalogs.update_catalog(catalogs.read_catalog("lake"), properties={"owner": "later"})
    run_restore(store, claimed(store, task))

    found = catalogs.read_catalog("lake")
    assert (found.properties, found.allowed_locations) == ({"owner": "later"}, ())


def test_catalog_that_was_made_after_it_is_not_pruned(store: Store, interrupted: Interrupted) -> None:
    interrupted(lambda: catalogs_of(store).create_catalog("pond", base_location="s3://pond/"))

    assert catalogs_of(store).find_catalog("pond") is not None


def test_catalog_that_was_deleted_after_it_stays_deleted(store: Store, interrupted: Interrupted) -> None:
    interrupted(lambda: catalogs_of(store).delete_catalog("lake"))

    assert catalogs_of(store).list_catalogs() == []


def test_catalog_of_a_pruned_ones_name_is_left_alone(store: Store, lake: Catalog, clock: FakeClock) -> None:
    moment = passed(clock)
    catalogs_of(store).create_catalog("pond", base_location="s3://pond/")
    fences: list[int] = []

    def make_anew() -> None:
        fences.append(1)
        if len(fences) == 1:
            catalogs_of(store).delete_catalog("pond")
            catalogs_of(store).create_catalog("pond", base_location="s3://pond/")

    restore_state(rows_of(store), ObjectId(1), request("", moment, prune=True), fence=make_anew)

    assert catalogs_of(store).find_catalog("pond") is not None


def test_branch_made_anew_while_its_deletion_slept_stays(store: Store, lake: Catalog) -> None:
    lake.create_branch("dev")

    def sleep() -> None:
        if slept:
            raise FencedError("another attempt has the task")
        slept.append(1)
        lake.delete_branch("dev")
        lake.create_branch("dev")

    slept: list[int] = []
    with pytest.raises(FencedError):
        lake_of(store).delete_branch("dev", fence=sleep)

    assert branches(store) == ["dev", "main"]


def test_branch_is_not_brought_back_by_a_late_attempt(store: Store, lake: Catalog) -> None:
    lake.create_branch("dev")
    lake.delete_branch("dev")

    def fence() -> None:
        raise FencedError("another attempt has the task")

    with pytest.raises(FencedError):
        lake.undelete_branch("dev", fence=fence)
    assert branches(store) == ["main"]
