"""Commits as resources: the log of a reference, and one commit with all that it changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal

from headwater.catalogs import ContentKey, LogEntry
from headwater.catalogs.history.commit_meta import is_in_history, log_entry
from headwater.commits import LogEnd
from headwater.errors import ExpiredError, NotFoundError
from headwater.store import id_text
from headwater_server.call import Answer, Call
from headwater_server.management.contents.content_shapes import CommitDetails, CommitLogPage, LogListQuery
from headwater_server.management.contents.contents_reader import (
    ContentsReader,
    commit_of_token,
    open_history,
    parse_commit,
)
from headwater_server.management.contents.shown_commits import (
    commit_body,
    filter_commits,
    hides,
    operation_bodies,
)
from headwater_server.management.listed_pages import page_by_name
from headwater_server.management.resource_shapes import ListQuery
from headwater_server.management.route_parts import READ_ERRORS, REFERENCE_PATH
from headwater_server.route_table import Route

HISTORY_RIGHT: Final = "REFERENCE_READ_HISTORY on the reference"
_OPERATIONS: Final = "; operations are left out without NAMESPACE_LIST, TABLE_LIST or VIEW_LIST on what they concern"
_LOOKED_AT: Final = 2_000
"""Commits that one request looks at for those of a key."""
_READ_TOGETHER: Final = 200
LogEndName = Literal["BEGINNING", "CUT"]


@dataclass(slots=True)
class _LogPage:
    """Commits as they are and as they are shown, where the next page begins, and why there is none."""

    commits: list[tuple[LogEntry, LogEntry]] = field(default_factory=list)
    next: str | None = None
    end: LogEndName | None = None


def log_routes() -> list[Route]:
    """Make the routes of logs and commits."""
    return [
        Route(
            method="GET",
            template=f"{REFERENCE_PATH}/log",
            handler=answer_commit_log,
            name="readLog",
            needs=f"{HISTORY_RIGHT}{_OPERATIONS}",
            summary="Read the log of a reference, newest first, with the first operations of each commit.",
            query=LogListQuery,
            answers={200: CommitLogPage},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{REFERENCE_PATH}/commits/{{commit}}",
            handler=answer_commit_details,
            name="getCommit",
            needs=f"{HISTORY_RIGHT}{_OPERATIONS}",
            summary="Read one commit of a reference's history, with all of its operations.",
            query=ListQuery,
            answers={200: CommitDetails},
            errors=READ_ERRORS,
        ),
    ]


def answer_commit_log(call: Call[LogListQuery, None]) -> Answer:
    """Read the log of a reference. A page of one key's commits is short where few of those that were looked at changed it."""
    reader, query = open_history(call), call.query
    key = None if query.key is None else ContentKey.parse(query.key)
    tokens = reader.tokens_of("log")
    token = tokens.from_client(query.page_token)
    start = reader.commit if token is None else id_text(commit_of_token(token))
    page = _read_page(reader, start, key, limit=query.page_size)
    bodies = [commit_body(shown, is_hidden=hides(entry, shown)) for entry, shown in page.commits]
    return Answer(body=CommitLogPage(bodies, tokens.to_client(page.next), page.end))


def answer_commit_details(call: Call[ListQuery, None]) -> Answer:
    """Read one commit; raises NotFoundError for one that is not in the history of the reference."""
    reader = open_history(call)
    wanted = parse_commit("commit", call.path["commit"])
    entry = _find_commit(reader, id_text(wanted))
    [shown] = filter_commits(reader.session, [entry], reader.seen.rights)
    operations = sorted(shown.operations, key=lambda each: (str(each.key), each.action))
    page, token = page_by_name(operations, call.query, name=lambda each: str(each.key))
    body = commit_body(shown, is_hidden=hides(entry, shown), brief=0)
    return Answer(body=CommitDetails(body, operation_bodies(page), token))


def _find_commit(reader: ContentsReader, commit: str) -> LogEntry:
    """raises NotFoundError, also for one that was collected: who may not know of a commit shall not learn that it was there"""
    catalog, missing = reader.session.catalog, NotFoundError(f"commit {commit} is not in the history of {reader.ref!r}")
    head = reader.seen.head
    try:
        wanted = catalog.resolve(commit)
        is_there = head is not None and wanted is not None and is_in_history(head.rows, head.id, head.commit, wanted)
    except NotFoundError:
        raise missing from None
    if wanted is None or not is_there:
        raise missing
    return log_entry(wanted)


def _read_page(reader: ContentsReader, start: str | None, key: ContentKey | None, *, limit: int) -> _LogPage:
    page = _LogPage()
    if start is None:
        page.end = "BEGINNING"
        return page
    try:
        log = reader.session.catalog.log(start, within=limit if key is None else _LOOKED_AT)
        last = _fill_page(page, reader, log, key, limit)
    except ExpiredError:  # it was collected since the page before
        page.end = "CUT"
        return page
    if last is None or log.end is LogEnd.CUT:
        page.end = "CUT"
    elif last.parent is None:
        page.end = "BEGINNING"
    else:
        page.next = id_text(last.parent)
    return page


def _fill_page(
    page: _LogPage, reader: ContentsReader, log: Iterator[LogEntry], key: ContentKey | None, limit: int
) -> LogEntry | None:
    """Take commits into a page until it is full, or the log has no more; returns the one that was looked at last."""
    last = None
    while entries := list(islice(log, min(limit, _READ_TOGETHER))):
        for entry, shown in zip(entries, filter_commits(reader.session, entries, reader.seen.rights), strict=True):
            last = entry
            if key is None or any(operation.key == key for operation in shown.operations):
                page.commits.append((entry, shown))
            if len(page.commits) == limit:
                return last
    return last
