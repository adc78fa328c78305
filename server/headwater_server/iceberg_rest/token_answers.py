"""The token endpoint: a client shows its credentials, or a token that still holds, and gets a token (RFC 6749, 8693), or ends one (7009).

Iceberg's clients split their ``credential`` at a colon, so a client id reads ``REALM.ID``: it names the realm, which nothing else in such a
request does. The Java client renews a token by exchanging it, and shows its credentials again once it has expired.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import parse_qsl, unquote_plus

from headwater.realms import Credentials, parse_client_id
from headwater_server.audit_trail import current_trail
from headwater_server.call import Answer, Call
from headwater_server.caller import NotProvenError
from headwater_server.iceberg_rest.models import OAuthError, OAuthToken
from headwater_server.identity import CallerProof, ProvenSignIn
from headwater_server.identity.access_tokens import named_realm

_CLIENT_CREDENTIALS = "client_credentials"
_TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
_TOKEN_TYPES = frozenset({_ACCESS_TOKEN, "urn:ietf:params:oauth:token-type:jwt"})
_NOT_KEPT = {"Cache-Control": "no-store"}
_ROLE, _ALL_ROLES = "PRINCIPAL_ROLE:", "PRINCIPAL_ROLE:ALL"
_FIELDS_LIMIT = 20
_SHOWN = 100


class OAuthRefusal(Exception):
    """Why no token is given, as OAuth words it."""

    def __init__(self, error: str, description: str, *, status: int = 400) -> None:
        super().__init__(description)
        self.answer = Answer(
            status,
            OAuthError(error, description),
            headers={**_NOT_KEPT, **({"WWW-Authenticate": 'Basic realm="headwater"'} if status == 401 else {})},
        )


def answer_token(call: Call[None, bytes]) -> Answer:
    """Give a token for credentials, or for a token that still holds.

    raises        OverloadedError while too many log in; UnavailableError
    """
    proof = call.served.part(CallerProof.of_settings)
    try:
        if proof is None or proof.tokens is None:
            raise OAuthRefusal("unsupported_grant_type", _no_tokens(proof))
        fields = _fields_of(call.body)
        grant = fields.get("grant_type", "")
        if grant not in (_CLIENT_CREDENTIALS, _TOKEN_EXCHANGE):
            raise OAuthRefusal("unsupported_grant_type", "the grant types here are client_credentials and token exchange")
        roles = _restricted_roles(fields.get("scope", ""))
        proven = _proven(proof, call.headers, fields, is_exchange=grant == _TOKEN_EXCHANGE)
        current_trail().caller = proven.principal
        kept = proven.roles if roles is None else roles if proven.roles is None else roles & proven.roles
        token = proof.tokens.issue(
            proven.realm,
            proven.principal,
            realm_key=proven.realm_key,
            entity=proven.entity,
            generation=proven.generation,
            roles=kept,
            signed_in=proven.signed_in,
            sign_in=proven.sign_in,
            until=proven.until,
        )
    except OAuthRefusal as refusal:
        return refusal.answer
    except NotProvenError as fault:
        return OAuthRefusal("invalid_client", str(fault), status=401).answer
    scope = "catalog" if kept is None else " ".join(sorted(_ROLE + role for role in kept))
    return Answer(body=OAuthToken(token.text, "bearer", token.seconds, _ACCESS_TOKEN, scope), headers=_NOT_KEPT)


def answer_revocation(call: Call[None, bytes]) -> Answer:
    """End the sign-in of a token (RFC 7009). Every bearer of the token may, and a token that is not valid gets the same response.

    raises        UnavailableError
    """
    proof = call.served.part(CallerProof.of_settings)
    try:
        if proof is None or proof.tokens is None:
            raise OAuthRefusal("unsupported_token_type", _no_tokens(proof))
        token = _fields_of(call.body).get("token", "")
        if not token:
            raise OAuthRefusal("invalid_request", "the field token is missing: the token that is to be revoked")
        realm = named_realm(token)
        if realm is None:
            raise OAuthRefusal(
                "unsupported_token_type", "the token was not issued by this server: revoke it at its identity provider"
            )
        current_trail().realm = realm[:_SHOWN]
        with suppress(NotProvenError):
            current_trail().caller = proof.revoke_sign_in(token, realm)
    except OAuthRefusal as refusal:
        return refusal.answer
    return Answer(headers=_NOT_KEPT)


def _proven(proof: CallerProof, headers: Mapping[str, str], fields: Mapping[str, str], *, is_exchange: bool) -> ProvenSignIn:
    """Whom a request proves. Credentials go before a token: a client shows both once its token has expired."""
    credentials = _credentials_of(headers, fields)
    if credentials is not None:
        return proof.sign_in(*credentials)
    if not is_exchange:
        raise OAuthRefusal("invalid_client", "client_id and client_secret are missing", status=401)
    if fields.get("actor_token"):
        raise OAuthRefusal("invalid_request", "a token is exchanged for its own holder: send no actor_token")
    token = fields.get("subject_token", "")
    if fields.get("subject_token_type", _ACCESS_TOKEN) not in _TOKEN_TYPES:
        raise OAuthRefusal("invalid_request", f"subject_token_type is {_ACCESS_TOKEN} here")
    realm = named_realm(token)
    if realm is None:
        raise OAuthRefusal(
            "invalid_grant", "the subject_token is no token of this server; one of an identity provider is sent as it is"
        )
    current_trail().realm = realm[:_SHOWN]
    return proof.renew_sign_in(token, realm)


def _credentials_of(headers: Mapping[str, str], fields: Mapping[str, str]) -> tuple[str, Credentials] | None:
    """The realm and the credentials that a request shows, in its header or in its body; None: it shows none."""
    scheme, _, packed = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        client, secret = _unpacked(packed)
    elif "client_secret" in fields:
        client, secret = fields.get("client_id", ""), fields["client_secret"]
    else:
        return None
    told = parse_client_id(client)
    if told is None:
        raise OAuthRefusal(
            "invalid_client",
            "a client id reads REALM.ID: take the credential as Headwater gave it, REALM.ID:SECRET",
            status=401,
        )
    realm, client_id = told
    trail = current_trail()
    trail.realm, trail.client = realm, client[:_SHOWN]
    return realm, Credentials(client_id, secret)


def _unpacked(packed: str) -> tuple[str, str]:
    try:
        client, colon, secret = base64.b64decode(packed, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        client, colon, secret = "", "", ""
    if not colon:
        raise OAuthRefusal("invalid_request", "the header Authorization has no client id and secret after Basic")
    return unquote_plus(client), unquote_plus(secret)  # RFC 6749, 2.3.1; neither has a percent sign or a plus of its own


def _fields_of(body: bytes) -> dict[str, str]:
    """The fields of a form. One that comes twice is refused: two readers would take two different ones."""
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, strict_parsing=True, max_num_fields=_FIELDS_LIMIT)
    except ValueError:
        raise OAuthRefusal("invalid_request", "the body is no form: send application/x-www-form-urlencoded") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise OAuthRefusal("invalid_request", "a field of the body comes twice")
    return fields


def _restricted_roles(scope: str) -> frozenset[str] | None:
    """The principal roles that a scope restricts a token to; None: all. Other words of a scope, such as ``catalog``, mean nothing here."""
    words = [word for word in scope.split() if word.startswith(_ROLE)]
    if not words or _ALL_ROLES in words:
        return None
    return frozenset(word.removeprefix(_ROLE) for word in words)


def _no_tokens(proof: CallerProof | None) -> str:
    if proof is None:
        return "this server gives no tokens and asks for none: remove credential and token from the client's configuration"
    return "this server takes the tokens of its identity providers alone: get one there"
