"""Tokens that are made up, changed, borrowed or out of date, and every other thing that a header can say instead of one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from fake_clock import FakeClock
from guarded_server import GuardedServer, held
from headwater import Settings, open_store
from headwater.access import Privilege
from headwater.errors import RefusedError
from headwater.realms import RealmState
from headwater_server.identity.signing_keys import SigningKeys

NOT_PROVEN = (401, "NotAuthorizedException")
KEY_TEXT = b"a first key of the tests, long enough"


def packed(value: Any) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def part(token: str, number: int) -> Any:
    text = token.split(".")[number]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def derived(secret: bytes) -> bytes:
    """What the server signs with, given the text of a key file."""
    return hmac.digest(secret, b"headwater access token, HS256, 1", hashlib.sha256)


def signed(header: Any, claims: Any, secret: bytes, digest: str = "sha256") -> str:
    text = f"{packed(header)}.{packed(claims)}"
    return f"{text}.{packed(hmac.digest(secret, text.encode(), digest))}"


@pytest.fixture
def token(server: GuardedServer) -> str:
    return server.token_of("root")


def status_of(server: GuardedServer, token: str, realm: str = "acme") -> int:
    return server.with_token(token, realm).config(f"{realm}/lake").status


def test_forger_of_these_tests_signs_as_the_server_does(server: GuardedServer, token: str) -> None:
    assert signed(part(token, 0), part(token, 1), derived(KEY_TEXT)).split(".")[2] != ""
    assert status_of(server, signed(part(token, 0), part(token, 1), derived(KEY_TEXT))) == 200


@pytest.mark.parametrize(
    "alg", ["none", "None", "NONE", "nOnE", "", " none", "none ", None, "HS512", "HS384", "RS256", "hs256", ["HS256"]]
)
@pytest.mark.parametrize("signature", ["empty", "kept", "absent"])
def test_token_of_another_algorithm_is_refused(server: GuardedServer, token: str, alg: Any, signature: str) -> None:
    head, body = packed(part(token, 0) | {"alg": alg}), token.split(".")[1]
    forged = {"empty": f"{head}.{body}.", "kept": f"{head}.{body}.{token.split('.')[2]}", "absent": f"{head}.{body}"}[signature]

    assert status_of(server, forged) == 401


@pytest.mark.parametrize(("alg", "digest"), [("HS384", "sha384"), ("HS512", "sha512")])
def test_right_key_signs_by_no_other_algorithm(server: GuardedServer, token: str, alg: str, digest: str) -> None:
    forged = signed(part(token, 0) | {"alg": alg}, part(token, 1), derived(KEY_TEXT), digest)

    assert status_of(server, forged) == 401


@pytest.mark.parametrize(
    "change",
    [
        {"sub": "alice"},
        {"exp": 9_999_999_999},
        {"gen": 1},
        {"roles": None},
        {"iss": "headwater:other", "aud": "headwater:other"},
        {"auth_time": 9_999_999_999},
    ],
)
def test_changed_token_is_refused(server: GuardedServer, token: str, change: dict[str, Any]) -> None:
    head, _, signature = token.split(".")
    forged = f"{head}.{packed(part(token, 1) | change)}.{signature}"

    for realm in ("acme", "other"):
        assert status_of(server, forged, realm) == 401


@pytest.mark.parametrize("number", range(3))
def test_token_with_another_character_is_refused(server: GuardedServer, token: str, number: int) -> None:
    parts = token.split(".")
    for at in range(0, len(parts[number]) - 1, 7):  # bits of the last character may mean nothing
        other = "A" if parts[number][at] != "A" else "B"
        changed = [*parts[:number], parts[number][:at] + other + parts[number][at + 1 :], *parts[number + 1 :]]

        assert status_of(server, ".".join(changed)) == 401


@pytest.mark.parametrize(
    "secret", [b"", b"secret", KEY_TEXT, KEY_TEXT + b"\n", b"2026-01", bytes(32), derived(b""), derived(b"2026-01")]
)
def test_token_of_another_key_is_refused(server: GuardedServer, token: str, secret: bytes) -> None:
    assert status_of(server, signed(part(token, 0), part(token, 1), secret or b"\0")) == 401


@pytest.mark.parametrize(
    "kid",
    [
        "",
        ".",
        "..",
        "../keys/2026-01",
        "/dev/null",
        "./2026-01",
        "2026-01/",
        "2026-01\x00",
        "%2e%2e/2026-01",
        "2026-02",
        " 2026-01",
        "*",
    ],
)
def test_name_of_a_key_is_no_path(server: GuardedServer, token: str, kid: str) -> None:
    for secret in (derived(KEY_TEXT), derived(b""), b"\0"):
        assert status_of(server, signed(part(token, 0) | {"kid": kid}, part(token, 1), secret)) == 401


@pytest.mark.parametrize(
    "extra",
    [
        {"jwk": {"kty": "oct", "k": packed(b"mine" * 8)}},
        {"jku": "http://127.0.0.1:9/keys"},
        {"x5u": "http://127.0.0.1:9/keys"},
        {"crit": ["b64"], "b64": False},
        {"typ": "JWT"},
        {"typ": "at+JWT"},
        {"zip": "DEF"},
    ],
)
def test_header_of_a_token_brings_no_key_and_no_extension(server: GuardedServer, token: str, extra: dict[str, Any]) -> None:
    for secret in (derived(KEY_TEXT), b"mine" * 8):
        assert status_of(server, signed(part(token, 0) | extra, part(token, 1), secret)) == 401


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "headwater:other"},
        {"aud": "headwater:other"},
        {"iss": "headwater:"},
        {"iss": "acme", "aud": "acme"},
        {"iss": "https://issuer.example"},
        {"aud": ["headwater:acme", "headwater:other"]},
        {"realm_key": 1},
        {"exp": 1_780_000_000},
        {"sub": "nobody"},
        {"sub": ""},
        {"gen": 1},
        {"gen": -1},
        {"exp": "never"},
        {"roles": "all"},
    ],
)
def test_claim_that_does_not_fit_is_refused_though_signed(server: GuardedServer, token: str, change: dict[str, Any]) -> None:
    assert status_of(server, signed(part(token, 0), part(token, 1) | change, derived(KEY_TEXT))) == 401


def test_token_holds_in_its_own_realm_alone(server: GuardedServer) -> None:
    tokens = {realm: server.token_of("root", realm) for realm in ("acme", "other")}

    for realm, token in tokens.items():
        for named in tokens:
            assert status_of(server, token, named) == (200 if named == realm else 401)
            exchange = {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": token}
            assert server.ask_token(exchange).status == 200


def make_realm_anew(server: GuardedServer, realm: str) -> None:
    """Purge a realm, delete it, and make another one of the same id, with the same credentials of its root."""
    realms = server.realms
    realms.move_realm(realms.read_realm(realm), RealmState.INACTIVE)
    server.clock.advance(400 * 86400)
    realms.move_realm(realms.read_realm(realm), RealmState.PURGING)
    while realms.open_realm_for(realm, RealmState.PURGING).delete_rows(1000):
        continue
    realms.move_realm(realms.read_realm(realm), RealmState.PURGED)
    realms.remove_realm(realms.read_realm(realm))
    server.make_realm(realm, "lake")


def test_token_ends_with_its_realm_also_when_that_is_made_anew(tmp_path: Path, keys: Path) -> None:
    settings = Settings(server_signing_keys=str(keys), server_token_lifetime_seconds=10 * 365 * 86400)
    with open_store("memory://", settings=settings, clock=FakeClock()) as store:
        server = GuardedServer(store, store.clock, (tmp_path / "warehouse").as_uri())  # type: ignore[arg-type]  # a FakeClock
        server.make_realm("acme", "lake")
        token = server.token_of("root")
        assert status_of(server, token) == 200
        make_realm_anew(server, "acme")

        assert part(token, 1)["exp"] > server.clock.now() // 1_000_000
        assert status_of(server, token) == 401
        assert server.guest("root").config("acme/lake").status == 200
        server.application.close()


def test_token_of_a_removed_key_is_refused(server: GuardedServer, token: str, keys: Path) -> None:
    assert status_of(server, token) == 200
    (keys / "2027-01").write_bytes(b"a second key of the tests, long enough")
    (keys / "2026-01").unlink()
    server.clock.advance(5.1)

    assert status_of(server, token) == 401
    assert status_of(server, server.token_of("root")) == 200


def test_new_key_verifies_before_it_signs(server: GuardedServer, token: str, keys: Path) -> None:
    second = b"a second key of the tests, long enough"
    (keys / "2027-01").write_bytes(second)
    server.clock.advance(5.1)
    of_second = signed(part(token, 0) | {"kid": "2027-01"}, part(token, 1), derived(second))

    assert status_of(server, of_second) == 200
    assert part(server.token_of("root"), 0)["kid"] == "2026-01"
    server.clock.advance(120)
    assert part(server.token_of("root"), 0)["kid"] == "2027-01"
    assert status_of(server, token) == 200


def test_content_of_a_key_that_was_replaced_signs_nothing(server: GuardedServer, token: str, keys: Path) -> None:
    (keys / "2026-01").write_bytes(b"quite another key under the old name")
    server.clock.advance(5.1)

    assert status_of(server, token) == 401


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 31, b" " * 40, b"\n" * 100, b"x" * 65537])
def test_weak_key_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)

    with pytest.raises(RefusedError, match="openssl rand -base64 48"):
        SigningKeys(str(tmp_path), FakeClock())


@pytest.mark.parametrize(
    ("name", "secret"), [("2027-01", b"short"), (".hidden", b"a hidden key of the tests, long enough"), ("2027-01", b" " * 64)]
)
def test_file_that_is_no_key_beside_a_good_one_signs_nothing(
    server: GuardedServer, token: str, keys: Path, name: str, secret: bytes
) -> None:
    (keys / name).write_bytes(secret)
    server.clock.advance(5.1)

    assert status_of(server, token) == 200
    assert status_of(server, signed(part(token, 0) | {"kid": name}, part(token, 1), derived(secret.strip()))) == 401


HEADERS: list[Callable[[str], str]] = [
    lambda token: "",
    lambda token: "Bearer",
    lambda token: "Bearer ",
    lambda token: "Bearer null",
    lambda token: "Bearer undefined",
    lambda token: "Bearer ...",
    lambda token: "Bearer " + "." * 5000,
    lambda token: "Bearer " + "x" * 60000,
    lambda token: f"Bearer {token}" + "x" * 60000,
    lambda token: f"Bearer {token}.{token}",
    lambda token: f"Bearer {token}, Bearer {token}",
    lambda token: f"Bearer x, Bearer {token}",
    lambda token: f"Basic {token}",
    lambda token: f"Digest {token}",
    lambda token: token,
    lambda token: f"Token {token}",
    lambda token: "Bearer \xff\xfe",
    lambda token: "Bearer " + packed(b"\xff\x00") + "." + packed(b"[" * 3000) + ".x",
    lambda token: f"Bearer {token.replace('.', ' ')}",
    lambda token: f'Bearer "{token}"',
    lambda token: f"Bearer {token}=",
]


@pytest.mark.parametrize("number", range(len(HEADERS)))
def test_garbage_in_the_header_proves_nothing(server: GuardedServer, token: str, number: int) -> None:
    text = HEADERS[number](token)
    is_bearer = text.strip().startswith("Bearer ")
    challenge = 'Bearer realm="headwater", error="invalid_token"' if is_bearer else 'Bearer realm="headwater"'
    for method, path in (("GET", "/v1/config?warehouse=acme/lake"), ("POST", "namespaces")):
        answer = server.with_token("").call(method, path, b"{}", authorization=text)

        assert answer.error == NOT_PROVEN
        assert answer.headers["www-authenticate"] == challenge
        assert token[-20:] not in answer.content.decode()


def test_header_that_comes_twice_proves_nothing(server: GuardedServer, token: str) -> None:
    twice = server.client.request(
        "GET", "/iceberg/v1/config?warehouse=acme/lake", authorization=f"Bearer {token}", Authorization="x"
    )

    assert twice.error == NOT_PROVEN


@pytest.mark.parametrize("name", ["token", "access_token", "authorization", "bearer_token"])
def test_token_in_a_query_is_ignored_and_not_logged(server: GuardedServer, token: str, name: str) -> None:
    guest = server.with_token("")
    guest.headers.clear()
    with capture_logs() as lines:
        answer = guest.get("/v1/config", warehouse="acme/lake", **{name: token})

    assert answer.error == NOT_PROVEN
    assert lines and token.split(".")[2] not in str(lines)


def test_cookie_proves_nothing(server: GuardedServer, token: str) -> None:
    assert server.with_token("").call("GET", "namespaces", cookie=f"token={token}", authorization="").error == NOT_PROVEN


def test_token_without_roles_does_not_stand_for_all_of_them(server: GuardedServer) -> None:
    server.make_principal("alice", held(Privilege.CATALOG_MANAGE_CONTENT))
    narrow = server.token_of("alice", scope="PRINCIPAL_ROLE:none PRINCIPAL_ROLE:")

    assert status_of(server, narrow) == 404
