"""Attacks on the server around its rights: on what it fetches, how it answers, how long it waits, and what it writes down."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guarded_operations import fill_sales, guarded_operations
from structlog.testing import capture_logs

from asgi_client import AsgiAnswer
from fake_clock import FakeClock
from guarded_server import SCHEMA, GuardedServer, Guest, held
from headwater import Settings, open_store
from headwater.access import Privilege
from headwater.realms import disable_principal

P = Privilege


@pytest.fixture
def guest(server: GuardedServer) -> Guest:
    """Somebody with every right in ``acme/lake``."""
    fill_sales(server)
    server.make_principal("guest", held(P.CATALOG_MANAGE_CONTENT))
    return server.guest("guest")


@pytest.fixture
def trap() -> Iterator[socket.socket]:
    """A port that nobody has to connect to."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def places_elsewhere(server: GuardedServer, port: int) -> list[str]:
    base = f"{server.base_location}/acme/lake"
    return [
        "file:///etc/passwd",
        "/etc/passwd",
        "file:/etc/passwd",
        "file://localhost/etc/passwd",
        "etc/passwd",
        "",
        f"{base}/../../../secret.metadata.json",
        f"{base}/..%2F..%2F..%2Fsecret.metadata.json",
        f"{base}/x/../../second/secret.metadata.json",
        f"{base}//../second/secret.metadata.json",
        f"{base}-sibling/secret.metadata.json",
        f"{server.base_location}/other/lake/secret.metadata.json",
        f"{base}/link/secret.metadata.json",
        f"{base}/x\u0000/secret.metadata.json",
        f"http://127.0.0.1:{port}/v1.metadata.json",
        f"https://127.0.0.1:{port}/v1.metadata.json",
        f"ftp://127.0.0.1:{port}/v1.metadata.json",
        f"hdfs://127.0.0.1:{port}/v1.metadata.json",
        f"s3://127.0.0.1:{port}/v1.metadata.json",
        "s3://another-bucket/v1.metadata.json",
        "gs://another-bucket/v1.metadata.json",
        "abfss://c@account.dfs.core.windows.net/v1.metadata.json",
        "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
        "memory://x/y",
        "github://org:repo@main/x",
        f"file://127.0.0.1:{port}/x",
        f"zip://x::http://127.0.0.1:{port}/x.zip",
        f"simplecache::http://127.0.0.1:{port}/x",
    ]


def test_register_reaches_for_nothing_outside_the_catalog(
    server: GuardedServer, guest: Guest, trap: socket.socket, tmp_path: Path
) -> None:
    (tmp_path / "secret.metadata.json").write_text("a-secret-of-the-machine")
    (tmp_path / "warehouse" / "acme" / "lake").mkdir(parents=True, exist_ok=True)
    (tmp_path / "warehouse" / "acme" / "lake" / "link").symlink_to(tmp_path)
    for place in places_elsewhere(server, trap.getsockname()[1]):
        for path in ("register", "register-view"):
            answer = guest.post(f"namespaces/sales/{path}", {"name": "t", "metadata-location": place})

            assert answer.status == 400, (place, answer.content)
            assert not [word for word in ("a-secret", "root:", "Errno") if word in answer.content.decode()], answer.content
    with pytest.raises(BlockingIOError):
        trap.accept()


