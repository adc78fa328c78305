"""``headwater catalog merge`` and ``headwater catalog transplant``."""

from __future__ import annotations

import json

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.catalogs import Catalog, Catalogs, ContentKey, Delete, IcebergTable, Put
from headwater.catalogs.content import with_id
from headwater.realms import RealmRegistry

A, X = ContentKey.of("a"), ContentKey.of("x")


def put(lake: Catalog, branch: str, key: ContentKey, version: int) -> str:
    there = lake.get_content(branch, key)
    content = IcebergTable(metadata_location=f"s3://lake/{version}.json")
    content = content if there is None or there.id is None else with_id(content, there.id)
    return f"{lake.commit(branch, [Put(key, content)], message=f'{key} {version}').commit_id:016x}"


@pytest.fixture
def lake(store: Store, catalog: str) -> Catalog:
    """Table ``a`` on ``main``, and ``dev`` with a second version of it."""
    opened = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
    put(opened, "main", A, 1)
    opened.create_branch("dev")
    put(opened, "dev", A, 2)
    return opened


def test_merge_is_shown_and_logged(headwater: CommandLine, lake: Catalog) -> None:
    words = ("--message", "m", "--author", "Ann", "--property", "t=1", "--property", "t=2")
    shown = headwater.data("catalog", "merge", "acme/lake", "dev", *words)
    newest = headwater.data("catalog", "log", "acme/lake")[0]

    assert [(one["key"], one["outcome"]) for one in shown["keys"]] == [("a", "PUT")]
    assert (newest["hash"], newest["authors"], newest["properties"]) == (shown["head"], ["Ann"], {"t": ["1", "2"]})


def test_conflicts_are_shown_with_exit_code_6(headwater: CommandLine, lake: Catalog) -> None:
    put(lake, "main", A, 3)
    result = headwater("catalog", "merge", "acme/lake", "dev")

    assert result.exit_code == 6
    assert "VALUE_DIFFERS" in result.stdout
    assert "nothing was written: 1 conflict" in result.stderr


def test_key_is_forced(headwater: CommandLine, lake: Catalog) -> None:
    put(lake, "main", A, 3)
    shown = headwater.data("catalog", "merge", "acme/lake", "dev", "--key", "a=FORCE")

    assert shown["applied"]
    assert lake.get_content("main", A) == lake.get_content("dev", A)


def test_merge_of_what_is_merged_says_that_nothing_is_left(headwater: CommandLine, lake: Catalog) -> None:
    headwater.ok("catalog", "merge", "acme/lake", "dev")

    assert "already up to date" in headwater.ok("catalog", "merge", "acme/lake", "dev")


def test_merge_after_an_undo_names_the_restore_and_the_commands(headwater: CommandLine, lake: Catalog) -> None:
    before = headwater.data("catalog", "log", "acme/lake")[0]["hash"]
    headwater.ok("catalog", "merge", "acme/lake", "dev")
    headwater.ok("realm", "restore", "acme/lake@main", "--to", before, "--confirm", "acme")
    result = headwater("catalog", "merge", "acme/lake", "dev")

    assert result.exit_code == 6
    assert "was merged before" in result.stdout
    assert f"--base {before} merges again" in result.stderr
    assert headwater.data("catalog", "merge", "acme/lake", "dev", "--base", before)["applied"]


def test_diff_says_what_a_merge_would_do(headwater: CommandLine, lake: Catalog) -> None:
    put(lake, "dev", X, 1)
    lake.commit("main", [Delete(A)], message="drop a")
    rows = headwater.items("catalog", "diff", "acme/lake", "main", "dev")
    shown = headwater.ok("catalog", "diff", "acme/lake", "main", "dev")

    assert [(row["action"], row["key"], row["merge"]) for row in rows] == [("ADDED", "a", "CONFLICT"), ("ADDED", "x", "PUT")]
    assert "merging dev into main is a conflict" in shown
    assert "merging dev into main brings it" in shown


def test_diff_says_that_a_merge_leaves_what_only_the_branch_dropped(headwater: CommandLine, lake: Catalog) -> None:
    headwater.ok("catalog", "merge", "acme/lake", "dev")
    lake.commit("main", [Delete(A)], message="drop a")
    [row] = headwater.items("catalog", "diff", "acme/lake", "main", "dev")

    assert (row["action"], row["key"], row["merge"]) == ("ADDED", "a", "LEFT")
    assert "merging dev into main leaves it as it is on main" in headwater.ok("catalog", "diff", "acme/lake", "main", "dev")
    assert headwater.items("catalog", "diff", "acme/lake", "main", "dev", "--brief")[0]["merge"] is None


