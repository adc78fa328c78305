"""A PostgreSQL server of its own in a temporary folder, from the programs of the machine, on loopback."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

import psutil
import psycopg

from free_ports import free_port

_DEBIAN = Path("/usr/lib/postgresql")
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0
_GUARD = """
read _
if pid=$(cat "$0/pid" 2>/dev/null); then kill -KILL "$pid" $(cat "/proc/$pid/task/$pid/children" 2>/dev/null) 2>/dev/null; fi
rm -rf "$0"
"""
"""Waits for the end of this process, or of the server's use; then ends what still runs and removes its folder."""


class PostgresqlServer:
    """``with PostgresqlServer() as server:`` and open ``server.url("schema")``. Stays on one port from its first start to its end.

    folder        where its own folder is made, if the server's user can reach it; None: where temporary files go
    is_synced     whether it waits for the disk; without, it is quicker, and a kill of the server still loses nothing
    settings      further settings of the server, by name
    """

    host = "127.0.0.1"
    user = "headwater"
    password = "A pass:word/with@signs%and?more&"
    database = "postgres"

    def __init__(self, folder: Path | None = None, *, is_synced: bool = False, settings: dict[str, str] | None = None) -> None:
        self._programs = find_programs()
        self._user = _unprivileged_user()
        is_reached = folder is not None and (self._user is None or _is_open_to_all(folder))
        self.folder = Path(tempfile.mkdtemp(prefix="headwater-pg-", dir=folder if is_reached else None))
        self._data = self.folder / "data"
        self._settings = _settings(is_synced) | (settings or {})
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._guard, self._guard_line = _start_guard(self.folder)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def url(self, schema: str | None = None, **options: str | int | None) -> str:
        """A store's URL. ``user``, ``password`` (None: none), ``host``, ``port`` and ``database`` replace what is the server's own;
        the others go in the query."""
        own = {"user": self.user, "password": self.password, "host": self.host, "port": self.port, "database": self.database}
        place = own | {name: options.pop(name) for name in own if name in options}
        secret = "" if place["password"] is None else ":" + quote(str(place["password"]), safe="")
        query = {} if schema is None else {"schema": schema}
        query |= {name: str(value) for name, value in options.items() if value is not None}
        text = f"postgresql://{place['user']}{secret}@{place['host']}:{place['port']}/{place['database']}"
        return f"{text}?{urlencode(query)}" if query else text

    def connect(self, **parameters: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the driver, as superuser, that commits each statement."""
        place = {"host": self.host, "port": self.port, "user": self.user, "password": self.password, "dbname": self.database}
        return psycopg.connect(**(place | parameters), autocommit=True, connect_timeout=10)

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run one statement as superuser on a connection of its own; returns its rows."""
        with self.connect() as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def drop(self, schema: str) -> None:
        """Forget a schema and all that is in it."""
        self.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')

    def start(self) -> None:
        """Start it, the first time in a new cluster; comes back when it takes connections."""
        if not self._data.exists():
            self._create_cluster()
        ports = [self.port] if self.port else [free_port() for _ in range(5)]
        for port in ports:
            if self._try_to_start(port):
                self.port = port
                return
        raise RuntimeError(f"PostgreSQL does not start:\n{self.log()}")

    def stop(self) -> None:
        """Shut it down as an administrator would; connections are ended. Does nothing when it is not running."""
        if self._process is None:
            return
        self.resume()
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._forget_process()

    def kill(self) -> None:
        """End all its processes at once, as a power cut would."""
        if self._process is None:
            return
        # First: it would fork for a client that connects meanwhile, and nothing starts beside a child that was left out below.
        self._process.send_signal(signal.SIGSTOP)
        processes = self._processes()
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait(_STOP_SECONDS)
        psutil.wait_procs(processes, _STOP_SECONDS)
        self._forget_process()

    def restart(self) -> None:
        """Stop it, or what a kill left of it, and start it again on the same port with the same rows."""
        self.stop()
        self.start()

    def demote(self) -> None:
        """Start it again as a standby that follows nobody: it answers, is behind from now on, and takes no writes."""
        self.stop()
        (self._data / "standby.signal").touch()
        self.start()

    def promote(self) -> None:
        """Start it again as a primary."""
        self.stop()
        (self._data / "standby.signal").unlink(missing_ok=True)
        self.start()

    def pause(self) -> None:
        """Let all its processes stand still: connections stay open, and nothing answers."""
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()

    def resume(self) -> None:
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    def log(self) -> str:
        """What the server said so far."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """Stop it and remove its folder; the end of this process does so too."""
        self.stop()
        if self._guard_line >= 0:
            os.close(self._guard_line)
            self._guard_line = -1
            os.waitpid(self._guard, 0)

    def __enter__(self) -> PostgresqlServer:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _create_cluster(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password + "\n")
        if self._user is not None:
            for path in (self.folder, secret):
                shutil.chown(path, self._user.pw_uid, self._user.pw_gid)
        command = [self._programs / "initdb", "-D", self._data, "-U", self.user, f"--pwfile={secret}", "--no-sync"]
        command += ["--encoding=UTF8", "--auth-local=trust", "--auth-host=scram-sha-256", *self._locale()]
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment(), capture_output=True, text=True, check=False, **self._identity()
        )
        if done.returncode:
            raise RuntimeError(f"initdb failed:\n{done.stdout}{done.stderr}")

    def _locale(self) -> list[str]:
        """A language's order, not that of bytes, where the server can: whoever relies on bytes has to say so."""
        help_text = subprocess.run([self._programs / "initdb", "--help"], capture_output=True, text=True, check=True).stdout
        return ["--locale=C", "--locale-provider=icu", "--icu-locale=en-US"] if "--icu-locale" in help_text else ["--locale=C"]

    def _try_to_start(self, port: int) -> bool:
        """Whether it runs; not if the port was taken meanwhile."""
        ready_file = self._data / "postmaster.pid"
        settings = self._settings | {"port": str(port), "unix_socket_directories": str(self.folder)}
        command = [str(self._programs / "postgres"), "-D", str(self._data)]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._identity(),
            )
        self._process = process
        (self.folder / "pid").write_text(str(process.pid))
        deadline = time.monotonic() + _START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if _says_ready(ready_file, process.pid):
                return True
            time.sleep(0.02)
        self.kill()
        return False

    def _forget_process(self) -> None:
        self._process = None
        (self.folder / "pid").unlink(missing_ok=True)

    def _processes(self) -> list[psutil.Process]:
        """The one that starts the others first: once it stands, no new ones come."""
        if self._process is None:
            return []
        try:
            first = psutil.Process(self._process.pid)
            return [first, *first.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _identity(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def find_programs() -> Path:
    """The folder with initdb and postgres: of the PATH, of pg_config, or the newest of Debian's.

    raises        RuntimeError that says what to install
    """
    on_path = shutil.which("initdb")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    if config := shutil.which("pg_config"):
        said = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False).stdout.strip()
        candidates += [Path(said)] if said else []
    versions = [folder for folder in _DEBIAN.glob("*/bin") if folder.parent.name.isdigit()]
    candidates += sorted(versions, key=lambda folder: int(folder.parent.name), reverse=True)
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise RuntimeError(
        "initdb and postgres were not found: install a PostgreSQL server (the Debian package is postgresql;"
        " scripts/setup.sh postgresql does it), or put its programs on the PATH"
    )


def _start_guard(folder: Path) -> tuple[int, int]:
    """Its process, and the end of a pipe that it holds on to: an open file, which goes with this process however that ends."""
    read, write = os.pipe()
    command = ["/bin/sh", "-c", _GUARD, str(folder)]
    actions = [(os.POSIX_SPAWN_DUP2, read, 0)]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions, setsid=True)
    os.close(read)
    return pid, write


def _unprivileged_user() -> pwd.struct_passwd | None:
    """Whom to run the server as: PostgreSQL refuses root. None: as ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("this is root, whom PostgreSQL refuses, and there is neither a user postgres nor nobody")


def _is_open_to_all(folder: Path) -> bool:
    """Whether others may pass all folders on the way; pytest's temporary ones are closed to them."""
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.absolute().parents))


def _settings(is_synced: bool) -> dict[str, str]:
    common = {"listen_addresses": PostgresqlServer.host, "max_connections": "200", "log_line_prefix": "%m [%p] "}
    return common if is_synced else common | {"fsync": "off", "full_page_writes": "off"}


def _says_ready(path: Path, pid: int) -> bool:
    """Whether the file that a server keeps while it runs is of this one, and says that it takes connections."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) >= 8 and lines[0].strip() == str(pid) and lines[7].strip() == "ready"
