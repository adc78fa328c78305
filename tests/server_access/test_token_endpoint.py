"""The token endpoint, as Iceberg's clients use it and as attackers do."""

from __future__ import annotations

import base64
import threading
from pathlib import Path
from urllib.parse import urlencode

import pytest

from asgi_client import AsgiAnswer
from guarded_server import GuardedServer, Guest, held
from headwater import Settings, open_store
from headwater.access import Privilege
from headwater.realms import (
    assign_principal_role,
    create_principal_role,
    disable_principal,
    drop_principal,
    enable_principal,
    hash_credentials,
    new_credentials,
    reset_principal,
    revoke_sign_in,
    rotate_principal,
)

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


def basic(credential: str) -> str:
    return "Basic " + base64.b64encode(credential.encode()).decode()


def error_of(answer: AsgiAnswer) -> tuple[int, str]:
    return answer.status, answer.data["error"]


def test_credentials_become_a_token_that_opens_the_realm(server: GuardedServer) -> None:
    answer = server.ask_token(
        {"grant_type": "client_credentials", "scope": "catalog"}, authorization=basic(server.credential("root"))
    )

    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    assert {**answer.data, "access_token": ""} == {
        "access_token": "",
        "token_type": "bearer",
        "expires_in": 3600,
        "issued_token_type": ACCESS_TOKEN,
        "scope": "catalog",
    }
    assert server.with_token(answer.data["access_token"]).config("acme/lake").status == 200


def test_wrong_client_is_told_nothing_about_what_is_there(server: GuardedServer) -> None:
    server.make_principal("alice")
    disable_principal(server.realms, "acme", "alice")
    right = server.credential("root")
    wrong = [
        right + "x",
        server.credential("alice"),
        "acme.0123456789abcdef:secret",
        "nowhere.0123456789abcdef:secret",
        "other." + right.partition(".")[2],
    ]
    answers = [server.ask_token({"grant_type": "client_credentials"}, authorization=basic(each)) for each in wrong]

    assert {answer.status for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert not any(secret in answer.content.decode() for answer in answers for secret in (right, "secret:"))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"grant_type": "password", "username": "root"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "invalid_client"),
        ({"grant_type": "client_credentials", "client_id": "no-dot", "client_secret": "x"}, "invalid_client"),
        ({"grant_type": EXCHANGE, "subject_token": "a.b.c"}, "invalid_grant"),
        ({"grant_type": EXCHANGE, "subject_token": "x", "actor_token": "y"}, "invalid_request"),
    ],
)
def test_request_that_proves_nothing_is_refused_in_oauths_words(
    server: GuardedServer, fields: dict[str, str], error: str
) -> None:
    assert error_of(server.ask_token(fields))[1] == error


def test_field_that_comes_twice_is_refused(server: GuardedServer) -> None:
    body = b"grant_type=client_credentials&client_id=a.b&client_secret=c&client_secret=d"
    answer = server.client.request("POST", "/iceberg/v1/oauth/tokens", body)

    assert error_of(answer) == (400, "invalid_request")


def test_token_is_exchanged_as_long_as_it_holds(server: GuardedServer) -> None:
    token = server.token_of("root")
    server.clock.advance(1800)
    fields = {"grant_type": EXCHANGE, "subject_token": token, "subject_token_type": ACCESS_TOKEN, "scope": "catalog"}
    newer = server.ask_token(fields, authorization=f"Bearer {token}").data["access_token"]
    server.clock.advance(2000)

    assert server.with_token(newer).config("acme/lake").status == 200
    assert server.with_token(token).config("acme/lake").error == (401, "NotAuthorizedException")
    assert error_of(server.ask_token(fields)) == (401, "invalid_client")


def test_expired_token_is_renewed_by_credentials_beside_it(server: GuardedServer) -> None:
    fields = {"grant_type": EXCHANGE, "subject_token": server.token_of("root"), "subject_token_type": ACCESS_TOKEN}
    server.clock.advance(4000)

    assert server.ask_token(fields, authorization=basic(server.credential("root"))).status == 200


