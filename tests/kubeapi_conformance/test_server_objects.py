"""Creating, reading, changing objects."""

from __future__ import annotations

import pytest
from probe_client import APPLY, JSON, Client

pytestmark = pytest.mark.long


def test_created_object_gets_all_that_a_server_gives(client: Client) -> None:
    metadata = client.make().metadata

    assert metadata["namespace"] == client.namespace
    assert metadata["generation"] == 1
    assert metadata.keys() >= {"uid", "resourceVersion", "creationTimestamp", "managedFields"}


def test_status_is_not_taken_at_creation(client: Client) -> None:
    body = {"apiVersion": "example.dev/v1alpha1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"id": "abc"}}

    assert "status" not in client.post(client.widgets, body | {"status": {"state": "X"}}).body


def test_generated_name_starts_as_asked(client: Client) -> None:
    made = client.make("", generateName="gen-")

    assert made.metadata["name"].startswith("gen-")
    assert len(made.metadata["name"]) == len("gen-") + 5


def test_second_object_of_the_same_name_is_refused(client: Client) -> None:
    client.make()

    assert client.make(status=409).reason == "AlreadyExists"


def test_dry_run_leaves_nothing(client: Client) -> None:
    before = client.get(client.widgets).metadata["resourceVersion"]

    client.make(path=client.widgets + "?dryRun=All")

    assert client.get(client.widgets).body["items"] == []
    assert client.get(client.widgets).metadata["resourceVersion"] == before


@pytest.mark.parametrize(
    ("strictness", "status", "warned"), [("Strict", 400, False), ("Warn", 201, True), ("Ignore", 201, False)]
)
def test_unknown_fields_are_treated_as_asked(client: Client, strictness: str, status: int, warned: bool) -> None:
    made = client.make(path=f"{client.widgets}?fieldValidation={strictness}", status=status, spec={"nope": 1})

    assert ("Warning" in made.headers) == warned
    assert "nope" not in made.body.get("spec", {})


def test_field_that_stands_twice_is_refused_where_that_matters(client: Client) -> None:
    raw = b'{"apiVersion": "example.dev/v1alpha1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"id": "a", "id": "b"}}'

    answer = client.ask("POST", client.widgets + "?fieldValidation=Strict", raw, {"Content-Type": "application/json"})

    assert answer.status == 400
    assert 'duplicate field "id"' in answer.body["message"]


def test_generation_counts_changes_of_what_is_wanted_only(client: Client) -> None:
    client.make()
    client.patch(client.widgets + "/a", {"metadata": {"labels": {"a": "b"}}})
    client.patch(client.widgets + "/a/status", {"status": {"state": "X"}})

    changed = client.patch(client.widgets + "/a", {"spec": {"size": 2}})

    assert changed.metadata["generation"] == 2


def test_change_of_nothing_is_no_change(client: Client) -> None:
    made = client.make()

    same = client.patch(client.widgets + "/a", {"spec": {"size": 1}})

    assert same.metadata["resourceVersion"] == made.metadata["resourceVersion"]


def test_status_door_lets_nothing_else_in(client: Client) -> None:
    client.make()
    patch = {"status": {"state": "X"}, "spec": {"size": 9}, "metadata": {"labels": {"a": "b"}}}

    changed = client.patch(client.widgets + "/a/status", patch)

    assert changed.body["status"] == {"state": "X"}
    assert changed.body["spec"]["size"] == 1
    assert "labels" not in changed.metadata


def test_main_door_keeps_the_status(client: Client) -> None:
    client.make()
    kept = client.patch(client.widgets + "/a/status", {"status": {"state": "X"}}).body

    changed = client.put(client.widgets + "/a", kept | {"status": {"state": "Y"}, "spec": {"id": "abc", "size": 3}})

    assert changed.body["status"] == {"state": "X"}
    assert changed.body["spec"]["size"] == 3


def test_status_can_be_replaced(client: Client) -> None:
    made = client.make().body

    changed = client.put(client.widgets + "/a/status", made | {"status": {"state": "X"}, "spec": {"id": "abc", "size": 7}})

    assert (changed.body["status"], changed.body["spec"]["size"]) == ({"state": "X"}, 1)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_write_on_an_old_version_is_refused(client: Client, method: str) -> None:
    old = client.make().body
    client.patch(client.widgets + "/a", {"spec": {"size": 2}})

    answer = client.put(client.widgets + "/a", old) if method == "PUT" else client.patch(client.widgets + "/a", old)

    assert (answer.status, answer.reason) == (409, "Conflict")


@pytest.mark.parametrize("path", ["{widgets}", "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"])
def test_put_with_a_gone_objects_uid_is_a_conflict(client: Client, path: str) -> None:
    path = path.format(widgets=client.widgets, namespace=client.namespace)
    made = client.make(path=path).body if "widgets" in path else client.post(path, {"metadata": {"name": "a"}}).body
    client.delete(path + "/a")

    answer = client.put(path + "/a", made)

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert f"UID in precondition: {made['metadata']['uid']}, UID in object meta: " in answer.body["message"]


def test_lease_that_two_take_goes_to_one(client: Client) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{client.namespace}/leases"
    lease = client.post(leases, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}).body

    taken = [client.put(leases + "/l", lease | {"spec": {"holderIdentity": who}}).status for who in ("b", "c")]

    assert taken == [200, 409]
    assert client.get(leases + "/l").body["spec"]["holderIdentity"] == "b"


