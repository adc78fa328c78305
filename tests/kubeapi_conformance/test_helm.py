"""The real helm keeps its releases in our server: it sends them as protobuf."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from probe_client import Client

pytestmark = pytest.mark.long

TOOL = Path(__file__).parents[2] / ".tools" / "helm"

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {word: "{{ .Values.word }}"}
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart of one ConfigMap."""
    folder = tmp_path / "small"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": "small", "version": "0.1.0"}))
    (folder / "values.yaml").write_text(yaml.safe_dump({"word": "one"}))
    (folder / "templates" / "config.yaml").write_text(CONFIG_MAP)
    return folder


def helm(url: str, client: Client, home: Path, *arguments: object) -> str:
    assert TOOL.exists(), f"{TOOL} is missing: scripts/setup.sh unpacks it"
    done = subprocess.run(
        [TOOL, "--kube-apiserver", url, "--namespace", client.namespace, *map(str, arguments)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "KUBECONFIG": str(home / "none")},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_release_is_installed_upgraded_and_taken_away(widgets: str, client: Client, chart: Path, tmp_path: Path) -> None:
    words = []
    for arguments in (("install", "r", chart), ("upgrade", "r", chart, "--set", "word=two")):
        helm(widgets, client, tmp_path, *arguments)
        words.append(client.get(client.core + "/configmaps/r").body["data"]["word"])

    assert words == ["one", "two"]
    assert len(helm(widgets, client, tmp_path, "history", "r").splitlines()) == 3
    helm(widgets, client, tmp_path, "uninstall", "r")
    assert client.get(client.core + "/configmaps/r").status == 404
    assert client.get(client.core + "/secrets").body["items"] == []
