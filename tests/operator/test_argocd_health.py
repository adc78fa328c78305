"""The health check for Argo CD judges every resource as kstatus does, and says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from argocd import HEALTHS, argocd_health
from bodies import body, later
from desks import Desk, make_realm
from hypothesis import given
from kstatus import kstatus
from passes import either, status_of

from kubetest import Namespace

README = Path(__file__).parents[2] / "charts" / "headwater" / "README.md"
OF_KSTATUS = {"InProgress": "Progressing", "Failed": "Degraded", "Current": "Healthy"}


@pytest.mark.long
@given(one=either)
def test_every_status_has_the_health_that_kstatus_gives_it(one: Any) -> None:
    made, brought = one
    made["metadata"].pop("deletionTimestamp", None)  # Argo CD says by itself that such a one is progressing
    resource = {**made, "status": status_of(made, brought, now=later(0))}

    health, _ = argocd_health(resource)

    assert health in HEALTHS
    assert health == OF_KSTATUS[kstatus(resource)]


@pytest.mark.parametrize("status", [None, {}, {"observedGeneration": -1}, {"observedGeneration": 1}])
def test_resource_that_nobody_has_looked_at_is_progressing(status: dict[str, Any] | None) -> None:
    health, message = argocd_health(body() if status is None else body(status=status))

    assert (health, "operator has not" in message) == ("Progressing", True)


def test_change_that_nobody_has_looked_at_is_progressing(desk: Desk) -> None:
    desk.apply(make_realm())
    desk.work()
    assert argocd_health(desk.namespace.read("Realm", "acme")) == ("Healthy", "")

    desk.apply(make_realm(state="Inactive"))

    assert argocd_health(desk.namespace.read("Realm", "acme"))[0] == "Progressing"


@pytest.mark.long
def test_fault_for_a_person_is_degraded_with_the_reason(desk: Desk) -> None:
    desk.apply(make_realm(annotations={"headwater.dev/unheard-of": "yes"}))
    desk.work()

    health, message = argocd_health(desk.namespace.read("Realm", "acme"))

    assert health == "Degraded"
    assert message.startswith("SpecInvalid: ")
    assert "unknown annotation" in message


def test_chart_checks_are_merged_into_argocds_by_documented_commands(namespace: Namespace, tmp_path: Path) -> None:
    names = [f"resource.customizations.health.headwater.dev_{kind}" for kind in ("Realm", "Catalog")]
    data = dict.fromkeys(names, 'return {status = "Healthy"}\n')
    ours = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "headwater-argocd-health"}, "data": data}
    theirs = {**ours, "metadata": {"name": "argocd-cm"}, "data": {"url": "https://argocd.example.com"}}
    namespace.apply(ours, theirs)
    shown = README.read_text(encoding="utf-8").partition("-o jsonpath='")[2].partition("'")[0]

    read = namespace.kubectl("get", "configmap", "headwater-argocd-health", "-o", f"jsonpath={shown}")
    (tmp_path / "health.json").write_text(read.stdout, encoding="utf-8")
    namespace.kubectl("patch", "configmap", "argocd-cm", "--type", "merge", "--patch-file", tmp_path / "health.json")

    merged = namespace.cluster.api.get_resource(f"/api/v1/namespaces/{namespace.name}/configmaps/argocd-cm")["data"]
    assert merged == theirs["data"] | data
