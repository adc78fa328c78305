"""What the application answers: the right route with the right values, and a sentence with the right status for everything else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

import pytest
from things import RAW, Things

from asgi_client import AsgiClient
from headwater_server.server_application import SURPLUS_KEY, ServerApplication


@pytest.mark.parametrize(
    ("segment", "thing"),
    [
        ("feature%2Fx", "feature/x"),
        ("%252F", "%2F"),
        ("a%1Fb", "a\x1fb"),
        ("..", ".."),
        ("%2E%2E", ".."),
        ("a%0Ab", "a\nb"),
        ("%C3%BC", "ü"),
        ("a+b;c=d", "a+b;c=d"),
    ],
)
def test_segment_is_handed_on_decoded_once(client: AsgiClient, segment: str, thing: str) -> None:
    answer = client.request("GET", f"/api/v1/things/{segment}?pageSize=3&pageToken=")

    assert answer.status == 200
    assert answer.data["thing"] == thing
    assert answer.data["query"] == {"pageToken": "", "pageSize": 3, "isWhole": False}


def test_raw_json_is_handed_on_untouched(client: AsgiClient) -> None:
    assert RAW in client.request("GET", "/api/v1/things").content


def test_browsers_take_answers_for_what_they_are(client: AsgiClient) -> None:
    for path in ("/api/v1/things", "/nowhere", "/readyz"):
        answer = client.request("GET", path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "strict-transport-security" not in answer.headers


def test_server_with_a_certificate_of_its_own_asks_for_https_ever_after(
    make_application: Callable[..., ServerApplication],
) -> None:
    client = AsgiClient(make_application(certificate="/tls/tls.crt", private_key="/tls/tls.key"))

    assert client.request("GET", "/api/v1/things").headers["strict-transport-security"] == "max-age=31536000"


def test_body_is_decoded_from_pieces(client: AsgiClient, things: Things) -> None:
    answer = client.request("POST", "/api/v1/things", [b'{"na', b"", b'me": "a"}'])

    assert (answer.status, things.made) == (200, ["a"])


def test_packed_body_is_taken(client: AsgiClient, things: Things) -> None:
    answer = client.request("POST", "/api/v1/things", gzip.compress(b'{"name": "a"}', mtime=0), content_encoding="gzip")

    assert (answer.status, things.made) == (200, ["a"])


JAVA = {"x_client_version": "Apache Iceberg 1.10.2 (commit 12345678)"}
LATIN_1, UTF_8 = '{"name": "caf\u00e9"}'.encode("iso-8859-1"), '{"name": "caf\u00e9"}'.encode()


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (UTF_8, {}),
        (UTF_8, JAVA),
        (LATIN_1, JAVA),
        (gzip.compress(LATIN_1), JAVA | {"content_encoding": "gzip"}),
        (LATIN_1, {"content_type": "application/json; charset=ISO-8859-1"}),
        (LATIN_1, {"content_type": 'application/json;Charset="latin1"'}),
        (UTF_8, JAVA | {"content_type": "application/json; charset=utf-8"}),
    ],
)
def test_letters_are_read_in_the_charset_of_the_client(
    client: AsgiClient, things: Things, body: bytes, headers: dict[str, str]
) -> None:
    assert (client.request("POST", "/api/v1/things", body, **headers).status, things.made) == (200, ["café"])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 400),
        ({"x_client_version": "PyIceberg 0.12.0"}, 400),
        (JAVA | {"content_type": "application/json; charset=utf-8"}, 400),
        ({"content_type": "application/json; charset=utf-16"}, 415),
    ],
)
def test_letters_that_are_not_utf_8_are_refused(
    client: AsgiClient, things: Things, headers: dict[str, str], status: int
) -> None:
    assert (client.request("POST", "/api/v1/things", LATIN_1, **headers).status, things.made) == (status, [])


def test_form_is_handed_on_in_utf_8(client: AsgiClient) -> None:
    answer = client.request("POST", "/api/v1/things/a/raw", "a=é".encode("iso-8859-1"), **JAVA)

    assert answer.content == "a=é".encode()


def test_bytes_are_handed_on_for_a_route_that_reads_them(client: AsgiClient) -> None:
    answer = client.request("POST", "/api/v1/things/a/raw", b"a=b", content_type="application/x-www-form-urlencoded")

    assert (answer.status, answer.content) == (200, b"a=b")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b'{"name": 5}', {}, 400),
        (b'{"name": "a", "name": "b"}', {}, 400),
        (b'{"name": NaN}', {}, 400),
        (b"[" * 1500, {}, 400),
        (b'"\xff"', {}, 400),
        (b'{"name": "\\ud800"}', {}, 400),
        (b"null", {}, 400),
        (b"", {}, 400),
        (b"abc", {"content_encoding": "gzip"}, 400),
        (b"abc", {"content_encoding": "br"}, 415),
        (b"{}", {"content_type": "text/plain"}, 415),
        (b"{}", {"content_type": "multipart/form-data; boundary=x"}, 415),
        (b"x" * 2001, {}, 413),
        (b"", {"content_length": "2001"}, 413),
        (gzip.compress(bytes(5000), mtime=0), {"content_encoding": "gzip"}, 413),
    ],
)
def test_body_that_does_not_fit_changes_nothing(
    make_application: Callable[..., ServerApplication], things: Things, body: bytes, headers: dict[str, str], status: int
) -> None:
    answer = AsgiClient(make_application(body_bytes=2000)).request("POST", "/api/v1/things", body, **headers)

    assert answer.error[0] == status
    assert things.made == []


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        ("refused", 400, "BadRequestException"),
        ("missing", 404, "NotFoundException"),
        ("expired", 404, "NotFoundException"),
        ("no-such-thing", 404, "NoSuchThingException"),
        ("conflict", 409, "CommitFailedException"),
        ("swap", 409, "CommitFailedException"),
        ("unavailable", 503, "ServiceUnavailableException"),
        ("timeout", 503, "ServiceUnavailableException"),
        ("unknown", 500, "CommitStateUnknownException"),
        ("corrupt", 500, "UnreadableDataException"),
        ("bug", 500, "InternalServerError"),
        ("recursion", 500, "InternalServerError"),
    ],
)
def test_error_has_the_status_that_clients_act_on(client: AsgiClient, error: str, status: int, kind: str) -> None:
    answer = client.request("POST", f"/api/v1/things/a/errors/{error}")

    assert answer.error == (status, kind)
    assert answer.headers.get("retry-after") == ("1" if status == 503 else None)


@pytest.mark.parametrize(("error", "secret"), [("unavailable", "secret"), ("bug", "hunter2")])
def test_error_tells_no_secret(client: AsgiClient, error: str, secret: str) -> None:
    assert secret not in client.request("POST", f"/api/v1/things/a/errors/{error}").message


def test_unknown_path_is_told_where_to_look(client: AsgiClient) -> None:
    answer = client.request("GET", "/api/v2/things")

    assert answer.error == (404, "NotFoundException")
    assert "/api/v2/things" in answer.message and "/openapi.json" in answer.message


def test_answer_is_asked_for_again_by_caches(client: AsgiClient) -> None:
    answers = [client.request("GET", target) for target in ("/api/v1/things/a", "/api/v1/none")]
    known = client.request("GET", "/api/v1/things/a", if_none_match='"1"')

    assert {answer.headers["cache-control"] for answer in (*answers, known)} == {"no-cache"}


def test_wrong_method_is_told_the_right_ones(client: AsgiClient) -> None:
    answer = client.request("PUT", "/api/v1/things")

    assert answer.error == (405, "MethodNotAllowedException")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS, POST"


def test_options_tell_the_methods(client: AsgiClient) -> None:
    answer = client.request("OPTIONS", "/api/v1/things/a/mark")

    assert (answer.status, answer.headers["allow"]) == (204, "HEAD, OPTIONS")


def test_head_has_the_length_of_get_and_no_body(client: AsgiClient) -> None:
    get, head = (client.request(method, "/api/v1/things/a") for method in ("GET", "HEAD"))

    assert (head.status, head.content) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"] == str(len(get.content))
    assert head.headers["etag"] == '"1"'


def test_answer_without_a_body_says_no_length(client: AsgiClient) -> None:
    known = client.request("GET", "/api/v1/things/a", if_none_match='"1"')
    checked = client.request("HEAD", "/api/v1/things/a/mark")

    assert (known.status, known.content, known.headers["etag"]) == (304, b"", '"1"')
    assert checked.status == 204
    assert not {"content-length", "content-type"} & (set(known.headers) | set(checked.headers))


@pytest.mark.parametrize("target", ["/api/v1/things/%zz", "/api/v1/things/%FF", "/api/v1/things/a?pageSize=x"])
def test_target_that_cannot_be_read_is_refused(client: AsgiClient, target: str) -> None:
    assert client.request("GET", target).error == (400, "BadRequestException")


def test_body_with_two_ends_is_refused(client: AsgiClient, things: Things) -> None:
    answer = client.request("POST", "/api/v1/things", b"{}", content_length="2", transfer_encoding="chunked")

    assert answer.error[0] == 400
    assert answer.headers["connection"] == "close"
    assert things.made == []


def test_request_id_comes_back(client: AsgiClient) -> None:
    assert client.request("GET", "/api/v1/things", x_request_id="a-1.b").headers["x-request-id"] == "a-1.b"


@pytest.mark.parametrize("header", ["", "a b", "x" * 200, "a\nb", "ü"])
def test_unsound_request_id_is_replaced(client: AsgiClient, header: str) -> None:
    request_id = client.request("GET", "/api/v1/things", x_request_id=header).headers["x-request-id"]

    assert len(request_id) == 32 and request_id != header


def test_client_that_leaves_is_not_answered(client: AsgiClient, things: Things) -> None:
    answer = client.request("POST", "/api/v1/things", [])

    assert (answer.status, things.made) == (0, [])


def test_surplus_connection_is_answered_before_any_work(client: AsgiClient, things: Things) -> None:
    answer = client.request("POST", "/api/v1/things", b'{"name": "a"}', state={SURPLUS_KEY: True})

    assert answer.error == (429, "TooManyRequestsException")
    assert (answer.headers["retry-after"], things.made) == ("1", [])


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8181", 200),
        ("127.0.0.1:8181", 200),
        ("[::1]:8181", 200),
        ("lake.localhost", 200),
        ("lake.example.com:443", 200),
        ("evil.example.com:8181", 421),
        ("10.0.0.1:8181", 421),
        ("localhost.evil.example.com", 421),
    ],
)
def test_server_answers_to_its_own_names(make_application: Callable[..., ServerApplication], host: str, status: int) -> None:
    client = AsgiClient(make_application(hosts="lake.example.com"), host=host)

    assert client.request("GET", "/api/v1/things").status == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://localhost:8181", 200), ("https://console.example.com", 200), ("https://evil.example.com", 403), ("null", 403)],
)
def test_page_of_a_stranger_changes_nothing(
    make_application: Callable[..., ServerApplication], things: Things, origin: str, status: int
) -> None:
    client = AsgiClient(make_application(origins="https://console.example.com"))

    answer = client.request("POST", "/api/v1/things", b'{"name": "a"}', origin=origin)

    assert (answer.status, len(things.made)) == (status, int(status == 200))


def test_named_page_may_read_answers(make_application: Callable[..., ServerApplication]) -> None:
    client = AsgiClient(make_application(origins="https://console.example.com"))

    answer = client.request("GET", "/api/v2", origin="https://console.example.com")

    assert answer.status == 404
    assert answer.headers["access-control-allow-origin"] == "https://console.example.com"


def test_named_page_may_ask_before_it_changes(make_application: Callable[..., ServerApplication]) -> None:
    client = AsgiClient(make_application(origins="https://console.example.com"))
    asked = {"access_control_request_method": "POST", "access_control_request_headers": "content-type"}

    answers = [
        client.request("OPTIONS", "/api/v1/things", origin=f"https://{name}.example.com", **asked)
        for name in ("console", "evil")
    ]

    assert [answer.status for answer in answers] == [200, 400]


def test_probes_answer_any_name(client: AsgiClient) -> None:
    client.host = "10.0.0.1:8181"
    answers = [client.request("GET", path) for path in ("/healthz", "/readyz")]

    assert [answer.status for answer in answers] == [200, 200]
    assert answers[1].content == b"process: ok\nstore: ok\n"


def test_openapi_document_is_served(client: AsgiClient) -> None:
    document = client.request("GET", "/openapi.json").data

    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", "1.2.3")
    assert json.dumps(document["paths"]["/api/v1/things"]["post"]["requestBody"]).count("ThingRequest") == 1
