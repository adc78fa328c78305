"""``headwater catalog``: catalogs, contents, branches and tags."""

from __future__ import annotations

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.catalogs import CatalogManager, Catalogs, ContentKey, IcebergTable, Namespace, Put
from headwater.realms import RealmRegistry

KEYS = [ContentKey.of("sales"), ContentKey.of("sales", "orders")]


@pytest.fixture
def commits(store: Store, catalog: str) -> list[str]:
    """The hashes of two commits: a namespace, then a table in it."""
    opened = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
    contents = [Namespace(), IcebergTable(metadata_location="s3://lake/orders/metadata/1.json")]
    done = [opened.commit(None, [Put(key, content)]) for key, content in zip(KEYS, contents, strict=True)]
    return [f"{commit.commit_id:016x}" for commit in done]


def test_created_catalog_is_listed(headwater: CommandLine, catalog: str) -> None:
    shown = headwater.data("catalog", "list", "acme")

    assert [(entry["name"], entry["baseLocation"]) for entry in shown] == [("lake", "s3://lake/")]


def test_creating_the_same_catalog_twice_changes_nothing(headwater: CommandLine, catalog: str) -> None:
    before = headwater.data("catalog", "show", "acme/lake")

    assert headwater.data("catalog", "create", "acme/lake", "--base-location", "s3://lake/") == before


def test_released_catalog_is_managed_by_nobody_and_left_by_nobody(headwater: CommandLine, store: Store, catalog: str) -> None:
    catalogs, someone = Catalogs(RealmRegistry(store).open_realm("acme")), CatalogManager(namespace="team", name="lake")
    catalogs.update_catalog(catalogs.read_catalog("lake"), manager=someone, former=someone)

    assert headwater.data("catalog", "release", catalog)["manager"] is None
    assert catalogs.read_catalog("lake").former is None


def test_catalog_is_not_deleted_without_confirmation(headwater: CommandLine, catalog: str) -> None:
    result = headwater("catalog", "delete", "acme/lake", "--confirm", "lake")

    assert result.exit_code == 5
    assert "--confirm acme/lake" in result.stderr
    assert len(headwater.data("catalog", "list", "acme")) == 1


def test_deleted_catalog_is_gone(headwater: CommandLine, catalog: str) -> None:
    headwater.ok("catalog", "delete", "acme/lake", "--confirm", "acme/lake")

    assert headwater("catalog", "show", "acme/lake").exit_code == 3


def test_contents_are_listed_by_key(headwater: CommandLine, commits: list[str]) -> None:
    shown = headwater.items("catalog", "tables", "acme/lake")

    assert [(entry["key"], entry["type"]) for entry in shown] == [("sales", "NAMESPACE"), ("sales.orders", "ICEBERG_TABLE")]


def test_contents_below_a_namespace_are_listed(headwater: CommandLine, commits: list[str]) -> None:
    shown = headwater.items("catalog", "tables", "acme/lake", "--prefix", "sales")

    assert [entry["key"] for entry in shown] == ["sales.orders"]


def test_contents_of_an_earlier_commit_are_listed(headwater: CommandLine, commits: list[str]) -> None:
    shown = headwater.items("catalog", "tables", f"acme/lake@{commits[0]}")

    assert [entry["key"] for entry in shown] == ["sales"]


def test_cut_listing_says_that_there_is_more(headwater: CommandLine, commits: list[str]) -> None:
    result = headwater("catalog", "tables", "acme/lake", "--limit", "1")

    assert result.exit_code == 0
    assert "there are more rows: continue with --after " in result.stderr


def test_log_is_newest_first(headwater: CommandLine, commits: list[str]) -> None:
    shown = headwater.data("catalog", "log", "acme/lake")

    assert [entry["hash"] for entry in shown] == commits[::-1]


def test_log_is_oldest_first_when_asked(headwater: CommandLine, commits: list[str]) -> None:
    shown = headwater.data("catalog", "log", "acme/lake", "--oldest-first")

    assert [entry["hash"] for entry in shown] == commits


def test_log_of_one_key_has_only_its_commits(headwater: CommandLine, commits: list[str]) -> None:
    shown = headwater.data("catalog", "log", "acme/lake", "--key", "sales.orders")

    assert [entry["hash"] for entry in shown] == commits[1:]


def test_branch_is_created_at_a_commit(headwater: CommandLine, commits: list[str]) -> None:
    headwater.ok("catalog", "branch", "create", "acme/lake", "dev", "--at", commits[0])

    shown = {entry["name"]: entry["hash"] for entry in headwater.data("catalog", "branch", "list", "acme/lake")}
    assert shown == {"dev": commits[0], "main": commits[1]}


def test_branch_is_assigned_to_another_branch(headwater: CommandLine, commits: list[str]) -> None:
    headwater.ok("catalog", "branch", "create", "acme/lake", "dev", "--at", commits[0])

    assert headwater.data("catalog", "branch", "assign", "acme/lake", "dev", "main")["hash"] == commits[1]


def test_tag_is_assigned_to_a_branch(headwater: CommandLine, commits: list[str]) -> None:
    headwater.ok("catalog", "tag", "create", "acme/lake", "v1", "--at", commits[0])

    assert headwater.data("catalog", "tag", "assign", "acme/lake", "v1", "main")["hash"] == commits[1]
    assert headwater("catalog", "tag", "assign", "acme/lake", "v1", "main", "--expected", commits[0]).exit_code == 6


def test_assignment_from_another_head_is_a_conflict(headwater: CommandLine, commits: list[str]) -> None:
    result = headwater("catalog", "branch", "assign", "acme/lake", "main", commits[0], "--expected", commits[0])

    assert result.exit_code == 6


def test_deleted_branch_is_not_listed(headwater: CommandLine, commits: list[str]) -> None:
    headwater.ok("catalog", "branch", "create", "acme/lake", "dev")
    headwater.ok("catalog", "branch", "delete", "acme/lake", "dev")

    assert [entry["name"] for entry in headwater.data("catalog", "branch", "list", "acme/lake")] == ["main"]


def test_default_branch_is_not_deleted(headwater: CommandLine, commits: list[str]) -> None:
    assert headwater("catalog", "branch", "delete", "acme/lake", "main").exit_code == 5


def test_tag_is_created_listed_and_deleted(headwater: CommandLine, commits: list[str]) -> None:
    headwater.ok("catalog", "tag", "create", "acme/lake", "v1")
    assert [entry["hash"] for entry in headwater.data("catalog", "tag", "list", "acme/lake")] == [commits[1]]

    told = headwater.ok("catalog", "tag", "delete", "acme/lake", "v1")
    assert told.endswith(f"tag v1 of acme/lake is deleted; it was at {commits[1]}\n")
    assert headwater.ok("catalog", "tag", "list", "acme/lake") == ""


def test_commit_that_is_no_hash_is_a_usage_error(headwater: CommandLine, commits: list[str]) -> None:
    assert headwater("catalog", "branch", "create", "acme/lake", "dev", "--at", "xyz").exit_code == 2


def test_writing_into_an_inactive_realm_is_refused(headwater: CommandLine, catalog: str) -> None:
    headwater.ok("realm", "deactivate", "acme")

    result = headwater("catalog", "create", "acme/other", "--base-location", "s3://other/")

    assert result.exit_code == 5
    assert "is INACTIVE" in result.stderr
