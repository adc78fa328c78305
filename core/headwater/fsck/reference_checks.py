"""Checks of references: the lists that name them, the objects that their heads reach, their histories, and the claims of their tables.

A name is listed before its row is made, and leaves the list after the row is gone. A head must be readable with all that it reaches. A
history may end only where a collection cut it. Then the realm is marked as a collection would do it, which refuses when it cannot read
something that it must keep; and the claims are compared with the kept content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from headwater.catalogs import (
    CATALOGS,
    CLAIMS,
    CONTENT,
    HOMES,
    IDS,
    REQUESTS,
    ClaimOwner,
    ContentKey,
    ContentType,
    ContentValue,
    IcebergTable,
    TableClaims,
    stored_places,
)
from headwater.catalogs.request_log import entry_fault
from headwater.clock import Micros, as_text
from headwater.commits import Commit, Head, read_collection, read_commit, read_head
from headwater.errors import CorruptionError, HeadwaterError, NotFoundError
from headwater.files import parse_tree_reference
from headwater.fsck.fsck_findings import FindingCode, FsckContext, FsckFinding, keys_text, use_text
from headwater.fsck.object_walk import FaultWalker, ObjectFault, ObjectUse, uses_below
from headwater.gc.collector import open_marker
from headwater.gc.retention import LATE_REFERENCES, BrokenHistoryError, ReferenceOrigin, kept_commits
from headwater.index import Entry, IndexChecker, IndexValue
from headwater.store import ObjectId, RealmStore, Reference, StoredObject, id_text


def check_names(context: FsckContext) -> Iterator[FsckFinding]:
    """Report listed names without a row, and rows whose name stands in no list."""
    if context.list_fault:
        yield context.finding(
            FindingCode.LIST_UNREADABLE,
            CATALOGS,
            f"what the realm consists of cannot be read: {context.list_fault}",
            "mend the reference named there; nothing of this realm is collected until then",
        )
        return
    grace = round(context.rows.settings.writer_grace_seconds * 1_000_000)
    for entry in context.listed:
        if entry.name in context.references:
            continue
        if not entry.listed and not context.scope.is_system and entry.name not in LATE_REFERENCES:
            yield context.finding(
                FindingCode.REFERENCE_MISSING,
                entry.name,
                "has no row, though every realm has this reference from its bootstrap on: it was lost",
                "restore it from a backup of the database; nothing of this realm is collected until then",
            )
        elif entry.listed and entry.listed < context.now - grace and not parse_tree_reference(entry.name):
            yield context.finding(
                FindingCode.NAME_WITHOUT_ROW,
                entry.name,
                f"{context.reference_words(entry.name)} is listed since {as_text(entry.listed)}, but has no row",
                "the next collection buries it, and the one after removes it",
            )
    for row in context.unlisted:
        if row.deleted is not None:
            yield context.finding(
                FindingCode.TOMBSTONE_WITHOUT_NAME,
                row.name,
                f"was deleted at {as_text(row.deleted)} and stands in no list: its name was given up before its row",
                "leave it: it harms nobody",
            )
            continue
        yield _unlisted(context, row)


def _unlisted(context: FsckContext, row: Reference) -> FsckFinding:
    """Report a living reference that no list names. A collection keeps what it points to, so only a person may take it away."""
    origin = context.scope.unlisted_entry(row.name).origin
    has = f"has a row (created {as_text(row.created)}), but stands in no list"
    if origin is ReferenceOrigin.UNKNOWN:
        return context.finding(
            FindingCode.REFERENCE_UNKNOWN,
            row.name,
            f"{has}, and is of no kind that this release or an installed package knows; collections keep what it points to and all of its"
            " history, and the realm is not exported",
            "maintain the store by the release that made it, or install the package that did where collections run; do not delete it: what"
            " it points to would be lost",
        )
    if origin is ReferenceOrigin.EXTENSION:
        repair = "the package that declares it must make it with add_reference, which lists a reference that is there as well"
    elif parse_tree_reference(row.name):
        repair = "restore the list of file tables from a backup of the database; nothing of this realm is collected while it is missing"
    else:
        repair = (
            "if it is wanted: delete the branch or tag by its name, which leaves a tombstone, and undelete it, which lists it again;"
            " otherwise only delete it"
        )
    return context.finding(
        FindingCode.ROW_WITHOUT_NAME,
        row.name,
        f"{has}: nobody finds it, and the realm is not exported; collections keep what it points to",
        repair,
    )


_LOOKS = 3
_TOGETHER = 1000
"""The number of contents whose ids are looked up at once."""
_SHOWN = 20
"""The number of faults reported for one reference, at most; the last one says how many there are."""


def check_heads(context: FsckContext) -> Iterator[FsckFinding]:
    """Check every living reference by itself: everything it reaches exists, and its indexes are valid.

    A reference that moves during the check is checked again: what its former head held may be collected by then.
    """
    walker, checker = FaultWalker(context.rows), IndexChecker(context.rows)
    living = context.living
    unit = f"references of realm {context.rows.realm!r} checked"
    for number, row in enumerate(living):
        context.progress(number, len(living), unit)
        yield from _settled_faults(context, row, walker, checker)
    context.progress(len(living), len(living), unit)


def readable_pointer(rows: RealmStore, row: Reference) -> ObjectId | None:
    """The newest of a reference's recent pointers that can be read with everything it reaches."""
    walker = FaultWalker(rows)
    return next((pointer for pointer in row.recent if not walker.faults_below(pointer)[0]), None)


