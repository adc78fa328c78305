"""Logging in and out of the console: by credentials, by a token of an identity provider, and how a session ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from console_browser import Console
from console_screens import IN_LAKE
from console_server import ConsoleServer
from shown_lake import REALM

from loopback_issuer import LoopbackIssuer, compact_token, signer, signing_key

pytestmark = pytest.mark.long
Visit = Callable[..., Console]
TokenOf = Callable[..., str]
_KEPT = "JSON.stringify([{...sessionStorage}, {...localStorage}, window.name, location.href])"


@pytest.fixture
def token_of(issuer: LoopbackIssuer) -> TokenOf:
    """Makes tokens of an identity provider that hold for so many seconds."""

    def make(principal: str, *, seconds: int = 300) -> str:
        claims = {"iss": issuer.url, "sub": principal, "aud": "lake", "exp": int(time.time()) + seconds, "groups": ["analysts"]}
        return compact_token({"alg": "RS256", "kid": "one"}, claims, signer("RS256", signing_key()))

    return make


def log_in_by_token(console: Console, token: str, *segments: str) -> None:
    console.go(*segments)
    console.press("Token")
    console.page.get_by_label("Realm").fill(REALM)
    console.page.get_by_label("Token", exact=True).fill(token)
    console.press("Log in")


def test_token_is_gone_after_logging_out(visit: Visit) -> None:
    console = visit("")
    console.log_in("root")
    assert "token" in console.page.evaluate(_KEPT)
    console.press("Log out")
    console.see("Log in to Headwater")

    assert "token" not in console.page.evaluate(_KEPT)


def test_token_ends_at_the_server_when_somebody_logs_out(visit: Visit) -> None:
    console = visit("")
    console.log_in("root")
    token = json.loads(console.page.evaluate("sessionStorage.getItem('headwater.session')"))["token"]
    with console.page.expect_response("**/oauth/revoke") as answer:
        console.press("Log out")
    assert answer.value.status == 200
    ask = Request(f"{console.server.url}/api/v1/realms/{REALM}/me", headers={"Authorization": f"Bearer {token}"})
    deadline = time.monotonic() + 30  # of what was taken away a server knows within five seconds
    while is_accepted(ask) and time.monotonic() < deadline:
        time.sleep(0.2)

    assert not is_accepted(ask)


def is_accepted(ask: Request) -> bool:
    try:
        with urlopen(ask) as answer:
            return bool(answer.status == 200)
    except HTTPError as refusal:
        return refusal.code != 401


def test_wrong_secret_is_told(visit: Visit) -> None:
    console = visit("")
    console.page.goto(console.server.url)
    console.page.get_by_label("Client ID").fill(console.server.lake.credentials["ann"][0])
    console.page.get_by_label("Client secret").fill("wrong")
    console.press("Log in")
    console.page.wait_for_selector(".failure")

    assert console.page.evaluate("sessionStorage.length") == 0
    assert console.page.get_by_label("Client ID").input_value() == console.server.lake.credentials["ann"][0]


def test_token_of_an_identity_provider_logs_in(visit: Visit, token_of: TokenOf, logs: list[Any]) -> None:
    console, token = visit(""), token_of("zoe")
    log_in_by_token(console, token)
    console.page.wait_for_selector("h1:has-text('Catalogs')")
    console.see("zoe")

    assert console.page.locator(".rooms a").all_inner_texts()[:2] == ["Catalogs", "Tasks"]  # what analysts may see
    assert token not in console.page.url and token not in str(logs)


def test_expired_token_is_told_and_can_be_replaced(visit: Visit, token_of: TokenOf) -> None:
    console = visit("")
    log_in_by_token(console, token_of("zoe", seconds=-600))
    console.see("it has expired")
    assert console.page.evaluate("sessionStorage.length") == 0
    assert console.page.get_by_label("Realm").input_value() == REALM
    console.page.get_by_label("Token", exact=True).fill(token_of("zoe"))
    console.press("Log in")

    console.page.wait_for_selector("h1:has-text('Catalogs')")


def test_session_ends_with_its_token(visit: Visit, token_of: TokenOf) -> None:
    console = visit("")
    page = console.page
    page.clock.install()
    log_in_by_token(console, token_of("zoe", seconds=3600))
    page.wait_for_selector("h1:has-text('Catalogs')")
    page.clock.fast_forward(3601 * 1000)
    console.see("Your session has ended")

    assert page.evaluate("sessionStorage.length") == 0


def test_token_that_holds_no_more_asks_for_another(visit: Visit) -> None:
    console = visit()
    body = json.dumps({"error": {"message": "the token has expired", "type": "NotAuthorizedException", "code": 401}})
    console.page.route("**/references*", lambda route: route.fulfill(status=401, body=body))
    console.go(*IN_LAKE, "refs")
    console.see("no longer accepts your token")

    assert console.heading() == "Log in to Headwater"


def test_link_into_another_realm_leaves_one_logged_in(visit: Visit, server: ConsoleServer) -> None:
    console = visit()
    console.go("realms", "elsewhere", "tasks")
    console.see("You are logged in to the realm acme")
    console.page.get_by_role("link", name="Go to acme").click()
    console.page.wait_for_selector("h1:has-text('Catalogs')")
    console.see("root")

    assert console.page.evaluate("sessionStorage.length") == 1


def test_refusal_of_a_former_session_does_not_end_the_next(visit: Visit) -> None:
    console = visit()
    page, late = console.page, console.hold("**/api/v1/realms/acme/tasks", method="POST")
    console.go("realms", REALM, "tasks")
    console.press("Collect garbage")
    with page.expect_request("**/api/v1/realms/acme/tasks"):
        page.locator("dialog[open]").get_by_role("button", name="Submit the task").click()
    page.keyboard.press("Escape")
    console.press("Log out")
    console.log_in("ann")
    with page.expect_response("**/api/v1/realms/acme/tasks"):
        late[0].fulfill(status=401, body="{}")
    console.settle()

    assert page.inner_text(".who") == "ann"


def test_change_is_not_repeated_by_who_logs_in_next(visit: Visit) -> None:
    console, asked = visit(), list[str]()
    page = console.page

    def refuse(route: Any) -> None:
        if route.request.method != "POST":
            return route.continue_()
        asked.append(route.request.headers["authorization"])
        route.fulfill(status=503, headers={"Retry-After": "1"}, body="{}")
        return None

    page.route("**/api/v1/realms/acme/tasks", refuse)
    page.clock.install()
    console.go("realms", REALM, "tasks")
    console.press("Collect garbage")
    with page.expect_response(lambda answer: answer.status == 503):
        page.locator("dialog[open]").get_by_role("button", name="Submit the task").click()
    page.keyboard.press("Escape")
    console.press("Log out")
    console.log_in("ann")
    page.clock.run_for(60_000)
    console.settle()

    assert set(asked) == {f"Bearer {console.server.token_of('root')}"}
