"""``headwater realm rotate-credentials`` and ``reset-credentials``: other credentials for a realm's root; and how a principal is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from headwater.api.credentials_files import reset_into_file, rotate_into_file
from headwater.cli.cli_session import CliSession
from headwater.cli.command_options import NEW_FILE, realm_argument
from headwater.console import DURATION, ResultView, ViewField, prints, time_after, time_field
from headwater.realms import ROOT_PRINCIPAL, Principal, RealmRegistry, read_realm_grants

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class PrincipalRow:
    """A principal of a realm with the names of its principal roles."""

    realm: str
    principal: Principal
    roles: Sequence[str]


PRINCIPAL: ResultView[PrincipalRow] = ResultView(
    "principal",
    "principals",
    (
        ViewField("realm", "the realm's id", header="REALM"),
        ViewField("name", "unique in its realm", "principal.name", "PRINCIPAL"),
        ViewField("disabled", "since when it cannot log in; null: it can", "principal.disabled", "DISABLED", time_field),
        ViewField("roles", "its principal roles", header="ROLES"),
        ViewField(
            "clientId",
            "its client id, which clients are told as REALM.ID; the secret stands in the credentials file only",
            "principal.credentials.client_id",
            "CLIENT ID",
        ),
        ViewField(
            "formerClientId",
            "of the credentials before these, which still hold; null: none do",
            "principal.former.client_id",
        ),
        ViewField(
            "formerUntil", "how long those hold; null: until the next rotation", "principal.former_until", form=time_after
        ),
        ViewField("created", "when it was created", "principal.created", "CREATED", time_field),
        ViewField(
            "renewed", "when the credentials last changed; null: they are the first", "principal.renewed", form=time_field
        ),
    ),
    named_by="name",
)

credentials_option: Callable[[F], F] = click.option(
    "--credentials",
    "file",
    metavar="FILE",
    required=True,
    type=NEW_FILE,
    help="New file for the credentials, readable by you only. They are shown nowhere else.",
)


overlap_option: Callable[[F], F] = click.option(
    "--overlap",
    type=DURATION,
    metavar="DURATION",
    help="How long the former ones still hold; default is until the next rotation.",
)


@click.command(name="rotate-credentials")
@realm_argument
@credentials_option
@overlap_option
@prints(PRINCIPAL)
def rotate_credentials_command(session: CliSession, realm_id: str, file: Path, overlap: float | None) -> None:
    """Rotate the root credentials of a realm. The former ones stay valid until the next rotation; older ones become invalid.

    A server that asks who calls opens the management of the realm to them. Anyone who has the store's URL needs none.

    After an interruption, run the same command to continue.
    """
    show_rotated(session, realm_id, ROOT_PRINCIPAL, file, overlap_seconds=overlap)


@click.command(name="reset-credentials")
@realm_argument
@credentials_option
@prints(PRINCIPAL)
def reset_credentials_command(session: CliSession, realm_id: str, file: Path) -> None:
    """Reset the root credentials of a realm, and revoke all former ones at once: they may have leaked.

    A server that asks who calls opens the management of the realm to them. Anyone who has the store's URL needs none.

    After an interruption, run the same command to continue. If FILE's credentials are in force already, none are made, and a
    warning says so.
    """
    show_reset(session, realm_id, ROOT_PRINCIPAL, file)


def show_rotated(session: CliSession, realm_id: str, name: str, file: Path, *, overlap_seconds: float | None) -> None:
    """Rotate the credentials of a principal, and show it."""
    with session.open_store() as store:
        realms = RealmRegistry(store)
        held = rotate_into_file(realms, realm_id, name, file, overlap_seconds=overlap_seconds, warn=session.warn)
        _show_renewed(session, realms, realm_id, held, file)


def show_reset(session: CliSession, realm_id: str, name: str, file: Path) -> None:
    """Reset the credentials of a principal, and show it."""
    with session.open_store() as store:
        realms = RealmRegistry(store)
        _show_renewed(session, realms, realm_id, reset_into_file(realms, realm_id, name, file, warn=session.warn), file)


def _show_renewed(session: CliSession, realms: RealmRegistry, realm_id: str, held: Principal, file: Path) -> None:
    session.show_done(
        PRINCIPAL,
        principal_row(realms, realm_id, held),
        f"the credentials of principal {held.name} of realm {realm_id} are those in {file}, of client {held.credentials.client_id}",
    )


def principal_row(realms: RealmRegistry, realm_id: str, principal: Principal) -> PrincipalRow:
    """A principal with its roles, which are read for it alone."""
    roles = read_realm_grants(realms.open_realm(realm_id)).roles_of(principal.entity)
    return PrincipalRow(realm_id, principal, [role.name for role in roles])
