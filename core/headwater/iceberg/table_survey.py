"""A survey: one outcome for each table directory below some locations. Every engine runs these steps, so all engines agree."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import msgspec

from headwater.errors import RefusedError
from headwater.iceberg.filesystem import STORAGE, LakeStorage, divide_location
from headwater.iceberg.import_rules import accept_metadata
from headwater.iceberg.inventory import inventory_parts, read_inventory_part
from headwater.iceberg.latest_metadata import (
    MetadataChoice,
    check_one_table,
    lineage_of,
    narrow_by_name,
    possible_strangers,
    settle_by_log,
    undated_files,
)
from headwater.iceberg.layout import FileInfo, TableFiles, belongs_to_table, group_tables, is_selected, parse_pattern
from headwater.iceberg.location import canonical_location, is_within
from headwater.iceberg.manifest_check import verify_manifests
from headwater.iceberg.metadata_json import decode_metadata, parse_metadata, unpack_metadata
from headwater.iceberg.survey_outcomes import (
    TOLERABLE,
    AcceptedTable,
    OutcomeSpill,
    QuarantineCode,
    QuarantinedTable,
    RejectedTable,
    SurveyOutcome,
    compress_bytes,
    expand_bytes,
    find_conflicts,
    identity_of,
)
from headwater.typed_values import msgpack_decoder

SurveyProgress = Callable[[int, int, str], None]
"""Called with (done, total, unit); may raise to stop the survey."""

VerifyLevel = Literal["metadata", "manifests", "files"]

_TRIES = 3
_READERS = 16
_TABLE = msgpack_decoder(TableFiles)
_OF_A_TABLE = ("metadata", "data", "_delta_log")


class SurveyScope(msgspec.Struct, frozen=True, kw_only=True):
    """The scope of a survey. ``checked`` makes a validated one of it.

    locations     canonical, none within another
    include       patterns (``sales.*``) of dotted table names, none: all
    exclude       the same, of tables to leave out
    allowed       locations that the files of a table may lie in
    path          pattern of paths below a location (see ``layout.parse_pattern``); None: every folder is an element of the key
    namespace     elements in front of every key; without them, a key of one element gets the name of the folder around its table
    inventory     URL of a list of files (see ``inventory.inventory_parts``) that is read instead of listing the locations
    verify        how far down a table is looked at: its metadata, also its manifests, or also that all files are there
    tolerate      codes out of ``TOLERABLE``: a table with such a fault alone is found, and the fault is evidence
    settled       microseconds since 1970: a table with metadata from after then is listed again when it was read, for it may just
                  be written to; 0: each is
    """

    locations: tuple[str, ...]
    allowed: tuple[str, ...]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    path: str | None = None
    namespace: tuple[str, ...] = ()
    inventory: str | None = None
    verify: VerifyLevel = "metadata"
    tolerate: tuple[str, ...] = ()
    settled: int = 0

    def checked(self) -> SurveyScope:
        """This scope, validated, with canonical locations.

        raises        RefusedError for no location, a malformed location, one within another, a malformed pattern, and a code that cannot
                      be tolerated
        """
        places = tuple(canonical_location(location) for location in self.locations)
        if not places:
            raise RefusedError("an import needs at least one location")
        for number, place in enumerate(places):
            if place.endswith("/"):
                raise RefusedError(f"{place} is a whole file system: name a folder")
            for other in places[:number]:
                if is_within(place, other) or is_within(other, place):
                    raise RefusedError(f"{place} and {other} overlap: name the outer one alone")
        if not all((*self.include, *self.exclude)):
            raise RefusedError("an empty pattern chooses no table: write for example 'sales.*', or leave it away")
        if self.path is not None:
            parse_pattern(self.path)
        if unknown := set(self.tolerate) - TOLERABLE:
            raise RefusedError(
                f"{', '.join(map(repr, sorted(unknown)))} cannot be tolerated: {', '.join(sorted(TOLERABLE))} can: engines read these"
                " all the same"
            )
        return msgspec.structs.replace(
            self,
            locations=places,
            allowed=tuple(dict.fromkeys(canonical_location(location) for location in self.allowed)),
            inventory=None if self.inventory is None else canonical_location(self.inventory),
        )


class SurveyResult:
    """The result of a survey: one outcome per selected table, sorted by directory, judged together. Can be read more than once."""

    def __init__(self, outcomes: OutcomeSpill, verdicts: Mapping[str, QuarantinedTable]) -> None:
        self._outcomes = outcomes
        self._verdicts = verdicts

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[SurveyOutcome]:
        for outcome in self._outcomes:
            yield self._verdicts.get(outcome.directory, outcome) if isinstance(outcome, AcceptedTable) else outcome


ListedTables: TypeAlias = list[tuple[str, bytes]]
"""Table directories, each packed with its files, from the last to the first."""


def list_tables(
    scope: SurveyScope, *, limit: int, progress: SurveyProgress | None = None, is_late: Callable[[], bool] = lambda: False
) -> ListedTables | None:
    """List the selected tables below the scope's locations if they are fewer than ``limit``; otherwise None.

    is_late       called with every table; if it returns True, the result is None as well
    raises        as ``survey_in_process`` does
    """
    listed: ListedTables = []
    for table in _all_tables(scope, progress or _silent):
        listed.append((table.directory, _packed(table)))
        if len(listed) == limit or is_late():
            return None
    return sorted(listed, reverse=True)


def survey_in_process(
    scope: SurveyScope, *, progress: SurveyProgress | None = None, tables: ListedTables | None = None
) -> SurveyResult:
    """Survey the tables below the scope's locations: one outcome each, sorted by directory. Documents wait on disk, not in memory.

    tables        of this scope, fresh from ``list_tables``; consumed by this call
    raises        NotFoundError for a location that does not exist, UnavailableError when the storage does not answer
    """
    report = progress or _silent
    if tables is None:
        tables = sorted(((table.directory, _packed(table)) for table in _all_tables(scope, report)), reverse=True)
    total = len(tables)
    report(0, total, "tables looked at")
    outcomes = OutcomeSpill()
    identities = []
    for done, outcome in enumerate(_each(_unpacked_from(tables), scope), start=1):
        outcomes.append_outcome(outcome)
        if isinstance(outcome, AcceptedTable):
            identities.append(identity_of(outcome))
        report(done, total, "tables looked at")
    return SurveyResult(outcomes, find_conflicts(identities))


def find_tables(scope: SurveyScope, location: str, folder: str) -> list[TableFiles]:
    """List the selected table directories in one of the folders that ``divide_location`` made of a location."""
    return tables_of(scope, location, STORAGE.list_files(folder))


def survey_folder_of(scope: SurveyScope, file: FileInfo) -> tuple[str, str] | None:
    """The location of an inventory's file, and its folder, all of whose files ``tables_of`` needs at once; None: outside of the scope."""
    location = next((location for location in scope.locations if file.path.startswith(location + "/")), None)
    if location is None:
        return None
    first, slash, _ = file.path[len(location) + 1 :].partition("/")
    return location, location if not slash or first in _OF_A_TABLE else f"{location}/{first}"


