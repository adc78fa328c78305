"""The rules of snapshots, of references to them, and of their statistics and logs."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from headwater.iceberg.spec.document_shape import (
    Int,
    JsonRecord,
    Long,
    Name,
    Texts,
    find_repeated,
    inconsistent,
    invalid,
    read_value,
    shown_value,
)

CLOCK_SLACK_MS = 60_000
"""How far entries of a log may go back in time: writers' clocks differ. The same minute as in Iceberg's own reader."""
_MAIN = "main"
_PositiveInt = Annotated[int, Meta(ge=1, lt=2**31, description="a positive 32-bit integer")]
_PositiveLong = Annotated[int, Meta(ge=1, le=2**63 - 1, description="a positive 64-bit integer")]


class TableSnapshot(JsonRecord, frozen=True):
    """A snapshot. One written under an older format stays as it was: without sequence number, summary or row ids, manifests inline."""

    snapshot_id: Long
    timestamp_ms: Long
    manifest_list: Any = None
    manifests: Any = None
    parent_snapshot_id: Long | None = None
    schema_id: Int | None = None
    summary: Texts | None = None
    key_id: str | None = None
    sequence_number: Long | None = None


class RowSnapshot(TableSnapshot, frozen=True):
    """A snapshot of format version 3, which numbers rows."""

    first_row_id: Long | None = None
    added_rows: Long | None = None


class SnapshotReference(JsonRecord, frozen=True):
    snapshot_id: Long
    type: Literal["branch", "tag"]
    min_snapshots_to_keep: _PositiveInt | None = None
    max_snapshot_age_ms: _PositiveLong | None = None
    max_ref_age_ms: _PositiveLong | None = None


class TimedEntry(JsonRecord, frozen=True):
    """A log entry: a value that was current, and since when or until when."""

    timestamp_ms: Long


class SnapshotLogEntry(TimedEntry, frozen=True):
    snapshot_id: Long


class MetadataLogEntry(TimedEntry, frozen=True):
    metadata_file: str


class PartitionStatistics(JsonRecord, frozen=True):
    snapshot_id: Long
    statistics_path: Name
    file_size_in_bytes: Long


class StatisticsBlob(JsonRecord, frozen=True):
    type: str
    snapshot_id: Long
    sequence_number: Long
    fields: Sequence[Int]
    properties: Texts | None = None


class TableStatistics(PartitionStatistics, frozen=True):
    """A statistics file. Statistics are informational, so their snapshots may be gone."""

    file_footer_size_in_bytes: Long
    blob_metadata: Sequence[StatisticsBlob]


class EncryptionKey(JsonRecord, frozen=True):
    """An encryption key. The specification's example calls its bytes ``key-metadata``, so that name is read, too."""

    key_id: str
    key_metadata: str | None = None
    encrypted_key_metadata: Any = None
    encrypted_by_id: str | None = None
    properties: Texts | None = None


def check_snapshots(snapshots: Sequence[TableSnapshot], last_sequence_number: int | None) -> set[int]:
    """Check the snapshots; returns their ids.

    last_sequence_number        None in format version 1, which has no sequence numbers
    raises                      FaultError
    """
    for at, snapshot in enumerate(snapshots):
        if snapshot.manifest_list.__class__ is not str or not snapshot.manifest_list:
            _check_manifests(snapshot, f"snapshots[{at}].")
        number = snapshot.sequence_number
        if last_sequence_number is not None and number is not None and not 0 <= number <= last_sequence_number:
            raise inconsistent(f"has snapshots[{at}].sequence-number {number}, and last-sequence-number {last_sequence_number}")
    ids = [snapshot.snapshot_id for snapshot in snapshots]
    if (twice := find_repeated(ids)) is not None:
        raise inconsistent(f"has snapshot {twice} twice")
    return set(ids)


def _check_manifests(snapshot: TableSnapshot, place: str) -> None:
    """Check the inline manifests of a snapshot without a manifest list, as format version 1 allows."""
    if snapshot.manifest_list is not None or snapshot.manifests is None:
        read_value(snapshot.manifest_list, Name, f"{place}manifest-list")
    read_value(snapshot.manifests, Sequence[str], f"{place}manifests")


