"""The console where things are slow, lost, busy or hostile."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from console_browser import PHONE, Console
from console_screens import IN_LAKE
from console_server import ConsoleServer
from shown_lake import EMOJI, LONG, ODD, ODD_NAMES, REALM, RIGHT_TO_LEFT, SCRIPT

pytestmark = pytest.mark.long
Visit = Callable[..., Console]
IN_ODD = ("realms", REALM, "catalogs", ODD)
BUSY = json.dumps({"error": {"message": "too much at once", "type": "TooManyRequestsException", "code": 429}})


def test_last_question_wins(visit: Visit) -> None:
    console, late = visit(), list[Any]()
    page = console.page
    console.go(*IN_LAKE)
    page.route("**/search?*", lambda route: late.append(route) if "q=orders" in route.request.url else route.continue_())
    field = page.locator("input[type=search]")
    with page.expect_request("**/search?q=orders*"):
        field.fill("orders")
    field.fill("staff")
    page.wait_for_selector("[role=option]:has-text('people.staff')")
    for route in late:
        route.continue_()
    console.settle()

    assert len(late) == 1
    assert page.locator("[role=option]").all_inner_texts() == ["people.staff"]


def test_lost_server_is_told_and_found_again(visit: Visit, server: ConsoleServer) -> None:
    console = visit()
    console.go(*IN_LAKE)
    server.stop()
    try:
        console.page.get_by_role("link", name="Branches and tags").click()
        console.page.wait_for_selector(".banner")
        assert "cannot be reached" in console.page.inner_text(".banner")
    finally:
        server.start()
    console.page.wait_for_selector(".banner", state="detached")
    console.page.wait_for_selector("text=hotfix")

    assert console.page.locator(".failure").count() == 0


def test_busy_server_is_asked_again(visit: Visit) -> None:
    console, asked = visit(), list[str]()

    def refuse_twice(route: Any) -> None:
        asked.append(route.request.url)
        if len(asked) <= 2:
            route.fulfill(status=429, headers={"Content-Type": "application/json"}, body=BUSY)
        else:
            route.continue_()

    console.page.route("**/entries?*", refuse_twice)
    console.go(*IN_LAKE)
    console.page.wait_for_selector("text=people")

    assert len(asked) == 3


@pytest.mark.parametrize("size", [(1280, 860), PHONE], ids=["desktop", "phone"])
def test_hostile_names_are_text(visit: Visit, size: tuple[int, int]) -> None:
    console = visit(size=size)
    console.go(*IN_ODD)
    names = console.page.locator("[role=treeitem] .name").all_inner_texts()
    wide = [console.is_wider_than_window()]
    for segments in ((*IN_ODD, "commits"), (*IN_ODD, "refs"), (*IN_ODD, "table", "-", LONG), (*IN_ODD, "table", "-", SCRIPT)):
        console.go(*segments)
        wide.append(console.is_wider_than_window())
        if segments[-1] in (LONG, SCRIPT):
            assert console.heading() == segments[-1]

    assert sorted(names) == sorted(ODD_NAMES)
    assert not any(wide)
    assert console.page.evaluate("window.hacked") is None


def test_hostile_names_are_found(visit: Visit) -> None:
    console = visit()
    for name in (EMOJI, RIGHT_TO_LEFT, "<script>"):
        console.go(*IN_ODD, "tree", "-", q=name)
        console.page.get_by_role("option").filter(has_text=name).first.wait_for()

        assert all(name in text for text in console.page.locator("[role=option]").all_inner_texts())
