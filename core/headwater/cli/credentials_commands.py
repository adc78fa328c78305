"""The file that hands a realm's root credentials to a person: written once, before the realm knows them, for its owner only.

A file of replacement credentials names the client id that it replaces. So an interrupted command continues with the file
that it wrote, and never mistakes an old file for it.

``headwater realm rotate-credentials`` and ``reset-credentials``: other credentials for a realm's root.
"""

from __future__ import annotations

import json
from collections.abc import Callable
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
    find_root,
    hash_credentials,
    new_credentials,
    reset_principal,
    rotate_principal,
    verify_secret,
)
from headwater.reconcile import write_once
from headwater.store import ObjectId, id_text


@dataclass(frozen=True, slots=True)
class CredentialsFile:
    """The content of a credentials file. ``replaces`` is the client id that the realm's root had when the file was written;
    None in a new realm.
    """

    credentials: Credentials
    replaces: str | None = None


def check_place(path: Path) -> None:
    """raises RefusedError when a new file cannot be put there"""
    if path.exists():
        raise RefusedError(f"{path} exists, and credentials are never overwritten: name another file")
    if not path.absolute().parent.is_dir():
        raise RefusedError(f"the folder of {path} does not exist: create it, or name another file")


def ensure_credentials(path: Path, realm: Realm, *, replaces: str | None = None) -> CredentialsFile:
    """Returns the credentials in the file. Without a file it makes new ones, which are on disk before this returns.

    replaces      client id of the credentials that new ones replace
    raises        RefusedError for a file that is not this very realm's, or that cannot be written
    """
    try:
        write_once(path, _content(realm, CredentialsFile(new_credentials(), replaces)))
        return _read(path, realm)
    except OSError as fault:
        raise RefusedError(f"credentials file {path}: {fault.strerror or fault}") from fault


def _content(realm: Realm, made: CredentialsFile) -> dict[str, str]:
    content = {
        "realm": realm.id,
        "realmKey": _key_text(realm),
        "clientId": made.credentials.client_id,
        "clientSecret": made.credentials.client_secret,
    }
    return content if made.replaces is None else {**content, "replaces": made.replaces}


def _read(path: Path, realm: Realm) -> CredentialsFile:
    try:
        data = json.loads(path.read_text())
        owner = (data["realm"], data["realmKey"])
        credentials = Credentials(client_id=data["clientId"], client_secret=data["clientSecret"])
        replaces = data.get("replaces")
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise RefusedError(f"{path} is not a credentials file of Headwater: name another file") from fault
    if owner != (realm.id, _key_text(realm)):
        raise RefusedError(f"{path} belongs to another realm, or to an earlier one of the same id: name another file")
    return CredentialsFile(credentials, replaces)


def _key_text(realm: Realm) -> str:
    return id_text(ObjectId(realm.key))


F = TypeVar("F", bound=Callable[..., object])
Renew = Callable[[CredentialsHash, str], Principal]

ROOT: ResultView[Principal] = ResultView(
    "root",
    "roots",
    (
        ViewField("name", "the principal"),
        ViewField("clientId", "its client id; the secret stands in the credentials file only", "credentials.client_id"),
        ViewField("formerClientId", "of the credentials before these, which still hold; null: none do", "former.client_id"),
        ViewField("formerUntil", "how long those hold; null: until the next rotation", form=time_after),
        ViewField("renewed", "when the credentials last changed; null: they are the first", form=time_field),
    ),
)

_file_option: Callable[[F], F] = click.option(
    "--credentials",
    "file",
    metavar="FILE",
    required=True,
    type=NEW_FILE,
    help="New file for the credentials, readable by you only. They are shown nowhere else.",
)


