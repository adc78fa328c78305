"""Answers with credentials for a table's files: to which clients, for which places, and that nobody keeps one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from rest_caller import RestAnswer, RestCaller

from headwater import Settings, Store
from headwater.catalogs import Catalog, Catalogs, ContentKey, IcebergTable, Put, TableClaim, TableClaims
from headwater.iceberg.changes import new_table
from headwater.iceberg.metadata_json import split_metadata
from headwater.realms import RealmRegistry
from headwater_server.call import ServedStore

ASKING = {"x-iceberg-access-delegation": "vended-credentials,remote-signing"}
KEY = {"s3.access-key-id": "AKIACLIENTS", "s3.secret-access-key": "theirs"}
ENTRY = {
    "location": "s3://lake",
    "endpoint": "http://127.0.0.1:9",
    "access-key-id": "AKIAOWN",
    "secret-access-key": "own-secret",
    "client-key": {"access-key-id": "AKIACLIENTS", "secret-access-key": "theirs"},
}
ROLE = {"arn": "arn:aws:iam::123456789012:role/lake"}
WITH_ROLE = {name: value for name, value in ENTRY.items() if name != "client-key"} | {"client-role": ROLE}
"""Its token service is one that nobody answers for."""
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
ORDERS = "namespaces/sales/tables/orders"


@pytest.fixture
def storages(tmp_path: Path) -> Path:
    return write_storages(tmp_path / "storages.json", ENTRY)


def write_storages(file: Path, *entries: dict[str, Any]) -> Path:
    file.write_text(json.dumps({"storages": entries}))
    return file


@pytest.fixture
def pond(store: Store, lake: Catalog) -> Catalog:
    """A catalog with its tables in a bucket that nobody answers for."""
    catalogs = Catalogs(RealmRegistry(store).open_realm("acme"))
    catalogs.create_catalog("pond", base_location="s3://lake/pond", allowed_locations=["s3://lake/objects"])
    return catalogs.open_catalog("pond")


@pytest.fixture
def rest(store: Store, pond: Catalog, storages: Path) -> RestCaller:
    configured = Store(store.backend, url="memory://", settings=Settings(storage_file=str(storages)), clock=store.clock)
    caller = RestCaller(ServedStore(configured), "acme~pond")
    assert caller.post("namespaces", {"namespace": ["sales"]}).status == 200
    return caller


def put_table(pond: Catalog, name: str, location: str, **properties: str) -> None:
    """Put a table as an import does, which takes documents as they are, and writes no file."""
    document = new_table(
        schema=SCHEMA,
        partition_spec=None,
        sort_order=None,
        properties=properties,
        location=location,
        table_uuid=uuid4(),
        now_ms=1_780_000_000_000,
    )
    content = IcebergTable(metadata_location=f"{location}/metadata/v1.metadata.json")
    pond.commit(None, [Put(ContentKey.of("sales", name), content, None, split_metadata(json.dumps(document).encode()))])


@pytest.fixture
def orders(rest: RestCaller, pond: Catalog) -> RestCaller:
    put_table(pond, "orders", "s3://lake/pond/sales/orders")
    return rest


def load(rest: RestCaller, path: str = ORDERS, **headers: str) -> RestAnswer:
    answer = rest.get(path, headers={**ASKING, **headers})
    assert answer.status == 200
    return answer


def test_client_that_asks_gets_credentials(orders: RestCaller) -> None:
    answer = load(orders)

    [part] = answer.json["storage-credentials"]
    assert part["prefix"] == "s3://lake/pond/sales/orders/"
    assert part["config"].items() >= KEY.items() and answer.json["config"].items() >= KEY.items()
    assert part["config"]["s3.endpoint"] == answer.json["config"]["s3.endpoint"] == ENTRY["endpoint"]


def test_answer_is_otherwise_that_of_a_plain_load(orders: RestCaller) -> None:
    plain, told = orders.get(ORDERS).json, load(orders).json

    assert {name: told[name] for name in ("metadata", "metadata-location")} == {
        name: plain[name] for name in ("metadata", "metadata-location")
    }
    assert set(plain) | {"storage-credentials"} == set(told)


@pytest.mark.parametrize("headers", [{}, {"x-iceberg-access-delegation": "remote-signing"}])
def test_client_that_does_not_ask_gets_none(orders: RestCaller, headers: dict[str, str]) -> None:
    answer = orders.get(ORDERS, headers=headers)

    assert "storage-credentials" not in answer.json and not answer.json["config"].keys() & KEY.keys()
    assert orders.get(ORDERS, headers={**headers, "if-none-match": answer.headers["ETag"]}).status == 304


def test_secret_of_the_server_is_told_nobody(orders: RestCaller) -> None:
    texts = [load(orders).content, orders.get(ORDERS).content, orders.get(f"{ORDERS}/credentials").content]

    assert not [text for text in texts if b"AKIAOWN" in text or b"own-secret" in text]


def test_answer_with_credentials_is_not_kept_on_the_way(orders: RestCaller) -> None:
    answers = [load(orders), orders.get(f"{ORDERS}/credentials")]

    assert [(answer.headers.get("ETag"), answer.headers["Cache-Control"]) for answer in answers] == [(None, "no-store")] * 2


def test_client_that_has_the_version_gets_credentials_anew(orders: RestCaller) -> None:
    tag = orders.get(ORDERS).headers["ETag"]

    for tags in (tag, "*"):
        assert load(orders, **{"if-none-match": tags}).json["storage-credentials"]


def test_kept_answer_has_the_present_credentials(orders: RestCaller, storages: Path) -> None:
    load(orders)
    changed = ENTRY | {"client-key": {"access-key-id": "AKIARENEWED", "secret-access-key": "renewed"}}
    write_storages(storages, changed)

    assert load(orders).json["config"]["s3.access-key-id"] == "AKIARENEWED"


def test_references_alone_come_with_credentials_too(orders: RestCaller) -> None:
    told = orders.get(ORDERS, headers=ASKING, snapshots="refs").json

    assert told["storage-credentials"] and told["metadata"]["snapshots"] == []


def test_credentials_are_asked_for_by_themselves(orders: RestCaller) -> None:
    assert orders.get(f"{ORDERS}/credentials").json == {"storage-credentials": load(orders).json["storage-credentials"]}


def test_staged_table_comes_with_credentials(rest: RestCaller) -> None:
    rest.headers.update(ASKING)
    answer = rest.post("namespaces/sales/tables", {"name": "new", "schema": SCHEMA, "stage-create": True})

    [part] = answer.json["storage-credentials"]
    assert answer.json["metadata"]["location"] + "/" == part["prefix"]
    assert answer.json["config"].items() >= KEY.items() and "metadata-location" not in answer.json
    assert answer.headers["Cache-Control"] == "no-store"


def test_one_part_covers_all_places_in_a_bucket(rest: RestCaller, pond: Catalog) -> None:
    put_table(pond, "orders", "s3://lake/pond/orders", **{"write.data.path": "s3://lake/objects/orders"})

    [part] = load(rest).json["storage-credentials"]
    assert part["prefix"] == "s3://lake/"


def test_location_without_credentials_keeps_its_address(rest: RestCaller, pond: Catalog) -> None:
    put_table(pond, "orders", "s3://lake/elsewhere/orders", **{"write.data.path": "s3://lake/objects/orders"})
    answer = load(rest)

    [part] = answer.json["storage-credentials"]
    assert part["prefix"] == "s3://lake/objects/orders/"
    assert answer.json["config"]["s3.endpoint"] == ENTRY["endpoint"] and not answer.json["config"].keys() & KEY.keys()


def test_place_that_the_catalog_does_not_allow_has_none(rest: RestCaller, pond: Catalog) -> None:
    put_table(pond, "orders", "s3://lake/elsewhere/orders")
    answer = load(rest)

    assert "storage-credentials" not in answer.json and answer.headers["ETag"]
    assert rest.get(f"{ORDERS}/credentials").json == {"storage-credentials": []}


def test_table_on_a_disk_has_none(rest: RestCaller, lake: Catalog) -> None:
    disk = rest.at("acme~lake")
    disk.post("namespaces", {"namespace": ["sales"]})
    disk.post("namespaces/sales/tables", {"name": "orders", "schema": SCHEMA})
    answer = load(disk)

    assert "storage-credentials" not in answer.json
    assert disk.get(ORDERS, headers={**ASKING, "if-none-match": answer.headers["ETag"]}).status == 304


@pytest.mark.parametrize("entry", [{"location": "s3://lake"}, {"location": "s3://other", "client-key": ENTRY["client-key"]}])
def test_storage_without_credentials_refuses_nothing(orders: RestCaller, storages: Path, entry: dict[str, Any]) -> None:
    write_storages(storages, entry)

    assert "storage-credentials" not in load(orders).json
    assert orders.get(f"{ORDERS}/credentials").json == {"storage-credentials": []}


@pytest.mark.parametrize(
    "place", [{"realm": "other"}, {"realm": "acme", "catalog": "lake"}, {"location": "s3://lake/pond/sales/orders2"}]
)
def test_credentials_of_others_are_not_given(orders: RestCaller, storages: Path, place: dict[str, str]) -> None:
    write_storages(storages, {**ENTRY, **place})

    assert "storage-credentials" not in load(orders).json


@pytest.mark.parametrize("location", ["s3://lake/pond/a*b", "s3://lake/pond/${aws:username}"])
def test_place_that_no_policy_can_name_has_none(rest: RestCaller, pond: Catalog, storages: Path, location: str) -> None:
    write_storages(storages, WITH_ROLE)
    put_table(pond, "orders", location)

    assert "storage-credentials" not in load(rest).json


def test_place_with_another_table_in_it_has_none(orders: RestCaller, store: Store, pond: Catalog, storages: Path) -> None:
    write_storages(storages, WITH_ROLE)
    inner = TableClaim(pond.definition.id, uuid4(), "s3://lake/pond/sales/orders/inner")
    TableClaims(RealmRegistry(store).open_realm("acme")).take_claims([inner])

    assert "storage-credentials" not in load(orders).json


def test_token_service_that_is_down_makes_a_load_wait(orders: RestCaller, storages: Path) -> None:
    write_storages(storages, WITH_ROLE)
    answer = orders.get(ORDERS, headers=ASKING)

    assert answer.status == 503 and "AssumeRole" in answer.message and "own-secret" not in answer.message
    assert orders.get(ORDERS).status == 200
