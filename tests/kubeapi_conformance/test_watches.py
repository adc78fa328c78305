"""Watches."""

from __future__ import annotations

import pytest
from probe_client import Client, definition

pytestmark = pytest.mark.long


def now(client: Client) -> str:
    return str(client.get(client.widgets).metadata["resourceVersion"])


def test_watch_tells_what_happens_from_a_version_on(client: Client) -> None:
    client.make("old")
    watch = client.watch(client.widgets, resourceVersion=now(client))

    client.make("a")
    client.patch(client.widgets + "/a", {"spec": {"size": 2}})
    client.delete(client.widgets + "/a")

    assert watch.media == "application/json"
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in watch.take(3)] == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]


def test_watch_tells_again_what_happened_since_its_version(client: Client) -> None:
    version = now(client)
    client.make("a")
    client.patch(client.widgets + "/a", {"spec": {"size": 2}})

    assert client.watch(client.widgets, resourceVersion=version).types(2) == ["ADDED", "MODIFIED"]


def test_watch_without_a_version_begins_with_all_there_is(client: Client) -> None:
    client.make("a")
    client.make("b")

    assert client.watch(client.widgets).types(2) == ["ADDED", "ADDED"]


def test_watch_can_begin_with_everything_and_say_where_it_ends(client: Client) -> None:
    client.make("a")

    events = client.watch(
        client.widgets, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"
    ).take(2)

    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_watch_of_a_forgotten_version_ends_with_an_error(client: Client) -> None:
    version = now(client)
    client.post("/_control/compact", {})

    (event,) = list(client.watch(client.widgets, resourceVersion=version))

    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_running_watch_does_not_mind_what_is_forgotten(client: Client) -> None:
    watch = client.watch(client.widgets, resourceVersion=now(client))
    client.post("/_control/compact", {})

    client.make("a")

    assert watch.types(1) == ["ADDED"]


def test_watch_sees_objects_come_into_its_selection_and_leave_it(client: Client) -> None:
    watch = client.watch(client.widgets, resourceVersion=now(client), labelSelector="a=b")

    client.make("a")
    client.patch(client.widgets + "/a", {"metadata": {"labels": {"a": "b"}}})
    client.patch(client.widgets + "/a", {"spec": {"size": 2}})
    left = client.patch(client.widgets + "/a", {"metadata": {"labels": {"a": "c"}}})
    events = watch.take(3)

    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[2]["object"]["metadata"]["labels"] == {"a": "b"}
    assert events[2]["object"]["metadata"]["resourceVersion"] == left.metadata["resourceVersion"]


def test_watch_of_one_namespace_is_silent_about_others(client: Client) -> None:
    watch = client.watch(client.widgets, resourceVersion=now(client))

    with Client(f"http://{client._netloc}") as other:
        other.make("z")
    client.make("a")

    assert watch.take(1)[0]["object"]["metadata"]["name"] == "a"


def test_watch_ends_after_its_time(client: Client) -> None:
    assert list(client.watch(client.widgets, resourceVersion=now(client), timeoutSeconds=1)) == []


def test_watches_can_be_cut(client: Client) -> None:
    watch = client.watch(client.widgets, resourceVersion=now(client), timeoutSeconds=60)

    client.post("/_control/watches/cut", {})

    assert list(watch) == []


def test_watch_of_a_table_shows_a_row_for_each_event(client: Client) -> None:
    watch = client.watch(
        client.widgets, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", resourceVersion=now(client)
    )

    client.make("a")
    client.make("b")
    first, second = watch.take(2)

    assert [event["object"]["rows"][0]["cells"][0] for event in (first, second)] == ["a", "b"]
    assert (bool(first["object"]["columnDefinitions"]), second["object"]["columnDefinitions"]) == (True, None)


def test_watch_ends_when_its_kind_is_served_no_more(client: Client) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    client.post(crds, definition("watcheds", "Watched"))
    watch = client.watch(f"/apis/probes.dev/v1/namespaces/{client.namespace}/watcheds", timeoutSeconds=60)

    client.delete(crds + "/watcheds.probes.dev")

    assert list(watch) == []


def test_quiet_watch_is_bookmarked(quick_bookmarks: Client) -> None:
    watch = quick_bookmarks.watch(quick_bookmarks.core + "/configmaps", allowWatchBookmarks="true")

    first, second = watch.take(2)

    assert (first["type"], second["type"]) == ("BOOKMARK", "BOOKMARK")
    assert first["object"]["kind"] == "ConfigMap"
