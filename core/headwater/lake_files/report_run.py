"""One report of a catalog's files: what is dead is marked, and what may go stands in a plan. Nothing of the lake is changed.

    takes seen       which marks commits have taken up since the last report
    dead files       what is live, what is there, and what is neither (``dead_files``)
    marks            the last report's and the dead files, side by side, into files of the catalog's work folder
    publication      the record says that it begins; the filters of tables are replaced; the record names the new marks, and exactly the
                     takes that were seen are removed

A report that dies before its publication leaves the last one as it is. One that dies within it leaves marks that no filter may cover:
the next report lets all files begin anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec
import structlog

from headwater.catalogs import CatalogDefinition
from headwater.catalogs.file_marks import (
    FILE_MARKS,
    FILTERS,
    NO_TABLE,
    TAKEN,
    ensure_marks,
    marked_table_key,
    read_marks,
    taken_entries,
    taken_part,
)
from headwater.clock import Micros, as_text
from headwater.commits import Head, Transaction, commit_change
from headwater.errors import ConflictError, CorruptionError
from headwater.gc.bloom_filter import BloomFilter
from headwater.index import IndexValue
from headwater.lake_files.dead_files import DeadFilesResult
from headwater.lake_files.file_reasons import FileReason
from headwater.lake_files.file_report import (
    BLOCKED_KEPT,
    PLAN_SECONDS,
    FilePlan,
    LakeFileReport,
    find_report_in,
    put_report,
    report_in,
)
from headwater.lake_files.lake_file_values import TablePlace
from headwater.lake_files.mark_filters import FPP, digest_number, file_digest, store_filter
from headwater.lake_files.marked_files import MarkedFile, read_marked_files, write_marked_files
from headwater.lake_files.next_marks import MarkRules, next_marks
from headwater.lake_files.work_folder import WorkFile, WorkFolder
from headwater.store import RealmStore, id_text
from headwater.throttle import Fence

_TABLES_AT_ONCE = 200
_OWN_WAYS = (FileReason.IN_GRACE, FileReason.MARKED, FileReason.DUE)
"""The codes of files that may go one day; all others are only reported."""
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWaits:
    """How long a file of a table has to be dead before it may go, in seconds."""

    grace_seconds: float
    delay_seconds: float

    @property
    def together(self) -> int:
        """In microseconds."""
        return round((self.grace_seconds + self.delay_seconds) * 1_000_000)


@dataclass(slots=True)
class _Takes:
    """What commits have taken up since the last report, as it was when this one began.

    tables        content ids of which all marks were taken up
    """

    entries: dict[bytes, IndexValue] = field(default_factory=dict)
    tables: set[UUID] = field(default_factory=set)
    digests: dict[UUID, set[bytes]] = field(default_factory=lambda: defaultdict(set))

    def note_entry(self, key: bytes, value: IndexValue) -> None:
        content_id, digest = taken_part(key)
        self.entries[key] = value
        if digest:
            self.digests[content_id].add(digest)
        else:
            self.tables.add(content_id)

    def took_up(self, content_id: UUID | None, path: str) -> bool:
        owner = content_id or NO_TABLE
        known = self.digests.get(owner)
        return owner in self.tables or (known is not None and file_digest(path) in known)


@dataclass(slots=True)
class PlaceTotals:
    """What came of one place: numbers and bytes of its dead files by code."""

    files: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)

    def count_mark(self, mark: MarkedFile) -> None:
        self.files[mark.code] += 1
        self.sizes[mark.code] += mark.size_bytes


class FileReportRun:
    """One report of one catalog. ``begin`` before anything of the store is scanned, then ``mark_and_plan``.

    waits         of a place
    """

    def __init__(
        self,
        rows: RealmStore,
        definition: CatalogDefinition,
        folder: WorkFolder,
        *,
        waits: Callable[[TablePlace], FileWaits],
        fence: Fence,
    ) -> None:
        self._rows = rows
        self._definition = definition
        self._folder = folder
        self._waits = waits
        self._fence = fence
        self._takes = _Takes()
        self._before: LakeFileReport | None = None
        self._started = Micros(0)

    def begin(self, *, is_dry: bool = False) -> None:
        """Note where the last report left off, and what commits took up since."""
        self._started = self._rows.clock.now()
        if not is_dry:
            ensure_marks(self._rows)
        marks = read_marks(self._rows, fresh=True)
        if marks is not None:
            self._before = report_in(marks, self._definition.id)
            self._note_takes(marks)

    def _note_takes(self, marks: Head | None) -> None:
        for key, value in [] if marks is None else taken_entries(marks, self._definition.id):
            self._takes.note_entry(key, value)

    def mark_and_plan(self, result: DeadFilesResult, *, is_dry: bool = False) -> LakeFileReport:
        """Mark the dead files, publish marks and plan, and return the record; of a dry run the record alone.

        Marks of the last report that are lost, because somebody deleted or changed them, begin anew.
        """
        self._note_takes(read_marks(self._rows, fresh=True))  # a search takes hours, and commits did not wait
        places = {place.location: place for place in result.places}
        run = 1 if self._before is None else self._before.run + 1
        totals: dict[str, PlaceTotals] = defaultdict(PlaceTotals)
        marks = self._counted(self._marks(result, places), totals)
        if is_dry:
            for _ in marks:
                pass
            return self._record(run, result, totals)
        stem = f"{self._reports}/{run:08d}-{id_text(self._rows.new_ids(1)[0])}"
        parts = write_marked_files(self._folder, f"{stem}/marks", marks)
        self._fence()
        filters = self._filters(parts, places)
        plan = self._plan(parts, stem, run, result, totals)
        written = self._folder.store_file(f"{stem}/places.json", _encoded_places(result, totals))
        record = msgspec.structs.replace(self._record(run, result, totals), marks=tuple(parts), places=written, plan=plan)
        self._publish(record, filters)
        self._tidy_up(record)
        return record

    def _marks(self, result: DeadFilesResult, places: Mapping[str, TablePlace]) -> Iterator[MarkedFile]:
        rules = MarkRules(
            now=result.listed,
            waits=lambda place: self._waits(places[place]).together,
            is_taken=lambda place, path: self._takes.took_up(places[place].content_id, path),
        )
        return next_marks(self._earlier_marks(), result.files(), rules)

    def _earlier_marks(self) -> Iterator[MarkedFile]:
        """The last report's marks, as far as they are sound: without its mark a file begins anew."""
        if self._before is None or self._before.publishing:
            return
        try:
            yield from read_marked_files(self._folder, self._before.marks)
        except CorruptionError as fault:
            _log.warning("marks are lost: the grace of their files begins anew", realm=self._rows.realm, fault=str(fault))

    def _counted(self, marks: Iterator[MarkedFile], totals: dict[str, PlaceTotals]) -> Iterator[MarkedFile]:
        for mark in marks:
            totals[mark.place].count_mark(mark)
            yield mark

    def _record(self, run: int, result: DeadFilesResult, totals: Mapping[str, PlaceTotals]) -> LakeFileReport:
        files, sizes = Counter[str](result.other_counts), Counter[str]()
        for place in totals.values():
            files.update(place.files)
            sizes.update(place.sizes)
        sizes[FileReason.LIVE] = result.kept_bytes
        return LakeFileReport(
            run=run,
            started=self._started,
            listed=result.listed,
            finished=self._rows.clock.now(),
            files=dict(files),
            sizes=dict(sizes),
            requests=dict(result.requests),
            outside=result.outside,
            blocked=tuple(result.blocked[:BLOCKED_KEPT]),
            blocked_total=len(result.blocked),
        )

    def _filters(self, parts: Sequence[WorkFile], places: Mapping[str, TablePlace]) -> dict[bytes, tuple[BloomFilter, int]]:
        """The filter of each table with files that may go one day, by its key, with the number of its files."""
        sizes: Counter[bytes] = Counter()
        for mark in self._ways(parts):
            sizes[self._table_key(places[mark.place])] += 1
        filters = {key: (BloomFilter(size, FPP), size) for key, size in sizes.items()}
        for mark in self._ways(parts):
            filters[self._table_key(places[mark.place])][0].add_id(digest_number(file_digest(mark.path)))
        return filters

    def _ways(self, parts: Sequence[WorkFile]) -> Iterator[MarkedFile]:
        return (mark for mark in read_marked_files(self._folder, parts) if mark.code in _OWN_WAYS)

    def _table_key(self, place: TablePlace) -> bytes:
        return marked_table_key(self._definition.id, place.content_id or NO_TABLE)

    def _plan(
        self, parts: Sequence[WorkFile], stem: str, run: int, result: DeadFilesResult, totals: Mapping[str, PlaceTotals]
    ) -> FilePlan | None:
        """Write the plan of what may go; None where nothing may."""
        due = (mark for mark in read_marked_files(self._folder, parts) if mark.code is FileReason.DUE)
        written = write_marked_files(self._folder, f"{stem}/plan", due)
        if not written:
            return None
        now = self._rows.clock.now()
        name, expires = stem.rpartition("/")[2], Micros(now + PLAN_SECONDS * 1_000_000)
        files = sum(part.rows for part in written)
        size = sum(each.sizes[FileReason.DUE] for each in totals.values())
        text = {
            "plan": name,
            "realm": self._rows.realm,
            "catalog": self._definition.name,
            "catalogId": self._definition.id,
            "report": run,
            "created": as_text(now),
            "expires": as_text(expires),
            "liveAsOf": as_text(self._started),
            "listedFrom": as_text(result.listed),
            "references": dict(result.heads),
            "files": files,
            "bytes": size,
            "parts": [msgspec.to_builtins(part) for part in written],
        }
        document = self._folder.store_file(f"{stem}/plan.json", msgspec.json.format(msgspec.json.encode(text)), rows=files)
        return FilePlan(name=name, document=document, created=now, expires=expires, files=files, size_bytes=size)

    def _publish(self, record: LakeFileReport, filters: Mapping[bytes, tuple[BloomFilter, int]]) -> None:
        self._fence()
        begun = LakeFileReport(run=0, started=self._started, listed=record.listed, finished=self._started)
        begun = msgspec.structs.replace(self._before or begun, publishing=True, started=self._started)  # nobody else's
        self._commit(lambda tx: self._replace_record(tx, self._before, begun), "begin to publish")
        keys = sorted(filters)
        for start in range(0, len(keys), _TABLES_AT_ONCE):
            self._put_filters({key: filters[key] for key in keys[start : start + _TABLES_AT_ONCE]}, begun)
        self._commit(lambda tx: self._put_record(tx, begun, record, set(keys)), f"report {record.run}")

    def _put_filters(self, filters: Mapping[bytes, tuple[BloomFilter, int]], begun: LakeFileReport) -> None:
        def change(tx: Transaction) -> None:
            self._replace_record(tx, begun, begun)
            for key, (bloom, size) in filters.items():
                tx.index(FILTERS).put(key, store_filter(tx, bloom, marks=size))

        self._commit(change, f"filters of {len(filters)} tables")

    def _put_record(self, tx: Transaction, begun: LakeFileReport, record: LakeFileReport, keys: set[bytes]) -> None:
        filters, taken = tx.index(FILTERS), tx.index(TAKEN)
        for key in [bytes(key) for key, _ in filters.prefix(bytes.fromhex(self._definition.id))]:
            if key not in keys:
                filters.remove(key)
        for key, value in self._takes.entries.items():
            if taken.get(key) == value:
                taken.remove(key)
        self._replace_record(tx, begun, record)

    def _replace_record(self, tx: Transaction, seen: LakeFileReport | None, record: LakeFileReport) -> None:
        """Replace the record that was seen: of two reports at once, one would replace filters that the other's marks need."""
        found = find_report_in(tx, self._definition.id)
        if found == record:
            return
        if found != seen:
            raise ConflictError(
                f"another report of the files of catalog {self._definition.name!r} of realm {self._rows.realm!r} ended meanwhile: run it"
                " again"
            )
        put_report(tx, self._definition.id, record)

    def _commit(self, change: Callable[[Transaction], Any], what: str) -> None:
        message = f"{what}, of files of catalog {self._definition.name}"
        commit_change(self._rows, FILE_MARKS, change, message=message, fence=self._fence)

    def _tidy_up(self, record: LakeFileReport) -> None:
        """Delete what earlier reports wrote for themselves, but the plans that are not void yet."""
        kept = {self._stem_of(file.name) for file in record.work_files()}
        if self._before is not None and self._before.plan is not None and self._before.plan.expires > record.finished:
            kept.add(self._before.plan.name)
        old = [name for name in self._folder.names_in(self._reports) if self._stem_of(name) not in kept]
        self._folder.delete_names(old)

    @property
    def _reports(self) -> str:
        """Below the work folder; catalogs may have one base location."""
        return f"reports/{self._definition.id}"

    def _stem_of(self, name: str) -> str:
        return name.removeprefix(f"{self._reports}/").partition("/")[0]


def _encoded_places(result: DeadFilesResult, totals: Mapping[str, PlaceTotals]) -> bytes:
    """What came of each place, as JSON."""
    blocked = {each.location: each for each in result.blocked}
    lines = []
    for place in result.places:
        total, why = totals.get(place.location), blocked.get(place.location)
        line: dict[str, Any] = {"place": place.location, "key": place.key}
        if place.content_id is not None:
            line["contentId"] = str(place.content_id)
        if total is not None:
            line |= {"files": dict(total.files), "bytes": dict(total.sizes)}
        if why is not None:
            line |= {"code": why.code, "detail": why.detail}
        lines.append(line)
    return msgspec.json.encode(lines)
