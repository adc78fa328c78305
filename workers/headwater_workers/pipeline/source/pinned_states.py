"""The states to read, pinned when a data frame or view is created, so that it is a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headwater.catalogs import Catalog, CatalogDefinition, Catalogs, RefKind
from headwater.catalogs.history.revspec import DEFAULT_REF, parse_revspec
from headwater.errors import ExpiredError, NotFoundError, RefusedError
from headwater.realms import Realm, RealmRegistry, RealmState
from headwater.store import SYSTEM_KEY, SYSTEM_REALM, ObjectId, RealmId, RealmKey, RealmStore, Store, id_text
from headwater_workers.pipeline.source.reader_options import ReadRequest
from headwater_workers.pipeline.source.source_columns import TABLES

_SERVED = (RealmState.ACTIVE, RealmState.INACTIVE)


class Tenant(NamedTuple):
    """A realm, by its id and by the key that its rows carry."""

    realm: RealmId
    key: RealmKey


class StatePlace(NamedTuple):
    """The place of a state, as shown in the columns."""

    realm: str
    catalog: str
    ref: str
    kind: str


class PinnedState(NamedTuple):
    """A state to read: the head of ``place`` when it was looked up."""

    tenant: Tenant
    place: StatePlace
    commit: ObjectId


class _ReadOnly:
    """The gate of a handle that writes nothing."""

    def check_write(self) -> None:
        raise RefusedError("Spark's data source only reads")


def read_only(store: Store, tenant: Tenant) -> RealmStore:
    return store.rows(tenant.realm, tenant.key, gate=_ReadOnly())


def tenants(store: Store, request: ReadRequest) -> list[Tenant]:
    """The realms to read.

    raises        NotFoundError and RefusedError for a named realm that does not exist or is not served
    """
    is_scan = not TABLES[request.table].has_states
    system = Tenant(SYSTEM_REALM, SYSTEM_KEY)
    if request.realm is None:
        realms = [
            Tenant(realm.id, realm.key)
            for realm in RealmRegistry(store).list_realms().complete()
            if is_scan or realm.state in _SERVED
        ]
        return [system, *realms] if is_scan else realms
    if request.realm == SYSTEM_REALM and is_scan:
        return [system]
    realm = RealmRegistry(store).read_realm(request.realm)
    if not is_scan:
        check_served(realm)
    return [Tenant(realm.id, realm.key)]


def check_served(realm: Realm) -> None:
    """Pass if a realm's catalogs can be read; RefusedError otherwise."""
    if realm.state not in _SERVED:
        raise RefusedError(f"realm {realm.id!r} is {realm.state}: its catalogs are read while it is {' or '.join(_SERVED)}")


def pin_states(store: Store, request: ReadRequest) -> list[PinnedState]:
    """Pin the states to read: the heads of all branches and tags, or of the one that ``ref`` names,
    or the state that ``at`` means in each catalog that has it.

    raises        NotFoundError for a catalog, a branch, a tag or a state that was named, and that no catalog has; ExpiredError for a
                  commit that was collected, and for a history that was cut before the state was found
    """
    catalogs = [_Read(tenant, catalog) for tenant in tenants(store, request) for catalog in _catalogs(store, tenant, request)]
    pins = _heads(catalogs, request.ref) if request.at is None else _states(catalogs, request.at)
    if request.catalog is not None and request.realm is None and not pins:
        raise NotFoundError(f"no realm of the store has a catalog {request.catalog!r} with a commit")
    if request.ref is not None and not pins:
        raise NotFoundError(
            f"no catalog that is read has a branch or tag {request.ref!r} with a commit: see `headwater catalog branch list`"
        )
    return pins


class _Read(NamedTuple):
    """A catalog to read."""

    tenant: Tenant
    catalog: Catalog

    def pin(self, ref: str, kind: str, commit: ObjectId) -> PinnedState:
        return PinnedState(self.tenant, StatePlace(self.tenant.realm, self.catalog.definition.name, ref, kind), commit)


def _catalogs(store: Store, tenant: Tenant, request: ReadRequest) -> list[Catalog]:
    rows = read_only(store, tenant)
    return [Catalog(rows, definition) for definition in _definitions(rows, request)]


def _definitions(rows: RealmStore, request: ReadRequest) -> list[CatalogDefinition]:
    if request.catalog is None:
        return Catalogs(rows).list_catalogs().complete()
    if request.realm is not None:
        return [Catalogs(rows).read_catalog(request.catalog)]
    definition = Catalogs(rows).find_catalog(request.catalog)
    return [] if definition is None else [definition]


def _heads(catalogs: Sequence[_Read], ref: str | None) -> list[PinnedState]:
    return [
        read.pin(named.name, named.kind.value, named.head)
        for read in catalogs
        for named in (*read.catalog.branches(), *read.catalog.tags())
        if named.head is not None and ref in (None, named.name)
    ]


def _states(catalogs: Sequence[_Read], at: str) -> list[PinnedState]:
    """The state of each catalog that has it. Catalogs without it are left out as long as another one has it."""
    pins: list[PinnedState] = []
    faults: list[NotFoundError] = []
    for read in catalogs:
        try:
            head = read.catalog.resolve(at)
        except NotFoundError as fault:
            if isinstance(fault, ExpiredError) and _has_start(read.catalog, at):
                raise  # it had the state: without it, the result would be incomplete
            faults.append(fault)
            continue
        if head is not None:
            pins.append(read.pin(at, _kind_of(read.catalog, at), head.id))
    if faults and len(faults) == len(catalogs):
        raise _missing_everywhere(at, faults)
    return pins


def _has_start(catalog: Catalog, at: str) -> bool:
    """Whether a catalog has the reference or commit at which a text starts."""
    revspec = parse_revspec(at)
    if revspec.commit is None:
        return True  # a missing branch or tag has not expired
    try:
        catalog.resolve(id_text(revspec.commit))
    except NotFoundError:
        return False
    return True


def _missing_everywhere(at: str, faults: Sequence[NotFoundError]) -> NotFoundError:
    if len(faults) == 1:
        return faults[0]
    expired = [fault for fault in faults if isinstance(fault, ExpiredError)]
    kind = ExpiredError if expired else NotFoundError
    return kind(f"none of the {len(faults)} catalogs that are read has a state {at!r}, such as: {(expired or faults)[0]}")


def _kind_of(catalog: Catalog, at: str) -> str:
    revspec = parse_revspec(at)
    if revspec.name is None or revspec.commit is not None or revspec.steps:
        return "commit"
    name = catalog.definition.default_branch if revspec.name == DEFAULT_REF else revspec.name
    try:
        catalog.branch(name)
    except NotFoundError:
        return RefKind.TAG.value
    return RefKind.BRANCH.value


def expired(pin: PinnedState) -> ExpiredError:
    """The error for a pinned state that no longer exists."""
    return ExpiredError(
        f"commit {id_text(pin.commit)} of catalog {pin.place.catalog!r} in realm {pin.place.realm!r} was collected since this data frame or"
        " view was made: make it again"
    )
