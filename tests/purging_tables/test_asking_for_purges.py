"""Asking for a purge and dropping the table: both, or neither."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from pyiceberg.exceptions import CommitFailedException

from headwater import Store
from headwater.catalogs import Catalog, Claim, Claims, ContentKey
from headwater.clients.pyiceberg import HeadwaterCatalog
from headwater.clock import FakeClock, Micros
from headwater.errors import RefusedError
from headwater.maintenance import PURGE_TABLE, Dropped, Wish, ask_for_purge
from headwater.realms import Realms
from headwater.tasks import Task, Tasks, TaskState


def purges(store: Store) -> list[Task]:
    return [seen.value for seen in Tasks(store).list(kind=PURGE_TABLE)]


def wish(number: int) -> Wish:
    drop = Dropped(
        branch=f"branch{number}", key="t", metadata=f"file:///t/{number}" + "x" * 400, location="file:///t", asked=Micros(0)
    )
    return Wish(catalog="lake", catalog_id="00" * 8, content_id=ID, table_uuid=None, drops=(drop,))


ID = uuid4()


def test_a_task_says_what_is_purged_and_looks_when_the_graces_are_over(
    shop: HeadwaterCatalog, lake: Catalog, store: Store, clock: FakeClock
) -> None:
    content = lake.get("main", ContentKey.of("sales", "orders"))
    assert content is not None
    shop.purge_table("sales.orders")

    (task,) = purges(store)
    assert (task.subject, task.arguments["catalog"], task.state) == (str(content.id), "lake", TaskState.WAITING)
    assert task.due - clock.now() == 60 * 1_000_000


def test_a_table_whose_place_is_anothers_is_not_dropped_and_its_task_is_cancelled(
    shop: HeadwaterCatalog, lake: Catalog, store: Store, place: Path
) -> None:
    claims, key = Claims(Realms(store).open("acme")), ContentKey.of("sales", "orders")
    content = lake.get("main", key)
    assert content is not None and content.id is not None
    claims.release([Claim(lake.definition.id, content.id, place.as_uri())])
    claims.take([Claim("00000000000000ab", uuid4(), place.as_uri())])

    with pytest.raises(ValueError, match=r"drop table sales\.orders, to be purged: location .* a place of another table"):
        shop.purge_table("sales.orders")

    assert shop.table_exists("sales.orders")
    assert [task.state for task in purges(store)] == [TaskState.CANCELLED]


def test_a_branch_does_not_purge_what_is_being_purged(
    shop: HeadwaterCatalog, open_shop: Callable[..., HeadwaterCatalog], lake: Catalog, store: Store, clock: FakeClock
) -> None:
    lake.create_branch("dev", "main")
    shop.purge_table("sales.orders")
    clock.advance(60)
    assert Tasks(store).claim(Tasks(store).list(kind=PURGE_TABLE)[0].id, "a worker") is not None

    with pytest.raises(CommitFailedException, match="is purging content"):
        open_shop("dev").purge_table("sales.orders")

    assert open_shop("dev").table_exists("sales.orders")


def test_drops_of_many_branches_are_refused_before_they_are_too_many_for_a_task(lake: Catalog, store: Store) -> None:
    with pytest.raises(RefusedError, match=r"drops of content .* more than a task carries"):
        for number in range(100):
            ask_for_purge(store, wish(number), realm="acme", realm_key=0)

    (active,) = (task for task in purges(store) if task.is_active)
    assert len(active.arguments["drops"]) > 10


def test_the_same_drop_is_carried_once(lake: Catalog, store: Store) -> None:
    for number in (1, 2, 1):
        ask_for_purge(store, wish(number), realm="acme", realm_key=0)

    (active,) = (task for task in purges(store) if task.is_active)
    assert [drop["branch"] for drop in active.arguments["drops"]] == ["branch2", "branch1"]
