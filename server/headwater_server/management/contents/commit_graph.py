"""The graph of a catalog's commits: newest first, from the references that the caller may read the history of.

A request reads the commits that it shows, and no others: what is to be looked at next is the newest of a few commits that were named and
not shown yet, one for each line of history that is open. Its token names these. A commit's time is never before that of a parent, so
no parent comes before a child.

Whoever may read every history is led along merged heads, too. For others only first parents are followed: a merged head may be of a
reference that is hidden. Its hash stands in the commit that merged it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from headwater.access import ANY_REFERENCE, Privilege, ReferenceName, Securable, SecurableKind
from headwater.catalogs import LogEntry, NamedRef, RefKind
from headwater.catalogs.history.commit_meta import log_entry
from headwater.clock import as_text
from headwater.commits import Commit, Head, decode_token, encode_token
from headwater.errors import NotFoundError, RefusedError
from headwater.store import ObjectId, RealmStore, id_text
from headwater.typed_values import msgpack_decoder
from headwater_server.call import Answer, Call
from headwater_server.management.contents.content_shapes import CommitGraph, GraphCommit, GraphQuery, GraphReference
from headwater_server.management.contents.contents_reader import bare_name, open_contents
from headwater_server.management.contents.shown_commits import filter_commits, hides
from headwater_server.management.route_parts import CATALOG_PATH, READ_ERRORS
from headwater_server.nessie.nessie_session import NessieSession
from headwater_server.nessie.shown_pages import PageTokens
from headwater_server.route_table import Route

REFERENCES_LIMIT: Final = 100
"""References that a graph begins at."""
_LISTED_TOGETHER: Final = 200
_FORMAT: Final = b"\x21"


class _GraphPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where a graph goes on: the names of its references, and the commits that come next, each with the number of a reference on
    which the caller's rights are sought.
    """

    names: tuple[str, ...]
    open: tuple[tuple[ObjectId, int], ...]


_decoder = msgpack_decoder(_GraphPlace)


@dataclass(frozen=True, slots=True)
class _OpenLines:
    """What is needed to follow lines of history."""

    session: NessieSession
    names: Sequence[str]
    with_merged: bool


def graph_routes() -> list[Route]:
    """Make the route of the graph."""
    return [
        Route(
            method="GET",
            template=f"{CATALOG_PATH}/graph",
            handler=answer_commit_graph,
            name="readCommitGraph",
            needs=(
                "REFERENCE_READ_HISTORY on the reference, for each that the graph begins at; others are left out. Merged commits are"
                " followed where it is held on all references"
            ),
            summary="Read the commits of several references, newest first, with their parents.",
            query=GraphQuery,
            answers={200: CommitGraph},
            errors=READ_ERRORS,
        )
    ]


def answer_commit_graph(call: Call[GraphQuery, None]) -> Answer:
    """Read a page of the graph. The references are told as they are now, with every page."""
    session, query = open_contents(call), call.query
    refs, is_cut = _references(session, [bare_name(session, name) for name in query.ref])
    tokens = PageTokens.of_listing(session, f"management graph {' '.join(query.ref)}")
    token = tokens.from_client(query.page_token)
    place = _beginning(refs) if token is None else _read_place(token)
    names = [ref.name for ref in refs]
    if not set(place.names) <= set(names):  # gone, or hidden from the caller by now
        raise RefusedError("pageToken: the references of the graph have changed: begin again, without it")
    lines = _OpenLines(session, place.names, _reads_every_history(session))
    commits, left = _follow(lines, place.open, query.page_size)
    following = encode_token(_GraphPlace(place.names, tuple(left)), _FORMAT) if left else None
    return Answer(
        body=CommitGraph(
            commits=commits,
            references=[_reference_body(session, ref) for ref in refs],
            references_cut=is_cut,
            next_page_token=tokens.to_client(following),
        )
    )


def _references(session: NessieSession, wanted: Sequence[str]) -> tuple[list[NamedRef], bool]:
    """The references that a graph begins at, the default branch first; and whether there are more.

    raises        NotFoundError for one that is asked for and not there, or that the caller may not read the history of
    """
    if wanted:
        for name in wanted:
            session.check_history(name)
        named = {name: session.catalog.refs.find_named(name) for name in wanted[:REFERENCES_LIMIT]}
        missing = next((name for name, ref in named.items() if ref is None), None)
        if missing is not None:
            raise NotFoundError(f"catalog {session.definition.name!r} has no reference {missing!r}")
        return [ref for ref in named.values() if ref is not None], len(set(wanted)) > REFERENCES_LIMIT
    default = session.definition.default_branch
    found: list[NamedRef] = []
    token: str | None = None
    while len(found) <= REFERENCES_LIMIT:
        page = session.catalog.refs.list_page(limit=_LISTED_TOGETHER, page_token=token)
        found += _readable(session, [ref for ref in page.refs if ref.name != default])
        token = page.next_token
        if token is None:
            break
    first = session.catalog.refs.find_named(default)
    whole = [*_readable(session, [] if first is None else [first]), *found]
    return whole[:REFERENCES_LIMIT], len(whole) > REFERENCES_LIMIT


