"""Tokens that somebody forged, bent or brought from elsewhere."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from headwater_server.caller import NotProvenError
from headwater_server.identity import IssuerTokens
from loopback_issuer import (
    LoopbackIssuer,
    MakeIssuer,
    MakeToken,
    MakeTokens,
    compact_token,
    encoded,
    public_entry,
    signer,
    signing_key,
)

GOOD = signer("RS256", signing_key())
HEADER = {"alg": "RS256", "kid": "one"}
UNPROVEN = "the token is not of an issuer that realm 'acme' trusts, or not signed by it"
NONES = ["none", "None", "NONE", "nOnE", "none ", " none", "none\0", "", "null"]


def assert_refused(tokens: IssuerTokens, token: str, message: str = UNPROVEN, *, realm: str = "acme") -> NotProvenError:
    with pytest.raises(NotProvenError) as refused:
        tokens.verify(token, realm)
    assert message in str(refused.value)
    return refused.value


def hmac_signer(secret: bytes, algorithm: str = "sha256") -> Callable[[bytes], bytes]:
    return lambda content: hmac.new(secret, content, algorithm).digest()


@pytest.mark.parametrize("algorithm", NONES)
@pytest.mark.parametrize("signature", [b"", b"x"])
def test_token_without_algorithm_is_refused(
    tokens: IssuerTokens, claims: dict[str, Any], algorithm: str, signature: bytes
) -> None:
    token = compact_token({"alg": algorithm, "kid": "one"}, claims, lambda _: signature)

    assert "is no algorithm of issuer" in assert_refused(tokens, token).reason


@pytest.mark.parametrize("header", [{}, {"alg": None}, {"alg": ["RS256"]}, {"alg": 5}, {"ALG": "RS256"}])
def test_token_that_names_no_algorithm_is_refused(tokens: IssuerTokens, claims: dict[str, Any], header: dict[str, Any]) -> None:
    assert_refused(tokens, compact_token({"kid": "one", **header}, claims, GOOD), "has no alg")


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512", "hs256"])
def test_public_key_is_no_secret(tokens: IssuerTokens, issuer: LoopbackIssuer, claims: dict[str, Any], algorithm: str) -> None:
    key = signing_key()
    pem = key.as_pem(private=False)
    spelled = [pem, pem.strip(), key.as_der(private=False), json.dumps(public_entry(key)).encode()]

    for secret in spelled:
        token = compact_token({"alg": algorithm, "kid": "one"}, claims, hmac_signer(secret, f"sha{algorithm[2:]}"))
        assert_refused(tokens, token)


def test_symmetric_key_that_is_published_counts_for_nothing(
    tokens: IssuerTokens, issuer: LoopbackIssuer, claims: dict[str, Any]
) -> None:
    secret = b"0123456789abcdef0123456789abcdef"
    issuer.publish({"kty": "oct", "k": encoded(secret), "kid": "one"})

    for algorithm in ("HS256", "RS256", "ES256"):
        assert_refused(tokens, compact_token({"alg": algorithm, "kid": "one"}, claims, hmac_signer(secret)))


def test_signature_by_another_key_is_refused(tokens: IssuerTokens, make_token: MakeToken) -> None:
    refused = assert_refused(tokens, make_token(key=signing_key("RSA", 1)))

    assert "not signed by issuer" in refused.reason


def test_claims_that_were_changed_are_refused(tokens: IssuerTokens, make_token: MakeToken, claims: dict[str, Any]) -> None:
    header, _, signature = make_token().split(".")

    assert_refused(tokens, f"{header}.{encoded(json.dumps(claims | {'sub': 'eve'}).encode())}.{signature}")


@pytest.mark.parametrize("signature", [bytes(64), b"", b"\0" * 63 + b"\1", bytes(32) + b"\1" * 32])
def test_signature_of_zeros_is_refused(
    tokens: IssuerTokens, issuer: LoopbackIssuer, claims: dict[str, Any], signature: bytes
) -> None:
    issuer.publish(public_entry(signing_key("P-256"), kid="one"))

    assert_refused(tokens, compact_token({"alg": "ES256", "kid": "one"}, claims, lambda _: signature))


def test_issuer_that_nobody_named_is_refused(tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer) -> None:
    for name in ("https://evil.example.org", issuer.url + "/", issuer.url.upper(), issuer.url + "#", None, 5, [issuer.url]):
        assert "is for this realm" in assert_refused(tokens, make_token(iss=name)).reason

    assert issuer.asked == []


def test_issuer_of_another_realm_is_refused(make_tokens: MakeTokens, make_token: MakeToken, make_issuer: MakeIssuer) -> None:
    theirs = make_issuer()
    tokens = make_tokens({"issuer": theirs.url, "realms": ["globex"], "audiences": ["lake"]})
    token = make_token(iss=theirs.url)

    assert_refused(tokens, token)
    assert theirs.asked == []
    assert tokens.verify(token, "globex").principal == "ann"
    assert_refused(tokens, make_token(), UNPROVEN.replace("acme", "globex"), realm="globex")


def test_issuer_cannot_speak_for_another(make_tokens: MakeTokens, make_token: MakeToken, make_issuer: MakeIssuer) -> None:
    theirs = make_issuer()
    theirs.publish(public_entry(signing_key("RSA", 1), kid="theirs"))
    tokens = make_tokens({"issuer": theirs.url, "realms": ["acme"], "audiences": ["lake"]})
    key = signing_key("RSA", 1)
    assert tokens.verify(make_token(iss=theirs.url, key=key, kid="theirs"), "acme").issuer == theirs.url

    assert_refused(tokens, make_token(key=key, kid="theirs"))


@pytest.mark.parametrize("name", ["jku", "x5u", "jwk", "x5c"])
def test_key_that_a_token_brings_is_not_looked_at(
    tokens: IssuerTokens, make_token: MakeToken, make_issuer: MakeIssuer, name: str
) -> None:
    evil = make_issuer()
    own = public_entry(signing_key("RSA", 1), kid="one")
    evil.publish(own)
    brought = {"jku": f"{evil.url}/keys", "x5u": f"{evil.url}/keys", "jwk": own, "x5c": ["MIIB"]}[name]

    assert_refused(tokens, make_token(key=signing_key("RSA", 1), header={name: brought}))
    assert evil.asked == []
    assert tokens.verify(make_token(header={name: brought}), "acme").principal == "ann"


@pytest.mark.parametrize("crit", [["exp"], [], ["b64"], "exp", None])
def test_header_with_crit_is_refused(tokens: IssuerTokens, claims: dict[str, Any], crit: Any) -> None:
    header = {**HEADER, "crit": crit, "exp": 1, "b64": False}

    assert_refused(tokens, compact_token(header, claims, GOOD), "has crit")


@pytest.mark.parametrize("header", [b'{"alg":"RS256","alg":"none","kid":"one"}', b'{"alg":"none","kid":"one","alg":"RS256"}'])
def test_header_with_two_algorithms_is_refused(tokens: IssuerTokens, claims: dict[str, Any], header: bytes) -> None:
    assert_refused(tokens, compact_token(header, claims, GOOD), "names are there once")


@pytest.mark.parametrize("pair", [b'"sub":"eve"', b'"iss":"https://evil.example.org"', b'"deep":{"a":1,"a":2}'])
def test_claim_that_is_there_twice_is_refused(tokens: IssuerTokens, claims: dict[str, Any], pair: bytes) -> None:
    token = compact_token(HEADER, json.dumps(claims).encode()[:-1] + b"," + pair + b"}", GOOD)

    assert_refused(tokens, token, "names are there once")


@pytest.mark.parametrize(
    "content",
    [
        *(b"[]", b"5", b"null", b'"x"', b"", b"{", b"[" * 9000, b'{"n": %s}' % (b"9" * 5000)),
        *(b"\xff\xfe{\0}\0", b"\xef\xbb\xbf{}", '{"sub": "ann"}'.encode("utf-16"), b'{"exp": NaN}', b'{"exp": Infinity}'),
    ],
)
def test_token_that_is_no_object_is_refused(tokens: IssuerTokens, claims: dict[str, Any], content: bytes) -> None:
    assert_refused(tokens, compact_token(HEADER, content, GOOD), "names are there once")
    assert_refused(tokens, compact_token(content, claims, GOOD), "names are there once")


@pytest.mark.parametrize("kid", [5, ["one"], {"one": 1}, True, "k" * 501])
def test_kid_that_is_no_text_is_refused(tokens: IssuerTokens, make_token: MakeToken, kid: Any) -> None:
    assert_refused(tokens, make_token(header={"kid": kid}), "kid is no text, or too long")


def test_token_that_is_huge_is_refused_unread(tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer) -> None:
    assert_refused(tokens, make_token(filler="x" * 13_000), "longer than 16384 bytes")
    assert_refused(tokens, "." * 100_000_000, "longer than 16384 bytes")

    assert issuer.asked == []
    assert tokens.verify(make_token(filler="x" * 11_000), "acme").principal == "ann"


@pytest.mark.parametrize("parts", [0, 1, 2, 4, 5])
def test_token_of_other_than_three_parts_is_refused(tokens: IssuerTokens, make_token: MakeToken, parts: int) -> None:
    token = ".".join((make_token().split(".") * 2)[:parts])

    assert_refused(tokens, token, "three parts")


@pytest.mark.parametrize(
    "bend", [lambda text: text + "=", lambda text: text[:-1] + " ", lambda text: text + "\n", lambda text: "é" + text[1:]]
)
def test_part_that_is_spelled_otherwise_is_refused(
    tokens: IssuerTokens, make_token: MakeToken, bend: Callable[[str], str]
) -> None:
    for place in range(3):
        parts = make_token().split(".")
        parts[place] = bend(parts[place])
        assert_refused(tokens, ".".join(parts), "not base64url")


def test_signature_has_one_spelling(tokens: IssuerTokens, make_token: MakeToken) -> None:
    token = make_token()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = alphabet[alphabet.index(token[-1]) ^ 1]  # 256 bytes leave four bits of the last sign unused

    assert tokens.verify(token, "acme").principal == "ann"
    assert_refused(tokens, token[:-1] + other, "not base64url")


@pytest.mark.parametrize(
    "fields",
    [{"use": "enc"}, {"use": None}, {"key_ops": ["sign"]}, {"key_ops": 5}, {"alg": "PS256"}, {"alg": 5}, {"d": "AQAB"}],
)
def test_key_for_something_else_is_not_used(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, fields: dict[str, Any]
) -> None:
    issuer.publish(public_entry(signing_key(), kid="one", **fields))

    assert "no key 'one'" in assert_refused(tokens, make_token()).reason


def test_key_that_is_weak_is_not_used(tokens: IssuerTokens, issuer: LoopbackIssuer, claims: dict[str, Any]) -> None:
    weak = rsa.generate_private_key(65537, 2040)
    numbers = weak.public_key().public_numbers()
    issuer.publish({"kty": "RSA", "kid": "one", "n": encoded(numbers.n.to_bytes(255, "big")), "e": "AQAB"})

    token = compact_token(HEADER, claims, lambda content: weak.sign(content, PKCS1v15(), SHA256()))

    assert "no key 'one'" in assert_refused(tokens, token).reason


def test_key_of_another_curve_does_not_fit(tokens: IssuerTokens, issuer: LoopbackIssuer, claims: dict[str, Any]) -> None:
    issuer.publish(public_entry(signing_key("P-384"), kid="one"))

    assert_refused(tokens, compact_token({"alg": "ES256", "kid": "one"}, claims, signer("ES384", signing_key("P-384"))))


def test_refusal_is_the_same_whatever_is_unproven(tokens: IssuerTokens, make_token: MakeToken, claims: dict[str, Any]) -> None:
    forged = signing_key("RSA", 1)
    attempts = [
        make_token(iss="https://elsewhere.example.org"),
        make_token(key=forged),
        make_token(kid="two"),
        make_token(alg="PS256"),
        make_token(key=forged, exp=1),
        make_token(key=forged, aud="other"),
    ]

    assert {str(assert_refused(tokens, token)) for token in attempts} == {UNPROVEN}
