"""Checks that the files of a table's snapshots exist: manifest lists, manifests, and the files that these name."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
import structlog

from headwater.errors import RefusedError
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.layout import FileInfo
from headwater.iceberg.location import canonical_location, comparable_location, is_within
from headwater.iceberg.manifest_entries import (
    UNKNOWN,
    ListedManifest,
    read_manifest_entries,
    read_manifest_list,
    unlisted_manifest,
)
from headwater.iceberg.metadata_json import statistics_files
from headwater.iceberg.survey_outcomes import AcceptedTable, QuarantineCode, RejectedTable

EXAMPLES = 5
"""How many missing files a message names; it always has their number."""

_log = structlog.get_logger()
T = TypeVar("T")


def verify_manifests(
    accepted: AcceptedTable,
    document: Mapping[str, Any],
    level: Literal["manifests", "files"],
    *,
    allowed: Sequence[str],
    tolerate: Container[str] = (),
    storage: LakeStorage,
) -> AcceptedTable:
    """Verify a table's files; returns the table with the verification as evidence.

    document      its metadata, valid
    level         ``manifests``: every manifest list and manifest of every snapshot is there and can be read; ``files``: also every
                  data, delete and statistics file
    allowed       locations that all these may lie in
    tolerate      codes of faults for which a table is not refused
    raises        RejectedTable with MISSING_FILES, BAD_MANIFEST, OUTSIDE_ALLOWED, BAD_LOCATION or NO_ACCESS; UnavailableError when the
                  storage does not answer
    source        Apache Iceberg, table specification, "Manifests" and "Manifest Lists"
    """
    if accepted.kind == "view":
        return accepted
    if reason := _sealed(accepted, document):
        return _with_evidence(accepted, f"not verified below its metadata: {reason}")
    check = _SnapshotCheck(accepted, level, allowed, storage)
    snapshots = document.get("snapshots") or []
    whole = {snapshot["snapshot-id"] for snapshot in snapshots if check.is_whole(snapshot)}
    if level == "files":
        check.note_missing(statistics_files(document))
    if check.missing or check.broken or check.contradicted:
        unfit = _rejection(check, accepted, len(snapshots), whole)
        if unfit.code not in tolerate or check.missing:
            raise unfit
        return _with_evidence(accepted, f"tolerated ({unfit.code}): {unfit}")
    return _with_evidence(accepted, f"{check.verified} files of {len(snapshots)} snapshots are there ({level})")


class _Manifest(NamedTuple):
    """A manifest that was read: its bytes and entries, and whether all its files exist."""

    size_bytes: int
    entries: int
    is_whole: bool


class _SnapshotCheck:
    """Walks from snapshots to files; a manifest that snapshots share is read once.

    missing       locations that should be files
    broken        manifests and lists that cannot be read, each with the reason
    contradicted  manifests that differ from the lists that name them, each with the difference
    verified      the number of existing files
    """

    def __init__(
        self, accepted: AcceptedTable, level: Literal["manifests", "files"], allowed: Sequence[str], storage: LakeStorage
    ) -> None:
        self.missing: set[str] = set()
        self.broken: dict[str, str] = {}
        self.contradicted: dict[str, str] = {}
        self.verified = 0
        self._accepted = accepted
        self._level = level
        self._allowed = allowed
        self._storage = storage
        self._manifests: dict[str, _Manifest | None] = {}
        self._folders: dict[str, None] = {}
        self._existing: set[str] | None = None

    def is_whole(self, snapshot: Mapping[str, Any]) -> bool:
        """True if all files that a snapshot needs exist, to the depth of the level."""
        location = snapshot.get("manifest-list")
        if isinstance(location, str):
            manifests = self._listed(location)
            if manifests is None:
                return False
        else:
            manifests = [unlisted_manifest(path) for path in snapshot.get("manifests") or () if isinstance(path, str)]
        verdicts = [self._is_manifest_whole(manifest) for manifest in manifests]  # each, also after a broken one
        return all(verdicts)

    def note_missing(self, locations: Iterable[str]) -> bool:
        """Note the missing ones of some files; True if all exist."""
        before = len(self.missing)
        for location in locations:
            self._check_allowed(location)
            if self._is_there(location):
                self.verified += 1
            else:
                self.missing.add(location)
        return len(self.missing) == before

    def _is_manifest_whole(self, listed: ListedManifest) -> bool:
        """True if a manifest is as a list describes it, and its files exist."""
        location = listed.path
        if location not in self._manifests:
            self._manifests[location] = self._look_at(location)
        manifest = self._manifests[location]
        if manifest is None:
            return False
        if contradiction := _contradiction(listed, manifest):
            self.contradicted[location] = contradiction
            return False
        return manifest.is_whole

    def _look_at(self, location: str) -> _Manifest | None:
        """Read a manifest; None, and noted, if it is missing or broken."""
        data = self._content(location)
        entries = None if data is None else self._parsed(location, data, read_manifest_entries)
        if data is None or entries is None:
            return None
        files = () if self._level == "manifests" else entries.paths  # deleted ones may be gone
        return _Manifest(len(data), entries.total, self.note_missing(files))

    def _listed(self, location: str) -> list[ListedManifest] | None:
        """What a manifest list names; None, and noted, if it is missing or broken."""
        data = self._content(location)
        return None if data is None else self._parsed(location, data, read_manifest_list)

    def _content(self, location: str) -> bytes | None:
        self._check_allowed(location)
        try:
            return self._storage.read_file(FileInfo(canonical_location(location), 0))
        except RefusedError as fault:
            raise RejectedTable(
                QuarantineCode.BAD_LOCATION, f"{self._accepted.metadata_location} leads to {location!r}: {fault}"
            ) from fault
        except RejectedTable as unfit:
            if unfit.code is QuarantineCode.VANISHED:
                self.missing.add(location)
            elif unfit.code is QuarantineCode.CORRUPT:
                self.broken[location] = str(unfit)
            else:
                raise
            return None

    def _parsed(self, location: str, data: bytes, parse: Callable[[bytes], T]) -> T | None:
        """What is in an Avro file; None, and noted, if it is broken or a record is not of its kind."""
        try:
            parsed = parse(data)
        except ValueError as fault:
            _log.info("broken Avro", location=location, fault=repr(fault.__cause__))
            self.broken[location] = str(fault)
            return None
        self.verified += 1
        return parsed

    def _check_allowed(self, location: str) -> None:
        folder = location.rpartition("/")[0]
        if folder in self._folders:
            return
        if not any(is_within(location, outer) for outer in self._allowed):
            raise RejectedTable(
                QuarantineCode.OUTSIDE_ALLOWED,
                f"{self._accepted.metadata_location} leads to {location}, outside of what the catalog allows"
                f" ({', '.join(self._allowed) or 'nothing'}): add it to the catalog's allowedLocations if it is meant to be there",
            )
        self._folders[folder] = None

    def _is_there(self, location: str) -> bool:
        """True if a file exists: one listing covers the table's folder; files elsewhere are looked up one by one."""
        if not is_within(location, self._accepted.directory):
            return self._has(location)
        if self._existing is None:
            files = list(self._storage.list_files(self._accepted.directory))
            if fault := next((file for file in files if file.fault), None):
                raise RejectedTable(QuarantineCode.NO_ACCESS, f"{fault.path} cannot be listed: {fault.fault}")
            self._existing = {comparable_location(file.path) for file in files}
        try:
            return comparable_location(location) in self._existing
        except RefusedError:
            return False

    def _has(self, location: str) -> bool:
        try:
            return self._storage.has_file(canonical_location(location))
        except RefusedError as fault:
            raise RejectedTable(
                QuarantineCode.BAD_LOCATION, f"{self._accepted.metadata_location} leads to {location!r}: {fault}"
            ) from fault


