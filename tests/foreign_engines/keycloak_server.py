"""Keycloak as a process of its own, with the realm ``acme``: a client with a secret, whose tokens are for ``headwater``."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from engine_tools import CLIENT_ID, CLIENT_SECRET, MINUTES, clean_environment, find_java, tool_folder

from free_ports import free_port

_OLDEST_JAVA = 17
_ADMIN = {"KC_BOOTSTRAP_ADMIN_USERNAME": "admin", "KC_BOOTSTRAP_ADMIN_PASSWORD": "admin"}
_SECONDS = 60
_PROVIDER = "/realms/{}/protocol/openid-connect/token"


def _audience(name: str) -> dict[str, Any]:
    """A mapper that puts an audience into the tokens of a client."""
    config = {"included.custom.audience": name, "access.token.claim": "true"}
    return {"name": name, "protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper", "config": config}


def _client(name: str, *audiences: str) -> dict[str, Any]:
    fields = {"clientId": name, "secret": CLIENT_SECRET, "serviceAccountsEnabled": True, "publicClient": False}
    return fields | {"protocolMappers": [_audience(each) for each in audiences]}


_REALM = {
    "realm": "acme",
    "enabled": True,
    "sslRequired": "none",
    "roles": {"realm": [{"name": "lake-admins"}]},
    "clients": [_client(CLIENT_ID, "headwater"), _client("stranger", "other")],
    "users": [
        {
            "username": f"service-account-{CLIENT_ID}",
            "enabled": True,
            "serviceAccountClientId": CLIENT_ID,
            "realmRoles": ["lake-admins"],
        }
    ],
}


@dataclass(frozen=True)
class Keycloak:
    url: str

    @property
    def issuer(self) -> str:
        return f"{self.url}/realms/acme"

    @property
    def token_url(self) -> str:
        return self.url + _PROVIDER.format("acme")

    def ask_token(self, client: str, **fields: str) -> requests.Response:
        login = {"grant_type": "client_credentials", "client_id": client, "client_secret": CLIENT_SECRET}
        return requests.post(self.token_url, login | fields, timeout=_SECONDS)


@contextmanager
def keycloak_server(folder: Path) -> Iterator[Keycloak]:
    """Start Keycloak in its mode for development, from a copy: its first start writes into its own folder."""
    tool, java, port = tool_folder("keycloak"), find_java(_OLDEST_JAVA), free_port()
    home = folder / "keycloak"
    shutil.copytree(tool, home)
    words = ["start-dev", "--http-host=127.0.0.1", f"--http-port={port}", "--http-management-port", str(free_port())]
    added = _ADMIN | {"JAVA_HOME": str(Path(java).resolve().parents[1]), "JAVA_OPTS_KC_HEAP": "-Xms64m -Xmx600m"}
    log = folder / "keycloak.log"
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [home / "bin" / "kc.sh", *words], env=clean_environment(**added), stdout=said, stderr=said, start_new_session=True
        ) as process,
    ):
        try:
            server = Keycloak(f"http://127.0.0.1:{port}")
            _await_start(server, process, log)
            _make_realm(server)
            yield server
        finally:
            os.killpg(process.pid, 9)  # the script, and the JVM that it started


def _await_start(server: Keycloak, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + MINUTES
    while True:
        assert process.poll() is None and time.monotonic() < until, log.read_text(encoding="utf-8")[-4000:]
        try:
            if requests.get(f"{server.url}/realms/master", timeout=5).status_code == 200:
                return
        except requests.RequestException:
            pass
        time.sleep(1)


def _make_realm(server: Keycloak) -> None:
    login = {"grant_type": "password", "client_id": "admin-cli", "username": "admin", "password": "admin"}
    token = requests.post(server.url + _PROVIDER.format("master"), login, timeout=_SECONDS).json()["access_token"]
    made = requests.post(
        f"{server.url}/admin/realms", json=_REALM, headers={"Authorization": f"Bearer {token}"}, timeout=_SECONDS
    )
    assert made.status_code == 201, made.text
