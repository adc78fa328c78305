"""Updates of snapshots, and of what refers to them: branches, tags, statistics."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from headwater.iceberg.changes.change_errors import ChangeFormError, StaleSnapshotError
from headwater.iceberg.changes.document_entries import Entry, plain_entry, time_in
from headwater.iceberg.changes.table_draft import MAIN, TableDraft, refs_of
from headwater.iceberg.changes.table_updates import (
    AddSnapshotUpdate,
    RemovePartitionStatisticsUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    RemoveStatisticsUpdate,
    SetPartitionStatisticsUpdate,
    SetSnapshotRefUpdate,
    SetStatisticsUpdate,
)
from headwater.iceberg.spec.table_rules import NO_PARENT, RowSnapshot

_SEQUENCES_SINCE = 2
_ROWS_SINCE = 3
_REF_FIELDS = ("snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms")


def add_snapshot(draft: TableDraft, action: AddSnapshotUpdate) -> None:
    """Add a snapshot as it was sent, with all fields that it has.

    raises        StaleSnapshotError: its sequence number or its row ids are taken
    """
    snapshot = action.snapshot
    for plural, noun in (("schemas", "schema"), ("partition-specs", "partition spec"), ("sort-orders", "sort order")):
        if not draft.entries(plural):
            raise draft.refusal(f"Attempting to add a snapshot before a {noun} is added", ".snapshot")
    if any(entry.get("snapshot-id") == snapshot.snapshot_id for entry in draft.entries("snapshots")):
        raise draft.refusal(f"Snapshot already exists for id: {snapshot.snapshot_id}", ".snapshot.snapshot-id")
    _check_manifests(draft, snapshot)
    if draft.version >= _SEQUENCES_SINCE:
        _take_sequence_number(draft, snapshot)
    elif snapshot.sequence_number:
        raise draft.refusal(f"Sequence number must be 0 in v1: {snapshot.sequence_number}", ".snapshot.sequence-number")
    if draft.version >= _ROWS_SINCE:
        _take_row_ids(draft, snapshot)
    draft.document["snapshots"] = [*draft.entries("snapshots"), draft.update["snapshot"]]
    draft.added_snapshots.add(snapshot.snapshot_id)
    draft.updated_ms = snapshot.timestamp_ms


def _check_manifests(draft: TableDraft, snapshot: RowSnapshot) -> None:
    """Check that there is a manifest list; in format version 1 the manifests themselves may be listed instead."""
    path = f"{draft.path}.snapshot.manifest-list"
    if snapshot.manifest_list is None and (draft.version > 1 or snapshot.manifests is None):
        raise ChangeFormError(f"The request has no {path}", path=path)
    if snapshot.manifest_list is not None and (not isinstance(snapshot.manifest_list, str) or not snapshot.manifest_list):
        raise ChangeFormError(f"The request has {path}, which is not a non-empty string", path=path)


def _take_sequence_number(draft: TableDraft, snapshot: RowSnapshot) -> None:
    """Check that a snapshot follows the last one, and note its number.

    One without a parent may be older, as a replaced table's is. The last number of the table stays the highest, other than in Iceberg's
    Java server, which would then give a number twice.
    """
    path = f"{draft.path}.snapshot.sequence-number"
    last, number = draft.document.get("last-sequence-number") or 0, snapshot.sequence_number
    if number is None:
        raise ChangeFormError(f"The request has no {path}", path=path)
    if number < 0:
        raise ChangeFormError(f"The request has {path} {number}, which is negative", path=path)
    if number <= last and snapshot.parent_snapshot_id not in (None, NO_PARENT):
        raise StaleSnapshotError(
            f"Cannot add snapshot with sequence number {number} older than last sequence number {last}", path=path
        )
    draft.document["last-sequence-number"] = max(last, number)


def _take_row_ids(draft: TableDraft, snapshot: RowSnapshot) -> None:
    """Check that a snapshot's row ids are free, and note them as taken, with those that it left out."""
    path, following = f"{draft.path}.snapshot.first-row-id", draft.document.get("next-row-id") or 0
    first, added = snapshot.first_row_id, snapshot.added_rows
    if first is None:
        raise draft.refusal("Cannot add a snapshot: first-row-id is null", ".snapshot.first-row-id")
    if added is None or added < 0:
        raise draft.refusal(
            f"Cannot add a snapshot: added-rows is {'null' if added is None else added}", ".snapshot.added-rows"
        )
    if first < following:
        raise StaleSnapshotError(
            f"Cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {following}", path=path
        )
    draft.document["next-row-id"] = first + added


