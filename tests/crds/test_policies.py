"""Policies deny what they are about, at the operations that they name, in the words of a real server."""

from __future__ import annotations

from typing import Any

import pytest

from kubeapi.admission import Denial, InvalidCrd, Policies

REALM = {"group": "headwater.dev", "version": "v1alpha1", "resource": "realms", "namespace": "lakes", "name": "acme"}
RULE = {"apiGroups": ["headwater.dev"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["realms"]}
ACME = {**RULE, "resourceNames": ["acme"]}
PROTECTED = {"expression": "!oldObject.spec.deletionProtection", "message": "it is protected", "reason": "Forbidden"}


def policy(**spec: Any) -> dict[str, Any]:
    usual = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [RULE]}, "validations": [PROTECTED]}
    return {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "protection"}, "spec": {**usual, **spec}}


def binding(**spec: Any) -> dict[str, Any]:
    usual = {"policyName": "protection", "validationActions": ["Deny"]}
    return {"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "everywhere"}, "spec": {**usual, **spec}}


def deleted(*objects: dict[str, Any], spec: Any = None, operation: str = "DELETE", **resource: str) -> Denial | None:
    """What is said of the deletion of a protected Realm."""
    policies = Policies()
    for one in objects:
        policies.put(one)
    old = {"kind": "Realm", "spec": {"deletionProtection": True} if spec is None else spec}
    return policies.check(operation, {**REALM, **resource}, None, old)


def test_policy_denies_with_its_reason_and_message() -> None:
    said = "ValidatingAdmissionPolicy 'protection' with binding 'everywhere' denied request: it is protected"

    assert deleted(policy(), binding()) == Denial(403, "Forbidden", f'realms.headwater.dev "acme" is forbidden: {said}', said)


@pytest.mark.parametrize(
    ("objects", "others"),
    [
        ([policy()], {}),
        ([binding()], {}),
        ([policy(), binding()], {"spec": {"deletionProtection": False}}),
        ([policy(), binding()], {"operation": "UPDATE"}),
        ([policy(), binding()], {"resource": "catalogs"}),
        ([policy(), binding()], {"group": "example.dev"}),
        ([policy(), binding()], {"subresource": "status"}),
        ([policy(), binding(validationActions=["Warn", "Audit"])], {}),
        ([policy(), binding(policyName="other")], {}),
        ([policy(matchConditions=[{"name": "n", "expression": "request.namespace != 'lakes'"}]), binding()], {}),
        ([policy(matchConstraints={"resourceRules": [RULE], "excludeResourceRules": [ACME]}), binding()], {}),
        ([policy(failurePolicy="Ignore"), binding()], {"spec": {}}),
        (
            [
                policy(),
                binding(matchResources={"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}),
            ],
            {},
        ),
    ],
)
def test_policy_keeps_out_of_everything_else(objects: list[dict[str, Any]], others: dict[str, Any]) -> None:
    assert deleted(*objects, **others) is None


def test_validation_without_a_reason_is_invalid_and_tells_its_expression() -> None:
    denial = deleted(policy(validations=[{"expression": "object != null"}]), binding())

    assert denial is not None
    assert (denial.code, denial.reason) == (422, "Invalid")
    assert denial.cause.endswith("denied request: failed expression: object != null")


def test_expression_without_a_result_denies_when_failures_do() -> None:
    denial = deleted(policy(), binding(), spec={})

    assert denial is not None
    assert (denial.code, denial.cause.split("request: ")[1]) == (
        422,
        "expression '!oldObject.spec.deletionProtection' resulted in error: no such key: deletionProtection",
    )


def test_message_may_be_computed_and_has_another_in_reserve() -> None:
    def said(expression: str) -> str:
        denial = deleted(policy(validations=[{**PROTECTED, "messageExpression": expression}]), binding())
        return "" if denial is None else denial.cause.split("request: ")[1]

    assert said("oldObject.kind + ' ' + request.name") == "Realm acme"
    assert said("oldObject.nope") == "it is protected"


def test_variables_are_there_for_validations() -> None:
    spec = {
        "variables": [{"name": "kept", "expression": "oldObject.spec.deletionProtection"}],
        "validations": [{"expression": "!variables.kept", "message": "kept"}],
    }

    assert deleted(policy(**spec), binding()) is not None


def test_binding_may_be_for_some_namespaces() -> None:
    chosen = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["lakes"]}

    assert deleted(policy(), binding(matchResources={"namespaceSelector": {"matchExpressions": [chosen]}})) is not None


def test_removed_policy_is_silent() -> None:
    policies = Policies()
    policies.put(policy())
    policies.put(binding())
    policies.remove("ValidatingAdmissionPolicyBinding", "everywhere")

    assert policies.check("DELETE", REALM, None, {"spec": {"deletionProtection": True}}) is None


@pytest.mark.parametrize(
    "obj",
    [
        policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
        policy(auditAnnotations=[{"key": "a", "valueExpression": "'b'"}]),
        policy(validations=[]),
        policy(validations=[{"expression": "authorizer.path('/') == null"}]),
        policy(validations=[{**PROTECTED, "reason": "Conflict"}]),
        policy(matchConstraints={}),
        policy(matchConstraints={"resourceRules": [{**RULE, "operations": []}]}),
        policy(matchConstraints={"resourceRules": [RULE], "objectSelector": {"matchLabels": {"a": "b"}}}),
        binding(paramRef={"name": "p"}),
        binding(validationActions=[]),
        binding(validationActions=["Refuse"]),
        binding(matchResources={"namespaceSelector": {"matchLabels": {"team": "lakes"}}}),
    ],
)
def test_policy_not_evaluated_here_is_refused(obj: dict[str, Any]) -> None:
    with pytest.raises(InvalidCrd):
        Policies().put(obj)
