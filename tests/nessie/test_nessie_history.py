"""The log of a reference, as Nessie's clients read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from nessie_caller import NessieCaller, elements
from nessie_lakes import change, drop, fill, put, table

from guarded_server import GuardedServer, held
from headwater.access import Privilege
from headwater.catalogs import Catalog, Namespace
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH

P = Privilege


def messages_of(entries: Sequence[dict[str, Any]]) -> list[str]:
    return [entry["commitMeta"]["message"] for entry in entries]


def log(caller: NessieCaller, ref: str = "main", **query: Any) -> list[str]:
    path = f"trees/{ref}/history" if caller.version == 2 else f"trees/tree/{ref}/log"
    return messages_of(caller.read_all(path, "logEntries", **query))


@pytest.fixture
def hashes(lake: Catalog) -> list[str]:
    """Commits ``one`` to ``seven``, oldest first."""
    return [
        put(lake, {"a": Namespace(properties={"k": "v"})}, message="one", author="ann"),
        put(lake, {"a.t": table(1)}, message="two", author="bob"),
        change(lake, "a.t", 2, message="three"),
        put(lake, {"b": Namespace(), "b.t": table(3)}, message="four", author="ann"),
        drop(lake, "b.t", message="five"),
        put(lake, {"c": table(4)}, message="six"),
        change(lake, "c", 5, message="seven"),
    ]


LOG = ["seven", "six", "five", "four", "three", "two", "one"]


def test_log_tells_of_commits_newest_first(nessie: NessieCaller, hashes: list[str]) -> None:
    answer = nessie.get("trees/main/history").data

    assert set(answer) == {"hasMore", "token", "logEntries"} and messages_of(answer["logEntries"]) == LOG
    assert [entry["commitMeta"]["hash"] for entry in answer["logEntries"]] == hashes[::-1]
    oldest = answer["logEntries"][-1]
    assert set(oldest) == {"commitMeta"}
    assert oldest["commitMeta"]["authors"] == ["ann"]
    assert oldest["commitMeta"]["parentCommitHashes"] == [NO_ANCESTOR_HASH]


def test_log_of_version_1_has_its_names(nessie: NessieCaller, hashes: list[str]) -> None:
    answer = nessie.v1.get("trees/tree/main/log").data

    assert messages_of(answer["logEntries"]) == LOG
    assert answer["logEntries"][-1]["commitMeta"]["author"] == "ann"
    assert "authors" not in answer["logEntries"][-1]["commitMeta"]


@pytest.mark.parametrize("size", range(1, 9))
def test_pages_of_every_size_tell_the_same(nessie: NessieCaller, hashes: list[str], size: int) -> None:
    assert log(nessie, max_records=size) == LOG
    assert log(nessie, max_records=size, fetch="ALL") == LOG
    assert log(nessie.v1, max_records=size) == LOG
    assert log(nessie, max_records=size, filter="commit.author == 'ann'") == ["four", "one"]


def test_token_is_the_hash_of_the_next_commit(nessie: NessieCaller, lake: Catalog, hashes: list[str]) -> None:
    page = nessie.get("trees/main/history", max_records=3).data
    put(lake, {"later": table()})

    assert page["token"] == hashes[3] and page["hasMore"] is True
    assert messages_of(nessie.get("trees/main/history", page_token=page["token"]).data["logEntries"]) == LOG[3:]


def test_page_never_exceeds_its_bound(nessie: NessieCaller, lake: Catalog) -> None:
    for _ in range(251):
        lake.commit(None, [], allow_empty=True)
    page = nessie.get("trees/main/history", max_records=1000).data

    assert len(page["logEntries"]) == 250 and page["hasMore"] is True


@pytest.mark.parametrize(
    ("filter_text", "expected"),
    [
        ("commit.author == 'bob'", ["two"]),
        ("commit.author != 'ann' && commit.message.startsWith('s')", ["seven", "six"]),
        ("operations.exists(op, op.type == 'DELETE')", ["five"]),
        (
            "operations.exists(op, op.key.startsWith('b.') || op.name == 't' && op.type == 'PUT')",
            ["five", "four", "three", "two"],
        ),
        ("timestamp(commit.commitTime) > timestamp('2000-01-01T00:00:00Z')", LOG),
        ("false", []),
        ("", LOG),
    ],
)
def test_filters_choose_commits(nessie: NessieCaller, hashes: list[str], filter_text: str, expected: list[str]) -> None:
    assert log(nessie, filter=filter_text) == expected
    assert log(nessie.v1, filter=filter_text, max_records=1) == expected


def test_unsound_filter_is_refused(nessie: NessieCaller, hashes: list[str]) -> None:
    answer = nessie.get("trees/main/history", filter="comit.author == 'x'")

    assert answer.error == (400, "BAD_REQUEST") and "comit" in answer.message


def test_operations_come_with_their_contents(nessie: NessieCaller, lake: Catalog, hashes: list[str]) -> None:
    entries = nessie.get("trees/main/history", fetch="ALL").data["logEntries"]

    assert [entry["parentCommitHash"] for entry in entries] == [*hashes[-2::-1], NO_ANCESTOR_HASH]
    assert entries[2]["operations"] == [{"type": "DELETE", "key": elements("b", "t")}]
    [put_twice] = entries[4]["operations"]
    assert put_twice["type"] == "PUT" and put_twice["content"]["snapshotId"] == 2
    assert entries[6]["operations"][0]["content"]["properties"] == {"k": "v"}
    assert nessie.v1.get("trees/tree/main/log", fetch="ALL").data["logEntries"][2]["operations"] == entries[2]["operations"]


def test_commit_without_operations_omits_them(nessie: NessieCaller, lake: Catalog) -> None:
    lake.commit(None, [], message="empty", allow_empty=True)

    [entry] = nessie.get("trees/main/history", fetch="ALL").data["logEntries"]
    assert set(entry) == {"commitMeta", "parentCommitHash"}


@pytest.mark.parametrize("size", [None, 1, 2])
def test_log_ends_at_the_oldest_commit_asked_for(nessie: NessieCaller, hashes: list[str], size: int | None) -> None:
    for limit_hash in (hashes[3], "~3", f"{hashes[5]}~2"):
        assert log(nessie, limit_hash=limit_hash, max_records=size) == LOG[:4]
    assert log(nessie, limit_hash=NO_ANCESTOR_HASH, max_records=size) == LOG
    assert log(nessie.v1, start_hash=hashes[3], end_hash=hashes[5], max_records=size) == LOG[1:4]
    assert log(nessie.v1, start_hash=hashes[3], hash_on_ref=hashes[5], max_records=size) == LOG[1:4]
    assert log(nessie, ref="main~1", limit_hash="~2", max_records=size) == LOG[1:4]


def test_oldest_commit_has_to_be_in_the_history(nessie: NessieCaller, lake: Catalog, hashes: list[str]) -> None:
    lake.create_branch("dev", f"main@{hashes[2]}")
    elsewhere = put(lake, {"d": table()}, branch="dev")

    for limit_hash in (elsewhere, "ab" * 8, "ab" * 32):
        assert nessie.get("trees/main/history", limit_hash=limit_hash).error == (404, "REFERENCE_NOT_FOUND")
    assert nessie.get("trees/main/history", limit_hash="!").error == (400, "BAD_REQUEST")


def test_log_of_an_earlier_commit(nessie: NessieCaller, hashes: list[str]) -> None:
    for ref in (f"main@{hashes[2]}", f"@{hashes[2]}", "main~4"):
        assert log(nessie, ref=ref) == ["three", "two", "one"]
    assert log(nessie, ref=f"main@{NO_ANCESTOR_HASH}") == []


def test_log_of_an_empty_branch(nessie: NessieCaller) -> None:
    assert log(nessie) == []
    assert nessie.get("trees/nothing/history").error == (404, "REFERENCE_NOT_FOUND")


def test_foreign_tokens_are_no_place_in_a_log(nessie: NessieCaller, hashes: list[str]) -> None:
    assert nessie.get("trees/main/history", page_token="x").error == (400, "BAD_REQUEST")
    assert nessie.get("trees/main/history", page_token="ab" * 32).error == (404, "REFERENCE_NOT_FOUND")
    assert nessie.get("trees/main/history", page_token=NO_ANCESTOR_HASH).data["logEntries"] == []


@pytest.fixture
def guest(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> NessieCaller:
    """Somebody who may read the log of ``main``, list tables below ``sales``, and read those below ``sales.eu``."""
    lake = guarded.catalog()
    fill(lake)
    put(lake, {"stock.secret": table(9)}, message="secret")
    change(lake, "sales.orders", 30, message="orders")
    change(lake, "sales.eu.orders", 10, message="eu")
    guarded.make_principal(
        "guest",
        held(P.REFERENCE_READ_HISTORY, on="reference", references="main"),
        held(P.TABLE_LIST, "sales"),
        held(P.TABLE_READ_PROPERTIES, "sales", "eu"),
    )
    return caller_of("guest")


def test_log_hides_what_may_not_be_listed(guest: NessieCaller) -> None:
    entries = guest.get("trees/main/history", fetch="ALL").data["logEntries"]
    keys = [[".".join(op["key"]["elements"]) for op in entry.get("operations", ())] for entry in entries]

    assert messages_of(entries) == ["eu", "orders", "", ""]
    assert keys == [["sales.eu.orders"], [], [], ["sales.eu.orders", "sales.eu.refunds"]]


def test_filter_sees_only_what_its_caller_sees(guest: NessieCaller) -> None:
    assert log(guest, filter="commit.message == 'secret'") == []
    assert log(guest, filter="operations.exists(op, op.name == 'secret')") == []
    assert log(guest, filter="operations.exists(op, op.name == 'orders')") == ["eu", "orders", ""]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_pages_of_a_caller_tell_the_same(guest: NessieCaller, size: int) -> None:
    assert log(guest, max_records=size) == ["eu", "orders", "", ""]


def test_log_needs_the_right_to_read_it(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> None:
    fill(guarded.catalog())
    guarded.make_principal("lister", held(P.TABLE_LIST))

    assert caller_of("lister").get("trees/main/history").error == (403, "FORBIDDEN")
    assert caller_of("lister").v1.get("trees/tree/main/log").error == (403, "FORBIDDEN")


def test_place_in_a_log_is_for_its_caller_alone(guest: NessieCaller, caller_of: Callable[[str], NessieCaller]) -> None:
    token = guest.get("trees/main/history", max_records=1).data["token"]

    assert guest.get("trees/main/history", page_token=token[24:]).error == (400, "BAD_REQUEST")
    assert caller_of("root").get("trees/main/history", page_token=token).error == (400, "BAD_REQUEST")
