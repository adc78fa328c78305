"""Commits that happened already, and whose author was told otherwise: by a proxy, a lost connection, a second attempt of a library.

A client that hears "failed" deletes the manifests that it wrote, or puts the branch back to its own snapshot. So before requirements
are judged:

    all added snapshots are in the history of the refs that the commit moves, with its manifest lists     it happened
    some added snapshot is in the table, and not so                                                       nobody can tell
    none is in the table, which is no older than they are, or there is no such table any more             look at earlier versions
    else                                                                                                  it did not happen

Snapshots expire, tables are dropped and replaced. The earlier versions at the key within the grace are looked at from the newest to the
first that is older than the snapshots. Among writers that race that is the present one or the one before it, whose time the present one
has in its metadata log. Where there is more to look at than a request can, nobody can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import Any

import msgspec

from headwater.catalogs import ContentType
from headwater.catalogs.content import NO_SNAPSHOT
from headwater.clock import Micros
from headwater.commits import LogEnd
from headwater.errors import ExpiredError
from headwater.iceberg.changes import added_snapshots, moved_refs
from headwater.iceberg_catalog.branch_session import BranchState
from headwater.iceberg_catalog.lake_documents import Document, document_uuid
from headwater.iceberg_catalog.lake_values import TableCommit
from headwater.store import id_text

_COMMITS_LIMIT = 10_000
"""How many commits of the branch are looked at for earlier versions of a table; most of them stand for twenty."""
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
    verdict = judge_by_document(document, commit)
    if verdict is not CommitVerdict.NEW or not snapshots or not _may_come_after(document, snapshots):
        return verdict
    return _judge_by_history(state, commit, snapshots, within)


def judge_by_document(document: Document, commit: TableCommit) -> CommitVerdict:
    """Judge a commit by one version of its table."""
    snapshots = added_snapshots(commit.updates)
    if not snapshots:
        return CommitVerdict.HAPPENED if _is_creation_of(document, commit) else CommitVerdict.NEW
    held = {_id_of(entry): entry for entry in _objects(document.get("snapshots"))}
    added = {_id_of(snapshot): snapshot for snapshot in snapshots}
    ids = set(added)
    if ids.isdisjoint(held):
        return CommitVerdict.NEW
    is_equal = ids.issubset(held) and all(
        held[snapshot_id].get("manifest-list") == snapshot.get("manifest-list") for snapshot_id, snapshot in added.items()
    )
    refs = [ref for ref, snapshot_id in moved_refs(commit.updates).items() if snapshot_id is not None]
    reached = set[int]().union(*(_history(document, held, ref) for ref in refs))
    return CommitVerdict.HAPPENED if is_equal and (not refs or ids <= reached) else CommitVerdict.UNCLEAR


def judge_together(verdicts: Sequence[CommitVerdict], commits: Sequence[TableCommit]) -> CommitVerdict:
    """Judge commits that are one commit of a branch: all of them happened, or none.

    Updates without snapshots leave no trace by which they could be found, so the others decide for them.
    """
    telling = {
        verdict
        for verdict, commit in zip(verdicts, commits, strict=True)
        if verdict is not CommitVerdict.NEW or added_snapshots(commit.updates)
    }
    if not telling or telling == {CommitVerdict.NEW}:
        return CommitVerdict.NEW
    return CommitVerdict.HAPPENED if telling == {CommitVerdict.HAPPENED} else CommitVerdict.UNCLEAR


def is_creation(commit: TableCommit) -> bool:
    """True if a commit asserts that its table does not exist yet."""
    return any(isinstance(item, Mapping) and item.get("type") == "assert-create" for item in commit.requirements)


def _is_creation_of(document: Document, commit: TableCommit) -> bool:
    """True if a commit creates a table with the uuid of this one: uuids are made up for one creation."""
    assigned = [update.get("uuid") for update in _objects(commit.updates) if update.get("action") == "assign-uuid"]
    return is_creation(commit) and bool(assigned) and str(document_uuid(document)) == str(assigned[-1]).lower()


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


def _judge_by_history(
    state: BranchState, commit: TableCommit, snapshots: Sequence[Mapping[str, Any]], within: int
) -> CommitVerdict:
    if state.head is None:
        return CommitVerdict.NEW
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
            if not _is_meant(document, commit):
                continue
            verdict = judge_by_document(document, commit)
            if verdict is not CommitVerdict.NEW:
                return verdict
            if not _may_come_after(document, snapshots):
                return CommitVerdict.NEW
    return CommitVerdict.UNCLEAR if changes.end is LogEnd.BOUND else CommitVerdict.NEW


def _history(document: Document, held: Mapping[int, Mapping[str, Any]], ref: str) -> set[int]:
    """The snapshots that a branch or tag of a table has been on, as far as they have not expired."""
    refs = document.get("refs")
    entry = refs.get(ref) if isinstance(refs, Mapping) else None
    snapshot_id = entry.get("snapshot-id") if isinstance(entry, Mapping) else None
    if snapshot_id is None and ref == "main":
        snapshot_id = document.get("current-snapshot-id")
    reached: set[int] = set()
    while isinstance(snapshot_id, int) and snapshot_id in held and snapshot_id not in reached:
        reached.add(snapshot_id)
        snapshot_id = held[snapshot_id].get("parent-snapshot-id")
    return reached


def _id_of(snapshot: Mapping[str, Any]) -> int:
    """The id of a snapshot; no snapshot's, where it has none."""
    snapshot_id = snapshot.get("snapshot-id")
    return snapshot_id if isinstance(snapshot_id, int) else NO_SNAPSHOT


def _objects(entries: Any) -> list[Mapping[str, Any]]:
    """The objects of a list that may not have been checked."""
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list | tuple) else []
