"""The places for the credentials of a realm's principals, written before their hash is stored in the realm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from headwater.durability import sync_folder, temporary_file, write_once
from headwater.errors import CorruptionError, UnavailableError
from headwater.realms import ROOT_PRINCIPAL, Credentials, CredentialsForm
from headwater.store import RealmId


class CredentialsSink(Protocol):
    """A place for the credentials of one principal of a realm, the root where nothing else is said. Only people and workloads read it."""

    def of_principal(self, principal: str) -> CredentialsSink:
        """The place for another principal of the realm."""
        ...

    def of_connection(self, form: CredentialsForm) -> CredentialsSink:
        """The place for the principal of a catalog's connection; what it has beside the credentials follows the form."""
        ...

    def write_credentials(self, realm_id: RealmId, credentials: Credentials) -> Credentials:
        """Store the credentials, unless this realm has some already. The returned ones are stored, and survive a power cut."""
        ...

    def rotate_credentials(self, realm_id: RealmId, credentials: Credentials, token: str) -> Credentials:
        """Replace the stored credentials, unless these were stored under the same token. The returned ones are stored."""
        ...

    def remove_credentials(self, realm_id: RealmId, confirm: Callable[[], None]) -> None:
        """Delete a realm's credentials, if there are any.

        confirm       called after they were read; if it raises, they stay. Credentials that replace them later stay, too
        """
        ...

    def place(self, realm_id: RealmId) -> str:
        """Describe where a person finds them."""
        ...


class FileCredentials:
    """A folder with one file `<realm>.json` for each realm, and `<realm>.<principal>.json` for its other principals.

    Only its owner can read a file. It is `{"realm", "clientId", "clientSecret", "credential"}`, and after a rotation `"rotation"` with
    its token.
    """

    def __init__(self, folder: str | Path, form: CredentialsForm | None = None) -> None:
        self.folder = Path(folder)
        self._form = form or CredentialsForm()

    def of_principal(self, principal: str) -> FileCredentials:
        return FileCredentials(self.folder, CredentialsForm(principal))

    def of_connection(self, form: CredentialsForm) -> FileCredentials:
        return FileCredentials(self.folder, form)

    def write_credentials(self, realm_id: RealmId, credentials: Credentials) -> Credentials:
        """Write the realm's file if there is none: of two processes the first one wins.

        raises        UnavailableError when the folder cannot be written to; CorruptionError when a file is there that holds no credentials
        """
        stored = self._write(realm_id, _create, self._form.content(realm_id, credentials))
        if self._form.is_followed:
            kept = _load(self._file(realm_id))
            wanted = self._form.content(realm_id, stored)
            if any(kept.get(name) != text for name, text in wanted.items()):
                self._write(realm_id, _replace, {**kept, **wanted})
        return stored

    def rotate_credentials(self, realm_id: RealmId, credentials: Credentials, token: str) -> Credentials:
        """Replace the file of the realm under a token, as ``CredentialsSink`` defines it. A file without valid credentials is
        replaced, too.

        raises        UnavailableError when the folder cannot be written to
        """
        kept = _load(self._file(realm_id))
        if kept.get("rotation") == token and (former := self._form.credentials(realm_id, kept)) is not None:
            return former
        return self._write(realm_id, _replace, {**self._form.content(realm_id, credentials), "rotation": token})

    def remove_credentials(self, realm_id: RealmId, confirm: Callable[[], None]) -> None:
        """Delete the file of the realm, as ``CredentialsSink`` defines it.

        raises        UnavailableError when the file cannot be removed, and whatever ``confirm`` raises
        """
        file = self._file(realm_id)
        try:
            content = _bytes_of(file)
            if content is not None:
                confirm()
                if _bytes_of(file) == content:
                    file.unlink(missing_ok=True)
            if self.folder.is_dir():
                sync_folder(self.folder)
        except OSError as error:
            raise UnavailableError(
                f"credentials of realm {realm_id!r} cannot be removed from {file}: {error.strerror}"
            ) from error

    def place(self, realm_id: RealmId) -> str:
        return str(self._file(realm_id))

    def _file(self, realm_id: RealmId) -> Path:
        ending = "" if self._form.principal == ROOT_PRINCIPAL else f".{self._form.principal}"
        return self.folder / f"{realm_id}{ending}.json"

    def _write(self, realm_id: RealmId, write: Callable[[Path, dict[str, str]], None], content: dict[str, str]) -> Credentials:
        file = self._file(realm_id)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write(file, content)
        except OSError as error:
            raise UnavailableError(
                f"credentials of realm {realm_id!r} cannot be written to {file}: {error.strerror}"
            ) from error
        stored = self._form.credentials(realm_id, _load(file))
        if stored is None:
            raise CorruptionError(f"{file} holds no credentials: restore it, or remove it before the realm is bootstrapped")
        return stored


class UnwrittenCredentials(FileCredentials):
    """The credentials of a folder, for looking at what would be done: what is to be written is forgotten."""

    def of_principal(self, principal: str) -> UnwrittenCredentials:
        return UnwrittenCredentials(self.folder, CredentialsForm(principal))

    def of_connection(self, form: CredentialsForm) -> UnwrittenCredentials:
        return UnwrittenCredentials(self.folder, form)

    def write_credentials(self, realm_id: RealmId, credentials: Credentials) -> Credentials:
        return self._form.credentials(realm_id, _load(self._file(realm_id))) or credentials

    def rotate_credentials(self, realm_id: RealmId, credentials: Credentials, token: str) -> Credentials:
        return credentials

    def remove_credentials(self, realm_id: RealmId, confirm: Callable[[], None]) -> None:
        if self._file(realm_id).exists():
            confirm()


def _bytes_of(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _load(file: Path) -> dict[str, Any]:
    """Read a file. An error omits its cause: what cannot be parsed may be half a secret, and a traceback would show it."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _create(file: Path, content: dict[str, str]) -> None:
    write_once(file, _json(content))


def _replace(file: Path, content: dict[str, str]) -> None:
    with temporary_file(file, _json(content)) as part:
        part.replace(file)
    sync_folder(file.absolute().parent)


def _json(content: dict[str, str]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
