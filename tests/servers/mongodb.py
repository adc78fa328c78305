"""A server that speaks MongoDB's wire protocol: a process of its own from secantusdb, or the one that HEADWATER_TEST_MONGODB names."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from free_ports import free_port
from servers.child_servers import command_of
from servers.process_pause import pause

__all__ = ["GIVEN", "MongodbServer"]

GIVEN = os.environ.get("HEADWATER_TEST_MONGODB") or None
"""The URL of a server to test with, without a database. It is never stopped, killed or paused."""

_RUN = "from secantus.cli import main; sys.exit(main())"
_ALL_OF_THE_OPLOG = ("--oplog-max-entries", "1000000000", "--oplog-retention-seconds", "1000000")
"""Once the server drops old entries, each insertion reads past all that were ever dropped: 330 tests of the contract took more
than twenty minutes on one server, and take one minute with these."""

_START_SECONDS = 30.0


class MongodbServer:
    """One server on one port of loopback, with its data in one folder; a restart keeps both.

    given         the URL of a server that runs already: then ``is_ours`` is False, and only ``url`` and ``drop`` work
    options       more of the server's command line, for example ``--auth``
    """

    def __init__(self, folder: Path, *options: str, given: str | None = GIVEN) -> None:
        self.is_ours = given is None
        self._folder = folder
        self._given = given or ""
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port() if self.is_ours else 0

    @property
    def is_running(self) -> bool:
        """Whether it was started, and neither stopped nor killed."""
        return self._process is not None

    def url(self, database: str, **options: str) -> str:
        """The URL of a database; it comes to be when something is written to it."""
        parts = urlsplit(self._given or f"mongodb://127.0.0.1:{self.port}")
        query = "&".join(text for text in (parts.query, urlencode(options)) if text)
        return urlunsplit((parts.scheme, parts.netloc, f"/{database}", query, ""))

    def drop(self, database: str) -> None:
        """Forget a database."""
        with self.client() as client:
            client.drop_database(database)

    def client(self, **options: object) -> MongoClient[dict[str, Any]]:
        """A client of its own for a test that looks behind our back; to be closed."""
        chosen: dict[str, Any] = {"timeoutMS": 10_000, **options}
        return MongoClient(self.url("test"), **chosen)

    def start(self) -> MongodbServer:
        """Start, and wait until it answers."""
        if self.is_ours:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._process = self._launch()
            self._wait()
        return self

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start it again on the same port and data, whether it runs, is stopped or was killed."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Let it hang: it takes connections, and answers nothing."""
        pause(self._running().pid)

    def resume(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server does not run, or it is not ours"
        return self._process

    def _launch(self) -> subprocess.Popen[bytes]:
        command = [*command_of(_RUN), "--host", "127.0.0.1", "--port", str(self.port)]
        command += [
            "--storage-path",
            str(self._folder / "data"),
            "--enable-test-commands",
            "--cache-size",
            "64M",
            *_ALL_OF_THE_OPLOG,
            *self._options,
        ]
        with (self._folder / "server.log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder)

    def _wait(self) -> None:
        until = time.monotonic() + _START_SECONDS
        while not self._answers():
            ended = self._running().poll() is not None
            if ended or time.monotonic() > until:
                self.kill()
                log = (self._folder / "server.log").read_text(errors="replace")
                raise RuntimeError(f"secantusd-py {'ended' if ended else 'does not answer'} on port {self.port}: {log[-2000:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                pass
            with self.client(serverSelectionTimeoutMS=1000, directConnection=True) as client:
                client.admin.command("hello")
        except (OSError, PyMongoError):
            return False
        return True

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)  # one that is paused ends, too
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
