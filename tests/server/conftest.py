"""An application over a store in memory, with routes of the tests' own, and a client that calls it in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from things import Things

from asgi_client import AsgiClient
from headwater import Settings, open_store
from headwater.clock import SystemClock
from headwater_server.call import ServedStore
from headwater_server.server_application import ServerApplication
from headwater_server.tls import CertificateFiles
from wire_server import WireServer


@pytest.fixture
def things() -> Iterator[Things]:
    things = Things()
    yield things
    things.may_end.set()


@pytest.fixture
def make_application(things: Things) -> Iterator[Callable[..., ServerApplication]]:
    """Makes an application; settings are named without ``server_``."""
    made: list[ServerApplication] = []
    with open_store("memory://") as store:

        def make(**settings: Any) -> ServerApplication:
            named = Settings(**{f"server_{name}": value for name, value in settings.items()})
            assert named.faults() == []
            application = ServerApplication(
                ServedStore(store), [things.table()], settings=named, clock=SystemClock(), version="1.2.3"
            )
            made.append(application)
            return application

        yield make
        things.may_end.set()
        for application in made:
            application.close()


@pytest.fixture
def application(make_application: Callable[..., ServerApplication]) -> ServerApplication:
    return make_application()


@pytest.fixture
def client(application: ServerApplication) -> AsgiClient:
    return AsgiClient(application)


@pytest.fixture
def serve(make_application: Callable[..., ServerApplication]) -> Iterator[Callable[..., WireServer]]:
    """Starts a server; settings are named without ``server_``."""
    with ExitStack() as servers:

        def start(certificate: CertificateFiles | None = None, **settings: Any) -> WireServer:
            named = Settings(**{f"server_{name}": value for name, value in settings.items()})
            return servers.enter_context(WireServer(make_application(**settings), named, certificate))

        yield start
