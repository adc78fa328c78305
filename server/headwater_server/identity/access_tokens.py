"""The server's own tokens: what a client gets for its credentials, and shows with every request.

A token is a JWT, signed by HMAC-SHA-256 (RFC 7515, 7519). It holds in one realm alone, for a while, and as long as the credentials do that
it was issued for: it names their generation. Nothing of it is stored; a sign-in that was revoked is noted at its principal until no token
of it would hold anyhow.

    iss, aud      the realm, as ``headwater:REALM``
    realm_key     the realm's number: a later realm of the same id accepts none of an earlier one's tokens
    sub           the principal's name
    entity        its number: a later principal of the same name accepts none of an earlier one's tokens
    gen           the generation of its credentials
    roles         of its principal roles those that count; left out: all
    iat, exp      seconds since 1970
    auth_time     when the client showed its secret; exchanged tokens keep it
    sid           the sign-in: the ``jti`` of its first token, which exchanged tokens keep; left out of that one
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from headwater.clock import Clock
from headwater.typed_values import json_decoder
from headwater_server.caller import NotProvenError
from headwater_server.identity.signing_keys import SigningKey, SigningKeys

_ALGORITHM = "HS256"
_TYPE = "at+jwt"
_ISSUER = "headwater:"
_LONGEST = 8192
_KNOWN_LIMIT = 20_000


class TokenHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The header of a token: exactly these fields, so that none can name a key or an extension of its own."""

    alg: str
    kid: str
    typ: str


class TokenClaims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a token says; see the module."""

    iss: str
    aud: str
    realm_key: int
    sub: str
    entity: int
    gen: int
    iat: int
    exp: int
    auth_time: int
    jti: str
    roles: frozenset[str] | None = None
    sid: str | None = None

    @property
    def sign_in(self) -> str:
        """The sign-in that it belongs to, with all that it was exchanged for."""
        return self.jti if self.sid is None else self.sid

    @property
    def realm(self) -> str:
        """The realm that it names."""
        return self.iss.removeprefix(_ISSUER)


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token for its client, and for how many seconds it holds at least."""

    text: str = field(repr=False)
    seconds: int


_CLAIMS = json_decoder(TokenClaims)
_HEADER = json_decoder(TokenHeader)


class AccessTokens:
    """Issues tokens, and verifies them. Thread-safe."""

    def __init__(self, keys: SigningKeys, clock: Clock, *, lifetime_seconds: float) -> None:
        self._keys = keys
        self._clock = clock
        self.lifetime_seconds = lifetime_seconds
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, tuple[SigningKey, TokenClaims]] = OrderedDict()

    def issue(
        self,
        realm: str,
        principal: str,
        *,
        realm_key: int,
        entity: int,
        generation: int,
        roles: frozenset[str] | None = None,
        signed_in: int | None = None,
        sign_in: str | None = None,
        until: int | None = None,
    ) -> IssuedToken:
        """Issue a token.

        roles         of the principal's roles those that count; None: all
        signed_in     when the client showed its secret, in seconds; None: now
        sign_in       the sign-in that it belongs to; None: it is the first of another one
        until         second at which it ends in any case; None: after its lifetime
        """
        now, next_second = self._now(), -(-self._clock.now() // 1_000_000)
        ends = next_second + int(self.lifetime_seconds)
        if until is not None:
            ends = min(ends, until)
        name = _ISSUER + realm
        claims = TokenClaims(
            iss=name,
            aud=name,
            realm_key=realm_key,
            sub=principal,
            entity=entity,
            gen=generation,
            iat=now,
            exp=ends,
            auth_time=now if signed_in is None else signed_in,
            jti=secrets.token_hex(8),
            roles=roles,
            sid=sign_in,
        )
        key = self._keys.newest()
        header = {"alg": _ALGORITHM, "kid": key.name, "typ": _TYPE}
        text = jws.serialize_compact(header, msgspec.json.encode(claims), OctKey.import_key(key.secret), [_ALGORITHM])
        return IssuedToken(text, ends - next_second)

    def verify(self, token: str, realm: str) -> TokenClaims:
        """What a token says, if this server has signed it for a realm, and it has not expired.

        raises        NotProvenError otherwise
        """
        claims = self._verified(token)
        if claims.iss != _ISSUER + realm or claims.aud != claims.iss:
            raise NotProvenError("the token is another realm's")
        return self._unexpired(claims)

    def check_signature(self, token: str) -> None:
        """Check that this server has signed a token, for whichever realm, and that it has not expired; asks no database.

        raises        NotProvenError
        """
        self._unexpired(self._verified(token))

    def _unexpired(self, claims: TokenClaims) -> TokenClaims:
        if claims.exp <= self._now():
            raise NotProvenError("the token has expired: get another one")
        return claims

    def has_verified(self, token: str) -> bool:
        """Whether it was verified before, and is remembered; ``verify`` says whether it still holds."""
        return token_digest(token) in self._known

    def _verified(self, token: str) -> TokenClaims:
        """The claims of a token with a right signature. Signatures are remembered as long as the key that made them is there."""
        digest = token_digest(token)
        with self._lock:
            known = self._known.get(digest)
        if known is not None and self._keys.find(known[0].name) == known[0]:
            return known[1]
        key, claims = self._decoded(token)
        with self._lock:
            self._known[digest] = (key, claims)
            while len(self._known) > _KNOWN_LIMIT:
                self._known.popitem(last=False)
        return claims

    def _decoded(self, token: str) -> tuple[SigningKey, TokenClaims]:
        try:
            header = _HEADER.decode(_part(token, 0))
            key = self._keys.find(header.kid) if (header.alg, header.typ) == (_ALGORITHM, _TYPE) else None
            if key is None:
                raise NotProvenError("the token was signed by no key of this server: get another one")
            signed = jws.deserialize_compact(token, OctKey.import_key(key.secret), [_ALGORITHM])
            return key, _CLAIMS.decode(signed.payload)
        except (JoseError, msgspec.MsgspecError, ValueError, IndexError):
            raise NotProvenError("the token is no token of this server, or was changed") from None

    def _now(self) -> int:
        return self._clock.now() // 1_000_000


def token_digest(token: str) -> bytes:
    """What a token is remembered by: it is short, however long the token is, and is no token itself."""
    return hashlib.blake2b(token.encode(), digest_size=32).digest()


def is_own_token(token: str) -> bool:
    """Whether a token says that this server, or one with the same keys, has issued it. That is not proved yet."""
    return named_realm(token) is not None


def named_realm(token: str) -> str | None:
    """The realm that a token of this server names, without proof; None for anything else."""
    try:
        claims = _CLAIMS.decode(_part(token, 1))
    except (msgspec.MsgspecError, ValueError, IndexError):
        return None
    return claims.realm if claims.iss.startswith(_ISSUER) else None


def _part(token: str, number: int) -> bytes:
    """A part of a token, decoded; raises ValueError and IndexError for what is no token."""
    if len(token) > _LONGEST or not token.isascii():
        raise ValueError("too long, or no token")
    text = token.split(".")[number]
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
