"""What a token of an issuer says, and when it counts."""

from __future__ import annotations

from typing import Any

import pytest

from headwater_server.caller import NotProvenError
from headwater_server.identity import IssuerIdentity, IssuerTokens
from loopback_issuer import LoopbackIssuer, MakeToken, MakeTokens, compact_token, public_entry, signer, signing_key

AUTH0_ROLES = "https://lake.example.org/roles"


def test_token_speaks_for_its_subject(tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, now: int) -> None:
    identity = tokens.verify(make_token(), "acme")

    assert identity == IssuerIdentity(issuer.url, "ann", frozenset(), False, now + 300)


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [
        *((name, "RSA") for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        *(("ES256", "P-256"), ("ES384", "P-384"), ("ES512", "P-521"), ("EdDSA", "Ed25519"), ("EdDSA", "Ed448")),
    ],
)
def test_algorithm_that_is_allowed_is_understood(
    make_tokens: MakeTokens, make_token: MakeToken, issuer: LoopbackIssuer, algorithm: str, kind: str
) -> None:
    issuer.publish(public_entry(signing_key(kind), kid="one"))
    tokens = make_tokens(algorithms=[algorithm])

    assert tokens.verify(make_token(alg=algorithm, key=signing_key(kind)), "acme").principal == "ann"


@pytest.mark.parametrize(("algorithm", "kind"), [("RS512", "RSA"), ("PS256", "RSA"), ("ES384", "P-384"), ("EdDSA", "Ed25519")])
def test_algorithm_that_nobody_allowed_is_refused(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, algorithm: str, kind: str
) -> None:
    issuer.publish(public_entry(signing_key(kind), kid="one"))

    with pytest.raises(NotProvenError, match="not of an issuer") as refused:
        tokens.verify(make_token(alg=algorithm, key=signing_key(kind)), "acme")
    assert "is no algorithm of issuer" in refused.value.reason


def test_keys_at_a_given_address_need_no_discovery(
    make_tokens: MakeTokens, make_token: MakeToken, issuer: LoopbackIssuer
) -> None:
    make_tokens(jwks_uri=f"{issuer.url}/keys").verify(make_token(), "acme")

    assert issuer.asked == ["/keys"]


@pytest.mark.parametrize("audience", ["lake", ["lake"], ["other", "lake"], "sea"])
def test_audience_is_any_of_those_that_are_named(make_tokens: MakeTokens, make_token: MakeToken, audience: Any) -> None:
    assert make_tokens(audiences=["sea", "lake"]).verify(make_token(aud=audience), "acme").principal == "ann"


@pytest.mark.parametrize("audience", [None, "", "LAKE", "lake ", [], ["other"], [["lake"]], {"lake": 1}, 5, True])
def test_token_for_another_audience_is_refused(tokens: IssuerTokens, make_token: MakeToken, audience: Any) -> None:
    with pytest.raises(NotProvenError, match="another audience"):
        tokens.verify(make_token(aud=audience), "acme")


@pytest.mark.parametrize(
    ("claim", "holding", "past", "word"),
    [
        ("exp", -29, -30, "expired"),
        ("nbf", 30, 31, "not hold yet"),
        ("iat", 30, 31, "issued in the future"),
    ],
)
def test_time_counts_with_leeway(
    tokens: IssuerTokens, make_token: MakeToken, now: int, claim: str, holding: int, past: int, word: str
) -> None:
    assert tokens.verify(make_token(**{claim: now + holding}), "acme").principal == "ann"

    with pytest.raises(NotProvenError, match=word):
        tokens.verify(make_token(**{claim: now + past}), "acme")


def test_leeway_of_none_is_none(make_tokens: MakeTokens, make_token: MakeToken, now: int) -> None:
    tokens = make_tokens(leeway_seconds=0)

    with pytest.raises(NotProvenError, match="expired"):
        tokens.verify(make_token(exp=now), "acme")


def test_token_without_end_is_refused(tokens: IssuerTokens, make_token: MakeToken) -> None:
    with pytest.raises(NotProvenError, match="has no exp"):
        tokens.verify(make_token(exp=None), "acme")


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize("value", ["9999999999", True, -1, 1 << 60, [1], {}])
def test_time_that_is_none_is_refused(tokens: IssuerTokens, make_token: MakeToken, claim: str, value: Any) -> None:
    with pytest.raises(NotProvenError, match=f"its {claim} is no time"):
        tokens.verify(make_token(**{claim: value}), "acme")


@pytest.mark.parametrize("number", [b"1e999", b"null"])
def test_end_beyond_numbers_is_refused(tokens: IssuerTokens, issuer: LoopbackIssuer, number: bytes) -> None:
    claims = b'{"iss": "%s", "sub": "ann", "aud": "lake", "exp": %s}' % (issuer.url.encode(), number)

    with pytest.raises(NotProvenError, match="its exp is no time"):
        tokens.verify(compact_token({"alg": "RS256", "kid": "one"}, claims, signer("RS256", signing_key())), "acme")


def test_time_may_have_fractions(tokens: IssuerTokens, make_token: MakeToken, now: int) -> None:
    assert tokens.verify(make_token(exp=now + 9.75), "acme").expires_at == now + 9


def test_token_may_be_too_old(make_tokens: MakeTokens, make_token: MakeToken, now: int) -> None:
    tokens = make_tokens(max_age_seconds=60)
    assert tokens.verify(make_token(iat=now - 90), "acme").principal == "ann"

    with pytest.raises(NotProvenError, match="too long ago"):
        tokens.verify(make_token(iat=now - 91), "acme")
    with pytest.raises(NotProvenError, match="no iat"):
        tokens.verify(make_token(iat=None), "acme")


