"""Branches and tags, as Nessie's clients read and list them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from nessie_caller import NessieCaller
from nessie_lakes import change, fill, put, table

from fake_clock import FakeClock
from guarded_server import GuardedServer, held
from headwater.access import Privilege
from headwater.catalogs import Catalog
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH

P = Privilege


def names_of(references: Sequence[dict[str, Any]]) -> list[str]:
    return [reference["name"] for reference in references]


def listed(caller: NessieCaller, **query: Any) -> list[str]:
    return names_of(caller.read_all("trees", "references", **query))


def metadata_of(caller: NessieCaller, name: str) -> dict[str, Any]:
    """The metadata of a reference, which its listing tells, too."""
    alone = caller.get(f"trees/{name}", fetch="ALL").data["reference"]
    assert alone in caller.get("trees", fetch="ALL").data["references"]
    metadata: dict[str, Any] = alone["metadata"]
    return metadata


def branches_on(lake: Catalog) -> dict[str, str]:
    """``dev`` is two commits ahead of ``main`` and one behind, ``old`` is a tag, and ``empty`` has no commit."""
    base = fill(lake)
    lake.create_branch("dev")
    lake.create_tag("old")
    lake.refs.create_empty_ref(lake.branch("dev").kind, "empty")
    put(lake, {"sales.dev": table(1)}, branch="dev", message="first of dev")
    dev = change(lake, "sales.dev", 2, branch="dev", message="second of dev")
    return {"old": base, "dev": dev, "main": put(lake, {"zoo": table(3)}, message="more on main"), "empty": NO_ANCESTOR_HASH}


@pytest.fixture
def hashes(lake: Catalog) -> dict[str, str]:
    return branches_on(lake)


def test_default_branch_is_read_by_its_name(nessie: NessieCaller) -> None:
    assert nessie.get("trees/main").data == {"reference": {"type": "BRANCH", "name": "main", "hash": NO_ANCESTOR_HASH}}
    assert nessie.v1.get("trees/tree").data == {"type": "BRANCH", "name": "main", "hash": NO_ANCESTOR_HASH}


def test_unknown_reference_is_told_as_missing(nessie: NessieCaller) -> None:
    assert nessie.get("trees/nothing").error == (404, "REFERENCE_NOT_FOUND")
    assert nessie.v1.get("trees/tree/nothing").error == (404, "REFERENCE_NOT_FOUND")


def test_root_reads_a_guarded_catalog(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> None:
    assert caller_of("root").hash_of("main") == NO_ANCESTOR_HASH


def test_references_are_listed_by_name(nessie: NessieCaller, hashes: dict[str, str]) -> None:
    answer = nessie.get("trees").data

    assert answer == {
        "hasMore": False,
        "token": None,
        "references": [
            {"type": "BRANCH", "name": "dev", "hash": hashes["dev"]},
            {"type": "BRANCH", "name": "empty", "hash": NO_ANCESTOR_HASH},
            {"type": "BRANCH", "name": "main", "hash": hashes["main"]},
            {"type": "TAG", "name": "old", "hash": hashes["old"]},
        ],
    }
    assert nessie.v1.get("trees").data == answer


@pytest.mark.parametrize("size", range(1, 6))
def test_pages_of_every_size_list_the_same(nessie: NessieCaller, hashes: dict[str, str], size: int) -> None:
    assert listed(nessie, max_records=size) == ["dev", "empty", "main", "old"]
    assert listed(nessie.v1, max_records=size, fetch="ALL") == ["dev", "empty", "main", "old"]
    assert listed(nessie, max_records=size, filter="refType == 'BRANCH' && ref.name != 'empty'") == ["dev", "main"]


@pytest.mark.parametrize(
    ("filter_text", "expected"),
    [
        ("ref.name == 'dev'", ["dev"]),
        ("refType == 'TAG' && commit.message == 'fill'", ["old"]),
        ("commit.message.endsWith('main')", ["main"]),
        ("refMeta.numCommitsAhead > 1", ["dev"]),
        ("refMeta.numTotalCommits == 0", ["empty"]),
        ("commit.hash == ''", ["empty"]),
        ("", ["dev", "empty", "main", "old"]),
    ],
)
def test_filters_choose_references(nessie: NessieCaller, hashes: dict[str, str], filter_text: str, expected: list[str]) -> None:
    assert listed(nessie, filter=filter_text) == expected
    assert listed(nessie.v1, filter=filter_text, max_records=1) == expected


def test_unsound_queries_are_refused(nessie: NessieCaller, hashes: dict[str, str]) -> None:
    answer = nessie.get("trees", filter="refs.name == 'x'")

    assert answer.error == (400, "BAD_REQUEST") and "refs" in answer.message
    assert nessie.get("trees", page_token="x").error == (400, "BAD_REQUEST")
    assert nessie.get("trees", fetch="SOME").error == (400, "BAD_REQUEST")
    assert nessie.get("trees/main~1").error == (400, "BAD_REQUEST")


def test_branch_is_related_to_the_default_branch(nessie: NessieCaller, hashes: dict[str, str]) -> None:
    metadata = metadata_of(nessie, "dev")

    assert metadata["commitMetaOfHEAD"]["message"] == "second of dev"
    assert metadata | {"commitMetaOfHEAD": None} == {
        "numCommitsAhead": 2,
        "numCommitsBehind": 1,
        "commitMetaOfHEAD": None,
        "commonAncestorHash": hashes["old"],
        "numTotalCommits": 3,
    }


def test_default_branch_and_tags_are_in_no_relation(nessie: NessieCaller, hashes: dict[str, str]) -> None:
    for name, total in (("main", 2), ("old", 1)):
        metadata = metadata_of(nessie, name)

        assert metadata["numTotalCommits"] == total and metadata["commitMetaOfHEAD"]["hash"] == hashes[name]
        assert metadata["numCommitsAhead"] is metadata["numCommitsBehind"] is metadata["commonAncestorHash"] is None


def test_empty_branch_has_no_last_commit(nessie: NessieCaller, hashes: dict[str, str]) -> None:
    assert metadata_of(nessie, "empty") == {
        "numCommitsAhead": 0,
        "numCommitsBehind": 2,
        "commitMetaOfHEAD": None,
        "commonAncestorHash": NO_ANCESTOR_HASH,
        "numTotalCommits": 0,
    }


def test_metadata_of_version_1_has_its_names(nessie: NessieCaller, hashes: dict[str, str]) -> None:
    reference = nessie.v1.get("trees/tree/dev", fetch="ALL").data

    assert "author" in reference["metadata"]["commitMetaOfHEAD"] and "authors" not in reference["metadata"]["commitMetaOfHEAD"]
    assert reference in nessie.v1.get("trees", fetch="ALL").data["references"]


def test_recent_changes_tell_where_a_branch_was(nessie: NessieCaller, lake: Catalog, clock: FakeClock) -> None:
    first = put(lake, {"a": table(1)}, message="first")
    clock.advance(1)
    second = put(lake, {"b": table(2)}, message="second")
    answer = nessie.get("trees/main/recent-changes", scan_commits=10).data

    assert answer["reference"] == {"type": "BRANCH", "name": "main", "hash": second}
    assert answer["current"]["commitHash"] == second and answer["current"]["meta"]["message"] == "second"
    assert [each["commitHash"] for each in answer["previous"]] == [first]
    assert answer["current"]["commitConsistency"] == answer["commitLogConsistency"] == "COMMIT_CONSISTENT"
    assert nessie.get("trees/main/recent-changes").data["commitLogConsistency"] == "NOT_CHECKED"


def test_recent_changes_of_nothing(nessie: NessieCaller) -> None:
    answer = nessie.get("trees/main/recent-changes", scan_commits=100_000).data

    assert answer["current"] == {"commitHash": NO_ANCESTOR_HASH, "commitConsistency": "COMMIT_CONSISTENT", "meta": None}
    assert nessie.get("trees/nothing/recent-changes").error == (404, "REFERENCE_NOT_FOUND")
    assert nessie.get("trees/main~1/recent-changes").error == (400, "BAD_REQUEST")
    assert nessie.get("trees/main/recent-changes", scan_commits=-1).error == (400, "BAD_REQUEST")


@pytest.fixture
def guest(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> NessieCaller:
    """Somebody who may list ``dev`` and ``main``, and read the history of ``dev`` alone."""
    branches_on(guarded.catalog())
    guarded.make_principal(
        "guest",
        held(P.REFERENCE_LIST, on="reference", references="dev"),
        held(P.REFERENCE_LIST, on="reference", references="main"),
        held(P.REFERENCE_READ_HISTORY, on="reference", references="dev"),
        held(P.TABLE_LIST, "sales", references="*"),
    )
    return caller_of("guest")


def test_listing_has_references_that_may_be_listed(guest: NessieCaller) -> None:
    for size in (None, 1, 2):
        assert listed(guest, max_records=size) == ["dev", "main"]


def test_metadata_is_left_out_of_what_may_not_be_read(guest: NessieCaller) -> None:
    dev, main = guest.get("trees", fetch="ALL").data["references"]

    assert "metadata" not in main and guest.get("trees/main", fetch="ALL").data["reference"] == main
    assert dev["metadata"]["commitMetaOfHEAD"]["message"] == "second of dev"
    assert dev["metadata"]["numTotalCommits"] == 3
    assert dev["metadata"]["numCommitsBehind"] is None, "it would tell of main"


def test_filter_of_references_sees_what_its_caller_sees(guest: NessieCaller) -> None:
    assert listed(guest, filter="commit.message == 'more on main'") == []
    assert listed(guest, filter="commit.message == 'second of dev'") == ["dev"]
    assert listed(guest, filter="refMeta.numCommitsBehind > 0") == []


def test_recent_changes_need_the_right_to_read_history(guest: NessieCaller) -> None:
    assert guest.get("trees/main/recent-changes").error == (403, "FORBIDDEN")
    assert guest.get("trees/dev/recent-changes").data["current"]["meta"]["message"] == "second of dev"
