"""Commits that happened already, and whose author was told otherwise: by a proxy, a lost connection, a second attempt of a library.

A client that hears "failed" deletes the manifests that it wrote, or puts the branch back to its own snapshot. So before requirements
are judged, with the snapshots that the commit adds:

    in the table as it adds them, and in the history of each ref that it puts them on
        and every other update of it holds, now or in the version that took them up     it happened
        and some other update does not                                                  nobody can tell
    some in the history of a ref that it sets, as it adds them, and others not          nobody can tell
    in the table, but by another manifest list, or on none of these refs                it did not happen
    not in the table, which is no older than they are, or there is no such table        look at earlier versions
    else                                                                                it did not happen

"Nobody can tell" is also the verdict where the request itself did nothing, but another request of its author uses files that it names:
after "failed" the author would delete them.

Snapshots expire, tables are dropped and replaced. The earlier versions at the key within the grace are looked at from the newest to the
first that is older than the snapshots. Among writers that race that is the present one or the one before it, whose time the present one
has in its metadata log. Where there is more to look at than a request can, nobody can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import Any, NamedTuple

import msgspec

from headwater.catalogs import ContentType
from headwater.catalogs.content import NO_SNAPSHOT
from headwater.clock import Micros
from headwater.commits import LogEnd
from headwater.errors import ExpiredError, HeadwaterError, NotFoundError
from headwater.iceberg.changes import added_snapshots, change_table, moved_refs
from headwater.iceberg_catalog.branch_session import BranchState
from headwater.iceberg_catalog.lake_documents import Document, document_uuid
from headwater.iceberg_catalog.lake_values import TableCommit
from headwater.store import ObjectId, id_text

_COMMITS_LIMIT = 10_000
"""How many commits of the branch are looked at for earlier versions of a table; most of them stand for twenty."""
_RETENTION = ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")
_TIMES, _NUMBERS = ("timestamp-ms", "last-updated-ms"), ("sequence-number", "last-sequence-number")


class CommitVerdict(Enum):
    """What is known of a commit before it is applied."""

    NEW = auto()
    HAPPENED = auto()
    UNCLEAR = auto()


def judge_commit(
    state: BranchState, document: Document | None, commit: TableCommit, *, within: int = _COMMITS_LIMIT
) -> CommitVerdict:
    """Judge a commit by the present version of its table, and by earlier ones where its snapshots may have expired.

    document      None where there is no table: if the commit happened before it was dropped, kept commits hold the files of the commit
    within        look at so many commits of the branch for earlier versions; where they are too few, the verdict is UNCLEAR
    """
    snapshots = added_snapshots(commit.updates)
    if document is None or not _is_meant(document, commit):
        is_news = not snapshots or is_creation(commit)
        verdict = CommitVerdict.NEW if is_news else _judge_by_history(state, commit, snapshots, within)
        return CommitVerdict.NEW if verdict is CommitVerdict.NEW else CommitVerdict.UNCLEAR
    if not snapshots:
        return _judge_creation(state, document, commit, within)
    place = _place_of(document, commit)
    if place is _Place.WHOLE:
        return _judge_whole(document, commit, _Versions(state, commit, within))
    if place is _Place.ABSENT and _may_come_after(document, snapshots):
        return _judge_by_history(state, commit, snapshots, within)
    return CommitVerdict.UNCLEAR if place is _Place.PART else CommitVerdict.NEW


def judge_together(
    state: BranchState, documents: Sequence[Document | None], commits: Sequence[TableCommit], *, within: int = _COMMITS_LIMIT
) -> CommitVerdict:
    """Judge commits that are one commit of a branch: all of them happened, or none.

    Updates without snapshots leave no trace by which they could be found. If the others happened, these did if they hold, now or in the
    commit of the branch that took the snapshots up.
    """
    verdicts = [judge_commit(state, document, commit) for document, commit in zip(documents, commits, strict=True)]
    telling = {
        verdict
        for verdict, commit in zip(verdicts, commits, strict=True)
        if verdict is not CommitVerdict.NEW or added_snapshots(commit.updates)
    }
    if not telling or telling == {CommitVerdict.NEW}:
        return CommitVerdict.NEW
    if telling != {CommitVerdict.HAPPENED}:
        return CommitVerdict.UNCLEAR
    silent = [
        (document, commit)
        for document, commit, verdict in zip(documents, commits, verdicts, strict=True)
        if verdict is CommitVerdict.NEW and not (document is not None and _hold(document, commit.updates))
    ]
    if not silent:
        return CommitVerdict.HAPPENED
    teller = next(commit for commit in commits if added_snapshots(commit.updates))
    made = _first_with(_Versions(state, teller, within), _ids_of(added_snapshots(teller.updates)))
    if made is None or not all(_held_then(state, made.commit_id, commit) for _, commit in silent):
        return CommitVerdict.UNCLEAR
    return CommitVerdict.HAPPENED


def is_creation(commit: TableCommit) -> bool:
    """True if a commit asserts that its table does not exist yet."""
    return any(isinstance(item, Mapping) and item.get("type") == "assert-create" for item in commit.requirements)


def _is_creation_of(document: Document, commit: TableCommit) -> bool:
    """True if a commit creates a table with the uuid of this one: uuids are made up for one creation."""
    assigned = [update.get("uuid") for update in _objects(commit.updates) if update.get("action") == "assign-uuid"]
    return is_creation(commit) and bool(assigned) and str(document_uuid(document)) == str(assigned[-1]).lower()


def _judge_creation(state: BranchState, document: Document, commit: TableCommit, within: int) -> CommitVerdict:
    """Judge a commit without snapshots: only a creation can be known again, by its uuid."""
    if not _is_creation_of(document, commit):
        return CommitVerdict.NEW
    if _hold(document, commit.updates):
        return CommitVerdict.HAPPENED
    made = _first_with(_Versions(state, commit, within), set())
    return CommitVerdict.HAPPENED if made is not None and _hold(made.document, commit.updates) else CommitVerdict.NEW


def _judge_whole(document: Document, commit: TableCommit, versions: _Versions, newest: _Version | None = None) -> CommitVerdict:
    """Judge a commit whose snapshots are where it puts them, by its other updates.

    versions      those from this one on; those that follow on ``newest`` where that has been taken from them
    """
    added = _ids_of(added_snapshots(commit.updates))
    others = [update for update in commit.updates if not _is_told_by_place(document, update, added)]
    if not others or _hold(document, others):
        return CommitVerdict.HAPPENED
    made = _first_with(versions, added, newest)
    if made is None or _place_of(made.document, commit) is not _Place.WHOLE:
        return CommitVerdict.UNCLEAR
    return CommitVerdict.HAPPENED if _hold(made.document, others) else CommitVerdict.UNCLEAR


def _is_told_by_place(document: Document, update: Any, added: Container[int]) -> bool:
    """Whether an update holds where the place of the added snapshots is WHOLE, however the table has changed since."""
    if not isinstance(update, Mapping):
        return False
    if update.get("action") == "add-snapshot":
        return True
    if update.get("action") != "set-snapshot-ref" or any(update.get(field) is not None for field in _RETENTION):
        return False
    kind = _ref_of(document, update.get("ref-name")).get("type", "branch")
    return bool(update.get("type") == kind) and update.get("snapshot-id") in added


def _hold(document: Document, updates: Sequence[Mapping[str, Any]]) -> bool:
    """Whether updates change nothing of a version, because it is as they would make it. Snapshots are not added once more."""
    others = [update for update in updates if not (isinstance(update, Mapping) and update.get("action") == "add-snapshot")]
    try:
        return bool(change_table(document, others, now_ms=0) == document)
    except HeadwaterError:
        return False


def _held_then(state: BranchState, commit_id: ObjectId, commit: TableCommit) -> bool:
    """Whether updates held in a commit of the branch, under the present key of their table."""
    with suppress(ExpiredError, NotFoundError):
        text = state.catalog.metadata(id_text(commit_id), commit.key)
        return text is not None and _hold(msgspec.json.decode(text), commit.updates)
    return False


class _Place(Enum):
    """Where the snapshots that a commit adds are in one version of its table."""

    ABSENT = auto()
    """None is in the table."""
    ELSEWHERE = auto()
    """Some are, but by other manifest lists, or in the history of no ref that the commit sets."""
    PART = auto()
    """The manifest list of some is in the history of such a ref."""
    WHOLE = auto()
    """All are, as they are added, each in the history of every ref that the commit puts it on."""


def _place_of(document: Document, commit: TableCommit) -> _Place:
    held = {_id_of(entry): entry for entry in _objects(document.get("snapshots"))}
    added = {_id_of(snapshot): snapshot for snapshot in added_snapshots(commit.updates)}
    if added.keys().isdisjoint(held):
        return _Place.ABSENT
    put = {ref: snapshot_id for ref, snapshot_id in moved_refs(commit.updates).items() if snapshot_id is not None}
    histories = {ref: _history(document, held, ref) for ref in put}
    reached = set[int]().union(*histories.values())
    live = {
        each for each in added.keys() & held.keys() if _is_same_list(held[each], added[each]) and (not put or each in reached)
    }
    if not live:
        return _Place.ELSEWHERE
    is_whole = (
        live == added.keys()
        and all(_stated(held[each]) == _stated(added[each]) for each in live)
        and all(snapshot_id in histories[ref] for ref, snapshot_id in put.items() if snapshot_id in added)
    )
    return _Place.WHOLE if is_whole else _Place.PART


def _is_same_list(held: Mapping[str, Any], added: Mapping[str, Any]) -> bool:
    return bool(held.get("manifest-list") == added.get("manifest-list") and held.get("manifests") == added.get("manifests"))


def _stated(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """What a snapshot says; null says nothing."""
    return {name: value for name, value in snapshot.items() if value is not None}


def _ids_of(snapshots: Sequence[Mapping[str, Any]]) -> set[int]:
    return {_id_of(snapshot) for snapshot in snapshots}


def _is_meant(document: Document, commit: TableCommit) -> bool:
    """False if the table at the key is not the one that a commit is for, by the uuid that the commit asserts."""
    uuids = [item.get("uuid") for item in _objects(commit.requirements) if item.get("type") == "assert-table-uuid"]
    return all(str(uuid).lower() == str(document_uuid(document)) for uuid in uuids)


def _may_come_after(document: Document, snapshots: Sequence[Mapping[str, Any]]) -> bool:
    """False if neither a version nor one before it can have had all of the snapshots, which it has not got now.

    Times and sequence numbers only grow from version to version, and the version that takes up a snapshot is no older than the
    snapshot. So it is no earlier one, either, where the newest of those, by the metadata log, is older.
    """
    if document.get("format-version") != 1 and not _is_as_late(_NUMBERS, document, snapshots, max):
        return False
    if not _is_as_late(_TIMES, document, snapshots, min):  # the last of several snapshots may be the oldest
        return False
    log = _objects(document.get("metadata-log"))
    return not log or _is_as_late(_TIMES, {_TIMES[1]: log[-1].get(_TIMES[0])}, snapshots, min)


def _is_as_late(
    fields: tuple[str, str], document: Document, snapshots: Sequence[Mapping[str, Any]], choose: Callable[[list[int]], int]
) -> bool:
    """Whether a version is as late as snapshots by one field of theirs and one of its own; True where one of them lacks it."""
    numbers = [number for snapshot in snapshots if isinstance(number := snapshot.get(fields[0]), int)]
    last = document.get(fields[1])
    return len(numbers) < len(snapshots) or not isinstance(last, int) or choose(numbers) <= last


class _Version(NamedTuple):
    """A version of a table, and the commit of the branch that made it."""

    commit_id: ObjectId
    document: Document


class _Versions(Iterator[_Version]):
    """The versions at the key of a commit within the grace, newest first, that it can be meant for.

    is_cut        set at the end: whether there may be more than could be looked at
    is_whole      set at the end: whether the last one was the first of all
    """

    def __init__(self, state: BranchState, commit: TableCommit, within: int) -> None:
        self.is_cut = True
        self.is_whole = False
        self._versions = self._read(state, commit, within)

    def __next__(self) -> _Version:
        return next(self._versions)

    def _read(self, state: BranchState, commit: TableCommit, within: int) -> Iterator[_Version]:
        if state.head is None:
            return
        settings = state.rows.settings
        grace = min(settings.writer_grace_seconds, settings.reader_grace_seconds)
        since = Micros(state.rows.clock.now() - round(grace * 1_000_000))
        changes = state.catalog.recent_changes(commit.key, id_text(state.head.id), since=since, within=within)
        with suppress(ExpiredError):  # older than any grace: what was collected happened long ago
            for change in changes:
                if change.value is None or change.value.type is not ContentType.ICEBERG_TABLE:
                    continue  # dropped, or something else since: what stood there before is what counts
                text = state.catalog.metadata(change.entry.hash, change.key)
                if text is None:
                    continue  # a version that was put without its document
                document = msgspec.json.decode(text)
                if _is_meant(document, commit):
                    yield _Version(change.entry.id, document)
        self.is_cut = changes.end is LogEnd.BOUND
        self.is_whole = changes.end is LogEnd.BEGINNING


def _first_with(versions: _Versions, ids: Collection[int], newest: _Version | None = None) -> _Version | None:
    """The version that took up snapshots, the oldest that has them all; None where that cannot be told. Without ids, the first of all."""
    first = newest
    for version in versions:
        if not _ids_of(_objects(version.document.get("snapshots"))).issuperset(ids):
            return first
        first = version
    return first if versions.is_whole else None


def _judge_by_history(
    state: BranchState, commit: TableCommit, snapshots: Sequence[Mapping[str, Any]], within: int
) -> CommitVerdict:
    """Judge a commit whose snapshots are not in the present version, by earlier ones."""
    if state.head is None:
        return CommitVerdict.NEW
    versions = _Versions(state, commit, within)
    for version in versions:
        place = _place_of(version.document, commit)
        if place is _Place.WHOLE:
            return _judge_whole(version.document, commit, versions, version)
        if place is not _Place.ABSENT:
            return CommitVerdict.UNCLEAR
        if not _may_come_after(version.document, snapshots):
            return CommitVerdict.NEW
    return CommitVerdict.UNCLEAR if versions.is_cut else CommitVerdict.NEW


def _history(document: Document, held: Mapping[int, Mapping[str, Any]], ref: str) -> set[int]:
    """The snapshots that a branch or tag of a table has been on, as far as they have not expired."""
    snapshot_id = _ref_of(document, ref).get("snapshot-id")
    if snapshot_id is None and ref == "main":
        snapshot_id = document.get("current-snapshot-id")
    reached: set[int] = set()
    while isinstance(snapshot_id, int) and snapshot_id in held and snapshot_id not in reached:
        reached.add(snapshot_id)
        snapshot_id = held[snapshot_id].get("parent-snapshot-id")
    return reached


def _ref_of(document: Document, ref: Any) -> Mapping[str, Any]:
    """What a version has of a branch or tag; nothing where it has none."""
    refs = document.get("refs")
    entry = refs.get(ref) if isinstance(refs, Mapping) else None
    return entry if isinstance(entry, Mapping) else {}


def _id_of(snapshot: Mapping[str, Any]) -> int:
    """The id of a snapshot; no snapshot's, where it has none."""
    snapshot_id = snapshot.get("snapshot-id")
    return snapshot_id if isinstance(snapshot_id, int) else NO_SNAPSHOT


def _objects(entries: Any) -> list[Mapping[str, Any]]:
    """The objects of a list that may not have been checked."""
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list | tuple) else []