def check_rows(snapshots: Sequence[RowSnapshot], next_row: int) -> None:
    """Check the row ids that snapshots assign to the rows that they added.

    raises        FaultError
    """
    for at, snapshot in enumerate(snapshots):
        first, added = snapshot.first_row_id, snapshot.added_rows
        if first is None:
            continue
        place = f"snapshots[{at}]."
        if added is None:
            raise invalid(f"has {place}first-row-id, but no {place}added-rows")
        if first < 0 or added < 0:
            raise invalid(f"has {place}first-row-id {first} and added-rows {added}: neither may be negative")
        if first + added > next_row:
            raise inconsistent(f"has {place}first-row-id {first} with {added} added-rows, beyond next-row-id {next_row}")


def check_references(refs: Mapping[str, SnapshotReference], snapshot_ids: Collection[int], current: int | None) -> int | None:
    """Check the references to snapshots: branches, tags, and the current one. Without a ``main`` branch there is an implicit one.

    returns       the id of the current snapshot; None where there is none: absent, null or -1
    raises        FaultError
    """
    current = None if current == -1 else current
    if current is not None and current not in snapshot_ids:
        raise inconsistent(f"has current-snapshot-id {current}, which is not among its {len(snapshot_ids)} snapshots")
    for name, ref in refs.items():
        for limit, value in (
            ("min-snapshots-to-keep", ref.min_snapshots_to_keep),
            ("max-snapshot-age-ms", ref.max_snapshot_age_ms),
        ):
            if value is not None and ref.type != "branch":
                raise invalid(f"has refs[{shown_value(name)}].{limit}, which only branches have")
        if ref.snapshot_id not in snapshot_ids:
            raise inconsistent(
                f"has the ref {shown_value(name)} on snapshot {ref.snapshot_id}, which is not among its snapshots"
            )
    main = refs.get(_MAIN)
    if main is not None and main.type != "branch":
        raise inconsistent("has main as a tag: it is a branch")
    if main is not None and main.snapshot_id != current:
        raise inconsistent(f"has main on snapshot {main.snapshot_id}, but current-snapshot-id is {current}")
    return current


def check_log(entries: Sequence[TimedEntry], name: str, *, until: int | None = None) -> None:
    """Check that the entries of a log are in order of time, none later than the document's own time.

    raises        FaultError
    """
    times = [entry.timestamp_ms for entry in entries]
    if until is not None:
        times.append(until)
    for at, (earlier, later) in enumerate(itertools.pairwise(times)):
        if later < earlier - CLOCK_SLACK_MS:
            raise inconsistent(f"has a {name} that goes back in time by {earlier - later} ms after {name}[{at}]")


def check_partition_statistics(files: Sequence[PartitionStatistics]) -> None:
    """Check that a snapshot has at most one file of partition statistics.

    raises        FaultError
    """
    if (twice := find_repeated([file.snapshot_id for file in files])) is not None:
        raise inconsistent(f"has two partition-statistics of snapshot {twice}: one is possible")


def check_encryption(keys: Sequence[EncryptionKey], snapshots: Sequence[TableSnapshot]) -> None:
    """Check the keys of an encrypted table, and that they include those of the snapshots.

    raises        FaultError
    """
    for at, key in enumerate(keys):
        if key.key_metadata is None:
            read_value(key.encrypted_key_metadata, str, f"encryption-keys[{at}].encrypted-key-metadata")
    if (twice := find_repeated([key.key_id for key in keys])) is not None:
        raise inconsistent(f"has the encryption key {shown_value(twice)} twice")
    ids = {key.key_id for key in keys}
    for snapshot in snapshots:
        if snapshot.key_id is not None and snapshot.key_id not in ids:
            raise inconsistent(
                f"has snapshot {snapshot.snapshot_id} with the key {shown_value(snapshot.key_id)}, which is not among encryption-keys"
            )
