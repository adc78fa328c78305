"""``headwater grant``: what roles may do, and on what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from headwater.access import INCLUDED, Privilege, Securable, SecurableKind
from headwater.api.access_reasons import securable_kind_of
from headwater.api.role_owners import GrantRow, read_role_row
from headwater.catalogs import ContentKey
from headwater.cli.cli_session import CliSession, opened_catalog
from headwater.cli.command_address import Address, grant_scope_argument, scope_argument
from headwater.cli.role_arguments import PATTERN, PRIVILEGE, named_securable, opened_roles
from headwater.console import ResultView, ViewField, option_group, prints
from headwater.errors import NotFoundError

F = TypeVar("F", bound=Callable[..., Any])

GRANT: ResultView[GrantRow] = ResultView(
    "grant",
    "grants",
    (
        ViewField("realm", "the realm's id", "scope.realm"),
        ViewField(
            "catalog", "the catalog whose role it is; null: a principal role of the realm", lambda row: row.scope.name or None
        ),
        ViewField("role", "who may do it", header="ROLE"),
        ViewField("privilege", "what it may do; `headwater access privileges` explains it", header="PRIVILEGE"),
        ViewField("on", "on what, with what is below it, as `--on` takes it", header="ON"),
        ViewField(
            "branches",
            "the branches and tags on which it holds, as a pattern; null: the default branch, or what `on` names",
            header="BRANCHES",
        ),
        ViewField("key", "of a grant by content id: where that is on the default branch; null: not there", header="KEY"),
    ),
    named_by="privilege",
)

grant = click.Group("grant", help="Add, remove and list what roles may do.")

_what_options: Callable[[F], F] = option_group(
    grant_scope_argument,
    click.argument("role", metavar="ROLE"),
    click.argument("privileges", metavar="PRIVILEGE...", type=PRIVILEGE, nargs=-1, required=True),
    click.option(
        "--on",
        "securable",
        metavar="SECURABLE",
        help="namespace:KEY, table:KEY, view:KEY or reference:PATTERN, or table:id=UUID; default is the whole catalog or realm.",
    ),
    click.option(
        "--by-id", is_flag=True, help="Hold on the table or view that is there now, on REF, wherever it is renamed to."
    ),
    click.option(
        "--on-branches",
        "branches",
        metavar="PATTERN",
        type=PATTERN,
        help="Hold on these, such as dev*; default is the default branch.",
    ),
)


@grant.command(name="add")
@_what_options
@prints(GRANT, many=True)
def add_grant_command(
    session: CliSession,
    address: Address,
    role: str,
    privileges: tuple[Privilege, ...],
    securable: str | None,
    by_id: bool,
    branches: str | None,
) -> None:
    """Let a role do something on a realm or catalog, or on what --on names in the catalog, and on all that is below it.

    A grant on content holds on the default branch, unless --on-branches says where. A grant on a key holds for whatever is at that
    key; with --by-id it follows the table or view that is there now. What roles have already stays as it is.
    """
    named = named_securable(address, securable)
    _check_options(named, ref=address.ref, by_id=by_id, branches=branches)
    on, doubt = _securable(session, address, named, by_id=by_id)
    with opened_roles(session, address) as roles:
        read_role_row(roles, role)
        rows = roles.make_rows(role, privileges, on, branches or "")
        roles.put_grants(role, privileges, on, branches or "")
        session.show_changes(GRANT, rows, f"role {role} of {address.without_ref} is granted {_told(rows)}")
        if doubt is not None:
            session.warn(doubt)


@grant.command(name="remove")
@_what_options
@prints(GRANT, many=True)
def remove_grant_command(
    session: CliSession,
    address: Address,
    role: str,
    privileges: tuple[Privilege, ...],
    securable: str | None,
    by_id: bool,
    branches: str | None,
) -> None:
    """Take grants back, named as they were added. A server believes what it read for up to 5 seconds more."""
    named = named_securable(address, securable)
    _check_options(named, ref=address.ref, by_id=by_id, branches=branches)
    on, _ = _securable(session, address, named, by_id=by_id)
    with opened_roles(session, address) as roles:
        held = read_role_row(roles, role).grants
        rows = roles.make_rows(role, privileges, on, branches or "")
        absent = [row for row in rows if row not in held]
        if len(absent) == len(rows):
            has = "; ".join(row.told for row in held) or "nothing"
            raise NotFoundError(f"role {role} of {address.without_ref} is not granted {_told(rows)}; it has {has}")
        roles.remove_grants(role, privileges, on, branches or "")
        removed = [row for row in rows if row in held]
        session.show_changes(GRANT, removed, f"role {role} of {address.without_ref} is no longer granted {_told(removed)}")
        if absent:
            session.warn(f"role {role} of {address.without_ref} was not granted {_told(absent)}")
        _warn_of_rest(session, role, privileges, read_role_row(roles, role).grants, rows)


@grant.command(name="list")
@scope_argument
@click.option("--role", metavar="ROLE", help="Only those of this role.")
@prints(GRANT, many=True)
def list_grants_command(session: CliSession, address: Address, role: str | None) -> None:
    """List what the roles of a realm or of a catalog may do."""
    with opened_roles(session, address) as roles:
        listed = roles.list_roles() if role is None else [read_role_row(roles, role)]
        session.show_all(GRANT, [row for each in listed for row in each.grants])


def _check_options(on: Securable, *, ref: str | None, by_id: bool, branches: str | None) -> None:
    """raises UsageError for options that contradict what ``--on`` names"""
    if by_id and (on.kind not in (SecurableKind.TABLE, SecurableKind.VIEW) or not on.path):
        fault = "--by-id needs the key of a table or view: --on table:KEY or --on view:KEY"
    elif ref is not None and not by_id:
        fault = f"@{ref} says where --by-id looks; where a grant holds, --on-branches says"
    elif branches and on.kind is SecurableKind.REALM:
        fault = "a grant on a realm holds on every branch of its catalogs: leave --on-branches out"
    elif branches and on.kind is SecurableKind.REFERENCE:
        fault = "--on reference:PATTERN names the branches itself: leave --on-branches out"
    else:
        return
    raise click.UsageError(fault, click.get_current_context())


def _securable(session: CliSession, address: Address, on: Securable, *, by_id: bool) -> tuple[Securable, str | None]:
    """It by its content id, if that is asked for; and what to warn of where nothing is at its key, or something else."""
    if not on.path or not address.name:
        return on, None
    with opened_catalog(session, address) as opened:
        content = opened.get_content(address.ref, ContentKey(on.path))
        where = f"{ContentKey(on.path)} on {address.ref or opened.definition.default_branch} of {opened.label}"
    kind = None if content is None else securable_kind_of(content)
    if by_id and (content is None or kind is not on.kind):
        there = "nothing" if content is None else f"a {kind or 'content of another type'}"
        raise NotFoundError(f"there is {there} at {where}, and no {on.kind} whose content id could be granted on")
    if content is not None and by_id:
        return Securable(kind=on.kind, catalog=on.catalog, content_id=content.id), None
    if content is None:
        return on, f"nothing is at {where} yet: the grant holds for what will be there"
    if kind is not on.kind:
        return on, f"at {where} is a {kind or 'content of another type'}, and no {on.kind}: the grant does not reach it"
    return on, None


def _told(rows: Sequence[GrantRow]) -> str:
    return "; ".join(row.told for row in rows)


def _warn_of_rest(
    session: CliSession, role: str, privileges: Sequence[Privilege], left: Sequence[GrantRow], gone: Sequence[GrantRow]
) -> None:
    """Warn of a privilege that was taken back, and is still held by another one on the same."""
    place = gone[0]
    for privilege in privileges:
        for row in left:
            known = row.privilege in set(Privilege) and privilege in INCLUDED[Privilege(row.privilege)]
            if known and (row.on, row.branches) == (place.on, place.branches):
                session.warn(f"role {role} still has {privilege} there: {row.privilege} includes it")
                break
