"""What two sides did to a key, as plain data and as lines for a person who has to decide between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.catalogs import KeyComparison, KeySide, SideCommit
from headwater.cli.cli_session import identifier
from headwater.console import count_text, text_field, time_field
from headwater.iceberg.metadata_changes import FacetChange, SnapshotFacts
from headwater.redaction import printable
from headwater.terminal import shortened

WIDTH = 100
"""Columns that a line has at most; names of keys are never cut."""
_CELLS = 60

SIDE_FIELDS = {
    ".key": "where it stands on this side; null: it is gone, or never was there",
    ".contentId": "survives renames; null as for the key",
    ".commits": "those that changed it since the common ancestor, newest first, at most 10: hash, time, committer, authors, message,"
    " action, key, renamedFrom, and snapshots, each with snapshotId, parentId, time, operation, addedRows, removedRows, addedFiles,"
    " removedFiles and addedDeleteFiles; null: its writer did not say",
    ".commitCount": "how many there are",
    ".complete": "false: there may be more, for history was cut or is longer than 10,000 commits",
    ".snapshots": "how many snapshots are new since the common ancestor",
    ".expiredSnapshots": "how many are gone since then",
    ".changes": "what else differs from the common ancestor: kind, such as column, property or rows, before and after; null: nothing",
    ".metadataStored": "whether the Iceberg metadata is stored: else snapshots and columns are not known",
}


def side_data(side: KeySide) -> dict[str, Any]:
    """One side as plain data, as ``SIDE_FIELDS`` describes it."""
    return {
        "key": text_field(side.key),
        "contentId": None if side.value is None else str(side.value.content_id),
        "commits": [_commit_data(commit) for commit in side.commits],
        "commitCount": side.commit_count,
        "complete": side.is_complete,
        "snapshots": len(side.changes.snapshots),
        "expiredSnapshots": side.changes.expired,
        "changes": [{"kind": facet.kind, "before": facet.before, "after": facet.after} for facet in side.changes.facets],
        "metadataStored": side.has_metadata,
    }


def _commit_data(commit: SideCommit) -> dict[str, Any]:
    return {
        "hash": identifier(commit.id),
        "time": time_field(commit.time),
        "committer": commit.meta.committer,
        "authors": list(commit.meta.authors),
        "message": commit.meta.message,
        "action": commit.action.value,
        "key": str(commit.key),
        "renamedFrom": text_field(commit.renamed_from),
        "snapshots": [_snapshot_data(snapshot) for snapshot in commit.snapshots],
    }


def _snapshot_data(snapshot: SnapshotFacts) -> dict[str, Any]:
    return {
        "snapshotId": snapshot.snapshot_id,
        "parentId": snapshot.parent_id,
        "time": time_field(snapshot.time),
        "operation": snapshot.operation,
        "addedRows": snapshot.added_rows,
        "removedRows": snapshot.removed_rows,
        "addedFiles": snapshot.added_files,
        "removedFiles": snapshot.removed_files,
        "addedDeleteFiles": snapshot.added_delete_files,
    }


def comparison_lines(comparison: KeyComparison, names: tuple[str, str]) -> Iterator[str]:
    """The lines on both sides of a key, those of a side that did nothing left out.

    names         of the two sides
    """
    sides = (comparison.into, comparison.source)
    for name, side in zip(names, sides, strict=True):
        if side.is_changed or side.changes.facets or side.changes.snapshots:
            yield from side_lines(name, side)
    if not any(side.is_changed for side in sides):
        yield "  no commit since the common ancestor changed it on either side"


def side_lines(name: str, side: KeySide) -> Iterator[str]:
    """One line on a side, and below it its commits and what else differs."""
    least = "" if side.is_complete else "at least "
    gone = "" if side.key is not None else "; it is gone there"
    yield fitted(f"  {name}: {least}{count_text(side.commit_count, 'commit')}{sums_text(side)}{gone}")
    for commit in side.commits:
        yield from _commit_lines(commit)
    if side.commit_count > len(side.commits):
        yield f"    {side.commit_count - len(side.commits)} older commits: see headwater catalog history"
    for facet in side.changes.facets:
        yield fitted(f"    {_facet_text(facet)}")
    if side.changes.expired:
        yield f"    {count_text(side.changes.expired, 'snapshot')} expired"


def _commit_lines(commit: SideCommit) -> Iterator[str]:
    moved = f" {commit.renamed_from} → {commit.key}" if commit.renamed_from is not None else ""
    time = (time_field(commit.time) or "")[:19]
    yield fitted(
        f"    {identifier(commit.id)}  {time}Z  {commit.meta.person_text}  {commit.action}{moved}  {_line(commit.meta.message)}"
    )
    for snapshot in commit.snapshots:
        counts = snapshot_text(snapshot)
        yield f"      snapshot {snapshot.snapshot_id}  {snapshot.operation or 'unknown operation'}{f'  {counts}' if counts else ''}"


def snapshot_text(snapshot: SnapshotFacts) -> str:
    """The counts of a snapshot that are not zero: ``+5 rows, +1 file``."""
    counts = (
        ("+", snapshot.added_rows, "row"),
        ("−", snapshot.removed_rows, "row"),
        ("+", snapshot.added_files, "file"),
        ("−", snapshot.removed_files, "file"),
        ("+", snapshot.added_delete_files, "delete file"),
    )
    return ", ".join(f"{sign}{count_text(count, noun)}" for sign, count, noun in counts if count)


def sums_text(side: KeySide) -> str:
    """What the snapshots of a side that are new came to: `` (2 snapshots: +15 rows, +2 files)``; empty where there is none."""
    snapshots = side.changes.snapshots
    if not snapshots:
        return ""
    whole = SnapshotFacts(
        snapshot_id=0,
        parent_id=None,
        time=None,
        operation=None,
        added_rows=sum(each.added_rows or 0 for each in snapshots),
        removed_rows=sum(each.removed_rows or 0 for each in snapshots),
        added_files=sum(each.added_files or 0 for each in snapshots),
        removed_files=sum(each.removed_files or 0 for each in snapshots),
        added_delete_files=sum(each.added_delete_files or 0 for each in snapshots),
    )
    counts = snapshot_text(whole)
    return f" ({count_text(len(snapshots), 'snapshot')}{f': {counts}' if counts else ''})"


def _facet_text(facet: FacetChange) -> str:
    before, after = (None if text is None else shortened(_line(text), _CELLS) for text in (facet.before, facet.after))
    if before is None:
        return f"{facet.kind}: + {after}"
    return f"{facet.kind}: − {before}" if after is None else f"{facet.kind}: {before} → {after}"


def fitted(text: str) -> str:
    """A line that is no longer than ``WIDTH``."""
    return shortened(printable(text), WIDTH)


def _line(text: str) -> str:
    return " ".join(text.split())
