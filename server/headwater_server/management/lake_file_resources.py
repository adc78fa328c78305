"""Files of a catalog's lake as resources: the last report, the files that nobody refers to, and why a file is there.

All of it needs the right to manage the catalog's content: paths and keys of all branches stand in it. Nothing is told of other catalogs,
even if they refer to the same file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from headwater.access import Privilege
from headwater.catalogs import CatalogDefinition
from headwater.clock import Clock, as_text
from headwater.errors import NotFoundError, RefusedError, UnavailableError
from headwater.iceberg.location import canonical_location, is_within
from headwater.lake_files import (
    FILE_SENTENCES,
    FOLDER_SENTENCES,
    FileReason,
    LakeFileExplanation,
    MarkedFile,
    ReadReport,
    explain_lake_file,
    folder_code,
    folder_table,
    read_last_report,
    summarize_report,
)
from headwater_server.call import Answer, Call, ServedStore
from headwater_server.error_answers import OverloadedError
from headwater_server.management.lake_file_shapes import (
    BlockedLakePlace,
    ExplainedFile,
    FileExplanationQuery,
    FileReportResource,
    FilesOfCode,
    LakeFilesQuery,
    LakePlace,
    ReferringVersion,
    TableOfFolder,
    UnreferencedFile,
    UnreferencedFileList,
    UnreferencedOfFolder,
)
from headwater_server.management.managed_realm import ManagedRealm, managed_realm
from headwater_server.management.realm_resources import time_or_none
from headwater_server.management.route_parts import CATALOG_PATH, READ_ERRORS
from headwater_server.route_table import Route

_PATH = f"{CATALOG_PATH}/files"
_RIGHT = "CATALOG_MANAGE_CONTENT on the catalog"
_PLACES = 20
_LOOKED_AT = 20_000
"""Files that a request looks at for those that it asks for."""
_EXPLANATION_SECONDS = 30.0
_TOKEN_DIGITS = 15


def lake_file_routes() -> list[Route]:
    """Make the routes of a lake's files."""
    return [
        Route(
            method="GET",
            template=_PATH,
            handler=answer_unreferenced_files,
            name="listUnreferencedFiles",
            needs=_RIGHT,
            summary="List the files that nobody refers to, by the last report.",
            query=LakeFilesQuery,
            answers={200: UnreferencedFileList},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{_PATH}/report",
            handler=answer_file_report,
            name="getFileReport",
            needs=_RIGHT,
            summary="Read the last report of a catalog's files.",
            answers={200: FileReportResource},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{_PATH}/explain",
            handler=answer_file_explanation,
            name="explainFile",
            needs=_RIGHT,
            summary="Tell who refers to a file, or since when nobody does, and when it may go; reads much, one file at a time.",
            query=FileExplanationQuery,
            answers={200: ExplainedFile},
            errors=READ_ERRORS,
        ),
    ]


def answer_file_report(call: Call[None, None]) -> Answer:
    """Read the last report; raises NotFoundError where there is none yet."""
    realm, definition = _managed(call)
    told = summarize_report(_read_report(realm, definition), limit=_PLACES)
    return Answer(
        body=FileReportResource(
            realm=told["realm"],
            catalog=told["catalog"],
            report=told["report"],
            live_as_of=told["liveAsOf"],
            listed_from=told["listedFrom"],
            finished=told["finished"],
            reclaimable_files=told["reclaimableFiles"],
            reclaimable_bytes=told["reclaimableBytes"],
            due_files=told["dueFiles"],
            due_bytes=told["dueBytes"],
            files={
                code: FilesOfCode(each["files"], each["bytes"], FILE_SENTENCES.get(code, ""))
                for code, each in told["files"].items()
            },
            outside=told["outside"],
            tables=[LakePlace(**each) for each in told["tables"]],
            blocked_places=told["blockedPlaces"],
            blocked=[BlockedLakePlace(**each) for each in told["blocked"]],
            requests=told["requests"],
            plan=told["plan"],
        )
    )


def answer_unreferenced_files(call: Call[LakeFilesQuery, None]) -> Answer:
    """List the files that nobody refers to, in the order of places and paths."""
    realm, definition = _managed(call)
    query, codes = call.query, {_code(text) for text in call.query.code}
    read = _read_report(realm, definition)
    start = _start_of(read, query.page_token)
    place = None if query.place is None else query.place.rstrip("/")
    found: list[MarkedFile] = []
    looked = 0
    marks = read.marks_from(start)
    for mark in islice(marks, _LOOKED_AT):
        looked += 1
        if (not codes or mark.code in codes) and place in (None, mark.place):
            found.append(mark)
            if len(found) == query.page_size:
                break
    is_more = next(marks, None) is not None
    token = f"{read.report.run}.{start + looked}" if is_more else None
    return Answer(body=UnreferencedFileList(read.report.run, list(map(_file, found)), token))


