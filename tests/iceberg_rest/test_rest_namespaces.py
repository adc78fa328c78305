"""Namespaces as clients of Iceberg REST create, list, change and drop them."""

from __future__ import annotations

import pytest
from rest_caller import RestCaller


def test_namespace_that_was_created_is_read_with_its_properties(rest: RestCaller, warehouse: str) -> None:
    created = rest.post("namespaces", {"namespace": ["sales"], "properties": {"owner": "ann"}})

    properties = {"owner": "ann", "location": f"{warehouse}/sales"}
    assert (created.status, created.json) == (200, {"namespace": ["sales"], "properties": properties})
    assert rest.get("namespaces/sales").json == created.json
    assert rest.head("namespaces/sales").status == 204


def test_namespace_is_created_once(sales: RestCaller) -> None:
    again = sales.post("namespaces", {"namespace": ["sales"]})

    assert again.error == (409, "AlreadyExistsException")
    assert again.message.startswith("Namespace already exists")


def test_missing_namespace_is_told_in_the_words_of_iceberg(rest: RestCaller) -> None:
    missing = rest.get("namespaces/db%1Fsales")

    assert missing.error == (404, "NoSuchNamespaceException")
    assert missing.message == "Namespace does not exist: db.sales"
    assert rest.head("namespaces/db").status == 404


def test_names_are_decoded_once(rest: RestCaller) -> None:
    for levels in (["a/b"], ["a%2Fb"], ["a+b"], [".."], ["grün", "a.b"]):
        assert rest.post("namespaces", {"namespace": levels}).status == 200

    for segment in ("a%2Fb", "a%252Fb", "a%2Bb", "%2E%2E", "gr%C3%BCn%1Fa.b"):
        assert rest.head(f"namespaces/{segment}").status == 204


def test_namespaces_are_listed_level_by_level(rest: RestCaller) -> None:
    rest.post("namespaces", {"namespace": ["db", "eu", "deep"]})
    rest.post("namespaces", {"namespace": ["shop"]})

    assert rest.get("namespaces").json == {"namespaces": [["db"], ["shop"]], "next-page-token": None}
    assert rest.get("namespaces", parent="").json["namespaces"] == [["db"], ["shop"]]
    assert rest.get("namespaces", parent="db\x1feu").json["namespaces"] == [["db", "eu", "deep"]]
    assert rest.get("namespaces", parent="nowhere").error == (404, "NoSuchNamespaceException")


@pytest.mark.parametrize("first", [{"pageToken": "", "pageSize": "2"}, {"pageSize": "2"}])
def test_pages_follow_one_another(rest: RestCaller, first: dict[str, str]) -> None:
    for name in "abcde":
        rest.post("namespaces", {"namespace": [name]})
    page = rest.get("namespaces", **first).json
    pages = [page["namespaces"]]

    while page["next-page-token"]:
        page = rest.get("namespaces", pageToken=page["next-page-token"], pageSize="2").json
        pages.append(page["namespaces"])

    assert pages == [[["a"], ["b"]], [["c"], ["d"]], [["e"]]]


def test_page_token_of_another_listing_is_refused(rest: RestCaller) -> None:
    for levels in (["a", "x"], ["a", "y"], ["b"]):
        rest.post("namespaces", {"namespace": levels})
    token = rest.get("namespaces", pageSize="1").json["next-page-token"]

    assert rest.get("namespaces", parent="a", pageToken=token).error == (400, "BadRequestException")
    assert rest.get("namespaces", pageToken="nonsense").error == (400, "BadRequestException")


def test_properties_are_set_and_removed(rest: RestCaller) -> None:
    rest.post("namespaces", {"namespace": ["sales"], "properties": {"owner": "ann", "old": "1"}})

    changed = rest.post("namespaces/sales/properties", {"removals": ["old", "none"], "updates": {"owner": "bob"}})

    assert changed.json == {"updated": ["owner"], "removed": ["old"], "missing": ["none"]}
    assert rest.get("namespaces/sales").json["properties"].items() >= {"owner": "bob"}.items()
    assert "old" not in rest.get("namespaces/sales").json["properties"]


def test_location_is_computed_below_the_nearest_namespace_that_has_one(rest: RestCaller, warehouse: str) -> None:
    rest.post("namespaces", {"namespace": ["db"], "properties": {"location": f"{warehouse}/elsewhere/"}})
    created = rest.post("namespaces", {"namespace": ["db", "e u", "deep"]})
    rest.post("namespaces", {"namespace": ["db", "own"], "properties": {"location": f"{warehouse}/own"}})

    assert created.json["properties"] == {"location": f"{warehouse}/elsewhere/e_u/deep"}
    assert rest.get("namespaces/db%1Fe%20u").json["properties"] == {"location": f"{warehouse}/elsewhere/e_u"}
    assert rest.get("namespaces/db").json["properties"] == {"location": f"{warehouse}/elsewhere/"}
    assert rest.get("namespaces/db%1Fown").json["properties"] == {"location": f"{warehouse}/own"}


def test_computed_location_is_not_stored(sales: RestCaller, warehouse: str) -> None:
    removed = sales.post("namespaces/sales/properties", {"removals": ["location"]})
    stored = sales.post("namespaces/sales/properties", {"updates": {"location": f"{warehouse}/sales"}})

    assert removed.json == {"updated": [], "removed": [], "missing": ["location"]}
    assert stored.json["updated"] == ["location"]
    assert sales.post("namespaces/sales/properties", {"removals": ["location"]}).json["removed"] == ["location"]


def test_table_lies_where_its_namespace_shows(sales: RestCaller) -> None:
    place = sales.get("namespaces/sales").json["properties"]["location"]
    schema = {"type": "struct", "fields": []}

    chosen = sales.post("namespaces/sales/tables", {"name": "of_server", "schema": schema})
    derived = sales.post(
        "namespaces/sales/tables", {"name": "of_client", "schema": schema, "location": f"{place}/of_client-1a"}
    )

    assert chosen.json["metadata"]["location"].startswith(f"{place}/of_server_")
    assert derived.json["metadata"]["location"] == f"{place}/of_client-1a"


def test_property_is_not_set_and_removed_at_once(sales: RestCaller) -> None:
    clash = sales.post("namespaces/sales/properties", {"removals": ["owner"], "updates": {"owner": "bob"}})

    assert clash.error == (422, "UnprocessableEntityException")
    assert "Cannot remove and update the same key: owner" in clash.message


def test_namespace_with_something_in_it_stays(rest: RestCaller) -> None:
    rest.post("namespaces", {"namespace": ["db", "eu"]})

    full = rest.delete("namespaces/db")

    assert full.error == (409, "NamespaceNotEmptyException") and "is not empty" in full.message
    assert rest.delete("namespaces/db%1Feu").status == rest.delete("namespaces/db").status == 204
    assert rest.delete("namespaces/db").error == (404, "NoSuchNamespaceException")


def test_parent_that_pyiceberg_encodes_twice_is_understood(rest: RestCaller) -> None:
    rest.post("namespaces", {"namespace": ["a/b", "c"]})
    rest.post("namespaces", {"namespace": ["100%25", "d"]})
    agent = {"user-agent": "PyIceberg/0.12.0"}

    assert rest.get("namespaces", parent="a%2Fb", headers=agent).json["namespaces"] == [["a/b", "c"]]
    assert rest.get("namespaces", parent="100%25", headers=agent).json["namespaces"] == [["100%25", "d"]]
    assert rest.get("namespaces", parent="a%2Fb").error == (404, "NoSuchNamespaceException")
