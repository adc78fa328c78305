"""The console over a million tables: what it answers at once, and what it keeps in the page."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from console_browser import Console
from console_server import ConsoleServer
from shown_lake import BIG, REALM

pytestmark = pytest.mark.long
TABLES = 1_000_000
IN_BIG = ("realms", REALM, "catalogs", BIG)
MOST_NODES = 2500
MOST_HEAP_BYTES = 60 * 1024 * 1024


@pytest.fixture(scope="module")
def server(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    """Of its own: what looks through the realm of other tests would look through a million tables."""
    started = ConsoleServer(tmp_path_factory.mktemp("console"), asks_who_calls=False)
    started.lake.begin()
    gc.disable()  # of what is made here nothing is garbage
    try:
        began = time.monotonic()
        started.lake.fill_big(TABLES)
        print(f"a million tables took {time.monotonic() - began:.1f} s")  # noqa: T201 - shown with a failure
    finally:
        gc.enable()
    started.start()
    yield started
    started.close()


@pytest.mark.rare(3)
def test_million_tables_can_be_searched_and_opened(visit: Callable[..., Console]) -> None:
    console = visit("")
    page = console.page
    console.go(*IN_BIG, "tree", "-", q="space_777.table_777123", match="prefix")
    page.wait_for_selector("[role=option]")
    assert page.locator("[role=option]").all_inner_texts() == ["space_777.table_777123"]

    console.go(*IN_BIG, "tree", "-", q="TABLE_0123")
    page.wait_for_selector("[role=option]:has-text('space_012.table_012300')")

    console.go(*IN_BIG)
    page.locator("[role=tree]").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("text=table_000000")
    page.wait_for_selector("text=table_000010")
    for _ in range(200):
        page.locator("[role=tree]").evaluate("(tree) => { tree.scrollTop = tree.scrollHeight; }")
        if page.get_by_text("space_999", exact=True).count():
            break
        page.wait_for_timeout(30)
    page.get_by_text("space_999", exact=True).wait_for()

    assert page.evaluate("document.querySelectorAll('*').length") < MOST_NODES
    page.evaluate("window.gc()")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    measured = {each["name"]: each["value"] for each in devtools.send("Performance.getMetrics")["metrics"]}
    assert 0 < measured["JSHeapUsedSize"] < MOST_HEAP_BYTES