def _readable(session: NessieSession, refs: Sequence[NamedRef]) -> list[NamedRef]:
    if session.references is None or not refs:
        return list(refs)
    names = set(session.references.filter_histories(sorted({ref.name for ref in refs})))
    return [ref for ref in refs if ref.name in names]


def _reads_every_history(session: NessieSession) -> bool:
    if session.decisions is None:
        return True
    on = Securable(kind=SecurableKind.REFERENCE, catalog=session.definition.name, pattern=ANY_REFERENCE)
    return session.decisions.allows(Privilege.REFERENCE_READ_HISTORY, on, ReferenceName(None))


def _beginning(refs: Sequence[NamedRef]) -> _GraphPlace:
    heads: dict[ObjectId, int] = {}
    for number, ref in enumerate(refs):
        if ref.head is not None:
            heads.setdefault(ref.head, number)
    return _GraphPlace(tuple(ref.name for ref in refs), tuple(heads.items()))


def _read_place(token: str) -> _GraphPlace:
    place = decode_token(token, _decoder)
    if place is None or any(number >= len(place.names) for _, number in place.open):
        raise RefusedError("pageToken: this is no token that a page of a graph ended with: begin again, without it")
    return place


def _follow(
    lines: _OpenLines, begin: Sequence[tuple[ObjectId, int]], limit: int
) -> tuple[list[GraphCommit], list[tuple[ObjectId, int]]]:
    """So many commits from some on, and those that come next. What was collected is passed over: history ends there."""
    reading = _AheadReader(lines.session.rows)
    known: set[ObjectId] = set()
    waiting: list[tuple[int, int, int]] = []
    shown: list[tuple[LogEntry, int]] = []

    def wait_for(commits: Iterable[tuple[ObjectId, int]]) -> None:
        for commit_id, number in commits:
            if commit_id not in known and (commit := reading.find_commit(commit_id)) is not None:
                known.add(commit_id)
                heapq.heappush(waiting, (-commit.time, -commit_id, number))

    reading.read_ahead([commit_id for commit_id, _ in begin])
    wait_for(begin)
    while waiting and len(shown) < limit:
        _, negated, number = heapq.heappop(waiting)
        head = reading.head(ObjectId(-negated))
        entry = log_entry(head)
        shown.append((entry, number))
        parents = _parents(entry, with_merged=lines.with_merged)
        if any(parent not in reading for parent in parents):
            reading.read_ahead([*parents, *head.commit.tail[: limit - len(shown)]])
        wait_for((parent, number) for parent in parents)
    return _bodies(lines, shown), [(ObjectId(-negated), number) for _, negated, number in sorted(waiting)]


class _AheadReader:
    """Reads commits, each with the ancestors that it names: one read for twenty of a line."""

    def __init__(self, rows: RealmStore) -> None:
        self._rows = rows
        self._commits: dict[ObjectId, Commit | None] = {}

    def __contains__(self, commit_id: ObjectId) -> bool:
        return commit_id in self._commits

    def read_ahead(self, commit_ids: Iterable[ObjectId]) -> None:
        fresh = [each for each in dict.fromkeys(commit_ids) if each not in self._commits]
        self._commits.update(zip(fresh, self._rows.read_many(fresh, Commit), strict=True))

    def find_commit(self, commit_id: ObjectId) -> Commit | None:
        return self._commits[commit_id]

    def head(self, commit_id: ObjectId) -> Head:
        commit = self._commits[commit_id]
        assert commit is not None, "it waits, so it was found"
        return Head(commit_id, commit, self._rows)


def _parents(entry: LogEntry, *, with_merged: bool = True) -> list[ObjectId]:
    return [*([] if entry.parent is None else [entry.parent]), *(entry.meta.merged if with_merged else ())]


def _bodies(lines: _OpenLines, entries: Sequence[tuple[LogEntry, int]]) -> list[GraphCommit]:
    """The commits as the caller may see them, each through the reference that led to it."""
    shown: dict[ObjectId, LogEntry] = {}
    for number in {number for _, number in entries}:
        of_reference = [entry for entry, own in entries if own == number]
        filtered = filter_commits(lines.session, of_reference, lines.names[number])
        shown.update(zip((entry.id for entry in of_reference), filtered, strict=True))
    return [_body(entry, shown[entry.id]) for entry, _ in entries]


def _body(entry: LogEntry, shown: LogEntry) -> GraphCommit:
    return GraphCommit(
        hash=entry.hash,
        parents=list(map(id_text, _parents(entry))),
        time=as_text(entry.time),
        authors=list(shown.meta.authors),
        committer=shown.meta.committer,
        message=shown.message,
        hidden=hides(entry, shown),
        changes=len(shown.operations),
        seq=entry.seq,
    )


def _reference_body(session: NessieSession, ref: NamedRef) -> GraphReference:
    is_default = ref.kind is RefKind.BRANCH and ref.name == session.definition.default_branch
    return GraphReference(ref.name, ref.kind.value, is_default, ref.hash)
