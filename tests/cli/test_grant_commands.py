"""``headwater grant``: rights on a realm, a catalog and what is in it; by key, by content id, and on branches."""

from __future__ import annotations

from typing import Any

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.catalogs import Catalog, Catalogs, ContentKey, Delete, IcebergTable, IcebergView, Namespace, Put
from headwater.realms import RealmRegistry

SALES, ORDERS, DAILY = (ContentKey.parse(text) for text in ("sales", "sales.orders", "sales.daily"))


@pytest.fixture
def lake(store: Store, catalog: str) -> Catalog:
    """A catalog with a table and a view in a namespace."""
    lake = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
    table, view = IcebergTable(metadata_location="s3://lake/o/1.json"), IcebergView(metadata_location="s3://lake/d/1.json")
    lake.commit(None, [Put(SALES, Namespace()), Put(ORDERS, table), Put(DAILY, view)])
    return lake


@pytest.fixture
def headwater(headwater: CommandLine, lake: Catalog) -> CommandLine:
    """With the role reader in the catalog, and analysts in its realm."""
    headwater.ok("role", "create", "acme", "analysts")
    headwater.ok("role", "create", "acme/lake", "reader", "--to", "analysts")
    return headwater


def short(rows: list[dict[str, Any]]) -> list[tuple[str, str, str | None]]:
    return [(row["privilege"], row["on"], row["branches"]) for row in rows]


def test_grants_are_added_listed_and_removed(headwater: CommandLine) -> None:
    words = ("acme/lake", "reader", "TABLE_READ_DATA", "namespace-list", "--on", "namespace:sales")
    added = headwater.data("grant", "add", *words)

    assert short(added) == [("NAMESPACE_LIST", "namespace:sales", None), ("TABLE_READ_DATA", "namespace:sales", None)]
    assert headwater.data("grant", "list", "acme/lake", "--role", "reader") == added
    assert headwater.data("grant", "remove", *words) == added
    assert headwater.data("grant", "list", "acme/lake", "--role", "reader") == []


def test_grant_on_a_realm_is_its_principal_roles(headwater: CommandLine) -> None:
    headwater.ok("grant", "add", "acme", "analysts", "TASK_READ", "CATALOG_CREATE")

    assert short(headwater.data("grant", "list", "acme", "--role", "analysts")) == [
        ("CATALOG_CREATE", "realm", "*"),
        ("TASK_READ", "realm", "*"),
    ]
    headwater.ok("grant", "remove", "acme", "analysts", "TASK_READ")
    assert short(headwater.data("role", "show", "acme", "analysts")["grants"]) == [("CATALOG_CREATE", "realm", "*")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("TABLE_LIST",), ("TABLE_LIST", "catalog", None)),
        (("TABLE_LIST", "--on-branches", "dev*"), ("TABLE_LIST", "catalog", "dev*")),
        (("TABLE_LIST", "--on", "table:sales.orders"), ("TABLE_LIST", "table:sales.orders", None)),
        (("VIEW_LIST", "--on", "view:sales.daily", "--on-branches", "*"), ("VIEW_LIST", "view:sales.daily", "*")),
        (("REFERENCE_CREATE", "--on", "reference:dev*"), ("REFERENCE_CREATE", "reference:dev*", None)),
        (("CATALOG_MANAGE_CONTENT",), ("CATALOG_MANAGE_CONTENT", "catalog", "*")),
    ],
)
def test_grant_says_where_it_holds(headwater: CommandLine, words: tuple[str, ...], told: tuple[str, ...]) -> None:
    added = headwater("grant", "add", "acme/lake", "reader", *words)

    assert (added.exit_code, added.stderr) == (0, "")
    assert short(headwater.data("grant", "list", "acme/lake", "--role", "reader")) == [told]


def test_grant_by_id_follows_a_rename(headwater: CommandLine, lake: Catalog) -> None:
    (added,) = headwater.data("grant", "add", "acme/lake", "reader", "TABLE_LIST", "--on", "table:sales.orders", "--by-id")
    orders = lake.get_content(None, ORDERS)
    assert orders is not None
    lake.commit(None, [Delete(ORDERS), Put(ContentKey.of("moved"), orders)])

    (listed,) = headwater.data("grant", "list", "acme/lake", "--role", "reader")
    assert (added["on"], added["key"]) == (f"table:id={orders.id}", "sales.orders")
    assert (listed["on"], listed["key"]) == (added["on"], "moved")


def test_grant_by_id_is_removed_when_its_table_is_gone(headwater: CommandLine, lake: Catalog) -> None:
    (added,) = headwater.data("grant", "add", "acme/lake", "reader", "TABLE_LIST", "--on", "table:sales.orders", "--by-id")
    lake.commit(None, [Delete(ORDERS)])

    headwater.ok("grant", "remove", "acme/lake", "reader", "TABLE_LIST", "--on", added["on"])
    assert headwater.data("grant", "list", "acme/lake", "--role", "reader") == []


