"""The watches log in as the operator's other requests do, also by an exec plugin whose tokens run out."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from answer_server import Answering, Asked, answering, status
from watch_thread import RunningWatch

from headwater_operator.kube import kubeconfig_connection
from kubetest import wait_for

PLUGIN = """\
#!{python}
import json, pathlib
calls = pathlib.Path({calls!r})
calls.write_text(calls.read_text() + "x" if calls.exists() else "")
token = "t%d" % len(calls.read_text())
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": token}}}}))
"""


@pytest.fixture
def server() -> Iterator[Answering]:
    """An API server that says what it serves, is busy for every list, and refuses kopf the first token."""
    ours = [{"name": "realms"}, {"name": "catalogs"}]

    def answer(asked: Asked) -> tuple[int, dict[str, Any]]:
        if not asked.headers["User-Agent"].startswith("kopf"):
            return (200, {"resources": ours}) if asked.path.endswith("v1alpha1") else status(503, "ServiceUnavailable", "busy")
        if asked.headers.get("Authorization") == "Bearer t0":
            return status(401, "Unauthorized", "Unauthorized")
        return status(503, "ServiceUnavailable", "busy")

    with answering() as started:
        started.answer = answer
        yield started


def test_token_that_is_refused_is_replaced_by_the_plugins(server: Answering, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(PLUGIN.format(python=sys.executable, calls=str(tmp_path / "calls")))
    plugin.chmod(plugin.stat().st_mode | stat.S_IEXEC)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}}
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    running = RunningWatch.make(connection=kubeconfig_connection(str(file)))
    running.start()
    wait_for(lambda: "Bearer t1" in tokens_of_kopf(server))
    running.stop()

    assert tokens_of_kopf(server)[0] == "Bearer t0"


def tokens_of_kopf(server: Answering) -> list[str]:
    return [one.headers["Authorization"] for one in server.asked if one.headers["User-Agent"].startswith("kopf")]
