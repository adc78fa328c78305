"""A whole log-in at an OpenID Connect provider that was not written here, whose token is then believed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from headwater.clock import SystemClock
from headwater_server.caller import NotProvenError
from headwater_server.identity import IssuerTokens
from servers.child_servers import command_of

_PROVIDER = """
from oidc_provider_mock import User, run_server_in_thread
ann = User(sub="ann", claims={"realm_access": {"roles": ["lake-readers"]}})
with run_server_in_thread(user_claims=[ann]) as server:
    print(server.server_port, flush=True)
    threading.Event().wait()
"""
CALLBACK = "http://127.0.0.1/callback"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with subprocess.Popen(command_of(_PROVIDER), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as provider:
        assert provider.stdout is not None
        yield int(provider.stdout.readline())
        provider.kill()


def post(port: int, target: str, **fields: str) -> tuple[dict[str, str], bytes]:
    connection = HTTPConnection("localhost", port, timeout=10)
    try:
        connection.request("POST", target, urlencode(fields), FORM)
        answer = connection.getresponse()
        return dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def log_in(port: int, user: str) -> Any:
    """Log a user in with a code, as a browser and a client do. Returns the id token."""
    asked = {"client_id": "lake", "response_type": "code", "redirect_uri": CALLBACK, "scope": "openid", "nonce": user}
    headers, _ = post(port, f"/oauth2/authorize?{urlencode(asked)}", sub=user)
    code = parse_qs(urlsplit(headers["Location"]).query)["code"][0]
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
    _, content = post(port, "/oauth2/token", client_id="lake", client_secret="any", **fields)
    return json.loads(content)["id_token"]


@pytest.fixture
def provider_tokens(port: int, tmp_path: Path) -> IssuerTokens:
    entry = {"issuer": f"http://localhost:{port}", "realms": ["acme"], "audiences": ["lake"], "max-age-seconds": 600}
    entry |= {"roles-claim": "realm_access.roles", "roles": {"lake-readers": "reader"}}
    file = tmp_path / "issuers.json"
    file.write_text(json.dumps({"issuers": [entry]}))
    return IssuerTokens(str(file), SystemClock())


@pytest.mark.long
def test_user_of_a_provider_becomes_a_principal(provider_tokens: IssuerTokens, port: int) -> None:
    identity = provider_tokens.verify(log_in(port, "ann"), "acme")

    assert (identity.issuer, identity.principal) == (f"http://localhost:{port}", "ann")
    assert identity.roles == {"reader"}


def test_user_of_a_provider_is_nobody_in_another_realm(provider_tokens: IssuerTokens, port: int) -> None:
    with pytest.raises(NotProvenError, match="realm 'globex' trusts"):
        provider_tokens.verify(log_in(port, "ann"), "globex")
