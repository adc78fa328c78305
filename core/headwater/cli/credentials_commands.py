"""The file that hands the credentials of a principal to a person: written once, before the realm knows them, for its owner only.

A file of replacement credentials names the client id that it replaces. So an interrupted command continues with the file
that it wrote, and never mistakes an old file for it.

``headwater realm rotate-credentials`` and ``reset-credentials``: other credentials for a realm's root.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from headwater.cli.cli_session import CliSession
from headwater.cli.command_options import NEW_FILE, realm_argument
from headwater.clock import as_text
from headwater.console import DURATION, ResultView, ViewField, prints, time_after, time_field
from headwater.errors import CorruptionError, RefusedError, SwapConflictError
from headwater.realms import (
    ROOT_PRINCIPAL,
    Credentials,
    CredentialsHash,
    Principal,
    Realm,
    RealmRegistry,
    RealmState,
    find_principal,
    find_root,
    hash_credentials,
    new_credentials,
    read_principal,
    read_realm_grants,
    reset_principal,
    rotate_principal,
    told_credential,
    verify_secret,
)
from headwater.reconcile import write_once
from headwater.store import ObjectId, id_text


@dataclass(frozen=True, slots=True)
class CredentialsFile:
    """The content of a credentials file. ``replaces`` is the client id that the principal had when the file was written; None for
    its first credentials.
    """

    credentials: Credentials
    replaces: str | None = None


def check_place(path: Path) -> None:
    """raises RefusedError when a new file cannot be put there"""
    if path.exists():
        raise RefusedError(f"{path} exists, and credentials are never overwritten: name another file")
    if not path.absolute().parent.is_dir():
        raise RefusedError(f"the folder of {path} does not exist: create it, or name another file")


def ensure_credentials(
    path: Path, realm: Realm, *, principal: str = ROOT_PRINCIPAL, replaces: str | None = None
) -> CredentialsFile:
    """Returns the credentials in the file. Without a file it makes new ones, which are on disk before this returns.

    principal     whose they are
    replaces      client id of the credentials that new ones replace
    raises        RefusedError for a file that is not this very realm's and principal's, or that cannot be written
    """
    try:
        write_once(path, _content(realm, principal, CredentialsFile(new_credentials(), replaces)))
        return _read(path, realm, principal)
    except OSError as fault:
        raise RefusedError(f"credentials file {path}: {fault.strerror or fault}") from fault


def _content(realm: Realm, principal: str, made: CredentialsFile) -> dict[str, str]:
    content = {
        "realm": realm.id,
        "realmKey": _key_text(realm),
        "principal": principal,
        "clientId": made.credentials.client_id,
        "clientSecret": made.credentials.client_secret,
        "credential": told_credential(realm.id, made.credentials),
    }
    return content if made.replaces is None else {**content, "replaces": made.replaces}


def _read(path: Path, realm: Realm, principal: str) -> CredentialsFile:
    try:
        data = json.loads(path.read_text())
        owner = (data["realm"], data["realmKey"])
        credentials = Credentials(client_id=data["clientId"], client_secret=data["clientSecret"])
        replaces, holder = data.get("replaces"), data.get("principal", ROOT_PRINCIPAL)  # older releases knew root alone
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise RefusedError(f"{path} is not a credentials file of Headwater: name another file") from fault
    if owner != (realm.id, _key_text(realm)):
        raise RefusedError(f"{path} belongs to another realm, or to an earlier one of the same id: name another file")
    if holder != principal:
        raise RefusedError(
            f"{path} holds the credentials of principal {holder!r}, and not those of {principal!r}: name another file"
        )
    return CredentialsFile(credentials, replaces)


def _key_text(realm: Realm) -> str:
    return id_text(ObjectId(realm.key))


F = TypeVar("F", bound=Callable[..., object])
Renew = Callable[[CredentialsHash, str], Principal]


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
    rotate_into_file(session, realm_id, ROOT_PRINCIPAL, file, overlap_seconds=overlap)


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
    reset_into_file(session, realm_id, ROOT_PRINCIPAL, file)


def rotate_into_file(session: CliSession, realm_id: str, name: str, file: Path, *, overlap_seconds: float | None) -> None:
    """Rotate the credentials of a principal: new ones into the file, then their hash into the realm; and show it."""
    with session.open_store() as store:
        realms = RealmRegistry(store)

        def renew(hashed: CredentialsHash, replaces: str) -> Principal:
            return rotate_principal(realms, realm_id, name, hashed, replaces=replaces, overlap_seconds=overlap_seconds)

        _show_renewed(session, realms, realm_id, _renewed(session, realms, realm_id, name, file, renew), file)


def reset_into_file(session: CliSession, realm_id: str, name: str, file: Path) -> None:
    """Reset the credentials of a principal: new ones into the file, then their hash into the realm; and show it."""
    with session.open_store() as store:
        realms = RealmRegistry(store)

        def renew(hashed: CredentialsHash, replaces: str) -> Principal:
            return reset_principal(realms, realm_id, name, hashed, replaces=replaces)

        held = _renewed(session, realms, realm_id, name, file, renew)
        if held.former is not None:  # a rotation had put this file's credentials into force
            held = reset_principal(realms, realm_id, name, held.credentials, replaces=held.credentials.client_id)
        _show_renewed(session, realms, realm_id, held, file)


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


def ready_realm(realms: RealmRegistry, realm_id: str) -> Realm:
    """The realm, if it takes credentials; raises RefusedError where it is not ACTIVE, before a file is made."""
    realm = realms.read_realm(realm_id)
    if realm.state is not RealmState.ACTIVE:
        raise RefusedError(f"realm {realm_id!r} is {realm.state}: only an ACTIVE one takes other credentials")
    return realm


def _renewed(session: CliSession, realms: RealmRegistry, realm_id: str, name: str, file: Path, renew: Renew) -> Principal:
    """Returns the principal with the file's credentials. Warns if an earlier, interrupted run had put them into force."""
    realm, held = ready_realm(realms, realm_id), _read_holder(realms, realm_id, name)
    if not file.exists():
        check_place(file)
    kept = ensure_credentials(file, realm, principal=name, replaces=held.credentials.client_id)
    if verify_secret(held.credentials, kept.credentials):
        _check_meant(kept, file, name)
        since = "" if held.renewed is None else f" since {as_text(held.renewed)}"
        session.warn(
            f"no new credentials were made: those in {file}, of client {held.credentials.client_id}, have been in force{since} and"
            " stay valid. If they may have leaked, name a new file"
        )
        return held
    if kept.replaces != held.credentials.client_id:
        raise RefusedError(
            f"{file} holds credentials that are not to replace those of client {held.credentials.client_id}, which {name} has now:"
            f" they are old, or somebody else renewed {name}'s meanwhile; name another file"
        )
    try:
        return renew(hash_credentials(kept.credentials), held.credentials.client_id)
    except SwapConflictError:
        held_now = find_principal(realms, realm_id, name)
        if held_now is not None and verify_secret(held_now.credentials, kept.credentials):
            return held_now  # the same command, called twice at once
        raise


def _read_holder(realms: RealmRegistry, realm_id: str, name: str) -> Principal:
    if name == ROOT_PRINCIPAL and find_root(realms, realm_id) is None:
        raise CorruptionError(f"realm {realm_id!r} has no root principal: run `headwater fsck`")
    return read_principal(realms, realm_id, name)


def _check_meant(kept: CredentialsFile, file: Path, name: str) -> None:
    """Refuse the file of the principal's first credentials: it holds those that are to be replaced."""
    if kept.replaces is None:
        raise RefusedError(
            f"{file} exists, holds the credentials that {name} has now, and is never overwritten: name another file"
        )