def _settled_faults(context: FsckContext, row: Reference, walker: FaultWalker, checker: IndexChecker) -> Iterator[FsckFinding]:
    for _ in range(_LOOKS):
        findings = list(_check(context, row, walker, checker))
        if not findings:
            return
        now = context.rows.find_row(row.name)
        if now is None or now.deleted is not None or now.pointer is None:
            return
        if now.pointer == row.pointer:
            yield from findings
            return
        row = now
    yield from findings


def _check(context: FsckContext, row: Reference, walker: FaultWalker, checker: IndexChecker) -> Iterator[FsckFinding]:
    assert row.pointer is not None
    if row.name not in context.references and _holds_nothing(context, row):
        return  # what no list names was collected by releases up to 0.1.0: that it is there is reported with the names
    faults, ways = walker.faults_below(row.pointer)
    if any(
        fault.object_id == row.pointer and not fault.is_unknown for fault in faults
    ):  # what a later release wrote is not lost
        yield _head(context, row, faults[0])
        return
    told = [fault for fault in faults if fault.object_id not in context.apart]
    for fault in told[:_SHOWN]:
        yield _object(
            context, row, fault, keys=[use_text(use) for use in uses_below(context.rows, row.pointer, fault.object_id, ways)]
        )
    if len(told) > _SHOWN:
        yield context.finding(
            FindingCode.OBJECT_UNREADABLE,
            row.name,
            f"{context.reference_words(row.name)} reaches {len(told) - _SHOWN} more objects that cannot be read",
            "as above",
        )
    context.lost.update(fault.object_id for fault in faults)
    if not faults and isinstance(context.rows.find_object(row.pointer, StoredObject), Commit):
        yield from _check_indexes(context, row, read_commit(context.rows, row.pointer), checker)


def _holds_nothing(context: FsckContext, row: Reference) -> bool:
    """Whether a reference without a list, of a kind that this release knows, points to nothing that is there."""
    entry = context.scope.unlisted_entry(row.name)
    return (
        entry.origin is ReferenceOrigin.OWN and row.pointer is not None and context.rows.read_pointing([row.pointer]) == [None]
    )


def _head(context: FsckContext, row: Reference, fault: ObjectFault) -> FsckFinding:
    context.lost.add(fault.object_id)
    back = readable_pointer(context.rows, row)
    if back is not None:
        repair = f"its newest readable recent pointer is {id_text(back)}: `headwater fsck --repair` goes back to it"
    elif row.recent:
        repair = "none of its recent pointers is readable: restore its commit from a backup of the database"
    else:
        repair = "it has no recent pointer: restore its commit from a backup of the database"
    what = f"{context.reference_words(row.name)} points to commit {id_text(fault.object_id)}"
    text = "which is not there" if fault.text.endswith("not there") else fault.text
    target = "" if back is None else id_text(back)
    return context.finding(FindingCode.HEAD_UNREADABLE, row.name, f"{what}, {text}", repair, target=target)


