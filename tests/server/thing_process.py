"""A process that serves the tests' own routes: ``python thing_process.py DRAIN_SECONDS``. Prints its URL when it is ready."""

from __future__ import annotations

import sys

from things import Things

from headwater import Settings, open_store
from headwater.clock import SystemClock
from headwater_server.call import ServedStore
from headwater_server.server_application import ServerApplication
from headwater_server.server_process import ListenAddress, serve_application


def main(drain_seconds: float) -> int:
    settings = Settings(server_drain_timeout_seconds=drain_seconds)
    with open_store("memory://") as store:
        application = ServerApplication(
            ServedStore(store), [Things().table()], settings=settings, clock=SystemClock(), version="1"
        )
        listener = ListenAddress.parse("127.0.0.1:0").listen()
        return serve_application(application, listener, settings=settings, tell=lambda url: print(url, flush=True))  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
