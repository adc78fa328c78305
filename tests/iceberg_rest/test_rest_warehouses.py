"""Which warehouses, branches and tags are reached, and what a client is told before it begins."""

from __future__ import annotations

from rest_caller import RestCaller

from headwater import Settings, Store
from headwater.catalogs import Catalog, Catalogs
from headwater.realms import RealmRegistry
from headwater_server.call import ServedStore
from headwater_server.iceberg_rest.iceberg_routes import iceberg_table


def test_configuration_has_defaults_overrides_and_endpoints(rest: RestCaller) -> None:
    config = rest.get("/v1/config", warehouse="acme/lake").json

    assert config["defaults"] == {}
    assert config["overrides"] == {"prefix": "acme~lake", "namespace-separator": "%1F"}
    assert config["idempotency-key-lifetime"] == "PT1800S"


def test_keys_are_promised_for_as_long_as_they_are_kept(store: Store, lake: Catalog, settings: Settings) -> None:
    short = Store(store.backend, url="memory://", settings=settings, clock=store.clock)

    config = RestCaller(ServedStore(short)).get("/v1/config", warehouse="acme/lake").json

    assert config["idempotency-key-lifetime"] == f"PT{int(settings.requests_kept_seconds)}S" == "PT30S"


def test_endpoints_are_those_that_are_served(rest: RestCaller) -> None:
    listed = rest.get("/v1/config", warehouse="acme/lake").json["endpoints"]

    served = {route.endpoint for route in iceberg_table().routes}
    assert served - set(listed) == {"GET /v1/config", "POST /v1/oauth/tokens", "POST /v1/oauth/revoke"}
    assert set(listed) <= served and len(listed) == len(set(listed))


def test_properties_for_new_tables_are_handed_on(store: Store, lake: Catalog) -> None:
    catalogs = Catalogs(RealmRegistry(store).open_realm("acme"))
    catalogs.update_catalog(lake.definition, properties={"table-default.a": "1", "view-override.b": "2", "owner": "ann"})

    config = RestCaller(ServedStore(store)).get("/v1/config", warehouse="acme/lake").json

    assert config["defaults"] == {"table-default.a": "1"}
    assert config["overrides"]["view-override.b"] == "2" and "owner" not in config["overrides"]


def test_only_catalog_is_found_without_a_warehouse(rest: RestCaller, store: Store, warehouse: str) -> None:
    found = rest.get("/v1/config").json
    elsewhere = RestCaller(ServedStore(store, realms=frozenset({"other"}))).get("/v1/config")
    Catalogs(RealmRegistry(store).open_realm("acme")).create_catalog("second", base_location=f"{warehouse}/second")

    assert found == rest.get("/v1/config", warehouse="acme/lake").json
    assert elsewhere.error == rest.get("/v1/config").error == (400, "BadRequestException")
    assert "not exactly one catalog is served" in elsewhere.message


def test_unknown_warehouse_is_told_as_such(rest: RestCaller) -> None:
    for warehouse in ("acme/none", "none/lake", "acme/lake@none", "lake"):
        assert rest.get("/v1/config", warehouse=warehouse).error == (404, "NoSuchWarehouseException")


def test_realm_that_is_not_served_is_like_none(store: Store, lake: Catalog) -> None:
    elsewhere = RestCaller(ServedStore(store, realms=frozenset({"other"})))
    answer, unknown = (elsewhere.get("/v1/config", warehouse=f"{realm}/lake") for realm in ("acme", "none"))

    assert answer.error == (404, "NoSuchWarehouseException")
    assert answer.message.replace("acme", "none") == unknown.message


def test_branch_of_a_prefix_is_a_world_of_its_own(sales: RestCaller, lake: Catalog) -> None:
    lake.create_branch("feature/x")
    prefix = sales.get("/v1/config", warehouse="acme/lake@feature/x").json["overrides"]["prefix"]
    branch = sales.at(prefix)

    branch.post("namespaces", {"namespace": ["fresh"]})

    assert branch.get("namespaces").json["namespaces"] == [["fresh"], ["sales"]]
    assert sales.get("namespaces").json["namespaces"] == [["sales"]]
    assert sales.at("acme~lake~feature%1Fx").head("namespaces/fresh").status == 204


def test_tag_is_read_and_not_written(sales: RestCaller, lake: Catalog) -> None:
    lake.create_tag("v1")
    tag = sales.at("acme~lake~v1")

    refused = tag.post("namespaces", {"namespace": ["fresh"]})

    assert tag.head("namespaces/sales").status == 204
    assert refused.error == (400, "BadRequestException") and "'v1'" in refused.message


def test_branch_that_is_gone_is_no_missing_table(sales: RestCaller) -> None:
    answer = sales.at("acme~lake~gone").get("namespaces/sales/tables/orders")

    assert answer.error == (404, "NoSuchWarehouseException")
    assert "'gone'" in answer.message


def test_token_is_refused_in_the_words_of_oauth(rest: RestCaller) -> None:
    answer = rest.call("POST", "/v1/oauth/tokens", body=b"grant_type=client_credentials&client_secret=geheim")

    assert (answer.status, answer.json["error"]) == (400, "unsupported_grant_type")
    assert "credential" in answer.json["error_description"] and b"geheim" not in answer.content


def test_headers_of_clients_without_a_login_do_no_harm(sales: RestCaller) -> None:
    headers = {"authorization": "Bearer None", "x-iceberg-access-delegation": "vended-credentials"}

    assert sales.call("GET", "namespaces/sales", headers=headers).status == 200
