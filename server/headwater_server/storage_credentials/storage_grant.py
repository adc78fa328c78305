"""What somebody may do with files, and the credentials that are made for it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from headwater.errors import UnavailableError
from headwater.iceberg import StorageOptions

_UNFIT = re.compile(r"[^A-Za-z0-9_+=,.@-]")
_NAME_LENGTH = 64
_DIGEST_LENGTH = 8
_NOBODY = "headwater"


@dataclass(frozen=True, slots=True)
class StorageGrant:
    """Files that somebody may reach.

    places        locations in one storage: what lies below them, and nothing else
    may_write     also write and delete there
    who           what the storage's own log is to name, as ``session_name`` writes it
    of            the id of what has the places: another thing there is another grant
    """

    places: tuple[str, ...]
    may_write: bool
    who: str
    of: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class IssuedCredentials:
    """Credentials under the names by which clients know them.

    expires_ms    milliseconds since 1970; None: they do not end
    """

    config: Mapping[str, str]
    expires_ms: int | None = None

    def __repr__(self) -> str:
        return f"IssuedCredentials(expires_ms={self.expires_ms})"


class RoleRefusedError(UnavailableError):
    """The service answered, and gives nothing for this grant, until somebody changes whom it trusts; others may be given theirs."""


class CredentialIssuer(Protocol):
    """How one kind of storage makes credentials: S3 by its token service. Those of GCS and ADLS make none yet."""

    def issue(self, options: StorageOptions, grant: StorageGrant) -> IssuedCredentials:
        """Make credentials that allow what is granted, and no more.

        options       with a role for clients
        raises        RefusedError where none can be made for these places; RoleRefusedError; UnavailableError while the service does not
                      answer
        """


def session_name(caller: str | None, realm: str) -> str:
    """The name of a caller in the storage's log, of at most 64 characters: others than a token service takes become ``-``.

    A name that had to be changed ends in a digest, so that no two callers have the same.

    caller        None: nobody has to prove who it is
    """
    name = f"{_NOBODY if caller is None else caller}@{realm}"
    fit = _UNFIT.sub("-", name)
    if fit == name and len(name) <= _NAME_LENGTH:
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=_DIGEST_LENGTH // 2).hexdigest()
    return f"{fit[: _NAME_LENGTH - _DIGEST_LENGTH - 1]}={digest}"