@pytest.mark.long
def test_chain_of_exchanges_ends_with_the_sign_in(server: GuardedServer) -> None:
    token = server.token_of("root")
    for _ in range(2000):
        server.clock.advance(3000)
        answer = server.ask_token({"grant_type": EXCHANGE, "subject_token": token})
        if answer.status != 200:
            break
        token = answer.data["access_token"]

    assert error_of(answer) == (401, "invalid_client")
    assert server.clock.now() - 1_780_000_000_000_000 == pytest.approx(30 * 86400 * 1_000_000, rel=0.01)


@pytest.mark.long
def test_last_token_of_a_chain_ends_with_the_sign_in(server: GuardedServer) -> None:
    """Then a client that exchanges its token while it holds finds it expired, and shows its secret again."""
    token = server.token_of("root")
    for _ in range(721):
        server.clock.advance(3590)
        token = server.ask_token({"grant_type": EXCHANGE, "subject_token": token}).data["access_token"]
    server.clock.advance(3590)
    last = server.ask_token({"grant_type": EXCHANGE, "subject_token": token}).data
    server.clock.advance(last["expires_in"] - 1)

    assert last["expires_in"] == 30 * 86400 - 722 * 3590 < 3600
    assert server.with_token(last["access_token"]).config("acme/lake").status == 200
    server.clock.advance(1)
    assert server.with_token(last["access_token"]).config("acme/lake").status == 401


def test_token_holds_for_as_long_as_is_told(server: GuardedServer) -> None:
    server.clock.advance(0.75)
    told = server.ask_token({"grant_type": "client_credentials"}, authorization=basic(server.credential("root"))).data
    server.clock.advance(told["expires_in"] - 0.25)

    assert told["expires_in"] == 3600
    assert server.with_token(told["access_token"]).config("acme/lake").status == 200
    server.clock.advance(1)
    assert server.with_token(told["access_token"]).config("acme/lake").status == 401


FORM = "grant_type=client_credentials&client_id={id}&client_secret={secret}"
SENT_BY_CLIENTS = {
    "pyiceberg 0.12": ("", FORM + "&scope=catalog&audience=warehouse&resource=lake"),
    "pyiceberg 0.12, after the first": ("Bearer None", FORM + "&scope=catalog"),
    "pyiceberg 0.12, auth oauth2": ("Basic", "grant_type=client_credentials&scope=PRINCIPAL_ROLE%3AALL"),
    "DuckDB 1.5.5": ("Basic", "grant_type=client_credentials&scope=PRINCIPAL_ROLE%3AALL"),
    "DuckDB 1.5.5, oauth2_scope ''": ("Basic", "grant_type=client_credentials&scope="),
    "Iceberg 1.10.2": ("", FORM + "&scope=catalog"),
    "Iceberg 1.10.2, audience": ("", FORM + "&scope=PRINCIPAL_ROLE%3AALL&audience=warehouse&resource=lake"),
}


@pytest.mark.parametrize("client", SENT_BY_CLIENTS)
def test_request_as_a_client_sends_it_is_given_a_token(server: GuardedServer, client: str) -> None:
    proof, form = SENT_BY_CLIENTS[client]
    client_id, _, secret = server.credential("root").partition(":")
    headers = {"authorization": basic(server.credential("root")) if proof == "Basic" else proof} if proof else {}
    answer = server.client.request(
        "POST", "/iceberg/v1/oauth/tokens", form.format(id=client_id, secret=secret).encode(), **headers
    )

    assert answer.status == 200, answer.content
    assert server.with_token(answer.data["access_token"]).config("acme/lake").status == 200


def test_basic_header_may_be_percent_encoded(server: GuardedServer) -> None:
    """RFC 6749 (2.3.1) has clients encode id and secret as a form does; Iceberg's clients do not, and libraries of OAuth do."""
    client_id, _, secret = server.credential("root").partition(":")
    encoded = "%2E".join(client_id.split(".")) + ":" + "".join(f"%{ord(letter):02X}" for letter in secret)

    assert server.ask_token({"grant_type": "client_credentials"}, authorization=basic(encoded)).status == 200


