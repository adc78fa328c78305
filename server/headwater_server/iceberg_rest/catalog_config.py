"""What clients ask first: how to reach a warehouse, and whether they need a token for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import quote

from headwater.catalogs import Catalogs
from headwater.realms import RealmRegistry, RealmState
from headwater_server.call import Answer, Call, ServedStore
from headwater_server.iceberg_rest.addresses import LEVEL_SEPARATOR
from headwater_server.iceberg_rest.models import CatalogConfig, ConfigQuery
from headwater_server.lake_sessions import open_for
from headwater_server.warehouse_address import WarehouseAddress

DEFAULT_AREAS = ("table-default.", "view-default.")
"""Properties of a catalog that clients give to what they create, where they name no value of their own."""
OVERRIDE_AREAS = ("table-override.", "view-override.")
"""Properties of a catalog that clients give to what they create, whatever they name themselves."""


def config_handler(endpoints: Callable[[], list[str]]) -> Callable[[Call[ConfigQuery, None]], Answer]:
    """Make the handler of ``/v1/config``.

    endpoints     what is served, for clients that ask nothing else; asked at each call, because this route is among them
    """

    def answer_config(call: Call[ConfigQuery, None]) -> Answer:
        session = open_for(call, WarehouseAddress.from_warehouse(call.query.warehouse))
        session.check_reference()
        lifetime = call.served.store.settings.requests_kept_seconds
        return Answer(body=catalog_config(session.address, session.properties, endpoints(), lifetime_seconds=lifetime))

    return answer_config


def realm_of_warehouse(path: Mapping[str, str], query: ConfigQuery) -> str:
    """The realm that a query's warehouse names; raises NotFoundError and RefusedError for a text that names none."""
    return WarehouseAddress.from_warehouse(query.warehouse).realm


def with_only_warehouse(served: ServedStore, query: ConfigQuery) -> ConfigQuery:
    """The query with the only catalog that is served where it names no warehouse, as clients that were never given one ask."""
    return query if query.warehouse else ConfigQuery(_only_warehouse(served))


def _only_warehouse(served: ServedStore) -> str:
    """The warehouse of the only catalog of all served realms; empty where there is none, or several."""
    found: list[str] = []
    registry = RealmRegistry(served.store)
    for realm in registry.list_realms().complete():
        if realm.state is RealmState.ACTIVE and served.serves(realm.id):
            catalogs = Catalogs(registry.open_realm(realm.id)).list_catalogs().complete()
            found += [f"{realm.id}/{catalog.name}" for catalog in catalogs]
            if len(found) > 1:
                return ""
    return found[0] if found else ""


def catalog_config(
    address: WarehouseAddress, properties: Mapping[str, str], endpoints: list[str], *, lifetime_seconds: float
) -> CatalogConfig:
    """The configuration of a client of a catalog.

    The prefix is an override: a client's own would lead it elsewhere.

    properties        of the catalog
    lifetime_seconds  how long an Idempotency-Key is remembered
    """
    return CatalogConfig(
        defaults=_in_areas(properties, DEFAULT_AREAS),
        overrides={
            "prefix": address.prefix,
            "namespace-separator": quote(LEVEL_SEPARATOR),
            **_in_areas(properties, OVERRIDE_AREAS),
        },
        endpoints=endpoints,
        idempotency_key_lifetime=f"PT{int(lifetime_seconds)}S",
    )


def _in_areas(properties: Mapping[str, str], areas: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in sorted(properties.items()) if name.startswith(areas)}
