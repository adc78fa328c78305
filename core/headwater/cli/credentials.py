"""The file that hands a realm's root credentials to a person: written once, before the realm knows them, for its owner only.

A file that shall replace other credentials names the client whose they are. So a command that was interrupted goes on with the file
that it wrote, and an old file is never mistaken for one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from headwater.errors import RefusedError
from headwater.realms import Credentials, Realm, new_credentials
from headwater.reconcile import write_once
from headwater.store import ObjectId, id_text

__all__ = ["CredentialsFile", "check_place", "ensure_credentials"]


@dataclass(frozen=True, slots=True)
class CredentialsFile:
    """What stands in a file. ``replaces`` is the client id that its realm's root had when it was written; None in a new realm."""

    credentials: Credentials
    replaces: str | None = None


def check_place(path: Path) -> None:
    """raises RefusedError when a new file cannot be put there"""
    if path.exists():
        raise RefusedError(f"{path} exists, and credentials are never overwritten: name another file")
    if not path.absolute().parent.is_dir():
        raise RefusedError(f"the folder of {path} does not exist: create it, or name another file")


def ensure_credentials(path: Path, realm: Realm, *, replaces: str | None = None) -> CredentialsFile:
    """The credentials in the file; fresh ones, written there and on disk before this returns, if there is no file.

    replaces      whose place fresh ones shall take
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
        found = (data["realm"], data["realmKey"])
        credentials = Credentials(client_id=data["clientId"], client_secret=data["clientSecret"])
        replaces = data.get("replaces")
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise RefusedError(f"{path} is no credentials file of Headwater: name another file") from fault
    if found != (realm.id, _key_text(realm)):
        raise RefusedError(f"{path} belongs to another realm, or to an earlier one of the same id: name another file")
    return CredentialsFile(credentials, replaces)


def _key_text(realm: Realm) -> str:
    return id_text(ObjectId(realm.key))
