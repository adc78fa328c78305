"""The chart never replaces a newer definition of our resources by an older one, and has the API server refuse others who try."""

from __future__ import annotations

from typing import Any

import pytest
from rendered_chart import render

from kubeapi.policies import Denial, Policies

REVISION, ALLOWED = "headwater.dev/schema-revision", "headwater.dev/allow-older-schema"


@pytest.fixture
def policies() -> Policies:
    loaded = Policies()
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
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
