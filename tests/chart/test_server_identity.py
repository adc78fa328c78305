"""Servers of the chart that know their callers: without a proxy, with keys, issuers and TLS from mounted folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rendered_chart import NAMESPACE, Pod, Rendered, render, render_notes

from headwater.settings import Settings
from headwater_operator.runtime.operator_settings import OperatorSettings
from headwater_server.identity.issuer_file import read_issuers

KEYS = ("server.enabled=true", "server.signingKeys.secretName=keys")


@pytest.fixture(scope="module")
def rendered() -> Rendered:
    return render("identity")


@pytest.fixture(scope="module")
def pod(rendered: Rendered) -> Pod:
    return rendered.pod("-server")


def folders(pod: Pod) -> dict[str, Any]:
    """What is mounted where, by path."""
    volumes = {volume["name"]: volume for volume in pod.spec["volumes"]}
    return {mount["mountPath"]: volumes[mount["name"]] for mount in pod.container["volumeMounts"]}


def test_server_with_keys_needs_no_proxy(pod: Pod) -> None:
    assert pod.environment["HEADWATER_SERVER_LISTEN"] == "*:8181"
    assert [container["name"] for container in pod.containers] == ["server", "election"]
    assert {"name": "https", "containerPort": 8181} in pod.container["ports"]


def test_server_finds_what_is_mounted(pod: Pod) -> None:
    found = folders(pod)

    assert found[pod.environment["HEADWATER_SERVER_SIGNING_KEYS"]]["secret"] == {
        "secretName": "lake-signing-keys",
        "defaultMode": 0o440,
    }
    assert (
        found[pod.environment["HEADWATER_SERVER_ISSUERS"].rpartition("/")[0]]["configMap"]["name"]
        == "lake-headwater-server-issuers"
    )
    for name in ("HEADWATER_SERVER_CERTIFICATE", "HEADWATER_SERVER_PRIVATE_KEY"):
        assert found[pod.environment[name].rpartition("/")[0]]["secret"] == {"secretName": "lake-tls", "defaultMode": 0o440}
    assert not [mount for mount in pod.container["volumeMounts"] if "subPath" in mount]


def test_server_accepts_the_settings_of_its_identity(pod: Pod) -> None:
    environment = {name: value for name, value in pod.environment.items() if isinstance(value, str)}

    assert Settings.from_environment(environment).faults() == []


def test_issuers_are_a_file_that_the_server_reads(rendered: Rendered, tmp_path: Path) -> None:
    file = tmp_path / "issuers.json"
    file.write_text(rendered.one("ConfigMap", "-issuers")["data"]["issuers.json"])
    [issuer] = read_issuers(file)

    assert (issuer.issuer, list(issuer.realms), list(issuer.audiences)) == (
        "https://login.example.com",
        ["acme"],
        ["headwater"],
    )


def test_changed_issuers_start_pods_anew(pod: Pod) -> None:
    other = render("identity", "server.issuers.config.issuers[0].realms[0]=shop").pod("-server")

    assert other.metadata["annotations"]["checksum/issuers"] != pod.metadata["annotations"]["checksum/issuers"]


def test_configmap_of_issuers_may_be_there_already() -> None:
    rendered = render("server", "server.issuers.existingConfigMap=ours")

    assert folders(rendered.pod("-server"))["/etc/headwater/issuers"]["configMap"]["name"] == "ours"
    assert [one for one in rendered.of("ConfigMap") if one["metadata"]["name"].endswith("-issuers")] == []


def test_proxy_may_stand_before_a_server_with_keys() -> None:
    pod = render("server", *KEYS).pod("-server")

    assert pod.environment["HEADWATER_SERVER_LISTEN"] == "127.0.0.1:8181"
    assert pod.environment["HEADWATER_SERVER_SIGNING_KEYS"] == "/etc/headwater/signing-keys"
    assert pod.sidecar("proxy")


def test_services_lead_to_the_server_itself(rendered: Rendered) -> None:
    for ending in ("-server", "-server-read"):
        assert [port["targetPort"] for port in rendered.one("Service", ending)["spec"]["ports"]] == ["https"]
    clients, _ = rendered.one("NetworkPolicy", "-server")["spec"]["ingress"]
    assert [port["port"] for port in clients["ports"]] == [8181]


def test_probes_speak_tls_where_the_server_does(pod: Pod) -> None:
    plain = render("identity", "server.tlsSecret=").pod("-server")
    probes = ("startupProbe", "livenessProbe", "readinessProbe")

    assert {pod.container[name]["httpGet"]["scheme"] for name in probes} == {"HTTPS"}
    assert {plain.container[name]["httpGet"]["scheme"] for name in probes} == {"HTTP"}
    assert "--server=https://127.0.0.1:8182/readyz" in pod.sidecar("election")["args"]
    assert "--server=http://127.0.0.1:8182/readyz" in plain.sidecar("election")["args"]


def test_operator_knows_where_catalogs_are_served() -> None:
    def told(*values: str) -> str:
        environment = render("identity", *values).pod("-operator").environment
        plain = {name: value for name, value in environment.items() if isinstance(value, str)}
        return OperatorSettings.from_environment(plain).server_url

    assert told() == "https://lake.example.com"
    assert told("server.url=") == f"https://lake-headwater-server.{NAMESPACE}.svc:443"
    assert told("server.url=", "server.tlsSecret=") == f"http://lake-headwater-server.{NAMESPACE}.svc:443"


def test_operator_names_no_server_whose_proxy_proves_callers() -> None:
    assert "HEADWATER_OPERATOR_SERVER_URL" not in render("server").pod("-operator").environment


def test_notes_tell_that_nothing_is_encrypted() -> None:
    assert "plain HTTP" in render_notes("identity", "server.tlsSecret=")
    assert "plain HTTP" not in render_notes("identity")
