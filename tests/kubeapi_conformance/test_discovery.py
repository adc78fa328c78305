"""What is served, and how clients find it out."""

from __future__ import annotations

import pytest
from probe_client import Client, definition

pytestmark = pytest.mark.long

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


def test_defined_kind_is_established_and_served_at_once(client: Client) -> None:
    made = client.post(CRDS, definition("news", "News"))
    served = client.get(f"/apis/probes.dev/v1/namespaces/{client.namespace}/news")
    conditions = client.get(CRDS + "/news.probes.dev").body["status"]["conditions"]

    assert (made.status, served.status) == (201, 200)
    assert {condition["type"]: condition["status"] for condition in conditions} == {
        "NamesAccepted": "True",
        "Established": "True",
    }


def test_changed_definition_holds_at_once(client: Client) -> None:
    crd = definition("olds", "Old")
    client.post(CRDS, crd)
    client.patch(
        CRDS + "/olds.probes.dev",
        [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/required", "value": ["size"]}],
        "application/json-patch+json",
    )

    body = {"apiVersion": "probes.dev/v1", "kind": "Old", "metadata": {"name": "a"}, "spec": {}}
    assert client.post(f"/apis/probes.dev/v1/namespaces/{client.namespace}/olds", body).status == 422


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "wrong.probes.dev"}}, "metadata.name"),
        ({"spec.scope": "Galaxy"}, "spec.scope"),
        ({"spec.versions": []}, "spec.versions"),
    ],
)
def test_wrong_definition_is_refused(client: Client, change: dict[str, object], field: str) -> None:
    crd = definition("wrongs", "Wrong")
    for path, value in change.items():
        *above, last = path.split(".")
        (crd[above[0]] if above else crd)[last] = value  # type: ignore[index]

    refused = client.post(CRDS, crd)

    assert (refused.status, refused.body["details"]["causes"][0]["field"]) == (422, field)


def test_core_resources_are_of_version_v1(client: Client) -> None:
    body = client.get("/api/v1").body

    assert body["groupVersion"] == "v1"
    assert {"configmaps", "secrets", "events", "namespaces/status"} <= {one["name"] for one in body["resources"]}


@pytest.mark.parametrize("path", ["/readyz", "/healthz", "/livez", "/readyz/ping"])
def test_server_says_that_it_is_well(client: Client, path: str) -> None:
    assert client.get(path).raw == b"ok"


def test_openapi_has_the_schema_of_a_definition(client: Client) -> None:
    index = client.get("/openapi/v3").body["paths"]["apis/example.dev/v1alpha1"]["serverRelativeURL"]
    schema = client.get(index).body["components"]["schemas"]["dev.example.v1alpha1.Widget"]

    assert schema["properties"]["spec"]["properties"]["state"]["enum"] == ["Active", "Inactive"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.dev", "version": "v1alpha1", "kind": "Widget"}]


def test_everybody_may_do_everything(client: Client) -> None:
    question = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}}

    assert client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", question).body["status"] == {"allowed": True}


def test_policy_holds_while_it_is_bound(client: Client) -> None:
    rule = {"apiGroups": ["example.dev"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["widgets"]}
    policy = {
        "metadata": {"name": "keep"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "oldObject.spec.size != 9", "message": "nine stays"}],
        },
    }
    client.post(POLICIES, policy)
    client.make("a", spec={"size": 9})
    binding = {"metadata": {"name": "keep"}, "spec": {"policyName": "keep", "validationActions": ["Deny"]}}
    client.post(BINDINGS, binding)

    refused = client.delete(client.widgets + "/a")
    client.delete(BINDINGS + "/keep")

    assert (refused.status, refused.reason) == (422, "Invalid")
    assert "nine stays" in refused.body["message"]
    assert client.delete(client.widgets + "/a").status == 200


def test_policy_that_cannot_be_evaluated_is_refused(client: Client) -> None:
    policy = {"metadata": {"name": "odd"}, "spec": {"matchConstraints": {}, "validations": [{"expression": "object.("}]}}

    assert client.post(POLICIES, policy).status == 422


def test_method_that_is_not_there_is_not_allowed(client: Client) -> None:
    assert client.ask("POST", client.widgets + "/a").status == 405
