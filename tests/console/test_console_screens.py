"""Each screen of the console in a browser: what it shows, for whom it can be read, and how it is used without a mouse."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from console_browser import DESKTOP, PHONE, Console
from console_screens import IN_LAKE, TABLE, all_screens
from console_server import ConsoleServer
from shown_lake import LAKE, REALM

pytestmark = pytest.mark.long
Visit = Callable[..., Console]
SERIOUS = ("serious", "critical")
_RUN_AXE = """
([part, rules]) => axe.run(part, {resultTypes: ["violations"], iframes: false, preload: false, ...rules}).then((found) => found.violations)
"""
_CONTRAST = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}


@pytest.fixture(scope="module")
def axe() -> str:
    spec = find_spec("axe_playwright_python")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("axe is not installed: scripts/setup.sh browser does it")
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


def serious(page: Any, part: str = "html", **rules: Any) -> list[str]:
    found = page.evaluate(_RUN_AXE, [part, rules])
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found if each["impact"] in SERIOUS]


def test_every_screen_shows_real_data_to_everybody(visit: Visit, server: ConsoleServer, axe: str) -> None:
    """To whoever looks at it in the light or in the dark, on a desk or on a phone, or has it read out."""
    console, wrong = visit(), []
    page = console.page
    for name, screen in all_screens(server.lake).items():
        console.go(*screen.segments, **screen.query)
        wrong += [f"{name} lacks {shown!r}" for shown in console.lacks(screen.shows)]
        if not page.evaluate("Boolean(window.axe)"):  # all screens are one document
            page.evaluate(axe)
        wrong += [f"{name}: {each}" for each in serious(page)]
        page.emulate_media(color_scheme="dark")
        wrong += [f"{name}, dark: {each}" for each in serious(page, "html" if name == "catalogs" else "main", **_CONTRAST)]
        page.emulate_media(color_scheme="light")
        console.resize(PHONE)
        wrong += [f"{name} is wider than a phone"] if console.is_wider_than_window() else []
        console.resize(DESKTOP)

    assert wrong == []


def test_reader_sees_no_button_that_is_refused(visit: Visit, server: ConsoleServer) -> None:
    console, buttons = visit("ann"), set[str]()
    refused = {
        "merge",
        "principals",
        "principal",
        "roles",
        "role",
        "catalog roles",
        "grants",
        "policies",
        "unused files",
        "file explained",
    }
    for name, screen in all_screens(server.lake).items():
        if name == "access":
            continue
        console.go(*screen.segments, **screen.query)
        assert name in refused or "You do not have the privilege" not in console.text(), name
        buttons |= {text.strip() for text in console.page.locator("main button").all_inner_texts()}

    assert not [
        text
        for text in buttons
        if re.match(
            r"(Add|Change|New|Delete|Give|Move|Merge|Set|Stop|Remove|Resume|Revoke|Check|Collect|Cancel|Retry|Run)\b", text
        )
    ]
    assert console.page.locator(".rooms a").all_inner_texts() == [
        "Catalogs", "Tasks", "Runs", "Checks", "Maintenance", "Explain access",
    ]  # fmt: skip


def test_refusal_names_the_privilege_that_is_missing(visit: Visit) -> None:
    console = visit("ann")
    console.go("realms", REALM, "principals")

    assert "You do not have the privilege" in console.text()
    assert "SERVICE_MANAGE_ACCESS" in console.text()


def test_keyboard_leads_from_search_to_a_table(visit: Visit) -> None:
    console = visit()
    console.go(*IN_LAKE)
    keys = console.page.keyboard
    keys.press("/")
    keys.type("returns")
    console.page.wait_for_selector("text=1 found")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        keys.press(key)
    console.page.wait_for_selector("h1:has-text('sales.returns')")
    console.page.go_back()
    console.page.wait_for_selector("[role=option]")
    console.page.focus("input[type=search]")
    keys.press("Escape")
    console.page.wait_for_selector("[role=tree]")
    console.page.focus("[role=tree]")
    for key in ("ArrowDown", "ArrowRight"):
        keys.press(key)
    console.page.wait_for_selector("text=orders")

    assert console.page.locator("[role=treeitem][aria-expanded=true]").inner_text().startswith("sales")


def test_skip_link_is_the_first_stop(visit: Visit) -> None:
    console = visit()
    console.go(*IN_LAKE)
    console.page.reload()
    console.settle()
    console.page.keyboard.press("Tab")
    console.page.keyboard.press("Enter")

    assert console.page.evaluate("document.activeElement.id") == "main"


def test_merge_asks_what_is_dropped(visit: Visit, server: ConsoleServer) -> None:
    console, catalog = visit(), server.lake.catalogs.open_catalog(LAKE)
    catalog.create_branch("target", "main")
    console.go(*IN_LAKE, "merge", source="dev", into="target")
    page = console.page
    assert page.get_by_role("button", name="Merge…").is_disabled()
    page.get_by_role("group", name="What to do with sales.orders").get_by_role("button", name="Take dev").click()
    page.get_by_role("group", name="What to do with sales.returns").get_by_role("button", name="Keep target").click()
    page.get_by_role("button", name="Try with these choices").click()
    page.get_by_role("button", name="Merge…").click()
    asked = page.inner_text("dialog[open]")
    page.locator("dialog").get_by_role("button", name="Merge", exact=True).click()
    page.wait_for_selector("text=dev was merged into target")

    assert "What target has here is dropped, for what dev has:\nsales.orders" in re.sub(r"\s*\n\s*", "\n", asked)
    assert "What dev has here is dropped; target stays as it is:\nsales.returns" in re.sub(r"\s*\n\s*", "\n", asked)
    assert catalog.resolve("target") != catalog.resolve("main")


def test_escape_closes_a_dialog_and_gives_focus_back(visit: Visit) -> None:
    console = visit()
    console.go(*IN_LAKE, "refs")
    button = console.page.get_by_role("button", name="New branch or tag")
    button.focus()
    console.page.keyboard.press("Enter")
    console.page.wait_for_selector("dialog[open]")
    console.page.keyboard.press("Escape")
    console.page.wait_for_selector("dialog", state="detached")

    assert button.evaluate("(element) => element === document.activeElement")


def test_address_leads_back_to_the_same_place(visit: Visit) -> None:
    console = visit()
    console.go(*TABLE, tab="files")
    console.page.get_by_role("link", name="History", exact=True).click()
    console.page.wait_for_selector("text=create table sales.orders")
    console.page.go_back()
    console.page.wait_for_selector("text=Data files by size")
    console.page.reload()
    console.page.wait_for_selector("text=Data files by size")

    assert console.heading() == "sales.orders"


def test_theme_is_kept(visit: Visit) -> None:
    console = visit()
    console.go(*IN_LAKE)
    for _ in range(2):
        console.page.locator(".top-bar-end button").first.click()
    console.page.reload()
    console.settle()

    assert console.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert console.page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"
