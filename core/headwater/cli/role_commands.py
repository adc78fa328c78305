"""``headwater role``: the roles of a realm, which principals have, and those of a catalog, which principal roles have."""

from __future__ import annotations

import click

from headwater.api.role_owners import GrantRow, RoleRow, read_role_row
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import Address, scope_argument
from headwater.cli.role_arguments import opened_roles
from headwater.console import ResultView, ViewField, list_of, prints, time_field
from headwater.errors import NotFoundError


def _grant(row: GrantRow) -> dict[str, str | None]:
    return {"privilege": row.privilege, "on": row.on, "branches": row.branches, "key": row.key}


ROLE: ResultView[RoleRow] = ResultView(
    "role",
    "roles",
    (
        ViewField("realm", "the realm's id", "scope.realm", "REALM"),
        ViewField(
            "catalog", "the catalog that it is a role of; null: a principal role", lambda row: row.scope.name or None, "CATALOG"
        ),
        ViewField("name", "unique in its realm or its catalog", header="ROLE"),
        ViewField("assignedTo", "principals; of a catalog's role: principal roles", header="ASSIGNED TO"),
        ViewField("catalogRoles", "of a principal role: what it has in catalogs, as CATALOG/ROLE", header="CATALOG ROLES"),
        ViewField("created", "when it was created", header="CREATED", form=time_field),
        ViewField(
            "grants",
            "what it may do",
            form=list_of(_grant),
            inside={
                "[].privilege": "as in a [grant](#grant)",
                "[].on": "as in a [grant](#grant)",
                "[].branches": "as in a [grant](#grant)",
                "[].key": "as in a [grant](#grant)",
            },
        ),
    ),
    named_by="name",
)

role = click.Group(
    "role", help="List, create, assign and drop roles: REALM names those of a realm, REALM/CATALOG those of a catalog."
)
_name_argument = click.argument("name", metavar="ROLE")


@role.command(name="list")
@scope_argument
@prints(ROLE, many=True)
def list_roles_command(session: CliSession, address: Address) -> None:
    """List the roles of a realm or of a catalog, with who has them."""
    with opened_roles(session, address) as roles:
        session.show_all(ROLE, roles.list_roles())


@role.command(name="show")
@scope_argument
@_name_argument
@prints(ROLE)
def show_role_command(session: CliSession, address: Address, name: str) -> None:
    """Show one role: who has it, and what it may do."""
    with opened_roles(session, address) as roles:
        session.show(ROLE, read_role_row(roles, name))


@role.command(name="create")
@scope_argument
@_name_argument
@click.option(
    "--to",
    "holders",
    metavar="NAME",
    multiple=True,
    help="Assign it, too: to a principal, or a catalog's role to a principal role; may be repeated.",
)
@prints(ROLE)
def create_role_command(session: CliSession, address: Address, name: str, holders: tuple[str, ...]) -> None:
    """Create a role that may do nothing yet. One that is there stays as it is.

    A role of a realm is for people and programs: it is assigned to principals. A role of a catalog is for what is to be done there:
    it gets grants, and is assigned to principal roles.
    """
    with opened_roles(session, address) as roles:
        for holder in holders:
            roles.check_holder(holder)
        roles.create_role(name)
        for holder in holders:
            roles.assign_role(name, holder)
        row = read_role_row(roles, name)
        session.show_done(ROLE, row, f"role {name} of {address.without_ref} is there, {_holders(row)}")


@role.command(name="drop")
@scope_argument
@_name_argument
@prints(ROLE)
def drop_role_command(session: CliSession, address: Address, name: str) -> None:
    """Take a role from everybody who has it, and drop it with its grants."""
    with opened_roles(session, address) as roles:
        dropped = read_role_row(roles, name)
        roles.drop_role(name)
        session.show_done(ROLE, dropped, f"role {name} of {address.without_ref} is dropped")


@role.command(name="assign")
@scope_argument
@_name_argument
@click.option(
    "--to",
    "holders",
    metavar="NAME",
    multiple=True,
    required=True,
    help="A principal; for a catalog's role, a principal role; may be repeated.",
)
@prints(ROLE)
def assign_role_command(session: CliSession, address: Address, name: str, holders: tuple[str, ...]) -> None:
    """Give a role to somebody: a role of a realm to a principal, a role of a catalog to a principal role."""
    with opened_roles(session, address) as roles:
        read_role_row(roles, name)
        for holder in holders:
            roles.check_holder(holder)
        for holder in holders:
            roles.assign_role(name, holder)
        row = read_role_row(roles, name)
        session.show_done(ROLE, row, f"role {name} of {address.without_ref} is {_holders(row)}")


@role.command(name="unassign")
@scope_argument
@_name_argument
@click.option("--from", "holder", metavar="NAME", required=True, help="A principal; for a catalog's role, a principal role.")
@prints(ROLE)
def unassign_role_command(session: CliSession, address: Address, name: str, holder: str) -> None:
    """Take a role from somebody. A server believes what it read for up to 5 seconds more."""
    with opened_roles(session, address) as roles:
        row = read_role_row(roles, name)
        roles.check_holder(holder)
        if holder not in row.assigned_to:
            names = ", ".join(row.assigned_to) or "nobody"
            raise NotFoundError(f"{holder} does not have role {name} of {address.without_ref}; it is assigned to {names}")
        roles.unassign_role(name, holder)
        row = read_role_row(roles, name)
        session.show_done(ROLE, row, f"role {name} of {address.without_ref} is {_holders(row)}")


def _holders(row: RoleRow) -> str:
    return f"assigned to {', '.join(row.assigned_to)}" if row.assigned_to else "assigned to nobody"
