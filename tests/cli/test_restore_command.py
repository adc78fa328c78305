"""``headwater realm restore``, and the commands that take a deleted catalog or branch back, or away."""

from __future__ import annotations

from uuid import uuid4

import pytest
from commandline import CommandLine

from headwater import Store
from headwater.catalogs import Catalog, Catalogs, ContentKey, Delete, IcebergTable, Put, TableClaim, TableClaims
from headwater.realms import RealmRegistry
from headwater.store import id_text

ORDERS = ContentKey.of("orders")


@pytest.fixture
def lake(store: Store, catalog: str) -> Catalog:
    return Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")


@pytest.fixture
def dropped(lake: Catalog) -> str:
    """The commit before a table was dropped."""
    done = lake.commit(None, [Put(ORDERS, IcebergTable(metadata_location="s3://lake/orders/metadata/1.json"))])
    lake.commit(None, [Delete(ORDERS)])
    assert done.commit_id is not None
    return id_text(done.commit_id)


def is_there(headwater: CommandLine) -> bool:
    return any(entry["key"] == "orders" for entry in headwater.items("catalog", "tables", "acme/lake"))


def test_restoration_is_shown_before_it_is_confirmed(headwater: CommandLine, dropped: str) -> None:
    result = headwater("realm", "restore", "acme/lake@main", "--to", dropped)

    assert result.exit_code == 5
    assert "lake/main   restore" in result.stdout
    assert "--confirm acme" in result.stderr
    assert not is_there(headwater)


def test_confirmed_restoration_is_done(headwater: CommandLine, dropped: str) -> None:
    [step] = headwater.data("realm", "restore", "acme/lake@main", "--to", dropped, "--confirm", "acme")

    assert (step["reference"], step["act"], step["target"], step["put"]) == ("lake/main", "restore", dropped, 1)
    assert is_there(headwater)


def test_dry_run_of_a_restoration_writes_nothing(headwater: CommandLine, dropped: str) -> None:
    arguments = ("realm", "restore", "acme/lake@main", "--to", dropped, "--confirm", "acme", "--dry-run")

    assert headwater.data(*arguments)[0]["changes"] == {"ICEBERG_TABLE": {"put": 1, "changed": 0, "removed": 0}}
    assert not is_there(headwater)


def test_dry_run_needs_no_confirmation(headwater: CommandLine, dropped: str) -> None:
    result = headwater("realm", "restore", "acme/lake@main", "--to", dropped, "--confirm", "other", "--dry-run")

    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize("text", ["main~1", "~1", "-~1", "before"])
def test_restoration_takes_the_revisions_of_other_commands(
    headwater: CommandLine, lake: Catalog, dropped: str, text: str
) -> None:
    lake.create_tag("before", dropped)

    [step] = headwater.data("realm", "restore", "acme/lake@main", "--to", text, "--dry-run")

    assert step["target"] == dropped


@pytest.mark.parametrize(
    ("address", "text", "code"),
    [("acme/lake@main", "yesterday", 3), ("acme/lake@main", "main~9", 3), ("acme/lake", "main~1", 5), ("acme", "a b", 2)],
)
def test_revision_of_nothing_is_told(headwater: CommandLine, dropped: str, address: str, text: str, code: int) -> None:
    result = headwater("realm", "restore", address, "--to", text, "--dry-run")

    assert (result.exit_code, text in result.stderr) == (code, True), result.stderr


def test_restoration_can_be_left_to_a_worker(headwater: CommandLine, dropped: str) -> None:
    task = headwater.data("realm", "restore", "acme/lake@main", "--to", dropped, "--confirm", "acme", "--detach")

    assert (task["kind"], task["subject"], task["state"]) == ("restore", "lake/main", "WAITING")
    assert not is_there(headwater)


def test_restoration_is_refused_while_the_same_is_under_way(headwater: CommandLine, dropped: str) -> None:
    common = ("realm", "restore", "acme/lake@main", "--confirm", "acme")
    headwater.ok(*common, "--to", dropped, "--detach")

    result = headwater(*common, "--to", dropped, "--prune")
    assert result.exit_code == 5
    assert "is under way" in result.stderr


def test_restoration_with_nothing_to_do_says_so(headwater: CommandLine, catalog: str) -> None:
    assert "nothing is to be restored" in headwater.ok("realm", "restore", "acme", "grants", "--to", "1ms")


