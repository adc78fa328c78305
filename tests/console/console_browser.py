"""Chromium over a console: what pages complain about, and how to be on a screen of it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
from console_server import ConsoleServer
from shown_lake import REALM

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
# once for each tab: whoever logs out stays so
_LOGGED_IN = """
if (!window.name && location.protocol !== "about:") {
  window.name = "logged in";
  sessionStorage.setItem("headwater.session", %s);
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

    def be(self, name: str) -> None:
        """Have logged in as somebody, before the first screen."""
        session = json.dumps({"realm": REALM, "token": self.server.new_token_of(name), "expires": None})
        self.page.add_init_script(_LOGGED_IN % json.dumps(session))

    def log_in(self, name: str) -> None:
        """Log in by the form, which is on every screen for whoever is not."""
        client_id, secret = self.server.lake.credentials[name]
        if not self.page.url.startswith(self.server.url):
            self.page.goto(f"{self.server.url}/")
        self.page.get_by_label("Client ID").fill(client_id)
        self.page.get_by_label("Client secret").fill(secret)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_selector(".rooms", state="attached")

    def confirm(self, verb: str) -> None:
        """Do what a dialog asks about, and wait until it has closed."""
        self.page.locator("dialog[open]").get_by_role("button", name=verb, exact=True).click()
        self.page.wait_for_selector("dialog", state="detached")

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def see(self, text: str) -> None:
        """Wait until a text is there."""
        self.page.get_by_text(text).first.wait_for()

    def hold(self, url: str, *, method: str = "GET") -> list[Any]:
        """Requests that a test sends on, or answers, once it likes to."""
        held: list[Any] = []

        def take(route: Any) -> None:
            if route.request.method == method:
                held.append(route)
            else:
                route.fallback()

        self.page.route(url, take)
        return held

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

    def resize(self, size: tuple[int, int]) -> None:
        self.page.set_viewport_size({"width": size[0], "height": size[1]})

    def is_wider_than_window(self) -> bool:
        wide: bool = self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        return wide

    def _hear(self, message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)


@contextmanager
def open_console(
    browser: Any, server: ConsoleServer, *, profile: Any = None, size: tuple[int, int] = DESKTOP, **options: Any
) -> Iterator[Console]:
    """A tab that knows nothing of others. Fails where a page of it broke its policy or raised.

    profile       a context that it may share, where no options ask for one of its own
    """
    with ExitStack() as opened:
        context = profile if profile is not None and not options else opened.enter_context(browser.new_context(**options))
        console = Console(opened.enter_context(context.new_page()), server)
        console.resize(size)
        console.watch()
        yield console
        assert console.faults() == [], console.faults()
        console.page.evaluate("localStorage.clear()")
