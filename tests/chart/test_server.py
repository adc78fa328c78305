"""The servers of the chart: behind a proxy always, one of them labelled to write, and no more rights than that takes."""

from __future__ import annotations

from typing import Any

import pytest
from rendered_chart import NAMESPACE, Pod, Rendered, render
from test_parts import kinds_of
from test_permissions import granted

from headwater.settings import Settings
from headwater_operator.permissions import WRITER_PERMISSIONS
from headwater_operator.runtime.operator_settings import OperatorSettings
from headwater_operator.writer_election import WRITER_LABEL
from headwater_server.server_process import ListenAddress

ONE = ("server.replicas=1",)
TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture(scope="module")
def rendered() -> Rendered:
    return render("server")


@pytest.fixture(scope="module")
def pod(rendered: Rendered) -> Pod:
    return rendered.pod("-server")


def service(rendered: Rendered, ending: str) -> dict[str, Any]:
    return dict(rendered.one("Service", ending)["spec"])


def mounts(container: Any) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


def test_server_is_not_there_by_itself() -> None:
    assert [pod.name for pod in render().pods() if pod.name.endswith("-server")] == []
    assert [one["metadata"]["name"] for one in render().of("Service") if "server" in one["metadata"]["name"]] == []


def test_server_listens_where_only_its_pod_reaches_it(pod: Pod) -> None:
    ListenAddress.parse(pod.environment["HEADWATER_SERVER_LISTEN"]).check_loopback()

    assert [port["containerPort"] for port in pod.container["ports"]] == [8182]
    assert pod.environment["HEADWATER_SERVER_PROBES"] == "*:8182"


def test_proxy_outlives_the_server(pod: Pod) -> None:
    (proxy,) = pod.spec["initContainers"]

    assert (proxy["name"], proxy["restartPolicy"]) == ("proxy", "Always")
    assert "preStop" not in proxy.get("lifecycle", {})


def test_services_lead_to_the_proxy(rendered: Rendered, pod: Pod) -> None:
    (named,) = pod.sidecar("proxy")["ports"]

    for ending in ("-server", "-server-read"):
        assert [port["targetPort"] for port in service(rendered, ending)["ports"]] == [named["name"]]


def test_one_service_follows_the_writer_and_one_does_not(rendered: Rendered) -> None:
    writer, readers = service(rendered, "-server")["selector"], service(rendered, "-server-read")["selector"]

    assert writer == readers | {WRITER_LABEL: "true"}


def test_single_server_needs_no_election() -> None:
    rendered = render("server", *ONE)
    pod = rendered.pod("-server")

    assert [container["name"] for container in pod.spec["containers"]] == ["server"]
    assert WRITER_LABEL not in service(rendered, "-server")["selector"]
    assert granted(rendered, pod.spec["serviceAccountName"]) == {}
    assert [one["metadata"]["name"] for one in rendered.of("Service") if one["metadata"]["name"].endswith("read")] == []


def test_election_may_do_just_what_it_asks_for(rendered: Rendered, pod: Pod) -> None:
    role = rendered.one("Role", "-server")
    named = [rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule]
    environment = {one["name"]: one.get("value") for one in pod.sidecar("election")["env"]}

    assert granted(rendered, pod.spec["serviceAccountName"]) == {NAMESPACE: set(WRITER_PERMISSIONS)}
    assert named == [[environment["HEADWATER_OPERATOR_LEASE_NAME"]]]


def test_election_alone_has_a_token(pod: Pod) -> None:
    having = [container["name"] for container in pod.containers if TOKENS in mounts(container)]

    assert having == ["election"]
    assert pod.spec["automountServiceAccountToken"] is False


def test_election_contends_with_the_pods_of_its_deployment(rendered: Rendered, pod: Pod) -> None:
    (selector,) = [word.partition("=")[2] for word in pod.sidecar("election")["args"] if word.startswith("--pods=")]
    labels = dict(part.split("=") for part in selector.split(","))

    assert labels == rendered.one("Deployment", "-server")["spec"]["selector"]["matchLabels"]


def test_election_accepts_its_settings(pod: Pod) -> None:
    environment = {one["name"]: one["value"] for one in pod.sidecar("election")["env"] if "value" in one}

    assert Settings.from_environment(environment).faults() == []
    assert OperatorSettings.from_environment(environment).lease_name == "lake-headwater-server"


