"""Callers whom an identity provider vouches for, from its token to what they may do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fake_clock import FakeClock
from guarded_server import GuardedServer, Guest, held
from headwater import Settings, open_store
from headwater.access import Privilege
from headwater.realms import create_principal_role, disable_principal
from headwater_server.identity import CallerProof
from loopback_issuer import LoopbackIssuer, compact_token, signer, signing_key

READS = held(Privilege.CATALOG_MANAGE_CONTENT)
TokenOf = Callable[..., Guest]


@pytest.fixture
def issuer() -> Iterator[LoopbackIssuer]:
    with closing(LoopbackIssuer()) as made:
        yield made


@pytest.fixture
def settings(keys: Path, issuer: LoopbackIssuer, tmp_path: Path) -> Settings:
    entry = {"issuer": issuer.url, "realms": ["acme"], "audiences": ["lake"], "roles-claim": "groups"}
    stored = {**entry, "issuer": f"{issuer.url}/staff", "uses-stored-principals": True, "jwks-uri": f"{issuer.url}/keys"}
    file = tmp_path / "issuers.json"
    file.write_text(json.dumps({"issuers": [entry, stored]}))
    return Settings(server_signing_keys=str(keys), server_issuers=str(file))


@pytest.fixture
def come(server: GuardedServer, issuer: LoopbackIssuer) -> TokenOf:
    """Makes a guest with a token of the issuer, or of one whose URL goes on with ``path``."""

    def make(principal: str, *groups: str, path: str = "", realm: str = "acme") -> Guest:
        now = server.clock.now() // 1_000_000
        claims = {"iss": issuer.url + path, "sub": principal, "aud": "lake", "exp": now + 300, "groups": list(groups)}
        token = compact_token({"alg": "RS256", "kid": "one"}, claims, signer("RS256", signing_key()))
        return server.with_token(token, realm)

    return make


def test_group_of_an_issuer_is_a_role_of_the_realm(server: GuardedServer, come: TokenOf) -> None:
    server.make_principal("analysts", READS)

    assert come("ann", "analysts", "unknown").config("acme/lake").status == 200
    assert come("ann").config("acme/lake").error == (404, "NoSuchWarehouseException")


def test_issuer_of_one_realm_means_nothing_in_another(server: GuardedServer, come: TokenOf) -> None:
    server.make_principal("analysts", READS, realm="other")

    assert come("ann", "analysts", realm="other").config("other/lake").error == (401, "NotAuthorizedException")


def test_issuer_makes_no_administrator_by_the_name_of_a_group(server: GuardedServer, come: TokenOf) -> None:
    create_principal_role(server.realms, "acme", "analysts")

    assert come("ann", "service_admin").config("acme/lake").status == 404


def test_name_at_an_issuer_is_no_principal_of_the_realm(server: GuardedServer, come: TokenOf) -> None:
    server.make_principal("alice", READS)

    for name in ("alice", "root"):
        assert come(name).config("acme/lake").status == 404


def test_stored_principal_counts_where_the_issuer_is_trusted_with_it(server: GuardedServer, come: TokenOf) -> None:
    server.make_principal("alice", READS)
    alice = come("alice", path="/staff")

    assert alice.config("acme/lake").status == 200
    assert come("root", path="/staff").config("acme/lake").status == 404
    disable_principal(server.realms, "acme", "alice")
    server.clock.advance(4.9)
    assert alice.config("acme/lake").error == (401, "NotAuthorizedException")


def test_commit_names_the_issuer_of_its_committer(server: GuardedServer, come: TokenOf, issuer: LoopbackIssuer) -> None:
    server.make_principal("analysts", READS)
    come("ann", "analysts").post("namespaces", {"namespace": ["sales"]})
    [entry] = server.catalog().log()

    assert entry.meta.committer == f"ann ({issuer.url})"


def test_token_ends_though_it_was_verified_before(server: GuardedServer, come: TokenOf) -> None:
    server.make_principal("analysts", READS)
    guest = come("ann", "analysts")

    assert guest.config("acme/lake").status == 200
    server.clock.advance(299)
    assert guest.config("acme/lake").status == 200
    server.clock.advance(60)
    assert guest.config("acme/lake").status == 401


def test_verified_token_counts_no_more_once_its_issuer_is_removed(
    server: GuardedServer, come: TokenOf, settings: Settings
) -> None:
    server.make_principal("analysts", READS)
    guest = come("ann", "analysts")

    assert guest.config("acme/lake").status == 200
    Path(settings.server_issuers).write_text(json.dumps({"issuers": []}))
    assert guest.config("acme/lake").error == (401, "NotAuthorizedException")


def test_issuer_that_cannot_be_reached_lets_nobody_in(server: GuardedServer, come: TokenOf, issuer: LoopbackIssuer) -> None:
    issuer.close()

    assert come("ann", "analysts").config("acme/lake").error == (503, "ServiceUnavailableException")


def test_server_with_issuers_alone_gives_no_tokens(issuer: LoopbackIssuer, settings: Settings, tmp_path: Path) -> None:
    clock, alone = FakeClock(), Settings(server_issuers=settings.server_issuers)
    with open_store("memory://", settings=alone, clock=clock) as store:
        server = GuardedServer(store, clock, tmp_path.as_uri())
        answer = server.ask_token({"grant_type": "client_credentials"})
        server.application.close()

    assert (answer.status, answer.data["error"]) == (400, "unsupported_grant_type")
    assert "identity providers" in answer.data["error_description"]


def test_token_of_an_issuer_is_remembered_by_its_digest(server: GuardedServer, come: TokenOf) -> None:
    server.make_principal("analysts", READS)
    ann = come("ann", "analysts", "x" * 8000)
    assert ann.config("acme/lake").status == 200

    proof = server.application.served.part(CallerProof.of_settings)
    assert proof is not None
    assert [len(digest) for digest, _ in proof._verified] == [32]


def test_body_is_awaited_from_proven_callers_of_an_issuer_alone(
    server: GuardedServer, come: TokenOf, issuer: LoopbackIssuer
) -> None:
    ann = come("ann")
    signed, _, signature = ann.headers["authorization"].rpartition(".")
    target = "/iceberg/v1/acme~lake/namespaces"
    tokens = ["Bearer garbage", f"{signed}.{signature[::-1]}", come("ann", path="/unknown").headers["authorization"]]

    for token in tokens:
        assert server.client.request("POST", target, [], authorization=token).status == 401
    assert server.client.request("POST", target, [], **ann.headers).status == 0  # it is received, and the client is gone
