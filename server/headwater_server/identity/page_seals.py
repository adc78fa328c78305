"""Seals on the tokens of pages.

The token of a page names the commit that the listing goes on in. Whoever could write one could list what a reference held at any commit
whose hash is known, without the right to read history. So a caller gets tokens with a seal, and one without its own seal is refused.

A token also names the last key that was looked at, which its caller may not be allowed to see. A hidden token tells nothing but about
how long that is: the seal is the beginning of a key stream, as in the encryption with a synthetic initialization vector (RFC 5297), so
that no random number is needed and the same token is always the same text.
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
_HIDDEN_PURPOSE = b"headwater hidden page token, 1\0"
_STREAM_PURPOSE = b"headwater stream of a hidden page token, 1\0"
_PADDED_TO = 64
"""Hidden tokens are as long as a multiple of this."""


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
            raise self._foreign_error()
        return token

    def hide(self, token: str) -> str:
        """The token for a client who may not read what it says."""
        key = self._seals.newest()
        mac = self._digest(key, _HIDDEN_PURPOSE, token)
        padded = token.encode() + b"\0" * (-len(token.encode()) % _PADDED_TO)
        return base64.urlsafe_b64encode(mac + _streamed(key, mac, padded)).rstrip(b"=").decode()

    def reveal(self, hidden: str) -> str:
        """The token that was hidden; raises RefusedError for one that was not given to it here."""
        try:
            raw = base64.b64decode(hidden + "=" * (-len(hidden) % 4), altchars=b"-_", validate=True)
        except ValueError:  # also for characters that are not ASCII
            raw = b""
        mac, content = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        for key in self._seals.all():
            token = _streamed(key, mac, content).rstrip(b"\0").decode(errors="replace")
            if hmac.compare_digest(self._digest(key, _HIDDEN_PURPOSE, token), mac):
                return token
        raise self._foreign_error()

    def _mac(self, key: bytes, token: str) -> str:
        return base64.urlsafe_b64encode(self._digest(key, _PURPOSE, token)).decode()

    def _digest(self, key: bytes, purpose: bytes, token: str) -> bytes:
        content = purpose + self._scope.encode() + b"\0" + token.encode()
        return hmac.digest(key, content, hashlib.sha256)[:_MAC_BYTES]

    def _foreign_error(self) -> RefusedError:
        return RefusedError("the page token was not given to this caller for this reference: list again from the beginning")


def _streamed(key: bytes, mac: bytes, content: bytes) -> bytes:
    """Encrypt or decrypt by the key stream that a seal begins."""
    blocks = range(0, len(content), hashlib.sha256().digest_size)
    stream = b"".join(hmac.digest(key, _STREAM_PURPOSE + mac + at.to_bytes(4, "big"), hashlib.sha256) for at in blocks)
    return bytes(one ^ other for one, other in zip(content, stream, strict=False))
