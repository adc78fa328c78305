"""`kubectl headwater status` in a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_bodies import condition, realm_status
from plugin_calls import Lakes, Plugin

NOT_READY = [condition("Ready", "False", "PurgeUnconfirmed", "nobody confirmed")]


def test_realm_that_is_well_ends_with_0(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm()
    lakes.make_catalog()

    assert plugin.ok("status", "acme").startswith(f"Realm {lakes.name}/acme: ACTIVE\n")


def test_bad_condition_ends_with_8(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm(status=realm_status(conditions=NOT_READY))

    result = plugin("status", "acme")
    assert (result.exit_code, "Ready is False (PurgeUnconfirmed): nobody confirmed" in result.stdout) == (8, True)


def test_page_has_only_catalogs_of_the_realm(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm()
    lakes.make_catalog("lake")
    lakes.make_catalog("pond", realm="other")

    assert [catalog["name"] for catalog in plugin.data("status", "acme")["catalogs"]] == ["lake"]


def test_events_about_the_realm_are_on_its_page(plugin: Plugin, lakes: Lakes) -> None:
    for name in ("acme", "beta"):
        made = lakes.make_realm(name)
        reference = {"kind": "Realm", "name": name, "namespace": lakes.name, "uid": made["metadata"]["uid"]}
        body = {"involvedObject": reference, "reason": "RealmCreated", "message": f"realm {name} is created", "type": "Normal"}
        metadata = {"name": f"{name}.1", "namespace": lakes.name}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "lastTimestamp": "2026-11-22T12:00:00Z", **body}
        lakes.namespace.cluster.api.create_resource(lakes.namespace.path("Event"), event)

    assert [event["message"] for event in plugin.data("status", "acme")["events"]] == ["realm acme is created"]


def test_table_has_all_realms_without_a_name(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm("acme")
    lakes.make_realm("beta", status=realm_status("beta", conditions=NOT_READY, message="nobody confirmed"))

    result = plugin("status")
    assert result.exit_code == 8
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["REALM", "acme", "beta"]


def test_all_namespaces_are_told_apart(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm()

    assert any(line.split()[:2] == [lakes.name, "acme"] for line in plugin("status", "-A").stdout.splitlines())


def test_realm_that_is_not_there_ends_with_3(plugin: Plugin, lakes: Lakes) -> None:
    assert plugin.refused(3, "status", "acme") == f"kubectl headwater: there is no Realm 'acme' in namespace '{lakes.name}'\n"


def test_realm_id_leads_to_its_realm(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm("acme", status=realm_status("Acme_1"), realmId="Acme_1")

    assert "the realm of that id is that of the Realm 'acme'" in plugin.refused(3, "status", "Acme_1")


def test_yaml_is_printed_on_request(plugin: Plugin, lakes: Lakes) -> None:
    lakes.make_realm()

    assert plugin.ok("status", "acme", "-o", "yaml").startswith("name: acme\n")


def test_api_server_that_is_away_ends_with_4(plugin: Plugin, tmp_path: Path) -> None:
    text = plugin.namespace.cluster.kubeconfig.read_text(encoding="utf-8").replace(
        plugin.namespace.cluster.url, "http://127.0.0.1:9"
    )
    (tmp_path / "away").write_text(text, encoding="utf-8")

    said = plugin.refused(4, "status", "acme", "--kubeconfig", str(tmp_path / "away"))
    assert said.count("\n") == 1


def test_catalog_is_no_argument_of_status(plugin: Plugin) -> None:
    assert "is not of the form NAME or realm/NAME" in plugin.refused(2, "status", "catalog/lake")


@pytest.mark.long
def test_kubectl_finds_the_plugin(lakes: Lakes) -> None:
    """As a user calls it: `kubectl headwater status`, with the program on the PATH."""
    lakes.make_realm()
    cluster = lakes.namespace.cluster
    path = f"{Path(sys.executable).parent}:{cluster.environment['PATH']}"
    command = [cluster.kubectl_program, "headwater", "status", "acme", "-n", lakes.name]

    done = subprocess.run(command, env=cluster.environment | {"PATH": path}, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"Realm {lakes.name}/acme: ACTIVE\n")


@pytest.mark.long
def test_reader_that_has_gone_is_no_failure(lakes: Lakes) -> None:
    lakes.make_realm()
    program = str(Path(sys.executable).with_name("kubectl-headwater"))
    ours, theirs = os.pipe()
    os.close(ours)
    environment = lakes.namespace.cluster.environment | {"PYTHONUNBUFFERED": "1"}
    command = [program, "status", "acme", "-n", lakes.name]
    done = subprocess.run(command, env=environment, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    os.close(theirs)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long
def test_plugin_starts_without_what_only_the_operator_needs() -> None:
    heavy = {"kopf", "aiohttp", "prometheus_client", "headwater.reconcile"}
    code = f"import sys, headwater_operator.plugin; print({heavy} & set(sys.modules))"

    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
