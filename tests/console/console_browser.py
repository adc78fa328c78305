"""Chromium over a console: what pages complain about, and how to be on a screen of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
from console_server import ConsoleServer

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
DESKTOP, PHONE = (1280, 860), (360, 740)
WAIT_MS = 15_000
_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""
# A new address is told of in a task; what it changes is drawn before the next frame, and the questions of its screen are asked after that
_DRAWN = """
async () => {
  for (let round = 0; round < 3; round += 1) {
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  }
}
"""
_SHOWS = "(texts) => texts.every((text) => document.querySelector('main').innerText.includes(text))"


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without windows. Skips where none can be had."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: scripts/setup.sh browser does it"
    )
    if not CHROMIUM:
        pytest.skip("chromium is not installed: scripts/setup.sh browser does it")
    with playwright.sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--js-flags=--expose-gc"]
        browser = running.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Console:
    """One tab on a console.

    complaints    errors of scripts and of the browser's console, beside those of requests that were answered with an error
    """

    page: Any
    server: ConsoleServer
    complaints: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.set_default_timeout(WAIT_MS)
        self.page.add_init_script(_VIOLATIONS)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._hear)

    def go(self, *segments: str, **query: str) -> None:
        """Be on a screen, and wait until it has loaded."""
        path = "/".join(quote(segment, safe="") for segment in segments)
        asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
        self.page.goto(f"{self.server.url}/#/{path}{'?' if asked else ''}{asked}")
        self.settle()

    def settle(self) -> None:
        """Wait until what was asked for is drawn, there is a heading and nothing spins."""
        self.page.evaluate(_DRAWN)
        self.page.wait_for_selector("h1")
        self.page.wait_for_selector(".waiting, main.beginning", state="detached")

    def log_in(self, name: str) -> None:
        client_id, secret = self.server.lake.credentials[name]
        self.page.goto(f"{self.server.url}/")
        self.page.get_by_label("Client ID").fill(client_id)
        self.page.get_by_label("Client secret").fill(secret)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_selector(".rooms", state="attached")

    def text(self) -> str:
        shown: str = self.page.inner_text("main")
        return shown

    def lacks(self, texts: Collection[str]) -> list[str]:
        """Which of some texts a screen does not show, however long it is given."""
        missing = [text for text in texts if text not in self.text()]
        if missing:
            with suppress(Exception):
                self.page.wait_for_function(_SHOWS, arg=missing)
        return [text for text in missing if text not in self.text()]

    def heading(self) -> str:
        shown: str = self.page.inner_text("h1")
        return shown

    def faults(self) -> list[str]:
        """What no screen may do: break the policy of the page, or raise."""
        violations: list[str] = self.page.evaluate("window.violations ?? []")
        return [*violations, *self.complaints]

    def is_wider_than_window(self) -> bool:
        wide: bool = self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        return wide

    def _hear(self, message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)


@contextmanager
def open_console(browser: Any, server: ConsoleServer, *, size: tuple[int, int] = DESKTOP, **options: Any) -> Iterator[Console]:
    """A tab of its own, with nothing kept from others. Fails where a page of it broke its policy or raised."""
    named: Mapping[str, Any] = {"viewport": {"width": size[0], "height": size[1]}, **options}
    context = browser.new_context(**named)
    console = Console(context.new_page(), server)
    console.watch()
    try:
        yield console
        assert console.faults() == []
    finally:
        context.close()