@pytest.mark.parametrize(("value", "principal"), [(7, "7"), (-7, "-7"), ("auth0|7", "auth0|7"), ("Ann Äpfel", "Ann Äpfel")])
def test_subject_becomes_a_name(tokens: IssuerTokens, make_token: MakeToken, value: Any, principal: str) -> None:
    assert tokens.verify(make_token(sub=value), "acme").principal == principal


@pytest.mark.parametrize(
    "value",
    [
        *("", None, True, 7.5, [], {}, ["ann"], " ann", "ann ", " ", "a" * 256, int("9" * 300)),
        *("a\nb", "a\x00", "a\x7f", "a\u202eb", "a\u2028b", "a\ud800"),
    ],
)
def test_name_that_is_none_is_refused(tokens: IssuerTokens, make_token: MakeToken, value: Any) -> None:
    with pytest.raises(NotProvenError, match="sub"):
        tokens.verify(make_token(sub=value), "acme")


def test_name_may_stand_in_claims_of_claims(make_tokens: MakeTokens, make_token: MakeToken) -> None:
    token = make_token(**{"kubernetes.io": {"serviceaccount": {"name": "loader"}}})

    assert make_tokens(principal_claim="kubernetes.io").verify(make_token(**{"kubernetes.io": "x"}), "acme").principal == "x"
    assert make_tokens(principal_claim="user.name").verify(make_token(user={"name": "eve"}), "acme").principal == "eve"
    with pytest.raises(NotProvenError, match=r"it has no user\.name"):
        make_tokens(principal_claim="user.name").verify(token, "acme")


@pytest.mark.parametrize("value", [["reader", "writer"], "reader writer", ["reader", "writer", "reader"]])
def test_roles_are_a_list_or_a_text(make_tokens: MakeTokens, make_token: MakeToken, value: Any) -> None:
    tokens = make_tokens(roles_claim="realm_access.roles", default_roles=["guest"])

    assert tokens.verify(make_token(realm_access={"roles": value}), "acme").roles == {"reader", "writer", "guest"}


def test_roles_may_stand_in_a_claim_with_dots(make_tokens: MakeTokens, make_token: MakeToken) -> None:
    identity = make_tokens(roles_claim=AUTH0_ROLES).verify(make_token(**{AUTH0_ROLES: ["reader"]}), "acme")

    assert identity.roles == {"reader"}


def test_roles_that_are_mapped_count_alone(make_tokens: MakeTokens, make_token: MakeToken) -> None:
    tokens = make_tokens(roles_claim="groups", roles={"lake-admins": ["admin", "reader"], "staff": "reader"})

    assert tokens.verify(make_token(groups=["lake-admins", "admin"]), "acme").roles == {"admin", "reader"}
    assert tokens.verify(make_token(groups=["staff", "writer"]), "acme").roles == {"reader"}


@pytest.mark.parametrize("value", [None, [], ""])
def test_roles_that_are_absent_are_the_default_ones(make_tokens: MakeTokens, make_token: MakeToken, value: Any) -> None:
    identity = make_tokens(roles_claim="groups", default_roles=["guest"]).verify(make_token(groups=value), "acme")

    assert identity.roles == {"guest"}


@pytest.mark.parametrize("value", [5, True, {"admin": 1}, ["reader", 5], [["admin"]]])
def test_roles_of_another_shape_are_refused(make_tokens: MakeTokens, make_token: MakeToken, value: Any) -> None:
    with pytest.raises(NotProvenError, match="neither a list of texts nor a text"):
        make_tokens(roles_claim="groups").verify(make_token(groups=value), "acme")


def test_roles_that_nobody_asks_for_are_none(tokens: IssuerTokens, make_token: MakeToken) -> None:
    assert tokens.verify(make_token(roles=["admin"], groups=["admin"]), "acme").roles == frozenset()


@pytest.mark.parametrize(("principal", "is_stored"), [("ann", True), ("root", False)])
def test_stored_principal_counts_but_never_root(
    make_tokens: MakeTokens, make_token: MakeToken, principal: str, is_stored: bool
) -> None:
    assert make_tokens(uses_stored_principals=True).verify(make_token(sub=principal), "acme").uses_stored is is_stored


@pytest.mark.parametrize("kind", ["logout+jwt", "secevent+jwt", "dpop+jwt", "", 5, ["JWT"]])
def test_token_of_another_type_is_refused(tokens: IssuerTokens, make_token: MakeToken, kind: Any) -> None:
    with pytest.raises(NotProvenError, match="typ is not JWT"):
        tokens.verify(make_token(header={"typ": kind}), "acme")


@pytest.mark.parametrize("kind", ["JWT", "at+jwt", "application/at+JWT"])
def test_type_of_access_tokens_is_taken(tokens: IssuerTokens, make_token: MakeToken, kind: str) -> None:
    assert tokens.verify(make_token(header={"typ": kind}), "acme").principal == "ann"


def test_event_of_an_issuer_is_refused(tokens: IssuerTokens, make_token: MakeToken) -> None:
    with pytest.raises(NotProvenError, match="tells of an event"):
        tokens.verify(make_token(events={"http://schemas.openid.net/event/backchannel-logout": {}}), "acme")


def test_role_of_administrators_is_given_by_the_file_alone(make_tokens: MakeTokens, make_token: MakeToken) -> None:
    token = make_token(groups=["service_admin", "connection.lake", "reader"])

    assert make_tokens(roles_claim="groups").verify(token, "acme").roles == {"reader"}
    named = make_tokens(roles_claim="groups", roles={"service_admin": "service_admin"})
    assert named.verify(token, "acme").roles == {"service_admin"}
