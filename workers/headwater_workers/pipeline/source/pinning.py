"""Which states are read: looked up when a data frame or view is made, so that it stands still."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headwater.catalogs import Catalog, CatalogDefinition, Catalogs, NameKind
from headwater.errors import ExpiredError, MissingError, RefusedError
from headwater.realms import Realm, Realms, RealmState
from headwater.store import SYSTEM_KEY, SYSTEM_REALM, ObjectId, RealmId, RealmKey, RealmStore, Store, id_text
from headwater_workers.pipeline.source.columns import TABLES
from headwater_workers.pipeline.source.options import Request

__all__ = ["Pin", "Place", "Tenant", "check_served", "expired", "pinned", "read_only", "tenants"]

_SERVED = (RealmState.ACTIVE, RealmState.INACTIVE)


class Tenant(NamedTuple):
    """A realm, by its id and by the key that its rows carry."""

    realm: RealmId
    key: RealmKey


class Place(NamedTuple):
    """Where a state stands, as the columns tell it."""

    realm: str
    catalog: str
    ref: str
    kind: str


class Pin(NamedTuple):
    """A state to be read: what ``place`` held when it was looked up."""

    tenant: Tenant
    place: Place
    commit: ObjectId


class _ReadOnly:
    """The gate of a handle that writes nothing."""

    def check_write(self) -> None:
        raise RefusedError("Spark's data source only reads")


def read_only(store: Store, tenant: Tenant) -> RealmStore:
    return store.rows(tenant.realm, tenant.key, gate=_ReadOnly())


def tenants(store: Store, request: Request) -> list[Tenant]:
    """The realms that are read.

    raises        MissingError and RefusedError for a realm that was named, and is not there or not served
    """
    is_scan = not TABLES[request.table].has_states
    system = Tenant(SYSTEM_REALM, SYSTEM_KEY)
    if request.realm is None:
        found = [Tenant(realm.id, realm.key) for realm in Realms(store).list() if is_scan or realm.state in _SERVED]
        return [system, *found] if is_scan else found
    if request.realm == SYSTEM_REALM and is_scan:
        return [system]
    realm = Realms(store).read(request.realm)
    if not is_scan:
        check_served(realm)
    return [Tenant(realm.id, realm.key)]


def check_served(realm: Realm) -> None:
    """Pass if a realm's catalogs can be read; RefusedError otherwise."""
    if realm.state not in _SERVED:
        raise RefusedError(f"realm {realm.id!r} is {realm.state}: its catalogs are read while it is {' or '.join(_SERVED)}")


def pinned(store: Store, request: Request) -> list[Pin]:
    """The states that are read, as they are now: those of all branches and tags, of the one that ``ref`` names,
    or the one that ``at`` means in each catalog.

    raises        MissingError for a catalog, a branch, a tag or a state that was named, and is not there; ExpiredError for a commit that
                  was collected
    """
    found = [pin for tenant in tenants(store, request) for pin in _pinned_in(read_only(store, tenant), tenant, request)]
    if request.catalog is not None and request.realm is None and not found:
        raise MissingError(f"no realm of the store has a catalog {request.catalog!r} with a commit")
    if request.ref is not None and not found:
        raise MissingError(
            f"no catalog that is read has a branch or tag {request.ref!r} with a commit: see `headwater catalog branch list`"
        )
    return found


def _pinned_in(rows: RealmStore, tenant: Tenant, request: Request) -> Iterator[Pin]:
    for definition in _catalogs(rows, request):
        for place, commit in _states(rows, definition, request):
            yield Pin(tenant, place, commit)


def _catalogs(rows: RealmStore, request: Request) -> list[CatalogDefinition]:
    if request.catalog is None:
        return Catalogs(rows).list()
    if request.realm is not None:
        return [Catalogs(rows).read(request.catalog)]
    found = Catalogs(rows).find(request.catalog)
    return [] if found is None else [found]


def _states(rows: RealmStore, definition: CatalogDefinition, request: Request) -> Iterator[tuple[Place, ObjectId]]:
    catalog = Catalog(rows, definition)
    if request.at is not None:
        yield from _state_at(catalog, rows.realm, request.at, is_named=request.catalog is not None)
        return
    for named in (*catalog.branches(), *catalog.tags()):
        if named.head is not None and request.ref in (None, named.name):
            yield Place(rows.realm, definition.name, named.name, named.kind.value), named.head


def _state_at(catalog: Catalog, realm: str, at: str, *, is_named: bool) -> Iterator[tuple[Place, ObjectId]]:
    """The state of one catalog. Of many catalogs, those that do not know the text are left out."""
    try:
        head = catalog.resolve(at)
    except MissingError as fault:
        if is_named or isinstance(fault, ExpiredError):
            raise
        return
    if head is not None:
        yield Place(realm, catalog.definition.name, at, _kind_of(catalog, at)), head.id


def _kind_of(catalog: Catalog, at: str) -> str:
    for kind, find in ((NameKind.BRANCH, catalog.branch), (NameKind.TAG, catalog.tag)):
        try:
            find(at)
        except (MissingError, RefusedError):
            continue
        return kind.value
    return "commit"


def expired(pin: Pin) -> ExpiredError:
    """What to say when a pinned state is not there any more."""
    return ExpiredError(
        f"commit {id_text(pin.commit)} of catalog {pin.place.catalog!r} in realm {pin.place.realm!r} was collected since this data frame or"
        " view was made: make it again"
    )
