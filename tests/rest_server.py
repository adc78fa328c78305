"""A server of Iceberg REST over loopback, in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.testing import capture_logs

from headwater import Settings, Store
from headwater.clock import SystemClock
from headwater_server.call import ServedStore
from headwater_server.drain import ServerDrain
from headwater_server.iceberg_rest import iceberg_table
from headwater_server.route_table import RouteTable
from headwater_server.server_application import ServerApplication
from headwater_server.server_process import DrainedServer, ListenAddress, uvicorn_config

__all__ = ["StoreHost", "host_stores", "serve_store"]


@contextmanager
def serve_store(store: Store, tables: Sequence[RouteTable] = ()) -> Iterator[str]:
    """Serve a store on a port of its own; gives the server's URL.

    tables        what is served; none: Iceberg REST
    """
    application = application_of(store, tables)
    with capture_logs():  # the access log would stand between the dots of the tests
        try:
            with _listening(application, store.settings, application.drain) as url:
                yield url
        finally:
            application.close()


class StoreHost:
    """One server for the stores of many tests: a store's URL ends in a segment of its own."""

    def __init__(self) -> None:
        self.url = ""
        self._numbers = count()
        self._applications: dict[str, ServerApplication] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, _, rest = scope["raw_path"].decode("ascii").removeprefix("/").partition("/")
        await self._applications[name]({**scope, "raw_path": f"/{rest}".encode()}, receive, send)

    @contextmanager
    def serve(self, store: Store) -> Iterator[str]:
        """Serve a store for as long as one test; gives its URL."""
        name, application = f"store-{next(self._numbers)}", application_of(store)
        self._applications[name] = application
        with capture_logs():
            try:
                yield f"{self.url}/{name}"
            finally:
                del self._applications[name]
                application.close()


@contextmanager
def host_stores() -> Iterator[StoreHost]:
    """Start a server without stores; they come and go."""
    host, settings = StoreHost(), Settings()
    drain = ServerDrain(SystemClock(), seconds=1, changes=lambda: 0)
    with _listening(host, settings, drain) as host.url:
        yield host


def application_of(store: Store, tables: Sequence[RouteTable] = ()) -> ServerApplication:
    return ServerApplication(
        ServedStore(store), tables or [iceberg_table()], settings=store.settings, clock=SystemClock(), version="1.2.3"
    )


@contextmanager
def _listening(application: ASGIApp, settings: Settings, drain: ServerDrain) -> Iterator[str]:
    listener, is_ready = ListenAddress("127.0.0.1", 0).listen(), threading.Event()
    app: Any = application
    server = DrainedServer(uvicorn_config(app, settings, None), drain)
    server.on_ready = is_ready.set
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        assert is_ready.wait(10)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
    assert not thread.is_alive()
