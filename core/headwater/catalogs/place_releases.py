"""Places of tables that only history holds: a new table of the same catalog takes them over, and a user releases them.

A dropped table keeps its claims until no kept commit holds it, so that the drop can be undone. Its places may go earlier, where no
branch and no tag of its catalog holds it, deleted ones included. What would bring it back to a branch takes the places again
(``take_back_places``, ``take_back_copies``), and is refused where another table has them; a restore leaves such a table away.

The claims are one row, and each branch is another, so that the two sides order what they write and read, as the collector does:

    whoever lets go the places of X                       whoever moves branch B to a commit with X
    no branch and no tag holds X                          reads the row of B
    names X as released, where the claims are             looks whether X is named as released, and then takes its claims again,
    raises the version of every listed branch,            by which the name goes
      and looks whether it holds X now                    swaps the row as it was read
    lets go the places, if X is still named, and claimed
      as it was seen at first

A row that was read before X was named is beaten by the raise, or swapped before it and seen. One that was read later finds the name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from headwater.catalogs.catalog_definition import CatalogDefinition, CatalogState
from headwater.catalogs.content import ContentKey, ContentValue
from headwater.catalogs.content_operations import CONTENT, IDS, find_content_keys
from headwater.catalogs.registry import ListedRef, RefKind, find_definition, listed_refs, read_ref_names
from headwater.catalogs.stored_metadata import read_fields
from headwater.catalogs.table_claims import (
    PURGING,
    ClaimConflict,
    ClaimOwner,
    TableClaim,
    TableClaims,
    find_released,
    stored_places,
)
from headwater.clock import Micros
from headwater.commits import Head, Transaction, read_commit, read_log, sound_times
from headwater.errors import NotFoundError, RefusedError, SwapConflictError, UnavailableError
from headwater.index import Index, IndexEditor
from headwater.store import ObjectId, RealmReader, RealmStore, Reference
from headwater.typed_values import decode_json

R = TypeVar("R")
_UUIDS = ("table-uuid", "view-uuid")
_SHOWN = 5
_COMMITS = 10_000
_ROUNDS = 5
"""How often to look for further contents in the way; each round finds at least one."""
_TRIES = 50


def take_over_history(
    claims: TableClaims, wanted: Sequence[TableClaim], *, fence: Callable[[], None] | None = None
) -> tuple[ClaimConflict, ...]:
    """Take claims, also of places that only the history of the same catalog holds; returns and raises as ``take_claims`` does."""
    over: set[ClaimOwner] = set()
    for _ in range(_ROUNDS):
        conflicts = claims.take_claims(wanted, over=over, fence=fence)
        more = _announced(claims, _only_in_history(claims.rows, conflicts, over))
        if not more:
            break
        over |= more
    return conflicts


def conflicts_beside_history(claims: TableClaims, wanted: Sequence[TableClaim]) -> tuple[ClaimConflict, ...]:
    """The conflicts that ``take_over_history`` would have; nothing is written."""
    over: set[ClaimOwner] = set()
    for _ in range(_ROUNDS):
        conflicts = claims.find_conflicts(wanted, over=over)
        more = _only_in_history(claims.rows, conflicts, over)
        if not more:
            break
        over |= set(more.values())
    return conflicts


def _announced(claims: TableClaims, places: Mapping[str, ClaimOwner]) -> set[ClaimOwner]:
    """Announce that places of one catalog are let go; returns the owners that no branch and no tag holds then, nor can hold any more.

    One that is held by now stays named: its next claim ends that, and until then nothing but its purge waits.
    """
    named = claims.announce_release(places) if places else {}
    held: set[UUID] = set()
    for catalog_id in {owner.catalog_id for owner in named.values()}:
        if not _can_come_back(find_definition(claims.rows, catalog_id=catalog_id)):
            continue
        contents = {owner.content_id for owner in named.values() if owner.catalog_id == catalog_id}
        held |= _holders_among(claims.rows, contents, _raised_rows(claims.rows, catalog_id)).keys()
    return {owner for owner in named.values() if owner.content_id not in held}


def _can_come_back(definition: CatalogDefinition | None) -> bool:
    """Whether a catalog is there, or may be undeleted."""
    return definition is not None and (definition.state is CatalogState.ACTIVE or definition.is_held)


def _raised_rows(rows: RealmStore, catalog_id: str) -> Iterator[tuple[ListedRef, Reference | None]]:
    """The rows of the listed branches and tags, those of branches under a raised version; a branch without a row gets a tombstone."""
    for listed in listed_refs(read_ref_names(rows, catalog_id)):
        name = listed.reference(catalog_id)
        yield listed, rows.find_row(name) if listed.kind is RefKind.TAG else _raise_row(rows, name)


def _raise_row(rows: RealmStore, name: str) -> Reference:
    for _ in range(_TRIES):
        row = rows.find_row(name)
        try:
            return rows.bury_reference(name) if row is None else rows.raise_version(row)
        except SwapConflictError:
            continue  # only the row that the raise returns is sure to be the current one
    raise UnavailableError(f"reference {name!r} of realm {rows.realm!r} changes too fast to free a place: try again")


def release_location(rows: RealmStore, location: str) -> tuple[str, ...]:
    """Release all claims on a location, around it or below it, of tables that only history holds, in any catalog; returns the places.

    Of a catalog that is gone, or that a purge keeps from coming back, all tables are history.

    raises        NotFoundError where nobody claims it; RefusedError for a table that a branch or tag holds, for one in a deleted catalog
                  that can be undeleted, and for a place that is being purged: then nothing is released
    """
    claims = TableClaims(rows)
    held = dict(claims.find_around_and_below(location))
    if not held:
        raise NotFoundError(f"no table of realm {rows.realm!r} has claimed {location}: it is free")
    for place, owner in held.items():
        _check_releasable(rows, place, owner)
    free = _announced(claims, held)
    for place, owner in held.items():
        if owner not in free:  # it has come back, or was claimed again just now
            _check_releasable(rows, place, owner)
    return claims.release_places({place: owner for place, owner in held.items() if owner in free})


def release_unheld(claims: TableClaims, location: str, content_id: UUID, catalog_id: str) -> bool:
    """Release the place of a content unless a branch or tag of its catalog holds it; False: it has that place still, or not any more."""
    owner = claims.find_location(location)
    if owner is None or (owner.catalog_id, owner.content_id) != (catalog_id, content_id):
        return False
    if find_holders(claims.rows, catalog_id, [content_id]) or not _announced(claims, {location: owner}):
        return False
    return bool(claims.release_places({location: owner}))


def take_back_places(rows: RealmStore, catalog_id: str, commit: ObjectId, what: str) -> None:
    """Take the places again of the tables in a commit that is to be a branch's, where they were let go.

    what          what does not happen otherwise, for the message
    raises        RefusedError that names the tables whose place another one has by now
    """
    released = find_released(rows, catalog_id)
    if released:  # else the commit is not even read
        ids = read_commit(rows, commit).index(IDS)
        _take_back(rows, catalog_id, ids, find_content_keys(ids, released), what, dry_run=False)


def take_back_copies(
    rows: RealmStore,
    catalog_id: str,
    source: Head,
    onto: Index,
    contents: Mapping[UUID, ContentKey],
    what: str,
    *,
    dry_run: bool,
) -> None:
    """Do the same for contents, each with its key, that are to be put on a branch as a commit holds them.

    onto          the index ``ids`` of the branch: what it holds already does not come back
    dry_run       only check whether that is possible; nothing is taken
    """
    keys = {content_id: contents[content_id] for content_id in _coming_released(rows, catalog_id, onto, contents)}
    if keys:
        _take_back(rows, catalog_id, source.index(IDS), keys, what, dry_run=dry_run)


def find_lost_copies(
    rows: RealmStore, catalog_id: str, source: Head, onto: Index, contents: Mapping[UUID, ContentKey]
) -> set[ContentKey]:
    """Find the contents that ``take_back_copies`` would refuse, by their keys; nothing is written."""
    keys = {content_id: contents[content_id] for content_id in _coming_released(rows, catalog_id, onto, contents)}
    if not keys:
        return set()
    wanted = _claims_of(rows, catalog_id, source.index(IDS), keys)
    return {keys[content_id] for content_id in _lost(TableClaims(rows), wanted, keys)}


def _coming_released(
    rows: RealmReader, catalog_id: str, onto: Index | IndexEditor, contents: Collection[UUID]
) -> Collection[UUID]:
    """The contents that a branch does not hold, and that are named as released."""
    released = find_released(rows, catalog_id).intersection(contents) if contents else set[UUID]()
    return released - {UUID(bytes=key) for key in onto.get_many(content_id.bytes for content_id in released)}


class ReleasedPlacesError(SwapConflictError):
    """A change would bring back tables whose places are being let go: they are to be taken again first, outside of it."""


def check_coming(tx: Transaction, catalog_id: str, contents: Collection[UUID]) -> None:
    """Check that the places of contents that a change is about to put on its branch are theirs; called by each run of the change.

    raises        ReleasedPlacesError
    """
    rows = tx.reader
    released = _coming_released(rows, catalog_id, tx.index(IDS), contents)
    if released:
        raise ReleasedPlacesError(
            f"places in storage of {len(released)} tables of realm {rows.realm!r} are being let go, and the tables were to come back:"
            " try again"
        )


def with_places_taken(rows: RealmStore, attempt: Callable[[], R]) -> R:
    """Try again what takes places and then commits, as long as they are let go in between."""
    for _ in range(_TRIES):
        try:
            return attempt()
        except ReleasedPlacesError:
            continue
    raise UnavailableError(f"places in storage of realm {rows.realm!r} are let go all the time: try again")


def _take_back(
    rows: RealmStore, catalog_id: str, ids: Index, keys: Mapping[UUID, ContentKey], what: str, *, dry_run: bool
) -> None:
    claims, wanted = TableClaims(rows), _claims_of(rows, catalog_id, ids, keys)
    lost = _lost(claims, wanted, keys)
    if not lost and not dry_run:
        lost = {conflict.claim.content_id for conflict in claims.take_claims(wanted)}
    if lost:
        names = ", ".join(sorted(str(keys[content_id]) for content_id in lost)[:_SHOWN])
        raise RefusedError(
            f"{what}: it holds {names}, dropped since, whose place in storage was released, and is another table's by now. Read it by"
            " the commit or a tag; `headwater realm restore` brings back what else was there"
        )


def _lost(claims: TableClaims, wanted: Sequence[TableClaim], keys: Mapping[UUID, ContentKey]) -> set[UUID]:
    """The contents without a claim of their own, or whose place another table has."""
    return (keys.keys() - {claim.content_id for claim in wanted}) | {
        conflict.claim.content_id for conflict in claims.find_conflicts(wanted)
    }


def _claims_of(rows: RealmStore, catalog_id: str, ids: Index, content_ids: Iterable[UUID]) -> list[TableClaim]:
    """The claims of tables and views by the documents that are stored with them; others are left out."""
    entries = ids.get_many(content_id.bytes for content_id in content_ids)
    metadata = {UUID(bytes=key): entry.object_id for key, entry in entries.items() if entry.object_id is not None}
    places = stored_places(rows, list(metadata.values()))
    uuids = read_fields(rows, list(metadata.values()), _UUIDS)
    claims = []
    for content_id, metadata_id in metadata.items():
        location, paths = places[metadata_id]
        text = next(iter(uuids[metadata_id].values()), None)
        if location is not None:
            uuid = None if text is None else UUID(decode_json(text, str))
            claims.append(TableClaim(catalog_id, content_id, location, uuid, paths))
    return claims


def find_holders(rows: RealmStore, catalog_id: str, content_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Find which of some contents a branch or tag of a catalog holds, deleted ones included, each with the name of one."""
    listed = listed_refs(read_ref_names(rows, catalog_id))
    return _holders_among(rows, content_ids, ((each, rows.find_row(each.reference(catalog_id))) for each in listed))


