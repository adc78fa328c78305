"""Marks of files that nobody refers to, as far as commits have to know them: which tables have some, and what a commit took up again.

The reference ``file-marks`` of a realm appears with its first report. Its indexes:

    filters       8 bytes catalog id, 16 bytes content id -> the object of the table's filter of marked files; with ``NO_TABLE`` in its
                  place that of files in the catalog's prefixes, which any of its tables may name
    taken         the same 24 bytes, and 8 bytes digest of a file -> nothing; without a digest: all of the table's marks
    reports       catalog id as text -> the record of its last report

A commit that may name files of a table with marks looks them up before its swap, and enters what it takes up in ``taken``. The next
report gives what was taken a new beginning, and removes exactly the entries that it has seen. Whoever commits without a look, because
it reads no files, takes up everything.

Which tables have marks may be known up to the time to live of a cached reference later: a file may go only if a later report confirms
its mark, and a day after that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from uuid import UUID
from weakref import WeakKeyDictionary

from headwater.commits import Head, Transaction, commit_change, read_head
from headwater.errors import CorruptionError, NotFoundError
from headwater.index import IndexValue
from headwater.store import RealmKey, RealmStore
from headwater.store.realm_refs import StoreContext

FILE_MARKS = "file-marks"
FILE_PLACES = "file-places"
"""The reference for what searches remember of places, and of their last runs (``headwater.lake_files.place_markers``)."""
FILTERS, TAKEN, REPORTS = "filters", "taken", "reports"
NO_TABLE = UUID(int=0)
"""Stands for the prefixes of a catalog, whose files are no one table's."""
DIGEST_BYTES = 8
_TABLE_BYTES = 8 + 16
_ABSENT_SECONDS = 60.0
"""How long this process remembers that a realm has no marks at all."""
_WRITTEN_AT_ONCE = 5_000


def marked_table_key(catalog_id: str, content_id: UUID) -> bytes:
    """The key of a table in the index of filters."""
    return bytes.fromhex(catalog_id) + content_id.bytes


_unmarked: WeakKeyDictionary[StoreContext, dict[RealmKey, float]] = WeakKeyDictionary()
"""Of each store the realms that had no marks when this process last looked, and when."""


def read_marks(rows: RealmStore, *, fresh: bool = False) -> Head | None:
    """The present marks of a realm; None if it never had any.

    fresh         ask the database; otherwise as old as a cached reference may be
    """
    unmarked, now = _unmarked.setdefault(rows.store, {}), rows.clock.monotonic()
    if not fresh and now - unmarked.get(rows.key, -_ABSENT_SECONDS) < _ABSENT_SECONDS:
        return None
    try:
        return read_head(rows, FILE_MARKS, fresh=fresh)
    except NotFoundError:
        unmarked[rows.key] = now
        return None


def ensure_marks(rows: RealmStore) -> None:
    """Create the reference, if it is not there."""
    rows.ensure_reference(FILE_MARKS)
    _unmarked.setdefault(rows.store, {}).pop(rows.key, None)


def find_marked(rows: RealmStore, catalog_id: str, content_ids: Iterable[UUID]) -> dict[UUID, IndexValue]:
    """Those of some contents that have marks, each with the entry of its filter; with any of them ``NO_TABLE``, if that has some."""
    keys = {marked_table_key(catalog_id, content_id): content_id for content_id in content_ids}
    if keys:
        keys[marked_table_key(catalog_id, NO_TABLE)] = NO_TABLE
    marks = read_marks(rows) if keys else None
    if marks is None:
        return {}
    return {keys[bytes(key)]: value for key, value in marks.index(FILTERS).get_many(keys).items()}


def take_up_files(rows: RealmStore, catalog_id: str, taken: Mapping[UUID, Collection[bytes]]) -> None:
    """Enter what a commit is about to take up; call it before the commit.

    taken         of each table the digests of files; none: all of its marks
    """
    keys = [
        marked_table_key(catalog_id, content_id) + digest
        for content_id, digests in taken.items()
        for digest in digests or (b"",)
    ]
    for start in range(0, len(keys), _WRITTEN_AT_ONCE):
        block = keys[start : start + _WRITTEN_AT_ONCE]

        def change(tx: Transaction, block: list[bytes] = block) -> None:
            index = tx.index(TAKEN)
            for key in block:
                index.put(key, IndexValue(None, tx.time.to_bytes(8, "big")))  # another time each: a report removes what it saw

        commit_change(rows, FILE_MARKS, change, message=f"take up marked files of {len(taken)} tables")


def take_up_tables(rows: RealmStore, catalog_id: str, content_ids: Collection[UUID]) -> None:
    """Take up all marks of those of some tables that have any: for commits that look at no files."""
    marked = find_marked(rows, catalog_id, content_ids)
    if marked:
        take_up_files(rows, catalog_id, dict.fromkeys(marked, ()))


def take_up_realm(rows: RealmStore) -> None:
    """Take up all marks of a realm, for what brings states of which no report can know."""
    marks = read_marks(rows, fresh=True)
    keys = [] if marks is None else [bytes(key) for key, _ in marks.index(FILTERS).range()]
    for catalog in sorted({key[:8] for key in keys}):
        tables = [UUID(bytes=key[8:]) for key in keys if key.startswith(catalog)]
        take_up_files(rows, catalog.hex(), dict.fromkeys(tables, ()))


def taken_entries(marks: Head, catalog_id: str) -> Iterator[tuple[bytes, IndexValue]]:
    """The entries of what commits of a catalog took up: key and value, as they are to be removed."""
    for key, value in marks.index(TAKEN).prefix(bytes.fromhex(catalog_id)):
        if len(key) not in (_TABLE_BYTES, _TABLE_BYTES + DIGEST_BYTES):
            raise CorruptionError(f"{bytes(key)!r} is no key of what a commit took up: run `headwater fsck`")
        yield bytes(key), value


def taken_part(key: bytes) -> tuple[UUID, bytes]:
    """The table and the digest of an entry; the digest is empty where all of the table's marks were taken up."""
    return UUID(bytes=key[8:_TABLE_BYTES]), key[_TABLE_BYTES:]
