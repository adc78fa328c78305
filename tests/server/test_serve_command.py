"""`headwater serve`: what it refuses before it opens anything, and that a client gets an answer."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cli import main
from wire_server import SECONDS, WireConnection, request

URL_LINE = "serving http://127.0.0.1:"


def exit_code(*words: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return ended.value.code


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/store.db"
    assert exit_code("--store", url, "realm", "create", "acme", "--credentials", str(tmp_path / "root.json")) == 0
    assert exit_code("--store", url, "catalog", "create", "acme/lake", "--base-location", f"file://{tmp_path}/lake") == 0
    return url


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--listen", "0.0.0.0:8181"], 5), (["--listen", "here"], 2), (["--listen", "127.0.0.1:0", "--realm", "nobody"], 3)],
)
def test_command_refuses_what_it_cannot_serve(store_url: str, words: list[str], code: int) -> None:
    assert exit_code("--store", store_url, "serve", *words) == code


def test_command_says_what_a_newcomer_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    assert exit_code("--store", url, "store", "create") == 0
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert exit_code("--store", url, "serve", "--listen", f"127.0.0.1:{other.getsockname()[1]}") == 4

    told = capsys.readouterr().err
    assert "has no realm yet: make one with `headwater realm create`" in told
    assert "another process does; end it, or name another port" in told


def test_setting_that_is_no_address_is_usage(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_SERVER_LISTEN", "here")

    assert exit_code("--store", store_url, "serve") == 2


@pytest.mark.parametrize("content", [None, "{", '{"storages": [{"location": "s3://lake", "endpiont": ""}]}'])
def test_wrong_storage_file_is_refused(
    tmp_path: Path, content: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "storage.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    monkeypatch.setenv("HEADWATER_STORAGE_FILE", str(file))

    assert exit_code("--store", f"sqlite:///{tmp_path}/none.db", "serve", "--listen", "127.0.0.1:0") == 5
    assert f"options of storages: {file}" in capsys.readouterr().err


def test_command_needs_a_store(tmp_path: Path) -> None:
    assert exit_code("--store", f"sqlite:///{tmp_path}/none.db", "serve", "--listen", "127.0.0.1:0") == 3


@pytest.mark.long
def test_command_serves_until_it_is_told_to_end(store_url: str) -> None:
    command = [sys.executable, "-m", "headwater", "--store", store_url, "serve", "--listen", "127.0.0.1:0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(URL_LINE) and line.endswith("/iceberg\n")
            port = int(line.removeprefix(URL_LINE).partition("/")[0])
            with WireConnection(port) as connection:
                config = connection.send(request("GET", "/iceberg/v1/config?warehouse=acme%2Flake")).answer()
                assert (config.status, set(config.data) >= {"defaults", "overrides", "endpoints"}) == (200, True)
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()
