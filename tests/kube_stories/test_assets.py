"""The tests run on a real API server where KUBEBUILDER_ASSETS names one. Stand-ins with the same names show that they are started right."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubetest import Cluster, start_cluster, wait_for
from kubetest.assets import CONTROLLERS
from kubetest.cluster import program

pytestmark = pytest.mark.long

PROXY = Path(__file__).with_name("stand_in.py")
STAND_INS = ("kube-apiserver", "etcd", "kubectl")
MANAGER = "kube-controller-manager"


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as envtest's set-up leaves it, with a kube-controller-manager; each program writes down how it was called."""
    return make_assets(tmp_path_factory.mktemp("assets"), *STAND_INS, MANAGER)


def make_assets(folder: Path, *names: str) -> Path:
    for name in names:
        script = folder / name
        script.write_text(
            f'#!/bin/sh\nexec {sys.executable} {PROXY} {folder} {name} {program("kubectl")} "$@"\n', encoding="utf-8"
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture(scope="module")
def cluster(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KUBEBUILDER_ASSETS", str(assets))
        with start_cluster(tmp_path_factory.mktemp("cluster")) as started:
            yield started


def calls(assets: Path, name: str) -> list[list[str]]:
    return [json.loads(line) for line in (assets / f"{name}.calls").read_text(encoding="utf-8").splitlines()]


def test_api_server_is_reached_by_tls_and_a_token(cluster: Cluster) -> None:
    cluster.make_namespace("assets")

    config = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    assert config["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
    assert len(config["users"][0]["user"]["token"]) == 32
    assert cluster.api.get_resource("/api/v1/namespaces/assets-1")["metadata"]["name"] == "assets-1"


def test_api_server_keeps_its_data_in_our_etcd(cluster: Cluster, assets: Path) -> None:
    (etcd,), (apiserver,) = calls(assets, "etcd"), calls(assets, "kube-apiserver")

    listens = next(argument for argument in etcd if argument.startswith("--listen-client-urls="))
    assert f"--etcd-servers={listens.partition('=')[2]}" in apiserver
    assert {"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"} <= set(apiserver)


def test_controllers_of_the_folder_are_started(cluster: Cluster, assets: Path) -> None:
    written = assets / f"{MANAGER}.calls"
    wait_for(lambda: written.exists() and written.read_text(encoding="utf-8").endswith("\n"))
    (manager,) = calls(assets, MANAGER)

    assert f"--kubeconfig={cluster.kubeconfig}" in manager
    assert f"--controllers={','.join(CONTROLLERS)}" in manager
    assert cluster.server.has_controllers


def test_folder_without_controllers_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(make_assets(tmp_path, *STAND_INS)))

    with start_cluster(tmp_path, is_bare=True) as started:
        assert not started.server.has_controllers


def test_kubectl_is_the_one_of_that_folder(cluster: Cluster, assets: Path) -> None:
    cluster.kubectl("get", "crd", "realms.headwater.dev")

    assert ["get", "crd", "realms.headwater.dev"] in calls(assets, "kubectl")


def test_resources_are_known_and_the_policy_is_in_force(cluster: Cluster) -> None:
    known = cluster.kubectl("api-resources", "--api-group=headwater.dev", "-o", "name").stdout.split()
    policies = cluster.kubectl("get", "validatingadmissionpolicies", "-o", "name").stdout.split()

    assert sorted(known) == ["catalogs.headwater.dev", "realms.headwater.dev"]
    assert sorted(policy.rpartition("/headwater-headwater-")[2] for policy in policies) == [
        "deletion-protection",
        "newer-definitions",
    ]


def test_tests_that_need_a_failing_server_know_this_one_cannot(cluster: Cluster) -> None:
    assert cluster.server.control is None


def test_folder_without_the_programs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    with pytest.raises(AssertionError, match="has no kube-apiserver, etcd, kubectl"), start_cluster(tmp_path):
        pass
