"""PgBouncer before a PostgreSQL server of the tests, on loopback."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from free_ports import free_port
from servers.postgresql import PostgresqlServer

_START_SECONDS = 30.0
_TOOLS = Path(__file__).parents[2] / ".tools" / "pgbouncer"


def find_pgbouncer() -> tuple[str, dict[str, str]] | None:
    """The program and what it needs in its environment: of the machine, or as scripts/setup.sh unpacked it; None where there is none."""
    if found := shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer"):
        return found, {}
    unpacked = _TOOLS / "usr/sbin/pgbouncer"
    if not unpacked.exists():
        return None
    return str(unpacked), {"LD_LIBRARY_PATH": ":".join(map(str, (_TOOLS / "usr/lib").glob("*-linux-gnu*")))}


class PgBouncer:
    """``with PgBouncer(server, "transaction") as pooler:`` and open ``server.url(schema, port=pooler.port)``.

    settings      further ones of PgBouncer, by name
    """

    def __init__(self, server: PostgresqlServer, mode: str, **settings: str | int) -> None:
        found = find_pgbouncer()
        assert found is not None, "PgBouncer is missing"
        self._program, self._environment = found
        self._folder = Path()
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        database = f"host={server.host} port={server.port} user={server.user} password='{server.password}'"
        own = {
            "listen_addr": server.host,
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": mode,
            "ignore_startup_parameters": "options",
        }
        lines = [f"{name} = {value}" for name, value in (own | settings).items()]
        self._text = "\n".join(["[databases]", f"* = {database}", "[pgbouncer]", *lines, ""])

    def __enter__(self) -> PgBouncer:
        self._folder = Path(tempfile.mkdtemp(prefix="headwater-pgbouncer-"))
        configuration = self._folder / "pgbouncer.ini"
        configuration.write_text(self._text)
        identity = {}
        if os.geteuid() == 0:  # which it refuses to run as
            identity = {"user": "nobody", "extra_groups": []}
            for path in (self._folder, configuration):
                shutil.chown(path, "nobody")
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._program, str(configuration)],
                env=os.environ | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                **identity,  # type: ignore[arg-type]
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return self
            time.sleep(0.02)
        text = (self._folder / "log").read_text(errors="replace")
        self.__exit__(None, None, None)
        raise RuntimeError(f"PgBouncer does not start:\n{text}")

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