def _holders_among(
    rows: RealmStore, content_ids: Iterable[UUID], heads: Iterable[tuple[ListedRef, Reference | None]]
) -> dict[UUID, str]:
    wanted, holders = set(content_ids), dict[UUID, str]()
    for listed, row in heads:
        if row is None or row.pointer is None:
            continue
        for content_id in find_content_keys(read_commit(rows, row.pointer).index(IDS), wanted - holders.keys()):
            holders[content_id] = f"the {listed.kind} {listed.name!r}" + (", deleted" if row.deleted else "")
    return holders


def _only_in_history(
    rows: RealmStore, conflicts: Sequence[ClaimConflict], known: Container[ClaimOwner]
) -> dict[str, ClaimOwner]:
    """The places in the way, besides known owners', whose content no branch and no tag of the claims' own catalog holds."""
    own = [each for each in conflicts if each.is_of_place and each.owner.catalog_id == each.claim.catalog_id != PURGING]
    found: set[UUID] = set()
    for catalog_id in {conflict.owner.catalog_id for conflict in own}:
        contents = {conflict.owner.content_id for conflict in own if conflict.owner.catalog_id == catalog_id}
        found |= contents - find_holders(rows, catalog_id, contents).keys()
    found -= _in_flight(rows, [conflict for conflict in own if conflict.owner.content_id in found])
    return {
        conflict.held_place: conflict.owner
        for conflict in own
        if conflict.owner.content_id in found and conflict.owner not in known
    }