def test_json_patch_whose_test_fails_changes_nothing(client: Client) -> None:
    version = client.make().metadata["resourceVersion"]
    steps = [{"op": "test", "path": "/metadata/resourceVersion", "value": "1"}, {"op": "add", "path": "/spec/size", "value": 5}]

    answer = client.patch(client.widgets + "/a", steps, JSON)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert client.get(client.widgets + "/a").metadata["resourceVersion"] == version


def test_json_patch_whose_test_holds_is_done(client: Client) -> None:
    version = client.make().metadata["resourceVersion"]
    steps = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.dev/f"]},
    ]

    assert client.patch(client.widgets + "/a", steps, JSON).metadata["finalizers"] == ["example.dev/f"]


def test_secret_takes_text_and_gives_base64(client: Client) -> None:
    made = client.post(client.core + "/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}})

    assert made.body["data"] == {"k": "dg=="}
    assert made.body["type"] == "Opaque"
    assert "stringData" not in made.body


def test_secret_of_no_base64_is_refused(client: Client) -> None:
    assert client.post(client.core + "/secrets", {"metadata": {"name": "s"}, "data": {"k": "?"}}).status == 400


def test_immutable_secret_stays_as_it_is(client: Client) -> None:
    client.post(client.core + "/secrets", {"metadata": {"name": "s"}, "data": {"k": "dg=="}, "immutable": True})

    assert client.patch(client.core + "/secrets/s", {"data": {"k": "dGg="}}).status == 422


def test_event_of_another_namespace_is_refused(client: Client) -> None:
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Widget", "name": "a", "namespace": "other"}}

    assert client.post(client.core + "/events", event).status == 422


def test_event_is_the_same_in_both_of_its_groups(client: Client) -> None:
    involved = {"kind": "Widget", "name": "a", "namespace": client.namespace}
    client.post(client.core + "/events", {"metadata": {"name": "e"}, "involvedObject": involved, "message": "m", "reason": "R"})

    shown = client.get(f"/apis/events.k8s.io/v1/namespaces/{client.namespace}/events/e").body

    assert (shown["regarding"], shown["note"], shown["apiVersion"]) == (involved, "m", "events.k8s.io/v1")


def test_namespace_that_is_not_there_takes_nothing(client: Client) -> None:
    answer = client.post("/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "c"}})

    assert (answer.status, answer.body["message"]) == (404, 'namespaces "nowhere" not found')


def test_namespaced_resource_cannot_be_made_without_a_namespace(client: Client) -> None:
    assert client.post("/apis/example.dev/v1alpha1/widgets", {}).status == 404


def test_namespace_in_the_body_must_be_that_of_the_path(client: Client) -> None:
    assert client.make(status=400, namespace="other").reason == "BadRequest"


def test_annotations_have_a_limit(client: Client) -> None:
    assert client.make(status=422, annotations={"a": "x" * 262144}).reason == "Invalid"


def test_labels_have_a_form(client: Client) -> None:
    assert client.make(status=422, labels={"a": "no spaces"}).body["details"]["causes"][0]["field"] == "metadata.labels"


def test_body_beyond_three_megabytes_is_refused(client: Client) -> None:
    assert client.make(status=413, annotations={"a": "x" * 3_200_000}).reason == "RequestEntityTooLarge"


def test_strategic_patch_merges_what_has_a_key(client: Client) -> None:
    containers = [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]
    client.post(client.core + "/pods", {"metadata": {"name": "p"}, "spec": {"containers": containers}})
    patch = {"spec": {"containers": [{"name": "b", "image": "2"}, {"name": "a", "$patch": "delete"}]}}

    changed = client.patch(client.core + "/pods/p", patch, "application/strategic-merge-patch+json")

    assert [(one["name"], one["image"]) for one in changed.body["spec"]["containers"]] == [("b", "2")]


def test_unknown_kind_of_patch_is_refused_with_the_known(client: Client) -> None:
    client.make()

    answer = client.patch(client.widgets + "/a", {}, "text/plain")

    assert answer.status == 415
    assert APPLY in answer.body["message"]


def test_patch_with_unknown_fields_is_refused_where_that_is_asked(client: Client) -> None:
    client.make()

    answer = client.patch(client.widgets + "/a?fieldValidation=Strict", {"spec": {"nope": 1}})

    assert answer.status == 422
    assert 'unknown field "spec.nope"' in answer.body["message"]
