"""The log of a reference, newest first, as both versions of Nessie's API read it.

The token of a page is the hash of the commit that the next one begins with. A filter sees of a commit what its caller may see of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Final

from msgspec import Meta, Struct

from headwater.catalogs import CommittedOperation, Content, ContentKey, LogEntry, LogExpression
from headwater.catalogs.history.commit_meta import is_in_history
from headwater.commits import read_commit
from headwater.errors import ExpiredError
from headwater.store import ObjectId, id_text
from headwater_server.call import Answer, Call
from headwater_server.nessie.api_paths import READ_ERRORS, TREE, V1
from headwater_server.nessie.nessie_session import NessieSession, SeenReference, open_nessie
from headwater_server.nessie.operation_bodies import LogEntryBody, LogEntryBodyV1, log_entry_body, log_entry_body_v1
from headwater_server.nessie.reference_paths import ReferencePath, parse_hash, parse_reference_path, reference_from_query
from headwater_server.nessie.reference_shapes import Fetch, FilterText, MaxRecords, PageText
from headwater_server.nessie.shown_contents import KeyedValue, read_shown_contents
from headwater_server.nessie.shown_pages import PATIENCE_SECONDS, PageTokens, ShownPage, impatience_error, page_limit
from headwater_server.route_table import Route

_NEEDS: Final = (
    "REFERENCE_READ_HISTORY on the reference. Operations are left out without NAMESPACE_LIST, TABLE_LIST or VIEW_LIST on what they"
    " concern, and without the right to read what they put"
)
_MOST: Final = 250
"""Commits of a page."""
_READ_TOGETHER: Final = 200
_LOOKED_AT: Final = 20_000
"""Commits that a page with a filter looks at before it ends."""
_ENOUGH_SECONDS: Final = 5
"""After how long a page with a filter ends that has something to show."""
_OPERATIONS: Final = 10_000
"""Operations in the commits of a page before it ends, where they are shown with their contents."""
LimitHash = Annotated[str, Meta(description="The oldest commit that is read")]


class HistoryQuery(Struct, frozen=True, rename="kebab"):
    """Which commits, and what of them."""

    max_records: MaxRecords | None = None
    page_token: PageText | None = None
    limit_hash: LimitHash | None = None
    filter: FilterText | None = None
    fetch: Fetch = "MINIMAL"


class LogQueryV1(Struct, frozen=True, rename="camel"):
    """Which commits, and what of them, in version 1."""

    max_records: MaxRecords | None = None
    page_token: PageText | None = None
    start_hash: LimitHash | None = None
    end_hash: Annotated[str, Meta(description="The youngest commit that is read; the head where it is left out")] | None = None
    hash_on_ref: Annotated[str, Meta(description="Another name of endHash, by which the Python client calls it")] | None = None
    filter: FilterText | None = None
    fetch: Fetch = "MINIMAL"


class HistoryAnswer(Struct, frozen=True, rename="camel"):
    """A page of a log."""

    has_more: bool
    token: str | None
    log_entries: list[LogEntryBody]


class LogAnswerV1(Struct, frozen=True, rename="camel"):
    """A page of a log, in version 1."""

    has_more: bool
    token: str | None
    log_entries: list[LogEntryBodyV1]


@dataclass(frozen=True, slots=True)
class _LogReading:
    """Which commits of a reference are asked for, and what of them."""

    session: NessieSession
    seen: SeenReference
    oldest: ObjectId | None
    where: LogExpression | None
    limit: int
    with_contents: bool


def history_routes() -> list[Route]:
    """Make the routes of logs."""
    return [
        Route(
            method="GET",
            template=f"{TREE}/history",
            handler=answer_history,
            name="nessieReadHistory",
            needs=_NEEDS,
            summary="Read the log of a reference, newest first.",
            query=HistoryQuery,
            answers={200: HistoryAnswer},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{V1}/trees/tree/{{ref}}/log",
            handler=answer_log_v1,
            name="nessieReadLogV1",
            needs=_NEEDS,
            summary="Read the log of a reference, newest first.",
            query=LogQueryV1,
            answers={200: LogAnswerV1},
            errors=READ_ERRORS,
        ),
    ]


def answer_history(call: Call[HistoryQuery, None]) -> Answer:
    """Read the log of a reference."""
    query, path = call.query, parse_reference_path(call.path["ref"])
    page, contents = _read_log(call, path, query.limit_hash)
    bodies = [log_entry_body(entry, each) for entry, each in zip(page.shown, contents, strict=True)]
    return Answer(body=HistoryAnswer(page.token is not None, page.token, bodies))


def answer_log_v1(call: Call[LogQueryV1, None]) -> Answer:
    """Read the log of a reference."""
    query = call.query
    path = reference_from_query(call.path["ref"], query.end_hash or query.hash_on_ref)
    page, contents = _read_log(call, path, query.start_hash, is_open_ended=True)
    bodies = [log_entry_body_v1(entry, each) for entry, each in zip(page.shown, contents, strict=True)]
    return Answer(body=LogAnswerV1(page.token is not None, page.token, bodies))


def _read_log(
    call: Call[HistoryQuery, None] | Call[LogQueryV1, None],
    path: ReferencePath,
    limit_hash: str | None,
    *,
    is_open_ended: bool = False,
) -> tuple[ShownPage[LogEntry], Sequence[Mapping[ContentKey, Content] | None]]:
    """A page of commits with its token for the client, and for each the contents that it put; None where nobody asks for them.

    is_open_ended a limit that the log does not come to, such as one that is younger than its beginning, is none
    """
    query, session = call.query, open_nessie(call)
    where = LogExpression.parse(query.filter) if query.filter else None
    seen = session.see_reference(path)
    session.check_history(seen.rights)
    tokens = PageTokens.of_listing(session, "history", seen)
    start = _start(session, seen, tokens.from_client(query.page_token))
    oldest = _oldest(session, path, limit_hash, is_anywhere=is_open_ended)
    if is_open_ended and oldest is not None and not _is_met(seen, oldest):
        oldest = None
    is_all = query.fetch == "ALL"
    reading = _LogReading(session, seen, oldest, where, page_limit(query.max_records, _MOST), is_all)
    page = _read_page(reading, start)
    return replace(page, token=tokens.to_client(page.token)), _contents(reading, page.shown)


def _start(session: NessieSession, seen: SeenReference, token: str | None) -> str | None:
    """The commit that a page begins with; None: there is none.

    raises        RefusedError for a token that is no hash; NotFoundError for one of no commit
    """
    if token is None:
        return seen.commit_text
    commit_id = parse_hash(token)
    try:
        head = None if commit_id is None else session.catalog.resolve(id_text(commit_id))
    except ExpiredError:  # the log was cut there: it ends
        return None
    return None if head is None else id_text(head.id)


def _oldest(session: NessieSession, path: ReferencePath, limit_hash: str | None, *, is_anywhere: bool) -> ObjectId | None:
    """The last commit to look at: a hash, or steps back from the reference. None: all of the history.

    is_anywhere   the hash need not be of a commit of the reference
    """
    if not limit_hash:
        return None
    limit = reference_from_query(path.name, limit_hash)
    if limit.is_no_ancestor:
        return None
    if limit.hash is None:
        limit = replace(path, steps=path.steps + limit.steps)
    elif path.name is None or is_anywhere:  # a commit that stands alone: so does the limit
        limit = replace(limit, name=None)
    head = session.catalog.resolve(limit.to_revspec())
    return None if head is None else head.id


def _is_met(seen: SeenReference, oldest: ObjectId) -> bool:
    """Whether the log of a reference comes to a commit."""
    head = seen.head
    return head is not None and is_in_history(head.rows, head.id, head.commit, read_commit(head.rows, oldest))


def _read_page(reading: _LogReading, start: str | None) -> ShownPage[LogEntry]:
    found: list[LogEntry] = []
    operations, clock = 0, reading.session.rows.clock
    started = clock.monotonic()
    for looked, (entry, shown) in enumerate(() if start is None else _entries(reading, start), start=1):
        if reading.where is None or reading.where.chooses(shown):
            found.append(shown)
            operations += len(shown.operations) if reading.with_contents else 0
        is_full = len(found) == reading.limit or operations >= _OPERATIONS
        is_long_enough = looked >= _LOOKED_AT or clock.monotonic() > started + _ENOUGH_SECONDS
        if is_full or (found and is_long_enough and reading.where is not None):
            is_last = entry.parent is None or entry.id == reading.oldest
            return ShownPage(found, None if entry.parent is None or is_last else id_text(entry.parent))
        if not found and clock.monotonic() > started + PATIENCE_SECONDS:
            raise impatience_error(looked)
    return ShownPage(found, None)


def _entries(reading: _LogReading, start: str) -> Iterator[tuple[LogEntry, LogEntry]]:
    """The commits from one on, each also as the caller may see it."""
    log = reading.session.catalog.log(start, oldest=reading.oldest)
    together = reading.limit if reading.where is None else _READ_TOGETHER
    while entries := list(islice(log, together)):
        references = reading.session.references
        shown = entries if references is None else references.filter_entries(entries, reading.seen.rights)
        yield from zip(entries, shown, strict=True)


def _contents(reading: _LogReading, entries: Sequence[LogEntry]) -> Sequence[Mapping[ContentKey, Content] | None]:
    """For each commit the contents that it put, as far as the caller may read them."""
    if not reading.with_contents:
        return [None] * len(entries)
    puts = [[pair for operation in entry.operations if (pair := _put_value(operation))] for entry in entries]
    contents = iter(read_shown_contents(reading.seen, [pair for pairs in puts for pair in pairs]))
    return [
        {key: content for (key, _), content in zip(pairs, islice(contents, len(pairs)), strict=True) if content is not None}
        for pairs in puts
    ]


def _put_value(operation: CommittedOperation) -> KeyedValue | None:
    return None if operation.value is None else (operation.key, operation.value)
