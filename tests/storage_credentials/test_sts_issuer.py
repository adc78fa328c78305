"""The call of the token service: what it is asked, and what becomes of its answers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest
from msgspec.structs import replace

from headwater.errors import HeadwaterError, RefusedError, UnavailableError
from headwater.iceberg import ClientRole, StorageOptions
from headwater_server.storage_credentials import RoleRefusedError, StorageGrant, StsIssuer

ARN = "arn:aws:iam::123456789012:role/lake"
GRANT = StorageGrant(("s3://lake/a/t",), may_write=True, who="ann@acme")
GIVEN = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>made</SecretAccessKey><SessionToken>token</SessionToken>
<Expiration>2026-06-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""
SECRETS = ("own-secret", "AKIAOWN", "external-1")


@dataclass
class TokenService:
    """``status`` and ``text`` of its answers, and what it was asked."""

    url: str = ""
    status: int = 200
    text: str = GIVEN
    asked: list[dict[str, str]] = field(default_factory=list)
    signed: list[str] = field(default_factory=list)

    def refuse(self, code: str, status: int = 403) -> None:
        self.status = status
        self.text = f"<ErrorResponse><Error><Code>{code}</Code><Message>{' '.join(SECRETS)}</Message></Error></ErrorResponse>"


@pytest.fixture(scope="module")
def listening() -> Iterator[TokenService]:
    made = TokenService()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            made.asked.append({name: values[0] for name, values in parse_qs(body).items()})
            made.signed.append(self.headers["Authorization"])
            self.send_response(made.status)
            self.send_header("Content-Length", str(len(made.text)))
            self.end_headers()
            self.wfile.write(made.text.encode())

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_port}"
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture
def service(listening: TokenService) -> TokenService:
    """The service, which has been asked nothing yet and refuses nothing."""
    listening.status, listening.text = 200, GIVEN
    listening.asked.clear()
    listening.signed.clear()
    return listening


@pytest.fixture(scope="module")
def issuer() -> StsIssuer:
    """One for all tests: making a client takes longer than using it."""
    return StsIssuer()


@pytest.fixture
def options(service: TokenService) -> StorageOptions:
    role = ClientRole(arn=ARN, external_id="external-1", sts_endpoint=service.url, lifetime_seconds=1800)
    return StorageOptions(
        location="s3://lake",
        endpoint="http://127.0.0.1:9",
        access_key_id="AKIAOWN",
        secret_access_key="own-secret",
        client_role=role,
    )


def test_service_is_asked_for_a_table_and_a_caller(issuer: StsIssuer, options: StorageOptions, service: TokenService) -> None:
    issuer.issue(options, GRANT)

    [asked] = service.asked
    assert asked.items() >= {"Action": "AssumeRole", "RoleArn": ARN, "RoleSessionName": "ann@acme"}.items()
    assert (asked["DurationSeconds"], asked["ExternalId"]) == ("1800", "external-1")
    assert "arn:aws:s3:::lake/a/t/*" in asked["Policy"] and "AKIAOWN/" in service.signed[0]


def test_answer_is_told_by_the_names_that_clients_know(issuer: StsIssuer, options: StorageOptions) -> None:
    credentials = issuer.issue(options, GRANT)

    assert credentials.config == {
        "s3.access-key-id": "ASIA1",
        "s3.secret-access-key": "made",
        "s3.session-token": "token",
        "s3.session-token-expires-at-ms": "1780272000000",
    }
    assert (credentials.expires_ms, "made" in repr(credentials)) == (1780272000000, False)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("AccessDenied", RoleRefusedError),
        ("ExpiredTokenException", RoleRefusedError),
        ("own-secret", RoleRefusedError),
        ("MalformedPolicyDocument", RefusedError),
        ("PackedPolicyTooLarge", RefusedError),
    ],
)
def test_refusal_tells_its_code_and_no_secret(
    issuer: StsIssuer, options: StorageOptions, service: TokenService, code: str, kind: type[HeadwaterError]
) -> None:
    service.refuse(code)

    with pytest.raises(kind, match=f"the token service answered .* to AssumeRole of {ARN}") as refusal:
        issuer.issue(options, GRANT)
    assert not [secret for secret in SECRETS if secret in str(refusal.value)]
    assert refusal.value.__cause__ is None and refusal.value.__suppress_context__


@pytest.mark.parametrize(("code", "status"), [("Throttling", 400), ("InternalFailure", 500)])
def test_service_that_can_give_nobody_anything_is_told(
    issuer: StsIssuer, options: StorageOptions, service: TokenService, code: str, status: int
) -> None:
    service.refuse(code, status)

    with pytest.raises(UnavailableError, match=code) as fault:
        issuer.issue(options, GRANT)
    assert not isinstance(fault.value, RoleRefusedError)


@pytest.mark.parametrize("text", ["", "<AssumeRoleResponse/>", "own-secret", "{}"])
def test_answer_without_credentials_is_told(
    issuer: StsIssuer, options: StorageOptions, service: TokenService, text: str
) -> None:
    service.text = text

    with pytest.raises(UnavailableError) as refusal:
        issuer.issue(options, GRANT)
    assert "own-secret" not in str(refusal.value)


def test_place_that_no_policy_can_name_is_not_asked_for(
    issuer: StsIssuer, options: StorageOptions, service: TokenService
) -> None:
    with pytest.raises(RefusedError):
        issuer.issue(options, StorageGrant(("s3://lake/*",), may_write=False, who="ann@acme"))
    assert service.asked == []


@pytest.mark.long
def test_service_that_says_nothing_is_waited_for_a_while(options: StorageOptions) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        role = replace(options.client_role, sts_endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()

        with pytest.raises(UnavailableError, match=r"AssumeRole of .* failed: Read timeout"):
            StsIssuer().issue(replace(options, client_role=role), GRANT)
        assert time.monotonic() - began < 55  # the library itself would wait for a minute
