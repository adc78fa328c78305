"""The port for probes alone: others than this machine may reach it, and learn nothing there but whether the server is well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from asgi_client import AsgiClient
from free_ports import free_port
from headwater.cli import main
from headwater.errors import RefusedError
from headwater_server.server_application import ServerApplication
from headwater_server.server_process import ListenAddress
from kubetest import wait_for

PROBES = 8182


@pytest.fixture
def stranger(application: ServerApplication) -> AsgiClient:
    """One that calls the port for probes by an address of the pod, as a kubelet does."""
    application.probe_port = PROBES
    return AsgiClient(application, host=f"10.1.2.3:{PROBES}", peer="10.1.2.1", port=PROBES)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_are_answered_on_their_port(stranger: AsgiClient, path: str) -> None:
    assert stranger.request("GET", path).status == 200


@pytest.mark.parametrize("target", ["/openapi.json", "/things/a", "/", "/healthz/", "/things?x=/healthz"])
def test_port_for_probes_answers_nothing_else(stranger: AsgiClient, target: str) -> None:
    assert stranger.request("GET", target).error == (404, "NotFoundException")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_port_for_probes_takes_no_change(stranger: AsgiClient, method: str) -> None:
    assert stranger.request(method, "/things/a", b"{}").status == 404


def test_probe_port_leaves_the_other_port_alone(application: ServerApplication, stranger: AsgiClient) -> None:
    client = AsgiClient(application)

    assert [client.request("GET", path).status for path in ("/openapi.json", "/healthz")] == [200, 200]


def test_wrong_address_for_probes_names_its_setting() -> None:
    with pytest.raises(RefusedError, match="HEADWATER_SERVER_PROBES: 'here' is no address"):
        ListenAddress.of_setting("HEADWATER_SERVER_PROBES", "here")


def test_probes_may_be_served_to_others() -> None:
    with ListenAddress.parse("*:0").listen_for_probes() as listener:
        assert listener.getsockname()[0] in ("::", "0.0.0.0")


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code
    except OSError:
        return 0


@pytest.mark.long
def test_server_answers_probes_beside_its_own_port(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    with pytest.raises(SystemExit):
        main(["--store", store, "realm", "create", "acme", "--credentials", str(tmp_path / "root.json")])
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "headwater", "--store", store, "serve", "--listen", "127.0.0.1:0"]
    environment = os.environ | {"HEADWATER_SERVER_PROBES": f"*:{port}"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: status_of(f"{url}/readyz") == 200)
            refused = status_of(f"{url}/iceberg/v1/config?warehouse=acme%2Flake")
            process.send_signal(signal.SIGTERM)
            assert (refused, process.wait(20)) == (404, 0)
        finally:
            process.kill()