def test_restricted_token_stays_restricted_when_it_is_exchanged(server: GuardedServer) -> None:
    server.make_principal("alice", held(Privilege.CATALOG_MANAGE_CONTENT))
    narrow = server.token_of("alice", scope="PRINCIPAL_ROLE:nothing")
    answer = server.ask_token({"grant_type": EXCHANGE, "subject_token": narrow, "scope": "PRINCIPAL_ROLE:ALL"})

    assert server.guest("alice", scope="PRINCIPAL_ROLE:alice").config("acme/lake").status == 200
    for token in (narrow, answer.data["access_token"]):
        assert server.with_token(token).config("acme/lake").status == 404


def test_rotation_ends_tokens_with_its_overlap_and_a_reset_at_once(server: GuardedServer) -> None:
    server.make_principal("alice", held(Privilege.CATALOG_MANAGE_CONTENT))
    guest = server.guest("alice")
    rotate_principal(server.realms, "acme", "alice", hash_credentials(new_credentials()), overlap_seconds=600)
    server.clock.advance(5)

    assert guest.config("acme/lake").status == 200
    server.clock.advance(600)
    assert guest.config("acme/lake").status == 401
    server.credentials["acme", "alice"] = fresh = new_credentials()
    reset_principal(server.realms, "acme", "alice", hash_credentials(fresh))
    later = server.guest("alice")
    reset_principal(server.realms, "acme", "alice", hash_credentials(new_credentials()))
    server.clock.advance(5)
    assert later.config("acme/lake").status == 401


def test_disabled_principal_is_refused_within_five_seconds(server: GuardedServer) -> None:
    server.make_principal("alice", held(Privilege.CATALOG_MANAGE_CONTENT))
    guest = server.guest("alice")
    assert guest.config("acme/lake").status == 200
    disable_principal(server.realms, "acme", "alice")
    server.clock.advance(4.9)

    assert guest.config("acme/lake").error == (401, "NotAuthorizedException")
    enable_principal(server.realms, "acme", "alice")
    server.clock.advance(4.9)
    assert guest.config("acme/lake").status == 401  # what was issued before stays refused
    assert server.guest("alice").config("acme/lake").status == 200


def test_token_from_before_a_principal_was_disabled_stays_refused_after_a_rotation(server: GuardedServer) -> None:
    server.make_principal("alice", held(Privilege.CATALOG_MANAGE_CONTENT))
    server.credentials["acme", "alice"] = fresh = new_credentials()
    rotate_principal(server.realms, "acme", "alice", hash_credentials(fresh))
    guest = server.guest("alice")
    disable_principal(server.realms, "acme", "alice")
    enable_principal(server.realms, "acme", "alice")
    server.clock.advance(5)

    assert guest.config("acme/lake").status == 401


def revoke(server: GuardedServer, token: str) -> AsgiAnswer:
    form = "application/x-www-form-urlencoded"
    return server.client.request("POST", "/iceberg/v1/oauth/revoke", urlencode({"token": token}).encode(), content_type=form)


def exchanged(server: GuardedServer, token: str) -> AsgiAnswer:
    return server.ask_token({"grant_type": EXCHANGE, "subject_token": token, "subject_token_type": ACCESS_TOKEN})


def test_revoked_token_and_what_it_was_exchanged_for_hold_no_more(server: GuardedServer) -> None:
    server.make_principal("alice", held(Privilege.CATALOG_MANAGE_CONTENT))
    first, other = server.token_of("alice"), server.token_of("alice")
    later = exchanged(server, first).data["access_token"]
    answer = revoke(server, later)
    server.clock.advance(5)

    assert (answer.status, answer.content) == (200, b"")
    assert [server.with_token(each).config("acme/lake").status for each in (first, later, other)] == [401, 401, 200]
    assert exchanged(server, first).status == 401


