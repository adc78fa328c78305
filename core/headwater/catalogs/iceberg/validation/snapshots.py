"""Snapshots, what names them, and what is kept about them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

from headwater.catalogs.iceberg.validation.faults import inconsistent, invalid, shown
from headwater.catalogs.iceberg.validation.fields import (
    INT,
    LIST,
    LONG,
    NAME,
    TEXT,
    TEXTS,
    Kind,
    Object,
    entries,
    find,
    is_int,
    is_long,
    need,
)
from headwater.catalogs.iceberg.validation.shapes import PlainFile, PlainMoment, PlainSnapshot, PlainVersion, Shape, fitting

__all__ = [
    "METADATA_LOG",
    "SNAPSHOT_LOG",
    "VERSION_LOG",
    "check_encryption",
    "check_log",
    "check_refs",
    "check_snapshots",
    "check_statistics",
    "current_snapshot",
]

CLOCK_SLACK_MS = 60_000
"""How far entries of a log may go back in time: writers' clocks differ. The same minute as in Iceberg's own reader."""
_MAIN = "main"
_FOR_BRANCHES = ("min-snapshots-to-keep", "max-snapshot-age-ms")


def check_snapshots(document: Object, version: int) -> dict[int, Object]:
    """The snapshots by their ids.

    One from a time when the table had an older format stays as it was: without sequence number, summary or row ids, and with its
    manifests named inline.

    raises        FaultError
    """
    snapshots = entries(document, "snapshots")
    plain = fitting(snapshots, PlainSnapshot)
    if plain is not None and _are_sound(plain, document, version):
        return dict(zip((one.snapshot_id for one in plain), snapshots, strict=True))
    found: dict[int, Object] = {}
    last = document["last-sequence-number"] if version > 1 else 0
    for at, snapshot in enumerate(snapshots):
        place = f"snapshots[{at}]."
        number = need(snapshot, "snapshot-id", LONG, place)
        if number in found:
            raise inconsistent(f"has snapshot {number} twice")
        found[number] = snapshot
        need(snapshot, "timestamp-ms", LONG, place)
        if not isinstance(snapshot.get("manifest-list"), str) or not snapshot["manifest-list"]:
            _check_manifests(snapshot, place)
        for name, kind in (("parent-snapshot-id", LONG), ("schema-id", INT), ("summary", TEXTS), ("key-id", TEXT)):
            if name in snapshot:
                find(snapshot, name, kind, place)
        sequence = find(snapshot, "sequence-number", LONG, place)
        if version > 1 and sequence is not None and not 0 <= sequence <= last:
            raise inconsistent(f"has {place}sequence-number {sequence}, and last-sequence-number {last}")
        if version > 2:
            _check_rows(snapshot, document["next-row-id"], place)
    return found


def _are_sound(snapshots: list[PlainSnapshot], document: Object, version: int) -> bool:
    """Whether nothing is wrong with snapshots whose fields are each as they should be."""
    if len({one.snapshot_id for one in snapshots}) < len(snapshots):
        return False
    last = document["last-sequence-number"] if version > 1 else 0
    if version > 1 and not all(one.sequence_number is None or 0 <= one.sequence_number <= last for one in snapshots):
        return False
    return version <= 2 or all(_has_its_rows(one, document["next-row-id"]) for one in snapshots)


def _has_its_rows(snapshot: PlainSnapshot, next_row: int) -> bool:
    first, added = snapshot.first_row_id, snapshot.added_rows
    return first is None or (added is not None and first >= 0 and 0 <= added <= next_row - first)


def _check_manifests(snapshot: Object, place: str) -> None:
    """Without a manifest list, the manifests are named inline, as format version 1 may."""
    if snapshot.get("manifest-list") is not None or snapshot.get("manifests") is None:
        need(snapshot, "manifest-list", NAME, place)
    if not all(isinstance(one, str) for one in need(snapshot, "manifests", LIST, place)):
        raise invalid(f"has {place}manifests that are no texts")


def _check_rows(snapshot: Object, next_row: int, place: str) -> None:
    first, added = find(snapshot, "first-row-id", LONG, place), find(snapshot, "added-rows", LONG, place)
    if first is None:
        return
    if added is None:
        raise invalid(f"has {place}first-row-id, but no {place}added-rows")
    if first < 0 or added < 0:
        raise invalid(f"has {place}first-row-id {first} and added-rows {added}: neither may be negative")
    if first + added > next_row:
        raise inconsistent(f"has {place}first-row-id {first} with {added} added-rows, beyond next-row-id {next_row}")


def current_snapshot(document: Object, snapshots: Mapping[int, Object]) -> int | None:
    """The id of the current snapshot; None where there is none: absent, null or -1.

    raises        FaultError
    """
    current = document.get("current-snapshot-id")
    if current is None or (current == -1 and is_int(current)):
        return None
    if not is_long(current):
        raise invalid(f"has current-snapshot-id {shown(current)}, which is no {LONG.words}")
    if current not in snapshots:
        raise inconsistent(f"has current-snapshot-id {current}, which is not among its {len(snapshots)} snapshots")
    return int(current)


def check_refs(document: Object, snapshots: Mapping[int, Object], current: int | None) -> None:
    """Branches and tags. Without any, there is ``main`` by implication.

    raises        FaultError
    """
    refs = document.get("refs")
    if refs is None:
        return
    if not isinstance(refs, dict) or not all(isinstance(ref, dict) for ref in refs.values()):
        raise invalid("has refs that are no object of objects")
    for name, ref in refs.items():
        place = f"refs[{shown(name)}]."
        number = need(ref, "snapshot-id", LONG, place)
        kind = need(ref, "type", TEXT, place)
        if kind not in ("branch", "tag"):
            raise invalid(f"has {place}type {shown(kind)}, which is none of branch, tag")
        for limit in (*_FOR_BRANCHES, "max-ref-age-ms"):
            _check_limit(ref, limit, place, kind)
        if number not in snapshots:
            raise inconsistent(f"has the ref {shown(name)} on snapshot {number}, which is not among its snapshots")
    main = refs.get(_MAIN)
    if main is not None:
        if main["type"] != "branch":
            raise inconsistent("has main as a tag: it is a branch")
        if main["snapshot-id"] != current:
            raise inconsistent(f"has main on snapshot {main['snapshot-id']}, but current-snapshot-id is {current}")


def _check_limit(ref: Object, name: str, place: str, kind: str) -> None:
    if ref.get(name) is None:
        return
    if name in _FOR_BRANCHES and kind != "branch":
        raise invalid(f"has {place}{name}, which only branches have")
    if need(ref, name, INT if name.startswith("min-") else LONG, place) < 1:
        raise invalid(f"has {place}{name} {ref[name]}, which is not positive")


class Log(NamedTuple):
    """A list of what was the current one of something until when: its name, and the field that an entry has beside its time."""

    name: str
    wanted: str
    kind: Kind
    plain: type[Shape]


SNAPSHOT_LOG = Log("snapshot-log", "snapshot-id", LONG, PlainMoment)
METADATA_LOG = Log("metadata-log", "metadata-file", TEXT, PlainFile)
VERSION_LOG = Log("version-log", "version-id", INT, PlainVersion)


def check_log(document: Object, log: Log) -> list[Object]:
    """The entries of a log that is in order of time, the document's own last.

    raises        FaultError
    """
    name = log.name
    found = entries(document, name)
    for at, entry in enumerate(found if fitting(found, log.plain) is None else ()):
        need(entry, "timestamp-ms", LONG, f"{name}[{at}].")
        need(entry, log.wanted, log.kind, f"{name}[{at}].")
    times = [entry["timestamp-ms"] for entry in found]
    if "last-updated-ms" in document:
        times.append(document["last-updated-ms"])
    for at, (earlier, later) in enumerate(itertools.pairwise(times)):
        if later < earlier - CLOCK_SLACK_MS:
            raise inconsistent(f"has a {name} that goes back in time by {earlier - later} ms after {name}[{at}]")
    return found


def check_statistics(document: Object) -> None:
    """Files with statistics. They are informational, so that their snapshots may be gone.

    raises        FaultError
    """
    for at, file in enumerate(entries(document, "statistics")):
        place = f"statistics[{at}]."
        _check_file(file, place)
        need(file, "file-footer-size-in-bytes", LONG, place)
        need(file, "blob-metadata", LIST, place)
        for number, blob in enumerate(entries(file, "blob-metadata", place)):
            inside = f"{place}blob-metadata[{number}]."
            need(blob, "type", TEXT, inside)
            need(blob, "snapshot-id", LONG, inside)
            need(blob, "sequence-number", LONG, inside)
            if not all(is_int(one) for one in need(blob, "fields", LIST, inside)):
                raise invalid(f"has {inside}fields that are no integers")
            find(blob, "properties", TEXTS, inside)
    seen = set()
    for at, file in enumerate(entries(document, "partition-statistics")):
        _check_file(file, f"partition-statistics[{at}].")
        if file["snapshot-id"] in seen:
            raise inconsistent(f"has two partition-statistics of snapshot {file['snapshot-id']}: one is possible")
        seen.add(file["snapshot-id"])


def _check_file(file: Object, place: str) -> None:
    need(file, "snapshot-id", LONG, place)
    need(file, "statistics-path", NAME, place)
    need(file, "file-size-in-bytes", LONG, place)


def check_encryption(document: Object, snapshots: Mapping[int, Object]) -> None:
    """The keys of an encrypted table, and that the snapshots' are among them. The specification's example calls a key's bytes
    ``key-metadata``, so that is read, too.

    raises        FaultError
    """
    keys = set()
    for at, key in enumerate(entries(document, "encryption-keys")):
        place = f"encryption-keys[{at}]."
        number = need(key, "key-id", TEXT, place)
        if number in keys:
            raise inconsistent(f"has the encryption key {shown(number)} twice")
        keys.add(number)
        if find(key, "key-metadata", TEXT, place) is None:
            need(key, "encrypted-key-metadata", TEXT, place)
        find(key, "encrypted-by-id", TEXT, place)
        find(key, "properties", TEXTS, place)
    for snapshot in snapshots.values():
        if snapshot.get("key-id") is not None and snapshot["key-id"] not in keys:
            raise inconsistent(
                f"has snapshot {snapshot['snapshot-id']} with the key {shown(snapshot['key-id'])}, which is not among encryption-keys"
            )
