"""The chart never replaces a newer definition of our resources by an older one, and has the API server refuse others who try."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rendered_chart import render

from kubeapi.policies import Denial, Policies
from kubetest import Cluster, start_cluster, wait_for

KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
REVISION, ALLOWED = "headwater.dev/schema-revision", "headwater.dev/allow-older-schema"


@pytest.fixture
def policies() -> Policies:
    loaded = Policies()
    for kind in KINDS:
        loaded.put(render().one(kind, "-newer-definitions"))
    return loaded


def replace(
    policies: Policies, before: dict[str, str] | None, after: dict[str, str] | None, name: str = "realms"
) -> Denial | None:
    def body(annotations: dict[str, str] | None) -> dict[str, Any]:
        metadata = {"name": f"{name}.headwater.dev", **({} if annotations is None else {"annotations": annotations})}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata}

    resource = {
        "group": "apiextensions.k8s.io",
        "version": "v1",
        "resource": "customresourcedefinitions",
        "namespace": "",
        "name": f"{name}.headwater.dev",
    }
    return policies.check("UPDATE", resource, body(after), body(before))


@pytest.mark.parametrize("older", [None, {}, {REVISION: "2"}, {REVISION: "unknown"}])
def test_older_definition_is_refused(policies: Policies, older: dict[str, str] | None) -> None:
    denial = replace(policies, {REVISION: "3"}, older)

    assert denial is not None
    assert denial.code == 403
    assert "realms.headwater.dev has schema revision 3" in denial.message
    assert f"{ALLOWED}=true" in denial.message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({REVISION: "3"}, {REVISION: "3"}),
        ({REVISION: "9"}, {REVISION: "10"}),
        (None, {REVISION: "2"}),
        (None, None),
        ({REVISION: "3", ALLOWED: "true"}, {REVISION: "2"}),
    ],
)
def test_others_are_let_through(policies: Policies, before: dict[str, str] | None, after: dict[str, str] | None) -> None:
    assert replace(policies, before, after) is None


def test_definitions_of_others_are_left_alone(policies: Policies) -> None:
    assert replace(policies, {REVISION: "3"}, None, name="widgets") is None


def test_policy_can_be_left_out() -> None:
    rendered = render("default", "crds.keepNewer=false")

    assert not [one for one in rendered.of("ValidatingAdmissionPolicy") if "newer" in one["metadata"]["name"]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that has our definitions and this policy."""
    with start_cluster(tmp_path) as started:
        started.apply(*(dict(render().one(kind, "-newer-definitions")) for kind in KINDS))
        yield started


@pytest.mark.long
def test_api_server_refuses_an_older_definition_until_the_newer_one_allows_it(cluster: Cluster) -> None:
    def refused() -> str:
        change = ("annotate", "--overwrite", "--dry-run=server", "crd", "realms.headwater.dev", f"{REVISION}=0")
        return cluster.kubectl(*change, check=False).stderr

    wait_for(refused, why=lambda: "a real API server takes a while until a policy is in force")
    assert "and revision 0 would drop fields of all resources" in refused()

    cluster.kubectl("annotate", "crd", "realms.headwater.dev", f"{ALLOWED}=true")
    assert refused() == ""