def test_content_id_is_looked_up_on_a_branch(headwater: CommandLine, lake: Catalog) -> None:
    headwater.ok("catalog", "branch", "create", "acme/lake", "dev")
    lake.commit("dev", [Put(ContentKey.of("sales", "new"), IcebergTable(metadata_location="s3://lake/n/1.json"))])
    words = ("reader", "TABLE_LIST", "--on", "table:sales.new", "--by-id")

    assert headwater("grant", "add", "acme/lake", *words).exit_code == 3
    (added,) = headwater.data("grant", "add", "acme/lake@dev", *words, "--on-branches", "dev")
    content = lake.get_content("dev", ContentKey.of("sales", "new"))
    assert content is not None
    assert (added["on"], added["branches"], added["key"]) == (f"table:id={content.id}", "dev", None)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("SERVICE_MANAGE_ACCESS",), 5, "SERVICE_MANAGE_ACCESS cannot be granted on a catalog: it is granted on realm"),
        (("TABLE_LIST", "VIEW_LIST", "--on", "table:sales.orders"), 5, "VIEW_LIST cannot be granted on a table"),
        (("TABLE_CREATE", "--on", "table:sales.orders", "--by-id"), 5, "name its key"),
        (("TABLE_LIST", "--on", "table:sales.none", "--by-id"), 3, "there is nothing at sales.none on main"),
        (("TABLE_LIST", "--on", "table:sales.daily", "--by-id"), 3, "there is a view at sales.daily on main"),
        (("TABLE_LIST", "--on", "namespace:sales", "--by-id"), 2, "--by-id needs the key of a table or view"),
        (("REFERENCE_LIST", "--on", "reference:dev", "--on-branches", "x"), 2, "names the branches itself"),
        (("TABLE_LIST", "--on", "sales"), 2, "write namespace:KEY"),
        (("TABLE_LISTS",), 2, "name one of TABLE_CREATE"),
    ],
)
def test_grant_that_means_nothing_is_refused(headwater: CommandLine, words: tuple[str, ...], code: int, told: str) -> None:
    refused = headwater("grant", "add", "acme/lake", "reader", *words)

    assert (refused.exit_code, told in refused.stderr) == (code, True), refused.stderr
    assert headwater.data("grant", "list", "acme/lake", "--role", "reader") == []


def test_reference_without_a_look_by_id_is_refused(headwater: CommandLine) -> None:
    refused = headwater("grant", "add", "acme/lake@main", "reader", "TABLE_LIST", "--on", "table:sales.orders")

    assert (refused.exit_code, "@main says where --by-id looks" in refused.stderr) == (2, True)


def test_grant_on_a_realm_has_no_branches_and_no_content(headwater: CommandLine) -> None:
    for options in (("--on-branches", "dev"), ("--on", "namespace:sales")):
        assert headwater("grant", "add", "acme", "analysts", "TASK_READ", *options).exit_code == 2
    refused = headwater("grant", "add", "acme", "analysts", "TASK_READ", "REFERENCE_LIST", "--on", "catalog")
    assert refused.exit_code == 2


@pytest.mark.parametrize(
    ("on", "told"),
    [
        ("table:sales.none", "nothing is at sales.none on main of catalog 'lake' of realm 'acme' yet"),
        ("table:sales.daily", "at sales.daily on main of catalog 'lake' of realm 'acme' is a view, and no table"),
    ],
)
def test_grant_on_a_key_without_such_a_thing_is_warned_of(headwater: CommandLine, on: str, told: str) -> None:
    added = headwater("grant", "add", "acme/lake", "reader", "TABLE_LIST", "--on", on)

    assert (added.exit_code, told in added.stderr) == (0, True)


def test_removal_of_what_was_not_granted_says_what_is(headwater: CommandLine) -> None:
    headwater.ok("grant", "add", "acme/lake", "reader", "TABLE_LIST", "--on", "namespace:sales", "--on-branches", "dev")
    refused = headwater("grant", "remove", "acme/lake", "reader", "TABLE_LIST", "--on", "namespace:sales")

    assert refused.exit_code == 3
    assert (
        "is not granted TABLE_LIST on namespace:sales; it has TABLE_LIST on namespace:sales on branches dev" in refused.stderr
    )


def test_removal_of_some_says_which_were_not_there(headwater: CommandLine) -> None:
    headwater.ok("grant", "add", "acme/lake", "reader", "TABLE_LIST")
    removed = headwater("grant", "remove", "acme/lake", "reader", "TABLE_LIST", "VIEW_LIST")

    assert (removed.exit_code, "was not granted VIEW_LIST on catalog" in removed.stderr) == (0, True)
    assert headwater.data("grant", "list", "acme/lake", "--role", "reader") == []


def test_removal_warns_of_a_privilege_that_another_includes(headwater: CommandLine) -> None:
    headwater.ok("grant", "add", "acme/lake", "reader", "TABLE_LIST", "TABLE_READ_DATA")
    removed = headwater("grant", "remove", "acme/lake", "reader", "TABLE_LIST")

    assert "role reader still has TABLE_LIST there: TABLE_READ_DATA includes it" in removed.stderr


def test_management_of_a_realm_stays_with_its_role(headwater: CommandLine) -> None:
    assert headwater("grant", "remove", "acme", "service_admin", "SERVICE_MANAGE_ACCESS").exit_code == 5


def test_unknown_role_gets_no_grant(headwater: CommandLine) -> None:
    for command in ("add", "remove"):
        refused = headwater("grant", command, "acme/lake", "nobody", "TABLE_LIST")
        assert (refused.exit_code, "its roles: catalog_admin, reader" in refused.stderr) == (3, True)