def tables_of(scope: SurveyScope, location: str, files: Iterable[FileInfo]) -> list[TableFiles]:
    """The selected table directories among the files of a folder, with keys mapped from their paths, by directory.

    A folder that cannot be listed may hold any table: only an exclude pattern leaves it out.
    """
    tables = (_mapped(scope, table) for table in group_tables(location, files))
    return [table for table in tables if is_selected(table.key, () if table.fault else scope.include, scope.exclude)]


def examine_table(table: TableFiles, scope: SurveyScope, *, storage: LakeStorage = STORAGE) -> SurveyOutcome:
    """Choose, read, validate and verify one table directory. Faults of the table become its outcome; none raises.

    A table that changes meanwhile is examined again, and quarantined if that does not end.

    raises        UnavailableError when the storage does not answer
    """
    try:
        if table.fault and not table.metadata:
            raise RejectedTable(QuarantineCode.NO_ACCESS, f"{table.fault}, or exclude it")
        if not table.is_mapped:
            raise RejectedTable(
                QuarantineCode.UNMAPPED,
                f"{table.directory} does not fit the import's path {scope.path!r}: exclude it, or import it with another path",
            )
        for _ in range(_TRIES):
            outcome = _examine_once(table, scope, storage)
            now = _list_again(table, outcome, scope, storage)
            if _names(now) == _names(table):
                return outcome
            table = now
        raise RejectedTable(
            QuarantineCode.UNSETTLED,
            f"{table.directory} got new metadata each of the {_TRIES} times that it was read: import it when it is written to less",
        )
    except RejectedTable as unfit:
        return _quarantined(table, unfit)


