"""A browser and a server of a furnished realm for the tests of a module: where a browser is open, no event loop of a test can run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from console_browser import Console, chromium, open_console
from console_server import ConsoleServer


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def server(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    """It asks who calls."""
    started = ConsoleServer(tmp_path_factory.mktemp("console"))
    started.lake.furnish()
    started.start()
    yield started
    started.close()


@pytest.fixture
def visit(browser: Any, server: ConsoleServer) -> Iterator[Callable[..., Console]]:
    """Opens a tab; as somebody who has logged in, where a name is given."""
    with ExitStack() as tabs:

        def act(name: str = "root", **options: Any) -> Console:
            console = tabs.enter_context(open_console(browser, server, **options))
            if name:
                console.log_in(name)
            return console

        yield act
