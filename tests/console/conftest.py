"""A browser and a server of a furnished realm for the tests of a module: where a browser is open, no event loop of a test can run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, closing
from typing import Any

import pytest
from console_browser import Console, chromium, open_console
from console_server import ConsoleServer
from shown_lake import REALM
from structlog.testing import capture_logs

from loopback_issuer import LoopbackIssuer


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def issuer() -> Iterator[LoopbackIssuer]:
    with closing(LoopbackIssuer()) as made:
        yield made


@pytest.fixture(scope="module")
def server(browser: Any, issuer: LoopbackIssuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    """It asks who calls, and takes tokens of the issuer, too."""
    folder = tmp_path_factory.mktemp("console")
    entry = {"issuer": issuer.url, "realms": [REALM], "audiences": ["lake"], "roles-claim": "groups"}
    (folder / "issuers.json").write_text(json.dumps({"issuers": [entry]}))
    started = ConsoleServer(folder, issuers=str(folder / "issuers.json"))
    started.lake.furnish()
    started.start()
    yield started
    started.close()


@pytest.fixture
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """What the server logs meanwhile."""
    with capture_logs() as captured:
        yield captured


@pytest.fixture(scope="module")
def profile(browser: Any) -> Iterator[Any]:
    """What tabs share as those of one user's browser do: above all the scripts that they have loaded."""
    with browser.new_context(reduced_motion="reduce") as context:
        yield context


@pytest.fixture
def visit(browser: Any, profile: Any, server: ConsoleServer, logs: object) -> Iterator[Callable[..., Console]]:
    """Opens a tab; as somebody who has logged in, where a name is given."""
    with ExitStack() as tabs:

        def act(name: str = "root", **options: Any) -> Console:
            console = tabs.enter_context(open_console(browser, server, profile=profile, **options))
            if name:
                console.be(name)
            return console

        yield act
