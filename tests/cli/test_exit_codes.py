"""One situation ends with one exit code, whichever command meets it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.catalogs import Catalogs, ContentKey, IcebergTable, Put
from headwater.realms import RealmRegistry

NOBODY = "0123456789abcdef"
MALFORMED = (
    "realm create other --credentials new.json --purge-hold soon",
    "realm restore acme lake/main --to 1s",
    "realm restore acme/lake grants --to 1s",
    "realm restore acme/lake@main --to so:on",
    "realm restore acme/lake@main --to 99999d",
    "realm restore acme/lake@main --to 2099-01-01",
    "realm export acme new.realm --as-of soon",
    "catalog tables acme/lake@main~x",
    "catalog tables acme/lake@main@zz",
    "catalog tables acme/lake@main*soon",
    "catalog branch create acme/lake dev --source main~x",
    "catalog branch create acme/lake dev --at zz",
    "catalog branch assign acme/lake main main@zz",
    "catalog merge acme/lake main~x",
    "catalog content acme/lake sales..orders",
    "catalog diff acme/lake main main~x",
    "catalog merge acme/lake main --key sales..orders=FORCE",
    "import acme/lake file:///nowhere --namespace lake..raw",
    "task show zz",
    "task list --since soon",
    "task list --state ASLEEP",
    "task list --kind nonsense",
    "gc log --kind nonsense",
    "gc report new.html --kind nonsense",
    "realm list -o xml",
    "gc log --since soon",
    "gc explain acme zz",
    "fsck --confirm acme",
    "fsck --later",
    "task list --for 1s",
    "task list --every 1s",
    "up nobody --wait 1s",
    "fsck --plan --repair --confirm acme",
    "gc run acme --dry-run --clock-is-right",
    "gc run acme --dry-run --detach",
    "realm restore acme/lake@main --to 1ms --dry-run --detach",
    "role create acme/ reader",
    "grant add acme/lake catalog_admin TABLE_LISTS",
    "grant add acme/lake catalog_admin TABLE_LIST --on orders",
    "grant add acme service_admin TASK_READ --on-branches dev",
    "access explain acme/lake root TABLE_LIST orders",
    "realm list --nonsense",
    "realm show",
    "nonsense",
)
MISSING = (
    "realm show nobody",
    "realm activate nobody",
    "realm delete nobody --confirm nobody",
    "realm restore nobody --to 1s",
    "realm restore acme nobody --to 1s",
    "realm restore acme/lake@main --to soon",
    f"realm restore acme/lake@main --to {NOBODY}",
    "realm export nobody new.realm",
    "realm import nobody.realm other",
    "catalog show acme/nobody",
    "catalog show nobody/lake",
    "catalog tables acme/lake@nobody",
    "catalog tables acme/lake@main~999",
    f"catalog tables acme/lake@main@{NOBODY}",
    "catalog delete acme/nobody --confirm acme/nobody",
    "catalog branch delete acme/lake nobody",
    "catalog branch create acme/lake dev --source nobody",
    "catalog merge acme/lake nobody",
    f"task show {NOBODY}",
    f"task cancel {NOBODY}",
    f"task retry {NOBODY}",
    "gc run nobody",
    "gc run nobody --clock-is-right",
    f"gc explain acme {NOBODY}",
    "gc explain acme/lake@nobody",
    "fsck --realm nobody",
    "task list --realm nobody",
    "gc log --realm nobody",
    "gc report new.html --realm nobody",
    "principal show acme nobody",
    "principal drop acme nobody",
    "principal rotate acme nobody --credentials new.json",
    "role show acme nobody",
    "role create acme/nobody reader",
    "role assign acme/lake catalog_admin --to nobody",
    "role unassign acme/lake catalog_admin --from service_admin",
    "grant add acme/lake nobody TABLE_LIST",
    "grant remove acme/lake catalog_admin TABLE_LIST",
    "access explain acme nobody TASK_READ",
    "apply -f nobody.yaml",
    "up nobody --once",
    "import acme/lake nobody",
    "import acme/nobody file:///nowhere",
    "import-report acme/lake new.html",
    "--store sqlite:///nobody.db realm list",
)
REFUSED = (
    "realm create bad!id --credentials new.json",
    "realm purge acme",
    "realm restore acme/lake@main --to 1ms --confirm other",
    "realm export acme text.txt --as-of 1ms",
    "realm import text.txt other",
    "catalog create acme/bad!name --base-location file:///x",
    "catalog create acme/other --base-location nonsense",
    "catalog delete acme/lake",
    "catalog delete acme/lake --confirm other",
    "catalog branch delete acme/lake main",
    "fsck --realm acme --repair --confirm other",
    "principal create acme bad!name --credentials new.json",
    "principal create acme alice --credentials text.txt",
    "principal drop acme root",
    "role create acme bad!name",
    "role drop acme service_admin",
    "grant add acme/lake catalog_admin SERVICE_MANAGE_ACCESS",
    "access explain acme/lake root TABLE_LIST view:orders",
    "apply -f text.txt",
    "--store nonsense realm list",
    "--store sqlite:///new.db?nonsense=1 realm list",
)
DONE = (
    "--version",
    "realm list -q",
    "task list --realm acme",
    "task list --state FAILED",
    "gc log --kind purge",
    "gc run acme",
    "gc run acme --dry-run",
    "fsck",
    "fsck --realm acme --repair",
    "fsck --plan",
    "realm restore acme/lake@main --to 1ms",
    "catalog merge acme/lake main",
    "maintenance resume acme",
    "import acme/lake empty",
)
FOUND = (
    "import acme/lake broken",
    "import acme/lake broken --dry-run",
    "import acme/lake broken --report new.html",
)
THERE = (
    "realm create acme --credentials new.json",
    "catalog create acme/lake --base-location file:///elsewhere",
    "catalog branch create acme/lake main",
    "principal create acme root --credentials new.json",
)


@pytest.fixture
def furnished(
    headwater: CommandLine, store: Store, catalog: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """A store with realm acme and catalog lake, which has a commit; and a folder with a file that is no archive and no manifest,
    a lake that is empty, and one with a damaged table."""
    table = IcebergTable(id=None, metadata_location="s3://lake/orders/1.json")
    Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake").commit(None, [Put(ContentKey.of("orders"), table)])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("just: [text", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken" / "orders" / "metadata").mkdir(parents=True)
    (tmp_path / "broken" / "orders" / "metadata" / "v1.metadata.json").write_text("{", encoding="utf-8")
    return headwater


@pytest.mark.parametrize(
    ("code", "lines"),
    [(0, DONE), (2, MALFORMED), (3, MISSING), (5, REFUSED), (6, THERE), (8, FOUND)],
    ids=["done", "malformed", "missing", "refused", "there", "found"],
)
def test_situation_has_one_code(furnished: CommandLine, code: int, lines: tuple[str, ...]) -> None:
    ends = [(line, furnished(*shlex.split(line))) for line in lines]

    assert [(line, end.exit_code, end.stderr) for line, end in ends if end.exit_code != code] == []


def test_wrong_setting_is_usage(url: str) -> None:
    result = CommandLine(url, {"HEADWATER_COMMIT_TIMEOUT": "soon"})("realm", "list")

    assert (result.exit_code, "HEADWATER_COMMIT_TIMEOUT='soon'" in result.stderr) == (2, True)
