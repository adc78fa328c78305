"""Guests of a catalog and their adoption, and the release of places, as resources."""

from __future__ import annotations

from headwater.access import Privilege
from headwater.catalogs import ContentKey, release_location
from headwater.iceberg_catalog import IcebergCatalog, TableHome, adopt_guests, list_table_homes
from headwater_server.call import Answer, Call
from headwater_server.management.listed_pages import page_by_name
from headwater_server.management.managed_realm import ManagedRealm, managed_realm, realm_under_right
from headwater_server.management.resource_shapes import (
    AdoptedTables,
    GuestList,
    GuestsQuery,
    GuestTable,
    GuestToAdopt,
    LocationToRelease,
    RefusedGuest,
    ReleasedLocations,
)
from headwater_server.management.route_parts import CATALOG_PATH, CHANGE_ERRORS, READ_ERRORS, REALM_PATH
from headwater_server.route_table import Route

_RIGHT = "CATALOG_MANAGE_CONTENT on the catalog"


def table_home_routes() -> list[Route]:
    """Make the routes of guests and of places."""
    return [
        Route(
            method="GET",
            template=f"{CATALOG_PATH}/guests",
            handler=answer_guests,
            name="listGuests",
            needs=_RIGHT,
            summary="List the tables and views of a branch or tag that their catalog neither created nor adopted.",
            query=GuestsQuery,
            answers={200: GuestList},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{CATALOG_PATH}/guests/adopt",
            handler=answer_adoption,
            name="adoptGuests",
            needs=_RIGHT,
            summary="Adopt tables and views that nobody else writes: the catalog's policies hold for them from then on.",
            writes=True,
            body=GuestToAdopt,
            answers={200: AdoptedTables},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{REALM_PATH}/locations/release",
            handler=answer_release,
            name="releaseLocation",
            needs="CATALOG_MANAGE_CONTENT on the realm",
            summary="Release a location that dropped tables still have, so that a table of any catalog may lie there.",
            writes=True,
            body=LocationToRelease,
            answers={200: ReleasedLocations},
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_guests(call: Call[GuestsQuery, None]) -> Answer:
    """List guests, in the order of their keys."""
    realm, query = managed_realm(call), call.query
    lake = _open_lake(realm, call.path["catalog"], query.reference)
    under = None if query.under is None else ContentKey.parse(query.under)
    guests = [each for each in list_table_homes(lake, under=under) if not each.is_home]
    page, token = page_by_name(sorted(guests, key=_name), query, name=_name)
    shown = [GuestTable(list(each.key.elements), str(each.entry.content_id)) for each in page]
    return Answer(body=GuestList(shown, token))


def answer_adoption(call: Call[None, GuestToAdopt]) -> Answer:
    """Adopt guests; what is at home already stays so, and is not told of."""
    realm, wish = managed_realm(call), call.body
    lake = _open_lake(realm, call.path["catalog"], wish.reference)
    keys = [ContentKey(tuple(key)) for key in wish.keys]
    adoption = adopt_guests(lake, [each for each in list_table_homes(lake, keys=keys) if not each.is_home])
    refused = [RefusedGuest(list(key.elements), why) for key, why in adoption.refused.items()]
    return Answer(body=AdoptedTables([list(key.elements) for key in adoption.adopted], refused))


def answer_release(call: Call[None, LocationToRelease]) -> Answer:
    """Release a location; raises NotFoundError where nobody has it, RefusedError where a branch or tag holds its table."""
    realm = realm_under_right(call, Privilege.CATALOG_MANAGE_CONTENT)
    return Answer(body=ReleasedLocations(list(release_location(realm.rows, call.body.location))))


def _open_lake(realm: ManagedRealm, catalog: str, reference: str | None) -> IcebergCatalog:
    definition = realm.allowed_catalog(catalog, Privilege.CATALOG_MANAGE_CONTENT)
    return IcebergCatalog.open(realm.store, realm.id, definition.name, reference)


def _name(home: TableHome) -> str:
    return str(home.key)
