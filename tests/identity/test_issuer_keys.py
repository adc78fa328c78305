"""The keys of an issuer: when they are fetched, how long they count, and what a server of keys cannot do."""

from __future__ import annotations

import itertools
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from certificates import write_certificate
from fake_clock import FakeClock
from headwater.errors import HeadwaterError, UnavailableError
from headwater_server.identity import IssuerTokens
from headwater_server.identity.issuer_file import KeySource
from headwater_server.identity.issuer_keys import fetch_keys
from loopback_issuer import (
    DISCOVERY,
    KEYS,
    LoopbackIssuer,
    MakeIssuer,
    MakeToken,
    MakeTokens,
    endless_answer,
    json_answer,
    public_entry,
    redirect_answer,
    signing_key,
)

ONE, TWO = public_entry(signing_key(), kid="one"), public_entry(signing_key("RSA", 1), kid="two")
MINUTE, HOUR = 60, 3600
PATIENCE = 120.0
"""Seconds that a test waits for what comes: only where it never comes do they pass, however busy the machine is."""


class HeldAnswer:
    """Keeps whoever asks waiting until it is let go, and then answers with keys."""

    def __init__(self, *entries: Any) -> None:
        self.is_asked, self.may_go = threading.Event(), threading.Event()
        self._answer = json_answer({"keys": entries})

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        self.is_asked.set()
        assert self.may_go.wait(PATIENCE)
        self._answer(handler)


@pytest.fixture
def second_token(make_token: MakeToken) -> str:
    return make_token(key=signing_key("RSA", 1), kid="two")


def source(issuer: LoopbackIssuer, *, ca_file: str = "") -> KeySource:
    return KeySource(issuer.url, "", ca_file)


def outcome(tokens: IssuerTokens, token: str) -> str:
    try:
        return tokens.verify(token, "acme").principal
    except HeadwaterError as error:
        return type(error).__name__


def assert_unavailable(issuer: LoopbackIssuer, word: str, **fields: str) -> None:
    with pytest.raises(UnavailableError, match=word):
        fetch_keys(source(issuer, **fields), seconds=PATIENCE)


def test_keys_are_fetched_for_the_first_token(tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer) -> None:
    assert issuer.asked == []

    tokens.verify(make_token(), "acme")

    assert issuer.asked == [DISCOVERY, KEYS]


def test_keys_are_kept_for_ten_minutes(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, clock: FakeClock
) -> None:
    token = make_token(exp=9_999_999_999)
    tokens.verify(token, "acme")
    clock.advance(600)
    tokens.verify(token, "acme")
    assert issuer.fetches == 1

    clock.advance(1)
    tokens.verify(token, "acme")

    assert issuer.fetches == 2


def test_keys_of_an_issuer_set_no_age_of_their_own(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, clock: FakeClock
) -> None:
    issuer.answers[KEYS] = json_answer({"keys": [ONE]}, Cache_Control="max-age=31536000")
    token = make_token(exp=9_999_999_999)
    tokens.verify(token, "acme")
    clock.advance(601)
    issuer.publish(TWO)

    assert outcome(tokens, token) == "NotProvenError"


def test_unknown_kid_has_the_keys_fetched_once(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, second_token: str, clock: FakeClock
) -> None:
    tokens.verify(make_token(), "acme")
    clock.advance(30)

    assert [outcome(tokens, second_token) for _ in range(3)] == ["NotProvenError"] * 3
    assert issuer.fetches == 2


def test_new_key_is_taken_up_within_half_a_minute(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, second_token: str, clock: FakeClock
) -> None:
    tokens.verify(make_token(), "acme")
    issuer.publish(TWO)
    clock.advance(29)
    assert outcome(tokens, second_token) == "NotProvenError"

    clock.advance(1)

    assert outcome(tokens, second_token) == "ann"
    assert outcome(tokens, make_token()) == "NotProvenError"  # the old key is gone with the set that had it


def test_flood_of_unknown_kids_costs_one_fetch(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, clock: FakeClock
) -> None:
    tokens.verify(make_token(), "acme")
    clock.advance(30)
    token = make_token(key=signing_key("RSA", 1), kid="flood")

    assert {outcome(tokens, token) for _ in range(200)} == {"NotProvenError"}
    assert issuer.fetches == 2
    assert outcome(tokens, make_token()) == "ann"