def examine_table_without(
    directory: str,
    key: tuple[str, ...],
    scope: SurveyScope,
    is_passed_over: Callable[[str], bool],
    *,
    storage: LakeStorage = STORAGE,
) -> SurveyOutcome | None:
    """Examine a table directory without some of its metadata files, given by location. None: there are no others.

    Faults of the table do not raise; the version hint is ignored, because it may name one of these files.

    raises        UnavailableError when the storage does not answer
    """
    empty = TableFiles(directory=directory, key=key)
    try:
        listed = group_tables(directory, storage.list_metadata(directory))
        files = listed[0].metadata if listed else ()
        left = tuple(file for file in files if not is_passed_over(file.path))
        return _examine_once(msgspec.structs.replace(empty, metadata=left), scope, storage) if left else None
    except RejectedTable as unfit:
        return _quarantined(empty, unfit)


def choose_metadata(table: TableFiles, *, storage: LakeStorage = STORAGE) -> MetadataChoice:
    """Choose the latest metadata file of a table directory, reading files only where names do not decide.

    raises        RejectedTable: the directory has none, or none that can be chosen
    """
    if not table.metadata:
        raise RejectedTable(
            QuarantineCode.NO_METADATA,
            f"{table.directory} holds {table.leftovers} data files or manifests, but no metadata: a dropped table left them, or their table"
            " writes its metadata elsewhere (write.metadata.path). Find out which. If the table writes elsewhere, register its metadata"
            " file",
        )
    if table.has_delta_log:
        raise RejectedTable(
            QuarantineCode.IS_DELTA,
            f"{table.directory} is a Delta Lake table that also writes Iceberg metadata: commits from here would be lost,"
            " register it as Delta",
        )
    contest = narrow_by_name(table.metadata, storage.read_file(table.hint) if table.hint else None)
    if isinstance(contest, MetadataChoice):
        return contest
    lineages = {file.path: lineage_of(decode_metadata(storage.read_file(file), path=file.path)) for file in contest.contenders}
    for rival in contest.rivals:
        with suppress(RejectedTable):  # a broken file with a lower number is no evidence for anything
            lineages[rival.path] = lineage_of(decode_metadata(storage.read_file(rival), path=rival.path))
    return settle_by_log(contest, lineages)


def _all_tables(scope: SurveyScope, report: SurveyProgress) -> Iterator[TableFiles]:
    if scope.inventory is not None:
        yield from _listed_tables(scope, scope.inventory, report)
        return
    folders = [(location, folder) for location in scope.locations for folder in divide_location(location)]
    for done, (location, folder) in enumerate(folders):
        report(done, len(folders), "folders listed")
        yield from find_tables(scope, location, folder)


def _listed_tables(scope: SurveyScope, inventory: str, report: SurveyProgress) -> Iterator[TableFiles]:
    folders: dict[tuple[str, str], list[FileInfo]] = {}
    parts = inventory_parts(inventory)
    for done, part in enumerate(parts):
        report(done, len(parts), "inventory files read")
        for file in read_inventory_part(part):
            if (folder := survey_folder_of(scope, file)) is not None and belongs_to_table(folder[0], file):
                folders.setdefault(folder, []).append(file)
    for (location, _), files in folders.items():
        yield from tables_of(scope, location, files)


