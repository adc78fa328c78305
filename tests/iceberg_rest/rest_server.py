"""A server of Iceberg REST over loopback, in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from structlog.testing import capture_logs

from headwater import Store
from headwater.clock import SystemClock
from headwater_server.call import ServedStore
from headwater_server.iceberg_rest import iceberg_table
from headwater_server.server_application import ServerApplication
from headwater_server.server_process import DrainedServer, ListenAddress, uvicorn_config


@contextmanager
def serve_store(store: Store) -> Iterator[str]:
    """Serve a store on a port of its own; gives the server's URL."""
    settings, is_ready = store.settings, threading.Event()
    application = ServerApplication(
        ServedStore(store), [iceberg_table()], settings=settings, clock=SystemClock(), version="1.2.3"
    )
    listener = ListenAddress("127.0.0.1", 0).listen()
    server = DrainedServer(uvicorn_config(application, settings, None), application.drain)
    server.on_ready = is_ready.set
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    with capture_logs():  # the access log would stand between the dots of the tests
        thread.start()
        try:
            assert is_ready.wait(10)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
            application.close()
            listener.close()
    assert not thread.is_alive()
