"""A process that serves the tests' own routes: ``python thing_process.py DRAIN_SECONDS``. Prints its URL when it is ready, and ``begun``
for each request that waits."""

from __future__ import annotations

import sys
import threading

from things import Things

from headwater import Settings, open_store
from headwater.clock import SystemClock
from headwater_server.call import ServedStore
from headwater_server.server_application import ServerApplication
from headwater_server.server_process import ListenAddress, serve_application


def main(drain_seconds: float) -> int:
    settings = Settings(server_drain_timeout_seconds=drain_seconds)
    with open_store("memory://") as store:
        things = Things()
        threading.Thread(target=tell_begun, args=(things,), daemon=True).start()
        application = ServerApplication(
            ServedStore(store), [things.table()], settings=settings, clock=SystemClock(), version="1"
        )
        listener = ListenAddress.parse("127.0.0.1:0").listen()
        return serve_application(application, listener, settings=settings, tell=lambda url: print(url, flush=True))  # noqa: T201


def tell_begun(things: Things) -> None:
    while things.begun.acquire():
        print("begun", flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