def test_table_is_placed_nowhere_outside_the_catalog(
    server: GuardedServer, guest: Guest, trap: socket.socket, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    for place in places_elsewhere(server, trap.getsockname()[1]):
        for more in (
            {"location": place},
            {"location": place, "stage-create": True},
            {"properties": {"write.data.path": place}},
        ):
            answer = guest.post("namespaces/sales/tables", {"name": "t", "schema": SCHEMA, **more})
            if place != "":
                assert answer.status == 400 or "/link/" in place, (place, more, answer.content)
            if answer.status == 200:
                guest.delete("namespaces/sales/tables/t")
    outside = [path for path in tmp_path.rglob("*") if path not in before and "warehouse/acme/lake" not in path.as_posix()]
    assert outside == []
    with pytest.raises(BlockingIOError):
        trap.accept()


INJECTED = "x\r\nSet-Cookie: stolen=1\r\n\r\n<script>"


def test_header_is_injected_by_no_name(guest: Guest) -> None:
    encoded = "x%0d%0aSet-Cookie:%20stolen=1%0d%0a%0d%0a"
    answers = [
        guest.post("namespaces", {"namespace": [INJECTED]}),
        guest.get(f"namespaces/{encoded}"),
        guest.get(f"namespaces/{encoded}/tables/{encoded}"),
        guest.at(encoded).get("namespaces"),
        guest.at(f"acme~lake~{encoded}").get("namespaces"),
        guest.get("namespaces", pageToken=INJECTED),
        guest.get("/v1/config", warehouse=INJECTED),
        guest.call("GET", "namespaces", x_request_id=INJECTED),
        guest.call("GET", "namespaces", x_request_id="x" * 129),
        guest.call("GET", "namespaces", if_none_match=INJECTED),
        guest.call("POST", "namespaces", b"{}", idempotency_key=INJECTED),
        guest.call("POST", "namespaces", b"{}", content_encoding=INJECTED),
        guest.call("POST", "namespaces", b"{}", content_type=INJECTED),
        guest.call("PATCH" + INJECTED, "namespaces"),
        guest.call("POST", "namespaces", b"{}", origin=INJECTED),
        guest.call("GET", f"/{encoded}"),
    ]
    for answer in answers:
        assert not [each for each in answer.headers.items() if "\r" in str(each) or "\n" in str(each) or "stolen" in str(each)]
        assert answer.headers.get("content-type", "application/json") == "application/json"
        assert INJECTED not in answer.headers["x-request-id"] and len(answer.headers["x-request-id"]) <= 128


def bomb(mebibytes: int) -> bytes:
    return gzip.compress(b" " * (mebibytes * 1024 * 1024))


def test_bomb_is_not_unpacked_for_nobody(server: GuardedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[int] = []
    monkeypatch.setattr("headwater_server.server_application.unpacked_body", lambda raw, *_, **__: unpacked.append(len(raw)))
    for headers in ({}, {"authorization": "Bearer x"}, {"authorization": "Bearer a.b.c"}):
        answer = Guest(server.client, headers).call("POST", "namespaces", bomb(1), content_encoding="gzip")
        assert answer.error == (401, "NotAuthorizedException")
    assert unpacked == []


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "gzip, gzip", "deflate", "br"])
def test_bomb_of_a_caller_is_refused(guest: Guest, encoding: str) -> None:
    twice = gzip.compress(bomb(64)) if "," in encoding else bomb(64)

    assert guest.call("POST", "namespaces", twice, content_encoding=encoding).status in (413, 415)


def test_request_for_a_token_is_small(server: GuardedServer) -> None:
    form = b"grant_type=client_credentials&client_id=acme.x&client_secret="
    for body, headers in (
        (form + b"x" * 40_000, {}),
        (bomb(1), {"content_encoding": "gzip"}),
        (b"", {"content_length": "16000000"}),
    ):
        answer = server.client.request("POST", "/iceberg/v1/oauth/tokens", body, **headers)

        assert answer.status in (0, 413), answer.content
    assert server.application._budget.taken_bytes == 0


async def answer_without_body(server: GuardedServer, headers: dict[str, str], path: str) -> int:
    """The status of the answer to a request whose body never comes; 0: there was none."""
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [
            (name.encode(), value.encode()) for name, value in {"host": "localhost", "content-length": "9", **headers}.items()
        ],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8181),
        "state": {},
    }
    try:
        async with asyncio.timeout(0.5):
            await server.application(scope, receive, send)
    except TimeoutError:
        return 0
    return statuses[0]


@pytest.mark.parametrize("kind", ["none", "basic", "garbage", "jwt", "forged", "expired"])
def test_body_is_awaited_from_nobody(server: GuardedServer, kind: str) -> None:
    token = server.token_of("root")
    head, body, signature = token.split(".")
    texts = {
        "basic": "Basic abc",
        "garbage": "Bearer garbage",
        "jwt": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.",
        "forged": f"Bearer {head}.{body}.{signature[::-1]}",
        "expired": f"Bearer {token}",
    }
    if kind == "expired":
        server.clock.advance(3601)
    headers = {"authorization": texts[kind]} if kind in texts else {}

    assert asyncio.run(answer_without_body(server, headers, "/iceberg/v1/acme~lake/namespaces")) == 401
    assert server.application._budget.taken_bytes == 0