@pytest.mark.parametrize(("values", "drain"), [("server", 20), ("everything", 60)])
def test_pod_has_time_to_hand_over_and_drain(values: str, drain: int) -> None:
    pod = render(values).pod("-server")
    handover = int(pod.container["lifecycle"]["preStop"]["exec"]["command"][1])

    assert pod.environment["HEADWATER_SERVER_DRAIN_TIMEOUT"] == f"{drain}s"
    assert pod.spec["terminationGracePeriodSeconds"] >= handover + drain + 10


def test_server_knows_the_names_that_it_is_called_by(rendered: Rendered, pod: Pod) -> None:
    hosts = pod.environment["HEADWATER_SERVER_HOSTS"].split(",")
    services = [one["metadata"]["name"] for one in rendered.of("Service") if one["spec"].get("clusterIP") != "None"]

    assert {"lake.example.com", *services, *(f"{name}.{NAMESPACE}.svc" for name in services)} <= set(hosts)


def test_server_believes_its_proxy_and_the_named_networks(pod: Pod) -> None:
    assert pod.environment["HEADWATER_SERVER_PROXIES"].split(",") == ["127.0.0.1", "10.0.0.0/8"]


def test_renewed_secrets_reach_server_and_proxy(pod: Pod) -> None:
    every = [mount for container in pod.containers for mount in container["volumeMounts"]]
    secrets = {volume["name"]: volume["secret"]["secretName"] for volume in pod.spec["volumes"] if "secret" in volume}

    assert [mount for mount in every if "subPath" in mount] == []
    assert secrets[mounts(pod.container)[pod.environment["HEADWATER_STORAGE_FILE"]]] == "lake-storage"
    assert secrets[mounts(pod.sidecar("proxy"))["/etc/headwater/tls"]] == "lake-tls"


def test_workers_have_the_storage_file_and_the_operator_has_not(rendered: Rendered) -> None:
    assert rendered.pod("-worker").environment["HEADWATER_STORAGE_FILE"] == "/etc/headwater/storage"
    assert "HEADWATER_STORAGE_FILE" not in rendered.pod("-operator").environment


def test_change_of_the_proxys_files_starts_pods_anew(pod: Pod) -> None:
    other = render("server", "server.proxy.files.more=a").pod("-server")

    assert other.metadata["annotations"]["checksum/proxy"] != pod.metadata["annotations"]["checksum/proxy"]


def test_routes_lead_to_the_writers_service() -> None:
    rendered = render("everything")
    ingress, route = rendered.one("Ingress")["spec"], rendered.one("HTTPRoute")["spec"]
    (backend,) = route["rules"][0]["backendRefs"]
    names = {rule["http"]["paths"][0]["backend"]["service"]["name"] for rule in ingress["rules"]}

    assert names == {backend["name"]} == {"lakehouse-server"}
    assert [rule["host"] for rule in ingress["rules"]] == route["hostnames"] == ["lake.example.com", "lake.example.org"]
    assert backend["port"] == service(rendered, "-server")["ports"][0]["port"]
    assert {"Ingress", "HTTPRoute"} & kinds_of(render("server", "server.ingress.enabled=false")) == set()


def test_policy_lets_clients_reach_the_proxy_alone(rendered: Rendered) -> None:
    clients, monitors = rendered.one("NetworkPolicy", "-server")["spec"]["ingress"]

    assert [port["port"] for port in clients["ports"]] == [8443]
    assert clients["from"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "ingress-nginx"}
    assert [port["port"] for port in monitors["ports"]] == [8182]


def test_servers_are_scraped_once_each(rendered: Rendered) -> None:
    monitor = rendered.one("ServiceMonitor", "-server-metrics")["spec"]
    chosen = [
        one["metadata"]["name"]
        for one in rendered.of("Service")
        if monitor["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()
    ]

    assert chosen == ["lake-headwater-server-metrics"]
    assert service(rendered, "-server-metrics")["ports"][0]["name"] == monitor["endpoints"][0]["port"]


def test_disruption_budget_keeps_one_server(rendered: Rendered) -> None:
    assert rendered.one("PodDisruptionBudget", "-server")["spec"]["maxUnavailable"] == 1
    assert render("server", *ONE).of("PodDisruptionBudget") == []
