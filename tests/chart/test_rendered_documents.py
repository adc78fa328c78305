"""Every set of values gives documents that helm and Kubernetes accept, on the oldest and the newest Kubernetes."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import Any

import kubernetes_validate
import pytest
import yaml
from rendered_chart import CHART, KUBERNETES, NAMESPACE, RELEASE, ROOT, VALUE_SETS, helm, refusal, render, render_notes

from headwater_operator.writer_election import WRITER_LABEL
from kubeapi.admission import CompiledKind
from tiers import long_but_for

every_set = pytest.mark.parametrize("values", VALUE_SETS)
every_version = pytest.mark.parametrize("kubernetes", long_but_for(KUBERNETES[-1:], KUBERNETES))
FOREIGN = {"HTTPRoute", "ServiceMonitor", "PrometheusRule", "ScaledObject"}
"""Kinds of other projects, which Kubernetes itself does not know."""
PROXIED = ("server.enabled=true", "server.proxy.image.repository=docker.io/proxy", "server.proxy.image.tag=1.0")
OF_CLUSTER = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}


def test_sets_of_values_are_those_that_the_readme_tells() -> None:
    told = re.findall(r"\(ci/(\w+)-values\.yaml\)", (CHART / "README.md").read_text(encoding="utf-8"))

    assert sorted(told) == list(VALUE_SETS)


@every_set
def test_helm_finds_nothing_wrong(values: str) -> None:
    linted = helm("lint", "--strict", str(CHART), "--values", str(CHART / "ci" / f"{values}-values.yaml"))

    assert linted.returncode == 0, linted.stdout
    assert re.findall(r"\[(?:WARNING|ERROR)\].*", linted.stdout) == []


@pytest.mark.parametrize("values", long_but_for({"everything"}, VALUE_SETS))
@every_version
def test_kubernetes_knows_every_field(values: str, kubernetes: str) -> None:
    known = [document for document in render(values, kubernetes=kubernetes).documents if document["kind"] not in FOREIGN]

    assert len(known) > 5
    for document in known:
        kubernetes_validate.validate(document, kubernetes, strict=True)


def test_older_kubernetes_is_refused() -> None:
    done = helm("template", RELEASE, str(CHART), "--kube-version", "1.29", "--set", "store.existingSecret=a")

    assert "incompatible with Kubernetes v1.29" in done.stderr


@every_set
def test_no_document_stands_there_twice(values: str) -> None:
    keys = Counter(
        (document["kind"], document["metadata"].get("namespace"), document["metadata"]["name"])
        for document in render(values).documents
    )

    assert [key for key, count in keys.items() if count > 1] == []


@every_set
def test_every_document_is_in_the_namespace_where_it_belongs(values: str) -> None:
    documents = render(values).documents
    watched = {"team-a", "team-b"} if values == "namespaced" else set()

    assert {document["kind"] for document in documents if "namespace" not in document["metadata"]} <= OF_CLUSTER
    assert {document["metadata"].get("namespace", NAMESPACE) for document in documents} == {NAMESPACE} | watched


@every_set
def test_every_document_says_whose_it_is(values: str) -> None:
    for document in render(values).documents:
        labels = document["metadata"]["labels"]

        assert labels["app.kubernetes.io/instance"] == RELEASE
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert labels["app.kubernetes.io/version"] == "0.1.0"


@every_set
def test_selectors_of_pods_select_those_of_one_component(values: str) -> None:
    rendered = render(values)
    pods = {pod.name: pod.metadata["labels"] for pod in rendered.pods()}
    deployments = {one["metadata"]["name"]: one["spec"]["selector"]["matchLabels"] for one in rendered.of("Deployment")}
    services = {one["metadata"]["name"]: dict(one["spec"]["selector"]) for one in rendered.of("Service")}
    for selector in services.values():
        selector.pop(WRITER_LABEL, None)  # the election beside a server puts it on one of its pods
    budgets = {
        f"budget {one['metadata']['name']}": one["spec"]["selector"]["matchLabels"]
        for one in rendered.of("PodDisruptionBudget")
    }

    for selector in itertools.chain(deployments.values(), services.values(), budgets.values()):
        assert len([name for name, labels in pods.items() if selector.items() <= labels.items()]) == 1


def test_two_releases_of_one_name_share_nothing_of_the_cluster() -> None:
    file = str(CHART / "ci" / "default-values.yaml")
    names = []
    for namespace in ("one", "two"):
        done = helm("template", RELEASE, str(CHART), "-n", namespace, "--values", file, "--set", "crds.enabled=false")
        documents = [document for document in yaml.safe_load_all(done.stdout) if document]
        names.append({(one["kind"], one["metadata"]["name"]) for one in documents if one["kind"] in OF_CLUSTER})

    assert names[0]
    assert names[0] & names[1] == set()


def test_long_names_are_cut_to_what_kubernetes_takes() -> None:
    rendered = render("everything", f"fullnameOverride={'a' * 63}")

    assert max(len(document["metadata"]["name"]) for document in rendered.documents if document["kind"] not in OF_CLUSTER) <= 63


def test_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    package = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)

    assert package is not None
    assert (chart["version"], chart["appVersion"]) == (package[1], package[1])


def test_chart_has_the_definitions_of_the_project() -> None:
    ours = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "crds").glob("*.yaml")}
    charts = {file.name: file.read_text(encoding="utf-8") for file in (CHART / "files" / "crds").glob("*.yaml")}

    assert charts == ours, "run `python charts/generate.py`"
    assert len(ours) == 2


def test_definitions_are_rendered_as_they_are() -> None:
    ours = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted((ROOT / "crds").glob("*.yaml"))]
    rendered = render().of("CustomResourceDefinition")

    assert [crd["spec"] for crd in rendered] == [crd["spec"] for crd in ours]
    assert [crd["metadata"]["name"] for crd in rendered] == [crd["metadata"]["name"] for crd in ours]


@pytest.mark.parametrize(("setting", "kept"), [("crds.keep=true", "keep"), ("crds.keep=false", None)])
def test_definitions_stay_unless_that_is_not_wanted(setting: str, kept: str | None) -> None:
    definitions = render("default", setting).of("CustomResourceDefinition")

    assert {crd["metadata"].get("annotations", {}).get("helm.sh/resource-policy") for crd in definitions} == {kept}


def test_definitions_can_be_left_to_others() -> None:
    assert render("default", "crds.enabled=false").of("CustomResourceDefinition") == []


@every_set
def test_notes_tell_commands_with_names_that_are_there(values: str) -> None:
    rendered, notes = render(values), render_notes(values)
    deployments = re.findall(r"-n (\S+) rollout status deployment/(\S+)", notes)
    namespace = "team-a" if values == "namespaced" else NAMESPACE

    waited = [
        one["metadata"]["name"] for one in rendered.of("Deployment") if one["metadata"]["name"].endswith(("operator", "server"))
    ]
    assert sorted(deployments) == sorted((NAMESPACE, name) for name in waited)
    assert f"kubectl headwater status acme -n {namespace}" in notes
    assert f"helm uninstall {RELEASE} -n {NAMESPACE}" in notes
    assert ("helm test" in notes) == bool([pod for pod in rendered.pods() if pod.name.endswith("-check")])
    assert ("There are no workers" in notes) == (values == "minimal")


def test_realm_in_the_notes_is_one() -> None:
    example: dict[str, Any] = yaml.safe_load(re.findall(r"<<EOF\n(.*?)EOF", render_notes(), re.DOTALL)[0])
    kind = CompiledKind(dict(render().one("CustomResourceDefinition", "realms.headwater.dev")), "v1alpha1")

    assert kind.decode(example) == []
    kind.default(example)
    assert kind.validate(example, None) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("store.existingSecret=",), "store.existingSecret is missing: make a Secret"),
        (("broker.existingSecret=",), "the workers need a broker"),
        (("redis.enabled=true",), "broker.existingSecret and redis.enabled are given"),
        (("operator.replicas=2", "operator.leaderElection=false"), "two operators would act at once"),
        (("worker.autoscaling.enabled=true",), "worker.autoscaling.keda.prometheusUrl is missing"),
        (
            ("worker.autoscaling.enabled=true", "worker.autoscaling.provider=hpa", "worker.autoscaling.minReplicas=0"),
            "must be at least 1 with a HorizontalPodAutoscaler",
        ),
        (
            (
                "worker.autoscaling.enabled=true",
                "worker.autoscaling.keda.prometheusUrl=http://p",
                "worker.autoscaling.minReplicas=11",
            ),
            "worker.autoscaling.maxReplicas is less than minReplicas",
        ),
        (("spark.mode=master",), "spark.master is missing"),
        (("spark.master=spark://a:7077",), "spark.master is given, and spark.mode is local"),
        (("server.enabled=true",), "is missing: the server has to know who calls"),
        ((*PROXIED, "server.tlsSecret=a"), "Give the certificate to the proxy by server.proxy.tlsSecret"),
        (
            ("server.enabled=true", "server.issuers.config.a=b", "server.issuers.existingConfigMap=c"),
            "server.issuers.existingConfigMap are given: keep one",
        ),
        ((*PROXIED, "settings.HEADWATER_SERVER_SIGNING_KEYS=/keys"), "settings.HEADWATER_SERVER_SIGNING_KEYS would not count"),
        ((*PROXIED[:2],), "server.proxy.image.tag or server.proxy.image.digest is missing"),
        ((*PROXIED, "server.proxy.port=8181"), "server.proxy.port is 8181, which is the server's own"),
        ((*PROXIED, "server.ingress.enabled=true"), "server.hosts is empty"),
        ((*PROXIED, "server.hosts={a}", "server.httpRoute.enabled=true"), "server.httpRoute.parentRefs is empty"),
        ((*PROXIED, "settings.HEADWATER_SERVER_LISTEN=0.0.0.0:80"), "settings.HEADWATER_SERVER_LISTEN would not count"),
        ((*PROXIED, "settings.HEADWATER_SERVER_CERTIFICATE=/tls.crt"), "by server.tlsSecret, or to its proxy"),
        (
            ("storage.existingSecret=a", "settings.HEADWATER_STORAGE_FILE=/a"),
            "settings.HEADWATER_STORAGE_FILE are given: keep one",
        ),
        (("crds.keep=false", "watch.namespaces={a}"), "would delete the Realms and Catalogs of all namespaces"),
    ],
)
def test_values_that_cannot_work_are_refused_with_a_sentence(settings: tuple[str, ...], said: str) -> None:
    assert said in refusal(*settings)
