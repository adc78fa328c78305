"""Lists: their pages, and what is selected."""

from __future__ import annotations

import pytest
from probe_client import GROUP, Client, definition

pytestmark = pytest.mark.long

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@pytest.fixture
def three(client: Client) -> Client:
    """Widgets a, b and c; two of them in team x."""
    for name, labels in (("a", {"team": "x"}), ("b", {"team": "x", "old": ""}), ("c", {})):
        client.make(name, labels=labels)
    return client


def names(client: Client, query: str, path: str = "") -> list[str]:
    answer = client.get(f"{path or client.widgets}?{query}")
    assert answer.status == 200, answer.body
    return [item["metadata"]["name"] for item in answer.body["items"]]


def test_list_says_what_it_is_and_of_which_version(three: Client) -> None:
    body = three.get(three.widgets).body

    assert (body["kind"], body["apiVersion"]) == ("WidgetList", "example.dev/v1alpha1")
    assert int(body["metadata"]["resourceVersion"]) >= int(body["items"][-1]["metadata"]["resourceVersion"])


def test_list_is_in_the_order_of_its_paths(client: Client) -> None:
    for name in ("order", "order-two"):
        client.post("/api/v1/namespaces", {"metadata": {"name": name}})
        client.post(f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "c", "labels": {"order": "x"}}})
    first = client.get("/api/v1/configmaps?labelSelector=order&limit=1").body
    rest = client.get(f"/api/v1/configmaps?labelSelector=order&limit=1&continue={first['metadata']['continue']}").body

    assert [page["items"][0]["metadata"]["namespace"] for page in (first, rest)] == ["order-two", "order"]  # "-" before "/"


def test_items_of_built_in_kinds_do_not_name_themselves(client: Client) -> None:
    client.post(client.core + "/configmaps", {"metadata": {"name": "c"}})

    (item,) = client.get(client.core + "/configmaps").body["items"]

    assert not item.keys() & {"kind", "apiVersion"}


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("team=x", ["a", "b"]),
        ("team==x,old", ["b"]),
        ("team!=x", ["c"]),
        ("!team", ["c"]),
        ("team%20in%20(x,y)", ["a", "b"]),
        ("team%20notin%20(x)", ["c"]),
        ("team=x,!old", ["a"]),
    ],
)
def test_labels_select(three: Client, selector: str, found: list[str]) -> None:
    assert names(three, f"labelSelector={selector}") == found


@pytest.mark.parametrize(("selector", "found"), [("metadata.name=b", ["b"]), ("metadata.name!=b", ["a", "c"])])
def test_fields_select(three: Client, selector: str, found: list[str]) -> None:
    assert names(three, f"fieldSelector={selector}") == found


def test_selector_that_is_none_is_refused(three: Client) -> None:
    assert three.get(three.widgets + "?labelSelector=a=b=c").status == 400


def test_events_are_selected_by_what_they_are_about(client: Client) -> None:
    for name, about in (("e1", "a"), ("e2", "b")):
        involved = {"kind": "Widget", "name": about, "namespace": client.namespace}
        client.post(
            client.core + "/events", {"metadata": {"name": name}, "involvedObject": involved, "reason": "R", "type": "Normal"}
        )

    found = names(client, "fieldSelector=involvedObject.name=b,involvedObject.kind=Widget,reason=R", client.core + "/events")

    assert found == ["e2"]


def test_defined_field_selects(client: Client) -> None:
    crd = definition("gadgets", "Gadget")
    crd["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": ".spec.size"}]
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    path = f"/apis/probes.dev/v1/namespaces/{client.namespace}/gadgets"
    for size in (1, 2):
        body = {"apiVersion": "probes.dev/v1", "kind": "Gadget", "metadata": {"name": f"g{size}"}, "spec": {"size": size}}
        assert client.post(path, body).status == 201

    assert names(client, "fieldSelector=spec.size=2", path) == ["g2"]


def test_pages_are_of_one_version_though_things_change_meanwhile(three: Client) -> None:
    first = three.get(three.widgets + "?limit=2")
    three.delete(three.widgets + "/c")
    three.make("d")

    second = three.get(f"{three.widgets}?limit=2&continue={first.metadata['continue']}")

    assert first.metadata["remainingItemCount"] == 1
    assert [item["metadata"]["name"] for item in second.body["items"]] == ["c"]
    assert second.metadata["resourceVersion"] == first.metadata["resourceVersion"]


def test_page_of_a_version_that_is_forgotten_is_gone(three: Client) -> None:
    token = three.get(three.widgets + "?limit=1").metadata["continue"]
    three.post("/_control/compact", {})

    answer = three.get(f"{three.widgets}?limit=1&continue={token}")

    assert (answer.status, answer.reason) == (410, "Expired")


def test_all_namespaces_are_listed_at_once(three: Client) -> None:
    with Client(f"http://{three._netloc}") as other:
        other.make("z")

        found = {
            (item["metadata"]["namespace"], item["metadata"]["name"]) for item in three.get(f"{GROUP}/widgets").body["items"]
        }

        assert found >= {(three.namespace, "a"), (other.namespace, "z")}


def test_version_of_the_future_is_waited_for_in_vain(three: Client) -> None:
    answer = three.get(three.widgets + "?resourceVersion=99999999")

    assert (answer.status, answer.reason) == (504, "Timeout")


def test_table_shows_the_columns_of_the_definition(three: Client) -> None:
    table = three.get(three.widgets, accept=TABLE).body

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "State", "Ready", "Next", "Age"]
    assert [row["cells"][0] for row in table["rows"]] == ["a", "b", "c"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_metadata_can_be_had_alone(three: Client) -> None:
    shown = three.get(three.widgets + "/a", accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").body

    assert shown.keys() == {"apiVersion", "kind", "metadata"}


def test_list_that_cannot_be_given_is_refused(three: Client) -> None:
    assert three.get(three.widgets, accept="text/html").status == 406