def test_branch_that_moved_is_told_once(headwater: CommandLine, lake: Catalog) -> None:
    result = headwater("catalog", "branch", "delete", "acme/lake", "dev", "--expected", "0123456789abcdef")

    assert result.exit_code == 6
    assert result.stderr.count("expected 0123456789abcdef") == 1


def test_mode_that_is_none_is_a_wrong_call(headwater: CommandLine, lake: Catalog) -> None:
    result = headwater("catalog", "merge", "acme/lake", "dev", "--key", "a=TAKE")

    assert result.exit_code == 2
    assert "KEY=NORMAL|FORCE|DROP" in result.stderr


def test_dry_run_of_a_merge_changes_nothing(headwater: CommandLine, lake: Catalog) -> None:
    shown = headwater.data("catalog", "merge", "acme/lake", "dev", "--dry-run")

    assert (shown["applied"], len(shown["keys"])) == (False, 1)
    assert len(headwater.data("catalog", "log", "acme/lake")) == 1


def test_commits_are_transplanted(headwater: CommandLine, lake: Catalog) -> None:
    commits = [put(lake, "dev", X, 1), put(lake, "dev", X, 2)]
    shown = headwater.data("catalog", "transplant", "acme/lake@main", "dev", *commits)
    newest, before, _ = headwater.data("catalog", "log", "acme/lake")

    assert shown["commits"] == [before["hash"], newest["hash"]]
    assert [before["message"], newest["message"]] == ["x 1", "x 2"]


def test_conflict_tells_what_both_sides_did(headwater: CommandLine, lake: Catalog) -> None:
    put(lake, "main", A, 3)
    put(lake, "dev", A, 4)
    result = headwater("catalog", "merge", "acme/lake", "dev")

    assert "main: 1 commit" in result.stdout
    assert "dev: 2 commits" in result.stdout
    assert "CHANGED  a 3" in result.stdout
    assert "metadata file: s3://lake/1.json → s3://lake/4.json" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_conflict_has_both_sides_as_data(headwater: CommandLine, lake: Catalog) -> None:
    newest = put(lake, "main", A, 3)
    shown = json.loads(headwater("-o", "json", "catalog", "merge", "acme/lake", "dev").stdout)["sides"]

    assert [(one["key"], one["dropped"]) for one in shown] == [("a", None)]
    assert [commit["hash"] for commit in shown[0]["target"]["commits"]] == [newest]
    assert shown[0]["source"]["commitCount"] == 1


@pytest.mark.parametrize(
    ("mode", "told"), [("force", "FORCE would drop 1 commit of main"), ("Drop", "DROP would drop 1 commit of dev")]
)
def test_dry_run_tells_what_a_mode_drops(headwater: CommandLine, lake: Catalog, mode: str, told: str) -> None:
    put(lake, "main", A, 3)

    assert told in headwater.ok("catalog", "merge", "acme/lake", "dev", "--mode", mode, "--dry-run")


def test_forced_key_tells_the_commits_that_it_drops(headwater: CommandLine, lake: Catalog) -> None:
    dropped = put(lake, "main", A, 3)
    told = headwater.ok("catalog", "merge", "acme/lake", "dev", "--key", "a=force")

    assert "a: FORCE drops 1 commit of main" in told
    assert dropped in told


def test_force_without_a_change_of_the_target_drops_nothing(headwater: CommandLine, lake: Catalog) -> None:
    assert headwater.data("catalog", "merge", "acme/lake", "dev", "--mode", "FORCE")["sides"] == []


def test_difference_tells_who_changed_a_key(headwater: CommandLine, lake: Catalog) -> None:
    put(lake, "main", A, 3)
    told = headwater.ok("catalog", "diff", "acme/lake", "main", "dev")

    assert "CHANGED  a  ICEBERG_TABLE" in told
    assert "main: 1 commit" in told
    assert "dev: 1 commit" in told


def test_brief_difference_tells_keys_alone(headwater: CommandLine, lake: Catalog) -> None:
    assert [row["sides"] for row in headwater.items("catalog", "diff", "acme/lake", "main", "dev", "--brief")] == [None]


def test_branch_without_commits_is_not_taken_for_the_default(headwater: CommandLine, store: Store, catalog: str) -> None:
    opened = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
    opened.create_branch("empty")
    put(opened, "main", A, 1)
    row = headwater.items("catalog", "diff", catalog, "empty", "main")[0]

    assert (row["action"], row["sides"]["after"]["commitCount"]) == ("ADDED", 1)