def set_snapshot_ref(draft: TableDraft, action: SetSnapshotRefUpdate) -> None:
    """Create a branch or tag, or move it; its retention is what the update says, and none where it says nothing."""
    name, refs = action.ref_name, refs_of(draft.document)
    ref = plain_entry({field: draft.update.get(field) for field in _REF_FIELDS})
    known = refs.get(name)
    if known is not None and plain_entry(known) == ref:
        return
    snapshot = next((entry for entry in draft.entries("snapshots") if entry.get("snapshot-id") == action.snapshot_id), None)
    if snapshot is None:
        raise draft.refusal(f"Cannot set {name} to unknown snapshot: {action.snapshot_id}", ".snapshot-id")
    if action.type != "branch":
        _check_tag(draft, action)
    if action.snapshot_id in draft.added_snapshots:
        draft.updated_ms = time_in(snapshot, "timestamp-ms")
    if name == MAIN:
        draft.updated_ms = draft.now_ms if draft.updated_ms is None else draft.updated_ms
        draft.set_main(action.snapshot_id, draft.updated_ms)
    draft.document["refs"] = refs | {name: ref}


def _check_tag(draft: TableDraft, action: SetSnapshotRefUpdate) -> None:
    if action.ref_name == MAIN:
        raise draft.refusal("Cannot set main to a tag: it is a branch", ".type")
    for field, value in (
        ("min-snapshots-to-keep", action.min_snapshots_to_keep),
        ("max-snapshot-age-ms", action.max_snapshot_age_ms),
    ):
        if value is not None:
            raise draft.refusal(f"Cannot set {field} for tag {action.ref_name}: only branches have it", f".{field}")


def remove_snapshot_ref(draft: TableDraft, action: RemoveSnapshotRefUpdate) -> None:
    """Remove a branch or tag, if it is there. Without ``main`` there is no current snapshot."""
    _remove_refs(draft, {action.ref_name})


def _remove_refs(draft: TableDraft, names: Collection[str]) -> None:
    refs = refs_of(draft.document)
    if set(names).isdisjoint(refs):
        return
    draft.document["refs"] = {name: ref for name, ref in refs.items() if name not in names}
    if MAIN in names:
        draft.remove_main()


def remove_snapshots(draft: TableDraft, action: RemoveSnapshotsUpdate) -> None:
    """Remove snapshots with their statistics, and the branches and tags on them. What is not there is gone already."""
    ids = set(action.snapshot_ids)
    snapshots = draft.entries("snapshots")
    kept = [snapshot for snapshot in snapshots if snapshot.get("snapshot-id") not in ids]
    if len(kept) == len(snapshots):
        return
    gone = {snapshot.get("snapshot-id") for snapshot in snapshots} & ids
    draft.document["snapshots"] = kept
    draft.has_removed_snapshots = True
    for name in ("statistics", "partition-statistics"):
        _remove_statistics(draft, name, gone)
    _remove_refs(draft, {name for name, ref in refs_of(draft.document).items() if ref.get("snapshot-id") in gone})


def set_statistics(draft: TableDraft, action: SetStatisticsUpdate) -> None:
    _put_statistics(draft, "statistics", action.statistics.snapshot_id)


def set_partition_statistics(draft: TableDraft, action: SetPartitionStatisticsUpdate) -> None:
    _put_statistics(draft, "partition-statistics", action.partition_statistics.snapshot_id)


def remove_statistics(draft: TableDraft, action: RemoveStatisticsUpdate) -> None:
    _remove_statistics(draft, "statistics", {action.snapshot_id})


def remove_partition_statistics(draft: TableDraft, action: RemovePartitionStatisticsUpdate) -> None:
    _remove_statistics(draft, "partition-statistics", {action.snapshot_id})


def _put_statistics(draft: TableDraft, name: str, snapshot_id: int) -> None:
    """Put a statistics file in the place of those that the snapshot has: it has one."""
    sent: Entry = draft.update[name]
    files = draft.entries(name)
    at = next((at for at, file in enumerate(files) if file.get("snapshot-id") == snapshot_id), len(files))
    kept: list[Any] = [file for file in files[at:] if file.get("snapshot-id") != snapshot_id]
    draft.document[name] = [*files[:at], sent, *kept]


def _remove_statistics(draft: TableDraft, name: str, snapshot_ids: Collection[Any]) -> None:
    files = draft.entries(name)
    kept = [file for file in files if file.get("snapshot-id") not in snapshot_ids]
    if len(kept) < len(files):
        draft.document[name] = kept
