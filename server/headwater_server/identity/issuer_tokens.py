"""Tokens of OpenID Connect issuers: whether one counts in a realm, and whom it speaks for.

Until its signature is proven, a token only chooses among the issuers of the realm, and what is answered about it does not tell which
these are. A header's ``jku``, ``x5u``, ``jwk`` and ``x5c`` are never looked at: keys come from where the issuer's file says.

source            RFC 7519 (JWT), RFC 8725 (its best practices), OpenID Connect Core 1.0
"""

from __future__ import annotations

import base64
import json
import threading
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from headwater.clock import Clock
from headwater.realms import ROOT_PRINCIPAL
from headwater_server.caller import NotProvenError
from headwater_server.identity.issuer_file import IssuerFile, KeySource, TrustedIssuer
from headwater_server.identity.issuer_keys import FETCH_SECONDS, IssuerKeys, is_signed_by

MAX_TOKEN_BYTES: Final = 16 << 10
MAX_PRINCIPAL_CHARACTERS: Final = 255
_MAX_KID_CHARACTERS = 500
_MAX_NUMBER = 1 << 53
_TYPES = (None, "jwt", "at+jwt", "application/jwt", "application/at+jwt")
"""Tokens that tell who somebody is. Others of the same issuer, such as ``logout+jwt``, are no proof."""


@dataclass(frozen=True, slots=True)
class IssuerIdentity:
    """Whom a token of an issuer speaks for.

    principal     a name that is the issuer's own; two issuers may mean different people by one name
    roles         the principal roles that the token gives
    uses_stored   whether the realm's own principal of that name counts too
    expires_at    seconds since 1970-01-01T00:00Z
    """

    issuer: str
    principal: str
    roles: frozenset[str]
    uses_stored: bool
    expires_at: int


class IssuerTokens:
    """Judges tokens by the issuers in a file. Thread-safe.

    path           the file of the setting ``server_issuers``
    fetch_seconds  how long one fetch of keys may take, and how long others wait for it
    raises         RefusedError for a file that is missing or wrong
    """

    def __init__(self, path: str, clock: Clock, *, fetch_seconds: float = FETCH_SECONDS) -> None:
        self._file = IssuerFile(path)
        self._clock = clock
        self._fetch_seconds = fetch_seconds
        self._lock = threading.Lock()
        self._keys: dict[KeySource, IssuerKeys] = {}

    def current_issuers(self) -> tuple[TrustedIssuer, ...]:
        """The issuers that are in force: the very same tuple as long as their file has not changed."""
        return self._file.current_issuers()

    def verify(self, token: str, realm: str) -> IssuerIdentity:
        """Say whom a token speaks for in a realm.

        raises        NotProvenError when it proves nothing there; UnavailableError when the keys to judge it cannot be had
        """
        unproven = _UnprovenToken.parse(token)
        name = unproven.claims.get("iss")
        issuer = self._find_issuer(name, realm)
        if issuer is None:
            _refuse_unproven(realm, f"no issuer {str(name)[:200]!r} is for this realm")
        if unproven.algorithm not in issuer.algorithms:
            _refuse_unproven(realm, f"{unproven.algorithm[:100]!r} is no algorithm of issuer {issuer.issuer!r}")
        self._check_signature(unproven, issuer, realm)
        return _identity(unproven.claims, issuer, now=self._clock.now() / 1_000_000)

    def _find_issuer(self, name: Any, realm: str) -> TrustedIssuer | None:
        issuers = self._file.current_issuers()
        return next((issuer for issuer in issuers if issuer.issuer == name and realm in issuer.realms), None)

    def _check_signature(self, token: _UnprovenToken, issuer: TrustedIssuer, realm: str) -> None:
        try:
            keys = self._keys_of(issuer.source).find_keys(token.kid, token.algorithm)
        except NotProvenError as fault:
            _refuse_unproven(realm, f"issuer {issuer.issuer!r}: {fault.reason}")
        if not any(is_signed_by(key, token.algorithm, token.content, token.signature) for key in keys):
            _refuse_unproven(realm, f"it is not signed by issuer {issuer.issuer!r}")

    def _keys_of(self, source: KeySource) -> IssuerKeys:
        keys = self._keys.get(source)
        if keys is not None:
            return keys
        sources = {issuer.source for issuer in self._file.current_issuers()}
        with self._lock:
            kept = {known: held for known, held in self._keys.items() if known in sources}
            keys = kept.setdefault(
                source, self._keys.get(source) or IssuerKeys(source, self._clock, seconds=self._fetch_seconds)
            )
            self._keys = kept
        return keys


def _refuse_unproven(realm: str, reason: str) -> NoReturn:
    """Refuse a token whose signature is not proven, in words that are the same for all reasons: nobody probes issuers and keys by it."""
    raise NotProvenError(f"the token is not of an issuer that realm {realm!r} trusts, or not signed by it", reason=reason)