def _object(context: FsckContext, row: Reference, fault: ObjectFault, keys: list[str]) -> FsckFinding:
    under = f", under {keys_text(keys)}" if keys else ""
    message = f"{fault.text}; {context.reference_words(row.name)} needs it{under}"
    if fault.is_unknown:
        repair = "use a release that knows all of this type; nothing of this realm is collected by this one"
        return context.finding(FindingCode.TYPE_UNKNOWN, row.name, message, repair, keys=keys)
    repair = (
        "restore the object from a backup of the database, or delete what refers to it, which loses it;"
        " nothing of this realm is collected until then"
    )
    return context.finding(FindingCode.OBJECT_UNREADABLE, row.name, message, repair, keys=keys)


def _check_indexes(context: FsckContext, row: Reference, head: Head, checker: IndexChecker) -> Iterator[FsckFinding]:
    for name, container in sorted(head.commit.indexes.items()):
        for text in checker.faults(container):
            yield context.finding(
                FindingCode.INDEX_WRONG,
                row.name,
                f"index {name!r} of commit {id_text(head.id)}, the head of {context.reference_words(row.name)}, is wrong: {text}",
                "keep a copy of the store and report it; restore the reference to a commit before it was wrong",
            )
    is_content = any(entry.name == row.name and entry.is_content for entry in context.listed)
    if is_content:
        yield from _check_content(context, row, head)
        yield from _check_requests(context, row, head)


def _check_requests(context: FsckContext, row: Reference, head: Head) -> Iterator[FsckFinding]:
    """Check that every entry of the applied requests of a branch or tag can be one."""
    try:
        entries = ((bytes(key).hex(), entry_fault(key, value)) for key, value in head.index(REQUESTS).range())
        wrong = [f"{key}: {fault}" for key, fault in entries if fault]
    except HeadwaterError as fault:
        yield context.finding(
            FindingCode.INDEX_WRONG, row.name, str(fault), "restore the branch to a commit before it was written"
        )
        return
    if wrong:
        yield context.finding(
            FindingCode.REQUEST_UNREADABLE,
            row.name,
            f"{context.reference_words(row.name)}: {len(wrong)} applied requests are none, the first of them {wrong[0]}",
            "report it; each is dropped when it counts as expired",
        )


def _check_content(context: FsckContext, row: Reference, head: Head) -> Iterator[FsckFinding]:
    """Check that every entry of a branch or tag decodes to a key and a content, and that the index of content ids leads back to each."""
    content, ids = head.index(CONTENT), head.index(IDS)
    lost: list[str] = []
    count = 0
    try:
        entries = content.range()
        while block := list(islice(entries, _TOGETHER)):
            count += len(block)
            sound: dict[bytes, ContentValue] = {}
            for key, value in block:
                try:
                    ContentKey.from_index(bytes(key))
                    sound[bytes(key)] = ContentValue.from_value(value)
                except CorruptionError as fault:
                    yield _wrong(context, row, str(fault))
            back = ids.get_many(held.content_id.bytes for held in sound.values())
            lost += (
                str(ContentKey.from_index(key))
                for key, held in sound.items()
                if not _leads_back(key, held, back.get(held.content_id.bytes))
            )
    except HeadwaterError as fault:
        yield context.finding(
            FindingCode.INDEX_WRONG, row.name, str(fault), "restore the branch to a commit before it was written"
        )
        return
    if lost:
        yield _wrong(context, row, f"the index of content ids does not lead back to {keys_text(lost)}", lost)
    elif len(ids) != count:
        yield _wrong(context, row, f"the index of content ids has {len(ids)} entries, for {count} contents")


def _leads_back(key: bytes, value: ContentValue, back: IndexValue | None) -> bool:
    """Whether the entry of the content id names this key, and has metadata where the content says so."""
    return back is not None and bytes(back.data) == key and (back.object_id is not None) == value.has_metadata


