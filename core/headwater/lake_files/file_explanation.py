"""Why a file or a folder of a lake is there: who refers to it, or since when nobody does, by which rule, and when it may go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from headwater.catalogs import Catalogs
from headwater.catalogs.content_operations import IDS, find_content_key, index_at, stored_metadata_of
from headwater.catalogs.file_marks import NO_TABLE, read_marks, taken_entries, taken_part
from headwater.clock import Micros
from headwater.errors import CorruptionError, HeadwaterError, NotFoundError
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.location import canonical_location, is_within
from headwater.iceberg.survey_outcomes import RejectedTable
from headwater.lake_files.catalog_report import ReadReport, read_last_report
from headwater.lake_files.file_reasons import FILE_SENTENCES, PLACE_SENTENCES, FileReason, PlaceReason
from headwater.lake_files.file_referrers import VersionReferrer, find_referrers
from headwater.lake_files.folder_explanation import (
    FOLDER_SENTENCES,
    FolderTable,
    UnreferencedCount,
    explain_folder,
    folder_table,
)
from headwater.lake_files.lake_owner import LakeOwner, find_lake_owner
from headwater.lake_files.mark_filters import file_digest
from headwater.lake_files.marked_files import MarkedFile
from headwater.lake_files.store_storages import StoreStorages
from headwater.lake_files.stored_versions import VersionScan
from headwater.lake_files.table_names import find_content_id, heads_of
from headwater.realms import RealmRegistry
from headwater.store import RealmStore, Store, id_text
from headwater.throttle import Fence

_SHOWN = 20
_UNREAD_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReferrer:
    """A version of a table or view that refers to the file.

    where         the branches and tags whose heads have this version; empty where only history has it
    snapshots     the table's snapshots that have the file
    """

    realm: str
    catalog: str
    key: str
    where: tuple[str, ...]
    snapshots: tuple[int, ...]
    metadata: str
    is_strict: bool
    named_as: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeFileExplanation:
    """What is to be said of one file.

    is_there      None where its storage could not be asked
    since, due    None where somebody refers to it, or no report has it
    unread        how many files that may refer to it cannot be read
    rule          the sentence without the names of these, which may be of anybody; empty: the same
    tables        of a folder: the first twenty tables that lie there, around it or below it
    unreferenced  of a folder: the files below it that nobody refers to, by the last report; ``since`` and ``due`` are the earliest
    """

    url: str
    code: str
    sentence: str
    is_there: bool | None = None
    realm: str = ""
    catalog: str = ""
    place: str = ""
    table: str = ""
    referrers: tuple[FileReferrer, ...] = ()
    since: Micros | None = None
    due: Micros | None = None
    report: int | None = None
    unread: int = 0
    rule: str = ""
    tables: tuple[FolderTable, ...] = ()
    unreferenced: tuple[UnreferencedCount, ...] = ()


NOT_THERE, NOT_SEEN, NO_PLACE = "NotThere", "NotSeen", "NoPlace"
UNREPORTED_SENTENCES = {
    NOT_THERE: "there is no such file, and no stored version refers to one",
    NOT_SEEN: "no stored version refers to it, and the last report does not have it",
    NO_PLACE: "it lies in no catalog's locations: no report looks at it",
}
"""Codes of files of which no report tells, with their meanings."""
CODE_SENTENCES = {
    str(code): sentence
    for sentences in (FILE_SENTENCES, UNREPORTED_SENTENCES, FOLDER_SENTENCES, PLACE_SENTENCES)
    for code, sentence in sentences.items()
}
"""Every code of a file, a folder and a place, with what it means."""


def explain_lake_file(store: Store, url: str, *, fence: Fence = lambda: None) -> LakeFileExplanation:
    """Explain a file or a folder by its URL. Who refers to it, or has it, is looked up now; the rest is what the last report said.

    fence         called often while that is looked up; what it raises ends the work
    raises        RefusedError for a text that is no location
    """
    location = canonical_location(url)
    storages = StoreStorages(store)
    owner = find_lake_owner(store, location)
    told = LakeFileExplanation(url=location, code="", sentence="", is_there=_is_there(storages, owner, location))
    if owner is not None:
        told = replace(told, realm=owner.realm.id, catalog=owner.definition.name)
    folder = None if told.is_there else _as_folder(store, storages, owner, told)
    if folder is not None:
        return folder
    unread: dict[str, str] = {}
    found = find_referrers(
        lambda: VersionScan(store, fence=fence), storages.find_lake, location, limit=_SHOWN, unread=unread, fence=fence
    )
    if found:
        code = FileReason.LIVE if any(each.is_strict for each in found) else FileReason.LOOSELY_LIVE
        referrers = tuple(_shown(store, each) for each in found)
        return replace(told, code=code, sentence=_live_sentence(code, found), referrers=referrers)
    told = _unreferred(store, told, owner)
    if not unread:
        return told
    shown = "; ".join(f"{what}: {why}" for what, why in sorted(unread.items())[:_UNREAD_SHOWN])
    doubt = f"{told.sentence}. But {len(unread)} of the files that may refer to it cannot be read"
    return replace(told, sentence=f"{doubt} ({shown})", unread=len(unread), rule=doubt)


def _as_folder(
    store: Store, storages: StoreStorages, owner: LakeOwner | None, told: LakeFileExplanation
) -> LakeFileExplanation | None:
    """The explanation of a location that is a folder; None where it is none."""
    has_files = _has_files(storages, owner, told.url)
    found = explain_folder(store, owner, told.url, has_files=has_files)
    if found is None:
        return None
    return replace(
        told,
        code=found.code,
        sentence=found.sentence,
        is_there=has_files,
        table=folder_table(told.url, found.tables),
        tables=found.tables,
        unreferenced=found.unreferenced,
        since=found.since,
        due=found.due,
        report=found.report,
    )


def _unreferred(store: Store, told: LakeFileExplanation, owner: LakeOwner | None) -> LakeFileExplanation:
    if owner is None:
        return replace(told, code=NO_PLACE, sentence=UNREPORTED_SENTENCES[NO_PLACE])
    if told.is_there is False:
        return replace(told, code=NOT_THERE, sentence=UNREPORTED_SENTENCES[NOT_THERE])
    try:
        read = read_last_report(store, owner.realm.id, owner.definition.name)
        line = _line_of(read, told.url)
        told = replace(told, report=read.report.run, place=line.get("place", ""), table=line.get("key", ""))
        if "code" in line:
            detail = f"; {line['detail']}" if line.get("detail") else ""
            return replace(told, code=line["code"], sentence=f"{PLACE_SENTENCES[PlaceReason(line['code'])]}{detail}")
        mark = next((mark for mark in read.marks() if mark.path == told.url), None)
    except NotFoundError as fault:
        return replace(told, code=NOT_SEEN, sentence=f"no stored version refers to it; {fault}")
    except CorruptionError as fault:
        return replace(told, code=NOT_SEEN, sentence=f"no stored version refers to it; of the last report: {fault}")
    if mark is None:
        why = "it is new, or was live then" if line else "it lies in no place that reports look at: see spec.files.places"
        return replace(told, code=NOT_SEEN, sentence=f"{UNREPORTED_SENTENCES[NOT_SEEN]}: {why}")
    return _marked(told, owner, mark, line)


def _marked(told: LakeFileExplanation, owner: LakeOwner, mark: MarkedFile, line: dict[str, Any]) -> LakeFileExplanation:
    code = mark.code
    if mark.due and _is_taken(owner, mark, line.get("contentId")):
        code = FileReason.TAKEN_UP
    due = mark.due if mark.due and code is not FileReason.TAKEN_UP else None
    return replace(told, code=code, sentence=FILE_SENTENCES[code], since=mark.first_listed, due=due)


def _is_taken(owner: LakeOwner, mark: MarkedFile, content_id: str | None) -> bool:
    marks = read_marks(owner.rows, fresh=True)
    if marks is None:
        return False
    wanted, digest = NO_TABLE if content_id is None else UUID(content_id), file_digest(mark.path)
    return any(
        table == wanted and taken in (b"", digest)
        for table, taken in (taken_part(key) for key, _ in taken_entries(marks, owner.definition.id))
    )


def _line_of(read: ReadReport, location: str) -> dict[str, Any]:
    """What came of the innermost place in which a file lies."""
    inside = [line for line in read.places if is_within(location, line["place"])]
    return max(inside, key=lambda line: len(line["place"]), default={})


def _lake_of(storages: StoreStorages, owner: LakeOwner | None) -> LakeStorage:
    return (
        storages.of_catalog("", "").lake if owner is None else storages.of_catalog(owner.realm.id, owner.definition.name).lake
    )


def _is_there(storages: StoreStorages, owner: LakeOwner | None, location: str) -> bool | None:
    try:
        return _lake_of(storages, owner).has_file(location)
    except (HeadwaterError, RejectedTable):
        return None


def _has_files(storages: StoreStorages, owner: LakeOwner | None, location: str) -> bool | None:
    """Whether something lies below a location; None where its storage could not be asked."""
    try:
        return next(iter(_lake_of(storages, owner).list_files(location)), None) is not None
    except (HeadwaterError, RejectedTable):
        return None


def _live_sentence(code: FileReason, found: Sequence[VersionReferrer]) -> str:
    if code is FileReason.LIVE:
        return FILE_SENTENCES[code]
    return f"{FILE_SENTENCES[code]}: {found[0].named_as}"


def _shown(store: Store, found: VersionReferrer) -> FileReferrer:
    """A referrer with the names that people know."""
    realm = next((realm for realm in RealmRegistry(store).list_realms() if realm.key == found.version.realm), None)
    rows = None if realm is None else store.rows(realm.id, realm.key)
    catalog, key = "", found.table
    where: tuple[str, ...] = ()
    if rows is not None:
        catalog, key, where = _standing(rows, found)
    return FileReferrer(
        realm=f"{found.version.realm:x}" if realm is None else realm.id,
        catalog=catalog,
        key=key,
        where=where,
        snapshots=found.snapshots,
        metadata=found.version.metadata_location or found.location,
        is_strict=found.is_strict,
        named_as=found.named_as,
    )


def _standing(rows: RealmStore, found: VersionReferrer) -> tuple[str, str, tuple[str, ...]]:
    """Catalog and key of a version's table, and the branches and tags whose heads have this very version."""
    place = ("", found.table, ())
    for definition in Catalogs(rows).list_catalogs():
        content_id = find_content_id(rows, definition, found.table)
        if content_id is None:
            continue
        where = []
        key = ""
        for name, head in heads_of(rows, definition):
            ids = index_at(head, IDS)
            standing = find_content_key(ids, content_id)
            if standing is None:
                continue
            key = key or str(standing)
            stored = stored_metadata_of(ids, content_id)
            if stored is not None and found.version.version_id.endswith(f"-{id_text(stored)}"):
                where.append(name)
        if key:
            return definition.name, key, tuple(where)
    return place
