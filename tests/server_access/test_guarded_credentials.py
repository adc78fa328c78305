"""Which callers get credentials for a table's files, by what was granted to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from fake_clock import FakeClock
from guarded_server import SCHEMA, GuardedServer, Guest, held
from headwater import Settings, open_store
from headwater.access import Privilege
from headwater.catalogs import CatalogGrant, ContentKey, IcebergTable, Put, TableClaim, TableClaims
from headwater.catalogs import Namespace as NamespaceContent
from headwater.iceberg.changes import new_table
from headwater.iceberg.metadata_json import split_metadata

P = Privilege
ORDERS = "namespaces/sales/tables/orders"
SEES = (held(P.TABLE_LIST, "sales"), held(P.TABLE_READ_PROPERTIES, "sales"))
READS = held(P.TABLE_READ_DATA, "sales")
CREATES = held(P.TABLE_CREATE, "sales")


@pytest.fixture
def settings(keys: Path, tmp_path: Path) -> Settings:
    key = {"access-key-id": "AKIACLIENTS", "secret-access-key": "theirs"}
    (tmp_path / "storages.json").write_text(json.dumps({"storages": [{"location": "s3://lake", "client-key": key}]}))
    return Settings(server_signing_keys=str(keys), storage_file=str(tmp_path / "storages.json"))


@pytest.fixture
def server(settings: Settings) -> Iterator[GuardedServer]:
    clock = FakeClock()
    with open_store("memory://", settings=settings, clock=clock) as store:
        made = GuardedServer(store, clock, "s3://lake")
        made.make_realm("acme", "lake")
        location = "s3://lake/acme/lake/sales/orders"
        document = new_table(
            schema=SCHEMA,
            partition_spec=None,
            sort_order=None,
            properties={},
            location=location,
            table_uuid=uuid4(),
            now_ms=1_780_000_000_000,
        )
        table = IcebergTable(metadata_location=f"{location}/metadata/v1.metadata.json")
        puts = [
            Put(ContentKey.of("sales"), NamespaceContent()),
            Put(ContentKey.of("sales", "orders"), table, None, split_metadata(msgspec.json.encode(document))),
        ]
        catalog = made.catalog()
        catalog.commit(None, puts)
        stored = catalog.get_content(None, ContentKey.of("sales", "orders"))
        assert stored is not None and stored.id is not None
        claim = TableClaim(catalog.definition.id, stored.id, location)
        TableClaims(made.realms.open_realm("acme")).take_claims([claim])
        yield made
        made.application.close()


def guest_with(server: GuardedServer, *grants: CatalogGrant) -> Guest:
    server.make_principal("guest", *grants)
    guest = server.guest("guest")
    guest.headers["x-iceberg-access-delegation"] = "vended-credentials"
    return guest


def test_reader_of_properties_gets_the_table_alone(server: GuardedServer) -> None:
    guest = guest_with(server, *SEES)
    answer = guest.get(ORDERS)

    assert answer.status == 200 and b"theirs" not in answer.content
    assert guest.get(f"{ORDERS}/credentials").error == (403, "ForbiddenException")


def test_reader_of_data_gets_credentials(server: GuardedServer) -> None:
    guest = guest_with(server, *SEES, READS)

    assert guest.get(ORDERS).data["config"]["s3.secret-access-key"] == "theirs"
    assert guest.get(f"{ORDERS}/credentials").data["storage-credentials"]


def test_right_that_was_taken_away_gives_none(server: GuardedServer) -> None:
    guest = guest_with(server, *SEES, READS)
    assert b"theirs" in guest.get(ORDERS).content
    server.revoke("guest", READS)

    assert b"theirs" not in guest.get(ORDERS).content
    assert guest.get(f"{ORDERS}/credentials").status == 403


def test_creator_gets_credentials_for_what_it_stages(server: GuardedServer) -> None:
    guest = guest_with(server, *SEES, CREATES)
    wish = {"name": "new", "schema": SCHEMA, "stage-create": True}
    taken = guest.post("namespaces/sales/tables", wish | {"location": "s3://lake/acme/lake/sales/orders/inner"})

    assert b"theirs" in guest.post("namespaces/sales/tables", wish).content
    assert taken.status == 400 and b"theirs" not in taken.content


def test_guest_who_may_not_list_a_table_learns_nothing(server: GuardedServer) -> None:
    guest = guest_with(server, held(P.TABLE_LIST, "elsewhere"))
    answers = [guest.get(ORDERS), guest.get(f"{ORDERS}/credentials")]

    assert [answer.error for answer in answers] == [(404, "NoSuchTableException")] * 2