def answer_file_explanation(call: Call[FileExplanationQuery, None]) -> Answer:
    """Explain a file of the catalog; raises RefusedError for one elsewhere, and UnavailableError where it would take too long."""
    realm, definition = _managed(call)
    location = canonical_location(call.query.url)
    if not any(is_within(location, place) for place in definition.places):
        raise RefusedError(f"url: {location[:500]!r} lies in no location of catalog {definition.name!r}")
    with realm.served.part(_ExplanationSlot).take_slot():
        told = explain_lake_file(realm.store, location, fence=_deadline(realm.store.clock, location))
    if (told.realm, told.catalog) != (realm.id, definition.name):
        raise RefusedError(f"url: {location[:500]!r} lies in a location that another catalog has within this one's")
    return Answer(body=_explained(told))


class _ExplanationSlot:
    """One explanation is made at a time in a process: it may read all that is stored. Thread-safe."""

    def __init__(self, served: ServedStore) -> None:
        self._free = threading.Lock()

    @contextmanager
    def take_slot(self) -> Iterator[None]:
        """raises OverloadedError while another one is made"""
        if not self._free.acquire(blocking=False):
            raise OverloadedError(
                "another file is being explained just now, and no more at a time; send the request again in a moment"
            )
        try:
            yield
        finally:
            self._free.release()


def _deadline(clock: Clock, location: str) -> Callable[[], None]:
    until = clock.monotonic() + _EXPLANATION_SECONDS

    def check() -> None:
        if clock.monotonic() > until:
            raise UnavailableError(
                f"who refers to {location} was not found out in {_EXPLANATION_SECONDS:.0f} seconds, for there is much to read: run"
                " `headwater files explain`, which has no such bound"
            )

    return check


def _managed(call: Call[Any, None]) -> tuple[ManagedRealm, CatalogDefinition]:
    realm = managed_realm(call)
    return realm, realm.allowed_catalog(call.path["catalog"], Privilege.CATALOG_MANAGE_CONTENT)


def _read_report(realm: ManagedRealm, definition: CatalogDefinition) -> ReadReport:
    try:
        return read_last_report(realm.store, realm.id, definition.name)
    except RefusedError as fault:  # without a base location there can be none
        raise NotFoundError(str(fault)) from None


def _start_of(read: ReadReport, token: str | None) -> int:
    """How many files the pages before have passed; raises RefusedError where there is another report by now."""
    if not token:
        return 0
    run, _, start = token.partition(".")
    if not (run.isdecimal() and start.isdecimal()) or len(start) > _TOKEN_DIGITS:
        raise RefusedError("pageToken: this is no token that a page of this list ended with: begin again, without it")
    if int(run) != read.report.run:
        raise RefusedError("pageToken: there is a newer report than the one that it is of: begin again, without it")
    return int(start)


def _code(text: str) -> FileReason:
    try:
        return FileReason(text)
    except ValueError:
        raise RefusedError(f"code: {text[:80]!r} is none of {', '.join(sorted(FileReason))}") from None


def _file(mark: MarkedFile) -> UnreferencedFile:
    return UnreferencedFile(
        path=mark.path,
        code=mark.code.value,
        why=FILE_SENTENCES[mark.code],
        bytes=mark.size_bytes,
        modified=time_or_none(mark.modified or None),
        since=as_text(mark.first_listed),
        due=time_or_none(mark.due or None),
        place=mark.place,
    )


def _explained(told: LakeFileExplanation) -> ExplainedFile:
    own = [each for each in told.referrers if (each.realm, each.catalog) == (told.realm, told.catalog)]
    why = told.rule or told.sentence
    if told.referrers and not own:  # how another catalog names it is that one's own
        why = FILE_SENTENCES[FileReason(told.code)]
    tables = [each for each in told.tables if (each.realm, each.catalog) == (told.realm, told.catalog)]
    code, table = told.code, told.table
    if code in FOLDER_SENTENCES:  # as if what other catalogs have there were not there
        code, table = folder_code(told.url, tables), folder_table(told.url, tables)
        why = why.replace(FOLDER_SENTENCES[told.code], FOLDER_SENTENCES[code])
    return ExplainedFile(
        url=told.url,
        exists=told.is_there,
        code=code,
        why=why,
        catalog=told.catalog,
        place=told.place,
        table=table,
        referrers=[ReferringVersion(each.key, list(each.where), list(map(str, each.snapshots)), each.metadata) for each in own],
        tables=[
            TableOfFolder(each.key, list(each.where), each.location, time_or_none(each.dropped), each.dropped_by)
            for each in tables
        ],
        unreferenced=[UnreferencedOfFolder(each.code, each.files, each.size_bytes) for each in told.unreferenced],
        since=time_or_none(told.since),
        due=time_or_none(told.due),
        report=told.report,
    )
