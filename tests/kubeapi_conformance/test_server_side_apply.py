"""Server-side apply: who manages what, who wins, and what goes when it is no longer applied."""

from __future__ import annotations

from typing import Any

import pytest
from probe_client import Client

pytestmark = pytest.mark.long


def conditions(**statuses: str) -> list[dict[str, str]]:
    return [{"type": name, "status": status} for name, status in statuses.items()]


def owners(body: dict[str, Any]) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in body["metadata"]["managedFields"]}


def test_applied_object_is_made_and_owned(client: Client) -> None:
    made = client.apply(client.widgets + "/a", {"spec": {"id": "abc", "size": 2}})

    assert made.status == 201
    assert owners(made.body) == {"me": {"f:spec": {"f:id": {}, "f:size": {}}}}
    assert made.body["spec"]["limit"] == 10


def test_same_applied_again_is_no_change(client: Client) -> None:
    made = client.apply(client.widgets + "/a", {"spec": {"id": "abc"}})

    again = client.apply(client.widgets + "/a", {"spec": {"id": "abc"}})

    assert (again.status, again.metadata) == (200, made.metadata)


def test_field_that_is_no_longer_applied_goes(client: Client) -> None:
    client.apply(
        client.widgets + "/a", {"spec": {"id": "abc", "extra": {"a": "1", "b": "2"}}, "metadata": {"labels": {"x": "y"}}}
    )

    left = client.apply(client.widgets + "/a", {"spec": {"id": "abc", "extra": {"b": "2"}}})

    assert left.body["spec"]["extra"] == {"b": "2"}
    assert "labels" not in left.metadata


def test_field_that_another_manager_applies_too_stays(client: Client) -> None:
    client.apply(client.widgets + "/a", {"spec": {"id": "abc", "size": 2}}, "one")
    client.apply(client.widgets + "/a", {"spec": {"id": "abc", "size": 2}}, "two")

    left = client.apply(client.widgets + "/a", {"spec": {"id": "abc"}}, "one")

    assert left.body["spec"]["size"] == 2


def test_field_of_another_manager_is_a_conflict_until_forced(client: Client) -> None:
    client.apply(client.widgets + "/a", {"spec": {"id": "abc", "size": 2}}, "one")
    wanted = {"spec": {"id": "abc", "size": 3}}

    beaten = client.apply(client.widgets + "/a", wanted, "two")
    taken = client.apply(client.widgets + "/a", wanted, "two", force=True)

    assert (beaten.status, beaten.body["details"]["causes"][0]["field"]) == (409, ".spec.size")
    assert owners(taken.body)["one"] == {"f:spec": {"f:id": {}}}


def test_conflicts_name_every_field_and_who_has_it(client: Client) -> None:
    client.apply(client.widgets + "/a", {"spec": {"id": "abc", "size": 2}}, "one")
    client.patch(client.widgets + "/a?fieldManager=two", {"spec": {"limit": 20}})

    beaten = client.apply(client.widgets + "/a", {"spec": {"id": "abc", "size": 3, "limit": 30}}, "me")

    assert beaten.body["message"] == (
        'Apply failed with 2 conflicts: conflicts with "one":\n- .spec.size\n'
        'conflicts with "two" using example.dev/v1alpha1:\n- .spec.limit'
    )


def test_field_belongs_to_whoever_writes_it(client: Client) -> None:
    client.apply(client.widgets + "/a", {"spec": {"id": "abc", "size": 2}}, "one")

    changed = client.patch(client.widgets + "/a?fieldManager=two", {"spec": {"size": 3}})

    assert owners(changed.body) == {"one": {"f:spec": {"f:id": {}}}, "two": {"f:spec": {"f:size": {}}}}


def test_status_is_applied_through_its_own_door(client: Client) -> None:
    client.make()

    applied = client.apply(client.widgets + "/a/status", {"status": {"state": "X"}, "spec": {"size": 9}})

    assert (applied.body["status"], applied.body["spec"]["size"]) == ({"state": "X"}, 1)
    assert owners(applied.body)["me"] == {"f:status": {"f:state": {}}}


def test_two_managers_keep_their_own_conditions_in_one_list(client: Client) -> None:
    client.make()
    client.apply(client.widgets + "/a/status", {"status": {"conditions": conditions(Ready="False", Other="True")}}, "one")
    client.apply(client.widgets + "/a/status", {"status": {"conditions": conditions(Mine="True")}}, "two")

    left = client.apply(client.widgets + "/a/status", {"status": {"conditions": conditions(Ready="True")}}, "one")

    assert left.body["status"]["conditions"] == conditions(Ready="True", Mine="True")


def test_finalizers_of_two_managers_stand_side_by_side(client: Client) -> None:
    client.make(finalizers=["example.dev/theirs"])

    both = client.apply(client.widgets + "/a", {"metadata": {"finalizers": ["example.dev/ours"]}})
    left = client.apply(client.widgets + "/a", {"metadata": {}})

    assert both.metadata["finalizers"] == ["example.dev/theirs", "example.dev/ours"]
    assert left.metadata["finalizers"] == ["example.dev/theirs"]


def test_list_without_keys_is_owned_as_a_whole(client: Client) -> None:
    client.make()
    path = "/apis/apps/v1/namespaces/" + client.namespace + "/deployments/d?fieldManager="
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    client.patch(path + "one", body | {"spec": {"args": ["a"]}}, "application/apply-patch+yaml")

    beaten = client.patch(path + "two", body | {"spec": {"args": ["b"]}}, "application/apply-patch+yaml")

    assert (beaten.status, beaten.body["details"]["causes"][0]["field"]) == (409, ".spec.args")


def test_field_that_no_schema_declares_cannot_be_applied(client: Client) -> None:
    refused = client.apply(client.widgets + "/a", {"spec": {"id": "abc", "nope": 1}})

    assert refused.status == 500
    assert ".spec.nope: field not declared in schema" in refused.body["message"]


def test_dry_run_of_an_apply_shows_what_would_come(client: Client) -> None:
    client.make()

    shown = client.apply(client.widgets + "/a?dryRun=All&x=", {"spec": {"id": "abc", "size": 5}}, "me")
    shown = client.ask(
        "PATCH",
        client.widgets + "/a?dryRun=All&force=true&fieldManager=me",
        {"apiVersion": "example.dev/v1alpha1", "kind": "Widget", "spec": {"id": "abc", "size": 5}},
        {"Content-Type": "application/apply-patch+yaml"},
    )

    assert shown.body["spec"]["size"] == 5
    assert client.get(client.widgets + "/a").body["spec"]["size"] == 1


def test_apply_on_an_old_version_is_refused(client: Client) -> None:
    client.make()

    refused = client.apply(client.widgets + "/a", {"metadata": {"resourceVersion": "1"}, "spec": {"id": "abc"}}, force=True)

    assert (refused.status, refused.reason) == (409, "Conflict")


def test_managed_fields_can_be_wiped(client: Client) -> None:
    client.make()

    wiped = client.patch(client.widgets + "/a", {"metadata": {"managedFields": [{}]}})

    assert "managedFields" not in wiped.metadata
