"""``headwater access``: why somebody may do something, or which link to it is missing."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.access import PRIVILEGES
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Namespace, Put
from headwater.realms import RealmRegistry

SIX_COMMANDS = (
    "realm create acme --credentials root.json",
    "catalog create acme/lake --base-location s3://lake/",
    "principal create acme alice --credentials alice.json",
    "role create acme analysts --to alice",
    "role create acme/lake sales_reader --to analysts",
    "grant add acme/lake sales_reader NAMESPACE_READ_PROPERTIES TABLE_READ_DATA VIEW_READ_PROPERTIES --on namespace:sales",
)


@pytest.fixture
def headwater(headwater: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """After the six commands from nothing to a principal that may read one namespace."""
    monkeypatch.chdir(tmp_path)
    for line in SIX_COMMANDS:
        headwater.ok(*shlex.split(line))
    return headwater


@pytest.fixture
def lake(headwater: CommandLine, store: Store) -> Catalog:
    lake = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
    orders = IcebergTable(metadata_location="s3://lake/o/1.json")
    lake.commit(None, [Put(ContentKey.of("sales"), Namespace()), Put(ContentKey.of("sales", "orders"), orders)])
    return lake


def asked(headwater: CommandLine, line: str) -> dict[str, Any]:
    answer: dict[str, Any] = headwater.data("access", "explain", *shlex.split(line))
    return answer


@pytest.mark.parametrize(
    ("question", "allowed"),
    [
        ("TABLE_READ_DATA table:sales.orders", True),
        ("TABLE_LIST table:sales.eu.orders", True),
        ("VIEW_READ_PROPERTIES view:sales.daily", True),
        ("NAMESPACE_READ_PROPERTIES namespace:sales", True),
        ("NAMESPACE_CREATE namespace:sales", False),
        ("TABLE_WRITE_DATA table:sales.orders", False),
        ("TABLE_READ_DATA table:hr.pay", False),
        ("TABLE_READ_DATA", False),
        ("REFERENCE_LIST reference:main", False),
    ],
)
def test_six_commands_let_somebody_read_one_namespace_alone(headwater: CommandLine, question: str, allowed: bool) -> None:
    assert asked(headwater, f"acme/lake alice {question}")["allowed"] is allowed


def test_answer_names_the_grant_and_its_roles(headwater: CommandLine, lake: Catalog) -> None:
    answer = asked(headwater, "acme/lake alice TABLE_LIST table:sales.orders")

    assert answer["why"] == [
        "TABLE_READ_DATA on namespace sales of catalog lake is granted, which includes TABLE_LIST, through analysts and sales_reader"
    ]
    assert answer["rule"].endswith("through analysts and sales_reader")
    assert (answer["on"], answer["roles"]) == ("table sales.orders of catalog lake on main", ["analysts"])


def test_refusal_shows_the_grants_that_come_near(headwater: CommandLine, lake: Catalog) -> None:
    answer = asked(headwater, "acme/lake alice TABLE_DROP table:sales.orders")
    assert answer["why"] == ["none of the grants that reach it gives TABLE_DROP on table sales.orders of catalog lake on main"]

    headwater.ok(
        "grant", "add", "acme/lake", "sales_reader", "TABLE_DROP", "--on", "table:sales.orders", "--on-branches", "dev"
    )
    answer = asked(headwater, "acme/lake alice TABLE_DROP table:sales.orders")
    assert (answer["allowed"], answer["rule"]) == (False, None)
    assert answer["near"] == ["TABLE_DROP on table sales.orders of catalog lake on dev through analysts and sales_reader"]


def test_answer_depends_on_the_branch(headwater: CommandLine, lake: Catalog) -> None:
    headwater.ok("catalog", "branch", "create", "acme/lake", "dev")
    question = "alice TABLE_READ_DATA table:sales.orders"

    assert [asked(headwater, f"acme/lake@{ref} {question}")["allowed"] for ref in ("main", "dev")] == [True, False]
    assert headwater("access", "explain", *f"acme/lake@nowhere {question}".split()).exit_code == 3


def test_right_by_content_id_is_found_by_key_and_id(headwater: CommandLine, lake: Catalog) -> None:
    (added,) = headwater.data(
        "grant", "add", "acme/lake", "sales_reader", "TABLE_DROP", "--on", "table:sales.orders", "--by-id"
    )

    for on in ("table:sales.orders", added["on"]):
        assert asked(headwater, f"acme/lake alice TABLE_DROP {on}")["allowed"]
    assert not asked(headwater, "acme/lake alice TABLE_DROP table:sales.others")["allowed"]


def test_right_by_content_id_creates_nothing(headwater: CommandLine, lake: Catalog) -> None:
    """Such as the server decides it: what is created has another id."""
    words = ("grant", "add", "acme/lake", "sales_reader", "TABLE_FULL_METADATA", "--on", "table:sales.orders")
    headwater.ok(*words, "--by-id")
    assert not asked(headwater, "acme/lake alice TABLE_CREATE table:sales.orders")["allowed"]

    headwater.ok(*words)
    assert asked(headwater, "acme/lake alice TABLE_CREATE table:sales.orders")["allowed"]


def test_key_without_anything_is_told(headwater: CommandLine, lake: Catalog) -> None:
    answer = asked(headwater, "acme/lake alice TABLE_READ_DATA table:sales.none")

    assert answer["allowed"]
    assert answer["why"][1:] == ["no table is at sales.none on main: this is the answer for one that will be"]


def test_first_missing_link_is_told(headwater: CommandLine) -> None:
    question = "acme/lake alice TABLE_READ_DATA table:sales.orders"

    headwater.ok("principal", "disable", "acme", "alice")
    assert "alice is disabled since" in asked(headwater, question)["why"][0]
    assert not asked(headwater, question)["allowed"]
    headwater.ok("principal", "enable", "acme", "alice")
    headwater.ok("role", "unassign", "acme/lake", "sales_reader", "--from", "analysts")
    assert asked(headwater, question)["why"][0] == "nothing in catalog lake is granted to its roles: analysts"
    headwater.ok("role", "unassign", "acme", "analysts", "--from", "alice")
    assert asked(headwater, question)["why"][0] == (
        "alice has no role: `headwater role assign acme ROLE --to alice` gives it one"
    )


def test_realm_that_serves_nobody_allows_nothing(headwater: CommandLine) -> None:
    headwater.ok("realm", "deactivate", "acme")
    answer = asked(headwater, "acme root SERVICE_MANAGE_ACCESS")

    assert (answer["allowed"], answer["why"][0]) == (False, "realm acme is INACTIVE: a server serves only an ACTIVE one")


def test_answer_about_a_catalog_warns_where_a_plugin_decides(headwater: CommandLine, lake: Catalog) -> None:
    plugged = CommandLine(headwater.url, {"HEADWATER_SERVER_ACCESS": "cedar"})

    assert "asks that plug-in" in plugged("access", "explain", "acme/lake", "alice", "TABLE_LIST", "table:sales.orders").stderr
    assert "plug-in" not in plugged("access", "explain", "acme", "alice", "TASK_READ").stderr


def test_root_may_do_everything_in_its_realm(headwater: CommandLine) -> None:
    for privilege in PRIVILEGES:
        assert asked(headwater, f"acme root {privilege}")["allowed"]


def test_role_of_an_identity_provider_counts_where_it_is_named(headwater: CommandLine) -> None:
    headwater.ok("role", "create", "acme", "auditors")
    headwater.ok("grant", "add", "acme", "auditors", "TASK_READ")

    assert not asked(headwater, "acme alice TASK_READ")["allowed"]
    assert asked(headwater, "acme alice TASK_READ --with-role auditors")["allowed"]
    assert headwater("access", "explain", "acme", "alice", "TASK_READ", "--with-role", "nobody").exit_code == 3


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("acme/lake nobody TABLE_LIST", 3),
        ("acme/nobody alice TABLE_LIST", 3),
        ("acme/lake alice TABLE_LIST view:sales.daily", 5),
        ("acme/lake alice TABLE_LIST orders", 2),
        ("acme alice TABLE_LIST table:sales.orders", 2),
        ("acme@main alice TASK_READ", 2),
        ("acme/lake alice TABLES", 2),
    ],
)
def test_question_that_means_nothing_is_refused(headwater: CommandLine, line: str, code: int) -> None:
    assert headwater("access", "explain", *line.split()).exit_code == code


def test_every_privilege_is_listed_with_where_it_is_granted(headwater: CommandLine) -> None:
    rows = headwater.data("access", "privileges")

    assert [row["name"] for row in rows] == [privilege.value for privilege in PRIVILEGES]
    by_name = {row["name"]: row for row in rows}
    assert by_name["TABLE_READ_DATA"]["grantedOn"] == ["realm", "catalog", "namespace", "table"]
    assert by_name["TABLE_READ_DATA"]["includes"] == ["TABLE_READ_PROPERTIES"]
    assert "all others" in headwater.ok("access", "privileges").splitlines()[1]
