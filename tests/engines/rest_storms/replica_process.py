"""One server of several on one store: ``python replica_process.py URL SHARE SEED``. Prints its URL when it is ready.

SHARE         how many of the requests meet a fault of the database
``die METHOD AT before|after`` on its input lets it kill itself, as kill -9 does, at the AT-th call from then, before or after the effect
"""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import structlog

from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.clock import SystemClock
from headwater.errors import UnknownOutcomeError
from headwater.store import open_backend, parse_url
from headwater_server.call import ServedStore
from headwater_server.iceberg_rest import iceberg_table
from headwater_server.server_application import ServerApplication
from headwater_server.server_process import ListenAddress, serve_application

KINDS: tuple[dict[str, Any], ...] = (
    {"before": False},
    {"fault": UnknownOutcomeError("injected: the request was lost")},
    {"before": True},
)
METHODS = ("write_and_swap", "write_and_swap", "write_and_swap", "*", "read_references")


class ShakyCalls(FaultyBackend):
    """A backend that can also end its process."""

    def die(self, method: str, at: int, *, before: bool) -> None:
        def act(name: str, call: Callable[[], Any]) -> Any:
            if not before:
                call()
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()

        self._plan(method, at, 1, act)


def main(url: str, share: float, seed: str) -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    settings = Settings(commit_timeout_seconds=5, server_threads=8, server_drain_timeout_seconds=5)
    calls, chance = ShakyCalls(open_backend(parse_url(url)), is_atomic=True), random.Random(seed)
    with Store(calls, url=url, settings=settings, clock=SystemClock()) as store:  # type: ignore[arg-type]  # faulty is any backend
        table = iceberg_table()
        for route in table.routes:
            object.__setattr__(route, "handler", _disturbed(route.handler, calls, chance, share))
        application = ServerApplication(ServedStore(store), [table], settings=settings, clock=SystemClock(), version="1")
        threading.Thread(target=_listen, args=(calls,), daemon=True).start()
        listener = ListenAddress.parse("127.0.0.1:0").listen()
        return serve_application(application, listener, settings=settings, tell=lambda url: print(url, flush=True))  # noqa: T201


def _disturbed(handler: Callable[[Any], Any], calls: ShakyCalls, chance: random.Random, share: float) -> Callable[[Any], Any]:
    def handle(call: Any) -> Any:
        if chance.random() < share:
            calls.fail(chance.choice(METHODS), at=chance.randint(1, 3), **chance.choice(KINDS))
        calls.calls.clear()
        return handler(call)

    return handle


def _listen(calls: ShakyCalls) -> None:
    for line in sys.stdin:
        _, method, at, moment = line.split()
        calls.die(method, int(at), before=moment == "before")
        print("armed", flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), sys.argv[3]))