def test_revocation_of_what_holds_no_more_is_answered_alike(server: GuardedServer) -> None:
    server.make_principal("alice")
    token = server.token_of("alice")
    tampered = token[:-4] + "AAAA"

    assert {revoke(server, each).status for each in (tampered, token, token)} == {200}
    assert error_of(revoke(server, "opaque")) == (400, "unsupported_token_type")
    assert error_of(revoke(server, "")) == (400, "invalid_request")


def test_only_so_many_revoked_sign_ins_are_remembered_and_only_while_they_would_hold(server: GuardedServer) -> None:
    server.make_principal("alice")
    now = server.clock.now() // 1_000_000
    for number in range(3):
        revoke_sign_in(server.realms, "acme", "alice", f"{number}", until=now + 60)
    server.clock.advance(61)

    assert revoke_sign_in(server.realms, "acme", "alice", "last", until=now + 600).revoked == (("last", now + 600),)


def test_every_server_of_a_store_refuses_what_was_taken_away(server: GuardedServer) -> None:
    reads = held(Privilege.CATALOG_MANAGE_CONTENT)
    server.make_principal("alice", reads)
    other = GuardedServer(server.store, server.clock, server.base_location)
    here, there = server.guest("alice"), Guest(other.client, server.guest("alice").headers)
    assert [guest.config("acme/lake").status for guest in (here, there)] == [200, 200]

    server.catalog_roles().remove_grants("alice", [reads])
    server.clock.advance(4.9)
    assert [guest.config("acme/lake").status for guest in (here, there)] == [404, 404]
    disable_principal(server.realms, "acme", "alice")
    server.clock.advance(4.9)
    assert [guest.config("acme/lake").status for guest in (here, there)] == [401, 401]
    other.application.close()


def test_token_of_a_dropped_principal_is_no_later_ones(server: GuardedServer) -> None:
    server.make_principal("alice", held(Privilege.CATALOG_MANAGE_CONTENT))
    former = server.guest("alice")
    drop_principal(server.realms, "acme", "alice")
    server.make_principal("alice", held(Privilege.CATALOG_MANAGE_CONTENT))

    assert server.guest("alice").config("acme/lake").status == 200
    assert former.config("acme/lake").error == (401, "NotAuthorizedException")


def test_four_log_in_at_once_and_a_fifth_waits(server: GuardedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go, inside = threading.Event(), threading.Semaphore(0)
    digest = __import__("hashlib").scrypt

    def slow_digest(*args: object, **kwargs: object) -> bytes:
        inside.release()
        assert let_go.wait(20)
        return bytes(digest(*args, **kwargs))

    monkeypatch.setattr("headwater.realms.client_credentials.hashlib.scrypt", slow_digest)
    threads = [threading.Thread(target=server.token_of, args=["root"]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert inside.acquire(timeout=20)
    fifth = server.ask_token({"grant_type": "client_credentials"}, authorization=basic(server.credential("root")))
    let_go.set()
    for thread in threads:
        thread.join(20)

    assert fifth.error == (429, "TooManyRequestsException")
    assert server.token_of("root")


def test_server_without_keys_gives_no_token(tmp_path: Path) -> None:
    with open_store("memory://", settings=Settings()) as store:
        server = GuardedServer(store, store.clock, tmp_path.as_uri())  # type: ignore[arg-type]  # no test of it moves the clock
        answer = server.ask_token({"grant_type": "client_credentials"})
        server.application.close()

    assert error_of(answer) == (400, "unsupported_grant_type")


def test_scope_with_a_long_name_means_that_role_alone(server: GuardedServer) -> None:
    short, long = "r" * 100, "r" * 100 + "-reader"
    server.make_principal(short, held(Privilege.CATALOG_MANAGE_CONTENT))
    create_principal_role(server.realms, "acme", long)
    assign_principal_role(server.realms, "acme", long, short)
    server.clock.advance(5)

    assert server.guest(short, scope=f"PRINCIPAL_ROLE:{long}").config("acme/lake").status == 404
    assert server.guest(short, scope=f"PRINCIPAL_ROLE:{short}").config("acme/lake").status == 200
