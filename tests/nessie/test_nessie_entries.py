"""Listings of contents, as Nessie's clients read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from nessie_caller import NessieCaller
from nessie_lakes import FILLED, drop, fill, put, table

from guarded_server import GuardedServer, held
from headwater.access import Privilege
from headwater.catalogs import Catalog
from headwater.commits import PageToken
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH

P = Privilege


def names_of(entries: Sequence[dict[str, Any]]) -> list[str]:
    return [".".join(entry["name"]["elements"]) for entry in entries]


def listed(caller: NessieCaller, **query: Any) -> list[str]:
    path = "trees/main/entries" if caller.version == 2 else "trees/tree/main/entries"
    return names_of(caller.read_all(path, "entries", **query))


@pytest.fixture
def filled(lake: Catalog) -> str:
    return fill(lake)


def test_entries_come_with_the_commit(nessie: NessieCaller, lake: Catalog, filled: str) -> None:
    answer = nessie.get("trees/main/entries").data

    assert names_of(answer["entries"]) == FILLED
    assert (answer["hasMore"], answer["token"]) == (False, None)
    assert answer["effectiveReference"] == {"type": "BRANCH", "name": "main", "hash": filled}
    contents = {str(content.id) for content in lake.get_contents(None, [e.key for e in lake.entries().entries]).values()}
    assert {entry["contentId"] for entry in answer["entries"]} == contents
    assert {entry["type"] for entry in answer["entries"]} == {"NAMESPACE", "ICEBERG_TABLE", "ICEBERG_VIEW"}
    assert set(answer["entries"][0]) == {"type", "name", "contentId"}


def test_entries_of_version_1_tell_less(nessie: NessieCaller, filled: str) -> None:
    answer = nessie.v1.get("trees/tree/main/entries").data

    assert set(answer) == {"hasMore", "token", "entries"} and names_of(answer["entries"]) == FILLED
    assert answer["entries"][0] == {"type": "NAMESPACE", "name": {"elements": ["sales"]}}


@pytest.mark.parametrize("size", range(1, 11))
def test_pages_of_every_size_list_the_same(nessie: NessieCaller, filled: str, size: int) -> None:
    assert listed(nessie, max_records=size) == FILLED
    assert listed(nessie.v1, max_records=size) == FILLED
    assert listed(nessie, max_records=size, filter="entry.name.startsWith('o') || entry.contentType == 'NAMESPACE'") == [
        "sales",
        "sales.eu",
        "sales.eu.orders",
        "sales.orders",
        "stock",
    ]


def test_pages_stay_at_the_first_commit(nessie: NessieCaller, lake: Catalog, filled: str) -> None:
    first = nessie.get("trees/main/entries", max_records=4).data
    drop(lake, "stock.items", "stock.places")
    second = nessie.get("trees/main/entries", max_records=10, page_token=first["token"]).data

    assert names_of(first["entries"] + second["entries"]) == FILLED
    assert second["effectiveReference"]["hash"] == filled


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"prefix_key": "sales.eu"}, FILLED[1:4]),
        ({"prefix_key": "sales.orders"}, ["sales.orders"]),
        ({"prefix_key": "sal"}, []),
        ({"min_key": "sales.orders", "max_key": "stock"}, FILLED[4:7]),
        ({"min_key": "sales.p"}, FILLED[5:]),
        ({"max_key": "sales.eu"}, FILLED[:2]),
        ({"max_key": ""}, FILLED),
        ({"key": ["stock", "nothing", "sales"]}, ["sales", "stock"]),
        ({"key": ["stock", "sales"], "max_key": "sales"}, ["sales"]),
        ({"key": ["stock", "sales.eu"], "prefix_key": "sales"}, ["sales.eu"]),
        ({"key": ["stock", "sales.orders"], "filter": "entry.contentType == 'NAMESPACE'"}, ["stock"]),
        ({"filter": "entry.contentType == 'NAMESPACE' && size(entry.keyElements) == 1"}, ["sales", "stock"]),
        ({"filter": "entry.namespace.startsWith('sales')", "min_key": "sales.orders"}, ["sales.orders", "sales.report"]),
        ({"filter": "false"}, []),
        ({"filter": ""}, FILLED),
    ],
)
def test_entries_are_chosen_by_the_query(nessie: NessieCaller, filled: str, query: dict[str, Any], expected: list[str]) -> None:
    assert listed(nessie, **query) == expected
    assert listed(nessie, **query, max_records=1) == expected


def test_prefix_stands_for_itself(nessie: NessieCaller, filled: str) -> None:
    for other in ("min_key", "max_key"):
        assert nessie.get("trees/main/entries", prefix_key="a", **{other: "b"}).error == (400, "BAD_REQUEST")


def test_entries_come_with_their_contents(nessie: NessieCaller, filled: str) -> None:
    answer = nessie.get("trees/main/entries", content="true", prefix_key="sales").data

    assert [entry["content"]["id"] == entry["contentId"] for entry in answer["entries"]] == [True] * 6
    assert answer["entries"][0]["content"]["properties"] == {"owner": "ann"}
    assert answer["entries"][2]["content"]["snapshotId"] == 1


def test_unsound_filters_name_what_is_wrong(nessie: NessieCaller, filled: str) -> None:
    for caller, path in ((nessie, "trees/main/entries"), (nessie.v1, "trees/tree/main/entries")):
        answer = caller.get(path, filter="entry.invented == 'x'")
        assert answer.error == (400, "BAD_REQUEST") and "invented" in answer.message
        assert caller.get(path, filter="entry.name ==").error == (400, "BAD_REQUEST")


def test_foreign_tokens_are_refused(nessie: NessieCaller, filled: str) -> None:
    token = nessie.get("trees/main/entries", max_records=1).data["token"]
    for wrong in ("x", "x" * 40, token[:-2], "é"):
        assert nessie.get("trees/main/entries", page_token=wrong).error == (400, "BAD_REQUEST")
    assert nessie.get("trees/main/entries", page_token=token, prefix_key="stock").error == (400, "BAD_REQUEST")
    assert nessie.get("trees/main/entries", page_token=token, filter="true").error == (400, "BAD_REQUEST")


def test_negative_page_size_is_refused(nessie: NessieCaller, filled: str) -> None:
    assert nessie.get("trees/main/entries", max_records=-1).error == (400, "BAD_REQUEST")
    assert listed(nessie, max_records=0) == FILLED


def test_entries_of_an_empty_branch(nessie: NessieCaller) -> None:
    answer = nessie.get("trees/main/entries").data

    assert answer["entries"] == [] and answer["effectiveReference"]["hash"] == NO_ANCESTOR_HASH
    assert nessie.get("trees/nothing/entries").error == (404, "REFERENCE_NOT_FOUND")


def test_entries_of_an_earlier_commit(nessie: NessieCaller, lake: Catalog, filled: str) -> None:
    put(lake, {"later": table()})

    assert names_of(nessie.get("trees/main~1/entries").data["entries"]) == FILLED
    detached = nessie.get(f"trees/@{filled}/entries").data
    assert names_of(detached["entries"]) == FILLED and detached["effectiveReference"]["type"] == "DETACHED"
    assert names_of(nessie.v1.get("trees/tree/main/entries", hash_on_ref="~1").data["entries"]) == FILLED
    assert nessie.get(f"trees/main@{NO_ANCESTOR_HASH}/entries").data["entries"] == []


@pytest.mark.parametrize("size", [1, 2, 3, None])
def test_keys_of_version_1_are_cut(nessie: NessieCaller, filled: str, size: int | None) -> None:
    assert listed(nessie.v1, namespace_depth=1, max_records=size) == ["sales", "stock"]
    assert listed(nessie.v1, namespace_depth=2, max_records=size) == [
        "sales.eu",
        "sales.orders",
        "sales.report",
        "stock.items",
        "stock.places",
    ]
    assert listed(nessie.v1, namespace_depth=3, max_records=size) == ["sales.eu.orders", "sales.eu.refunds"]
    assert listed(nessie.v1, namespace_depth=0, max_records=size) == FILLED


@pytest.fixture
def guest(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> NessieCaller:
    """Somebody who may list what is below ``sales.eu``, read one table of it, and list one below ``stock``."""
    fill(guarded.catalog())
    guarded.make_principal(
        "guest",
        held(P.TABLE_LIST, "sales", "eu"),
        held(P.TABLE_READ_PROPERTIES, "sales", "eu", "refunds", on="table"),
        held(P.TABLE_LIST, "stock", "places", on="table"),
    )
    return caller_of("guest")


SEEN = ["sales", "sales.eu", "sales.eu.orders", "sales.eu.refunds", "stock", "stock.places"]


def test_listing_has_what_may_be_listed_alone(guest: NessieCaller) -> None:
    for size in (None, 1, 2, 3, 4, 5, 6, 7):
        assert listed(guest, max_records=size) == SEEN
        assert listed(guest, max_records=size, filter="entry.contentType == 'ICEBERG_TABLE'") == [
            SEEN[number] for number in (2, 3, 5)
        ]
    assert listed(guest, key=["sales.orders", "stock.places"]) == ["stock.places"]
    assert listed(guest.v1, namespace_depth=2, max_records=1) == ["sales.eu", "stock.places"]


def test_contents_are_left_out_where_they_may_not_be_read(guest: NessieCaller) -> None:
    entries = guest.get("trees/main/entries", content="true").data["entries"]
    contents = dict(zip(names_of(entries), (entry.get("content") for entry in entries), strict=True))

    assert contents["sales.eu.refunds"]["snapshotId"] == 2
    assert contents["sales.eu.orders"] is None and contents["stock.places"] is None
    assert "properties" not in contents["sales"]


def test_token_names_no_hidden_key(guest: NessieCaller) -> None:
    for size in (1, 2, 3, 4, 5):
        page = guest.get("trees/main/entries", max_records=size).data
        last = PageToken.from_text(page["token"][24:]).last

        assert last.decode().split("\0") == page["entries"][-1]["name"]["elements"]


def test_token_is_for_its_caller_alone(guest: NessieCaller, caller_of: Callable[[str], NessieCaller]) -> None:
    token = guest.get("trees/main/entries", max_records=1).data["token"]

    assert caller_of("root").get("trees/main/entries", page_token=token).error == (400, "BAD_REQUEST")
    assert guest.get("trees/main/entries", page_token=token[24:]).error == (400, "BAD_REQUEST")


def test_pages_of_a_caller_stay_at_the_commit_that_it_names(
    guest: NessieCaller, guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]
) -> None:
    path = f"{guest.at_head()}/entries"
    first = guest.get(path, max_records=2).data
    put(guarded.catalog(), {"sales.eu.new": table()})
    guarded.clock.advance(30)
    second = guest.get(path, max_records=10, page_token=first["token"]).data

    assert names_of(first["entries"] + second["entries"]) == SEEN
    assert second["effectiveReference"] == first["effectiveReference"]