def test_table_that_stays_away_is_a_finding(headwater: CommandLine, store: Store, dropped: str) -> None:
    TableClaims(RealmRegistry(store).open_realm("acme")).take_claims([TableClaim("0" * 16, uuid4(), "s3://lake/orders")])
    result = headwater("realm", "restore", "acme/lake@main", "--to", dropped, "--confirm", "acme")

    assert result.exit_code == 8
    assert "orders stays away" in result.stderr


def test_deleted_catalog_is_undeleted(headwater: CommandLine, dropped: str) -> None:
    said = headwater.ok("catalog", "delete", "acme/lake", "--confirm", "acme/lake")
    [deleted] = headwater.data("catalog", "list", "acme", "--deleted")
    headwater.ok("catalog", "undelete", "acme/lake")

    assert deleted["heldUntil"] in said
    assert [entry["id"] for entry in headwater.data("catalog", "list", "acme")] == [deleted["id"]]


def test_catalog_comes_back_under_a_new_name(headwater: CommandLine, catalog: str) -> None:
    headwater.ok("catalog", "delete", "acme/lake", "--confirm", "acme/lake")
    headwater.ok("catalog", "create", "acme/lake", "--base-location", "s3://new/", "--hold", "1h")
    headwater.ok("catalog", "undelete", "acme/lake", "--as", "old-lake")

    shown = headwater.data("catalog", "list", "acme")
    assert [(entry["name"], entry["hold"]) for entry in shown] == [("lake", "1h"), ("old-lake", None)]


def test_purge_of_a_catalog_is_confirmed(headwater: CommandLine, catalog: str) -> None:
    headwater.ok("catalog", "delete", "acme/lake", "--confirm", "acme/lake")
    assert headwater("catalog", "purge", "acme/lake").exit_code == 5
    headwater.ok("catalog", "purge", "acme/lake", "--confirm", "acme/lake")

    assert headwater("catalog", "undelete", "acme/lake").exit_code == 5


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_deleted_branch_or_tag_is_undeleted(headwater: CommandLine, dropped: str, kind: str) -> None:
    headwater.ok("catalog", kind, "create", "acme/lake", "one", "--at", dropped)
    headwater.ok("catalog", kind, "delete", "acme/lake", "one")

    assert headwater.data("catalog", kind, "undelete", "acme/lake", "one")["hash"] == dropped


def test_deleted_branches_are_listed(headwater: CommandLine, dropped: str) -> None:
    headwater.ok("catalog", "branch", "create", "acme/lake", "dev")
    headwater.ok("catalog", "branch", "delete", "acme/lake", "dev")

    assert [entry["name"] for entry in headwater.data("catalog", "branch", "list", "acme/lake", "--deleted")] == ["dev"]


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_deleted_things_are_listed_with_their_hold(headwater: CommandLine, dropped: str, kind: str) -> None:
    headwater.ok("catalog", kind, "create", "acme/lake", "one")
    headwater.ok("catalog", kind, "delete", "acme/lake", "one")

    (shown,) = headwater.data("catalog", kind, "list", "acme/lake", "--deleted")
    assert (shown["kind"], shown["name"]) == (kind, "one")
    assert shown["heldUntil"] > shown["deleted"] >= shown["created"]


def test_undeletion_of_what_is_there_says_so(headwater: CommandLine, dropped: str) -> None:
    result = headwater("catalog", "branch", "undelete", "acme/lake", "main")

    assert (result.exit_code, "cannot undelete branch 'main'" in result.stderr) == (6, True)


def test_list_of_deleted_catalogs_shows_ids_and_holds(headwater: CommandLine, catalog: str) -> None:
    headwater.ok("catalog", "delete", "acme/lake", "--confirm", "acme/lake")
    (held,) = headwater.data("catalog", "list", "acme", "--deleted")

    shown = headwater.ok("catalog", "list", "acme", "--deleted")
    assert held["id"] in shown
    assert held["heldUntil"] in shown


@pytest.mark.parametrize(("name", "code"), [("lake", 5), ("sea", 3)])
def test_purge_of_no_deleted_catalog_says_why(headwater: CommandLine, catalog: str, name: str, code: int) -> None:
    assert headwater("catalog", "purge", f"acme/{name}").exit_code == code
    assert "--confirm" not in headwater("catalog", "purge", f"acme/{name}").stderr