def test_flood_during_a_fetch_keeps_few_waiting(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, second_token: str, clock: FakeClock
) -> None:
    tokens.verify(make_token(), "acme")
    clock.advance(30)
    held = issuer.answers[KEYS] = HeldAnswer(ONE, TWO)
    with ThreadPoolExecutor(30) as pool:
        flood = [pool.submit(outcome, tokens, second_token) for _ in range(30)]
        assert held.is_asked.wait(PATIENCE)
        refused = [each.result() for each in itertools.islice(as_completed(flood, timeout=PATIENCE), 25)]
        assert sum(each.done() for each in flood) == 25

        known = outcome(tokens, make_token())
        held.may_go.set()

    assert refused == ["UnavailableError"] * 25
    assert known == "ann"
    assert [each.result() for each in flood].count("ann") == 5
    assert issuer.fetches == 2


def test_known_key_waits_for_nobody_while_it_is_renewed(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, clock: FakeClock
) -> None:
    token = make_token(exp=9_999_999_999)
    tokens.verify(token, "acme")
    clock.advance(601)
    held = issuer.answers[KEYS] = HeldAnswer(ONE)
    with ThreadPoolExecutor(1) as pool:
        renewing = pool.submit(outcome, tokens, token)
        assert held.is_asked.wait(PATIENCE)

        others = [outcome(tokens, token) for _ in range(3)]

        assert others == ["ann"] * 3 and not renewing.done()
        held.may_go.set()
    assert renewing.result() == "ann"
    assert issuer.fetches == 2


def test_first_tokens_at_once_fetch_once(tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer) -> None:
    held = issuer.answers[KEYS] = HeldAnswer(ONE)
    token = make_token()
    with ThreadPoolExecutor(4) as pool:
        first = [pool.submit(outcome, tokens, token) for _ in range(4)]
        assert held.is_asked.wait(PATIENCE)
        time.sleep(0.1)
        held.may_go.set()

    assert [each.result() for each in first] == ["ann"] * 4
    assert issuer.fetches == 1


def test_known_keys_go_on_for_a_day_without_their_issuer(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, second_token: str, clock: FakeClock
) -> None:
    token = make_token(exp=9_999_999_999)
    tokens.verify(token, "acme")
    issuer.close()
    for seconds in (11 * MINUTE, 23 * HOUR, 49 * MINUTE):
        clock.advance(seconds)
        assert outcome(tokens, token) == "ann"
        assert outcome(tokens, second_token) == "UnavailableError"

    clock.advance(MINUTE)

    assert outcome(tokens, token) == "UnavailableError"


def test_issuer_that_is_down_is_asked_seldom(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, second_token: str, clock: FakeClock
) -> None:
    token = make_token(exp=9_999_999_999)
    tokens.verify(token, "acme")
    issuer.answers[KEYS] = json_answer(b"", status=503)
    clock.advance(601)

    assert {outcome(tokens, token) for _ in range(50)} == {"ann"}
    assert {outcome(tokens, second_token) for _ in range(50)} == {"UnavailableError"}
    assert issuer.fetches == 2


def test_issuer_that_was_never_reached_is_asked_again(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, second_token: str, clock: FakeClock
) -> None:
    issuer.answers[KEYS] = json_answer(b"", status=500)
    with pytest.raises(UnavailableError, match=r"cannot be had now: try again later$"):
        tokens.verify(make_token(), "acme")
    issuer.publish(ONE)
    assert outcome(tokens, make_token()) == "UnavailableError"

    clock.advance(30)

    assert outcome(tokens, make_token()) == "ann"
    assert outcome(tokens, second_token) == "NotProvenError"  # it is known again which keys there are


def test_issuer_without_keys_accepts_nothing(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, clock: FakeClock
) -> None:
    token = make_token(exp=9_999_999_999)
    tokens.verify(token, "acme")
    issuer.publish()
    clock.advance(601)

    assert outcome(tokens, token) == "NotProvenError"


def test_token_without_kid_may_be_signed_by_any_key(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer
) -> None:
    issuer.publish(TWO, public_entry(signing_key("P-256"), kid="curve"), public_entry(signing_key()))

    assert outcome(tokens, make_token(kid=None)) == "ann"
    assert outcome(tokens, make_token(kid=None, key=signing_key("P-256"), alg="ES256")) == "ann"
    assert outcome(tokens, make_token(kid=None, key=signing_key("RSA", 2))) == "NotProvenError"


