"""What a shell is offered while a command is typed, by click's own protocol."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from commandline import CommandLine

from headwater import Store
from headwater.catalogs import Catalog, Catalogs
from headwater.cli import live_names, main
from headwater.realms import RealmRegistry
from headwater.tasks import TaskQueue


@pytest.fixture
def lake(store: Store, catalog: str) -> Catalog:
    lake = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
    lake.create_branch("dev")
    lake.create_branch("etl/nightly")
    lake.create_tag("v1")
    return lake


def offered(line: str, url: str = "") -> list[str]:
    """What bash gets for a line whose last word is being typed."""
    environment = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "_HEADWATER_COMPLETE": "bash_complete"}
    done = CliRunner().invoke(main, [], env=environment | ({"HEADWATER_STORE": url} if url else {}), prog_name="headwater")
    assert done.stderr == ""
    return [entry.partition(",")[2] for entry in done.stdout.split()]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("headwater cat", ["catalog"]),
        ("headwater catalog me", ["merge"]),
        ("headwater catalog merge --mo", ["--mode"]),
        ("headwater realm show ", ["acme"]),
        ("headwater principal show a", ["acme"]),
        ("headwater task list --realm ", ["acme"]),
        ("headwater catalog show ", ["acme/lake"]),
        ("headwater catalog show acme/l", ["acme/lake"]),
        ("headwater catalog show other/", []),
        ("headwater role list ac", ["acme", "acme/lake"]),
        ("headwater catalog tables acme/lake@", ["acme/lake@main", "acme/lake@dev", "acme/lake@etl/nightly", "acme/lake@v1"]),
        ("headwater catalog tables acme/lake@et", ["acme/lake@etl/nightly"]),
        ("headwater catalog merge acme/lake d", ["dev"]),
        ("headwater catalog branch delete acme/lake ", ["main", "dev", "etl/nightly", "v1"]),
        ("headwater catalog diff acme/lake main v", ["v1"]),
        ("headwater catalog branch create acme/lake new --source e", ["etl/nightly"]),
    ],
)
def test_names_of_the_store_are_offered(lake: Catalog, url: str, line: str, names: list[str]) -> None:
    assert sorted(offered(line, url)) == sorted(names)


def test_context_completes_what_is_left_out(headwater: CommandLine, lake: Catalog, url: str) -> None:
    headwater.ok("context", "set", "work", "acme/lake")

    assert offered("headwater catalog tables @d", url) == ["@dev"]
    assert offered("headwater catalog tables /", url) == ["/lake"]


def test_tasks_are_offered(store: Store, realm: str, url: str) -> None:
    task = TaskQueue(store).submit_task("gc", realm=realm)

    assert offered("headwater task show ", url)[0].startswith(f"{task.id:016x}")


def test_missing_store_offers_nothing_and_stays_missing(tmp_path: Path) -> None:
    assert offered("headwater realm show ", f"sqlite:///{tmp_path}/none.db") == []
    assert offered("headwater realm show ", "oracle://nowhere") == []
    assert list(tmp_path.glob("*.db")) == []


def test_slow_store_offers_nothing_in_time(realm: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_names, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(live_names, "_realms", lambda store: time.sleep(1) or ["acme"])

    assert offered("headwater realm show ", url) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_of_a_shell_asks_the_program(headwater: CommandLine, shell: str) -> None:
    script = headwater.ok("completion", shell)

    assert f"_HEADWATER_COMPLETE={shell}_complete" in script
    assert ("COMP_WORDBREAKS" in script) == (shell == "bash")


def test_other_shell_is_refused(headwater: CommandLine) -> None:
    assert headwater("completion", "csh").exit_code == 2
