"""Which states are read, and how the reading is divided among tasks. Runs once a query, beside the driver."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from headwater.catalogs import CONTENT, Catalog, CatalogDefinition, Catalogs, NameKind
from headwater.catalogs.listing import BY_ID, all_definitions
from headwater.catalogs.names import OwnPart, own_reference
from headwater.clock import Micros
from headwater.commits import Commit, Head
from headwater.errors import ExpiredError, MissingError, RefusedError
from headwater.realms import Realm, Realms, RealmState
from headwater.store import SYSTEM_KEY, SYSTEM_REALM, ObjectId, RealmId, RealmKey, RealmStore, Split, Store, id_text
from headwater_workers.pipeline.source.columns import TABLES
from headwater_workers.pipeline.source.conditions import Selection, Span
from headwater_workers.pipeline.source.keys import KeyRange
from headwater_workers.pipeline.source.options import Request

__all__ = [
    "Piece",
    "Pin",
    "Place",
    "Tenant",
    "check_served",
    "divided",
    "expired",
    "is_wanted",
    "pinned",
    "read_only",
    "tenants",
]

P = TypeVar("P", bound=tuple[Any, ...])
_HEX = re.compile("[0-9a-f]*")
_LARGEST = (1 << 63) - 1
_LAST_PART = (1 << 31) - 1
_SERVED = (RealmState.ACTIVE, RealmState.INACTIVE)
_SMALLEST = {"entries": 20_000, "contents": 5_000, "commits": 2_000, "changes": 2_000}
"""Rows for which a task of its own pays."""


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


class Piece(NamedTuple):
    """What is read in one go: a part of a pinned state or its history, or of a scan (``split``).

    weight        about how many rows it has
    """

    tenant: Tenant
    weight: int
    pin: Pin | None = None
    keys: KeyRange = KeyRange(None, None)
    since: Micros | None = None
    seq: int | None = None
    split: Split[Any] | None = None


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
    is_scan = request.table in ("objects", "references")
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
    """The states that are read, as they are now: those of all branches and tags, or the one that ``at`` means in each catalog.

    raises        MissingError for a catalog or a state that was named, and is not there; ExpiredError for a commit that was collected
    """
    found = [pin for tenant in tenants(store, request) for pin in _pinned_in(read_only(store, tenant), tenant, request)]
    if request.catalog is not None and request.realm is None and not found:
        raise MissingError(f"no realm of the store has a catalog {request.catalog!r} with a commit")
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
        if named.head is not None:
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


# dividing


def divided(
    store: Store, request: Request, selection: Selection, places: Sequence[Tenant], pins: Sequence[Pin]
) -> list[list[Piece]]:
    """What tasks read, each some pieces: up to as many tasks as are asked for, of about the same weight."""
    if selection.key_range.is_empty:
        return []
    if not TABLES[request.table].has_states:
        wanted = [tenant for tenant in places if selection.allows(realm=tenant.realm)]
        tasks = max(request.partitions // max(len(wanted), 1), 1)
        return _bundled(_scans(store, request, selection, wanted, tasks), request.partitions)
    chosen = [pin for pin in pins if selection.allows(**pin.place._asdict())]
    heads = list(_heads(store, chosen))
    if request.table in ("commits", "changes"):
        pieces = [
            Piece(pin.tenant, head.commit.seq, pin=pin, keys=selection.key_range, since=selection.since, seq=selection.seq)
            for pin, head in heads
        ]
    else:
        target = max(sum(len(head.index(CONTENT)) for _, head in heads) // request.partitions, _SMALLEST[request.table])
        pieces = [piece for pin, head in heads for piece in _entries(pin, head, selection.key_range, target)]
    most = sum(piece.weight for piece in pieces) // _SMALLEST[request.table] + 1
    return _bundled(pieces, min(request.partitions, most))


def _heads(store: Store, pins: Sequence[Pin]) -> Iterator[tuple[Pin, Head]]:
    """The commits of pins, one round trip for each realm.

    raises        ExpiredError when one was collected since it was pinned
    """
    for tenant in dict.fromkeys(pin.tenant for pin in pins):
        rows = read_only(store, tenant)
        own = [pin for pin in pins if pin.tenant == tenant]
        for pin, commit in zip(own, rows.read_many([pin.commit for pin in own], Commit), strict=True):
            if commit is None:
                raise expired(pin)
            yield pin, Head(pin.commit, commit, rows)


def expired(pin: Pin) -> ExpiredError:
    """What to say when a pinned state is not there any more."""
    return ExpiredError(
        f"commit {id_text(pin.commit)} of catalog {pin.place.catalog!r} in realm {pin.place.realm!r} was collected since this data frame or"
        " view was made: make it again"
    )


def _entries(pin: Pin, head: Head, keys: KeyRange, target: int) -> Iterator[Piece]:
    """A state in key ranges of about ``target`` rows each, cut where stripes begin."""
    index = head.index(CONTENT)
    bounds = index.bounds()
    within = index.bounds(keys.start, keys.end)
    each = max(len(index) // (len(bounds) + 1), 1)
    step = max(target // each, 1)
    cuts = within[step - 1 :: step]
    for start, end in zip([keys.start, *cuts], [*cuts, keys.end], strict=True):
        yield Piece(pin.tenant, each * min(step, len(within) + 1), pin=pin, keys=KeyRange(start, end))


def _scans(store: Store, request: Request, selection: Selection, wanted: Sequence[Tenant], tasks: int) -> Iterator[Piece]:
    for tenant in wanted:
        rows = read_only(store, tenant)
        if request.table == "objects":
            yield from _objects(rows, tenant, tasks, selection.ids)
        else:
            yield from _references(rows, tenant, tasks, request, selection)


def _objects(rows: RealmStore, tenant: Tenant, tasks: int, ids: Span) -> Iterator[Piece]:
    for split in rows.split_objects(tasks):
        after, until = split.after, split.until
        if split.realm is not None:  # keys are ordered
            low, high = _least_id(ids.low), _greatest_id(ids.high)
            after = _later(after, None if low is None or low < 1 else (tenant.key, ObjectId(low - 1), _LAST_PART))
            until = _earlier(until, None if high is None else (tenant.key, high, _LAST_PART))
        if after is None or until is None or after < until:
            yield Piece(tenant, 1, split=Split(split.realm, after, until))


def _references(rows: RealmStore, tenant: Tenant, tasks: int, request: Request, selection: Selection) -> Iterator[Piece]:
    splits = rows.split_references(tasks)
    if splits[0].realm is not None and (request.catalog is not None or "catalog" in selection.among):
        ids = [one.id for one, _ in all_definitions(rows, index=BY_ID) if is_wanted(request, selection, one.name)]
        folders = [own_reference(catalog_id, OwnPart.REFS).removesuffix(OwnPart.REFS) for catalog_id in ids]
        # "0" is what comes behind "/"
        splits = [Split(tenant.key, (tenant.key, folder), (tenant.key, f"{folder[:-1]}0")) for folder in folders]
    names = selection.names
    for split in splits:
        after, until = split.after, split.until
        if split.realm is not None:
            after = _later(after, (tenant.key, names.low[:-1]) if names.low else None)
            until = _earlier(until, None if names.high is None else (tenant.key, names.high))
        if after is None or until is None or after < until:
            yield Piece(tenant, 1, split=Split(split.realm, after, until))


def is_wanted(request: Request, selection: Selection, catalog: str) -> bool:
    return request.catalog in (None, catalog) and selection.allows(catalog=catalog)


def _later(one: P | None, other: P | None) -> P | None:
    return max((end for end in (one, other) if end is not None), default=None)


def _earlier(one: P | None, other: P | None) -> P | None:
    return min((end for end in (one, other) if end is not None), default=None)


def _least_id(text: str | None) -> ObjectId | None:
    """The first id whose text is not before this one; None where that cannot be told."""
    return _padded(text, "0")


def _greatest_id(text: str | None) -> ObjectId | None:
    """The last id whose text is not behind this one."""
    return _padded(text, "f")


def _padded(text: str | None, digit: str) -> ObjectId | None:
    if text is None or not _HEX.fullmatch(text[:16]):
        return None
    return ObjectId(min(int(text[:16].ljust(16, digit), 16), _LARGEST))


def _bundled(pieces: Iterable[Piece], most: int) -> list[list[Piece]]:
    """The pieces in up to ``most`` bundles: each piece, the heaviest first, goes where there is least."""
    heap: list[tuple[int, int, list[Piece]]] = [(0, number, []) for number in range(most)]
    for piece in sorted(pieces, key=lambda piece: -piece.weight):
        weight, number, bundle = heapq.heappop(heap)
        bundle.append(piece)
        heapq.heappush(heap, (weight + piece.weight, number, bundle))
    return [bundle for _, _, bundle in sorted(heap, key=lambda entry: entry[1]) if bundle]