def _in_flight(rows: RealmStore, conflicts: Sequence[ClaimConflict]) -> set[UUID]:
    """The contents whose claim is so young that its commit may still be on its way: no commit since then has put them.

    One that comes later than that finds that its claim was let go, and begins again.
    """
    patience = Micros(round(rows.settings.commit_timeout_seconds * 1_000_000))
    young = {
        conflict.owner.content_id: (conflict.owner.catalog_id, conflict.owner.taken)
        for conflict in conflicts
        if conflict.owner.taken > rows.clock.now() - patience
    }
    put: set[UUID] = set()
    for catalog_id in {catalog_id for catalog_id, _ in young.values()}:
        since = min(taken for owner, taken in young.values() if owner == catalog_id)
        for listed in listed_refs(read_ref_names(rows, catalog_id)):
            row = rows.find_row(listed.reference(catalog_id))
            if row is not None and row.pointer is not None:
                put.update(_put_since(rows, row.pointer, Micros(since - patience)))
    return young.keys() - put


def _put_since(rows: RealmStore, newest: ObjectId, since: Micros) -> Iterator[UUID]:
    """The contents that the commits of a line have put since a moment."""
    for head, time in sound_times(read_log(rows, newest, limit=_COMMITS)):
        if time < since:
            return
        for operation in head.commit.operations:
            if operation.index == CONTENT and operation.value is not None:
                yield ContentValue.from_value(operation.value).content_id


def _check_releasable(rows: RealmStore, place: str, owner: ClaimOwner) -> None:
    if owner.catalog_id == PURGING:
        raise RefusedError(f"{place} is being purged: it is free after that")
    definition = find_definition(rows, catalog_id=owner.catalog_id)
    if definition is None or not _can_come_back(definition):
        return
    address = f"{rows.realm}/{definition.name}"
    if definition.state is not CatalogState.ACTIVE:
        raise RefusedError(
            f"{place} belongs to a table of the deleted catalog {address}: end its hold first, by"
            f" `headwater catalog purge {address} --confirm {address}`"
        )
    holder = find_holders(rows, definition.id, [owner.content_id]).get(owner.content_id)
    if holder is not None:
        raise RefusedError(f"{place} belongs to a table that {holder} of {address} holds: drop it there first")
