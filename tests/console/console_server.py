"""A server of a console in a thread of this process, which can be stopped and started again at the same port."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from shown_lake import ShownLake

from headwater import Settings, open_store
from headwater.clock import SystemClock
from headwater_server.call import ServedStore
from headwater_server.management.caller_resources import TOKEN_ENDPOINT
from headwater_server.server_application import ServerApplication
from headwater_server.server_process import DrainedServer, ListenAddress, uvicorn_config
from headwater_server.server_tables import server_tables

SECONDS = 20


class ConsoleServer:
    """
    asks_who_calls    callers need a token
    issuers           the file of those whose tokens are taken, beside the server's own
    """

    def __init__(self, folder: Path, *, asks_who_calls: bool = True, issuers: str = "") -> None:
        keys = folder / "keys"
        keys.mkdir(parents=True)
        (keys / "key").write_text("k" * 48, encoding="ascii")
        proof = {"server_signing_keys": str(keys), "server_issuers": issuers} if asks_who_calls else {}
        self.settings = Settings(server_drain_timeout_seconds=0.1, server_threads=8, **proof)
        self.store = open_store("memory://", settings=self.settings)
        self.lake = ShownLake(self.store, folder / "warehouse")
        self.port = 0
        self._tokens: dict[str, str] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def token_of(self, name: str) -> str:
        """The last token of a principal."""
        return self._tokens.get(name) or self.new_token_of(name)

    def new_token_of(self, name: str) -> str:
        """A token of another log-in of a principal: logging out ends it."""
        self._tokens[name] = self.ask_for_token(*self.lake.credentials[name])
        return self._tokens[name]

    def ask_for_token(self, client_id: str, secret: str) -> str:
        """Exchange credentials as any client does; raises HTTPError where they are refused."""
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
        with urlopen(f"{self.url}{TOKEN_ENDPOINT}", urlencode(form).encode(), timeout=SECONDS) as answer:
            token: str = json.load(answer)["access_token"]
        return token

    def start(self) -> None:
        self._application = ServerApplication(
            ServedStore(self.store), server_tables(), settings=self.settings, clock=SystemClock(), version="1.2.3"
        )
        self._listener = ListenAddress("127.0.0.1", self.port).listen()
        self.port = self._listener.getsockname()[1]
        app: Any = self._application
        self._server = DrainedServer(uvicorn_config(app, self.settings, None), self._application.drain)
        ready = threading.Event()
        self._server.on_ready = ready.set
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True)
        self._thread.start()
        assert ready.wait(SECONDS), "the server does not start"

    def stop(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the server does not end"
        self._listener.close()
        self._application.close()

    def close(self) -> None:
        with suppress(AssertionError, AttributeError):
            if self._thread.is_alive():
                self.stop()
        self.store.close()
