"""Every command of pynessie's command line, against a server: what it prints, and what the catalog is then."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from client_lakes import ClientLake

from headwater.catalogs import ContentKey
from pynessie_env import Pynessie, pynessie_program, pynessie_variables

pytestmark = pytest.mark.long

ORDERS = ContentKey.of("sales", "orders")
SECONDS = 60


@pytest.fixture
def branched(lake: ClientLake) -> ClientLake:
    """A lake with the table ``sales.orders``, which has one row more on the branch ``dev``."""
    lake.create_orders((1, "Oslo"), (2, "Bergen"))
    lake.catalog.create_branch("dev")
    lake.at("dev").append_orders((3, "Voss"))
    return lake


def head_of(lake: ClientLake, reference: str = "main") -> str:
    return next(iter(lake.catalog.log(reference))).hash


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_branches_are_listed(pynessie: Pynessie, branched: ClientLake) -> None:
    main, dev = head_of(branched), head_of(branched, "dev")

    assert sorted(lines(pynessie.run("branch"))) == ["* main", "dev"]
    assert sorted(lines(pynessie.run("--verbose", "branch"))) == sorted([f"* main  {main}", f"dev   {dev}"])
    assert pynessie.run_json("branch", "-l", "dev") == {"type": "BRANCH", "name": "dev", "hash": dev, "metadata": None}
    [extended] = [line for line in lines(pynessie.run("branch", "-x")) if line.startswith("dev")]
    assert "commits ahead: 1" in extended and f"ancestor: {main}" in extended


def test_branches_come_and_go(pynessie: Pynessie, branched: ClientLake) -> None:
    main, dev = head_of(branched), head_of(branched, "dev")
    for words in (["a"], ["b", "dev"], ["c/d", f"dev@{main}"], ["-o", main, "e", "dev"]):
        assert pynessie.run("branch", *words) == "\n"
    assert [head_of(branched, name) for name in ("a", "b", "c/d", "e")] == [main, dev, main, main]

    assert "REFERENCE_ALREADY_EXISTS" in pynessie.fail("branch", "a", "dev")
    pynessie.run("branch", "-f", "-c", main, "a", "dev")
    assert head_of(branched, "a") == dev
    assert "REFERENCE_CONFLICT" in pynessie.fail("branch", "-f", "-c", main, "a", "main")
    pynessie.run("branch", "-d", "c/d")
    assert sorted(ref.name for ref in branched.catalog.branches()) == ["a", "b", "dev", "e", "main"]


def test_tags_come_and_go(pynessie: Pynessie, branched: ClientLake) -> None:
    main, dev = head_of(branched), head_of(branched, "dev")
    pynessie.run("tag", "v1")
    pynessie.run("tag", "v2", "dev")
    assert sorted(lines(pynessie.run("--verbose", "tag"))) == [f"v1  {main}", f"v2  {dev}"]

    pynessie.run("tag", "-f", "v1", "dev")
    pynessie.run("tag", "-d", "v2")
    assert pynessie.run_json("tag") == [{"type": "TAG", "name": "v1", "hash": dev, "metadata": None}]
    assert "REFERENCE_NOT_FOUND" in pynessie.fail("tag", "-d", "v2")


def test_log_is_shown(pynessie: Pynessie, branched: ClientLake) -> None:
    commits = [(commit.hash, commit.meta.message) for commit in branched.catalog.log("dev")]
    shown = pynessie.run_json("log", "dev")

    assert [(entry["hash"], entry["message"]) for entry in shown] == commits
    assert [entry["hash"] for entry in pynessie.run_json("log", "-n", "2", "dev")] == [found for found, _ in commits[:2]]
    past = pynessie.run_json("log", f"dev@{commits[1][0]}")
    assert [entry["hash"] for entry in past] == [found for found, _ in commits[1:]]
    assert pynessie.run("log", "dev").startswith(f"commit {commits[0][0]} (dev)\nAuthor: ")
    told = pynessie.run("log", "-n", "1", "-x", "dev")
    assert f"Parent: {commits[1][0]}\nOperations:\n  Put of sales.orders : Iceberg table:" in told


def test_log_is_filtered(pynessie: Pynessie, branched: ClientLake) -> None:
    first, second, *_ = (commit.hash for commit in branched.catalog.log("dev"))
    pynessie.run("content", "commit", "-r", "dev", "-c", first, "-m", "drop", "--author", "ann", "-R", "sales.orders")

    def messages(*words: str) -> list[str]:
        return [entry["message"] for entry in pynessie.run_json("log", *words, "dev")]

    assert messages("--author", "ann") == messages("--filter", "commit.author == 'ann'") == ["drop"]
    assert messages("--author", "ben") == messages("--before", "2001-01-01T00:00:00+00:00") == []
    assert len(messages("--after", "2001-01-01T00:00:00+00:00")) == len(list(branched.catalog.log("dev")))
    assert [entry["hash"] for entry in pynessie.run_json("log", "-r", f"{second}..{first}", "dev")][:1] == [first]


def test_contents_are_listed(pynessie: Pynessie, branched: ClientLake) -> None:
    assert pynessie.run("content", "list") == "NAMESPACE:\n\tsales\nICEBERG_TABLE:\n\tsales.orders\n\n"
    for words in (["-t", "ICEBERG_TABLE"], ["--filter", "entry.namespace.startsWith('sales')"]):
        [entry] = pynessie.run_json("content", "list", "-r", "dev", *words)
        assert (entry["type"], entry["name"]) == ("ICEBERG_TABLE", {"elements": ["sales", "orders"]})
    assert pynessie.run("content", "list", "-t", "DELTA_LAKE_TABLE").strip() == ""


def test_content_is_viewed_written_and_dropped(pynessie: Pynessie, branched: ClientLake) -> None:
    content = branched.catalog.get_content(None, ORDERS)
    assert content is not None
    [viewed] = pynessie.run_json("content", "view", "sales.orders")
    assert viewed["id"] == str(content.id)
    assert "Iceberg table:" in pynessie.run("content", "view", "-r", "dev", "sales.orders")

    dev: dict[str, Any] = pynessie.run_json("content", "view", "-r", "dev", "sales.orders")[0]
    told = commit_content(pynessie, head_of(branched), json.dumps(dev))
    assert "Changes have been committed." in told and branched.ids() == [1, 2, 3]

    pynessie.run("content", "commit", "-m", "drop it", "-c", head_of(branched), "-R", "sales.orders")
    assert branched.catalog.get_content(None, ORDERS) is None
    assert "CONTENT_NOT_FOUND" in pynessie.fail("content", "view", "sales.orders")


def test_commit_from_an_old_state_is_a_conflict(pynessie: Pynessie, branched: ClientLake) -> None:
    old = head_of(branched)
    [content] = pynessie.run_json("content", "view", "sales.orders")
    branched.append_orders((4, "Moss"))
    [dev] = pynessie.run_json("content", "view", "-r", "dev", "sales.orders")
    assert dev != content

    code, told = commit_code(pynessie, old, json.dumps(dev))

    assert code == 1 and "REFERENCE_CONFLICT" in told and "sales.orders" in told
    assert branched.ids() == [1, 2, 4]


def commit_content(pynessie: Pynessie, expected: str, content: str) -> str:
    code, told = commit_code(pynessie, expected, content)
    assert code == 0, told
    return told


def commit_code(pynessie: Pynessie, expected: str, content: str) -> tuple[int, str]:
    """Write a content that is typed in."""
    words = ("content", "commit", "-i", "-m", "by hand", "-c", expected, "sales.orders")
    return pynessie.command(words, content)


def test_merge_brings_what_is_on_a_branch(pynessie: Pynessie, branched: ClientLake) -> None:
    before, dev = head_of(branched), head_of(branched, "dev")
    told = lines(pynessie.run("merge", "-c", before, "dev"))

    assert told == [
        f"Merged dev onto main (was on {before} before merge)",
        f"Identified merge base commit {before}",
        f"Resultant hash on main after merge: {head_of(branched)}",
    ]
    assert branched.ids() == [1, 2, 3]
    assert lines(pynessie.run("merge", "-f", "-b", "main", "-o", dev, "dev"))[0].startswith("Nothing merged from dev onto main")
    assert pynessie.run_json("merge", "-f", "-b", "main", "dev")["wasApplied"] is False


def test_cherry_pick_repeats_commits(pynessie: Pynessie, branched: ClientLake) -> None:
    before, picked = head_of(branched), head_of(branched, "dev")
    told = lines(pynessie.run("cherry-pick", "-c", before, "-s", "dev", picked))

    assert told[0] == f"Cherry-picked onto main (was on {before} before)"
    assert branched.ids() == [1, 2, 3]


def test_conflicts_are_told_with_their_keys(pynessie: Pynessie, branched: ClientLake) -> None:
    branched.append_orders((4, "Moss"))
    before, picked = head_of(branched), head_of(branched, "dev")

    for words in (["merge", "-f", "dev"], ["cherry-pick", "-f", "-s", "dev", picked]):
        told = pynessie.fail(*words)
        assert "Status code: 409" in told and "Error code: REFERENCE_CONFLICT" in told and "sales.orders" in told
    assert head_of(branched) == before


def test_differences_are_shown(pynessie: Pynessie, branched: ClientLake) -> None:
    main = head_of(branched)
    assert pynessie.run("diff", "main", "dev").startswith("ContentKey: sales.orders\nFROM:\n\tIceberg table:")
    [diff] = pynessie.run_json("diff", "main", "dev")["diffs"]
    assert diff["key"] == {"elements": ["sales", "orders"]} and diff["from"]["id"] == diff["to"]["id"]
    assert pynessie.run("diff", f"dev@{main}", "main").strip() == pynessie.run("diff", main, "main").strip() == ""


def test_endpoint_and_branch_are_kept_in_a_file(lake: ClientLake, tmp_path: Path) -> None:
    lake.create_orders((1, "Oslo"))
    lake.catalog.create_branch("dev")
    endpoint = f"{lake.uri.removesuffix('/iceberg')}/nessie/{lake.warehouse}/api/v1"
    script = f"""set -e; mkdir -p "$HOME/.config/nessie"
nessie remote add {endpoint}; nessie remote show; nessie remote set-head dev; nessie config --get default_branch
nessie --verbose branch -l dev"""
    program = Path(pynessie_program())
    variables = pynessie_variables(tmp_path)
    variables["PATH"] = f"{program.parent}:{variables['PATH']}"
    done = subprocess.run(["bash", "-c", script], env=variables, check=False, capture_output=True, text=True, timeout=SECONDS)

    assert done.returncode == 0, done.stdout + done.stderr
    assert lines(done.stdout) == [
        f"Remote URL: {endpoint}",
        "Default branch: main",
        "Remote branches:",
        *sorted(["dev", "main"]),
        "dev",
        f"* dev  {head_of(lake, 'dev')}",
    ]
