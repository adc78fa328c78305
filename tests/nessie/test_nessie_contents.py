"""Contents at keys, as Nessie's clients read them."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from nessie_caller import NessieCaller, elements
from nessie_lakes import change, fill, key_of, put, table

from asgi_client import AsgiClient
from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from guarded_server import GuardedServer, held
from headwater import Store
from headwater.access import Privilege
from headwater.catalogs import Catalog, DeltaLakeTable, Namespace
from headwater_server.call import ServedStore
from headwater_server.nessie import nessie_table
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH
from headwater_server.server_application import ServerApplication

P = Privilege


@pytest.fixture
def filled(lake: Catalog) -> str:
    return fill(lake)


def requested(*keys: str) -> dict[str, list[dict[str, list[str]]]]:
    return {"requestedKeys": [elements(*key_of(key).elements) for key in keys]}


def keys_in(contents: list[dict[str, dict[str, list[str]]]]) -> list[str]:
    return [".".join(each["key"]["elements"]) for each in contents]


def test_content_comes_with_the_commit(nessie: NessieCaller, lake: Catalog, filled: str) -> None:
    content = lake.get_content(None, key_of("sales.orders"))
    assert content is not None

    assert nessie.get("trees/main/contents/sales.orders", with_doc="true", for_write="false").data == {
        "content": {
            "type": "ICEBERG_TABLE",
            "id": str(content.id),
            "metadataLocation": "file:///tables/3.metadata.json",
            "snapshotId": 3,
            "schemaId": 0,
            "specId": 0,
            "sortOrderId": 0,
        },
        "effectiveReference": {"type": "BRANCH", "name": "main", "hash": filled},
    }


def test_content_of_version_1_comes_alone(nessie: NessieCaller, filled: str) -> None:
    for query in ({}, {"ref": "main"}, {"ref": "main", "hash_on_ref": filled}, {"ref": "DETACHED", "hash_on_ref": filled}):
        assert nessie.v1.get("contents/sales.orders", **query).data["metadataLocation"] == "file:///tables/3.metadata.json"


def test_delta_table_of_version_1_has_no_nulls(nessie: NessieCaller, lake: Catalog) -> None:
    put(lake, {"d": DeltaLakeTable(metadata_location_history=("a",))})

    assert nessie.v1.get("contents/d").data["lastCheckpoint"] == ""


def test_contents_come_in_the_order_asked_for(nessie: NessieCaller, filled: str) -> None:
    answer = nessie.post("trees/main/contents", requested("stock.items", "nothing", "sales", "stock.items")).data

    assert keys_in(answer["contents"]) == ["stock.items", "sales"]
    assert answer["contents"][1]["content"]["properties"] == {"owner": "ann"}
    assert answer["effectiveReference"]["hash"] == filled
    assert nessie.get("trees/main/contents", key=["stock.items", "nothing", "sales"]).data == answer


def test_contents_of_version_1_name_no_reference(nessie: NessieCaller, filled: str) -> None:
    answer = nessie.v1.post("contents", requested("stock.items"), ref="main").data

    assert set(answer) == {"contents"} and keys_in(answer["contents"]) == ["stock.items"]


def test_contents_without_keys_are_none(nessie: NessieCaller, filled: str) -> None:
    assert nessie.get("trees/main/contents").data["contents"] == []


@pytest.mark.parametrize("path", ["main@{0}", "main%40{0}", "@{0}", "main~1", "main@{1}~1", "main@{1}^1", "-@{0}"])
def test_content_of_an_earlier_commit(nessie: NessieCaller, lake: Catalog, filled: str, path: str) -> None:
    newer = change(lake, "sales.orders", 30)
    answer = nessie.get(f"trees/{path.format(filled, newer)}/contents/sales.orders").data

    assert answer["content"]["snapshotId"] == 3 and answer["effectiveReference"]["hash"] == filled


def test_detached_commit_is_told_as_such(nessie: NessieCaller, filled: str) -> None:
    answer = nessie.post(f"trees/@{filled}/contents", requested("sales")).data

    assert answer["effectiveReference"] == {"type": "DETACHED", "name": "DETACHED", "hash": filled}


def test_state_before_the_first_commit_has_no_content(nessie: NessieCaller, filled: str) -> None:
    answer = nessie.post(f"trees/main@{NO_ANCESTOR_HASH}/contents", requested("sales")).data

    assert answer["contents"] == [] and answer["effectiveReference"]["hash"] == NO_ANCESTOR_HASH
    assert nessie.get(f"trees/main@{NO_ANCESTOR_HASH}/contents/sales").error == (404, "CONTENT_NOT_FOUND")


def test_missing_content_is_told_with_its_key(nessie: NessieCaller, filled: str) -> None:
    for answer in (nessie.get("trees/main/contents/sales.nothing"), nessie.v1.get("contents/sales.nothing")):
        assert answer.error == (404, "CONTENT_NOT_FOUND")
        assert answer.details == {"type": "CONTENT_KEY", "contentKey": elements("sales", "nothing")}


def test_details_are_for_clients_that_read_them(nessie: NessieCaller, filled: str) -> None:
    for level in ("", "0", "1", "x"):
        old = nessie.with_headers(nessie_client_spec=level)
        assert "errorDetails" not in str(old.get("trees/main/contents/nothing").content)


def test_missing_reference_is_told_before_the_key(nessie: NessieCaller) -> None:
    assert nessie.get("trees/nothing/contents/a").error == (404, "REFERENCE_NOT_FOUND")
    assert nessie.get(f"trees/main@{'ab' * 8}/contents/a").error == (404, "REFERENCE_NOT_FOUND")
    assert nessie.v1.get("contents/a", ref="nothing").error == (404, "REFERENCE_NOT_FOUND")


def test_malformed_keys_are_refused(nessie: NessieCaller, filled: str) -> None:
    assert nessie.get("trees/main/contents/a..b").error == (400, "BAD_REQUEST")
    assert nessie.get("trees/main/contents/.a*xb").error == (400, "BAD_REQUEST")
    assert nessie.post("trees/main/contents", {"requestedKeys": [{"elements": []}]}).error == (400, "BAD_REQUEST")
    assert nessie.post("trees/main/contents", {"keys": []}).error == (400, "BAD_REQUEST")


def test_odd_keys_are_read_in_both_spellings(nessie: NessieCaller, lake: Catalog) -> None:
    lake.commit(None, [])
    put(lake, {r"a\.b": Namespace(), r"a\.b.c/d": table(7)})

    for text in (".a*.b.c*{d", "a\x1db.c/d"):
        assert nessie.get(f"trees/main/contents/{quote(text, safe='')}").data["content"]["snapshotId"] == 7
        assert nessie.v1.get(f"contents/{quote(text, safe='')}").data["snapshotId"] == 7


@pytest.fixture
def guest(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> NessieCaller:
    """Somebody who may read tables below ``sales.eu``, and list ``sales.orders``."""
    fill(guarded.catalog())
    guarded.make_principal(
        "guest",
        held(P.TABLE_READ_PROPERTIES, "sales", "eu"),
        held(P.TABLE_LIST, "sales", "eu"),
        held(P.TABLE_LIST, "sales", "orders", on="table"),
    )
    return caller_of("guest")


def test_content_is_read_by_whoever_may(guest: NessieCaller) -> None:
    assert guest.get("trees/main/contents/sales.eu.orders").data["content"]["snapshotId"] == 1


def test_content_that_is_only_listed_is_forbidden(guest: NessieCaller) -> None:
    assert guest.get("trees/main/contents/sales.orders").error == (403, "FORBIDDEN")
    assert guest.post("trees/main/contents", requested("sales.eu.orders", "sales.orders")).error == (403, "FORBIDDEN")


def test_hidden_content_is_told_as_a_missing_one(guest: NessieCaller) -> None:
    hidden, missing = guest.get("trees/main/contents/stock.items"), guest.get("trees/main/contents/stock.itemz")

    assert hidden.content.replace(b"items", b"itemz") == missing.content
    answer = guest.post("trees/main/contents", requested("stock.items", "sales.eu.orders", "sales.report")).data
    assert keys_in(answer["contents"]) == ["sales.eu.orders"]


def test_namespace_on_the_way_shows_no_properties(guest: NessieCaller) -> None:
    content = guest.get("trees/main/contents/sales").data["content"]

    assert content["elements"] == ["sales"] and "properties" not in content


@pytest.mark.parametrize("path", ["trees/main", "trees/main/contents/sales.orders", "trees/main/history", "trees/main/entries"])
def test_read_that_is_repeated_asks_for_one_row(lake: Catalog, store: Store, clock: FakeClock, path: str) -> None:
    fill(lake)
    counted = FaultyBackend(store.backend)
    served = ServedStore(Store(counted, url="memory://", settings=store.settings, clock=clock))
    application = ServerApplication(served, [nessie_table()], settings=store.settings, clock=clock, version="1.2.3")
    caller = NessieCaller(AsgiClient(application))
    first = caller.get(path).data
    counted.calls.clear()

    assert caller.get(path).data == first
    assert counted.calls == ["read_references"]
    application.close()
