"""``headwater snapshots``: what a table has, and what expired."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import CommandLine

from expiring_lake import ExpiringLake
from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalogs
from headwater.realms import RealmRegistry
from headwater.tasks import TaskQueue


@pytest.fixture
def lake(store: Store, make_realm: Callable[[str], str], tmp_path: Path) -> ExpiringLake:
    """The catalog ``lake`` with a table of three snapshots."""
    make_realm("acme")
    Catalogs(RealmRegistry(store).open_realm("acme")).create_catalog("lake", base_location=tmp_path.as_uri())
    lake = ExpiringLake(store, FakeClock(store.clock.now() - 300_000_000), tmp_path)
    lake.on().namespaces.create(lake.key("x").parent, {})
    lake.create("orders", snapshots=3)
    lake.tag("orders", "v1", 1)
    return lake


def test_snapshots_are_listed_with_what_refers_to_them(headwater: CommandLine, lake: ExpiringLake) -> None:
    shown = headwater.data("snapshots", "list", "acme/lake", "sales.orders")

    assert [(each["snapshotId"], each["parentId"], each["refs"]) for each in shown] == [
        (1, None, ["v1"]),
        (2, 1, []),
        (3, 2, ["main"]),
    ]
    assert headwater("snapshots", "list", "acme/lake", "sales.nothing").exit_code == 3


def test_expiry_is_a_task_that_this_process_does(headwater: CommandLine, store: Store, lake: ExpiringLake) -> None:
    dry = headwater.data("snapshots", "expire", "acme/lake", "--older-than", "1s", "--dry-run")
    assert (dry["snapshots"], TaskQueue(store).list_tasks()) == (1, [])

    shown = headwater.data("snapshots", "expire", "acme/lake", "--older-than", "1s")

    assert shown | {"dryRun": True, "commits": 0} == dry
    assert [task["kind"] for task in headwater.data("task", "list")] == ["expire-snapshots"]
    assert lake.snapshots("orders") == [1, 3]


@pytest.mark.parametrize("options", [("--older-than", "1s"), ()], ids=["limits", "policies"])
def test_author_of_an_expiry_is_who_asks(headwater: CommandLine, lake: ExpiringLake, options: tuple[str, ...]) -> None:
    headwater.ok("policy", "set", "acme/lake", "snapshots", "--max-age", "1s")

    headwater.ok("snapshots", "expire", "acme/lake", *options, "--author", "ann")

    entry = headwater.data("catalog", "log", "acme/lake", "--limit", "1")[0]
    assert (entry["authors"], entry["committer"]) == (["ann"], "headwater")


def test_expiry_takes_tables_branches_and_a_number(headwater: CommandLine, lake: ExpiringLake) -> None:
    def snapshots(*options: str) -> int:
        count: int = headwater.data("snapshots", "expire", "acme/lake", "--older-than", "1s", "--dry-run", *options)[
            "snapshots"
        ]
        return count

    assert [snapshots("--table", "sales.lines"), snapshots("--branch", "dev"), snapshots("--retain-last", "2")] == [0, 0, 0]
    assert snapshots("--table", "sales.orders", "--branch", "m*") == 1
