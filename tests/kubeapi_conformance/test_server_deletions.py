"""Deleting: finalizers, preconditions, and what goes along."""

from __future__ import annotations

import re
import time

import pytest
from probe_client import Client, Reply, definition

pytestmark = pytest.mark.long

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def wait_until_gone(client: Client, path: str) -> None:
    end = time.monotonic() + 10
    while client.get(path).status != 404:
        assert time.monotonic() < end, f"{path} is still there"
        time.sleep(0.02)


def held(client: Client, **metadata: object) -> Reply:
    return client.make("f", finalizers=["example.dev/f"], **metadata)


def test_finalizer_holds_an_object_until_it_is_taken_away(client: Client) -> None:
    held(client)
    marked = client.delete(client.widgets + "/f")
    seen = client.get(client.widgets + "/f")
    client.patch(client.widgets + "/f", {"metadata": {"finalizers": None}})

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", marked.metadata["deletionTimestamp"])
    assert (marked.metadata["generation"], seen.status) == (2, 200)
    assert client.get(client.widgets + "/f").status == 404


def test_deletion_cannot_be_taken_back(client: Client) -> None:
    held(client)
    marked = client.delete(client.widgets + "/f").metadata["deletionTimestamp"]

    changed = client.patch(client.widgets + "/f", {"metadata": {"deletionTimestamp": None}})

    assert changed.metadata["deletionTimestamp"] == marked


def test_object_that_goes_takes_no_new_finalizer(client: Client) -> None:
    held(client)
    client.delete(client.widgets + "/f")

    assert client.patch(client.widgets + "/f", {"metadata": {"finalizers": ["example.dev/f", "example.dev/g"]}}).status == 422


def test_status_can_be_written_while_an_object_goes(client: Client) -> None:
    held(client)
    client.delete(client.widgets + "/f")

    assert client.patch(client.widgets + "/f/status", {"status": {"state": "GOING"}}).body["status"] == {"state": "GOING"}


def test_precondition_that_does_not_hold_keeps_the_object(client: Client) -> None:
    made = client.make()
    for wrong in ({"uid": "other"}, {"resourceVersion": "1"}):
        assert client.delete(client.widgets + "/a", {"preconditions": wrong}).status == 409

    assert client.delete(client.widgets + "/a", {"preconditions": {"uid": made.metadata["uid"]}}).status == 200


def test_dry_run_deletes_nothing(client: Client) -> None:
    client.make()
    client.delete(client.widgets + "/a?dryRun=All")
    client.delete(client.widgets + "/a", {"dryRun": ["All"]})

    assert client.get(client.widgets + "/a").status == 200


def test_selection_can_be_deleted_at_once(client: Client) -> None:
    client.make("a", labels={"x": "y"})
    client.make("b")

    client.delete(client.widgets + "?labelSelector=x=y")

    assert [item["metadata"]["name"] for item in client.get(client.widgets).body["items"]] == ["b"]


def test_dependents_of_an_object_go_with_it(client: Client) -> None:
    owner = client.make().metadata["uid"]
    reference = {"apiVersion": "example.dev/v1alpha1", "kind": "Widget", "name": "a", "uid": owner}
    client.post(client.core + "/configmaps", {"metadata": {"name": "c", "ownerReferences": [reference]}})

    client.delete(client.widgets + "/a")

    wait_until_gone(client, client.core + "/configmaps/c")


def test_namespace_takes_along_all_that_is_in_it(client: Client) -> None:
    client.post("/api/v1/namespaces", {"metadata": {"name": "short"}})
    client.post("/api/v1/namespaces/short/configmaps", {"metadata": {"name": "c"}})

    marked = client.delete("/api/v1/namespaces/short")

    assert marked.body["status"]["phase"] == "Terminating"
    wait_until_gone(client, "/api/v1/namespaces/short")
    assert client.get("/api/v1/namespaces/short/configmaps/c").status == 404


def test_namespace_waits_for_what_is_held_and_takes_nothing_new(client: Client) -> None:
    client.post("/api/v1/namespaces", {"metadata": {"name": "slow"}})
    path = "/api/v1/namespaces/slow/configmaps"
    client.post(path, {"metadata": {"name": "c", "finalizers": ["example.dev/f"]}})
    client.delete("/api/v1/namespaces/slow")

    refused = client.post(path, {"metadata": {"name": "d"}})

    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert client.get(path + "/c").metadata["deletionTimestamp"]
    client.patch(path + "/c", {"metadata": {"finalizers": []}})
    wait_until_gone(client, "/api/v1/namespaces/slow")


def test_namespace_without_controllers_is_on_its_way_out_for_ever(bare: Client) -> None:
    bare.post(bare.core + "/configmaps", {"metadata": {"name": "c"}})
    bare.delete(f"/api/v1/namespaces/{bare.namespace}")
    refused = bare.post(bare.core + "/configmaps", {"metadata": {"name": "d"}})

    assert (refused.status, refused.body["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    assert bare.get(bare.core + "/configmaps/c").status == 200
    assert bare.get(f"/api/v1/namespaces/{bare.namespace}").body["status"]["phase"] == "Terminating"


@pytest.mark.parametrize(("policy", "left"), [("Foreground", 404), ("Orphan", 200), ("Background", 404)])
def test_dependents_of_an_object_go_as_its_deletion_says(client: Client, policy: str, left: int) -> None:
    owner = client.post(client.core + "/configmaps", {"metadata": {"name": "owner"}}).metadata["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}
    client.post(client.core + "/configmaps", {"metadata": {"name": "c", "ownerReferences": [reference]}})
    client.delete(client.core + "/configmaps/owner", {"propagationPolicy": policy})
    wait_until_gone(client, client.core + "/configmaps/owner")

    assert client.get(client.core + "/configmaps/c").status == left


def test_definition_takes_along_all_objects_of_its_kind(client: Client) -> None:
    client.post(CRDS, definition("shorts", "Short"))
    path = f"/apis/probes.dev/v1/namespaces/{client.namespace}/shorts"
    client.post(
        path, {"apiVersion": "probes.dev/v1", "kind": "Short", "metadata": {"name": "a", "finalizers": ["example.dev/f"]}}
    )

    client.delete(CRDS + "/shorts.probes.dev")

    assert client.get(CRDS + "/shorts.probes.dev").metadata["deletionTimestamp"]
    client.patch(path + "/a", {"metadata": {"finalizers": []}})
    wait_until_gone(client, CRDS + "/shorts.probes.dev")
    assert client.get(path).status == 404
