"""The file that hands a realm's root credentials to a person: written once, before the realm knows them, for its owner only."""

from __future__ import annotations

import json
from pathlib import Path

from headwater.errors import RefusedError
from headwater.realms import Credentials, Realm, new_credentials
from headwater.reconcile import write_once
from headwater.store import ObjectId, id_text

__all__ = ["check_place", "ensure_credentials"]


def check_place(path: Path) -> None:
    """raises RefusedError when a new file cannot be put there"""
    if path.exists():
        raise RefusedError(f"{path} exists, and credentials are never overwritten: name another file")
    if not path.absolute().parent.is_dir():
        raise RefusedError(f"the folder of {path} does not exist: create it, or name another file")


def ensure_credentials(path: Path, realm: Realm) -> Credentials:
    """The credentials in the file; fresh ones, written there and on disk before this returns, if there is no file.

    raises        RefusedError for a file that is not this very realm's, or that cannot be written
    """
    try:
        write_once(path, _content(realm, new_credentials()))
        return _read(path, realm)
    except OSError as fault:
        raise RefusedError(f"credentials file {path}: {fault.strerror or fault}") from fault


def _content(realm: Realm, credentials: Credentials) -> dict[str, str]:
    return {
        "realm": realm.id,
        "realmKey": _key_text(realm),
        "clientId": credentials.client_id,
        "clientSecret": credentials.client_secret,
    }


def _read(path: Path, realm: Realm) -> Credentials:
    try:
        data = json.loads(path.read_text())
        found = (data["realm"], data["realmKey"])
        credentials = Credentials(client_id=data["clientId"], client_secret=data["clientSecret"])
    except (ValueError, KeyError, TypeError) as fault:
        raise RefusedError(f"{path} is no credentials file of Headwater: name another file") from fault
    if found != (realm.id, _key_text(realm)):
        raise RefusedError(f"{path} belongs to another realm, or to an earlier one of the same id: name another file")
    return credentials


def _key_text(realm: Realm) -> str:
    return id_text(ObjectId(realm.key))
