"""The proof of who calls: a bearer token, judged by the realm that the request names, or a client's credentials.

Neither words nor times tell whether a realm, a principal or a client is there: what is unknown, disabled or wrong is refused alike.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from headwater.access import RoleHolder
from headwater.clock import Micros
from headwater.errors import NotFoundError, RefusedError
from headwater.realms import (
    ROOT_PRINCIPAL,
    Credentials,
    Principal,
    RealmClosedError,
    RealmRegistry,
    log_in,
    revoke_sign_in,
    waste_login,
)
from headwater_server.call import ServedStore
from headwater_server.caller import Caller, MissingTokenError, NotProvenError
from headwater_server.identity.access_tokens import AccessTokens, TokenClaims, is_own_token, token_digest
from headwater_server.identity.hash_slots import HashSlots
from headwater_server.identity.issuer_file import TrustedIssuer
from headwater_server.identity.issuer_tokens import IssuerIdentity, IssuerTokens
from headwater_server.identity.signing_keys import shared_keys
from headwater_server.realm_directory import OpenRealm, RealmDirectory

_BEARER = "bearer "
_VERIFIED_LIMIT = 20_000
_VERIFIED_SECONDS = 60.0
"""How long a token of an issuer is believed without another look at its signature: a key that the issuer withdraws goes within that."""


@dataclass(frozen=True, slots=True)
class ProvenSignIn:
    """A client that has proved who it is, and will be given a token.

    signed_in     when it showed its secret, in seconds since 1970; None: now
    sign_in       the sign-in that it goes on with; None: another one begins
    roles         to which a former token was restricted; None: to none
    until         the second at which a token for it ends in any case; None: the token has its whole lifetime
    """

    realm: str
    realm_key: int
    principal: str
    entity: int
    generation: int
    signed_in: int | None = None
    sign_in: str | None = None
    roles: frozenset[str] | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class _VerifiedToken:
    """What is remembered of a token of an issuer.

    issuers       by which it was judged; when their file changes, it is judged again
    until         by the store's monotonic clock
    """

    identity: IssuerIdentity
    issuers: tuple[TrustedIssuer, ...]
    until: float


class CallerProof:
    """Proves who calls. Thread-safe.

    tokens        of the server's own; None: it gives none
    issuers       of OpenID Connect; None: none are accepted
    """

    def __init__(
        self, served: ServedStore, *, tokens: AccessTokens | None, issuers: IssuerTokens | None, sign_in_seconds: float
    ) -> None:
        self.tokens = tokens
        self._registry = RealmRegistry(served.store)
        self._issuers = issuers
        self._served = served
        self._clock = served.store.clock
        self._sign_in_seconds = sign_in_seconds
        self._lock = threading.Lock()
        self._verified: OrderedDict[tuple[bytes, str], _VerifiedToken] = OrderedDict()

    @classmethod
    def of_settings(cls, served: ServedStore) -> CallerProof | None:
        """The proof that the settings of a process ask for; None where nobody has to prove anything.

        raises        RefusedError for keys and issuers that cannot be used
        """
        settings, clock = served.store.settings, served.store.clock
        if not settings.server_signing_keys and not settings.server_issuers:
            return None
        keys = served.part(shared_keys)
        lifetime = settings.server_token_lifetime_seconds
        tokens = None if keys is None else AccessTokens(keys, clock, lifetime_seconds=lifetime)
        issuers = IssuerTokens(settings.server_issuers, clock) if settings.server_issuers else None
        return cls(served, tokens=tokens, issuers=issuers, sign_in_seconds=settings.server_sign_in_lifetime_seconds)

    def check_token(self, headers: Mapping[str, str]) -> bool:
        """Check what can be told of a request's token at once: nobody sends a body with one that is made up. Called by the event loop.

        returns       whether the signature is right; False: it would be an issuer's, which takes a thread to verify
        raises        NotProvenError
        """
        token = bearer_token(headers)
        if self.tokens is not None and is_own_token(token):
            self.tokens.check_signature(token)
            return True
        if self._issuers is None:
            raise _foreign_token()
        return False

    def prove_caller(self, headers: Mapping[str, str], realm: str) -> Caller:
        """Who calls, in the realm that the request names.

        raises        NotProvenError; UnavailableError where that cannot be found out now
        """
        token = bearer_token(headers)
        if (self.tokens is not None and self.tokens.has_verified(token)) or is_own_token(token):
            return self._of_own_token(token, realm)
        if self._issuers is None:
            raise _foreign_token()
        return self._of_issuer(self._identity(token, realm), self._open(realm))

    def sign_in(self, realm: str, credentials: Credentials) -> ProvenSignIn:
        """Log a client in by its credentials.

        raises        NotProvenError; OverloadedError while as many secrets are hashed as may be at a time
        """
        with self._served.part(HashSlots).take_slot():
            principal = self._logged_in(realm, credentials)
        opened = self._open(realm)
        generation = principal.generation_of(credentials.client_id)
        return ProvenSignIn(realm, opened.key, principal.name, principal.entity, generation)

    def _logged_in(self, realm: str, credentials: Credentials) -> Principal:
        try:
            if not self._served.serves(realm):
                raise NotFoundError(realm)
            return log_in(self._registry, realm, credentials)
        except (NotFoundError, RealmClosedError, UnicodeError):
            waste_login(credentials)
            raise _refused_sign_in() from None
        except RefusedError:
            raise _refused_sign_in() from None

    def renew_sign_in(self, token: str, realm: str) -> ProvenSignIn:
        """Let the holder of a token of this server that still holds have another one; raises NotProvenError.

        The last token ends when the sign-in does: a client that has the secret shows it again once its token has expired, and not before.
        """
        claims, principal, _ = self._own(token, realm)
        until = claims.auth_time + int(self._sign_in_seconds)
        if self._clock.now() > (until - 1) * 1_000_000:
            raise NotProvenError("the client showed its secret too long ago: log in again, by client credentials")
        proven = ProvenSignIn(realm, claims.realm_key, principal.name, principal.entity, claims.gen)
        return replace(proven, signed_in=claims.auth_time, sign_in=claims.sign_in, roles=claims.roles, until=until)

    def revoke_sign_in(self, token: str, realm: str) -> str:
        """End the sign-in of a token of this server: neither it nor what it was exchanged for holds any more.

        returns       the principal
        raises        NotProvenError for a token that does not hold; what a change of a principal raises
        """
        claims, principal, _ = self._own(token, realm)
        # a token that was exchanged in the last moment of the sign-in has ended by then, too
        until = max(claims.exp, claims.auth_time + int(self._sign_in_seconds))
        revoke_sign_in(self._registry, realm, principal.name, claims.sign_in, until=until)
        return principal.name

    def _of_own_token(self, token: str, realm: str) -> Caller:
        claims, principal, opened = self._own(token, realm)
        holder = RoleHolder(principal.entity, only=claims.roles)
        if claims.roles is not None:  # a client names what it likes, and would be another caller with each word
            holder = replace(holder, only=frozenset(role.name for role in opened.access.read_roles(holder)))
        return Caller(realm, principal.name, holder, has_credentials=claims.gen == principal.generation)

    def _own(self, token: str, realm: str) -> tuple[TokenClaims, Principal, OpenRealm]:
        if self.tokens is None:
            raise NotProvenError("this server takes tokens of its identity providers alone")
        claims = self.tokens.verify(token, realm)
        # a principal that was made, or has logged in, a moment ago may not be known yet: its token says when
        issued = Micros((claims.iat + 1) * 1_000_000)
        opened = self._open(realm, since=min(issued, self._clock.now()))
        principal = opened.find_principal(claims.sub)
        if principal is None or (opened.key, principal.entity) != (claims.realm_key, claims.entity):
            raise NotProvenError("the token holds no more: log in again")
        if not principal.honors(claims.gen, now=self._clock.now()) or principal.has_revoked(claims.sign_in):
            raise NotProvenError("the token holds no more: log in again")
        return claims, principal, opened

    def _open(self, realm: str, *, since: Micros | None = None) -> OpenRealm:
        try:
            return self._served.part(RealmDirectory).open_realm(realm, since=since)
        except (NotFoundError, RealmClosedError):
            raise NotProvenError("the token is another realm's") from None

    def _identity(self, token: str, realm: str) -> IssuerIdentity:
        """Whom an issuer of a realm vouches for; a token that was verified a moment ago is not verified again."""
        assert self._issuers is not None
        key, now = (token_digest(token), realm), self._clock.monotonic()
        # before the token is judged: if the file changes in between, what is remembered is not believed, and not the other way round
        issuers = self._issuers.current_issuers()
        with self._lock:
            known = self._verified.get(key)
        if known is not None and self._holds(known, issuers, now):
            return known.identity
        identity = self._issuers.verify(token, realm)
        with self._lock:
            self._verified[key] = _VerifiedToken(identity, issuers, now + _VERIFIED_SECONDS)
            while len(self._verified) > _VERIFIED_LIMIT:
                self._verified.popitem(last=False)
        return identity

    def _holds(self, known: _VerifiedToken, issuers: tuple[TrustedIssuer, ...], now: float) -> bool:
        is_over = now >= known.until or self._clock.now() >= known.identity.expires_at * 1_000_000
        return known.issuers is issuers and not is_over

    def _of_issuer(self, identity: IssuerIdentity, realm: OpenRealm) -> Caller:
        """The caller whom an issuer vouches for. A principal of the realm counts only where the issuer's entry says so, and root never."""
        if not identity.uses_stored:
            return Caller(realm.id, f"{identity.principal} ({identity.issuer})", RoleHolder(None, added=identity.roles))
        stored = None if identity.principal == ROOT_PRINCIPAL else realm.find_principal(identity.principal)
        if stored is None:
            return Caller(realm.id, f"{identity.principal} ({identity.issuer})", RoleHolder(None, added=identity.roles))
        if stored.disabled is not None:
            raise NotProvenError("the principal is disabled")
        return Caller(realm.id, stored.name, RoleHolder(stored.entity, added=identity.roles))


def bearer_token(headers: Mapping[str, str]) -> str:
    """The token that a request shows; raises MissingTokenError where it shows none."""
    text = headers.get("authorization", "").strip()
    if not text.lower().startswith(_BEARER):
        raise MissingTokenError(
            "this needs a token: send the header Authorization with Bearer and a token of /iceberg/v1/oauth/tokens"
        )
    return text[len(_BEARER) :].lstrip()


def _foreign_token() -> NotProvenError:
    return NotProvenError("the token is no token of this server: get one at /iceberg/v1/oauth/tokens")


def _refused_sign_in() -> NotProvenError:
    return NotProvenError("the client is unknown or disabled, or the secret is not its own")
