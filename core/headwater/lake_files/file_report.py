"""The record of a catalog's last report of files, as the store keeps it: where its marks and its plan lie, and what came of it.

It lies in the index ``reports`` of the reference ``file-marks``, under the catalog's id.
"""

from __future__ import annotations

from headwater.catalogs.file_marks import REPORTS, read_marks
from headwater.clock import Micros
from headwater.commits import Head, Transaction
from headwater.index import IndexValue
from headwater.lake_files.lake_file_values import BlockedPlace
from headwater.lake_files.work_folder import WorkFile
from headwater.store import RealmStore, StoredObject, StoredPart, object_type

PLAN_SECONDS = 7 * 24 * 3600
BLOCKED_KEPT = 100
"""So many places that yield nothing are in the record; all are in the report's own file."""


class FilePlan(StoredPart, frozen=True, kw_only=True):
    """What could be deleted as of one report: fixed, and void after a week.

    name          its own, never used again
    document      the plan itself: its parts with their digests, the references that it saw, cut-offs and totals
    """

    known_by = ("name",)

    name: str
    document: WorkFile
    created: Micros
    expires: Micros
    files: int
    size_bytes: int


@object_type("file-report")
class LakeFileReport(StoredObject, frozen=True, kw_only=True):
    """One report of a catalog's files.

    run           its number, from 1
    started       when it began to collect what is live
    listed        when its listings began
    publishing    the next report has begun to replace filters, and has not come to its end: no mark of this one goes on
    marks         the marked files, in order
    places        what came of each place, in a file
    files, sizes  numbers and bytes of files by code
    requests      what it asked the storage for, by kind
    outside       files in prefixes of the catalog that lie in no place
    blocked       the first places that yield nothing
    """

    run: int
    started: Micros
    listed: Micros
    finished: Micros
    publishing: bool = False
    marks: tuple[WorkFile, ...] = ()
    places: WorkFile | None = None
    plan: FilePlan | None = None
    files: dict[str, int] = {}
    sizes: dict[str, int] = {}
    requests: dict[str, int] = {}
    outside: int = 0
    live: int = 0
    blocked: tuple[BlockedPlace, ...] = ()
    blocked_total: int = 0

    def work_files(self) -> tuple[WorkFile, ...]:
        """Every file that the record refers to."""
        plan = () if self.plan is None else (self.plan.document,)
        return (*self.marks, *([] if self.places is None else [self.places]), *plan)


def find_report(rows: RealmStore, catalog_id: str, *, fresh: bool = True) -> LakeFileReport | None:
    """The record of a catalog's last report."""
    marks = read_marks(rows, fresh=fresh)
    return None if marks is None else report_in(marks, catalog_id)


def report_in(marks: Head, catalog_id: str) -> LakeFileReport | None:
    """The record in some state of the marks."""
    value = marks.index(REPORTS).get(catalog_id.encode())
    return None if value is None or value.object_id is None else marks.rows.read_object(value.object_id, LakeFileReport)


def find_report_in(tx: Transaction, catalog_id: str) -> LakeFileReport | None:
    """The record as a change of the marks finds it."""
    value = tx.index(REPORTS).get(catalog_id.encode())
    return None if value is None or value.object_id is None else tx.reader.read_object(value.object_id, LakeFileReport)


def put_report(tx: Transaction, catalog_id: str, report: LakeFileReport) -> None:
    """Replace the record within a change of the marks."""
    tx.index(REPORTS).put(catalog_id.encode(), IndexValue(tx.add_object(report)))
