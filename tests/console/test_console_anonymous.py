"""The console of a server that asks nobody who calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from console_browser import Console
from console_screens import IN_LAKE
from console_server import ConsoleServer
from shown_lake import LAKE, REALM

from headwater.catalogs import RefKind
from headwater.realms import find_principal

pytestmark = pytest.mark.long
Visit = Callable[..., Console]


@pytest.fixture(scope="module")
def server(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    started = ConsoleServer(tmp_path_factory.mktemp("console"), asks_who_calls=False)
    started.lake.begin()
    started.lake.catalogs.create_catalog(LAKE, base_location="s3://lake/")
    started.lake.begin("empty")
    started.start()
    yield started
    started.close()


def test_realms_are_chosen_without_logging_in(visit: Visit) -> None:
    console = visit("")
    console.go()
    console.see("whoever reaches it may do everything")
    assert console.page.locator("main tbody a").all_inner_texts() == [REALM, "empty"]
    console.page.get_by_role("link", name=REALM).click()
    console.page.get_by_role("link", name=LAKE).wait_for()

    assert console.page.get_by_role("button", name="Log out").count() == 0
    assert "Principals" in console.page.locator(".rooms a").all_inner_texts()


def test_new_realm_says_what_is_not_there_yet(visit: Visit) -> None:
    console, texts = visit(""), dict[str, str]()
    for room in ("catalogs", "tasks", "runs", "checks", "maintenance"):
        console.go("realms", "empty", room)
        texts[room] = console.text()

    assert "No catalog yet" in texts["catalogs"]
    assert "No task yet" in texts["tasks"] and "No task has run yet" in texts["runs"]
    assert "Nobody has checked this realm yet" in texts["checks"] and "Nothing is stopped" in texts["maintenance"]


def test_anybody_creates_branches_and_principals(visit: Visit, server: ConsoleServer) -> None:
    console = visit("")
    console.go(*IN_LAKE, "refs")
    console.press("New branch or tag")
    console.page.get_by_label("Name").fill("anyone")
    console.confirm("Create")
    console.page.get_by_role("link", name="anyone", exact=True).wait_for()
    console.go("realms", REALM, "principals")
    console.press("New principal")
    console.page.get_by_label("Name").fill("guest")
    console.page.locator("dialog[open]").get_by_role("button", name="Create").click()
    console.see("They are shown this once")

    assert "anyone" in {ref.name for ref in server.lake.catalogs.open_catalog(LAKE).refs.list_alive(RefKind.BRANCH)}
    assert find_principal(server.lake.registry, REALM, "guest") is not None


def test_session_of_a_server_that_asked_is_no_matter(visit: Visit) -> None:
    console = visit("")
    console.page.add_init_script(
        'sessionStorage.setItem("headwater.session", \'{"realm": "acme", "token": "old", "expires": null}\')'
    )
    console.go()
    console.see("whoever reaches it may do everything")

    assert console.page.locator("main tbody a").count() == 2
