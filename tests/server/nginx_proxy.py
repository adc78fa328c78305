"""The chart's worked example of a proxy, an nginx with TLS and passwords, in front of a server of the tests."""

from __future__ import annotations

import base64
import os
import re
import shutil
import socket
import ssl
import subprocess
from http.client import HTTPSConnection
from pathlib import Path

import yaml

from certificates import trusting, write_certificate
from wire_server import SECONDS, WireAnswer, until

ROOT = Path(__file__).parents[2]
VALUES = ROOT / "charts/headwater/ci/server-values.yaml"
NGINX = next(filter(None, map(shutil.which, ("nginx", "/usr/sbin/nginx", str(ROOT / ".tools/nginx/usr/sbin/nginx")))), None)
LOGIN = {"Authorization": "Basic " + base64.b64encode(b"spark:swordfish").decode()}
BEHIND_LAKE = "map $request_uri $behind_lake { ~^/lake(?<rest>/.*)$ $rest; }\n"
STRIPPED = """
            location /lake/ {
              proxy_pass http://headwater$behind_lake;
              proxy_http_version 1.1;
              proxy_set_header Connection "";
              proxy_set_header Host $http_host;
            }
            location / {"""


class NginxProxy:
    """Listens on a port of its own, for as long as it is entered; ``/lake/…`` leads to the server without ``/lake``."""

    def __init__(self, folder: Path, server_port: int) -> None:
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        certificate, key = write_certificate(folder, "proxy")
        shutil.copy(certificate, folder / "tls.crt")
        shutil.copy(key, folder / "tls.key")
        (folder / "htpasswd").write_text("spark:{PLAIN}swordfish\n", encoding="utf-8")
        self._trusted: ssl.SSLContext = trusting(certificate)
        self._configuration = folder / "nginx.conf"
        self._configuration.write_text(self._changed(server_port), encoding="utf-8")

    def _changed(self, server_port: int) -> str:
        """The example with the places of this test."""
        text: str = yaml.safe_load(VALUES.read_text(encoding="utf-8"))["server"]["proxy"]["files"]["nginx.conf"]
        places = {
            "worker_processes 2": "worker_processes 1",
            "listen 8443 ssl": f"listen 127.0.0.1:{self.port} ssl",
            "server 127.0.0.1:8181": f"server 127.0.0.1:{server_port}",
            "/etc/headwater/tls": str(self._folder),
            "/etc/headwater/users": str(self._folder),
            " /tmp/": f" {self._folder}/",
            'map "" $certificates': BEHIND_LAKE + 'map "" $certificates',
            "location / {": STRIPPED.lstrip(),
        }
        assert all(place in text for place in places), "the example has other places now"
        return re.sub("|".join(map(re.escape, places)), lambda match: places[match[0]], text)

    def __enter__(self) -> NginxProxy:
        user = "user root;" if os.geteuid() == 0 else ""  # else its workers could not read the folder
        command = [str(NGINX), "-e", "stderr", "-c", self._configuration, "-p", self._folder, "-g", f"daemon off;{user}"]
        with (self._folder / "nginx.log").open("wb") as log:
            self._process = subprocess.Popen(command, stderr=log)
        until(self._is_listening)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(SECONDS)

    def connect(self) -> HTTPSConnection:
        return HTTPSConnection("localhost", self.port, timeout=SECONDS, context=self._trusted)

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> WireAnswer:
        """One request on a connection of its own, with the login; headers are named with underscores."""
        connection = self.connect()
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, LOGIN | named)
            response = connection.getresponse()
            return WireAnswer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        finally:
            connection.close()

    def _is_listening(self) -> bool:
        assert self._process.poll() is None, (self._folder / "nginx.log").read_text(encoding="utf-8")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
