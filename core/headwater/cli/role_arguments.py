"""Whose roles a command is about, ``REALM`` or ``REALM/CATALOG``, and on what they are granted something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from headwater.access import Securable, checked_pattern, parse_privilege, parse_securable
from headwater.api.role_owners import RoleOwner, RoleScope, open_roles
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import Address
from headwater.console import ParsedType
from headwater.errors import RefusedError

PRIVILEGE = ParsedType("privilege", parse_privilege)
PATTERN = ParsedType("pattern", checked_pattern)


def named_securable(scope: Address, text: str | None) -> Securable:
    """What the command line names in a realm or catalog; without a text, that itself. Raises UsageError for another form."""
    try:
        return parse_securable(text, catalog=scope.name or None)
    except RefusedError as wrong:
        raise click.UsageError(str(wrong), click.get_current_context()) from wrong


@contextmanager
def opened_roles(session: CliSession, address: Address) -> Iterator[RoleOwner]:
    """Open the roles of a realm or a catalog as a user: they can be read, and changed while the realm is ACTIVE."""
    with session.open_store() as store:
        yield open_roles(store, RoleScope(address.realm, address.name))