def _wrong(context: FsckContext, row: Reference, what: str, keys: Sequence[str] = ()) -> FsckFinding:
    return context.finding(
        FindingCode.CONTENT_WRONG,
        row.name,
        f"{context.reference_words(row.name)}: {what}",
        "restore the branch to a commit before it was written",
        keys=keys[:_SHOWN],
    )


_BREAK_LOOKS = 5


class _Break(NamedTuple):
    """The end of a broken history: the last commit that exists, and the lost one before it."""

    above: ObjectId
    lost: ObjectId


def check_histories(context: FsckContext) -> Iterator[FsckFinding]:
    """Report each lost commit once, with the references whose history needs it.

    Walks each kept line of history separately, so call it only where one is known to be broken.
    """
    for lost, names in _settled_breaks(context).items():
        if lost.lost in context.lost:
            continue  # a head is read from it: already reported
        words = keys_text(sorted({context.reference_words(name.partition("@")[0]) for name in names}))
        yield context.finding(
            FindingCode.HISTORY_BROKEN,
            id_text(lost.lost),
            f"commit {id_text(lost.lost)}, before commit {id_text(lost.above)} in the history of {words}, was lost:"
            " history ends there, and no collection cut it",
            "restore the commit from a backup of the database; nothing of this realm is collected until then. Or give up what lies"
            " before it: keep less history of these references than reaches there (retention), and collect",
        )


def _settled_breaks(context: FsckContext) -> dict[_Break, list[str]]:
    """The breaks of all histories. A collection that ends meanwhile cuts history anew; then they are read again."""
    for _ in range(_BREAK_LOOKS):
        before = read_collection(context.rows)
        breaks = _breaks(context)
        after = read_collection(context.rows)
        if not breaks or (before and before.value.cuts) == (after and after.value.cuts):
            break
    return breaks


def _breaks(context: FsckContext) -> dict[_Break, list[str]]:
    marker, breaks = open_marker(context.scope), dict[_Break, list[str]]()
    for line in marker.all_lines(context.scope.find_references()):
        try:
            for _ in kept_commits(context.rows, line):
                pass
        except BrokenHistoryError as broken:
            breaks.setdefault(_Break(broken.above, broken.lost), []).append(broken.line)
        except HeadwaterError:
            continue  # its head is missing: already reported
    return breaks


_AT_ONCE = 200
_BY_UUID = "by-uuid"


def check_collectability(context: FsckContext) -> Iterator[FsckFinding]:
    """Mark as a collection would, which refuses when it cannot read something that it must keep; then check the claims."""
    marker = open_marker(context.scope)
    try:
        marker.mark(context.scope.find_references())
    except BrokenHistoryError:
        yield from check_histories(context)
        return
    except HeadwaterError as fault:
        if not context.lost and not context.list_fault:  # otherwise the reason was reported
            yield context.finding(
                FindingCode.COLLECTION_REFUSED,
                context.rows.realm,
                str(fault),
                "mend what is named there; until then garbage stays, and nothing is lost."
                " What a reference has left stays needed until the readers' grace is over",
            )
        return
    if not context.scope.is_system and not context.lost:
        try:
            yield from _check_claims(context, marker.content)
        except NotFoundError:
            return  # reported with the names


def _check_claims(context: FsckContext, kept: Container[UUID]) -> Iterator[FsckFinding]:
    """Report claims of content that nothing keeps, and tables whose uuid another content has claimed.

    A claim is taken before its table's commit, so a young claim is no finding.
    """
    at = read_head(context.rows, CLAIMS, fresh=True)
    if at is None:
        return
    settings = context.rows.settings
    cutoff = Micros(context.now - round(max(settings.writer_grace_seconds, settings.reader_grace_seconds) * 1_000_000))
    free, owners = Counter[UUID](), dict[bytes, ClaimOwner]()
    for name in at.names:
        for key, value in at.index(name).range():
            try:
                owner = ClaimOwner.from_value(value)
            except HeadwaterError as fault:
                where = use_text(ObjectUse(name, bytes(key)))
                repair = "restore the reference to a commit before that; the claim can be taken again"
                yield context.finding(FindingCode.CLAIM_UNREADABLE, CLAIMS, f"{where}: {fault}", repair)
                continue
            if name == _BY_UUID:
                owners[bytes(key)] = owner
            if name != HOMES and owner.taken < cutoff and owner.content_id not in kept:
                free[owner.content_id] += 1
    if free:
        shown = ", ".join(str(content) for content in sorted(free)[:5])
        yield context.finding(
            FindingCode.CLAIM_WITHOUT_CONTENT,
            CLAIMS,
            f"{free.total()} claims belong to {len(free)} contents that nothing keeps ({shown}{', ...' if len(free) > 5 else ''})",
            "the next collection releases them",
        )
    yield from _check_owners(context, owners)


