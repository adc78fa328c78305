"""Forms and lists of the console while things go on around them: what is typed stays, and what was shown stays until there is more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from console_browser import Console
from console_screens import IN_LAKE, TABLE
from console_server import ConsoleServer
from shown_lake import LAKE, REALM

from headwater.catalogs import RefKind

pytestmark = pytest.mark.long
Visit = Callable[..., Console]
_LIMIT_OF_PAGES = 100
# what a browser does with a suggestion that is clicked: the text is there at once, and no key is pressed
_TAKE = """
(chosen) => {
  for (const [label, name] of chosen) {
    const field = [...document.querySelectorAll("main label")].find((each) => each.innerText.trim() === label).querySelector("input");
    field.value = name;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
"""


def test_name_that_begins_like_another_can_be_typed(visit: Visit, server: ConsoleServer) -> None:
    server.lake.catalogs.open_catalog(LAKE).create_branch("dev-2", "dev")
    console, places = visit(), list[str]()
    page = console.page
    page.on("framenavigated", lambda frame: places.append(frame.url))
    console.go(*IN_LAKE)
    field = page.get_by_label("Reference")
    field.click()
    page.keyboard.type("dev-2")
    page.keyboard.press("Enter")
    console.settle()

    assert page.url.endswith("/tree/dev-2")
    assert [place for place in places if place.endswith("/tree/dev")] == []


def test_suggestions_that_are_taken_are_gone_to(visit: Visit) -> None:
    console = visit()
    console.go(*IN_LAKE, "compare")
    console.page.wait_for_selector("main label:nth-of-type(2) option[value=hotfix]", state="attached")
    console.page.evaluate(_TAKE, [["Before", "dev"], ["After", "hotfix"]])
    console.see("sales.eu.vat")

    assert console.page.url.endswith("/compare?before=dev&after=hotfix")


def test_typed_text_outlives_what_is_loaded(visit: Visit) -> None:
    console = visit()
    late = console.hold("**/files/report*")
    console.page.goto(f"{console.server.url}/#/realms/{REALM}/catalogs/{LAKE}/files")
    field = console.page.get_by_label("Why is this file here?")
    with console.page.expect_request("**/files/report*"):
        field.fill("s3://bucket/half")
    late[0].continue_()
    console.see("Could be freed")

    assert field.input_value() == "s3://bucket/half"


def test_field_follows_the_address(visit: Visit) -> None:
    console = visit()
    console.go("realms", REALM, "access", principal="ann", privilege="TABLE_READ_DATA", catalog=LAKE)
    console.go("realms", REALM, "access", principal="root", privilege="TABLE_READ_DATA", catalog=LAKE)

    assert console.page.get_by_label("May", exact=True).input_value() == "root"


def test_page_that_failed_is_asked_for_once_more(visit: Visit) -> None:
    console, asked = visit(), list[str]()
    page = console.page

    def spoil_second(route: Any) -> None:
        asked.append(route.request.url)
        if len(asked) == 2:
            route.fulfill(status=500, body="{}")
        else:
            route.continue_(url=f"{route.request.url}{'&' if '?' in route.request.url else '?'}pageSize=1")

    page.route("**/snapshots*", spoil_second)
    console.go(*TABLE, tab="snapshots")
    rows = page.locator("table[aria-label=Snapshots] tbody tr")
    rows.first.wait_for()
    console.press("Show more")
    page.wait_for_selector(".failure")
    assert rows.count() == 1
    console.press("Try again")
    rows.nth(1).wait_for()

    assert page.locator(".failure").count() == 0


def test_search_that_found_nothing_so_far_can_go_on(visit: Visit) -> None:
    """No screen takes the pages that it had patience for as the end."""
    console, asked = visit(), list[str]()
    empty = '{"ref": "main", "commit": null, "entries": [], "nextPageToken": "on", "isComplete": false, "looked": 10, "total": 9000}'

    def answer(route: Any) -> None:
        asked.append(route.request.url)
        if len(asked) <= _LIMIT_OF_PAGES:
            route.fulfill(content_type="application/json", body=empty)
        else:
            route.continue_(url=route.request.url.replace("&pageToken=on", ""))

    console.page.route("**/search?*", answer)
    console.go(*IN_LAKE, "tree", "-", q="staff")
    console.press("Search on")
    console.page.wait_for_selector("[role=option]:has-text('people.staff')")

    assert "Nothing has such a name" not in console.text()


def test_list_stays_while_it_is_loaded_again(visit: Visit, server: ConsoleServer) -> None:
    console = visit()
    console.go(*IN_LAKE, "refs")
    console.press("New branch or tag")
    console.page.get_by_label("Name").fill("fresh")
    late = console.hold("**/references*")
    with console.page.expect_request("**/references*"):
        console.confirm("Create")
    assert console.page.get_by_role("link", name="hotfix").count() > 0
    late[0].continue_()
    console.page.get_by_role("link", name="fresh", exact=True).wait_for()

    assert "fresh" in {ref.name for ref in server.lake.catalogs.open_catalog(LAKE).refs.list_alive(RefKind.BRANCH)}


def test_names_are_not_checked_for_spelling(visit: Visit) -> None:
    """A browser may send what it checks to its maker."""
    console = visit()
    console.go("realms", REALM, "access")

    assert set(console.page.locator("main input").evaluate_all("(fields) => fields.map((each) => each.spellcheck)")) == {False}


def test_times_are_in_the_zone_of_who_looks(visit: Visit) -> None:
    zone = "America/St_Johns"
    console = visit(timezone_id=zone, locale="en-US")
    console.go(*IN_LAKE, "definition")
    shown = console.page.locator("dt:has-text('Created') + dd time")
    expected = shown.evaluate(
        "(time, timeZone) => new Date(time.dateTime).toLocaleString('en-US', {dateStyle: 'medium', timeStyle: 'medium', timeZone})",
        zone,
    )

    assert shown.inner_text() == expected


def test_age_of_a_time_counts_on(visit: Visit) -> None:
    console = visit(locale="en-US")
    page = console.page
    page.clock.install()
    console.go(*IN_LAKE, "refs")
    age = page.locator("table time").first
    age.wait_for()
    before = age.inner_text()
    page.clock.fast_forward(2 * 3600 * 1000)
    page.wait_for_function("([time, before]) => time.innerText !== before", arg=[age.element_handle(), before])

    assert "hr. ago" in age.inner_text()