def _sealed(accepted: AcceptedTable, document: Mapping[str, Any]) -> str:
    """Why manifests are not read, or nothing."""
    if not accepted.is_sound:
        return "its shape is only tolerated"
    if accepted.format_version > 3:
        return f"format version {accepted.format_version} is kept as it is"
    if any(snapshot.get("key-id") is not None for snapshot in document.get("snapshots") or ()):
        return "its manifests are encrypted"
    return ""


def _contradiction(listed: ListedManifest, manifest: _Manifest) -> str:
    """The difference between a manifest and its list, or nothing. Older writers may state less, which is no difference."""
    if 0 < listed.length_bytes != manifest.size_bytes:
        return f"it has {manifest.size_bytes} bytes, and {listed.length_bytes} in its list"
    if listed.total not in (UNKNOWN, manifest.entries):
        return f"it has {manifest.entries} entries, and {listed.total} in its list"
    return ""


def _rejection(check: _SnapshotCheck, accepted: AcceptedTable, total: int, whole: set[Any]) -> RejectedTable:
    current = "it has no current one"
    if accepted.snapshot_id is not None:
        current = f"the current one is{'' if accepted.snapshot_id in whole else ' not'} among them"
    faults = []
    if check.broken:
        faults.append(f"{len(check.broken)} of its manifests or lists cannot be read ({_examples(check.broken)})")
    if check.contradicted:
        faults.append(
            f"{len(check.contradicted)} of its manifests contradict the lists that name them ({_examples(check.contradicted)})"
        )
    code = QuarantineCode.BAD_MANIFEST if faults else QuarantineCode.MISSING_FILES
    if check.missing and faults:
        faults.append(f"{len(check.missing)} files are missing")
    elif check.missing:
        faults.append(f"{len(check.missing)} of its files are missing ({', '.join(sorted(check.missing)[:EXAMPLES])})")
    fault = ", and ".join(faults)
    return RejectedTable(
        code,
        f"{accepted.metadata_location}: {fault}; {len(whole)} of its {total} snapshots are whole, {current}:"
        f" {_advice(accepted, whole)}",
    )


def _examples(faults: Mapping[str, str]) -> str:
    return "; ".join(f"{location} ({fault})" for location, fault in sorted(faults.items())[:EXAMPLES])


def _advice(accepted: AcceptedTable, whole: set[Any]) -> str:
    if accepted.snapshot_id is None or accepted.snapshot_id in whole:
        return "restore what is missing, or expire the other snapshots with its engine"
    if whole:
        return "restore what is missing, or roll it back with its engine to a snapshot that is whole"
    return "restore what is missing from a backup"


def _with_evidence(accepted: AcceptedTable, sentence: str) -> AcceptedTable:
    return msgspec.structs.replace(accepted, evidence=(*accepted.evidence, sentence))