def _check_owners(context: FsckContext, owners: dict[bytes, ClaimOwner]) -> Iterator[FsckFinding]:
    """Report tables of living branches and tags whose uuid or location belongs to another content: both share their files."""
    checked: set[ObjectId] = set()
    content = {entry.name for entry in context.listed if entry.is_content}
    for row in context.living:
        if row.name not in content or row.pointer is None or row.pointer in checked:
            continue
        checked.add(row.pointer)
        for block in _tables(read_commit(context.rows, row.pointer), checked):
            holders = TableClaims(context.rows).find_holders([place for table in block for place in table.places])
            for table in block:
                held = [(f"the uuid {table.uuid}", owners.get(_uuid_bytes(table.uuid)))]
                held += [(f"files at {place}", holders.get(place)) for place in table.places]
                for what, owner in held:
                    if owner is not None and owner.content_id != table.content_id:
                        yield _of_another(context, row.name, table, what, owner)


def _of_another(context: FsckContext, reference: str, table: _Table, what: str, owner: ClaimOwner) -> FsckFinding:
    return context.finding(
        FindingCode.CLAIM_OF_ANOTHER,
        reference,
        f"{context.reference_words(reference)} has table {table.key} ({table.content_id}) with {what}, which is claimed for content"
        f" {owner.content_id} of catalog {owner.catalog_id}: each may delete the other's files",
        "drop one of the two from its catalog, or give the table a uuid and files of its own",
        keys=[table.key],
    )


class _Table(NamedTuple):
    """A table of a commit; ``places`` are known only where its metadata is stored with it."""

    key: str
    content_id: UUID
    uuid: str | None
    places: tuple[str, ...]


def _tables(at: Head, checked: set[ObjectId]) -> Iterator[list[_Table]]:
    """Yield the Iceberg tables of a commit that were not visited yet, in batches."""
    entries, ids = at.index(CONTENT).range(), at.index(IDS)
    while block := list(islice(entries, _AT_ONCE)):
        fresh = dict(_fresh(block, checked))
        places = _places(at, ids.get_many([content_id.bytes for _, content_id in fresh.values()]))
        tables = zip(fresh.items(), at.rows.read_many(list(fresh), IcebergTable), strict=True)
        yield [
            _Table(use_text(ObjectUse(CONTENT, key)) or id_text(object_id), mine, table.table_uuid, places.get(mine.bytes, ()))
            for (object_id, (key, mine)), table in tables
            if table is not None
        ]


def _places(at: Head, stored: Mapping[bytes, IndexValue]) -> dict[bytes, tuple[str, ...]]:
    """The places of the tables whose metadata is stored with them, by content id."""
    metadata = {key: value.object_id for key, value in stored.items() if value.object_id is not None}
    places = stored_places(at.rows, list(metadata.values()))
    return {
        key: tuple(place for place in (places[metadata_id].location, *places[metadata_id].paths) if place is not None)
        for key, metadata_id in metadata.items()
    }


def _fresh(block: list[Entry], checked: set[ObjectId]) -> Iterator[tuple[ObjectId, tuple[bytes, UUID]]]:
    for key, value in block:
        decoded = ContentValue.from_value(value)
        if decoded.type == ContentType.ICEBERG_TABLE and value.object_id is not None and value.object_id not in checked:
            checked.add(value.object_id)
            yield value.object_id, (bytes(key), decoded.content_id)


def _uuid_bytes(text: str | None) -> bytes:
    try:
        return UUID(text or "").bytes
    except ValueError:
        return b""