def test_key_without_kid_is_not_that_of_a_kid(tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer) -> None:
    issuer.publish(public_entry(signing_key()))

    assert outcome(tokens, make_token()) == "NotProvenError"


@pytest.mark.parametrize("place", [DISCOVERY, KEYS])
@pytest.mark.parametrize("is_elsewhere", [True, False])
def test_redirect_is_not_followed(make_issuer: MakeIssuer, issuer: LoopbackIssuer, place: str, is_elsewhere: bool) -> None:
    inside = make_issuer()
    inside.answers["/latest/meta-data"] = issuer.answers["/moved"] = issuer.answers[place]
    issuer.answers[place] = redirect_answer(f"{inside.url}/latest/meta-data" if is_elsewhere else "/moved")

    assert_unavailable(issuer, "answered 302")
    assert inside.asked == [] and "/moved" not in issuer.asked


def test_discovery_of_another_issuer_is_not_believed(issuer: LoopbackIssuer) -> None:
    for name in ("https://login.example.org", issuer.url + "/"):
        issuer.answers[DISCOVERY] = json_answer({"issuer": name, "jwks_uri": issuer.url + KEYS})
        assert_unavailable(issuer, "is the document of issuer")

    assert issuer.fetches == 0


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://192.0.2.1/keys",
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "gopher://127.0.0.1:6379/_",
            "",
            "/keys",
            "http://[/",
        ),
        *(
            "http://ann@127.0.0.1/keys",
            "http://127.0.0.1\r\nX: 1/",
            "http://127.1/",
            "http://0x7f000001/",
            "http://169.254.169.254/",
        ),
    ],
)
def test_discovery_leads_to_no_strange_address(issuer: LoopbackIssuer, url: str) -> None:
    issuer.answers[DISCOVERY] = json_answer({"issuer": issuer.url, "jwks_uri": url})

    assert_unavailable(issuer, "no URL with https")


@pytest.fixture
def tls_issuer(make_issuer: MakeIssuer, tmp_path: Path) -> tuple[LoopbackIssuer, str]:
    certificate, key = write_certificate(tmp_path, "issuer")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return make_issuer(context), str(certificate)


def test_issuer_with_a_certificate_is_trusted_by_its_authority(tls_issuer: tuple[LoopbackIssuer, str]) -> None:
    issuer, ca_file = tls_issuer

    assert ("one", "RS256") in fetch_keys(source(issuer, ca_file=ca_file))
    assert_unavailable(issuer, "CERTIFICATE_VERIFY_FAILED")


def test_issuer_elsewhere_does_not_lead_to_this_machine(
    tls_issuer: tuple[LoopbackIssuer, str], make_issuer: MakeIssuer
) -> None:
    issuer, ca_file = tls_issuer
    inside = make_issuer()
    issuer.answers[DISCOVERY] = json_answer({"issuer": issuer.url, "jwks_uri": inside.url + KEYS})

    assert_unavailable(issuer, "on this machine", ca_file=ca_file)
    assert inside.asked == []


@pytest.mark.parametrize("place", [DISCOVERY, KEYS])
@pytest.mark.parametrize("length", ["1100000", None])
def test_answer_beyond_the_limit_is_not_read(issuer: LoopbackIssuer, place: str, length: str | None) -> None:
    headers = {} if length is None else {"Content_Length": length}
    issuer.answers[place] = json_answer(b'{"keys": [], "issuer": "' + b"x" * 1_100_000 + b'"}', **headers)

    assert_unavailable(issuer, "more than 1048576 bytes")


def test_answer_below_the_limit_is_read(issuer: LoopbackIssuer) -> None:
    issuer.answers[KEYS] = json_answer({"keys": [ONE], "filler": "x" * 1_000_000})

    assert ("one", "RS256") in fetch_keys(source(issuer))


def test_headers_without_end_are_not_read(issuer: LoopbackIssuer) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        while True:
            handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    issuer.answers[KEYS] = answer

    assert_unavailable(issuer, "more than 1048576 bytes")


