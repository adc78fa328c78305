"""An issuer on loopback, and tokens of it that are judged under a clock that stands still."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from fake_clock import FakeClock
from headwater_server.identity import IssuerTokens
from loopback_issuer import LoopbackIssuer, MakeIssuer, MakeToken, MakeTokens, compact_token, signer, signing_key


@pytest.fixture
def make_issuer() -> Iterator[MakeIssuer]:
    with ExitStack() as opened:
        yield lambda *context: opened.enter_context(closing(LoopbackIssuer(*context)))


@pytest.fixture
def issuer(make_issuer: MakeIssuer) -> LoopbackIssuer:
    return make_issuer()


@pytest.fixture
def now(clock: FakeClock) -> int:
    return clock.now() // 1_000_000


@pytest.fixture
def claims(issuer: LoopbackIssuer, now: int) -> dict[str, Any]:
    """What a good token says."""
    return {"iss": issuer.url, "sub": "ann", "aud": "lake", "exp": now + 300, "nbf": now, "iat": now}


@pytest.fixture
def make_token(claims: dict[str, Any]) -> MakeToken:
    """Makes a token that is good but for the claims and the header that are given; None takes one away."""

    def make(*, key: Any = None, alg: str = "RS256", kid: str | None = "one", header: Any = (), **changed: Any) -> str:
        said = {name: value for name, value in {**claims, **changed}.items() if value is not None}
        named = {"alg": alg, **({} if kid is None else {"kid": kid}), **dict(header)}
        return compact_token(named, said, signer(alg, key or signing_key()))

    return make


@pytest.fixture
def make_tokens(issuer: LoopbackIssuer, clock: FakeClock, tmp_path: Path) -> MakeTokens:
    """Makes a judge that trusts the issuer for realm ``acme`` and audience ``lake``; fields and further issuers are given."""

    def make(*more: dict[str, Any], **fields: Any) -> IssuerTokens:
        entry = {"issuer": issuer.url, "realms": ["acme"], "audiences": ["lake"]}
        entry |= {name.replace("_", "-"): value for name, value in fields.items()}
        file = tmp_path / "issuers.json"
        file.write_text(json.dumps({"issuers": [entry, *more]}))
        return IssuerTokens(str(file), clock, fetch_seconds=60)  # of a machine that is busy with other tests

    return make


@pytest.fixture
def tokens(make_tokens: MakeTokens) -> IssuerTokens:
    return make_tokens()
