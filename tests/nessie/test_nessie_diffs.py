"""What differs between two references, as Nessie's clients read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from nessie_caller import NessieCaller
from nessie_lakes import change, drop, fill, key_of, put, table

from guarded_server import GuardedServer, held
from headwater.access import Privilege
from headwater.catalogs import Catalog, Delete, IcebergTable, Put
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH

P = Privilege


def diff_on(lake: Catalog) -> tuple[str, str]:
    """A branch ``dev`` that changed, dropped, created and renamed something. Returns the hashes of both."""
    base = fill(lake)
    lake.create_branch("dev")
    change(lake, "sales.eu.orders", 10, branch="dev")
    drop(lake, "sales.report", branch="dev")
    moved = lake.get_content("dev", key_of("stock.items"))
    assert isinstance(moved, IcebergTable)
    lake.commit("dev", [Delete(key_of("stock.items")), Put(key_of("stock.wares"), moved)])
    return base, put(lake, {"sales.new": table(11)}, branch="dev")


@pytest.fixture
def both(lake: Catalog) -> tuple[str, str]:
    return diff_on(lake)


def changes_of(diffs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What happened to each key, in their order."""
    kinds = {(False, True): "ADDED", (True, False): "REMOVED", (True, True): "CHANGED"}
    return {".".join(diff["key"]["elements"]): kinds[diff["from"] is not None, diff["to"] is not None] for diff in diffs}


def compared(caller: NessieCaller, path: str = "trees/main/diff/dev", **query: Any) -> dict[str, str]:
    return changes_of(caller.read_all(path, "diffs", **query))


CHANGES = {
    "sales.eu.orders": "CHANGED",
    "sales.new": "ADDED",
    "sales.report": "REMOVED",
    "stock.items": "REMOVED",
    "stock.wares": "ADDED",
}


def test_differences_come_with_both_contents(nessie: NessieCaller, both: tuple[str, str]) -> None:
    answer = nessie.get("trees/main/diff/dev").data

    assert changes_of(answer["diffs"]) == CHANGES
    assert (answer["diffs"][0]["from"]["snapshotId"], answer["diffs"][0]["to"]["snapshotId"]) == (1, 10)
    assert answer["diffs"][3]["from"]["id"] == answer["diffs"][4]["to"]["id"]
    assert answer["effectiveFromReference"] == {"type": "BRANCH", "name": "main", "hash": both[0]}
    assert answer["effectiveToReference"] == {"type": "BRANCH", "name": "dev", "hash": both[1]}


def test_differences_of_version_1_are_told_alone(nessie: NessieCaller, both: tuple[str, str]) -> None:
    answer = nessie.v1.get("diffs/main...dev").data

    assert set(answer) == {"hasMore", "token", "diffs"} and changes_of(answer["diffs"]) == CHANGES
    assert all(set(diff) == {"key", "from", "to"} for diff in answer["diffs"])
    assert compared(nessie.v1, f"diffs/main*{both[0]}...dev*{both[1]}") == CHANGES
    assert compared(nessie.v1, f"diffs/dev*{both[0]}...dev") == CHANGES
    assert nessie.v1.get("diffs/main").error == (400, "BAD_REQUEST")


@pytest.mark.parametrize("size", range(1, 7))
def test_pages_of_every_size_compare_the_same(nessie: NessieCaller, both: tuple[str, str], size: int) -> None:
    assert list(compared(nessie, max_records=size)) == list(CHANGES)
    assert list(compared(nessie, max_records=size, filter="key.namespace == 'sales'")) == ["sales.new", "sales.report"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"prefix_key": "sales"}, ["sales.eu.orders", "sales.new", "sales.report"]),
        ({"prefix_key": "sales.report"}, ["sales.report"]),
        ({"min_key": "sales.new", "max_key": "stock.items"}, ["sales.new", "sales.report", "stock.items"]),
        ({"key": ["stock.wares", "stock.places", "sales.new"]}, ["sales.new", "stock.wares"]),
        ({"key": ["stock.wares", "sales.new"], "filter": "key.name == 'new'"}, ["sales.new"]),
        ({"key": ["stock.wares", "sales.new"], "prefix_key": "stock"}, ["stock.wares"]),
        ({"filter": "key.key.startsWith('stock.')"}, ["stock.items", "stock.wares"]),
    ],
)
def test_differences_are_chosen_by_the_query(
    nessie: NessieCaller, both: tuple[str, str], query: dict[str, Any], expected: list[str]
) -> None:
    assert list(compared(nessie, **query)) == expected


