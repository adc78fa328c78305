"""Both sides of a conflict, as a caller may see them: what stands there, the commits that changed it, and how it differs.

What core compares is of everybody: here it is filtered by what the caller may read on each side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headwater.access import ForbiddenError
from headwater.catalogs import ContentKey, MergeResult
from headwater.catalogs.history.commit_meta import log_entry
from headwater.catalogs.history.key_comparison import KeySide, SideCommit
from headwater.clock import Micros
from headwater.errors import ExpiredError, HeadwaterError, NotFoundError
from headwater.iceberg.metadata_changes import SnapshotFacts
from headwater.iceberg_catalog.lake_privileges import SHOW_PRIVILEGES
from headwater.store import id_text
from headwater_server.management.contents.content_shapes import CatalogEntryShown
from headwater_server.management.contents.contents_reader import ContentsReader
from headwater_server.management.contents.merge_shapes import ConflictSide, SideChange, SideDifference, SideSnapshot
from headwater_server.management.contents.shown_commits import commit_body, filter_commits, hides
from headwater_server.management.contents.shown_entries import find_entry_body
from headwater_server.management.contents.table_reader import find_table
from headwater_server.management.realm_resources import time_or_none

SIDES_TOLD: Final = 20
"""Conflicts whose two sides are told."""
_COMMITS: Final = 5
_LOOKED_AT: Final = 2_000
"""Commits of a side that are looked at."""
BothSides = tuple[ConflictSide | None, ConflictSide | None]


def read_sides(
    result: MergeResult, keys: Sequence[ContentKey], ours: ContentsReader, theirs: ContentsReader
) -> Mapping[ContentKey | None, BothSides]:
    """The sides of some keys: of the branch, and of the source."""
    if not keys or not result.steps:
        return {}
    try:
        compared = ours.session.catalog.compare_merge(result, keys, commits=_COMMITS, within=_LOOKED_AT)
    except ExpiredError:  # collected since the merge was tried
        return {}
    return {each.key: (_side(ours, each.key, each.into), _side(theirs, each.key, each.source)) for each in compared}


def _side(reader: ContentsReader, key: ContentKey, side: KeySide) -> ConflictSide:
    entry, changes = find_entry_body(reader, key), _changes(reader, side)
    is_read = entry is not None and _is_readable(reader, entry)
    return ConflictSide(
        entry=entry,
        commit=changes[0].commit if changes else None,
        summary=_summary(reader, entry) if entry is not None and is_read else {},
        changes=changes if is_read else [SideChange(each.commit, []) for each in changes],
        change_count=side.commit_count if len(changes) == len(side.commits) else len(changes),
        is_complete=side.is_complete and len(changes) == len(side.commits),
        differences=[SideDifference(each.kind, each.before, each.after) for each in side.changes.facets] if is_read else [],
    )


def _changes(reader: ContentsReader, side: KeySide) -> list[SideChange]:
    """The commits of a side, where the caller may read its history and list what they changed."""
    try:
        reader.session.check_history(reader.seen.rights)
    except (NotFoundError, ForbiddenError):
        return []
    told = (_change(reader, commit) for commit in side.commits)
    return [each for each in told if each is not None]


def _change(reader: ContentsReader, commit: SideCommit) -> SideChange | None:
    head = reader.session.catalog.resolve(id_text(commit.id))
    if head is None:
        return None
    entry = log_entry(head)
    [shown] = filter_commits(reader.session, [entry], reader.seen.rights)
    if not any(operation.key == commit.key for operation in shown.operations):
        return None
    return SideChange(commit_body(shown, is_hidden=hides(entry, shown), brief=0), list(map(_snapshot, commit.snapshots)))


def _snapshot(facts: SnapshotFacts) -> SideSnapshot:
    return SideSnapshot(
        snapshot_id=str(facts.snapshot_id),
        time=time_or_none(None if facts.time is None else Micros(facts.time)),
        operation=facts.operation,
        added_rows=facts.added_rows,
        removed_rows=facts.removed_rows,
        added_files=facts.added_files,
        removed_files=facts.removed_files,
        added_delete_files=facts.added_delete_files,
    )


def _is_readable(reader: ContentsReader, entry: CatalogEntryShown) -> bool:
    try:
        find_table(reader, entry.name, SHOW_PRIVILEGES)
    except HeadwaterError:
        return False
    return True


def _summary(reader: ContentsReader, entry: CatalogEntryShown) -> dict[str, str]:
    """What the current snapshot of a table says of itself; empty where the caller may not load the table, or it cannot be read."""
    if entry.snapshot_id is None:
        return {}
    try:
        read = find_table(reader, entry.name, SHOW_PRIVILEGES)
        snapshots = read.objects("snapshots")
    except HeadwaterError:
        return {}
    current = next((each for each in snapshots if str(each.get("snapshot-id")) == entry.snapshot_id), {})
    summary = current.get("summary")
    return {name: str(value) for name, value in summary.items()} if isinstance(summary, dict) else {}
