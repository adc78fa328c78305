"""A report of a catalog's files, put together: policies, storages, the search, marks and plan; and the last one, read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.catalogs import CatalogDefinition, Catalogs
from headwater.errors import NotFoundError
from headwater.lake_files.dead_files import DeadFilesResult, FileSearch, find_dead_files
from headwater.lake_files.file_engine import FileEngine, ListFiles, ProcessEngine
from headwater.lake_files.file_reasons import FileReason
from headwater.lake_files.file_report import LakeFileReport, find_report
from headwater.lake_files.live_walk import LiveWalk
from headwater.lake_files.manifest_memory import ManifestMemory
from headwater.lake_files.marked_files import MarkedFile, read_marked_files
from headwater.lake_files.report_rules import ReportRules
from headwater.lake_files.report_run import FileReportRun
from headwater.lake_files.store_storages import StoreStorages
from headwater.lake_files.stored_versions import StoredVersion
from headwater.lake_files.table_names import LakeTableNames
from headwater.lake_files.work_folder import WorkFolder
from headwater.realms import RealmRegistry
from headwater.store import RealmStore, Store
from headwater.throttle import Fence, ProgressCallback, no_progress
from headwater.typed_values import decode_json

_SHOWN = 20
PAGE = 1000
"""Files of one request, where object stores list or delete many at once."""


@dataclass(slots=True)
class ReadReport:
    """A report, and where its parts lie.

    folder        the catalog's work folder
    places        what came of each place, as plain data
    marks         the marked files, in order; of a dry run none
    marks_from    the same without so many of the first
    """

    realm: str
    catalog: str
    folder: str
    report: LakeFileReport
    places: list[dict[str, Any]] = field(default_factory=list)
    marks: Callable[[], Iterable[MarkedFile]] = tuple
    marks_from: Callable[[int], Iterator[MarkedFile]] = lambda start: iter(())

    def task_outcome(self) -> dict[str, Any]:
        """The report as the outcome of its task."""
        report = self.report
        blocked = Counter(str(each.code) for each in report.blocked)
        return {
            "report": report.run,
            "files": dict(sorted(report.files.items())),
            "bytes": dict(sorted(report.sizes.items())),
            "outside": report.outside,
            "requests": dict(report.requests),
            "blockedPlaces": report.blocked_total,
            "blocked": dict(blocked),
            "planned": 0 if report.plan is None else report.plan.files,
            "notes": [f"{each.location}: {each.code} ({each.detail})" for each in report.blocked[:_SHOWN]],
        }


def report_files(
    store: Store,
    rows: RealmStore,
    definition: CatalogDefinition,
    *,
    is_dry: bool = False,
    engine: FileEngine | None = None,
    listing: ListFiles | None = None,
    fence: Fence = lambda: None,
    progress: ProgressCallback = no_progress,
) -> ReadReport:
    """Report the files of a catalog: mark what is dead, and plan what is due. Deletes and changes no file of the lake.

    is_dry        count, and write nothing
    engine        None: in this process
    listing       the files of all places, where another program lists them
    raises        RefusedError for a catalog without a base location; MaintenanceStoppedError; UnavailableError; ConflictError when
                  another report of the catalog ended meanwhile; what the fence raises
    """
    storages = StoreStorages(store)
    storage = storages.of_catalog(rows.realm, definition.name)
    folder = WorkFolder.of_catalog(definition, storage, realm=rows.realm)
    rules = ReportRules.of_catalog(store, rows, definition)
    chosen = engine or ProcessEngine()
    memory = ManifestMemory(rows, definition.id, folder, is_dry=is_dry)

    def still_going() -> None:
        fence()
        rules.check_going()

    walks: list[LiveWalk] = []

    def read_live(versions: Iterable[StoredVersion]) -> LiveWalk:
        walks.append(
            LiveWalk(
                versions,
                storage_of=storages.find_lake,
                memory=memory,
                names=LakeTableNames(store),
                fence=still_going,
                manifest_reader=chosen.manifest_reader,
            )
        )
        return walks[-1]

    rules.check_going()
    run = FileReportRun(rows, definition, folder, waits=rules.waits, fence=still_going)
    run.begin(is_dry=is_dry)
    search = FileSearch(
        store=store,
        rows=rows,
        definition=definition,
        is_home=rules.is_home,
        read_live=read_live,
        storage=storage,
        prefixes=rules.prefixes,
        blocks_of=rules.blocks,
        listing=listing,
        is_dry=is_dry,
        engine=chosen,
        fence=still_going,
        progress=progress,
    )
    with find_dead_files(search) as result:
        result.requests |= _requests(walks, result.there)
        report = run.mark_and_plan(result, is_dry=is_dry)
        return _read(rows, definition, folder, report, result)


def _requests(walks: Sequence[LiveWalk], listed: int) -> dict[str, int]:
    """What a report asked the storage for, beside what the search counts itself."""
    return {
        "manifest lists read": sum(walk.lists for walk in walks),
        "manifests read": sum(walk.manifests for walk in walks),
        "manifests looked at": sum(walk.remembered for walk in walks),
        "files listed": listed,
        "pages of 1,000 files": -(-listed // PAGE),
    }


def _read(
    rows: RealmStore, definition: CatalogDefinition, folder: WorkFolder, report: LakeFileReport, result: DeadFilesResult
) -> ReadReport:
    places = [] if report.places is None else decode_json(folder.load_file(report.places), list[dict[str, Any]])
    return ReadReport(
        realm=rows.realm,
        catalog=definition.name,
        folder=folder.location,
        report=report,
        places=places or _dry_places(result),
        marks=lambda: read_marked_files(folder, report.marks),
    )


def _dry_places(result: DeadFilesResult) -> list[dict[str, Any]]:
    """What came of each place, by the search alone."""
    lines = []
    for place in result.places:
        counts = result.place_counts.get(place.location, {})
        dead = {
            reason: count for reason, count in counts.items() if reason not in (FileReason.LOOSELY_LIVE, FileReason.OWN_FILE)
        }
        line: dict[str, Any] = {"place": place.location, "key": place.key}
        if dead:
            line["files"] = {str(reason): count.files for reason, count in dead.items()}
            line["bytes"] = {str(reason): count.bytes for reason, count in dead.items()}
        lines.append(line)
    return lines


def read_last_report(store: Store, realm_id: str, catalog: str) -> ReadReport:
    """Read the last report of a catalog's files.

    raises        NotFoundError where there was none yet; CorruptionError where somebody deleted or changed its files
    """
    rows = RealmRegistry(store).open_realm(realm_id)
    definition = Catalogs(rows).read_catalog(catalog)
    folder = WorkFolder.of_catalog(definition, StoreStorages(store).of_catalog(realm_id, catalog), realm=realm_id)
    report = find_report(rows, definition.id)
    if report is None or report.run == 0:
        raise NotFoundError(
            f"there is no report of the files of catalog {catalog!r} of realm {realm_id!r} yet: run `headwater files report"
            f" {realm_id}/{catalog} --run`"
        )
    places = [] if report.places is None else decode_json(folder.load_file(report.places), list[dict[str, Any]])

    def marks_from(start: int) -> Iterator[MarkedFile]:
        return read_marked_files(folder, report.marks, start=start)

    return ReadReport(realm_id, catalog, folder.location, report, places, lambda: marks_from(0), marks_from)
