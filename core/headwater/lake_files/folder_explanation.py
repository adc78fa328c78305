"""Why a folder of a lake is there: whose table lies there, around it or below it, and what the last report lists below it.

Whose a folder is, is what the realms' claims say: a table has one as long as any commit that is kept has the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from headwater.catalogs import Catalog, CatalogDefinition, Catalogs, KeyAction, TableClaims
from headwater.catalogs.content_operations import IDS, find_content_key, index_at
from headwater.catalogs.table_claims import ClaimOwner
from headwater.clock import Micros
from headwater.errors import HeadwaterError
from headwater.iceberg.location import is_within
from headwater.lake_files.catalog_report import read_last_report
from headwater.lake_files.lake_owner import LakeOwner, readable_realms
from headwater.lake_files.table_names import heads_of
from headwater.store import RealmStore, Store

_SHOWN = 20
_LOOKED_AT = 1000
"""Commits that are looked at for the drop of a table."""

LIVE_TABLE, HISTORIC_TABLE, TABLES_BELOW, NO_TABLE = "LiveTable", "HistoricTable", "TablesBelow", "NoTable"
FOLDER_SENTENCES = {
    LIVE_TABLE: "it is the folder of a table that branches or tags have, or lies within one",
    HISTORIC_TABLE: (
        "it is the folder of a table, or lies within one, that no branch or tag has any more: history has it until that is collected"
    ),
    TABLES_BELOW: "tables lie below it",
    NO_TABLE: "no table of a catalog lies there, around it or below it",
}
"""Codes of folders, with their meanings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTable:
    """A table whose files lie in a folder, or around it.

    key           now, or where it stood last; empty where that is not known any more
    where         the branches and tags that have it; empty: only history has it
    location      what it has claimed
    dropped       when it was dropped from the default branch, and by whom; None where it was not, or nobody knows
    """

    realm: str
    catalog: str
    key: str
    where: tuple[str, ...]
    location: str
    dropped: Micros | None = None
    dropped_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreferencedCount:
    """Files below a folder of which the last report says that nobody refers to them."""

    code: str
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderExplanation:
    """What is known about a folder.

    tables        the first twenty
    unreferenced  by code; none where there is no report
    since, due    the earliest of these files
    """

    code: str
    sentence: str
    tables: tuple[FolderTable, ...] = ()
    unreferenced: tuple[UnreferencedCount, ...] = ()
    since: Micros | None = None
    due: Micros | None = None
    report: int | None = None


def explain_folder(store: Store, owner: LakeOwner | None, location: str, *, has_files: bool | None) -> FolderExplanation | None:
    """Explain a location as a folder; None where it is none: nothing lies below it, and no table has claimed it or something below it.

    has_files     whether something lies below it; None: its storage could not be asked
    """
    claimed = list(islice(_claimed(store, location), _SHOWN))
    if not has_files and not any(is_within(place, location) for *_, place in claimed):
        return None
    tables = tuple(_table(rows, realm, held, place) for realm, rows, held, place in claimed)
    code = folder_code(location, tables)
    return _with_report(store, owner, location, FolderExplanation(code=code, sentence=FOLDER_SENTENCES[code], tables=tables))


def folder_code(location: str, tables: Sequence[FolderTable]) -> str:
    """The code of a folder with these tables."""
    around = [table for table in tables if is_within(location, table.location)]
    if not around:
        return TABLES_BELOW if tables else NO_TABLE
    return LIVE_TABLE if any(table.where for table in around) else HISTORIC_TABLE


def folder_table(location: str, tables: Sequence[FolderTable]) -> str:
    """The key of the table whose folder a location is, or lies in; empty where there is none, or its key is not known any more."""
    return next((table.key for table in tables if table.key and is_within(location, table.location)), "")


def _claimed(store: Store, location: str) -> Iterator[tuple[str, RealmStore, ClaimOwner, str]]:
    """The claims of a location, around it and below it; one for each table."""
    for realm, rows in readable_realms(store):
        seen = set()
        for place, held in TableClaims(rows).find_around_and_below(location):
            if held.content_id not in seen:
                seen.add(held.content_id)
                yield realm.id, rows, held, place


def _table(rows: RealmStore, realm: str, held: ClaimOwner, place: str) -> FolderTable:
    definition = next((each for each in Catalogs(rows).list_catalogs() if each.id == held.catalog_id), None)
    if definition is None:  # it is deleted, and held or purged
        return FolderTable(realm=realm, catalog="", key="", where=(), location=place)
    where, key = [], ""
    for name, head in heads_of(rows, definition):
        standing = find_content_key(index_at(head, IDS), held.content_id)
        if standing is not None:
            key = key or str(standing)
            where.append(name)
    found = FolderTable(realm=realm, catalog=definition.name, key=key, where=tuple(where), location=place)
    return found if where else _dropped(rows, definition, held, found)


def _dropped(rows: RealmStore, definition: CatalogDefinition, held: ClaimOwner, table: FolderTable) -> FolderTable:
    """The table with what the history of the default branch says of its drop."""
    try:
        history = Catalog(rows, definition).content_history(held.content_id, within=_LOOKED_AT)
        change = next((each for each in history if each.action is KeyAction.DELETED), None)
    except HeadwaterError:
        change = None
    if change is None:
        return table
    return replace(table, key=str(change.key), dropped=change.entry.time, dropped_by=change.entry.meta.person_text)


def _with_report(store: Store, owner: LakeOwner | None, location: str, told: FolderExplanation) -> FolderExplanation:
    """Add what the last report of the catalog lists below the folder."""
    if owner is None:
        return told
    try:
        read = read_last_report(store, owner.realm.id, owner.definition.name)
        marks = [mark for mark in read.marks() if is_within(mark.path, location)]
    except HeadwaterError as fault:
        return replace(told, sentence=f"{told.sentence}; which files below it nobody refers to is not known: {fault}")
    files, sizes = Counter(mark.code.value for mark in marks), Counter[str]()
    for mark in marks:
        sizes[mark.code.value] += mark.size_bytes
    listed = f"{sum(files.values()):,} files" if marks else "no file"
    return replace(
        told,
        sentence=f"{told.sentence}; report {read.report.run} lists {listed} below it that nobody refers to",
        unreferenced=tuple(
            UnreferencedCount(code=code, files=count, size_bytes=sizes[code]) for code, count in sorted(files.items())
        ),
        since=min((mark.first_listed for mark in marks), default=None),
        due=min((mark.due for mark in marks if mark.due), default=None),
        report=read.report.run,
    )
