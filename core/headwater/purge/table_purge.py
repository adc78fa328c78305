"""Purge a dropped table: delete the files that its metadata reaches, once no kept commit of its realm holds it.

    PurgeRequest           what a task is asked to delete: one content, with the versions that it had where it was dropped
    TableDeletionPlan      which files, in a temporary file, because a table has more files than fit into memory
    purge_table            deletes them in batches: leaves first, the metadata file last; then verifies that all are gone

Leaves go first, so that everything that an interrupted purge leaves can still be reached from the metadata file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol
from uuid import UUID

import msgspec

from headwater.clock import Micros
from headwater.errors import RefusedError, UnavailableError
from headwater.iceberg import (
    FIRST_TURNS,
    STORAGE,
    FileInfo,
    LakeFolder,
    QuarantineCode,
    ReachedFile,
    RejectedTable,
    canonical_location,
    comparable_location,
    is_same_place,
    is_within,
    purgeable_document,
    reachable_files,
)
from headwater.iceberg.filesystem import LakeStorage
from headwater.settings import Settings
from headwater.tasks import Task
from headwater.typed_values import convert

_BYTES = 15 * 1024


class DroppedTable(msgspec.Struct, frozen=True, kw_only=True):
    """One drop of a table.

    branch        the branch of the catalog from which it is dropped
    key           the table's key there, for people
    metadata      its metadata file as of then
    location      the table's location by that file
    asked         when, in microseconds since 1970
    reachable_only  files that only missing or unreadable manifests of this version name are never deleted
    allowed       places besides its location that hold its metadata, and that its catalog allowed then
    request       a text that is unique to the request, so that joined requests stay distinct
    """

    branch: str
    key: str
    metadata: str
    location: str
    asked: Micros
    reachable_only: bool = False
    allowed: tuple[str, ...] = ()
    request: str = ""


class PurgeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The content that a task purges, with the versions that it had where it was dropped.

    table_uuid    None where its format has none
    drops         one for each branch from which it was dropped in order to be purged
    reachable_only  for all drops, whatever each says: set by a retry, and by an earlier release, which had no flag for each drop
    """

    catalog: str
    catalog_id: str
    content_id: UUID
    table_uuid: UUID | None
    drops: tuple[DroppedTable, ...]
    reachable_only: bool = False

    def arguments(self) -> dict[str, Any]:
        """The request as the arguments of a task."""
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return plain

    def check_size(self) -> None:
        """Pass if a task can carry all drops.

        raises        RefusedError for more drops than a task can carry
        """
        size = len(msgspec.json.encode(self))
        if size > _BYTES:
            raise RefusedError(
                f"{len(self.drops)} drops of content {self.content_id} measure {size} bytes, more than a task carries ({_BYTES}):"
                " drop it from the other branches without a purge"
            )

    @classmethod
    def from_task(cls, task: Task) -> PurgeRequest:
        try:
            return convert(task.arguments, cls)
        except msgspec.ValidationError as fault:
            raise RefusedError(f"arguments of {task} are none of a purge: {fault}") from fault

    def joined(self, earlier: PurgeRequest) -> PurgeRequest:
        """The request with the drops of an earlier one, each branch and version once. Everything that either request deletes is
        deleted.
        """
        others = {(drop.branch, drop.metadata): drop for drop in earlier._each()}
        mine = [_strictest(drop, others.pop((drop.branch, drop.metadata), drop)) for drop in self._each()]
        return msgspec.structs.replace(self, drops=(*others.values(), *mine), reachable_only=False)

    def versions(self) -> list[DroppedTable]:
        """One drop for each metadata file, with the restrictions of all drops of that file."""
        versions: dict[str, DroppedTable] = {}
        for drop in self._each():
            versions[drop.metadata] = _strictest(drop, versions.get(drop.metadata, drop))
        return list(versions.values())

    def _each(self) -> list[DroppedTable]:
        """The drops, one for each branch and version, with everything that was said of it."""
        if not self.reachable_only:
            return list(self.drops)
        return [msgspec.structs.replace(drop, reachable_only=True) for drop in self.drops]


def _strictest(drop: DroppedTable, other: DroppedTable) -> DroppedTable:
    """Combine two drops: strict if either is, and with only the places that both allow."""
    return msgspec.structs.replace(
        drop,
        asked=max(drop.asked, other.asked),
        reachable_only=drop.reachable_only and other.reachable_only,
        allowed=tuple(dict.fromkeys((*other.allowed, *drop.allowed))),
    )


def first_look_after(settings: Settings) -> int:
    """The earliest time of the first attempt, in microseconds: claims that are younger are never released."""
    return round(max(settings.writer_grace_seconds, settings.reader_grace_seconds) * 1_000_000)


BATCH = 1000
"""The number of files that are deleted between two checks of the task."""

PLANNED = "planned files"
FILES, MANIFESTS, LISTS, METADATA = "data files", "manifests", "manifest lists", "metadata files"
_AFTER_FILES = (MANIFESTS, LISTS, METADATA)
_LOOK_EVERY = 10_000
_SHOWN = 5


