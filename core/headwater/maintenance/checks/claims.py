"""What the next collection would say, and claims against what kept history holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from headwater.catalogs import CLAIMS, CONTENT, IDS, Claims, ContentType, ContentValue, IcebergTable, Owner, stored_places
from headwater.clock import Micros
from headwater.commits import Head, read_commit, read_head
from headwater.errors import HeadwaterError, MissingError
from headwater.index import Entry, Value
from headwater.maintenance.checks.findings import Code, Finding
from headwater.maintenance.checks.histories import check_histories
from headwater.maintenance.checks.sight import Sight, key_text
from headwater.maintenance.checks.walking import Use
from headwater.maintenance.garbage.collecting import marker_for
from headwater.maintenance.garbage.retention import BrokenHistoryError
from headwater.store import ObjectId, id_text

__all__ = ["check_kept"]

_AT_ONCE = 200
_BY_UUID = "by-uuid"


def check_kept(sight: Sight) -> Iterator[Finding]:
    """Mark as a collection would, which refuses when anything that it must keep cannot be read; then look at the claims."""
    marker = marker_for(sight.scope)
    try:
        marker.mark(sight.scope.found())
    except BrokenHistoryError:
        yield from check_histories(sight)
        return
    except HeadwaterError as fault:
        if not sight.lost and not sight.list_fault:  # else the reason has been told
            yield sight.finding(
                Code.COLLECTION_REFUSED,
                sight.rows.realm,
                str(fault),
                "mend what is named there; until then garbage stays, and nothing is lost."
                " What a reference has left stays needed until the readers' grace is over",
            )
        return
    if not sight.scope.is_system and not sight.lost:
        try:
            yield from _check_claims(sight, marker.content)
        except MissingError:
            return  # told with the names


def _check_claims(sight: Sight, kept: Container[UUID]) -> Iterator[Finding]:
    """Claims of content that nothing keeps, and tables whose uuid is another's.

    A claim is taken before its table's commit, so a young one says nothing.
    """
    at = read_head(sight.rows, CLAIMS, fresh=True)
    if at is None:
        return
    settings = sight.rows.settings
    cutoff = Micros(sight.now - round(max(settings.writer_grace_seconds, settings.reader_grace_seconds) * 1_000_000))
    free, owners = Counter[UUID](), dict[bytes, Owner]()
    for name in at.names:
        for key, value in at.index(name).range():
            try:
                owner = Owner.decode(value)
            except HeadwaterError as fault:
                where = key_text(Use(name, bytes(key)))
                repair = "restore the reference to a commit before that; the claim can be taken again"
                yield sight.finding(Code.CLAIM_UNREADABLE, CLAIMS, f"{where}: {fault}", repair)
                continue
            if name == _BY_UUID:
                owners[bytes(key)] = owner
            if owner.taken < cutoff and owner.content_id not in kept:
                free[owner.content_id] += 1
    if free:
        shown = ", ".join(str(content) for content in sorted(free)[:5])
        yield sight.finding(
            Code.CLAIM_WITHOUT_CONTENT,
            CLAIMS,
            f"{free.total()} claims belong to {len(free)} contents that nothing keeps ({shown}{', ...' if len(free) > 5 else ''})",
            "the next collection releases them",
        )
    yield from _check_owners(sight, owners)


def _check_owners(sight: Sight, owners: dict[bytes, Owner]) -> Iterator[Finding]:
    """Tables of living branches and tags of which a uuid or a place belongs to another content: two that share their files."""
    seen: set[ObjectId] = set()
    content = {entry.name for entry in sight.listed if entry.is_content}
    for row in sight.living:
        if row.name not in content or row.pointer is None or row.pointer in seen:
            continue
        seen.add(row.pointer)
        for block in _tables(read_commit(sight.rows, row.pointer), seen):
            holders = Claims(sight.rows).find_holders([place for found in block for place in found.places])
            for found in block:
                held = [(f"the uuid {found.uuid}", owners.get(_uuid_bytes(found.uuid)))]
                held += [(f"files at {place}", holders.get(place)) for place in found.places]
                for what, owner in held:
                    if owner is not None and owner.content_id != found.content_id:
                        yield _of_another(sight, row.name, found, what, owner)


def _of_another(sight: Sight, reference: str, found: _Table, what: str, owner: Owner) -> Finding:
    return sight.finding(
        Code.CLAIM_OF_ANOTHER,
        reference,
        f"{sight.words(reference)} has table {found.key} ({found.content_id}) with {what}, which is claimed for content"
        f" {owner.content_id} of catalog {owner.catalog_id}: each may delete the other's files",
        "drop one of the two from its catalog, or give the table a uuid and files of its own",
        keys=[found.key],
    )


class _Table(NamedTuple):
    """A table of a commit; ``places`` as far as its metadata is stored with it."""

    key: str
    content_id: UUID
    uuid: str | None
    places: tuple[str, ...]


def _tables(at: Head, seen: set[ObjectId]) -> Iterator[list[_Table]]:
    """The Iceberg tables of a commit that were not seen yet, some at a time."""
    entries, ids = at.index(CONTENT).range(), at.index(IDS)
    while block := list(islice(entries, _AT_ONCE)):
        fresh = dict(_fresh(block, seen))
        places = _places(at, ids.get_many([content_id.bytes for _, content_id in fresh.values()]))
        tables = zip(fresh.items(), at.rows.read_many(list(fresh), IcebergTable), strict=True)
        yield [
            _Table(key_text(Use(CONTENT, key)) or id_text(object_id), mine, table.table_uuid, places.get(mine.bytes, ()))
            for (object_id, (key, mine)), table in tables
            if table is not None
        ]


def _places(at: Head, stored: Mapping[bytes, Value]) -> dict[bytes, tuple[str, ...]]:
    """By content id, of the tables whose metadata is stored with them."""
    metadata = {key: value.object_id for key, value in stored.items() if value.object_id is not None}
    found = stored_places(at.rows, list(metadata.values()))
    return {
        key: tuple(place for place in (found[one].location, *found[one].paths) if place is not None)
        for key, one in metadata.items()
    }


def _fresh(block: list[Entry], seen: set[ObjectId]) -> Iterator[tuple[ObjectId, tuple[bytes, UUID]]]:
    for key, value in block:
        decoded = ContentValue.decode(value)
        if decoded.type == ContentType.ICEBERG_TABLE and value.object_id is not None and value.object_id not in seen:
            seen.add(value.object_id)
            yield value.object_id, (bytes(key), decoded.content_id)


def _uuid_bytes(text: str | None) -> bytes:
    try:
        return UUID(text or "").bytes
    except ValueError:
        return b""
