"""What the garbage collector does in catalogs: it reads reference names and content ids, finishes deletions, releases names and claims,
and drops the requests that no commit has dropped.

A name is released only after its row is gone, and only if nobody listed it anew meanwhile. Both are checked in the very commit
that removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple
from uuid import UUID

import msgspec

from headwater.catalogs.catalog_definition import CatalogDefinition, CatalogState
from headwater.catalogs.content import CONTENT_VALUE_BYTES, ContentValue
from headwater.catalogs.content_operations import CONTENT
from headwater.catalogs.history.commit_meta import HEADWATER, CommitMeta
from headwater.catalogs.registry import (
    BY_ID,
    CATALOGS,
    REFS_INDEX,
    ListedRef,
    OwnRefKind,
    RefKind,
    all_definitions,
    definition_in,
    deleted_definitions,
    gone_parts,
    hold_seconds,
    listed_refs,
    lost_list_error,
    own_reference,
    parse_reference,
    read_ref_names,
    ref_key,
    store_definition,
)
from headwater.catalogs.request_log import EXPIRED_LIMIT, REQUESTS, count_expired, drop_expired
from headwater.catalogs.table_claims import BY_LOCATION, BY_UUID, CLAIMS, HOMES, RELEASED, ClaimOwner, home_key
from headwater.clock import Micros
from headwater.commits import Commit, Head, Transaction, catalog_extensions, commit_change, delete_moving_reference, read_head
from headwater.errors import CorruptionError, NotFoundError
from headwater.index import Index, IndexValue, SharedIndexScan
from headwater.store import ObjectId, RealmStore

_ALL_PARTS = sum(part.bit for part in OwnRefKind)


class ListedReference(NamedTuple):
    """A reference name, with or without a row.

    is_content    a branch or tag: its history is content
    listed        when the name was listed last (for a deleted catalog's own references: when the catalog was deleted)
    called        the name that users know, catalog and branch or tag, as ``lake/main``; empty for a catalog's own references
    """

    name: str
    is_content: bool
    listed: Micros
    called: str = ""


def reference_names(rows: RealmStore) -> list[ListedReference]:
    """List every reference name of a realm's catalogs, freshly read. Deleted catalogs are included until their names are released.

    raises        NotFoundError when the realm has no list of catalogs; CorruptionError when a list cannot be read
    """
    references: list[ListedReference] = []
    for definition, entry in all_definitions(rows, index=BY_ID):
        gone = gone_parts(entry)
        own = [part for part in OwnRefKind if not gone & part.bit]
        references += [ListedReference(own_reference(definition.id, part), False, definition.updated) for part in own]
        if OwnRefKind.REFS in own:
            references += _content_names(rows, definition)
    return references


def reference_text(rows: RealmStore, reference: str) -> str:
    """Describe a reference for users: "branch main of catalog lake"; a reference of no catalog is quoted as it is.

    ``reference`` may end in ``@`` and a commit: a pointer that the reference left.
    """
    name, _, left = reference.partition("@")
    part = parse_reference(name)
    if part is None:
        return repr(reference)
    catalogs = read_head(rows, CATALOGS, fresh=True)
    definition = None if catalogs is None else definition_in(rows, catalogs.index(BY_ID), part.catalog_id)
    catalog = f"catalog {part.catalog_id if definition is None else definition.name}"
    what = f"{part.part} {part.name}" if isinstance(part.part, RefKind) else f"the {part.part}"
    return f"{what} of {catalog}" + (f" before it left commit {left}" if left else "")


def release_name(rows: RealmStore, reference: str, *, older_than: Micros) -> bool:
    """Remove a name, whose row was removed, from the list that has it. Returns False when it stays, or belongs to no catalog.

    It stays while it has a row, when it was listed at ``older_than`` or later, and when it is a live catalog's own reference.
    With the last name of a deleted catalog, the catalog's definition goes.
    """
    part = parse_reference(reference)
    if part is None:
        return False
    try:
        if isinstance(part.part, OwnRefKind):
            return _release_own(rows, part.catalog_id, part.part, older_than)
        return _release_content(rows, part.catalog_id, part.part, part.name, older_than)
    except NotFoundError:
        return False  # the list itself is gone, and the name with it


def finish_deletions(rows: RealmStore, *, fence: Callable[[], None] | None = None) -> int:
    """Purge the deleted catalogs whose hold is over, and bury the live references of catalogs that are being purged.

    Live references are branches made while a deletion ran, or left by an interrupted one, and a catalog's own references once no
    branch or tag is listed any more. Returns the number of tombstones made.
    """
    now = rows.clock.now()
    for deleted in deleted_definitions(rows):
        if _is_hold_ahead(rows, deleted, now):
            _hold_from_now(rows, deleted, fence)
    due = [deleted for deleted in deleted_definitions(rows) if deleted.held_until is None or deleted.held_until <= now]
    return sum(_finish_deletion(rows, deleted, fence) for deleted in due)


def end_hold(tx: Transaction, deleted: CatalogDefinition) -> CatalogDefinition:
    """End the hold of a deleted catalog, if it has not ended yet: from then on it cannot be restored."""
    if not deleted.is_held:
        return deleted
    ended = msgspec.structs.replace(deleted, updated=tx.time, held_until=None)
    store_definition(tx, ended)
    return ended


def bury_references(rows: RealmStore, definition: CatalogDefinition, fence: Callable[[], None] | None = None) -> int:
    """Delete its branches and tags, then its own references once no branch or tag is listed. Returns the number of deleted references.

    fence         called before each deletion
    """
    names = []
    if rows.find_reference(own_reference(definition.id, OwnRefKind.REFS), fresh=True) is not None:
        names = [listed.reference(definition.id) for listed in listed_refs(read_ref_names(rows, definition.id))]
    # Those of extensions go with it; their names stand in a list of their own.
    names += catalog_extensions(rows, definition.id)
    if not names:  # last: as long as a name is listed, the list that has it must stay readable
        names = [own_reference(definition.id, part) for part in OwnRefKind]
    return sum(delete_moving_reference(rows, name, fence) for name in names)


def content_ids(commit: Head) -> Iterator[UUID]:
    """The ids of all content in a commit of a branch or tag. Reads the whole index."""
    return (ContentValue.from_value(value).content_id for _, value in commit.index(CONTENT).range())


class ContentVisit:
    """Reads the content of many commits of branches and tags; stripes that commits share are read once.

    is_new, was_met   see ``SharedIndexScan``
    """

    def __init__(self, rows: RealmStore, *, is_new: Callable[[ObjectId], bool], was_met: Callable[[ObjectId], bool]) -> None:
        self._visit = SharedIndexScan(rows, is_new=is_new, was_met=was_met)

    def held_ids(self, commit: Head) -> Iterator[bytes]:
        """The ids of all content in a commit, as 16 bytes each. Ids that an earlier call returned are left out where possible."""
        container = commit.commit.indexes.get(CONTENT)
        if commit.commit.depth:
            yield from (_raw_id(value.data) for _, value in commit.index(CONTENT).range())
        elif container is not None:
            for data in self._visit.data(container):
                yield from map(_raw_id, data)

    def put_ids(self, commit: Head) -> Iterator[bytes]:
        """The ids of the content that a commit put, as 16 bytes each."""
        operations = (operation for operation in commit.commit.operations if operation.index == CONTENT)
        return (_raw_id(operation.data) for operation in operations if not operation.removed)


def _raw_id(data: bytes) -> bytes:
    if len(data) != CONTENT_VALUE_BYTES:
        raise CorruptionError(
            f"{data!r} is no value of the index {CONTENT!r}: it has {len(data)} bytes, not {CONTENT_VALUE_BYTES}"
        )
    return data[1:17]


_BY_CONTENT = (HOMES, RELEASED)


def release_claims(
    rows: RealmStore, content: Container[UUID], *, older_than: Micros, fence: Callable[[], None] | None = None
) -> int:
    """Release claims, taken before ``older_than``, of content that is in no kept commit. Returns the number of claims removed.

    A claim that is taken again meanwhile has a new time, and stays. One with a time in the future counts as taken now. That a table is
    at home goes with its last claim.
    """
    credible = rows.credible_until(rows.clock.now())

    def is_free(name: str, key: bytes, value: IndexValue) -> bool:
        owner = ClaimOwner.from_value(value)
        if name in _BY_CONTENT and key != home_key(rows, owner.catalog_id, owner.content_id):
            return True  # of the realm that an archive was made of
        return (owner.taken < older_than or owner.taken > credible) and owner.content_id not in content

    claims = read_head(rows, CLAIMS, fresh=True)
    if claims is None:
        return 0
    free = [
        (name, bytes(key))
        for name in (BY_UUID, BY_LOCATION, *_BY_CONTENT)
        for key, value in claims.index(name).range()
        if is_free(name, key, value)
    ]
    if not free:
        return 0

    def change(tx: Transaction) -> int:
        held = ((name, key, tx.index(name).get(key)) for name, key in free)
        still_free = [
            (name, key, ClaimOwner.from_value(value))
            for name, key, value in held
            if value is not None and is_free(name, key, value)
        ]
        for name, key, owner in still_free:
            if owner.taken > credible:
                tx.index(name).put(key, replace(owner, taken=tx.time).to_value())
            else:
                tx.index(name).remove(key)
        return sum(owner.taken <= credible for name, _, owner in still_free if name not in _BY_CONTENT)

    return commit_change(rows, CLAIMS, change, message="release claims", fence=fence).result


REQUESTS_LEFT = 10 * EXPIRED_LIMIT
"""So many expired requests are left to the next commits of a branch: to drop them takes a commit, which everybody sees in its log."""
_DROPPED_AT_ONCE = 10_000
_HEADS_AT_ONCE = 200


def drop_old_requests(rows: RealmStore, *, least: int = REQUESTS_LEFT, fence: Callable[[], None] | None = None) -> int:
    """Drop the expired requests of branches where many are left, and return how many.

    Commits drop them otherwise. Many are left on a branch that was busy and is idle now, or that a client with a wrong clock writes.

    least         branches with fewer are left alone
    """
    definitions = [definition for definition, _ in all_definitions(rows)]
    return sum(
        _drop_requests_of(rows, definition, reference, fence)
        for definition in definitions
        for reference in _branches_with_old_requests(rows, definition, least)
    )


def _branches_with_old_requests(rows: RealmStore, definition: CatalogDefinition, least: int) -> Iterator[str]:
    try:
        names = read_ref_names(rows, definition.id)
    except NotFoundError:
        return  # its creation was interrupted
    before = Micros(rows.clock.now() - round(rows.settings.requests_kept_seconds * 1_000_000))
    references = iter([listed.reference(definition.id) for listed in listed_refs(names, RefKind.BRANCH)])
    while batch := list(islice(references, _HEADS_AT_ONCE)):
        pointers = {
            row.pointer: row.name
            for row in rows.find_rows(batch)
            if row is not None and row.deleted is None and row.pointer is not None
        }
        for (commit_id, reference), commit in zip(pointers.items(), rows.read_many(list(pointers), Commit), strict=True):
            # Branches on one commit share its entries: one of them is enough, and the others drop them when they move.
            requests = Index() if commit is None else Head(commit_id, commit, rows).index(REQUESTS)
            if len(requests) >= least and count_expired(requests, before=before) >= least:
                yield reference


def _drop_requests_of(rows: RealmStore, definition: CatalogDefinition, reference: str, fence: Callable[[], None] | None) -> int:
    def change(tx: Transaction) -> int:
        return drop_expired(tx, lifetime_seconds=rows.settings.requests_kept_seconds, limit=_DROPPED_AT_ONCE, is_thorough=True)

    meta, dropped, batch = CommitMeta(authors=(HEADWATER,)), 0, _DROPPED_AT_ONCE
    while batch == _DROPPED_AT_ONCE:
        batch = commit_change(
            rows,
            reference,
            change,
            message="drop expired requests",
            properties=meta.as_properties(definition.id),
            fence=fence,
        ).result
        dropped += batch
    return dropped


def _is_hold_ahead(rows: RealmStore, deleted: CatalogDefinition, now: Micros) -> bool:
    """True if a hold ends later than any hold begun by now could: the clock was ahead when the catalog was deleted."""
    longest = hold_seconds(rows, deleted) + rows.settings.clock_bound_seconds
    return deleted.held_until is not None and deleted.held_until > now + longest * 1_000_000


def _hold_from_now(rows: RealmStore, seen: CatalogDefinition, fence: Callable[[], None] | None) -> None:
    """Restart a hold now: it is never shorter than promised, and does not last until the wrong clock's time."""

    def change(tx: Transaction) -> None:
        if definition_in(tx.reader, tx.index(BY_ID), seen.id) == seen:
            until = Micros(tx.time + round(hold_seconds(rows, seen) * 1_000_000))
            store_definition(tx, msgspec.structs.replace(seen, updated=tx.time, held_until=until))

    commit_change(rows, CATALOGS, change, message=f"count the hold of catalog {seen.name} from now", fence=fence)


def _finish_deletion(rows: RealmStore, seen: CatalogDefinition, fence: Callable[[], None] | None) -> int:
    if seen.is_held:

        def change(tx: Transaction) -> CatalogDefinition | None:
            return end_hold(tx, seen) if definition_in(tx.reader, tx.index(BY_ID), seen.id) == seen else None

        if commit_change(rows, CATALOGS, change, message=f"purge catalog {seen.name}", fence=fence).result is None:
            return 0  # it was restored just now
    return bury_references(rows, seen, fence)


def _content_names(rows: RealmStore, definition: CatalogDefinition) -> list[ListedReference]:
    reference = own_reference(definition.id, OwnRefKind.REFS)
    try:
        names = read_ref_names(rows, definition.id)
    except NotFoundError:
        _check_list_was_not_lost(rows, definition)
        is_made_meanwhile = rows.find_reference(reference, fresh=True) is not None
        names = read_ref_names(rows, definition.id) if is_made_meanwhile else Index()
    return [
        ListedReference(entry.reference(definition.id), True, entry.listed, f"{definition.name}/{entry.name}")
        for entry in listed_refs(names)
    ]


def _check_list_was_not_lost(rows: RealmStore, definition: CatalogDefinition) -> None:
    """Pass if a catalog without a list of branches never had one, or gave it up with its last name.

    A name is listed before its row is made, and leaves the list after it. So branches without a list mean that the list was lost;
    treating them as unlisted would delete them all.

    raises        CorruptionError
    """
    names = [row.name for row in rows.scan_references() if row.deleted is None and _is_content_of(row.name, definition.id)]
    reference = own_reference(definition.id, OwnRefKind.REFS)
    if names and rows.find_reference(reference, fresh=True) is None:
        raise lost_list_error(rows, definition, names)


def _is_content_of(name: str, catalog_id: str) -> bool:
    part = parse_reference(name)
    return part is not None and part.catalog_id == catalog_id and isinstance(part.part, RefKind)


def _release_content(rows: RealmStore, catalog_id: str, kind: RefKind, name: str, older_than: Micros) -> bool:
    key = ref_key(kind, name)

    def change(tx: Transaction) -> bool:
        value = tx.index(REFS_INDEX).get(key)
        if value is None:
            return False
        entry = ListedRef.from_entry(key, value)
        if entry.listed >= older_than or tx.reader.find_row(entry.reference(catalog_id)) is not None:
            return False
        return tx.index(REFS_INDEX).remove(key)

    return commit_change(rows, own_reference(catalog_id, OwnRefKind.REFS), change, message=f"release {kind} {name}").result


def _release_own(rows: RealmStore, catalog_id: str, part: OwnRefKind, older_than: Micros) -> bool:
    key = catalog_id.encode()

    def change(tx: Transaction) -> bool:
        by_id = tx.index(BY_ID)
        value, definition = by_id.get(key), definition_in(tx.reader, by_id, catalog_id)
        if value is None or definition is None or definition.state is CatalogState.ACTIVE or definition.is_held:
            return False
        if definition.updated >= older_than:
            return False
        if tx.reader.find_row(own_reference(catalog_id, part)) is not None:
            return False
        gone = gone_parts(value) | part.bit
        if gone == _ALL_PARTS:
            return by_id.remove(key)
        by_id.put(key, IndexValue(value.object_id, bytes([gone])))
        return True

    return commit_change(rows, CATALOGS, change, message=f"release {part} of catalog {catalog_id}").result
