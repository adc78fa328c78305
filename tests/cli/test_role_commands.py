"""``headwater role``: one grammar for the roles of a realm, which principals have, and those of a catalog, which roles have."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import CommandLine


@pytest.fixture
def people(headwater: CommandLine, catalog: str, tmp_path: Path) -> CommandLine:
    """Realm acme with catalog lake, and the principals alice and bob."""
    for name in ("alice", "bob"):
        headwater.ok("principal", "create", "acme", name, "--credentials", tmp_path / f"{name}.json")
    return headwater


def test_role_of_a_realm_is_given_to_principals(people: CommandLine) -> None:
    made = people.data("role", "create", "acme", "analysts", "--to", "alice", "--to", "bob")

    assert (made["catalog"], made["assignedTo"], made["grants"]) == (None, ["alice", "bob"], [])
    assert people.data("role", "unassign", "acme", "analysts", "--from", "bob")["assignedTo"] == ["alice"]
    assert people.data("principal", "show", "acme", "alice")["roles"] == ["analysts"]
    assert people.data("role", "assign", "acme", "analysts", "--to", "bob")["assignedTo"] == ["alice", "bob"]


def test_role_of_a_catalog_is_given_to_principal_roles(people: CommandLine) -> None:
    people.ok("role", "create", "acme", "analysts")
    made = people.data("role", "create", "acme/lake", "reader", "--to", "analysts")

    assert (made["catalog"], made["assignedTo"]) == ("lake", ["analysts"])
    assert people.data("role", "show", "acme", "analysts")["catalogRoles"] == ["lake/reader"]
    people.ok("role", "unassign", "acme/lake", "reader", "--from", "analysts")
    assert people.data("role", "show", "acme", "analysts")["catalogRoles"] == []


def test_roles_are_listed_with_who_has_them(people: CommandLine) -> None:
    people.ok("role", "create", "acme", "analysts", "--to", "alice")

    listed = {row["name"]: row["assignedTo"] for row in people.data("role", "list", "acme")}
    assert listed == {"analysts": ["alice"], "service_admin": ["root"]}
    assert [row["name"] for row in people.data("role", "list", "acme/lake")] == ["catalog_admin"]


def test_role_that_is_there_stays_as_it_is(people: CommandLine) -> None:
    people.ok("role", "create", "acme/lake", "reader")
    people.ok("grant", "add", "acme/lake", "reader", "TABLE_LIST")

    assert len(people.data("role", "create", "acme/lake", "reader")["grants"]) == 1


def test_principal_for_a_catalogs_role_is_told_the_way(people: CommandLine) -> None:
    refused = people("role", "create", "acme/lake", "reader", "--to", "alice")

    assert refused.exit_code == 3
    assert "there is a principal 'alice', which has roles of catalogs through a principal role" in refused.stderr
    assert [row["name"] for row in people.data("role", "list", "acme/lake")] == ["catalog_admin"], "nothing was done"


def test_unknown_holder_leaves_no_role_behind(people: CommandLine) -> None:
    assert people("role", "create", "acme", "writers", "--to", "alice", "--to", "nobody").exit_code == 3
    assert people("role", "show", "acme", "writers").exit_code == 3
    people.ok("role", "create", "acme", "writers")
    assert people("role", "assign", "acme", "writers", "--to", "alice", "--to", "nobody").exit_code == 3
    assert people.data("role", "show", "acme", "writers")["assignedTo"] == []


def test_unknown_role_is_told_with_what_there_is(people: CommandLine) -> None:
    for words in (("show",), ("drop",), ("assign", "--to", "alice"), ("unassign", "--from", "alice")):
        refused = people("role", words[0], "acme", "nobody", *words[1:])

        assert refused.exit_code == 3
        assert refused.stderr == "headwater: acme has no role 'nobody'; its roles: service_admin\n"


def test_role_that_somebody_does_not_have_cannot_be_taken(people: CommandLine) -> None:
    people.ok("role", "create", "acme", "analysts", "--to", "alice")
    refused = people("role", "unassign", "acme", "analysts", "--from", "bob")

    assert (refused.exit_code, "it is assigned to alice" in refused.stderr) == (3, True)


def test_dropped_role_is_nobodys(people: CommandLine) -> None:
    people.ok("role", "create", "acme", "analysts", "--to", "alice")
    people.ok("role", "create", "acme/lake", "reader", "--to", "analysts")
    assert people.data("role", "drop", "acme/lake", "reader")["assignedTo"] == ["analysts"]
    assert people.data("role", "drop", "acme", "analysts")["assignedTo"] == ["alice"]

    assert people.data("principal", "show", "acme", "alice")["roles"] == []
    assert [row["name"] for row in people.data("role", "list", "acme/lake")] == ["catalog_admin"]


def test_roles_by_which_a_realm_is_managed_stay(people: CommandLine) -> None:
    assert people("role", "drop", "acme", "service_admin").exit_code == 5
    assert people("role", "unassign", "acme", "service_admin", "--from", "root").exit_code == 5
