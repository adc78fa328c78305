"""Seals on the tokens of pages.

The token of a page names the commit that the listing goes on in. Whoever could write one could list what a reference held at any commit
whose hash is known, without the right to read history. So a caller gets tokens with a seal, and one without its own seal is refused.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from headwater.errors import RefusedError
from headwater_server.call import ServedStore
from headwater_server.identity.signing_keys import shared_keys

_MAC_BYTES = 18
_MAC_CHARACTERS = 24
_PURPOSE = b"headwater page token, 1\0"


class PageSeals:
    """Seals tokens by the keys that sign, so that every replica opens them; by a key of this process where there are none."""

    def __init__(self, served: ServedStore) -> None:
        self._keys = served.part(shared_keys)
        self._own = secrets.token_bytes(32)

    def of_scope(self, scope: str) -> PageSeal:
        """The seal of one caller on one reference: what was sealed for another does not open."""
        return PageSeal(self, scope)

    def newest(self) -> bytes:
        return self._own if self._keys is None else self._keys.newest().secret

    def all(self) -> list[bytes]:
        return [self._own] if self._keys is None else [key.secret for key in self._keys.all()]


@dataclass(frozen=True, slots=True)
class PageSeal:
    """Seals and opens the tokens of one scope."""

    _seals: PageSeals
    _scope: str

    def close(self, token: str) -> str:
        """The token with its seal, for a client."""
        return self._mac(self._seals.newest(), token) + token

    def open(self, sealed: str) -> str:
        """The token in a client's text; raises RefusedError for one that was not given to it here."""
        mac, token = sealed[:_MAC_CHARACTERS], sealed[_MAC_CHARACTERS:]
        if not any(hmac.compare_digest(self._mac(key, token).encode(), mac.encode()) for key in self._seals.all()):
            raise RefusedError("the page token was not given to this caller for this reference: list again from the beginning")
        return token

    def _mac(self, key: bytes, token: str) -> str:
        content = _PURPOSE + self._scope.encode() + b"\0" + token.encode()
        return base64.urlsafe_b64encode(hmac.digest(key, content, hashlib.sha256)[:_MAC_BYTES]).decode()
