"""No pod may more than it must: the Pod Security level `restricted`, and some rules beyond it."""

from __future__ import annotations

import pytest
from rendered_chart import VALUE_SETS, Pod, render

VOLUMES = {"configMap", "emptyDir", "persistentVolumeClaim", "secret", "csi", "downwardAPI", "ephemeral", "projected"}
"""What the level `restricted` lets a pod mount."""


@pytest.fixture(params=VALUE_SETS)
def pods(request: pytest.FixtureRequest) -> list[Pod]:
    """All pods of a set of values, those of hooks and the executors of Spark among them."""
    found = list(render(request.param).pods())
    assert found
    return found


def test_pod_is_restricted(pods: list[Pod]) -> None:
    for pod in pods:
        context = pod.spec["securityContext"]

        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] == context["runAsGroup"] == context["fsGroup"] == 10001
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & set(pod.spec) == set()
        assert {key for volume in pod.spec["volumes"] for key in volume} - {"name"} <= VOLUMES


def test_container_is_restricted(pods: list[Pod]) -> None:
    for pod in pods:
        for container in pod.containers:
            context = container["securityContext"]

            assert context["allowPrivilegeEscalation"] is False
            assert context["privileged"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["runAsNonRoot"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert [port for port in container.get("ports", []) if "hostPort" in port] == []


def test_container_can_write_to_tmp_and_nowhere_else_by_itself(pods: list[Pod]) -> None:
    for pod in pods:
        empty = {volume["name"] for volume in pod.spec["volumes"] if "emptyDir" in volume}
        mounts = {mount["mountPath"]: mount["name"] for mount in pod.container["volumeMounts"]}

        assert mounts["/tmp"] in empty
        assert all(volume["emptyDir"]["sizeLimit"] for volume in pod.spec["volumes"] if "emptyDir" in volume)


def test_pod_account_is_its_own_with_a_token_where_used(pods: list[Pod]) -> None:
    for pod in pods:
        component = pod.metadata["labels"]["app.kubernetes.io/component"]
        uses_api = component in ("operator", "check", "guard") or (component == "worker" and "POD_IP" in pod.environment)

        assert pod.spec["automountServiceAccountToken"] is uses_api
        assert pod.spec["enableServiceLinks"] is False
        if component != "redis":
            assert pod.spec["serviceAccountName"] != "default"


def test_container_says_what_it_needs_and_may_take(pods: list[Pod]) -> None:
    for pod in pods:
        if pod.name == "executor":
            continue  # Spark says it, by spark.executor.memory and spark.executor.cores
        for container in pod.containers:
            resources = container["resources"]

            assert {"cpu", "memory"} <= set(resources["requests"])
            assert "memory" in resources["limits"]


def test_container_that_lasts_is_probed(pods: list[Pod]) -> None:
    for pod in pods:
        probes = {key for key in pod.container if key.endswith("Probe")}
        served = {"readinessProbe"} if pod.container.get("ports") else set()

        assert probes == ({"startupProbe", "livenessProbe"} | served if pod.lasts else set())


def test_image_is_named_with_a_version(pods: list[Pod]) -> None:
    for pod in pods:
        if pod.name == "executor":
            continue  # Spark names it, by spark.kubernetes.container.image
        for image in (container["image"] for container in pod.containers):
            name, _, version = image.rpartition("@" if "@" in image else ":")

            assert name
            assert version not in ("", "latest")


def test_no_secret_stands_in_a_pod(pods: list[Pod]) -> None:
    for pod in pods:
        environment = pod.environment

        for name in {"HEADWATER_STORE"} & set(environment):
            assert set(environment[name]) == {"secretKeyRef"}
        assert [name for name, value in environment.items() if isinstance(value, str) and "@" in value] == []


@pytest.mark.parametrize("values", VALUE_SETS)
def test_accounts_mount_no_token_by_themselves(values: str) -> None:
    accounts = render(values).of("ServiceAccount")

    assert accounts
    assert {account["automountServiceAccountToken"] for account in accounts} == {False}


@pytest.mark.parametrize("values", VALUE_SETS)
def test_every_account_that_a_pod_names_is_made(values: str) -> None:
    rendered = render(values)
    named = {pod.spec["serviceAccountName"] for pod in rendered.pods() if "serviceAccountName" in pod.spec}

    assert named == {account["metadata"]["name"] for account in rendered.of("ServiceAccount")}
