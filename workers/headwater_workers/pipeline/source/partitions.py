"""Partitions: how the reading is divided among Spark tasks. Runs once a query, on the driver's side."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from headwater.catalogs import CONTENT
from headwater.catalogs.registry import BY_ID, OwnRefKind, all_definitions, own_reference
from headwater.clock import Micros
from headwater.commits import Commit, Head
from headwater.errors import CorruptionError, NotFoundError
from headwater.store import SYSTEM_REALM, ObjectId, RealmStore, ScanSplit, Store
from headwater_workers.pipeline.source.pinned_states import PinnedState, Tenant, expired, read_only
from headwater_workers.pipeline.source.pushdown import EVERYTHING, KeyRange, Selection, Span
from headwater_workers.pipeline.source.reader_options import ReadRequest
from headwater_workers.pipeline.source.source_columns import TABLES

P = TypeVar("P", bound=tuple[Any, ...])
_HEX = re.compile("[0-9a-f]*")
_LARGEST = (1 << 63) - 1
_LAST_PART = (1 << 31) - 1
_SMALLEST = {"entries": 20_000, "contents": 5_000, "commits": 2_000, "changes": 2_000}
"""The number of rows for which a separate task pays."""
_STRIPE_ROWS = 1000
"""About the most rows that a stripe may have."""


class ScanPartition(NamedTuple):
    """The unit of reading: a part of a pinned state or its history, or of a scan (``split``).

    weight        about how many rows it has
    """

    tenant: Tenant
    weight: int
    pin: PinnedState | None = None
    keys: KeyRange = EVERYTHING
    since: Micros | None = None
    seq: int | None = None
    split: ScanSplit[Any] | None = None


def divided(
    store: Store, request: ReadRequest, selection: Selection, places: Sequence[Tenant], pins: Sequence[PinnedState]
) -> list[list[ScanPartition]]:
    """The partitions, each a list of pieces: up to the requested number of tasks, of about equal weight."""
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
            ScanPartition(
                pin.tenant, head.commit.seq, pin=pin, keys=selection.key_range, since=selection.since, seq=selection.seq
            )
            for pin, head in heads
            if _reaches(head, selection)
        ]
    else:
        target = max(sum(len(head.index(CONTENT)) for _, head in heads) // request.partitions, _SMALLEST[request.table])
        pieces = [piece for pin, head in heads for piece in _entries(pin, head, selection.key_range, target)]
    most = sum(piece.weight for piece in pieces) // _SMALLEST[request.table] + 1
    return _bundled(pieces, min(request.partitions, most))


def _heads(store: Store, pins: Sequence[PinnedState]) -> Iterator[tuple[PinnedState, Head]]:
    """The commits of pins, with one round trip for each realm.

    raises        ExpiredError when one was collected since it was pinned
    """
    for tenant in dict.fromkeys(pin.tenant for pin in pins):
        rows = read_only(store, tenant)
        own = [pin for pin in pins if pin.tenant == tenant]
        for pin, commit in zip(own, rows.read_many([pin.commit for pin in own], Commit), strict=True):
            if commit is None:
                raise expired(pin)
            yield pin, Head(pin.commit, commit, rows)


def _reaches(head: Head, selection: Selection) -> bool:
    """Whether the history of this head may contain a commit that is young enough."""
    return head.commit.seq >= (selection.seq or 0) and head.commit.time >= (selection.since or 0)


def _entries(pin: PinnedState, head: Head, keys: KeyRange, target: int) -> Iterator[ScanPartition]:
    """Divide a state into key ranges of about ``target`` rows each, cut where stripes begin."""
    index = head.index(CONTENT)
    within = index.bounds(keys.start, keys.end)
    if not within:
        yield ScanPartition(pin.tenant, min(len(index), _STRIPE_ROWS), pin=pin, keys=keys)
        return
    each = max(len(index) // (len(index.bounds()) + 1), 1)
    step = max(target // each, 1)
    cuts = within[step - 1 :: step]
    for start, end in zip([keys.start, *cuts], [*cuts, keys.end], strict=True):
        yield ScanPartition(pin.tenant, each * min(step, len(within) + 1), pin=pin, keys=KeyRange(start, end))


def _scans(
    store: Store, request: ReadRequest, selection: Selection, wanted: Sequence[Tenant], tasks: int
) -> Iterator[ScanPartition]:
    for tenant in wanted:
        rows = read_only(store, tenant)
        if request.table == "objects":
            yield from _objects(rows, tenant, tasks, selection.ids)
        else:
            yield from _references(rows, tenant, tasks, request, selection)


def _objects(rows: RealmStore, tenant: Tenant, tasks: int, ids: Span) -> Iterator[ScanPartition]:
    low, high = _least_id(ids.low), _greatest_id(ids.high)
    after = None if low is None or low < 1 else (tenant.key, ObjectId(low - 1), _LAST_PART)
    until = None if high is None else (tenant.key, high, _LAST_PART)
    yield from _narrowed(tenant, rows.split_objects(tasks), after, until)


def _references(
    rows: RealmStore, tenant: Tenant, tasks: int, request: ReadRequest, selection: Selection
) -> Iterator[ScanPartition]:
    splits = rows.split_references(tasks)
    if splits[0].realm is not None and (request.catalog is not None or "catalog" in selection.among):
        ids = [catalog_id for catalog_id, name in catalog_names(rows).items() if is_wanted(request, selection, name)]
        folders = [own_reference(catalog_id, OwnRefKind.REFS).removesuffix(OwnRefKind.REFS) for catalog_id in ids]
        # "0" is the character after "/"
        splits = [ScanSplit(tenant.key, (tenant.key, folder), (tenant.key, f"{folder[:-1]}0")) for folder in folders]
    names = selection.names
    after = (tenant.key, names.low[:-1]) if names.low else None
    until = None if names.high is None else (tenant.key, names.high)
    yield from _narrowed(tenant, splits, after, until)


def _narrowed(tenant: Tenant, splits: Sequence[ScanSplit[P]], after: P | None, until: P | None) -> Iterator[ScanPartition]:
    """The part of the splits that lies between two places. Splits over all realms have an order of their own, and stay unchanged."""
    for split in splits:
        if split.realm is None:
            yield ScanPartition(tenant, 1, split=split)
            continue
        start, end = _later(split.after, after), _earlier(split.until, until)
        if start is None or end is None or start < end:
            yield ScanPartition(tenant, 1, split=ScanSplit(split.realm, start, end))


def catalog_names(rows: RealmStore) -> Mapping[str, str]:
    """The names of a realm's catalogs, deleted ones included, by their ids."""
    if rows.realm == SYSTEM_REALM:
        return {}
    try:
        return {definition.id: definition.name for definition, _ in all_definitions(rows, index=BY_ID)}
    except (NotFoundError, CorruptionError):
        return {}  # the realm is being created or purged: its references exist all the same