def test_pages_stay_at_the_compared_commits(nessie: NessieCaller, lake: Catalog, both: tuple[str, str]) -> None:
    first = nessie.get("trees/main/diff/dev", max_records=2).data
    put(lake, {"zoo": table()}, branch="dev")
    second = nessie.get("trees/main/diff/dev", page_token=first["token"]).data

    assert changes_of(first["diffs"] + second["diffs"]) == CHANGES
    assert second["effectiveToReference"]["hash"] == both[1]


def test_comparison_with_the_state_before_the_first_commit(nessie: NessieCaller, both: tuple[str, str]) -> None:
    path = f"trees/main@{NO_ANCESTOR_HASH}/diff/main@{both[0]}"

    assert len(compared(nessie, path)) == 9 and set(compared(nessie, path, max_records=2).values()) == {"ADDED"}
    assert compared(nessie, f"trees/main/diff/main@{NO_ANCESTOR_HASH}", key="stock") == {"stock": "REMOVED"}


def test_reference_equals_itself(nessie: NessieCaller, both: tuple[str, str]) -> None:
    assert compared(nessie, f"trees/main/diff/@{both[0]}") == {}


def test_missing_references_and_unsound_queries(nessie: NessieCaller, both: tuple[str, str]) -> None:
    assert nessie.get("trees/main/diff/nothing").error == (404, "REFERENCE_NOT_FOUND")
    assert nessie.get("trees/nothing/diff/main").error == (404, "REFERENCE_NOT_FOUND")
    assert nessie.get("trees/main/diff/dev", filter="entry.name == 'x'").error == (400, "BAD_REQUEST")
    assert nessie.get("trees/main/diff/dev", prefix_key="a", min_key="b").error == (400, "BAD_REQUEST")
    assert nessie.get("trees/main/diff/dev", page_token="x").error == (400, "BAD_REQUEST")


def test_token_belongs_to_its_comparison(nessie: NessieCaller, both: tuple[str, str]) -> None:
    token = nessie.get("trees/main/diff/dev", max_records=1).data["token"]

    assert nessie.get("trees/main/diff/dev", page_token=token, prefix_key="sales").error == (400, "BAD_REQUEST")
    assert nessie.get("trees/main/diff/dev", page_token=token, filter="true").error == (400, "BAD_REQUEST")


@pytest.fixture
def guest(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> NessieCaller:
    """Somebody who may compare branches, read what is below ``sales``, and list what is below ``stock``."""
    diff_on(guarded.catalog())
    guarded.make_principal(
        "guest",
        held(P.REFERENCE_READ_HISTORY, on="reference", references="*"),
        held(P.TABLE_LIST, "sales", references="*"),
        held(P.TABLE_READ_PROPERTIES, "sales", references="*"),
        held(P.TABLE_LIST, "stock", references="*"),
    )
    return caller_of("guest")


def test_comparison_has_what_may_be_read_alone(guest: NessieCaller) -> None:
    for size in (None, 1, 2, 3):
        assert list(compared(guest, max_records=size)) == ["sales.eu.orders", "sales.new"]
    assert list(compared(guest, key=["sales.new", "stock.wares"])) == ["sales.new"]
    assert list(compared(guest.v1, "diffs/main...dev")) == ["sales.eu.orders", "sales.new"]


def test_comparison_needs_the_right_to_read_history(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> None:
    diff_on(guarded.catalog())
    guarded.make_principal(
        "half",
        held(P.REFERENCE_READ_HISTORY, on="reference", references="main"),
        held(P.TABLE_LIST, references="*"),
        held(P.TABLE_READ_PROPERTIES, references="*"),
    )

    assert caller_of("half").get("trees/main/diff/dev").error == (403, "FORBIDDEN")
    assert caller_of("half").get("trees/dev/diff/main").error == (403, "FORBIDDEN")
    assert caller_of("half").get("trees/main/diff/main").data["diffs"] == []
