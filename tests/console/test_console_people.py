"""Principals and their credentials in the console: a secret is shown once, and is nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.error import HTTPError

import pytest
from console_browser import Console
from console_server import ConsoleServer
from shown_lake import REALM

from headwater.realms import drop_principal, find_principal, list_principals, read_principal

pytestmark = pytest.mark.long
Visit = Callable[..., Console]
PRINCIPALS = ("realms", REALM, "principals")
# the DOM, what a tab and a browser keep, and the address
_KEPT = "() => document.documentElement.outerHTML + JSON.stringify([{...sessionStorage}, {...localStorage}, location.href, history.state])"


@pytest.fixture
def newcomer(server: ConsoleServer) -> Iterator[str]:
    """The name of somebody who is gone again afterwards."""
    yield "bea"
    if find_principal(server.lake.registry, REALM, "bea"):
        drop_principal(server.lake.registry, REALM, "bea")


def told_secret(console: Console) -> tuple[str, str]:
    """The client id and the secret that a dialog shows."""
    console.see("They are shown this once")
    client_id, secret, _ = console.page.locator("dialog[open] dd code").all_inner_texts()
    return client_id, secret


def is_refused(server: ConsoleServer, client_id: str, secret: str) -> bool:
    try:
        server.ask_for_token(client_id, secret)
    except HTTPError as refusal:
        return refusal.code == 401
    return False


def create(console: Console, name: str) -> tuple[str, str]:
    console.go(*PRINCIPALS)
    console.press("New principal")
    console.page.get_by_label("Name").fill(name)
    console.page.locator("dialog[open]").get_by_role("button", name="Create").click()
    return told_secret(console)


def test_secret_of_a_new_principal_is_shown_once(
    visit: Visit, server: ConsoleServer, newcomer: str, logs: list[object]
) -> None:
    console = visit()
    client_id, secret = create(console, newcomer)
    assert not is_refused(server, client_id, secret)
    assert secret not in console.page.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}, location.href])")
    console.confirm("I have them")
    console.page.get_by_role("link", name=newcomer).wait_for()

    assert secret not in console.page.evaluate(_KEPT)
    assert logs and secret not in str(logs)
    assert newcomer in {each.name for each in list_principals(server.lake.registry, REALM)}


def test_former_secret_holds_beside_a_rotated_one(visit: Visit, server: ConsoleServer, newcomer: str) -> None:
    console = visit()
    former = create(console, newcomer)
    console.confirm("I have them")
    console.go(*PRINCIPALS, newcomer)
    console.press("Rotate credentials")
    console.page.locator("dialog[open]").get_by_role("button", name="Rotate credentials").click()
    rotated = told_secret(console)
    console.confirm("I have them")
    console.see("Former client id")

    assert former != rotated
    assert not is_refused(server, *former) and not is_refused(server, *rotated)


def test_former_secret_is_refused_after_a_reset(visit: Visit, server: ConsoleServer, newcomer: str) -> None:
    console = visit()
    former = create(console, newcomer)
    console.confirm("I have them")
    console.go(*PRINCIPALS, newcomer)
    console.press("Reset credentials")
    console.page.locator("dialog[open]").get_by_role("button", name="Reset credentials").click()
    secret = told_secret(console)
    console.confirm("I have them")

    assert is_refused(server, *former) and not is_refused(server, *secret)


def test_own_credentials_that_are_reset_are_seen_before_the_session_ends(visit: Visit, server: ConsoleServer) -> None:
    console = visit("chief")
    console.go(*PRINCIPALS, "chief")
    console.press("Reset credentials")
    console.page.locator("dialog[open]").get_by_role("button", name="Reset credentials").click()
    server.lake.credentials["chief"] = told_secret(console)
    console.confirm("I have them")
    console.see("no longer accepts your token")
    console.log_in("chief")

    assert console.page.inner_text(".who") == "chief"


def test_secret_is_shown_to_who_has_closed_the_question(visit: Visit, newcomer: str) -> None:
    console = visit()
    late = console.hold("**/principals", method="POST")
    console.go(*PRINCIPALS)
    console.press("New principal")
    console.page.get_by_label("Name").fill(newcomer)
    with console.page.expect_request(lambda request: request.method == "POST"):
        console.page.locator("dialog[open]").get_by_role("button", name="Create").click()
    console.page.keyboard.press("Escape")
    console.page.wait_for_selector("dialog", state="detached")
    late[0].continue_()

    assert told_secret(console)[0].startswith(f"{REALM}.")


def test_secret_that_nobody_can_see_any_more_is_told_of(visit: Visit, newcomer: str) -> None:
    console = visit()
    create(console, newcomer)
    console.confirm("I have them")
    late = console.hold("**/rotate", method="POST")
    console.go(*PRINCIPALS, newcomer)
    console.press("Rotate credentials")
    with console.page.expect_request("**/rotate"):
        console.page.locator("dialog[open]").get_by_role("button", name="Rotate credentials").click()
    console.page.keyboard.press("Escape")
    console.go("realms", REALM, "tasks")
    late[0].continue_()

    console.see(f"Credentials of {newcomer} were made, and could not be shown")


def test_failure_is_told_to_who_has_closed_the_question(visit: Visit, server: ConsoleServer) -> None:
    console = visit()
    late = console.hold("**/disable", method="POST")
    console.go(*PRINCIPALS, "root")
    console.press("Disable")
    with console.page.expect_request("**/disable"):
        console.page.locator("dialog[open]").get_by_role("button", name="Disable").click()
    console.page.keyboard.press("Escape")
    late[0].fulfill(status=409, body='{"error": {"message": "root is needed", "type": "X", "code": 409}}')
    console.see("Disable: root: root is needed")

    assert read_principal(server.lake.registry, REALM, "root").disabled is None


def test_role_is_given_and_taken(visit: Visit, server: ConsoleServer, newcomer: str) -> None:
    console = visit()
    create(console, newcomer)
    console.confirm("I have them")
    console.go(*PRINCIPALS, newcomer)
    console.see("No role: it may do nothing.")
    console.press("Give a role")
    console.page.get_by_role("textbox", name="Role").fill("analysts")
    console.confirm("Give it")
    console.page.get_by_role("link", name="analysts").wait_for()
    console.press("Take the role analysts away")
    console.confirm("Take it")
    console.see("No role: it may do nothing.")
