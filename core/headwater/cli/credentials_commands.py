"""``headwater realm rotate-credentials`` and ``reset-credentials``: other credentials for a realm's root; and how a principal is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from headwater.api.credentials_files import Place, PrintedCredentials, reset_into_file, rotate_into_file
from headwater.cli.cli_session import CliSession
from headwater.cli.command_options import realm_argument
from headwater.console import DURATION, ResultView, UndashedPath, ViewField, prints, time_after, time_field
from headwater.errors import RefusedError
from headwater.realms import ROOT_PRINCIPAL, Principal, RealmRegistry, read_realm_grants

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")


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


class _CredentialsPlace(UndashedPath):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return PrintedCredentials(_print_whole) if value == "-" else super().convert(value, param, ctx)


def _print_whole(text: str) -> None:
    if sys.stdout is None:  # it was closed before the process began
        raise RefusedError("the credentials could not be printed, and are not valid: standard output is closed")
    try:
        click.echo(text, nl=False)
        sys.stdout.flush()  # they are out of the process before the realm knows them
    except OSError as fault:
        raise RefusedError(f"the credentials could not be printed, and are not valid: {fault.strerror}") from fault


credentials_option: Callable[[F], F] = click.option(
    "--credentials",
    "place",
    metavar="FILE",
    required=True,
    type=_CredentialsPlace(dir_okay=False),
    help="New file for the credentials, readable by you only; - prints them on standard output, as JSON, and nothing else there."
    " They are shown nowhere else.",
)


def show_with_credentials(session: CliSession, view: ResultView[T], item: T, sentence: str, place: Place) -> None:
    """Show what a command did. Where credentials went to standard output, they are alone there, so it is said on standard error."""
    if isinstance(place, PrintedCredentials):
        session.note(sentence)
    else:
        session.show_done(view, item, sentence)


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
def rotate_credentials_command(session: CliSession, realm_id: str, place: Place, overlap: float | None) -> None:
    """Rotate the root credentials of a realm. The former ones stay valid until the next rotation; older ones become invalid.

    A server that asks who calls opens the management of the realm to them. Anyone who has the store's URL needs none.

    After an interruption, run the same command to continue; but not with `--credentials -`, which makes other credentials each time, so
    that those before the first call would become invalid.
    """
    show_rotated(session, realm_id, ROOT_PRINCIPAL, place, overlap_seconds=overlap)


@click.command(name="reset-credentials")
@realm_argument
@credentials_option
@prints(PRINCIPAL)
def reset_credentials_command(session: CliSession, realm_id: str, place: Place) -> None:
    """Reset the root credentials of a realm, and revoke all former ones at once: they may have leaked.

    A server that asks who calls opens the management of the realm to them. Anyone who has the store's URL needs none.

    After an interruption, run the same command to continue. If FILE's credentials are in force already, none are made, and a
    warning says so. With `--credentials -` each call makes other credentials.
    """
    show_reset(session, realm_id, ROOT_PRINCIPAL, place)


def show_rotated(session: CliSession, realm_id: str, name: str, place: Place, *, overlap_seconds: float | None) -> None:
    """Rotate the credentials of a principal, and show it."""
    with session.open_store() as store:
        realms = RealmRegistry(store)
        held = rotate_into_file(realms, realm_id, name, place, overlap_seconds=overlap_seconds, warn=session.warn)
        _show_renewed(session, realms, realm_id, held, place)


def show_reset(session: CliSession, realm_id: str, name: str, place: Place) -> None:
    """Reset the credentials of a principal, and show it."""
    with session.open_store() as store:
        realms = RealmRegistry(store)
        held = reset_into_file(realms, realm_id, name, place, warn=session.warn)
        _show_renewed(session, realms, realm_id, held, place)


def _show_renewed(session: CliSession, realms: RealmRegistry, realm_id: str, held: Principal, place: Place) -> None:
    show_with_credentials(
        session,
        PRINCIPAL,
        principal_row(realms, realm_id, held),
        f"the credentials of principal {held.name} of realm {realm_id} are those {told_place(place)}, of client"
        f" {held.credentials.client_id}",
        place,
    )


def told_place(place: Place) -> str:
    return f"on {place}" if isinstance(place, PrintedCredentials) else f"in {place}"


def principal_row(realms: RealmRegistry, realm_id: str, principal: Principal) -> PrincipalRow:
    """A principal with its roles, which are read for it alone."""
    roles = read_realm_grants(realms.open_realm(realm_id)).roles_of(principal.entity)
    return PrincipalRow(realm_id, principal, [role.name for role in roles])