@click.command(name="rotate-credentials")
@realm_argument
@_file_option
@click.option(
    "--overlap",
    type=DURATION,
    metavar="DURATION",
    help="How long the former ones still hold; default is until the next rotation.",
)
@prints(ROOT)
def rotate_credentials_command(session: CliSession, realm_id: str, file: Path, overlap: float | None) -> None:
    """Rotate the root credentials of a realm. The former ones stay valid until the next rotation; older ones become invalid.

    The root credentials are reserved for the server. Nothing checks them yet: anyone who has the store's URL is its administrator.

    After an interruption, run the same command to continue.
    """
    with session.open_store() as store:
        realms = RealmRegistry(store)

        def renew(hashed: CredentialsHash, replaces: str) -> Principal:
            return rotate_principal(realms, realm_id, ROOT_PRINCIPAL, hashed, replaces=replaces, overlap_seconds=overlap)

        session.show(ROOT, _renewed(session, realms, realm_id, file, renew))


@click.command(name="reset-credentials")
@realm_argument
@_file_option
@prints(ROOT)
def reset_credentials_command(session: CliSession, realm_id: str, file: Path) -> None:
    """Reset the root credentials of a realm, and revoke all former ones at once: they may have leaked.

    The root credentials are reserved for the server. Nothing checks them yet: anyone who has the store's URL is its administrator.

    After an interruption, run the same command to continue. If FILE's credentials are in force already, none are made, and a
    warning says so.
    """
    with session.open_store() as store:
        realms = RealmRegistry(store)

        def renew(hashed: CredentialsHash, replaces: str) -> Principal:
            return reset_principal(realms, realm_id, ROOT_PRINCIPAL, hashed, replaces=replaces)

        root = _renewed(session, realms, realm_id, file, renew)
        if root.former is not None:  # a rotation had put this file's credentials into force
            root = reset_principal(realms, realm_id, ROOT_PRINCIPAL, root.credentials, replaces=root.credentials.client_id)
        session.show(ROOT, root)


def _renewed(session: CliSession, realms: RealmRegistry, realm_id: str, file: Path, renew: Renew) -> Principal:
    """Returns the root with the file's credentials. Warns if an earlier, interrupted run had renewed it, so that old ones stay valid."""
    realm, root = _ready(realms, realm_id)
    if not file.exists():
        check_place(file)
    kept = ensure_credentials(file, realm, replaces=root.credentials.client_id)
    if verify_secret(root.credentials, kept.credentials):
        _check_meant(kept, file)
        since = "" if root.renewed is None else f" since {as_text(root.renewed)}"
        session.warn(
            f"no new credentials were made: those in {file}, of client {root.credentials.client_id}, have been in force{since} and"
            " stay valid. If they may have leaked, name a new file"
        )
        return root
    if kept.replaces != root.credentials.client_id:
        raise RefusedError(
            f"{file} holds credentials that are not to replace those of client {root.credentials.client_id}, which root has now:"
            " they are old, or somebody else renewed root's meanwhile; name another file"
        )
    try:
        return renew(hash_credentials(kept.credentials), root.credentials.client_id)
    except SwapConflictError:
        root_now = find_root(realms, realm_id)
        if root_now is not None and verify_secret(root_now.credentials, kept.credentials):
            return root_now  # the same command, called twice at once
        raise


def _ready(realms: RealmRegistry, realm_id: str) -> tuple[Realm, Principal]:
    realm = realms.read_realm(realm_id)
    if realm.state is not RealmState.ACTIVE:
        raise RefusedError(f"realm {realm_id!r} is {realm.state}: only an ACTIVE one takes other credentials")
    root = find_root(realms, realm_id)
    if root is None:
        raise CorruptionError(f"realm {realm_id!r} has no root principal: run `headwater fsck`")
    return realm, root


def _check_meant(kept: CredentialsFile, file: Path) -> None:
    """Refuse the file that the realm was created with: it holds the credentials that are to be replaced."""
    if kept.replaces is None:
        raise RefusedError(
            f"{file} exists, holds the credentials that root has now, and is never overwritten: name another file"
        )
