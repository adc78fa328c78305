"""The credentials with which a client logs in: made here, given to a person once, and stored only as a salted hash."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

ROOT_PRINCIPAL = "root"
# scrypt with 16 MiB and about 50 ms a try; each hash carries its own cost, so that later releases can raise it
_COST, _BLOCK, _PARALLEL = 2**14, 8, 1
_TOLD = re.compile(r"([A-Za-z0-9_-]{1,128})\.(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The id and the secret with which a client logs in. The secret never appears in the text form."""

    client_id: str
    client_secret: str = field(repr=False)


class CredentialsHash(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials as a store keeps them: the client's id, and a scrypt digest of the secret with its salt and costs."""

    known_by: ClassVar[tuple[str, ...]] = ("client_id", "digest")

    client_id: str
    salt: bytes
    digest: bytes
    cost: int = _COST
    block: int = _BLOCK
    parallel: int = _PARALLEL


def new_credentials() -> Credentials:
    """Fresh random credentials: an id of 16 hex digits, and a secret of 256 bits."""
    return Credentials(client_id=secrets.token_hex(8), client_secret=secrets.token_urlsafe(32))


def told_client_id(realm_id: str, client_id: str) -> str:
    """A client's id as clients are told it: ``REALM.ID``. Its realm can be read from it, and it has no colon, at which they split."""
    return f"{realm_id}.{client_id}"


def told_credential(realm_id: str, credentials: Credentials) -> str:
    """Id and secret in one, as engines are configured with them: ``REALM.ID:SECRET``. It is as secret as the secret."""
    return f"{told_client_id(realm_id, credentials.client_id)}:{credentials.client_secret}"


def parse_client_id(text: str) -> tuple[str, str] | None:
    """The realm and the stored id of a client, from what ``told_client_id`` gives: split at the first dot. None for another text."""
    told = _TOLD.fullmatch(text)
    return None if told is None else (told[1], told[2])


def hash_credentials(credentials: Credentials) -> CredentialsHash:
    """The salted hash of credentials; every call uses another salt and gives another hash."""
    salt = secrets.token_bytes(16)
    digest = _digest(credentials.client_secret, salt=salt, cost=_COST, block=_BLOCK, parallel=_PARALLEL)
    return CredentialsHash(
        client_id=credentials.client_id, salt=salt, digest=digest, cost=_COST, block=_BLOCK, parallel=_PARALLEL
    )


def verify_secret(stored: CredentialsHash, credentials: Credentials) -> bool:
    """Whether the hash was made from these credentials."""
    digest = _digest(
        credentials.client_secret, salt=stored.salt, cost=stored.cost, block=stored.block, parallel=stored.parallel
    )
    return hmac.compare_digest(digest, stored.digest) and hmac.compare_digest(
        stored.client_id.encode(), credentials.client_id.encode()
    )


def _digest(secret: str, *, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    return hashlib.scrypt(secret.encode(), salt=salt, n=cost, r=block, p=parallel, dklen=32)


NOBODY = CredentialsHash(client_id="", salt=bytes(16), digest=bytes(32))
"""What a secret is compared with for a client that there is not: no secret is right, and it takes as long as for one that there is."""


@dataclass(frozen=True, slots=True)
class CredentialsForm:
    """How the credentials of a principal are stored: the id and the secret, and both as the one text that clients take.

    A client is told its id as `REALM.ID`. Only the field ``clientId`` of a root has the bare id: it had it first, and whoever reads
    it relies on that.
    """

    principal: str = ROOT_PRINCIPAL

    @property
    def is_followed(self) -> bool:
        """Whether what is stored is brought to this form later, too; otherwise it stays as it was written."""
        return False

    def content(self, realm_id: str, credentials: Credentials) -> dict[str, str]:
        """The fields that are stored."""
        is_root = self.principal == ROOT_PRINCIPAL
        return {
            "realm": realm_id,
            **({} if is_root else {"principal": self.principal}),
            "clientId": credentials.client_id if is_root else told_client_id(realm_id, credentials.client_id),
            "clientSecret": credentials.client_secret,
            "credential": told_credential(realm_id, credentials),
        }

    def credentials(self, realm_id: str, content: Mapping[str, Any]) -> Credentials | None:
        """The credentials that these fields hold; None where they hold none."""
        return read_credentials(realm_id, content.get("clientId"), content.get("clientSecret"))


def read_credentials(realm_id: str, client_id: object, client_secret: object) -> Credentials | None:
    """Credentials as a client is told them; None where there are none."""
    if not (isinstance(client_id, str) and isinstance(client_secret, str) and client_id and client_secret):
        return None
    return Credentials(client_id.removeprefix(f"{realm_id}."), client_secret)
