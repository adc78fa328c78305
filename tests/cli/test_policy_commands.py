"""``headwater policy``: what is said, and what it comes to for a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import CommandLine

from expiring_lake import ExpiringLake
from fake_clock import FakeClock
from headwater import Store
from headwater.catalogs import Catalogs
from headwater.policies import PolicyKind, StoredPolicy, declare_policies
from headwater.policies.policy_values import FileRule
from headwater.realms import RealmRegistry

LAKE = "acme/lake"
DAY_MS = 86_400_000
AGE = "history.expire.max-snapshot-age-ms"


@pytest.fixture
def lake(store: Store, make_realm: Callable[[str], str], tmp_path: Path) -> ExpiringLake:
    """The catalog ``lake`` with the table ``sales.orders`` of two snapshots."""
    make_realm("acme")
    Catalogs(RealmRegistry(store).open_realm("acme")).create_catalog("lake", base_location=tmp_path.as_uri())
    lake = ExpiringLake(store, FakeClock(store.clock.now() - 300_000_000), tmp_path)
    lake.on().namespaces.create(lake.key("x").parent, {})
    lake.create("orders", snapshots=2)
    return lake


def effective(headwater: CommandLine, *arguments: str) -> dict[tuple[str, str | None, str], tuple[str | None, str]]:
    """Values and their sources, by kind, ref and name."""
    values = headwater.data("policy", "effective", LAKE, *arguments)["values"]
    return {(each["kind"], each["ref"], each["name"]): (each["value"], each["source"]) for each in values}


def test_rules_are_set_replaced_and_removed_by_branches(headwater: CommandLine, lake: ExpiringLake) -> None:
    headwater.ok("policy", "set", LAKE, "snapshots", "--max-age", "5d", "--min-to-keep", "3", "--author", "ann")
    headwater.ok("policy", "set", LAKE, "snapshots", "--branch", "etl/*", "--max-age", "1d")
    headwater.ok("policy", "set", LAKE, "snapshots", "--max-age", "7d")

    [listed] = headwater.data("policy", "list", LAKE)
    assert listed["snapshots"] == [{"branches": "etl/*", "maxAge": "1d"}, {"branches": "*", "maxAge": "7d"}]
    assert listed == headwater.data("policy", "show", LAKE, "snapshots")

    [left] = headwater.data("policy", "unset", LAKE, "snapshots", "--branch", "*")
    assert left["snapshots"] == [{"branches": "etl/*", "maxAge": "1d"}]
    assert headwater.data("policy", "unset", LAKE, "snapshots", "--branch", "etl/*") == []
    assert headwater("policy", "unset", LAKE, "snapshots").exit_code == 3
    assert headwater.data("policy", "list", LAKE) == []


def test_policy_of_a_table_is_named_by_its_key(headwater: CommandLine, lake: ExpiringLake) -> None:
    headwater.ok("policy", "set", LAKE, "file-collection", "--mode", "off", "--author", "ann")
    headwater.ok("policy", "set", LAKE, "metadata-files", "--table", "sales.orders", "--keep", "9", "--max-age", "30d")

    listed = headwater("policy", "list", LAKE).stdout
    assert "table sales.orders" in listed and "keep 9, maxAge 30d" in listed and "mode off" in listed and "ann" in listed
    assert headwater("policy", "show", LAKE, "metadata-files").exit_code == 3
    assert headwater("policy", "set", LAKE, "metadata-files", "--table", "sales.nothing", "--keep", "9").exit_code == 3
    assert headwater("policy", "set", LAKE, "metadata-files", "--table", "sales", "--keep", "9").exit_code == 5


REFUSED: list[tuple[tuple[str, ...], int, str]] = [
    (("snapshots",), 5, "says nothing"),
    (("snapshots", "--grace", "2d"), 2, "it has --branch, --max-age"),
    (("metadata-files", "--keep", "0"), 5, "keep is 0"),
    (("file-collection", "--grace", "1h"), 5, "from 1d"),
    (("file-collection", "--grace", "soon"), 2, "not a duration"),
    (("compaction", "--keep", "1"), 2, "compaction"),
]


def test_policy_that_cannot_be_is_refused(headwater: CommandLine, lake: ExpiringLake) -> None:
    for arguments, code, said in REFUSED:
        refused = headwater("policy", "set", LAKE, *arguments)
        assert (refused.exit_code, said in refused.stderr) == (code, True), refused.stderr


def test_declared_policy_that_is_changed_is_warned_of(headwater: CommandLine, lake: ExpiringLake) -> None:
    definition = lake.catalog.definition
    declared = StoredPolicy(kind=PolicyKind.FILE_COLLECTION, catalog_id=definition.id, files=FileRule(mode="report"))
    declare_policies(lake.rows, definition, [declared])

    assert "is put back" in headwater("policy", "set", LAKE, "file-collection", "--mode", "off").stderr
    assert "is put back" not in headwater("policy", "set", LAKE, "file-collection", "--mode", "report").stderr


def test_effective_values_say_where_they_come_from(headwater: CommandLine, lake: ExpiringLake) -> None:
    assert effective(headwater)["snapshots", None, "maxAge"] == (None, "no policy says anything: nothing expires")
    headwater.ok("policy", "set", LAKE, "snapshots", "--max-age", "5d", "--min-to-keep", "3")
    headwater.ok("policy", "set", LAKE, "snapshots", "--table", "sales.orders", "--min-to-keep", "4", "--max-ref-age", "90d")
    lake.set_properties("orders", **{AGE: str(6 * DAY_MS)})
    lake.tag("orders", "v1", 1, max_ref_age_ms=DAY_MS)
    lake.tag("orders", "v2", 1, max_ref_age_ms=100 * DAY_MS)

    found = effective(headwater, "sales.orders")

    assert {name: told for (kind, ref, name), told in found.items() if (kind, ref) == ("snapshots", None)} == {
        "maxAge": ("6d", f"property {AGE}"),
        "minToKeep": ("4", "policy of the table, branches *"),
        "maxRefAge": ("90d", "policy of the table, branches *"),
    }
    assert {ref: told for (_, ref, name), told in found.items() if ref and name == "maxRefAge"} == {
        "v1": ("90d", "policy of the table, branches *"),
        "v2": ("100d", "its own limit"),
    }
    assert found["snapshots", "main", "maxAge"] == ("6d", f"property {AGE}")
    assert found["file-collection", None, "grace"] == ("7d", "default")
    assert effective(headwater)["snapshots", None, "minToKeep"] == ("3", "policy of catalog lake, branches *")


def test_effective_values_say_why_nothing_goes(headwater: CommandLine, lake: ExpiringLake) -> None:
    def notes() -> list[str]:
        listed: list[str] = headwater.data("policy", "effective", f"{LAKE}@main", "sales.orders")["notes"]
        return listed

    assert notes() == []

    lake.set_properties("orders", **{"gc.enabled": "false"})

    assert notes() == ["nothing of it goes: its property gc.enabled is not true"]
    assert headwater("policy", "effective", f"{LAKE}@nowhere", "sales.orders").exit_code == 3
