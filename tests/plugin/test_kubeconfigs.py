"""Which namespace is meant when none is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from headwater_operator.plugin.cluster_session import DEFAULT_KUBECONFIG, find_kubeconfig, namespace_of


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    contexts = [
        {"name": "lab", "context": {"cluster": "lab", "namespace": "lakes"}},
        {"name": "bare", "context": {"cluster": "lab"}},
    ]
    return written(tmp_path / "config", {"current-context": "lab", "contexts": contexts})


def written(file: Path, content: object) -> str:
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(file)


def test_namespace_of_the_current_context_is_meant(kubeconfig: str) -> None:
    assert namespace_of(kubeconfig, None) == "lakes"


def test_context_that_is_named_wins(kubeconfig: str) -> None:
    assert namespace_of(kubeconfig, "bare") == "default"


def test_first_file_that_names_a_context_wins(kubeconfig: str, tmp_path: Path) -> None:
    other = written(tmp_path / "other", {"current-context": "bare"})

    assert namespace_of(os.pathsep.join((other, kubeconfig)), None) == "default"


def test_files_that_are_not_there_are_passed_over(kubeconfig: str, tmp_path: Path) -> None:
    assert namespace_of(os.pathsep.join((str(tmp_path / "missing"), kubeconfig)), None) == "lakes"


def test_file_that_is_named_wins_over_the_environment() -> None:
    assert find_kubeconfig("mine", {"KUBECONFIG": "theirs"}) == "mine"


def test_environment_wins_over_the_home_folder() -> None:
    assert find_kubeconfig(None, {"KUBECONFIG": "theirs"}) == "theirs"


def test_kubeconfig_is_always_looked_for_outside_of_a_pod() -> None:
    assert find_kubeconfig(None, {}) == DEFAULT_KUBECONFIG


def test_pod_without_a_kubeconfig_uses_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert find_kubeconfig(None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) is None
