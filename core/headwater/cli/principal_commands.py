"""``headwater principal``: who can log in to a realm, and with which credentials."""

from __future__ import annotations

from collections.abc import Callable

import click

from headwater.api.credentials_files import Place, create_into_file, ready_realm
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import realm_address_argument
from headwater.cli.credentials_commands import (
    PRINCIPAL,
    PrincipalRow,
    credentials_option,
    overlap_option,
    principal_row,
    show_reset,
    show_rotated,
    show_with_credentials,
    told_place,
)
from headwater.console import option_group, prints
from headwater.realms import (
    Principal,
    RealmRegistry,
    assign_principal_role,
    checked_principal_name,
    disable_principal,
    drop_principal,
    enable_principal,
    list_principals,
    read_principal,
    read_principal_role,
    read_realm_grants,
)

principal = click.Group("principal", help="List, create, disable and drop principals, and renew their credentials.")
_principal_arguments = option_group(realm_address_argument, click.argument("name", metavar="PRINCIPAL"))


@principal.command(name="list")
@realm_address_argument
@prints(PRINCIPAL, many=True)
def list_principals_command(session: CliSession, realm_id: str) -> None:
    """List the principals of a realm."""
    with session.open_store() as store:
        realms = RealmRegistry(store)
        listed = list_principals(realms, realm_id)
        grants = read_realm_grants(realms.open_realm(realm_id))
        rows = [PrincipalRow(realm_id, held, [role.name for role in grants.roles_of(held.entity)]) for held in listed]
    session.show_all(PRINCIPAL, rows)


@principal.command(name="show")
@_principal_arguments
@prints(PRINCIPAL)
def show_principal_command(session: CliSession, realm_id: str, name: str) -> None:
    """Show one principal: whether it can log in, and its roles."""
    with session.open_store() as store:
        realms = RealmRegistry(store)
        session.show(PRINCIPAL, principal_row(realms, realm_id, read_principal(realms, realm_id, name)))


@principal.command(name="create")
@_principal_arguments
@credentials_option
@click.option("--role", "roles", metavar="ROLE", multiple=True, help="Assign it this principal role; may be repeated.")
@prints(PRINCIPAL)
def create_principal_command(session: CliSession, realm_id: str, name: str, place: Place, roles: tuple[str, ...]) -> None:
    """Create a principal, which may do nothing until it has a role. `credential` in FILE is what its engine is configured with.

    After an interruption, run the same command to continue. With `--credentials -` it may say that the principal is there: reset its
    credentials then, and assign its roles.
    """
    checked_principal_name(name)
    with session.open_store() as store:
        realms = RealmRegistry(store)
        realm = ready_realm(realms, realm_id)
        for role in roles:
            read_principal_role(realms, realm_id, role)
        made = create_into_file(realms, realm, name, place, warn=session.warn)
        for role in roles:
            assign_principal_role(realms, realm_id, role, name)
        show_with_credentials(
            session,
            PRINCIPAL,
            principal_row(realms, realm_id, made),
            f"principal {name} of realm {realm_id} is there; its credentials are {told_place(place)}",
            place,
        )


@principal.command(name="rotate")
@_principal_arguments
@credentials_option
@overlap_option
@prints(PRINCIPAL)
def rotate_principal_command(session: CliSession, realm_id: str, name: str, place: Place, overlap: float | None) -> None:
    """Rotate the credentials of a principal. The former ones stay valid until the next rotation; older ones become invalid.

    After an interruption, run the same command to continue; but not with `--credentials -`, which makes other credentials each time, so
    that those before the first call would become invalid.
    """
    show_rotated(session, realm_id, name, place, overlap_seconds=overlap)


@principal.command(name="reset")
@_principal_arguments
@credentials_option
@prints(PRINCIPAL)
def reset_principal_command(session: CliSession, realm_id: str, name: str, place: Place) -> None:
    """Reset the credentials of a principal, and revoke all former ones at once: they may have leaked.

    Tokens that a server gave for the former ones end within 5 seconds. After an interruption, run the same command to continue. If
    FILE's credentials are in force already, none are made, and a warning says so. With `--credentials -` each call makes other
    credentials.
    """
    show_reset(session, realm_id, name, place)


@principal.command(name="disable")
@_principal_arguments
@prints(PRINCIPAL)
def disable_principal_command(session: CliSession, realm_id: str, name: str) -> None:
    """Refuse a principal from now on, and within 5 seconds the tokens that it has. Its credentials and roles stay."""
    _switched(session, realm_id, name, disable_principal)


@principal.command(name="enable")
@_principal_arguments
@prints(PRINCIPAL)
def enable_principal_command(session: CliSession, realm_id: str, name: str) -> None:
    """Let a disabled principal log in again, with the credentials and roles that it had."""
    _switched(session, realm_id, name, enable_principal)


@principal.command(name="drop")
@_principal_arguments
@prints(PRINCIPAL)
def drop_principal_command(session: CliSession, realm_id: str, name: str) -> None:
    """Take all roles from a principal, and drop it: its credentials open nothing any more. One that may come back is disabled instead.

    After an interruption, run the same command to continue.
    """
    with session.open_store() as store:
        realms = RealmRegistry(store)
        dropped = principal_row(realms, realm_id, read_principal(realms, realm_id, name))
        drop_principal(realms, realm_id, name)
        session.show_done(PRINCIPAL, dropped, f"principal {name} of realm {realm_id} is dropped")


def _switched(session: CliSession, realm_id: str, name: str, switch: Callable[[RealmRegistry, str, str], Principal]) -> None:
    with session.open_store() as store:
        realms = RealmRegistry(store)
        switched = switch(realms, realm_id, name)
        told = "enabled" if switched.disabled is None else "disabled"
        session.show_done(
            PRINCIPAL, principal_row(realms, realm_id, switched), f"principal {name} of realm {realm_id} is {told}"
        )
