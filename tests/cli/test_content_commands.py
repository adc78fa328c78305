"""``headwater catalog`` tables, content, find, log, history and diff: what a catalog holds, and what it held."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.catalogs import Catalogs, CommitMeta, ContentKey, Delete, IcebergTable, Namespace, Put
from headwater.cli.command_options import END_TIME
from headwater.iceberg.metadata_json import split_metadata
from headwater.realms import RealmRegistry

SALES, ORDERS, LATER = ContentKey.of("sales"), ContentKey.of("sales", "orders"), ContentKey.of("sales", "later")
DOCUMENT = b'{"format-version":2,"last-updated-ms":123456789012345678901234567890}'
LAKE = "acme/lake"


@pytest.fixture
def commits(store: Store, catalog: str) -> list[str]:
    """The hashes of three commits: a namespace by ann, a table in it by bob, and its rename by ann."""
    opened = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
    table = IcebergTable(metadata_location="s3://lake/orders/metadata/1.json", snapshot_id=7)
    first = opened.commit(None, [Put(SALES, Namespace(properties={"owner": "ann"}))], authors=["ann"], message="space")
    meta = CommitMeta(message="table", authors=("bob",), properties={"ticket": ("1", "2")})
    second = opened.commit(None, [Put(ORDERS, table, metadata=split_metadata(DOCUMENT))], meta=meta)
    there = opened.get_content(None, ORDERS)
    assert there is not None
    third = opened.commit(None, [Delete(ORDERS), Put(LATER, there)], authors=["ann"], message="rename")
    return [f"{commit.commit_id:016x}" for commit in (first, second, third)]


def keys(shown: list[dict[str, str]]) -> list[str]:
    return [entry["key"] for entry in shown]


def test_listing_goes_on_after_its_token(headwater: CommandLine, commits: list[str]) -> None:
    page = headwater.data("catalog", "tables", LAKE, "--limit", "1")
    rest = headwater.data("catalog", "tables", LAKE, "--after", page["nextPageToken"])

    assert (keys(page["items"]), keys(rest["items"]), rest["nextPageToken"]) == (["sales"], ["sales.later"], None)
    assert f"--after {page['nextPageToken']}" in headwater("catalog", "tables", LAKE, "--limit", "1").stderr


@pytest.mark.parametrize(
    ("prefix", "why"),
    [
        ("none", "there is no namespace none in catalog 'lake' of realm 'acme' at main"),
        ("sales.later", "sales.later of catalog 'lake' of realm 'acme' at main is not a namespace"),
    ],
)
def test_listing_below_a_key_that_is_no_namespace_says_so(
    headwater: CommandLine, commits: list[str], prefix: str, why: str
) -> None:
    told = headwater("-o", "json", "catalog", "tables", LAKE, "--prefix", prefix)

    assert (told.exit_code, json.loads(told.stdout)["items"]) == (0, [])
    assert why in told.stderr


def test_listing_below_an_empty_namespace_says_that_it_is_empty(headwater: CommandLine, commits: list[str]) -> None:
    assert "namespace sales of catalog 'lake'" in headwater("catalog", "tables", f"{LAKE}@main~2", "--prefix", "sales").stderr


def test_range_that_leaves_nothing_is_no_empty_namespace(headwater: CommandLine, commits: list[str]) -> None:
    assert headwater("catalog", "tables", LAKE, "--prefix", "sales", "--from", "zzz").stderr == ""


def test_history_of_a_key_that_never_was_is_an_error(headwater: CommandLine, commits: list[str]) -> None:
    told = headwater("catalog", "history", LAKE, "sales.none")

    assert told.exit_code == 3
    assert "sales.none never stood in catalog 'lake' of realm 'acme' at main" in told.stderr


def test_properties_of_a_namespace_are_shown_each_on_a_line(headwater: CommandLine, commits: list[str]) -> None:
    assert headwater.ok("catalog", "content", LAKE, "sales").endswith("fields:\n  properties:\n    owner: ann\n")


def test_range_of_keys_is_listed_backwards(headwater: CommandLine, commits: list[str]) -> None:
    assert keys(headwater.items("catalog", "tables", LAKE, "--from", "sales.a", "--to", "sales.m")) == ["sales.later"]
    assert keys(headwater.items("catalog", "tables", LAKE, "--reverse")) == ["sales.later", "sales"]


def test_earlier_state_is_listed_by_a_way_back(headwater: CommandLine, commits: list[str]) -> None:
    assert keys(headwater.items("catalog", "tables", f"{LAKE}@main~1")) == ["sales", "sales.orders"]
    assert keys(headwater.items("catalog", "tables", f"{LAKE}@{commits[1]}~1")) == ["sales"]


@pytest.mark.parametrize("reference", ["none", "main~9", "main@0123456789abcdef"])
def test_reference_that_is_not_there_is_told_with_its_realm(headwater: CommandLine, commits: list[str], reference: str) -> None:
    told = headwater("catalog", "tables", f"{LAKE}@{reference}")

    assert told.exit_code in (3, 4)
    assert "realm 'acme'" in told.stderr


def test_reference_that_is_none_names_the_place(headwater: CommandLine, commits: list[str]) -> None:
    result = headwater("catalog", "tables", f"{LAKE}@main~x")

    assert result.exit_code == 2
    assert "'main~x' is not a valid reference, at character 5" in result.stderr


def test_key_that_is_none_is_refused(headwater: CommandLine, commits: list[str]) -> None:
    result = headwater("catalog", "content", LAKE, "sales..orders")

    assert result.exit_code == 2
    assert "element 2 is empty" in result.stderr


def test_content_is_shown_with_all_its_fields(headwater: CommandLine, commits: list[str]) -> None:
    space, table = headwater.data("catalog", "content", LAKE, "sales", "sales.later")

    assert space["fields"] == {"properties": {"owner": "ann"}}
    assert table["fields"] == {
        "metadataLocation": "s3://lake/orders/metadata/1.json",
        "snapshotId": 7,
        "schemaId": 0,
        "specId": 0,
        "sortOrderId": 0,
        "tableUuid": None,
    }


def test_contents_that_are_not_there_are_named(headwater: CommandLine, commits: list[str]) -> None:
    result = headwater("-o", "json", "catalog", "content", LAKE, "sales", "nope", "sales.none")

    assert (result.exit_code, len(json.loads(result.stdout))) == (3, 1)
    assert "not in catalog 'lake' of realm 'acme' at main: nope, sales.none" in result.stderr


def test_stored_metadata_document_is_printed(headwater: CommandLine, commits: list[str]) -> None:
    assert json.loads(headwater.ok("catalog", "content", f"{LAKE}@main~1", "sales.orders", "--metadata")) == json.loads(
        DOCUMENT
    )


def test_content_without_stored_metadata_says_so(headwater: CommandLine, commits: list[str]) -> None:
    result = headwater("catalog", "content", LAKE, "sales", "--metadata")

    assert result.exit_code == 3
    assert "no metadata document is stored with sales" in result.stderr


def test_content_is_found_by_its_id(headwater: CommandLine, commits: list[str]) -> None:
    content_id = headwater.data("catalog", "content", LAKE, "sales.later")[0]["contentId"]

    assert keys(headwater.data("catalog", "find", LAKE, content_id)) == ["sales.later"]
    assert keys(headwater.data("catalog", "find", f"{LAKE}@main~1", content_id)) == ["sales.orders"]
    assert headwater("catalog", "find", LAKE, "00000000-0000-0000-0000-000000000000").exit_code == 3


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        (["--author", "ann"], [2, 0]),
        (["--action", "DELETE"], [2]),
        (["--key", "sales.orders"], [2, 1]),
        (["--prefix", "sales", "--author", "bob"], [1]),
        (["--type", "NAMESPACE"], [0]),
        (["--message", "^(space|table)$"], [1, 0]),
        (["--until", "2020-01-01"], []),
        (["--since", "2020-01-01", "--oldest-first"], [0, 1, 2]),
        (["--since", "1h"], [2, 1, 0]),
        (["--until", "1h"], []),
        (["--filter", "commit.author == 'ann' && operations.exists(op, op.type == 'DELETE')"], [2]),
    ],
)
def test_log_is_filtered(headwater: CommandLine, commits: list[str], filters: list[str], numbers: list[int]) -> None:
    shown = headwater.data("catalog", "log", LAKE, *filters)

    assert [commits.index(entry["hash"]) for entry in shown] == numbers


def test_log_ends_at_the_oldest_commit_asked_for(headwater: CommandLine, commits: list[str]) -> None:
    shown = headwater.data("catalog", "log", LAKE, "--oldest", commits[1])

    assert [commits.index(entry["hash"]) for entry in shown] == [2, 1]


def test_listings_are_filtered(headwater: CommandLine, commits: list[str]) -> None:
    views = headwater.items("catalog", "tables", LAKE, "--filter", "entry.contentType == 'NAMESPACE'")
    changes = headwater.items("catalog", "diff", LAKE, commits[0], "main", "--filter", "key.namespace == 'nothing'")
    branches = headwater.data("catalog", "branch", "list", LAKE, "--filter", "ref.name.startsWith('m')")

    assert {entry["type"] for entry in views} == {"NAMESPACE"}
    assert (changes, [branch["name"] for branch in branches]) == ([], ["main"])


def test_time_as_the_log_shows_it_finds_its_commit(headwater: CommandLine, commits: list[str]) -> None:
    shown = headwater.data("catalog", "log", LAKE)[0]["time"]

    assert headwater.data("catalog", "log", LAKE, "--until", shown)[0]["hash"] == commits[-1]
    assert headwater.data("catalog", "log", f"{LAKE}@main*{shown}")[0]["hash"] == commits[-1]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-05-28", "2026-05-28T23:59:59.999999"),
        ("2026-05-28T20:26:40", "2026-05-28T20:26:40.999999"),
        ("2026-05-28T20:26:40.5", "2026-05-28T20:26:40.500000"),
        ("2026-05-28T20:26:40,5", "2026-05-28T20:26:40.500000"),
    ],
)
def test_time_that_ends_a_range_ends_with_what_it_names(text: str, time: str) -> None:
    micros = END_TIME.convert(text, None, None)

    assert micros == round(datetime.fromisoformat(f"{time}+00:00").timestamp() * 1_000_000)


def test_properties_with_many_values_are_in_the_log(headwater: CommandLine, commits: list[str]) -> None:
    assert headwater.data("catalog", "log", LAKE, "--author", "bob")[0]["properties"] == {"ticket": ["1", "2"]}


def test_cut_log_says_that_there_may_be_more(headwater: CommandLine, commits: list[str]) -> None:
    assert "there may be more than these 2: a higher --limit" in headwater("catalog", "log", LAKE, "--limit", "2").stderr
    assert headwater("catalog", "log", LAKE, "--limit", "3").stderr == ""


def test_bounded_search_says_how_to_go_on(headwater: CommandLine, commits: list[str]) -> None:
    told = headwater("catalog", "log", LAKE, "--message", "space", "--within", "2").stderr
    ref = told.split("with @")[1].split()[0]

    assert "looked at 2 commits" in told
    assert [entry["message"] for entry in headwater.data("catalog", "log", f"{LAKE}@{ref}")] == ["space"]


def test_history_of_a_key_goes_through_its_rename(headwater: CommandLine, commits: list[str]) -> None:
    shown = headwater.data("catalog", "history", LAKE, "sales.later")

    assert [(change["action"], change["key"], change["renamedFrom"]) for change in shown] == [
        ("RENAMED", "sales.later", "sales.orders"),
        ("CREATED", "sales.orders", None),
    ]


def test_bounded_history_says_under_which_key_to_go_on(headwater: CommandLine, commits: list[str]) -> None:
    told = headwater("catalog", "history", LAKE, "sales.later", "--within", "1").stderr

    assert f"with @{commits[2]}~1 come those of sales.orders before" in told


def test_two_references_are_compared(headwater: CommandLine, commits: list[str]) -> None:
    shown = headwater.items("catalog", "diff", LAKE, "main~2", "main")
    renamed = headwater.items("catalog", "diff", LAKE, "main~1", "main")

    assert [(change["action"], change["key"]) for change in shown] == [("ADDED", "sales.later")]
    assert [(change["action"], change["key"], change["renamedFrom"], change["renamedTo"]) for change in renamed] == [
        ("ADDED", "sales.later", "sales.orders", None),
        ("REMOVED", "sales.orders", None, "sales.later"),
    ]


def test_equal_references_have_no_differences(headwater: CommandLine, commits: list[str]) -> None:
    assert headwater.ok("catalog", "diff", LAKE, "main", commits[2]) == ""


def test_branch_is_not_assigned_to_a_relative_reference(headwater: CommandLine, commits: list[str]) -> None:
    result = headwater("catalog", "branch", "assign", LAKE, "main", "main~1")

    assert result.exit_code == 5
    assert "counts back from a branch" in result.stderr
    told = headwater.data("catalog", "branch", "assign", LAKE, "main", f"main@{commits[2]}~1")
    assert told["hash"] == commits[1]


def test_tag_is_created_at_what_is_counted_from_a_commit(headwater: CommandLine, commits: list[str]) -> None:
    made = headwater.data("catalog", "tag", "create", LAKE, "v1", "--source", f"main@{commits[2]}~2")

    assert made["hash"] == commits[0]
    assert headwater("catalog", "tag", "create", LAKE, "v2", "--source", "main~2").exit_code == 5