@pytest.mark.parametrize("pause", [0.05, 60])
def test_issuer_that_is_slow_is_given_up(issuer: LoopbackIssuer, pause: float) -> None:
    issuer.answers[KEYS] = endless_answer(pause)

    with pytest.raises(UnavailableError, match="timed out"):
        fetch_keys(source(issuer), seconds=0.5)


def test_answer_that_is_packed_is_not_unpacked(issuer: LoopbackIssuer) -> None:
    issuer.answers[KEYS] = json_answer({"keys": [ONE]}, Content_Encoding="gzip")

    assert_unavailable(issuer, "is packed")


def test_keys_beyond_their_number_are_not_taken(issuer: LoopbackIssuer) -> None:
    issuer.publish(*([ONE] * 65))

    assert_unavailable(issuer, "has 65 keys")


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": null}',
        b"{",
        b"\xff",
        b'{"keys": ' + b"[" * 100_000,
        b'{"keys": ["\xff"]}',
    ],
)
def test_document_that_is_no_set_of_keys_is_no_answer(
    tokens: IssuerTokens, make_token: MakeToken, issuer: LoopbackIssuer, clock: FakeClock, document: bytes
) -> None:
    token = make_token(exp=9_999_999_999)
    tokens.verify(token, "acme")
    issuer.answers[KEYS] = json_answer(document)
    assert_unavailable(issuer, "is not such a document|cannot be read")

    clock.advance(601)

    assert outcome(tokens, token) == "ann"


STRANGE: list[Any] = [
    None,
    5,
    "key",
    [],
    {},
    {"kty": "oct", "k": "AAAA"},
    {"kty": ["RSA"]},
    {"kty": "RSA"},
    {"kty": "RSA", "n": 5, "e": "AQAB"},
    {"kty": "RSA", "n": "", "e": ""},
    {"kty": "RSA", "n": "=" * 400, "e": "AQAB"},
    {"kty": "RSA", "n": "_" * 100_000, "e": "AQAB"},
    {"kty": "RSA", "n": ONE["n"], "e": "AQ"},
    {"kty": "RSA", "n": ONE["n"], "e": None},
    {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
    {"kty": "EC", "crv": "secp256k1", "x": "AAAA", "y": "AAAA"},
    {"kty": "EC", "crv": {}, "x": [], "y": 5},
    {"kty": "OKP", "crv": "X25519", "x": "A" * 43, "kid": "exchange"},
    {"kty": "OKP", "crv": "Ed25519", "x": "A"},
    {**TWO, "kid": 5},
    {**TWO, "kid": ["one"]},
]


def test_strange_key_does_not_spoil_the_others(issuer: LoopbackIssuer) -> None:
    issuer.publish(*STRANGE, ONE)

    keys = fetch_keys(source(issuer))

    assert {kid for kid, _ in keys} == {"one", None}
    assert {len(found) for found in keys.values()} == {1}


def test_certificate_beside_a_key_is_not_looked_at(issuer: LoopbackIssuer, make_issuer: MakeIssuer) -> None:
    elsewhere = make_issuer()
    issuer.publish({**ONE, "x5u": elsewhere.url + KEYS, "x5c": 5, "x5t": []})

    assert ("one", "RS256") in fetch_keys(source(issuer))
    assert elsewhere.asked == []


def test_proxy_of_the_environment_is_not_asked(
    issuer: LoopbackIssuer, make_issuer: MakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = make_issuer()
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)

    assert ("one", "RS256") in fetch_keys(source(issuer))
    assert proxy.asked == []


def test_host_that_does_not_exist_is_unavailable(issuer: LoopbackIssuer) -> None:
    for host in ("no-such-host.invalid", "x" * 70 + ".invalid", ".."):
        with pytest.raises(UnavailableError, match="cannot be read"):
            fetch_keys(KeySource(issuer.url, f"https://{host}/keys", ""), seconds=2)


def test_keys_are_shared_by_realms_of_an_issuer(make_tokens: MakeTokens, make_token: MakeToken, issuer: LoopbackIssuer) -> None:
    tokens = make_tokens({"issuer": issuer.url, "realms": ["globex"], "audiences": ["sea"]})
    tokens.verify(make_token(), "acme")
    tokens.verify(make_token(aud="sea"), "globex")

    assert issuer.fetches == 1