class PurgeProgress(Protocol):
    """Records the progress of a purge (files deleted of files planned, and what is deleted next) before the first file is deleted."""

    def __call__(self, done: int, total: int, unit: str, /, *, is_durable: bool) -> None: ...


@dataclass(slots=True)
class PurgedTable:
    """The counts of a purge. Files outside of the table's location, and unreached files in it, are never deleted.

    planned       files that the metadata reaches, within the table's location
    deleted       of these, those that were there and are deleted
    gone          of these, those that were missing already
    outside       files that the metadata reaches elsewhere
    others        files in the location that the metadata does not reach
    """

    table: str
    planned: int = 0
    deleted: int = 0
    gone: int = 0
    outside: int = 0
    others: int = 0
    notes: list[str] = field(default_factory=list)

    def as_plain(self) -> dict[str, Any]:
        return asdict(self)


def has_deleted_manifests(units: Iterable[str]) -> bool:
    """Whether earlier attempts have deleted more than leaves: then manifests may be missing."""
    return any(unit in _AFTER_FILES for unit in units)


def purge_table(
    wish: PurgeRequest,
    result: PurgedTable,
    *,
    allowed: Sequence[str] | None = (),
    check: Callable[[], None],
    mark: PurgeProgress,
    begun: Iterable[str] = (),
    lake: LakeStorage = STORAGE,
) -> PurgedTable:
    """Plan, delete and verify. An interrupted purge is planned again, with the same result.

    result        updated continuously, so that it is right however this ends
    allowed       where metadata may be read besides the table's location; nothing is deleted there. None: the places of each drop
    check         called before each batch: raises when nothing more may be deleted
    begun         units that earlier attempts have marked
    lake          the storage of the catalog's tables
    raises        RefusedError, before anything is deleted, where not all files can be determined; UnavailableError when the storage
                  does not
                  answer, or files are still there
    """
    units = set(begun) & {FILES, *_AFTER_FILES}
    if units:
        result.notes.append("an attempt before this one has deleted files, too: they count as gone, or not at all")
    missed: list[str] = []
    folders = [LakeFolder(place, lake.open_system) for place in _outermost(drop.location for drop in wish.drops)]
    with closing(TableDeletionPlan(folders)) as plan:
        for drop in wish.versions():
            readable = drop.allowed if allowed is None else allowed
            document = _document(drop, wish, units, readable, lake)
            if document is not None:
                reached = reachable_files(
                    document,
                    drop.metadata,
                    within=drop.location,
                    allowed=readable,
                    was_begun=has_deleted_manifests(units),
                    missed=missed if drop.reachable_only else None,
                    storage=lake,
                )
                plan.add_files(_watched(reached, check, mark))
        plan.list_present()
        result.planned, result.outside, result.others = plan.planned, plan.outside, plan.others
        present = plan.there
        _check_links(plan, lake)
        result.gone = result.planned - present
        _delete(plan, present, result, check, mark)
        plan.list_present()
        still, result.others = plan.there, plan.others
        result.deleted = max(present - still, 0)
        if still:
            raise UnavailableError(
                f"{still} of {present} files of {result.table} are still there after they were deleted"
                f" ({', '.join(plan.examples())}): they are deleted again"
            )
    _add_notes(result, missed)
    return result


def _document(
    drop: DroppedTable, wish: PurgeRequest, units: set[str], allowed: Sequence[str], lake: LakeStorage
) -> dict[str, Any] | None:
    """The metadata of a version; None where an earlier attempt has deleted it, after everything that it reached."""
    if not any(is_within(drop.metadata, place) for place in (drop.location, *allowed)):
        raise RefusedError(f"{drop.metadata} lies outside of what the catalog allows: it is not read, and nothing is deleted")
    try:
        data = lake.read_file(FileInfo(canonical_location(drop.metadata), 0))
    except RejectedTable as unfit:
        if unfit.code is QuarantineCode.VANISHED and METADATA in units:
            return None
        raise RefusedError(
            f"{drop.metadata} cannot be read ({unfit}): nothing is deleted, for it alone says which files are the table's"
        ) from unfit
    document = purgeable_document(data, path=drop.metadata)
    _check_same(document, drop, wish)
    return document


def _watched(reached: Iterable[ReachedFile], check: Callable[[], None], mark: PurgeProgress) -> Iterator[ReachedFile]:
    """Yield the reached files with checks and progress in between: a plan of millions of files takes time."""
    for number, file in enumerate(reached):
        if number % _LOOK_EVERY == 0:
            check()
            mark(number, 0, PLANNED, is_durable=False)
        yield file


def _check_same(document: dict[str, Any], drop: DroppedTable, wish: PurgeRequest) -> None:
    uuid, location = document.get("table-uuid"), document["location"]
    if uuid is not None and wish.table_uuid is not None and str(uuid).lower() != str(wish.table_uuid):
        raise RefusedError(f"{drop.metadata} is of the table {uuid} by now, not {wish.table_uuid}: nothing is deleted")
    if not is_same_place(location, drop.location):
        raise RefusedError(f"{drop.metadata} has its table at {location} by now, not {drop.location}: nothing is deleted")