def is_wanted(request: ReadRequest, selection: Selection, catalog: str) -> bool:
    """Whether a catalog is one of the requested ones."""
    return request.catalog in (None, catalog) and selection.allows(catalog=catalog)


def _later(one: P | None, other: P | None) -> P | None:
    return max((end for end in (one, other) if end is not None), default=None)


def _earlier(one: P | None, other: P | None) -> P | None:
    return min((end for end in (one, other) if end is not None), default=None)


def _least_id(text: str | None) -> ObjectId | None:
    """The first id whose text is not before this one; None where that is unknown."""
    return _padded(text, "0")


def _greatest_id(text: str | None) -> ObjectId | None:
    """The last id whose text is not after this one."""
    return _padded(text, "f")


def _padded(text: str | None, digit: str) -> ObjectId | None:
    if text is None or not _HEX.fullmatch(text[:16]):
        return None
    return ObjectId(min(int(text[:16].ljust(16, digit), 16), _LARGEST))


def _bundled(pieces: Iterable[ScanPartition], most: int) -> list[list[ScanPartition]]:
    """The pieces in up to ``most`` bundles: each piece, the heaviest first, goes to the lightest bundle."""
    heap: list[tuple[int, int, list[ScanPartition]]] = [(0, number, []) for number in range(most)]
    for piece in sorted(pieces, key=lambda piece: -piece.weight):
        weight, number, bundle = heapq.heappop(heap)
        bundle.append(piece)
        heapq.heappush(heap, (weight + piece.weight, number, bundle))
    return [bundle for _, _, bundle in sorted(heap, key=lambda entry: entry[1]) if bundle]
