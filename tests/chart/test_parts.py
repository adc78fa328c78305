"""What each switch brings, and that it is gone without it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from rendered_chart import KUBERNETES, VALUE_SETS, Pod, Rendered, render


def kinds_of(rendered: Rendered) -> set[str]:
    return {document["kind"] for document in rendered.documents}


def spark_conf(rendered: Rendered) -> dict[str, str]:
    text = rendered.one("ConfigMap", "-spark")["data"]["spark-defaults.conf"]
    settings: dict[str, str] = dict(line.split(" ", 1) for line in text.splitlines() if line)
    return settings


@pytest.mark.parametrize(("component", "setting"), [("operator", "operator.replicas"), ("worker", "worker.replicas")])
def test_disruption_budget_is_there_for_more_than_one_pod(component: str, setting: str) -> None:
    def budgets(*settings: str) -> list[str]:
        found = [one["metadata"]["name"] for one in render("default", *settings).of("PodDisruptionBudget")]
        return [name for name in found if name.endswith(component)]

    assert budgets(f"{setting}=1") == []
    assert len(budgets(f"{setting}=2")) == 1
    assert budgets(f"{setting}=2", f"{component}.podDisruptionBudget.enabled=false") == []


def test_scaled_workers_have_a_disruption_budget_and_no_fixed_number() -> None:
    rendered = render("hpa")

    assert rendered.one("PodDisruptionBudget", "-worker")
    assert "replicas" not in rendered.one("Deployment", "-worker")["spec"]
    assert render().one("Deployment", "-worker")["spec"]["replicas"] == 1


def test_horizontal_autoscaler_follows_the_tasks() -> None:
    scaler = render("hpa").one("HorizontalPodAutoscaler")["spec"]

    assert scaler["scaleTargetRef"]["name"] == render("hpa").one("Deployment", "-worker")["metadata"]["name"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 6)
    assert scaler["metrics"][0]["external"]["metric"]["name"] == "headwater_tasks_to_do"
    assert scaler["metrics"][0]["external"]["target"] == {"type": "AverageValue", "averageValue": "2"}
    assert scaler["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 600
    assert "ScaledObject" not in kinds_of(render("hpa"))


def test_keda_follows_the_tasks() -> None:
    scaler = render("everything").one("ScaledObject")["spec"]
    trigger = scaler["triggers"][0]

    assert scaler["scaleTargetRef"]["name"] == render("everything").one("Deployment", "-worker")["metadata"]["name"]
    assert (scaler["minReplicaCount"], scaler["maxReplicaCount"]) == (0, 20)
    assert trigger["metadata"]["serverAddress"] == "http://prometheus.monitoring:9090"
    assert trigger["metadata"]["threshold"] == "4"
    assert re.findall(r"headwater_\w+", trigger["metadata"]["query"]) == ["headwater_tasks", "headwater_tasks_due"]
    assert "HorizontalPodAutoscaler" not in kinds_of(render("everything"))


def test_optional_parts_are_not_there_by_themselves() -> None:
    optional = {
        "HorizontalPodAutoscaler",
        "ScaledObject",
        "ServiceMonitor",
        "PrometheusRule",
        "PodDisruptionBudget",
    }

    assert kinds_of(render()) & optional == set()
    assert len(render().of("Deployment")) == 2


def test_operator_rolls_with_a_lease_and_else_stops_first() -> None:
    def strategy(values: str) -> str:
        found: str = render(values).one("Deployment", "-operator")["spec"]["strategy"]["type"]
        return found

    assert strategy("default") == "RollingUpdate"
    assert strategy("minimal") == "Recreate"


def test_change_of_settings_starts_pods_anew() -> None:
    def sums(*settings: str) -> set[str]:
        pods = [pod for pod in render("default", *settings).pods() if pod.lasts]
        return {pod.metadata["annotations"]["checksum/settings"] for pod in pods}

    assert len(sums()) == 1
    assert sums() != sums("settings.HEADWATER_TASK_ATTEMPTS=9")


@pytest.mark.parametrize(
    ("values", "broker"),
    [
        ("default", {"secretKeyRef": {"name": "headwater-broker", "key": "url"}}),
        ("namespaced", "redis://redis.infra:6379/2"),
        ("everything", "redis://lakehouse-redis:6379/0"),
        ("sqlite", None),
    ],
)
def test_workers_are_told_their_broker(values: str, broker: Any) -> None:
    assert render(values).pod("-worker").environment.get("HEADWATER_BROKER") == broker


def test_bundled_redis_never_evicts() -> None:
    command = render("everything").pod("-redis").container["command"]

    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"
    assert [pod for pod in render().pods() if pod.name.endswith("redis")] == []


def test_pods_with_a_database_volume_stay_on_one_node() -> None:
    pods = [pod for pod in render("sqlite").pods() if any(volume["name"] == "store" for volume in pod.spec["volumes"])]

    assert len(pods) == 3
    for pod in pods:
        terms = pod.spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ours = [term for term in terms if term["topologyKey"] == "kubernetes.io/hostname"]
        assert [term["labelSelector"]["matchLabels"].items() <= pod.metadata["labels"].items() for term in ours] == [True]
        assert {mount["mountPath"] for mount in pod.container["volumeMounts"]} >= {"/var/lib/headwater"}


def test_users_affinity_is_kept_beside_ours() -> None:
    terms = render("sqlite").pod("-worker").spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert [term["topologyKey"] for term in terms] == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]


def test_several_pods_are_spread_over_nodes() -> None:
    for ending in ("-operator", "-worker"):
        pod = render("ha").pod(ending)
        (spread,) = pod.spec["topologySpreadConstraints"]

        assert spread["topologyKey"] == "kubernetes.io/hostname"
        assert spread["labelSelector"]["matchLabels"].items() <= pod.metadata["labels"].items()
    assert "topologySpreadConstraints" not in render().pod("-operator").spec


def test_settings_of_a_pod_are_passed_on() -> None:
    pod = render("everything").pod("-operator")

    assert pod.metadata["labels"]["example.com/tier"] == "control"
    assert pod.metadata["labels"]["team"] == "data"
    assert pod.metadata["annotations"]["example.com/log"] == "true"
    assert pod.spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert pod.spec["tolerations"] == [{"key": "control", "operator": "Exists"}]
    assert pod.spec["imagePullSecrets"] == [{"name": "registry"}]
    assert pod.environment["SSL_CERT_DIR"] == "/etc/ca"
    assert {"secretRef": {"name": "more"}} in pod.container["envFrom"]
    assert {"name": "ca", "mountPath": "/etc/ca", "readOnly": True} in pod.container["volumeMounts"]
    assert pod.container["image"].startswith("registry.example.com/headwater/headwater-operator@sha256:")
    assert render("everything").pod("-worker").container["image"].endswith("headwater-worker:0.1.0-special")
    assert render("ha").pod("-operator").spec["priorityClassName"] == "system-cluster-critical"


@pytest.mark.parametrize(
    ("values", "master"),
    [
        ("default", "local[*]"),
        ("hpa", "spark://spark-master:7077"),
        ("everything", "k8s://https://kubernetes.default.svc"),
    ],
)
def test_workers_are_told_where_spark_runs(values: str, master: str) -> None:
    assert render(values).pod("-worker").environment["HEADWATER_SPARK_MASTER"] == master


def test_spark_leaves_nothing_where_it_is_off() -> None:
    rendered = render("default", "spark.mode=off")

    assert rendered.pod("-worker").environment["HEADWATER_SPARK_MASTER"] == "off"
    assert [one for one in rendered.of("ConfigMap") if one["metadata"]["name"].endswith("spark")] == []


def test_executors_are_told_by_the_driver_and_have_no_rights() -> None:
    rendered = render("everything")
    conf, executor = spark_conf(rendered), rendered.pod("executor")
    bound = {
        subject["name"]
        for kind in ("RoleBinding", "ClusterRoleBinding")
        for one in rendered.of(kind)
        for subject in one["subjects"]
    }

    assert conf["spark.kubernetes.container.image"] == rendered.pod("-worker").container["image"]
    assert conf["spark.executor.memory"] == "4g"
    assert conf["spark.sql.shuffle.partitions"] == "64"
    assert executor.spec["serviceAccountName"] == "lakehouse-executor"
    assert executor.spec["serviceAccountName"] not in bound
    assert executor.environment["AWS_REGION"] == "eu-central-1"
    assert {"secretRef": {"name": "warehouse"}} in executor.container["envFrom"]


def test_drivers_configuration_is_where_it_looks() -> None:
    rendered = render("everything")
    worker = rendered.pod("-worker")
    (mount,) = [mount for mount in worker.container["volumeMounts"] if mount["name"] == "spark"]

    assert worker.environment["SPARK_CONF_DIR"] == mount["mountPath"]
    assert spark_conf(rendered)["spark.kubernetes.executor.podTemplateFile"] == f"{mount['mountPath']}/executor.yaml"


def selected(pods: list[Pod], selector: dict[str, Any]) -> set[str]:
    """The components that a selector of a NetworkPolicy means."""

    def fits(labels: dict[str, str]) -> bool:
        expressions = selector.get("matchExpressions", [])
        return selector["matchLabels"].items() <= labels.items() and all(
            labels.get(one["key"]) in one["values"] for one in expressions
        )

    return {pod.metadata["labels"]["app.kubernetes.io/component"] for pod in pods if fits(pod.metadata["labels"])}


def test_network_policies_name_all_that_may_be_reached() -> None:
    rendered = render("everything")
    pods = list(rendered.pods())
    default = rendered.one("NetworkPolicy", "-default")["spec"]

    assert selected(pods, default["podSelector"]) == {"operator", "worker", "server", "check", "guard", "redis", "executor"}
    assert default["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in default
    assert [rule["ports"] for rule in default["egress"]] == [[{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]]


@pytest.mark.parametrize(
    ("values", "setting"),
    [("default", ""), ("everything", "networkPolicy.enabled=false"), ("server", "networkPolicy.enabled=false")],
)
def test_nothing_but_what_the_chart_knows_comes_in_by_default(values: str, setting: str) -> None:
    rendered = render(values, *filter(None, [setting]))
    policies = [one["spec"] for one in rendered.of("NetworkPolicy")]
    strict = [
        one["spec"] for one in render(values, "networkPolicy.enabled=true").of("NetworkPolicy") if "ingress" in one["spec"]
    ]

    assert {tuple(policy["policyTypes"]) for policy in policies} == {("Ingress",)}
    assert not [policy for policy in policies if "egress" in policy]
    assert [policy["ingress"] for policy in policies if "ingress" in policy] == [policy["ingress"] for policy in strict]
    assert render(values, *filter(None, [setting]), "networkPolicy.ingress=false").of("NetworkPolicy") == []


def test_policies_allow_what_each_component_needs() -> None:
    rendered = render("everything")
    pods = list(rendered.pods())
    policies = {one["metadata"]["name"].removeprefix("lakehouse-"): one["spec"] for one in rendered.of("NetworkPolicy")}
    ports = {
        name: sorted(port["port"] for rule in spec.get("egress", []) for port in rule.get("ports", []))
        for name, spec in policies.items()
    }

    assert selected(pods, policies["operator"]["podSelector"]) == {"operator", "check", "guard"}
    assert ports["operator"] == [5432, 6443]
    assert ports["worker"] == [443, 5432, 6379, 6443]
    assert ports["executor"] == [443, 5432]
    assert selected(pods, policies["redis"]["ingress"][0]["from"][0]["podSelector"]) == {"worker"}
    assert policies["operator"]["ingress"][0]["ports"] == [{"port": 8080, "protocol": "TCP"}]


def test_empty_list_of_peers_means_any_and_none_is_written() -> None:
    operator = render("ha").one("NetworkPolicy", "-operator")["spec"]

    assert "from" not in operator["ingress"][0]
    assert [rule for rule in operator["egress"] if "to" in rule] == []


@pytest.mark.parametrize("values", VALUE_SETS)
def test_probe_of_a_worker_looks_at_its_file(values: str) -> None:
    workers = [pod for pod in render(values).pods() if pod.name.endswith("-worker")]
    for pod in workers:
        (written,) = [one.partition("=")[2] for one in pod.container["args"] if one.startswith("--alive-file")]
        question = pod.container["livenessProbe"]["exec"]["command"]

        assert question[:2] == ["sh", "-c"]
        assert f"find {written} -newermt '-60 seconds'" in question[2]


def test_hooks_are_where_helm_finds_them() -> None:
    rendered = render()
    hooks = {
        document["metadata"]["annotations"]["helm.sh/hook"]: document["kind"]
        for document in rendered.documents
        if "helm.sh/hook" in document["metadata"].get("annotations", {})
    }

    assert hooks == {"test": "Pod", "pre-delete": "Job"}
    assert rendered.pod("-check").container["args"] == ["check"]
    assert rendered.pod("-uninstall-guard").container["args"] == ["leftovers"]


def test_every_switch_that_brings_a_hook_takes_it_away() -> None:
    documents = render("default", "uninstall.guard=false", "tests.enabled=false").documents

    assert [one for one in documents if "helm.sh/hook" in one["metadata"].get("annotations", {})] == []


def test_worker_has_long_enough_to_hand_its_tasks_back() -> None:
    assert render().pod("-worker").spec["terminationGracePeriodSeconds"] >= 60


def test_executors_template_is_a_pod() -> None:
    import kubernetes_validate

    template = yaml.safe_load(render("everything").one("ConfigMap", "-spark")["data"]["executor.yaml"])

    for version in KUBERNETES:
        kubernetes_validate.validate(template, version, strict=True)
