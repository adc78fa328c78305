"""One line for each request: it names the request, and tells no secret."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from asgi_client import AsgiClient
from headwater_server.access_log import without_secrets


def test_line_says_what_was_asked_and_answered(client: AsgiClient) -> None:
    with capture_logs() as lines:
        client.request(
            "POST",
            "/api/v1/things?x=1",
            b'{"name": "a"}',
            x_request_id="r-1",
            user_agent="spark",
            authorization="Bearer s3cr3t",
        )

    [line] = lines
    told = {
        name: line[name] for name in ("event", "method", "path", "query", "route", "status", "client", "agent", "request_id")
    }
    assert told == {
        "event": "request", "method": "POST", "path": "/api/v1/things", "query": "x=1", "route": "makeThing", "status": 200,
        "client": "127.0.0.1", "agent": "spark", "request_id": "r-1",
    }  # fmt: skip
    assert (line["received_bytes"], line["sent_bytes"], line["error"]) == (13, 40, "")
    assert "s3cr3t" not in str(line)


def test_line_of_an_error_has_its_type(client: AsgiClient) -> None:
    with capture_logs() as lines:
        client.request("POST", "/api/v1/things/a/errors/conflict")

    assert [(line["status"], line["error"], line["log_level"]) for line in lines] == [(409, "CommitFailedException", "info")]


def test_bug_is_logged_with_its_request(client: AsgiClient) -> None:
    with capture_logs() as lines:
        client.request("POST", "/api/v1/things/a/errors/bug", x_request_id="r-2")

    assert [(line["event"], line["log_level"], line["request_id"]) for line in lines] == [
        ("a request ended in a bug", "error", "r-2"),
        ("request", "warning", "r-2"),
    ]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ""),
        ("pageSize=5&parent=a", "pageSize=5&parent=a"),
        ("access_token=abc&x=1", "access_token=***&x=1"),
        ("X-Amz-Signature=abc&X-Amz-Credential=def", "X-Amz-Signature=***&X-Amz-Credential=***"),
        ("client_secret=a=b", "client_secret=***"),
        ("%74oken=abc", "%74oken=***"),
        ("Authorization=abc&password=def", "Authorization=***&password=***"),
    ],
)
def test_query_is_shown_without_secrets(query: str, shown: str) -> None:
    assert without_secrets(query) == shown
