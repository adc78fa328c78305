"""``headwater access``: why somebody may do something, or not; and what there is to be granted."""

from __future__ import annotations

import click

from headwater.access import (
    PRIVILEGES,
    Privilege,
    SecurableKind,
)
from headwater.api.access_reasons import AccessAnswer, explain_rights
from headwater.api.role_owners import RoleScope
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import Address, scope_ref_argument
from headwater.cli.role_arguments import PRIVILEGE, named_securable
from headwater.console import ResultView, ViewField, list_of, prints, text_field

_ALL = "all others"


ACCESS_ANSWER: ResultView[AccessAnswer] = ResultView(
    "access",
    "answers",
    (
        ViewField("allowed", "whether it may", "is_allowed"),
        ViewField("principal", "who was asked about"),
        ViewField("privilege", "the right"),
        ViewField("on", "on what, seen through which branch"),
        ViewField("why", "the reasons, in sentences"),
        ViewField(
            "rule", "the grant that allows it, with the roles through which it comes", "explanation.rule", form=text_field
        ),
        ViewField(
            "near",
            "where it is not allowed: grants that allow something else there, or this elsewhere",
            "explanation.near",
            form=list_of(str),
        ),
        ViewField("roles", "the principal roles that count"),
    ),
)

PRIVILEGE_RULE: ResultView[Privilege] = ResultView(
    "privilege",
    "privileges",
    (
        ViewField("name", "what grants call it", str, "PRIVILEGE"),
        ViewField("about", "what it allows", lambda privilege: PRIVILEGES[privilege].summary, "ALLOWS"),
        ViewField(
            "grantedOn",
            "on what it can be granted",
            lambda privilege: [kind.value for kind in SecurableKind if kind in PRIVILEGES[privilege].kinds],
            "GRANTED ON",
        ),
        ViewField(
            "includes",
            "the privileges that whoever has it has, too, with what those include",
            lambda privilege: [each.value for each in PRIVILEGES[privilege].includes],
            "INCLUDES",
        ),
    ),
)

access = click.Group("access", help="Explain who may do what, and which privileges there are.")


@access.command(name="explain")
@scope_ref_argument
@click.argument("principal", metavar="PRINCIPAL")
@click.argument("privilege", metavar="PRIVILEGE", type=PRIVILEGE)
@click.argument("securable", metavar="[SECURABLE]", required=False)
@click.option(
    "--with-role",
    "added",
    metavar="ROLE",
    multiple=True,
    help="As if it had this principal role, too, as an identity provider may say; may be repeated.",
)
@prints(ACCESS_ANSWER)
def explain_access_command(
    session: CliSession,
    address: Address,
    principal: str,
    privilege: Privilege,
    securable: str | None,
    added: tuple[str, ...],
) -> None:
    """Say whether a principal may do something through a server, by which grant and which roles, or what comes near it.

    SECURABLE is namespace:KEY, table:KEY, view:KEY or reference:NAME, or table:id=UUID; without it, the catalog or the realm is meant.
    The exit code is 0 for both answers: see `allowed`.
    """
    on = named_securable(address, securable)
    scope = RoleScope(address.realm, address.name)
    with session.open_store() as store:
        answer = explain_rights(store, scope, principal, privilege, on, ref=address.ref, roles=added)
    session.show(ACCESS_ANSWER, answer)
    if address.name and session.settings.server_access:
        plugin = session.settings.server_access
        session.warn(
            f"this is what the grants say: a server with HEADWATER_SERVER_ACCESS={plugin} asks that plug-in about catalogs"
        )


@access.command(name="privileges")
@prints(PRIVILEGE_RULE, many=True)
def list_privileges_command(session: CliSession) -> None:
    """List the privileges: what each allows, on what it can be granted, and which others it includes, with what those include."""
    rows = [PRIVILEGE_RULE.data(privilege) for privilege in Privilege]
    others = len(Privilege) - 1
    told = [{**row, "includes": _ALL if len(row["includes"]) == others else row["includes"]} for row in rows]
    if session.is_text:
        session.print_result(rows, lambda: PRIVILEGE_RULE.columns(told, session.layout))
    else:
        session.show_all(PRIVILEGE_RULE, list(Privilege))
