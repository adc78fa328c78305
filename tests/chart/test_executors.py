"""Spark on Kubernetes as the chart sets it up: a real driver asks the API server for executors, and the test runs them as kubelet would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from rendered_chart import KUBERNETES, ROOT, Rendered, render
from test_permissions import granted

from headwater_operator.permissions import Permission
from kubetest import Cluster, Namespace, start_cluster, wait_for

pytestmark = pytest.mark.long
CHANGES = ("spark.kubernetes.memory=512m", "spark.kubernetes.executors=1", "spark.kubernetes.cores=1")
LOOPBACK = "127.0.0.1"
WATCHED_BY_LISTS = "spark.kubernetes.executor.enableApiWatcher false\n"
"""Spark's client watches by WebSocket, which the server of the tests does not speak."""
QUICK = "spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC\n"
JOB = """
import sys
from headwater_workers.pipeline.spark_session import SparkOptions, session
with session("doubling", SparkOptions(master=sys.argv[1])) as spark:
    print("sum", spark.sparkContext.parallelize(range(100), 2).map(lambda number: number * 2).sum(), flush=True)
"""


@dataclass(frozen=True)
class Done:
    """A job that was done by executors in pods: what it printed, the pods that the driver made, and what it asked the API server for."""

    printed: str
    pods: list[dict[str, Any]]
    requests: set[Permission]


@pytest.fixture(scope="module")
def rendered() -> Rendered:
    return render("everything", *CHANGES)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with start_cluster(tmp_path_factory.mktemp("cluster")) as started:
        if started.server.control is None:
            pytest.skip("a real API server does not tell what it was asked")
        yield started


@pytest.fixture(scope="module")
def done(cluster: Cluster, rendered: Rendered, tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder, namespace = tmp_path_factory.mktemp("driver"), cluster.make_namespace("spark")
    configure(folder, rendered, namespace.name)
    be_there(namespace, rendered.pod("-worker").name)
    environment = cluster.environment | driver_environment(rendered, folder)
    command = [sys.executable, "-c", JOB, f"k8s://{cluster.url}"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as driver:
        executors: list[subprocess.Popen[bytes]] = []
        try:
            pods = wait_for(lambda: executor_pods(namespace) or driver.poll() is not None, seconds=60)
            assert isinstance(pods, list), "the driver ended"
            executors += [run_executor(pod, folder, cluster.environment) for pod in pods]
            printed = driver.communicate(timeout=90)[0]
        finally:
            driver.kill()
            for executor in executors:
                executor.kill()
                executor.wait()
    return Done(printed, pods, requests_of(cluster, namespace.name))


def configure(folder: Path, rendered: Rendered, namespace: str) -> None:
    """The mounted ConfigMap, in a folder."""
    for name, text in rendered.one("ConfigMap", "-spark")["data"].items():
        moved = text.replace("/etc/headwater/spark", str(folder)).replace("namespace platform", f"namespace {namespace}")
        (folder / name).write_text(moved, encoding="utf-8")
    with (folder / "spark-defaults.conf").open("a", encoding="utf-8") as file:
        file.write(WATCHED_BY_LISTS + QUICK)


def driver_environment(rendered: Rendered, folder: Path) -> dict[str, str]:
    """What the worker's container is told, with this machine for its pod."""
    told = rendered.pod("-worker").environment
    assert {
        name: value["fieldRef"]["fieldPath"] for name, value in told.items() if isinstance(value, dict) and "fieldRef" in value
    } == {
        "POD_NAME": "metadata.name",
        "POD_IP": "status.podIP",
    }
    return {"SPARK_CONF_DIR": str(folder), "SPARK_LOCAL_DIRS": str(folder), "SPARK_LOCAL_IP": LOOPBACK, "POD_IP": LOOPBACK} | {
        "POD_NAME": rendered.pod("-worker").name
    }


def be_there(namespace: Namespace, name: str) -> None:
    """The driver's own pod, which Spark looks for."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    namespace.apply(pod)
    namespace.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "--patch", json.dumps(ready))


def executor_pods(namespace: Namespace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        namespace.kubectl("get", "pods", "-l", "spark-role=executor", "-o", "json").stdout
    )["items"]
    return found


def run_executor(pod: dict[str, Any], folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """What the image does with this pod: `spark-executor` is a script in it."""
    (container,) = pod["spec"]["containers"]
    fields = {"status.podIP": LOOPBACK, "metadata.name": pod["metadata"]["name"]}
    told = {
        one["name"]: one["value"] if "value" in one else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
        for one in container["env"]
    }
    assert container["command"] == ["spark-executor"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = str(ROOT / "scripts" / "spark-executor.sh")
    with (folder / "executor.log").open("ab") as log:
        return subprocess.Popen(
            [script, *container["args"]],
            env={"PATH": path} | told | {"SPARK_LOCAL_DIRS": str(folder)},
            cwd=folder,
            stdout=log,
            stderr=log,
        )


def requests_of(cluster: Cluster, namespace: str) -> set[Permission]:
    with urllib.request.urlopen(f"{cluster.server.control}/_control/requests", timeout=10) as answer:
        requests = json.load(answer)["requests"]
    return {
        Permission(one["group"], one["resource"], one["verb"])
        for one in requests
        if one.get("namespace") == namespace and not one["user_agent"].startswith("kubectl")
    }


def test_job_is_done_by_executors_in_pods(done: Done) -> None:
    assert done.printed.split() == ["sum", "9900"]


def test_driver_asks_only_for_what_its_role_grants(done: Done, rendered: Rendered) -> None:
    (allowed,) = granted(rendered, rendered.pod("-worker").spec["serviceAccountName"]).values()
    unseen = {Permission("", "pods", "watch"), Permission("", "pods", "delete")}  # by WebSocket; when an executor fails

    assert done.requests | unseen == allowed


@pytest.mark.rare(3)
def test_executors_pod_is_as_restricted_as_all_others(done: Done) -> None:
    for pod in done.pods:
        kubernetes_validate.validate(pod, KUBERNETES[-1], strict=True)
        spec, context = pod["spec"], pod["spec"]["containers"][0]["securityContext"]

        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["serviceAccountName"] == "lakehouse-executor"
        assert (context["readOnlyRootFilesystem"], context["capabilities"]) == (True, {"drop": ["ALL"]})
        assert [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]] == ["/tmp"]


def test_executors_go_with_the_drivers_pod(done: Done, rendered: Rendered) -> None:
    assert {pod["metadata"]["ownerReferences"][0]["name"] for pod in done.pods} == {rendered.pod("-worker").name}