def _mapped(scope: SurveyScope, table: TableFiles) -> TableFiles:
    """The table with its key. Where its path and the scope give no namespace, the folder around the table does.

    Iceberg's clients name no table without a namespace.
    """
    mapped = table.key if scope.path is None else parse_pattern(scope.path).match_key(table.key)
    if mapped is None:
        return msgspec.structs.replace(table, is_mapped=False)
    key = (*scope.namespace, *mapped)
    if len(key) == 1 and (table.metadata or not table.fault):  # else any table may lie below the folder
        key = (table.directory.rpartition("/")[0].rpartition("/")[2], *key)
    return msgspec.structs.replace(table, key=key)


def _examine_once(table: TableFiles, scope: SurveyScope, storage: LakeStorage) -> SurveyOutcome:
    try:
        choice = choose_metadata(table, storage=storage)
        data = storage.read_file(choice.file)
        text = unpack_metadata(data, path=choice.file.path)
        document = parse_metadata(text, path=choice.file.path, size=len(data))
        _check_strangers(choice, table, document, storage)
        accepted = accept_metadata(document, choice, table, scope.allowed, tolerate=scope.tolerate)
        if scope.verify != "metadata":
            accepted = verify_manifests(
                accepted, document, scope.verify, allowed=scope.allowed, tolerate=scope.tolerate, storage=storage
            )
        return msgspec.structs.replace(accepted, document=text)
    except RejectedTable as unfit:
        return _quarantined(table, unfit)


def _check_strangers(choice: MetadataChoice, table: TableFiles, document: Mapping[str, Any], storage: LakeStorage) -> None:
    """Check files that neither times nor the metadata log assign to the table at hand: only these are read.

    raises        RejectedTable with TWO_TABLES
    """
    if not undated_files(choice, table.metadata):
        return
    own = lineage_of(document)
    for file in possible_strangers(choice, own, table.metadata):
        try:
            other = lineage_of(decode_metadata(storage.read_file(file), path=file.path))
        except RejectedTable:
            continue  # a broken file that is not the latest is no evidence for anything
        check_one_table(choice, own, file, other)


def _list_again(table: TableFiles, outcome: SurveyOutcome, scope: SurveyScope, storage: LakeStorage) -> TableFiles:
    """List a table again if it may have changed since it was listed."""
    went_away = isinstance(outcome, QuarantinedTable) and outcome.code is QuarantineCode.VANISHED
    if not table.metadata or not (went_away or _is_fresh(table, scope)):
        return table
    listed = group_tables(table.directory, storage.list_metadata(table.directory))
    if not listed or not listed[0].metadata:
        return table
    return msgspec.structs.replace(table, metadata=listed[0].metadata, hint=listed[0].hint)


def _is_fresh(table: TableFiles, scope: SurveyScope) -> bool:
    return any(file.mtime == 0 or file.mtime >= scope.settled for file in table.metadata)


def _names(table: TableFiles) -> set[str]:
    return {file.name for file in table.metadata}


def _packed(table: TableFiles) -> bytes:
    """Pack file entries into a seventh of their size.

    A lake may have many tables with hundreds of metadata files, and all are listed before the first is read.
    """
    return compress_bytes(msgspec.msgpack.encode(table))


def _unpacked_from(tables: list[tuple[str, bytes]]) -> Iterator[TableFiles]:
    """Unpack the tables from the end, dropping each: the outcomes grow meanwhile."""
    while tables:
        yield _TABLE.decode(expand_bytes(tables.pop()[1]))


def _each(tables: Iterable[TableFiles], scope: SurveyScope) -> Iterator[SurveyOutcome]:
    """The outcomes in the order of the tables. Remote storages are read several tables at a time."""
    if all(location.startswith("file:") for location in scope.locations):
        yield from (examine_table(table, scope) for table in tables)
        return
    with ThreadPoolExecutor(_READERS, thread_name_prefix="survey") as pool:
        ahead: deque[Future[SurveyOutcome]] = deque()
        try:
            for table in tables:
                ahead.append(pool.submit(examine_table, table, scope))
                if len(ahead) > 2 * _READERS:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _quarantined(table: TableFiles, unfit: RejectedTable) -> QuarantinedTable:
    return QuarantinedTable(directory=table.directory, key=table.key, code=unfit.code, message=str(unfit))


def _silent(done: int, total: int, unit: str) -> None:
    """Ignore progress."""
