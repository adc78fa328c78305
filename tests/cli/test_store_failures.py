"""A store that cannot be opened: one line on standard error, the right exit code, no password and no traceback."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from backend_fixtures import postgresql_server
from headwater.cli import main
from servers.postgresql import PostgresqlServer
from tiers import long_but_for

pytestmark = pytest.mark.long

__all__ = ["postgresql_server"]

PASSWORD = "Geheim/wort@x"
CLOSED = "127.0.0.1:1"
SERVERS = ("postgresql", "mongodb")


def said(url: str, *command: str) -> tuple[int, str]:
    """Exit code and the one line of a command on that store."""
    result = CliRunner().invoke(main, ["--store", url, *(command or ("realm", "list"))], prog_name="headwater")
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert result.stdout == ""
    assert not any(secret in lines[0] for secret in (PASSWORD, quote(PASSWORD, safe=""), "Geheim", "Traceback"))
    return result.exit_code, lines[0]


def test_unknown_scheme_is_refused_with_those_that_there_are() -> None:
    code, line = said(f"oracle://me:{quote(PASSWORD, safe='')}@db/lake")

    assert code == 5
    assert "postgresql://" in line and "mongodb://" in line and "oracle://me:***@db/lake" in line


@pytest.mark.parametrize("name", ["memory", "sqlite", *SERVERS])
def test_unknown_option_is_refused_with_those_that_there_are(name: str, tmp_path: Path) -> None:
    place = {"memory": "", "sqlite": f"/{tmp_path}/store.db"}.get(name, f"me:{quote(PASSWORD, safe='')}@{CLOSED}/lake")
    code, line = said(f"{name}://{place}?frobnicate=Geheim")
    [kind] = [point.load() for point in entry_points(group="headwater.backends", name=name)]

    assert code == 5
    assert "'frobnicate'" in line and all(option.name in line for option in kind.options)


def test_text_that_is_no_url_is_refused_without_being_repeated() -> None:
    assert said(f"postgresql://me:{PASSWORD}@[db/lake")[0] == 5


@pytest.mark.parametrize(("scheme", "package"), [("postgresql", "psycopg"), ("mongodb", "pymongo")])
def test_missing_driver_is_refused_with_what_to_install(scheme: str, package: str) -> None:
    url = f"{scheme}://me:{quote(PASSWORD, safe='')}@{CLOSED}/lake"
    program = f"import sys; sys.modules[{package!r}] = None; from headwater.cli import main; main(['realm', 'list'])"
    done = ended(sys.executable, "-c", program, store=url)

    assert done.returncode == 5
    assert f"pip install 'headwater[{scheme}]'" in done.stderr


@pytest.mark.parametrize("name", SERVERS)
def test_host_that_is_not_there_is_unavailable(name: str) -> None:
    code, line = said(f"{name}://me:{quote(PASSWORD, safe='')}@{CLOSED}/lake?timeout=1s")

    assert code == 4
    assert CLOSED in line


@pytest.mark.parametrize("name", SERVERS)
def test_name_that_is_not_known_is_unavailable(name: str) -> None:
    code, line = said(f"{name}://me:{quote(PASSWORD, safe='')}@nowhere.invalid/lake?timeout=1s")

    assert code == 4
    assert "nowhere.invalid" in line


def test_wrong_password_is_refused(postgresql_server: PostgresqlServer) -> None:
    code, line = said(str(postgresql_server.url("wrong", password=PASSWORD)))

    assert code == 5
    assert "password" in line


def test_database_that_is_not_there_is_refused(postgresql_server: PostgresqlServer) -> None:
    code, line = said(str(postgresql_server.url("wrong", database="nowhere")))

    assert code == 5
    assert "nowhere" in line


def test_file_of_a_later_release_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    CliRunner().invoke(main, ["--store", f"sqlite:///{file}", "realm", "list"])
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    code, line = said(f"sqlite:///{file}")

    assert code == 5
    assert "99" in line


@pytest.mark.parametrize("command", [("worker", "--broker-folder", "broker"), ("up", ".", "--once")], ids=["worker", "up"])
@pytest.mark.parametrize("name", long_but_for({"postgresql"}, SERVERS))
def test_long_command_ends_in_one_line_without_a_store(name: str, command: tuple[str, ...], tmp_path: Path) -> None:
    url = f"{name}://me:{quote(PASSWORD, safe='')}@{CLOSED}/lake?timeout=1s"
    done = ended(sys.executable, "-m", "headwater", *command, store=url, folder=tmp_path)

    assert (done.returncode, CLOSED in done.stderr) == (4, True)


@pytest.mark.parametrize("name", long_but_for({"postgresql"}, SERVERS))
@pytest.mark.parametrize(("query", "code"), [("timeout=1s", 4), ("frobnicate=Geheim", 5)])
def test_operator_ends_with_one_line_without_a_store(name: str, query: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWATER_CONTEXT_FILE")  # it knows no contexts, and warns of their variables
    url = f"{name}://me:{quote(PASSWORD, safe='')}@{CLOSED}/lake?{query}"
    program = "from headwater_operator.main import main; main(['run'])"
    done = ended(sys.executable, "-c", program, store=url)

    assert (done.returncode, CLOSED in done.stderr) == (code, True)


def ended(*command: str, store: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command on that store, in a process of its own, that complained in one line and showed no secret."""
    environment = os.environ | {"HEADWATER_STORE": store}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "Geheim" not in done.stderr + done.stdout
    return done
