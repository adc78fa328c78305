"""The files of the console: how the server hands them out, and that what others made is as they made it."""

from __future__ import annotations

import hashlib
import re

import pytest

from asgi_client import AsgiAnswer, AsgiClient
from headwater import Settings, open_store
from headwater.clock import SystemClock
from headwater_server.call import ServedStore
from headwater_server.console_files import CONSOLE_FOLDER, ConsoleFiles
from headwater_server.server_application import ServerApplication
from headwater_server.server_tables import server_tables

FILES = ConsoleFiles()
PLACE = f"/console/{FILES.digest}"
SCRIPTS = sorted(path for path in CONSOLE_FOLDER.rglob("*.js") if path.parent.name != "vendor")


@pytest.fixture(scope="module")
def client() -> AsgiClient:
    settings, store = Settings(), open_store("memory://")
    return AsgiClient(
        ServerApplication(ServedStore(store), server_tables(), settings=settings, clock=SystemClock(), version="1.2.3")
    )


def page(client: AsgiClient) -> AsgiAnswer:
    return client.request("GET", "/")


def test_page_may_run_nothing_but_its_own_scripts(client: AsgiClient) -> None:
    answer = page(client)

    assert answer.status == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'" in policy
    assert "frame-ancestors 'none'; base-uri 'none'" in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not re.search(rb"<script>|<style|\son\w+=|style=|https?://", answer.content)


def test_everything_that_the_page_names_is_there(client: AsgiClient) -> None:
    named = re.findall(r'(?:href|src)="([^"]+)"', page(client).content.decode())

    assert len(named) > 30 and all(name.startswith(PLACE[1:]) for name in named)
    assert {client.request("GET", f"/{name}").status for name in named} == {200}


def test_files_are_kept_for_as_long_as_their_address_holds(client: AsgiClient) -> None:
    now, before = client.request("GET", f"{PLACE}/main.js"), client.request("GET", "/console/0123456789abcdef/main.js")

    assert now.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert before.headers["cache-control"] == page(client).headers["cache-control"] == "no-cache"
    assert now.content == before.content


def test_page_that_is_known_is_not_sent_again(client: AsgiClient) -> None:
    answer = client.request("GET", "/", if_none_match=f'"other", W/{page(client).headers["etag"]}')

    assert (answer.status, answer.content) == (304, b"")
    assert client.request("GET", "/", if_none_match='"other"').status == 200


def test_head_sends_no_content(client: AsgiClient) -> None:
    answer = client.request("HEAD", f"{PLACE}/base.css")

    assert (answer.status, answer.content) == (200, b"") and int(answer.headers["content-length"]) > 1000


@pytest.mark.parametrize(
    "path",
    [
        f"{PLACE}/nothing.js",
        f"{PLACE}/../console_files.py",
        f"{PLACE}/..%2Fconsole_files.py",
        f"{PLACE}/%2e%2e/console_files.py",
        f"{PLACE}//etc/passwd",
        f"{PLACE}/vendor/README.md",
        f"{PLACE}/vendor%2Fsignals-core-1.14.5.js",
        f"{PLACE}/index.html",
        "/console/main.js",
        "/console/short/main.js",
        "/console",
        "/index.html",
    ],
)
def test_path_of_no_file_is_not_found(client: AsgiClient, path: str) -> None:
    assert client.request("GET", path).status == 404


def test_page_takes_no_change(client: AsgiClient) -> None:
    assert client.request("POST", "/", b"{}").status == 404


def test_vendored_files_are_as_they_were_published() -> None:
    folder = CONSOLE_FOLDER / "vendor"
    recorded = dict(line.split()[::-1] for line in (folder / "sha256sums.txt").read_text().splitlines())
    there = {path.name for path in folder.iterdir()} - {"README.md", "sha256sums.txt"}

    assert recorded == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in there}
    assert all(name in (folder / "README.md").read_text() for name in there)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(CONSOLE_FOLDER).as_posix())
def test_scripts_never_make_html_of_text(script: object) -> None:
    text = script.read_text(encoding="utf-8")  # type: ignore[attr-defined]  # a path

    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerously|\beval\(|new Function", text)
    assert len(text.splitlines()) < 500


def test_pages_import_others_work_in_one_place_alone() -> None:
    users = {path.relative_to(CONSOLE_FOLDER).as_posix() for path in SCRIPTS if "./vendor/" in path.read_text()}

    assert users == {"ui.js"}