def _check_links(plan: TableDeletionPlan, lake: LakeStorage) -> None:
    """Refuse files that exist but are in no listing: they lie elsewhere, behind a link. Checked only where links or odd spellings
    are possible.
    """
    for named in plan.not_listed():
        location = canonical_location(named)
        scheme, _, path = location.partition("://")
        if (scheme == "file" or "//" in path) and lake.has_file(location):
            raise RefusedError(
                f"{location} is there, but in no listing of the table's folder: it leads elsewhere by a link,"
                " or is spelled as no listing tells; nothing is deleted"
            )


def _delete(plan: TableDeletionPlan, total: int, result: PurgedTable, check: Callable[[], None], mark: PurgeProgress) -> None:
    current = ""
    for turn, folder, paths in plan.batches(BATCH):
        check()
        unit = _unit(turn)
        mark(result.deleted, total, unit, is_durable=unit != current)
        current = unit
        folder.delete_files(paths)
        result.deleted += len(paths)
    mark(result.deleted, total, current or FILES, is_durable=False)


def _unit(turn: int) -> str:
    return (FILES, MANIFESTS, LISTS)[turn] if turn in FIRST_TURNS else METADATA


def _outermost(locations: Iterable[str]) -> list[str]:
    places = sorted({canonical_location(location) for location in locations}, key=len)
    return [place for at, place in enumerate(places) if not any(is_within(place, outer) for outer in places[:at])]


def _add_notes(result: PurgedTable, missed: Sequence[str]) -> None:
    if missed:
        result.notes.append(
            f"{len(missed)} manifests or lists could not be read ({'; '.join(missed[:_SHOWN])}): files that only they name were not"
            " deleted and will not be"
        )
    if result.outside:
        result.notes.append(f"{result.outside} files that the table had outside of its location were left")
    if result.others:
        result.notes.append(f"{result.others} files in its location that its metadata does not name were left")


_SCHEMA = """
create table planned (place text primary key, named text, turn integer, path text, folder integer) without rowid;
create table outside (place text primary key) without rowid;
create index turns on planned (turn) where path is not null;
"""
_PLAN = """
insert into planned (place, named, turn) values (?, ?, ?)
on conflict (place) do update set turn = max(turn, excluded.turn)
"""


class TableDeletionPlan:
    """The files that the metadata reaches within the table's own folders, each with its presence and its name in the file system.

    others        files in the folders that no metadata reaches
    """

    def __init__(self, folders: Sequence[LakeFolder]) -> None:
        self._folders = folders
        self._rows = sqlite3.connect("", isolation_level=None)  # a temporary file of its own, removed when it is closed
        self._rows.executescript(_SCHEMA)
        self.others = 0

    def close(self) -> None:
        self._rows.close()

    def add_files(self, reached: Iterable[ReachedFile]) -> None:
        self._rows.execute("begin")
        for location, turn in reached:
            if any(is_within(location, folder.location) for folder in self._folders):
                self._rows.execute(_PLAN, (comparable_location(location), location, turn))
            else:
                self._rows.execute("insert or ignore into outside values (?)", (_told(location),))
        self._rows.execute("commit")

    def list_present(self) -> None:
        """Record which of the files exist, by listing the folders."""
        self.others = 0
        self._rows.execute("begin")
        self._rows.execute("update planned set path = null")
        for number, folder in enumerate(self._folders):
            for location, path in folder.list_files():
                cursor = self._rows.execute(
                    "update planned set path = ?, folder = ? where place = ?", (path, number, comparable_location(location))
                )
                self.others += not cursor.rowcount
        self._rows.execute("commit")

    @property
    def planned(self) -> int:
        return self._number("select count(*) from planned")

    @property
    def outside(self) -> int:
        return self._number("select count(*) from outside")

    @property
    def there(self) -> int:
        return self._number("select count(*) from planned where path is not null")

    def examples(self, limit: int = 5) -> list[str]:
        """Some of the files that exist."""
        names = self._rows.execute("select named from planned where path is not null order by place limit ?", (limit,))
        return [named for (named,) in names]

    def not_listed(self) -> Iterator[str]:
        """The existing files that no listing contained."""
        for (named,) in self._rows.execute("select named from planned where path is null order by place"):
            yield named

    def batches(self, size: int) -> Iterator[tuple[int, LakeFolder, list[str]]]:
        """Yield the existing files by level: the level, the folder, and paths in it."""
        turns = self._rows.execute(
            "select distinct turn, folder from planned where path is not null order by turn, folder"
        ).fetchall()
        for turn, folder in turns:
            after = ""
            while rows := self._rows.execute(
                "select place, path from planned where turn = ? and folder = ? and path is not null and place > ? order by place limit ?",
                (turn, folder, after, size),
            ).fetchall():
                after = rows[-1][0]
                yield turn, self._folders[folder], [path for _, path in rows]

    def _number(self, query: str) -> int:
        (number,) = self._rows.execute(query).fetchone()
        return int(number)


def _told(location: str) -> str:
    try:
        return comparable_location(location)
    except RefusedError:
        return location
