"""Tables as clients of Iceberg REST create, load, change, rename and drop them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from rest_caller import RestAnswer, RestCaller

from headwater.catalogs import Catalog, ContentKey, IcebergTable, Put

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
SET_OWNER = {"action": "set-properties", "updates": {"owner": "ann"}}


def create(rest: RestCaller, name: str = "orders", **fields: Any) -> RestAnswer:
    return rest.post("namespaces/sales/tables", {"name": name, "schema": SCHEMA, **fields})


def commit(rest: RestCaller, *updates: Any, requirements: Any = (), name: str = "orders") -> RestAnswer:
    return rest.post(f"namespaces/sales/tables/{name}", {"requirements": list(requirements), "updates": list(updates)})


def file_of(url: str) -> Path:
    return Path(unquote(urlsplit(url).path))


def test_table_that_was_created_is_loaded(sales: RestCaller) -> None:
    created = create(sales, properties={"owner": "ann"})

    assert created.status == 200 and created.json["config"] == {}
    assert created.json["metadata"]["properties"] == {"owner": "ann"}
    assert sales.get("namespaces/sales/tables/orders").json == created.json
    assert json.loads(file_of(created.json["metadata-location"]).read_bytes()) == created.json["metadata"]


def test_table_is_created_once(sales: RestCaller) -> None:
    create(sales)
    again = create(sales)

    assert again.error == (409, "AlreadyExistsException")
    assert again.message.startswith("Table already exists: sales.orders")


def test_table_needs_its_namespace(rest: RestCaller) -> None:
    assert create(rest).error == (404, "NoSuchNamespaceException")


def test_missing_table_is_told_in_the_words_of_iceberg(sales: RestCaller) -> None:
    missing = sales.get("namespaces/sales/tables/orders")

    assert missing.error == (404, "NoSuchTableException")
    assert missing.message == "Table does not exist: sales.orders"
    assert sales.head("namespaces/sales/tables/orders").status == 404


def test_tables_are_listed_in_pages(sales: RestCaller) -> None:
    for name in ("a", "b", "c"):
        create(sales, name)
    first = sales.get("namespaces/sales/tables", pageToken="", pageSize="2").json
    last = sales.get("namespaces/sales/tables", pageToken=first["next-page-token"]).json

    assert [row["name"] for row in first["identifiers"]] == ["a", "b"]
    assert last == {"identifiers": [{"namespace": ["sales"], "name": "c"}], "next-page-token": None}
    assert sales.get("namespaces/none/tables").error == (404, "NoSuchNamespaceException")


def test_staged_table_exists_after_its_commit(sales: RestCaller) -> None:
    staged = create(sales, **{"stage-create": True}).json
    assert "metadata-location" not in staged and sales.head("namespaces/sales/tables/orders").status == 404
    metadata = staged["metadata"]

    committed = commit(
        sales,
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": metadata["format-version"]},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": metadata["last-column-id"]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        requirements=[{"type": "assert-create"}],
    )

    assert committed.status == 200, committed.content
    assert committed.json["metadata"]["table-uuid"] == metadata["table-uuid"]
    assert sales.get("namespaces/sales/tables/orders").json["metadata"] == committed.json["metadata"]


def test_new_table_has_folders_for_its_files(sales: RestCaller) -> None:
    created, staged = create(sales).json, create(sales, "staged", **{"stage-create": True}).json

    for table in (created, staged):
        place = file_of(table["metadata"]["location"])
        assert (place / "data").is_dir() and (place / "metadata").is_dir()


def test_commit_changes_the_table(sales: RestCaller) -> None:
    before = create(sales).json

    committed = commit(sales, SET_OWNER, requirements=[{"type": "assert-table-uuid", "uuid": before["metadata"]["table-uuid"]}])

    assert set(committed.json) == {"metadata", "metadata-location"}
    assert committed.json["metadata"]["properties"] == {"owner": "ann"}
    assert committed.json["metadata-location"] != before["metadata-location"]


def test_requirement_that_fails_is_a_conflict(sales: RestCaller) -> None:
    create(sales)
    wrong = [{"type": "assert-table-uuid", "uuid": "00000000-0000-4000-8000-000000000000"}]

    refused = commit(sales, SET_OWNER, requirements=wrong)

    assert refused.error == (409, "CommitFailedException")
    assert refused.message.startswith("Requirement failed: UUID does not match")


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"updates": []}, "requirements"),
        ({"requirements": [], "updates": [{"action": "fly"}]}, "updates[0].action"),
        ({"requirements": [{"type": "assert-luck"}], "updates": []}, "requirements[0].type"),
    ],
)
def test_commit_that_is_not_understood_is_refused(sales: RestCaller, body: Any, word: str) -> None:
    create(sales)
    refused = sales.post("namespaces/sales/tables/orders", body)

    assert refused.error == (400, "BadRequestException") and word in refused.message


def test_commit_to_a_missing_table_finds_none(sales: RestCaller) -> None:
    assert commit(sales, SET_OWNER).error == (404, "NoSuchTableException")


def test_version_that_a_client_has_is_not_sent_again(sales: RestCaller) -> None:
    create(sales)
    tag = sales.get("namespaces/sales/tables/orders").headers["ETag"]
    same = sales.get("namespaces/sales/tables/orders", headers={"if-none-match": f'W/"other", {tag}'})
    commit(sales, SET_OWNER)
    newer = sales.get("namespaces/sales/tables/orders", headers={"if-none-match": tag})

    assert (same.status, same.content, same.headers["ETag"]) == (304, b"", tag)
    assert newer.status == 200 and newer.headers["ETag"] != tag


def test_tags_of_all_answers_agree(sales: RestCaller) -> None:
    created, loaded = create(sales), sales.get("namespaces/sales/tables/orders")
    committed, reloaded = commit(sales, SET_OWNER), sales.get("namespaces/sales/tables/orders")

    assert created.headers == loaded.headers and committed.headers == reloaded.headers
    assert sales.get("namespaces/sales/tables/orders", snapshots="refs").headers != reloaded.headers


def test_no_credentials_are_handed_out(sales: RestCaller) -> None:
    create(sales)

    assert sales.get("namespaces/sales/tables/orders/credentials").json == {"storage-credentials": []}
    assert sales.get("namespaces/sales/tables/none/credentials").error == (404, "NoSuchTableException")


def test_table_is_renamed_into_another_namespace(sales: RestCaller) -> None:
    create(sales)
    sales.post("namespaces", {"namespace": ["archive"]})
    source, target = {"namespace": ["sales"], "name": "orders"}, {"namespace": ["archive"], "name": "old"}

    assert sales.post("tables/rename", {"source": source, "destination": target}).status == 204
    assert sales.head("namespaces/archive/tables/old").status == 204
    assert sales.post("tables/rename", {"source": source, "destination": target}).error == (404, "NoSuchTableException")


def test_rename_needs_the_target_namespace_and_a_free_name(sales: RestCaller) -> None:
    create(sales)
    create(sales, "taken")
    source = {"namespace": ["sales"], "name": "orders"}

    nowhere = sales.post("tables/rename", {"source": source, "destination": {"namespace": ["none"], "name": "t"}})
    taken = sales.post("tables/rename", {"source": source, "destination": {"namespace": ["sales"], "name": "taken"}})

    assert nowhere.error == (404, "NoSuchNamespaceException")
    assert taken.error == (409, "AlreadyExistsException")
    assert taken.message == "Cannot rename sales.orders to sales.taken. Table already exists"


def test_dropped_table_is_gone_and_can_be_registered_again(sales: RestCaller) -> None:
    created = create(sales).json

    assert sales.delete("namespaces/sales/tables/orders", purgeRequested="False").status == 204
    assert sales.delete("namespaces/sales/tables/orders").error == (404, "NoSuchTableException")

    wish = {"name": "back", "metadata-location": created["metadata-location"]}
    back = sales.post("namespaces/sales/register", wish)
    assert back.json["metadata"] == created["metadata"]
    assert sales.post("namespaces/sales/register", wish).error == (409, "AlreadyExistsException")
    assert sales.post("namespaces/sales/register", wish | {"overwrite": True}).status == 200


def test_null_parent_is_left_out_of_what_is_registered_and_committed(sales: RestCaller) -> None:
    created = create(sales).json
    update = {
        "action": "add-snapshot",
        "snapshot": {
            "snapshot-id": 1,
            "parent-snapshot-id": None,
            "sequence-number": 1,
            "timestamp-ms": created["metadata"]["last-updated-ms"],
            "manifest-list": f"{created['metadata']['location']}/metadata/1.avro",
            "summary": {"operation": "append"},
        },
    }
    committed = sales.post("namespaces/sales/tables/orders", {"requirements": [], "updates": [update]}).json
    file = file_of(committed["metadata-location"])
    assert "parent-snapshot-id" not in file.read_text("utf-8")

    [snapshot] = committed["metadata"]["snapshots"]
    written = {**committed["metadata"], "snapshots": [{**snapshot, "parent-snapshot-id": None}]}
    file.with_name("00009.metadata.json").write_text(json.dumps(written, indent=1), "utf-8")
    place = file.with_name("00009.metadata.json").as_uri()
    wish = {"name": "orders", "metadata-location": place, "overwrite": True}
    assert sales.post("namespaces/sales/register", wish).status == 200
    assert sales.get("namespaces/sales/tables/orders").json["metadata"] == committed["metadata"]


def test_register_reads_no_file_outside_of_the_warehouse(sales: RestCaller) -> None:
    refused = sales.post("namespaces/sales/register", {"name": "t", "metadata-location": "file:///etc/passwd"})

    assert refused.error == (400, "BadRequestException") and "root:" not in refused.message


@pytest.mark.parametrize("content", [None, b"", b"not json", b"[1]", b'{"format-version": 2}', b"\x1f\x8bbroken"])
def test_register_refuses_what_is_no_metadata(sales: RestCaller, warehouse: str, content: bytes | None) -> None:
    place = f"{warehouse}/t/metadata/1.metadata.json"
    file_of(place).parent.mkdir(parents=True)
    if content is not None:
        file_of(place).write_bytes(content)

    refused = sales.post("namespaces/sales/register", {"name": "t", "metadata-location": place})

    assert refused.error == (400, "BadRequestException") and place in refused.message
    assert sales.head("namespaces/sales/tables/t").status == 404


def test_table_without_its_metadata_file_is_listed_and_dropped(sales: RestCaller, lake: Catalog) -> None:
    gone = file_of(create(sales).json["metadata-location"])
    lake.commit(
        None, [Put(ContentKey.of("sales", "lost"), IcebergTable(metadata_location=gone.with_name("lost.json").as_uri()))]
    )

    lost = sales.get("namespaces/sales/tables/lost")
    assert lost.status == 500 and "lost.json does not exist" in lost.message
    assert [row["name"] for row in sales.get("namespaces/sales/tables").json["identifiers"]] == ["lost", "orders"]
    assert sales.delete("namespaces/sales/tables/lost").status == 204


def test_table_that_shall_be_purged_is_gone(sales: RestCaller) -> None:
    create(sales)

    assert sales.delete("namespaces/sales/tables/orders", purgeRequested="true").status == 204
    assert sales.head("namespaces/sales/tables/orders").status == 404


def test_reports_are_taken_whatever_they_say(sales: RestCaller) -> None:
    assert sales.post("namespaces/sales/tables/none/metrics", b"\xff no report").status == 204
    assert sales.at("nonsense").post("namespaces/sales/tables/none/metrics", b"").status == 204


def test_transaction_changes_all_tables_or_none(sales: RestCaller) -> None:
    for name in ("a", "b"):
        create(sales, name)

    def change(name: str, **owner: str) -> Any:
        requirements = [] if owner else [{"type": "assert-create"}]
        updates = [{"action": "set-properties", "updates": owner}]
        return {"identifier": {"namespace": ["sales"], "name": name}, "requirements": requirements, "updates": updates}

    failed = sales.post("transactions/commit", {"table-changes": [change("a", owner="eve"), change("b")]})
    done = sales.post("transactions/commit", {"table-changes": [change("a", owner="ann"), change("b", owner="bob")]})

    assert failed.error == (409, "CommitFailedException") and done.status == 204
    owners = [sales.get(f"namespaces/sales/tables/{name}").json["metadata"]["properties"] for name in ("a", "b")]
    assert owners == [{"owner": "ann"}, {"owner": "bob"}]


def test_transaction_names_each_table_once(sales: RestCaller) -> None:
    create(sales)
    change = {"identifier": {"namespace": ["sales"], "name": "orders"}, "requirements": [], "updates": [SET_OWNER]}

    refused = sales.post("transactions/commit", {"table-changes": [change, change]})

    assert refused.error == (400, "BadRequestException") and "table-changes[1]" in refused.message
