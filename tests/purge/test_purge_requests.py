"""Asking for a purge and dropping the table: both, or neither."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec.structs import replace
from pyiceberg.exceptions import CommitFailedException

from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalog, ContentKey, TableClaim, TableClaims
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.jobs import PURGE_TABLE, request_table_purge
from headwater.purge import DroppedTable, PurgeRequest
from headwater.realms import RealmRegistry
from headwater.tasks import Task, TaskQueue, TaskState


def purges(store: Store) -> list[Task]:
    return [seen.value for seen in TaskQueue(store).list_tasks(kind=PURGE_TABLE)]


def wish(number: int) -> PurgeRequest:
    drop = DroppedTable(
        branch=f"branch{number}", key="t", metadata=f"file:///t/{number}" + "x" * 400, location="file:///t", asked=Micros(0)
    )
    return PurgeRequest(catalog="lake", catalog_id="00" * 8, content_id=ID, table_uuid=None, drops=(drop,))


def asked(number: int, *, reachable_only: bool = False, allowed: tuple[str, ...] = ()) -> PurgeRequest:
    (drop,) = wish(number).drops
    return replace(wish(number), drops=(replace(drop, reachable_only=reachable_only, allowed=allowed),))


ID = uuid4()


def test_task_says_what_is_purged_and_waits_for_the_graces(
    shop: HeadwaterCatalog, lake: Catalog, store: Store, clock: FakeClock
) -> None:
    content = lake.get_content("main", ContentKey.of("sales", "orders"))
    assert content is not None
    shop.purge_table("sales.orders")

    (task,) = purges(store)
    assert (task.subject, task.arguments["catalog"], task.state) == (str(content.id), "lake", TaskState.WAITING)
    assert task.due - clock.now() == 60 * 1_000_000


def test_table_in_anothers_place_is_not_dropped(shop: HeadwaterCatalog, lake: Catalog, store: Store, place: Path) -> None:
    claims, key = TableClaims(RealmRegistry(store).open_realm("acme")), ContentKey.of("sales", "orders")
    content = lake.get_content("main", key)
    assert content is not None and content.id is not None
    claims.release_own([TableClaim(lake.definition.id, content.id, place.as_uri())])
    claims.take_claims([TableClaim("00000000000000ab", uuid4(), place.as_uri())])

    with pytest.raises(ValueError, match=r"drop table sales\.orders, to be purged: location .* a place of another table"):
        shop.purge_table("sales.orders")

    assert shop.table_exists("sales.orders")
    assert [task.state for task in purges(store)] == [TaskState.CANCELLED]


def test_branch_does_not_purge_what_is_being_purged(
    shop: HeadwaterCatalog, open_shop: Callable[..., HeadwaterCatalog], lake: Catalog, store: Store, clock: FakeClock
) -> None:
    lake.create_branch("dev", "main")
    shop.purge_table("sales.orders")
    clock.advance(60)
    assert TaskQueue(store).claim_task(TaskQueue(store).list_tasks(kind=PURGE_TABLE)[0].id, "a worker") is not None

    with pytest.raises(CommitFailedException, match="is purging content"):
        open_shop("dev").purge_table("sales.orders")

    assert open_shop("dev").table_exists("sales.orders")


def test_drops_of_too_many_branches_for_a_task_are_refused(lake: Catalog, store: Store) -> None:
    with pytest.raises(RefusedError, match=r"drops of content .* more than a task carries"):
        for number in range(100):
            request_table_purge(store, wish(number), realm="acme", realm_key=0)

    (active,) = (task for task in purges(store) if task.is_active)
    assert len(active.arguments["drops"]) > 10


def test_same_drop_is_carried_once(lake: Catalog, store: Store) -> None:
    for number in (1, 2, 1):
        request_table_purge(store, wish(number), realm="acme", realm_key=0)

    (active,) = (task for task in purges(store) if task.is_active)
    assert [drop["branch"] for drop in active.arguments["drops"]] == ["branch2", "branch1"]


def test_amended_task_is_not_what_was_asked_for(lake: Catalog, store: Store) -> None:
    """Even where the same was asked for in the same microsecond."""
    first, second = (replace(wish(1), drops=(replace(wish(1).drops[0], request=one),)) for one in ("a", "b"))
    made, joined = (request_table_purge(store, one, realm="acme", realm_key=0) for one in (first, second))
    assert (joined.id, made.created, joined.created) == (made.id, True, False)

    with pytest.raises(RefusedError, match="is WAITING: it was amended since"):
        TaskQueue(store).cancel_task(made.id, carrying=first.arguments())
    assert [task.state for task in purges(store)] == [TaskState.WAITING]


@pytest.mark.parametrize("is_lax", [(True, False), (False, True)])
def test_version_that_one_branch_wants_whole_is_purged_whole(is_lax: tuple[bool, bool]) -> None:
    first, second = (asked(number, reachable_only=lax) for number, lax in enumerate(is_lax))
    again = asked(1, reachable_only=not is_lax[1])
    assert {drop.branch: drop.reachable_only for drop in second.joined(first).versions()} == {
        "branch0": is_lax[0], "branch1": is_lax[1]
    }  # fmt: skip

    (once,) = again.joined(second).versions()

    assert not once.reachable_only


def test_version_of_two_branches_is_purged_as_the_stricter_wants() -> None:
    (main,), (dev,) = asked(1, reachable_only=True, allowed=("file:///a",)).drops, asked(1, allowed=("file:///b",)).drops
    (version,) = replace(wish(1), drops=(replace(main, branch="main"), replace(dev, branch="dev"))).versions()

    assert (version.reachable_only, version.allowed) == (False, ("file:///a", "file:///b"))


def test_task_of_an_earlier_release_still_leaves_things_for_good() -> None:
    arguments = replace(wish(1), reachable_only=True).arguments()
    for drop in arguments["drops"]:
        del drop["reachable_only"], drop["allowed"], drop["request"]
    earlier = PurgeRequest.from_task(
        Task(kind=PURGE_TABLE, realm="acme", arguments=arguments, created=Micros(0), due=Micros(0))
    )

    assert [drop.reachable_only for drop in earlier.versions()] == [True]
    assert [drop.reachable_only for drop in asked(2).joined(earlier).versions()] == [True, False]
