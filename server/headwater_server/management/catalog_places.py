"""Where catalogs may lie that are made over HTTP: the server reaches more places than a realm should.

Whoever administers the store gives a realm its places by the property ``catalog-locations``: URLs, with commas between them. A realm may
not give itself any, however much its callers may do in it. Otherwise one tenant could make a catalog over another's files.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.errors import RefusedError
from headwater.iceberg.location import is_within
from headwater_server.management.managed_realm import ManagedRealm

CATALOG_LOCATIONS = "catalog-locations"


def check_places(realm: ManagedRealm, locations: Iterable[str]) -> None:
    """Check that a caller may have a catalog in some places. Where nobody has to prove who calls, everything may be anywhere.

    raises        RefusedError for a place outside of those of the realm
    """
    if realm.caller is None:
        return
    allowed = [each.strip() for each in realm.read_realm().properties.get(CATALOG_LOCATIONS, "").split(",") if each.strip()]
    outside = [each for each in locations if not any(is_within(each, place) for place in allowed)]
    if outside:
        places = f"only in {', '.join(allowed)}" if allowed else "nowhere yet"
        raise RefusedError(
            f"{outside[0][:200]!r} is no place of realm {realm.id!r}: its catalogs may be put {places}; whoever administers the store"
            f" says so by the property {CATALOG_LOCATIONS} of the realm"
        )


def check_realm_properties(realm: ManagedRealm, names: Iterable[str]) -> None:
    """Check that a caller may change some properties of its realm; raises RefusedError for those that only the store's owner sets."""
    if realm.caller is not None and CATALOG_LOCATIONS in names:
        raise RefusedError(
            f"{CATALOG_LOCATIONS} of realm {realm.id!r} is set by whoever administers the store, and not over HTTP"
        )
