"""Deleting what a dropped table's metadata reaches: leaves first, the metadata file last, and a look whether all of it is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from headwater.catalogs.iceberg import (
    FIRST_TURNS,
    STORAGE,
    File,
    Folder,
    QuarantineCode,
    Reached,
    UnfitError,
    canonical,
    is_same_place,
    is_within,
    purgeable_document,
    reach,
)
from headwater.errors import RefusedError, UnavailableError
from headwater.maintenance.purging_tables.planning import Plan
from headwater.maintenance.purging_tables.requests import Dropped, Wish

__all__ = ["BATCH", "METADATA", "Marking", "PurgedTable", "purge_table", "was_begun"]

BATCH = 1000
"""Files that are deleted between two looks at the task."""

PLANNED = "planned files"
FILES, MANIFESTS, LISTS, METADATA = "data files", "manifests", "manifest lists", "metadata files"
_AFTER_FILES = (MANIFESTS, LISTS, METADATA)
_LOOK_EVERY = 10_000
_SHOWN = 5


class Marking(Protocol):
    """Writes down, before the first file of it goes, how far a purge is: files deleted of files planned, and what goes now."""

    def __call__(self, done: int, total: int, unit: str, /, *, is_durable: bool) -> None: ...


@dataclass(slots=True)
class PurgedTable:
    """What a purge did. Files outside of the table's location, and others in it, are never deleted.

    planned       files that the metadata reaches, within the table's location
    deleted       of these, those that were there, and are gone
    gone          of these, those that were gone already
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
        return {
            "table": self.table,
            "planned": self.planned,
            "deleted": self.deleted,
            "gone": self.gone,
            "outside": self.outside,
            "others": self.others,
            "notes": list(self.notes),
        }


def was_begun(units: Iterable[str]) -> bool:
    """Whether attempts that came so far have deleted more than leaves: then manifests may be missing."""
    return any(unit in _AFTER_FILES for unit in units)


def purge_table(
    wish: Wish,
    result: PurgedTable,
    *,
    allowed: Sequence[str] | None = (),
    check: Callable[[], None],
    mark: Marking,
    begun: Iterable[str] = (),
) -> PurgedTable:
    """Plan, delete and look. What was interrupted is planned again, and comes to the same end.

    result        is filled as it goes, so that it is right however this ends
    allowed       where metadata may be read besides the table's location; nothing is deleted there. None: as each drop says
    check         called before each batch: raises when nothing more may be deleted
    begun         units that earlier attempts have marked
    raises        RefusedError, before anything is deleted, where not all files can be told; UnavailableError when the storage does not
                  answer, or files are still there
    """
    units = set(begun) & {FILES, *_AFTER_FILES}
    if units:
        result.notes.append("an attempt before this one has deleted files, too: they count as gone, or not at all")
    missed: list[str] = []
    folders = [Folder(place) for place in _outermost(drop.location for drop in wish.drops)]
    with closing(Plan(folders)) as plan:
        for drop in wish.versions():
            readable = drop.allowed if allowed is None else allowed
            document = _document(drop, wish, units, readable)
            if document is not None:
                found = reach(
                    document,
                    drop.metadata,
                    within=drop.location,
                    allowed=readable,
                    was_begun=was_begun(units),
                    missed=missed if drop.reachable_only else None,
                )
                plan.add(_watched(found, check, mark))
        plan.look()
        result.planned, result.outside, result.others = plan.planned, plan.outside, plan.others
        there = plan.there
        _check_links(plan)
        result.gone = result.planned - there
        _delete(plan, there, result, check, mark)
        plan.look()
        still, result.others = plan.there, plan.others
        result.deleted = max(there - still, 0)
        if still:
            raise UnavailableError(
                f"{still} of {there} files of {result.table} are still there after they were deleted"
                f" ({', '.join(plan.examples())}): they are deleted again"
            )
    _tell(result, missed)
    return result


def _document(drop: Dropped, wish: Wish, units: set[str], allowed: Sequence[str]) -> dict[str, Any] | None:
    """The metadata of a version; None where an earlier attempt has deleted it, after all that it led to."""
    if not any(is_within(drop.metadata, place) for place in (drop.location, *allowed)):
        raise RefusedError(f"{drop.metadata} lies outside of what the catalog allows: it is not read, and nothing is deleted")
    try:
        data = STORAGE.read(File(canonical(drop.metadata), 0))
    except UnfitError as unfit:
        if unfit.code is QuarantineCode.VANISHED and METADATA in units:
            return None
        raise RefusedError(
            f"{drop.metadata} cannot be read ({unfit}): nothing is deleted, for it alone says which files are the table's"
        ) from unfit
    document = purgeable_document(data, path=drop.metadata)
    _check_same(document, drop, wish)
    return document


def _watched(reached: Iterable[Reached], check: Callable[[], None], mark: Marking) -> Iterator[Reached]:
    """A plan of millions of files takes its time."""
    for number, one in enumerate(reached):
        if number % _LOOK_EVERY == 0:
            check()
            mark(number, 0, PLANNED, is_durable=False)
        yield one


def _check_same(document: dict[str, Any], drop: Dropped, wish: Wish) -> None:
    uuid, location = document.get("table-uuid"), document["location"]
    if uuid is not None and wish.table_uuid is not None and str(uuid).lower() != str(wish.table_uuid):
        raise RefusedError(f"{drop.metadata} is of the table {uuid} by now, not {wish.table_uuid}: nothing is deleted")
    if not is_same_place(location, drop.location):
        raise RefusedError(f"{drop.metadata} has its table at {location} by now, not {drop.location}: nothing is deleted")


def _check_links(plan: Plan) -> None:
    """Files that are there, and in no listing: through a link they lie elsewhere. Only where links can be, and for odd spellings."""
    for named in plan.not_listed():
        location = canonical(named)
        scheme, _, path = location.partition("://")
        if (scheme == "file" or "//" in path) and STORAGE.has(location):
            raise RefusedError(
                f"{location} is there, but in no listing of the table's folder: it leads elsewhere by a link,"
                " or is spelled as no listing tells; nothing is deleted"
            )


def _delete(plan: Plan, total: int, result: PurgedTable, check: Callable[[], None], mark: Marking) -> None:
    current = ""
    for turn, folder, paths in plan.batches(BATCH):
        check()
        unit = _unit(turn)
        mark(result.deleted, total, unit, is_durable=unit != current)
        current = unit
        folder.remove(paths)
        result.deleted += len(paths)
    mark(result.deleted, total, current or FILES, is_durable=False)


def _unit(turn: int) -> str:
    return (FILES, MANIFESTS, LISTS)[turn] if turn in FIRST_TURNS else METADATA


def _outermost(locations: Iterable[str]) -> list[str]:
    places = sorted({canonical(location) for location in locations}, key=len)
    return [place for at, place in enumerate(places) if not any(is_within(place, outer) for outer in places[:at])]


def _tell(result: PurgedTable, missed: Sequence[str]) -> None:
    if missed:
        result.notes.append(
            f"{len(missed)} manifests or lists could not be read ({'; '.join(missed[:_SHOWN])}): files that only they name were not"
            " deleted and will not be"
        )
    if result.outside:
        result.notes.append(f"{result.outside} files that the table had outside of its location were left")
    if result.others:
        result.notes.append(f"{result.others} files in its location that its metadata does not name were left")
