"""The demo on a cluster: it asks whether it may, shows what it says, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kube_fixtures import Installation
from kubetest import Cluster, start_cluster, wait_for

DEMO = Path(__file__).parents[2] / "examples" / "demo_kube.py"
NAMESPACE = "/api/v1/namespaces/headwater-demo"
SECONDS = 600
"""Only a demo that does not end takes so long; one with the chart took more than 90 s on a busy machine."""
RunDemo = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.timeout(SECONDS + 300)


@pytest.fixture
def bare_cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster in which nobody has ever heard of Headwater, of each test's own: without controllers the demo's namespace stays."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with start_cluster(folder, is_bare=True, with_controllers=getattr(request, "param", True)) as started:
        yield started


@pytest.fixture
def run_demo(bare_cluster: Cluster, tmp_path: Path) -> RunDemo:
    def run(*options: str, confirmed: str = "") -> subprocess.CompletedProcess[str]:
        environment = bare_cluster.environment | {"CONFIRM_CONTEXT": confirmed, "HELM_CACHE_HOME": str(tmp_path / "helm")}
        command = [sys.executable, str(DEMO), "--folder", str(tmp_path / "demo"), *options]
        return run_whole(command, environment)

    return run


@pytest.fixture
def pods(bare_cluster: Cluster, tmp_path: Path) -> Iterator[Installation]:
    """What would run in the cluster if anything did."""
    made = Installation(bare_cluster, tmp_path, home="headwater-demo", watched=("headwater-demo",))
    yield made
    made.end()


def run_whole(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run it, and end it with all that it has started if it takes too long."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, start_new_session=True, **streams) as running:
        try:
            out, err = running.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            out, err = running.communicate()
            pytest.fail(f"the demo took more than {SECONDS} s:\n{out}{err}")
    return subprocess.CompletedProcess(command, running.returncode, out, err)


def be_the_kubelet(cluster: Cluster, pods: Installation) -> None:
    """Nothing runs in the cluster of the tests: run what the chart's Deployments would run, and say that they are available."""
    path = "/apis/apps/v1/namespaces/headwater-demo/deployments"
    made = wait_for(lambda: there if len(there := cluster.api.list_resources(path)) == 2 else None, seconds=60)
    pods.start_operator()
    for deployment in made or []:
        counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), 1)
        reasons = {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}
        conditions = [{"type": word, "status": "True", "reason": reason, "message": ""} for word, reason in reasons.items()]
        status = {"observedGeneration": deployment["metadata"]["generation"], "conditions": conditions} | counts
        cluster.api.patch_resource(f"{path}/{deployment['metadata']['name']}/status", {"status": status}, kind="merge")
    claim = "/api/v1/namespaces/headwater-demo/persistentvolumeclaims/headwater-data/status"
    cluster.api.patch_resource(claim, {"status": {"phase": "Bound"}}, kind="merge")


def left_behind(cluster: Cluster) -> list[str]:
    """Cluster-wide resources with our name, and the namespace if it is not on its way out.

    Only a controller lets a namespace go: without one it is on its way out for ever.
    """
    if cluster.server.has_controllers:
        wait_for(lambda: cluster.api.find_resource(NAMESPACE) is None)
    kinds = "crd,validatingadmissionpolicies,validatingadmissionpolicybindings,clusterroles,clusterrolebindings"
    names = cluster.kubectl("get", kinds, "-o", "name").stdout.split()
    namespace = cluster.api.find_resource(NAMESPACE) or {"status": {"phase": "Terminating"}}
    stays = [] if namespace["status"]["phase"] == "Terminating" else ["namespace/headwater-demo"]
    return [name for name in names if "headwater" in name] + stays


@pytest.mark.long
def test_context_that_is_not_confirmed_is_refused(run_demo: RunDemo, bare_cluster: Cluster) -> None:
    done = run_demo(confirmed="production")

    assert done.returncode == 1
    assert "say that you mean it: make demo-kube CONFIRM_CONTEXT=tests" in done.stderr
    assert bare_cluster.api.find_resource(NAMESPACE) is None


@pytest.mark.rare(2)
@pytest.mark.long
@pytest.mark.parametrize("bare_cluster", [True, False], ids=["with controllers", "without"], indirect=True)
def test_demo_shows_the_examples_and_leaves_nothing_behind(run_demo: RunDemo, bare_cluster: Cluster) -> None:
    done = run_demo("--local", confirmed="tests")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "realm.headwater.dev/acme condition met" in done.stdout
    assert "acme-root-credentials" in done.stdout
    assert left_behind(bare_cluster) == []


@pytest.mark.rare(3)
@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "bare_cluster"),
    [([], True), ([], False), (["--apply"], False)],
    ids=["helm", "helm without controllers", "kubectl without controllers"],
    indirect=["bare_cluster"],
)
def test_demo_installs_the_chart_and_takes_it_away_again(
    run_demo: RunDemo, bare_cluster: Cluster, pods: Installation, options: list[str]
) -> None:
    with ThreadPoolExecutor(1) as others:
        kubelet = others.submit(be_the_kubelet, bare_cluster, pods)
        done = run_demo(*options, confirmed="tests")
        kubelet.result()

    assert done.returncode == 0, done.stdout + done.stderr
    assert "catalog.headwater.dev/lake condition met" in done.stdout
    assert left_behind(bare_cluster) == []


@pytest.mark.long
def test_namespace_that_no_demo_made_is_left_alone(run_demo: RunDemo, bare_cluster: Cluster) -> None:
    bare_cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "headwater-demo"}})
    done = run_demo("--local", confirmed="tests")
    kept = bare_cluster.api.find_resource(NAMESPACE)

    assert done.returncode == 1
    assert "no demo made it" in done.stderr
    assert kept is not None and kept["status"]["phase"] == "Active"