@dataclass(frozen=True, slots=True)
class _UnprovenToken:
    """What a token says, of which nothing is to be believed yet."""

    algorithm: str
    kid: str | None
    claims: dict[str, Any]
    content: bytes
    signature: bytes

    @classmethod
    def parse(cls, token: str) -> _UnprovenToken:
        if len(token) > MAX_TOKEN_BYTES:
            raise NotProvenError(f"the token is longer than {MAX_TOKEN_BYTES} bytes")
        parts = token.split(".")
        if len(parts) != 3:
            raise NotProvenError("the token is no JSON Web Token: it has not three parts")
        header, claims = _json_object(_decoded(parts[0])), _json_object(_decoded(parts[1]))
        _check_header(header)
        content = f"{parts[0]}.{parts[1]}".encode("ascii")
        return cls(header["alg"], header.get("kid"), claims, content, _decoded(parts[2]))


def _check_header(header: dict[str, Any]) -> None:
    kid, kind = header.get("kid"), header.get("typ")
    if not isinstance(header.get("alg"), str):
        raise NotProvenError("the token's header has no alg")
    if not isinstance(kid, str | None) or len(kid or "") > _MAX_KID_CHARACTERS:
        raise NotProvenError("the token's kid is no text, or too long")
    if "crit" in header:
        raise NotProvenError("the token's header has crit, and no extension is known here")
    if (kind.lower() if isinstance(kind, str) else kind) not in _TYPES:
        raise NotProvenError("the token's typ is not JWT")


def _decoded(part: str) -> bytes:
    """The bytes of a part, which has one spelling only: without padding, and without signs or bits that are left over."""
    try:
        encoded = part.encode("ascii")
        content = base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
    except ValueError:  # UnicodeError and binascii.Error are among them
        content, encoded = b"", b"="
    if base64.urlsafe_b64encode(content).rstrip(b"=") != encoded:
        raise NotProvenError("the token is no JSON Web Token: a part of it is not base64url")
    return content


def _json_object(content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content.decode("utf-8"), object_pairs_hook=_single, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise NotProvenError("the token is no JSON Web Token: a part of it is no JSON object whose names are there once")
    return value


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that is there twice: some readers take the first value, and others the last."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name is there twice")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _identity(claims: dict[str, Any], issuer: TrustedIssuer, *, now: float) -> IssuerIdentity:
    """Judge the claims of a token whose signature is proven."""
    if "events" in claims:  # RFC 8417: a security event, such as a log-out, is no token of access
        _refuse(issuer, "it tells of an event")
    expires_at = _check_times(claims, issuer, now)
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or not any(name in issuer.audiences for name in audiences):
        _refuse(issuer, "it is for another audience")
    principal = _principal(find_claim(claims, issuer.principal_claim), issuer)
    uses_stored = issuer.uses_stored_principals and principal != ROOT_PRINCIPAL
    return IssuerIdentity(issuer.issuer, principal, _roles(claims, issuer), uses_stored, expires_at)


def _check_times(claims: dict[str, Any], issuer: TrustedIssuer, now: float) -> int:
    """Check when a token holds. Returns its end."""
    expires, begins, issued = (_seconds(claims, name, issuer) for name in ("exp", "nbf", "iat"))
    if expires is None:
        _refuse(issuer, "it has no exp")
    if now >= expires + issuer.leeway_seconds:
        _refuse(issuer, "it has expired")
    if begins is not None and now < begins - issuer.leeway_seconds:
        _refuse(issuer, "it does not hold yet")
    if issued is not None and now < issued - issuer.leeway_seconds:
        _refuse(issuer, "it was issued in the future")
    if issuer.max_age_seconds is not None:
        if issued is None:
            _refuse(issuer, "it has no iat")
        if now > issued + issuer.max_age_seconds + issuer.leeway_seconds:
            _refuse(issuer, "it was issued too long ago")
    return int(expires)


def _seconds(claims: dict[str, Any], name: str, issuer: TrustedIssuer) -> float | None:
    if name not in claims:
        return None
    value = claims[name]
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _MAX_NUMBER:
        _refuse(issuer, f"its {name} is no time")
    return value


def _principal(value: Any, issuer: TrustedIssuer) -> str:
    name = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(name, str) or not name:
        _refuse(issuer, f"it has no {issuer.principal_claim}")
    if len(name) > MAX_PRINCIPAL_CHARACTERS or not name.isprintable() or name != name.strip():
        _refuse(issuer, f"its {issuer.principal_claim} is too long for a name, or has signs that no name has")
    return name


def _roles(claims: dict[str, Any], issuer: TrustedIssuer) -> frozenset[str]:
    value = find_claim(claims, issuer.roles_claim) if issuer.roles_claim else None
    values = value.split() if isinstance(value, str) else [] if value is None else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        _refuse(issuer, f"its {issuer.roles_claim} is neither a list of texts nor a text")
    mapped = {role for each in values for role in issuer.mapped_roles(each)}
    return frozenset(mapped | set(issuer.default_roles))


def find_claim(claims: dict[str, Any], path: str) -> Any:
    """The claim at a path whose dots lead into claims of claims; None: it is not there. A name that has dots itself comes first."""
    if path in claims:
        return claims[path]
    name, dot, rest = path.partition(".")
    inner = claims.get(name)
    return find_claim(inner, rest) if dot and isinstance(inner, dict) else None


def _refuse(issuer: TrustedIssuer, reason: str) -> NoReturn:
    raise NotProvenError(f"the token of {issuer.issuer} is not accepted: {reason}", reason=reason)
