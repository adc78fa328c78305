"""The file that hands the credentials of a principal to a person: written once, before the realm knows them, for its owner only.

A file of replacement credentials names the client id that it replaces. So an interrupted call continues with the file that it wrote, and
never mistakes an old file for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headwater.clock import as_text
from headwater.durability import write_once
from headwater.errors import CorruptionError, RefusedError, SwapConflictError
from headwater.realms import (
    ROOT_PRINCIPAL,
    Credentials,
    CredentialsHash,
    Principal,
    Realm,
    RealmRegistry,
    RealmState,
    create_principal,
    find_principal,
    find_root,
    hash_credentials,
    new_credentials,
    read_principal,
    reset_principal,
    rotate_principal,
    told_credential,
    verify_secret,
)
from headwater.store import ObjectId, id_text


@dataclass(frozen=True, slots=True)
class PrintedCredentials:
    """Standard output in place of a file. Each call makes new credentials, and prints them before the realm knows them."""

    write: Callable[[str], None]

    def __str__(self) -> str:
        return "standard output"


Place = Path | PrintedCredentials
Renew = Callable[[CredentialsHash, str], Principal]
Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CredentialsFile:
    """The content of a credentials file. ``replaces`` is the client id that the principal had when the file was written; None for
    its first credentials.
    """

    credentials: Credentials
    replaces: str | None = None


def check_place(path: Place) -> None:
    """raises RefusedError when a new file cannot be put there"""
    if isinstance(path, PrintedCredentials):
        return
    if path.exists():
        raise RefusedError(f"{path} exists, and credentials are never overwritten: name another file")
    if not path.absolute().parent.is_dir():
        raise RefusedError(f"the folder of {path} does not exist: create it, or name another file")


def ensure_credentials(
    path: Place, realm: Realm, *, principal: str = ROOT_PRINCIPAL, replaces: str | None = None
) -> CredentialsFile:
    """Returns the credentials in the file. Without a file it makes new ones, which are on disk before this returns.

    principal     whose they are
    replaces      client id of the credentials that new ones replace
    raises        RefusedError for a file that is not this very realm's and principal's, or that cannot be written
    """
    if isinstance(path, PrintedCredentials):
        made = CredentialsFile(new_credentials(), replaces)
        path.write(_text(realm, principal, made))
        return made
    try:
        write_once(path, _text(realm, principal, CredentialsFile(new_credentials(), replaces)).encode())
        return _read(path, realm, principal)
    except OSError as fault:
        raise RefusedError(f"credentials file {path}: {fault.strerror or fault}") from fault


def _text(realm: Realm, principal: str, made: CredentialsFile) -> str:
    content = {
        "realm": realm.id,
        "realmKey": _key_text(realm),
        "principal": principal,
        "clientId": made.credentials.client_id,
        "clientSecret": made.credentials.client_secret,
        "credential": told_credential(realm.id, made.credentials),
    }
    if made.replaces is not None:
        content["replaces"] = made.replaces
    return json.dumps(content, indent=2) + "\n"


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


def rotate_into_file(
    realms: RealmRegistry, realm_id: str, name: str, file: Place, *, overlap_seconds: float | None, warn: Warn
) -> Principal:
    """Rotate the credentials of a principal: new ones into the file, then their hash into the realm."""

    def renew(hashed: CredentialsHash, replaces: str) -> Principal:
        return rotate_principal(realms, realm_id, name, hashed, replaces=replaces, overlap_seconds=overlap_seconds)

    return _renewed(realms, realm_id, name, file, renew, warn)


def reset_into_file(realms: RealmRegistry, realm_id: str, name: str, file: Place, *, warn: Warn) -> Principal:
    """Reset the credentials of a principal: new ones into the file, then their hash into the realm."""

    def renew(hashed: CredentialsHash, replaces: str) -> Principal:
        return reset_principal(realms, realm_id, name, hashed, replaces=replaces)

    held = _renewed(realms, realm_id, name, file, renew, warn)
    if held.former is not None:  # a rotation had put this file's credentials into force
        held = reset_principal(realms, realm_id, name, held.credentials, replaces=held.credentials.client_id)
    return held


def ready_realm(realms: RealmRegistry, realm_id: str) -> Realm:
    """The realm, if it takes credentials; raises RefusedError where it is not ACTIVE, before a file is made."""
    realm = realms.read_realm(realm_id)
    if realm.state is not RealmState.ACTIVE:
        raise RefusedError(f"realm {realm_id!r} is {realm.state}: only an ACTIVE one takes other credentials")
    return realm


def _renewed(realms: RealmRegistry, realm_id: str, name: str, file: Place, renew: Renew, warn: Warn) -> Principal:
    """Returns the principal with the file's credentials. Warns if an earlier, interrupted run had put them into force."""
    realm, held = ready_realm(realms, realm_id), _read_holder(realms, realm_id, name)
    if not _is_there(file):
        check_place(file)
    kept = ensure_credentials(file, realm, principal=name, replaces=held.credentials.client_id)
    if verify_secret(held.credentials, kept.credentials):
        _check_meant(kept, file, name)
        since = "" if held.renewed is None else f" since {as_text(held.renewed)}"
        warn(
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


def _check_meant(kept: CredentialsFile, file: Place, name: str) -> None:
    """Refuse the file of the principal's first credentials: it holds those that are to be replaced."""
    if kept.replaces is None:
        raise RefusedError(
            f"{file} exists, holds the credentials that {name} has now, and is never overwritten: name another file"
        )


def create_into_file(realms: RealmRegistry, realm: Realm, name: str, file: Place, *, warn: Warn) -> Principal:
    """The principal with the file's credentials: made now, or by the same call, interrupted or called twice at once."""
    held = find_principal(realms, realm.id, name)
    is_file_there = _is_there(file)
    if not is_file_there:
        if held is not None:
            raise _taken(realm, name)
        check_place(file)
    kept = ensure_credentials(file, realm, principal=name)
    if kept.replaces is not None:
        raise RefusedError(f"{file} holds credentials that were to replace others of {name}: name another file")
    if held is None and is_file_there:
        warn(
            f"{file} was there, as after an interruption, and its credentials are those of {name} now; if they may have"
            " leaked, `headwater principal reset` makes others"
        )
    if held is None:
        try:
            return create_principal(realms, realm.id, name, hash_credentials(kept.credentials))
        except RefusedError:
            held = find_principal(realms, realm.id, name)
            if held is None:
                raise
    if not verify_secret(held.credentials, kept.credentials):
        raise _taken(realm, name)
    return held


def _is_there(place: Place) -> bool:
    return isinstance(place, Path) and place.exists()


def _taken(realm: Realm, name: str) -> SwapConflictError:
    return SwapConflictError(
        f"there is a principal {name!r} in realm {realm.id!r} already; `headwater principal rotate {realm.id} {name}` gives it other"
        " credentials"
    )
