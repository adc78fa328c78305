"""What the chart's ValidatingAdmissionPolicy refuses, and what not; an API server evaluates it the same way while the operator is down."""

from __future__ import annotations

from typing import Any

import pytest
from rendered_chart import render

from kubeapi.policies import Denial, Policies

SPECS = [None, {}, {"deletionProtection": False}]


@pytest.fixture
def policies() -> Policies:
    loaded = Policies()
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
        loaded.put(render().one(kind, "-deletion-protection"))
    return loaded


def ask(policies: Policies, operation: str, kind: str, spec: dict[str, Any] | None, subresource: str = "") -> Denial | None:
    old: dict[str, Any] = {"apiVersion": "headwater.dev/v1alpha1", "kind": kind, "metadata": {"name": "lake", "namespace": "a"}}
    old |= {} if spec is None else {"spec": spec}
    plural = f"{kind.lower()}s" + (f"/{subresource}" if subresource else "")
    resource = {"group": "headwater.dev", "version": "v1alpha1", "resource": plural, "namespace": "a", "name": "lake"}
    return policies.check(operation, resource, None if operation == "DELETE" else old, None if operation == "CREATE" else old)


@pytest.mark.parametrize("kind", ["Realm", "Catalog"])
def test_protected_resource_is_not_deleted(policies: Policies, kind: str) -> None:
    denial = ask(policies, "DELETE", kind, {"deletionProtection": True})

    assert denial is not None
    assert (denial.code, denial.reason) == (403, "Forbidden")
    assert f"{kind} lake is protected from deletion; set spec.deletionProtection to false first" in denial.message


@pytest.mark.parametrize("kind", ["Realm", "Catalog"])
@pytest.mark.parametrize("spec", SPECS)
def test_unprotected_resource_is_deleted(policies: Policies, kind: str, spec: dict[str, Any] | None) -> None:
    assert ask(policies, "DELETE", kind, spec) is None


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
@pytest.mark.parametrize("subresource", ["", "status"])
def test_protected_resource_can_be_changed(policies: Policies, operation: str, subresource: str) -> None:
    """Also while it is being deleted: finalizers are taken off by an update."""
    assert ask(policies, operation, "Realm", {"deletionProtection": True}, subresource) is None


def test_other_kinds_are_left_alone(policies: Policies) -> None:
    resource = {"group": "", "version": "v1", "resource": "secrets", "namespace": "a", "name": "lake"}

    assert policies.check("DELETE", resource, None, {"kind": "Secret", "spec": {"deletionProtection": True}}) is None


def test_release_for_some_namespaces_protects_in_these_only() -> None:
    everywhere = render().one("ValidatingAdmissionPolicyBinding", "-deletion-protection")["spec"]
    some = render("default", "watch.namespaces={a,b}").one("ValidatingAdmissionPolicyBinding", "-deletion-protection")["spec"]

    assert "matchResources" not in everywhere
    assert some["matchResources"]["namespaceSelector"]["matchExpressions"] == [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}
    ]


def test_policy_can_be_left_out() -> None:
    rendered = render("default", "deletionProtection.enabled=false", "crds.keepNewer=false")

    assert rendered.of("ValidatingAdmissionPolicy") == rendered.of("ValidatingAdmissionPolicyBinding") == []
