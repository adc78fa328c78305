"""Fixtures: the plugin in a namespace of a real API server, where resources are as the operator would have left them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from plugin_calls import Lakes, Plugin

from kube_fixtures import Installation, cluster, controlled_cluster, installation, namespace, operator, worker
from kubetest import Cluster

__all__ = ["Installation", "cluster", "controlled_cluster", "installation", "namespace", "operator", "worker"]


@pytest.fixture
def lakes(cluster: Cluster) -> Lakes:
    """A namespace of this test's own."""
    return Lakes(cluster.make_namespace("lakes"))


@pytest.fixture
def plugin(lakes: Lakes) -> Plugin:
    return Plugin(lakes.namespace)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], str]:
    """A file with this text; returns its path."""

    def write(text: str) -> str:
        file = tmp_path / "manifest.yaml"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write
