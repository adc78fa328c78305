"""After a collection has cut history, what can be read is read, and what cannot says so."""

from __future__ import annotations

import pytest

from fake_clock import FakeClock
from headwater.catalogs import Catalog, ContentKey, KeyAction, LogFilter
from headwater.clock import as_text
from headwater.commits import LogEnd
from headwater.errors import ExpiredError
from headwater.gc import collect_realm
from headwater.realms import Realm
from headwater.store import ObjectId, Store, id_text
from lakes import HOUR, put

ORDERS = ContentKey.of("orders")


@pytest.fixture
def cut(store: Store, realm: Realm, lake: Catalog, old_commits: list[ObjectId], clock: FakeClock) -> Catalog:
    """Of four commits the first two were collected: one is kept, and the one before it was HEAD within the grace."""
    lake.create_tag("v3")
    put(lake, 4)
    clock.advance(HOUR)
    collect_realm(store, realm.id)
    return lake


def test_log_has_the_kept_and_says_there_was_more(cut: Catalog) -> None:
    log = cut.log(where=LogFilter(key=ORDERS))

    assert ([entry.message for entry in log], log.end) == (["orders v4", "orders v3"], LogEnd.CUT)


def test_way_back_beyond_the_cut_has_expired(cut: Catalog, old_commits: list[ObjectId]) -> None:
    kept = cut.resolve("main~1")
    assert kept is not None and kept.id == old_commits[2]
    for text in ("main~2", "v3^1", f"main*{as_text(kept.commit.time - 1)}", f"main@{id_text(old_commits[1])}"):
        with pytest.raises(ExpiredError):
            cut.resolve(text)


def test_kept_commits_are_compared(cut: Catalog) -> None:
    assert [(change.action, change.key) for change in cut.diff("v3", "main").changes] == [("CHANGED", ORDERS)]


def test_history_of_a_key_ends_at_the_cut(cut: Catalog) -> None:
    history = cut.history(ORDERS)

    assert [one.action for one in history] == [KeyAction.CHANGED, KeyAction.PUT]
    assert history.end is LogEnd.CUT
