"""Whether what a table's snapshots need is there: manifest lists, manifests, and the files that these name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from headwater.catalogs.iceberg.avro import read_records
from headwater.catalogs.iceberg.grouping import File
from headwater.catalogs.iceberg.locations import comparable, is_within
from headwater.catalogs.iceberg.outcomes import Found, QuarantineCode, UnfitError
from headwater.catalogs.iceberg.storage import Storage
from headwater.errors import RefusedError

__all__ = ["EXAMPLES", "Level", "verify"]

Level = Literal["metadata", "manifests", "files"]

EXAMPLES = 5
"""How many missing files a message names; it always has their number."""

_DELETED = 2
"""The status of a manifest's entry for a file that the snapshot no longer has."""


def verify(found: Found, document: Mapping[str, Any], level: Level, *, allowed: Sequence[str], storage: Storage) -> Found:
    """The table again, with what was verified as evidence.

    document      its metadata, valid
    level         ``metadata``: nothing more; ``manifests``: every manifest list and manifest of every snapshot is there and can be
                  read; ``files``: also every data, delete and statistics file
    allowed       locations that all these may lie in
    raises        UnfitError with MISSING_FILES, BAD_MANIFEST, OUTSIDE_ALLOWED or NO_ACCESS; UnavailableError when the storage
                  does not answer
    source        Apache Iceberg, table specification, "Manifests"
    """
    if level == "metadata" or found.kind == "view":
        return found
    if reason := _sealed(found, document):
        return _with_evidence(found, f"not verified below its metadata: {reason}")
    check = _Check(found, level, allowed, storage)
    snapshots = document.get("snapshots") or []
    whole = {snapshot["snapshot-id"] for snapshot in snapshots if check.is_whole(snapshot)}
    if level == "files":
        check.note_missing(_statistics(document))
    if check.missing or check.broken:
        raise _unfit(check, found, len(snapshots), whole)
    return _with_evidence(found, f"{check.verified} files of {len(snapshots)} snapshots are there ({level})")


class _Check:
    """Walks from snapshots to files; a manifest that snapshots share is read once.

    missing       locations that should be files
    broken        manifests and lists that cannot be read, each with the reason
    verified      how many files were found to be there
    """

    def __init__(self, found: Found, level: Level, allowed: Sequence[str], storage: Storage) -> None:
        self.missing: set[str] = set()
        self.broken: dict[str, str] = {}
        self.verified = 0
        self._found = found
        self._level = level
        self._allowed = allowed
        self._storage = storage
        self._manifests: dict[str, bool] = {}
        self._folders: dict[str, None] = {}
        self._there: set[str] | None = None

    def is_whole(self, snapshot: Mapping[str, Any]) -> bool:
        """Whether all that a snapshot needs is there, as far down as the level goes."""
        location = snapshot.get("manifest-list")
        if isinstance(location, str):
            records = self._records(location)
            if records is None:
                return False
            manifests = [str(record.get("manifest_path")) for record in records]
        else:
            manifests = [manifest for manifest in snapshot.get("manifests") or () if isinstance(manifest, str)]
        verdicts = [self._is_manifest_whole(manifest) for manifest in manifests]  # each, also after a broken one
        return all(verdicts)

    def note_missing(self, locations: Iterator[str]) -> bool:
        """Whether all of these are there."""
        before = len(self.missing)
        for location in locations:
            self._check_allowed(location)
            if self._is_there(location):
                self.verified += 1
            else:
                self.missing.add(location)
        return len(self.missing) == before

    def _is_manifest_whole(self, location: str) -> bool:
        if location not in self._manifests:
            records = self._records(location)
            files = () if records is None or self._level == "manifests" else _living(records)
            self._manifests[location] = records is not None and self.note_missing(iter(files))
        return self._manifests[location]

    def _records(self, location: str) -> list[dict[str, Any]] | None:
        """The records of an Avro file; None, noted, when it is missing or broken."""
        self._check_allowed(location)
        try:
            data = self._storage.read(File(location, 0))
        except UnfitError as unfit:
            if unfit.code is not QuarantineCode.VANISHED:
                raise
            self.missing.add(location)
            return None
        try:
            records = read_records(data)
        except ValueError as fault:
            self.broken[location] = str(fault)
            return None
        self.verified += 1
        return records

    def _check_allowed(self, location: str) -> None:
        folder = location.rpartition("/")[0]
        if folder in self._folders:
            return
        if not any(is_within(location, outer) for outer in self._allowed):
            raise UnfitError(
                QuarantineCode.OUTSIDE_ALLOWED,
                f"{self._found.metadata_location} leads to {location}, outside of what the catalog allows"
                f" ({', '.join(self._allowed) or 'nothing'}): add it to the catalog's allowedLocations if it is meant to be there",
            )
        self._folders[folder] = None

    def _is_there(self, location: str) -> bool:
        """By one listing for all that lies in the table's folder; what lies elsewhere is asked for one by one."""
        if not is_within(location, self._found.directory):
            return self._storage.has(location)
        if self._there is None:
            files = list(self._storage.list_files(self._found.directory))
            if fault := next((file for file in files if file.fault), None):
                raise UnfitError(QuarantineCode.NO_ACCESS, f"{fault.path} cannot be listed: {fault.fault}")
            self._there = {comparable(file.path) for file in files}
        try:
            return comparable(location) in self._there
        except RefusedError:
            return False


def _sealed(found: Found, document: Mapping[str, Any]) -> str:
    """Why manifests are not read, or nothing."""
    if found.format_version > 3:
        return f"format version {found.format_version} is kept as it is"
    if any(snapshot.get("key-id") is not None for snapshot in document.get("snapshots") or ()):
        return "its manifests are encrypted"
    return ""


def _living(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Files that a manifest's entries have; those that they delete may be gone."""
    for record in records:
        file = record.get("data_file")
        if record.get("status") != _DELETED and isinstance(file, dict):
            yield str(file.get("file_path"))


def _statistics(document: Mapping[str, Any]) -> Iterator[str]:
    for name in ("statistics", "partition-statistics"):
        for entry in document.get(name) or ():
            if isinstance(entry, dict) and isinstance(entry.get("statistics-path"), str):
                yield entry["statistics-path"]


def _unfit(check: _Check, found: Found, total: int, whole: set[Any]) -> UnfitError:
    current = "it has no current one"
    if found.snapshot_id is not None:
        current = f"the current one is{'' if found.snapshot_id in whole else ' not'} among them"
    if check.broken:
        code = QuarantineCode.BAD_MANIFEST
        examples = "; ".join(f"{location} ({fault})" for location, fault in sorted(check.broken.items())[:EXAMPLES])
        fault = f"{len(check.broken)} of its manifests or lists cannot be read ({examples})"
    else:
        code = QuarantineCode.MISSING_FILES
        fault = f"{len(check.missing)} of its files are missing ({', '.join(sorted(check.missing)[:EXAMPLES])})"
    if check.broken and check.missing:
        fault += f", and {len(check.missing)} files are missing"
    return UnfitError(
        code,
        f"{found.metadata_location}: {fault}; {len(whole)} of its {total} snapshots are whole, {current}:"
        f" {_advice(found, whole)}",
    )


def _advice(found: Found, whole: set[Any]) -> str:
    if found.snapshot_id is None or found.snapshot_id in whole:
        return "restore what is missing, or expire the other snapshots with its engine"
    if whole:
        return "restore what is missing, or roll it back with its engine to a snapshot that is whole"
    return "restore what is missing from a backup"


def _with_evidence(found: Found, sentence: str) -> Found:
    return msgspec.structs.replace(found, evidence=(*found.evidence, sentence))