def test_body_of_a_caller_is_awaited(server: GuardedServer) -> None:
    headers = {"authorization": f"Bearer {server.token_of('root')}"}

    assert asyncio.run(answer_without_body(server, headers, "/iceberg/v1/acme~lake/namespaces")) == 0


def test_log_in_takes_as_long_whoever_is_there(server: GuardedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.make_principal("alice")
    server.make_principal("bob")
    disable_principal(server.realms, "acme", "alice")
    digests: list[Any] = []
    scrypt = hashlib.scrypt
    monkeypatch.setattr(
        "headwater.realms.client_credentials.hashlib.scrypt", lambda *a, **k: digests.append(k) or scrypt(*a, **k)
    )
    own, secret = server.credential("bob").split(":")
    tries = {
        "right": (own, secret),
        "wrong secret": (own, "wrong"),
        "empty secret": (own, ""),
        "disabled": tuple(server.credential("alice").split(":")),
        "unknown client": ("acme.0123456789abcdef", secret),
        "unknown realm": ("nowhere.0123456789abcdef", secret),
        "client of another realm": ("other." + own.partition(".")[2], secret),
        "odd realm": ("-.0123456789abcdef", secret),
        "long client": ("acme." + "0" * 5000, secret),
        "long secret": (own, "x" * 5000),
        "client with zeros": ("acme.\x00", secret),
    }
    answers: dict[str, AsgiAnswer] = {}
    for name, (client, given) in tries.items():
        digests.clear()
        answers[name] = server.ask_token({"grant_type": "client_credentials", "client_id": client, "client_secret": given})

        assert len(digests) == 1, name
    assert answers.pop("right").status == 200
    assert len({(answer.status, answer.content, answer.headers["content-length"]) for answer in answers.values()}) == 1


def test_realm_is_told_by_no_answer_to_a_token(server: GuardedServer) -> None:
    guest = server.guest("root")
    answers = [guest.config(warehouse) for warehouse in ("other/lake", "nowhere/lake", "other/none", "OTHER/lake")]

    assert len({(answer.status, answer.content) for answer in answers}) == 1
    assert answers[0].status == 401


@pytest.fixture
def audited(keys: Path, tmp_path: Path) -> Iterator[GuardedServer]:
    """The server with an audit log in ``audit.jsonl``."""
    settings = Settings(server_signing_keys=str(keys), server_audit_file=str(tmp_path / "audit.jsonl"))
    clock = FakeClock()
    with open_store("memory://", settings=settings, clock=clock) as store:
        made = GuardedServer(store, clock, (tmp_path / "warehouse").as_uri())
        made.make_realm("acme", "lake", "second")
        made.make_realm("other", "lake")
        yield made
        made.application.close()


def audit_lines(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]


def basic(credential: str) -> str:
    return "Basic " + base64.b64encode(credential.encode()).decode()


def test_secret_stands_in_nothing_that_is_written(audited: GuardedServer, tmp_path: Path) -> None:
    secrets, answers = [], []
    with capture_logs() as lines:
        table, view = fill_sales(audited)
        audited.make_principal("guest", held(P.CATALOG_MANAGE_CONTENT))
        guest = audited.guest("guest")
        for name in ("root", "guest"):
            credential, token = audited.credential(name), audited.token_of(name)
            secrets += [credential.partition(":")[2], token, token.split(".")[2]]
            client, _, secret = credential.partition(":")
            form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
            exchange = {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": token + "x"}
            answers += [
                audited.ask_token(form | {"client_secret": secret + "x"}),
                audited.ask_token({**form, "client_id": secret}),
                audited.ask_token({**form, "grant_type": secret}),
                audited.ask_token({**form, "scope": secret, "actor_token": token}, authorization=basic(f"x{secret}")),
                audited.ask_token(exchange),
                audited.ask_token({**exchange, "actor_token": token}),
                audited.client.request(
                    "POST", f"/iceberg/v1/oauth/tokens?client_secret={secret}", f"client_secret={secret}".encode()
                ),
                audited.client.request("POST", "/iceberg/v1/oauth/tokens", json.dumps(form).encode()),
                guest.get("/v1/config", warehouse="acme/lake", token=token, client_secret=secret),
                guest.call("GET", "namespaces", authorization=f"Bearer {token}x"),
                guest.call("GET", "namespaces", authorization=f"Basic {token}"),
                guest.call("GET", "namespaces", cookie=token, x_request_id=f"{token}"),
                guest.call("POST", "namespaces", b"{}", origin=token),
            ]
        for operation in guarded_operations(table, view).values():
            operation.ask(guest)
        answers.append(audited.client.request("GET", "/metrics"))
        answers.append(audited.client.request("GET", "/openapi.json"))
    secrets += ["a first key of the tests", *(base64.b64encode(each.encode()).decode() for each in secrets[:1])]
    written = "\n".join(
        [
            *map(str, lines),
            (tmp_path / "audit.jsonl").read_text(),
            *(answer.content.decode() + str(answer.headers) for answer in answers),
        ]
    )

    assert len(lines) > 40 and "guest" in written
    assert not [secret for secret in secrets if secret in written]


def test_audit_log_has_a_line_for_each_request(audited: GuardedServer, tmp_path: Path) -> None:
    table, view = fill_sales(audited)
    audited.make_principal("guest", held(P.TABLE_LIST, "elsewhere"))
    guest = audited.guest("guest")
    audited.client.request("GET", "/healthz")
    before = len(audit_lines(tmp_path))
    operations = guarded_operations(table, view)
    for operation in operations.values():
        operation.ask(guest)
    lines = audit_lines(tmp_path)[before:]

    assert [line["action"] for line in lines] == list(operations)
    for line in lines:
        assert (line["realm"], line["principal"], line["from"]) == ("acme", "guest", "127.0.0.1")
        assert line["outcome"] == "not-found"


@pytest.mark.parametrize("route", ["loadTable", "dropTable", "createTable", "dropNamespace", "loadView", "renameTable"])
def test_audit_log_tells_a_hidden_refusal_from_a_missing_thing(audited: GuardedServer, tmp_path: Path, route: str) -> None:
    operation = guarded_operations(*fill_sales(audited))[route]
    audited.make_principal("guest", held(P.TABLE_LIST, "elsewhere"))
    operation.ask(audited.guest("guest"))
    line = audit_lines(tmp_path)[-1]

    assert line["outcome"] == "not-found" and line["status"] == 404
    assert [each["held"] for each in line["on"]] == [False]
    assert line["on"][0]["privilege"] == operation.needs[0].grant.privilege


def test_audit_log_tells_of_a_catalog_that_was_hidden(audited: GuardedServer, tmp_path: Path) -> None:
    audited.make_principal("guest", held(P.TABLE_LIST, "elsewhere"))
    guest = audited.guest("guest")
    guest.config("acme/second")
    hidden = audit_lines(tmp_path)[-1]
    guest.config("acme/lake@main~1")
    past = audit_lines(tmp_path)[-1]

    assert (hidden["outcome"], [each["held"] for each in hidden["on"]]) == ("not-found", [False])
    assert (past["outcome"], [each["held"] for each in past["on"]]) == ("denied", [False])


def test_audit_log_tells_of_logins_that_failed(audited: GuardedServer, tmp_path: Path) -> None:
    own = audited.credential("root").partition(":")[0]
    audited.ask_token({"grant_type": "client_credentials", "client_id": own, "client_secret": "wrong"})
    line = audit_lines(tmp_path)[-1]

    assert (line["client"], line["realm"], line["principal"], line["outcome"]) == (own, "acme", "", "not-proven")


def test_line_of_the_audit_log_is_forged_by_no_name(audited: GuardedServer, tmp_path: Path) -> None:
    forged = '\n{"principal": "root", "action": "forged"}\n'
    guest = audited.guest("root")
    before = len(audit_lines(tmp_path))
    guest.post("namespaces", {"namespace": [forged]})
    guest.get("namespaces/%0a%7B%22principal%22%3A1%7D%0a")
    audited.ask_token({"grant_type": "client_credentials", "client_id": f"acme.{forged}", "client_secret": "x"})
    guest.call("GET", "namespaces", x_forwarded_for=forged, user_agent=forged)
    lines = audit_lines(tmp_path)[before:]

    assert len(lines) == 4
    assert [line["action"] for line in lines] == ["createNamespace", "loadNamespaceMetadata", "getToken", "listNamespaces"]
