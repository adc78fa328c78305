"""Who refers to one file: which stored versions of which tables, by which snapshots. Reads what it needs anew, and writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec

from headwater.errors import CorruptionError, NotFoundError, RefusedError, UnavailableError
from headwater.iceberg.manifest_entries import read_manifest_entries, read_manifest_list
from headwater.iceberg.metadata_json import objects_in, unpack_metadata
from headwater.iceberg.survey_outcomes import RejectedTable
from headwater.lake_files.document_files import DocumentFiles, document_files
from headwater.lake_files.live_walk import StorageOf
from headwater.lake_files.manifest_reader import SILENT, StorageAnswers, Unanswered, read_lake_file
from headwater.lake_files.path_keys import loose_key, strict_key
from headwater.lake_files.stored_versions import StoredVersion
from headwater.store import RealmKey
from headwater.throttle import Fence

_READERS = 16
_AT_ONCE = 8 * _READERS
T = TypeVar("T")
R = TypeVar("R")
Versions = Callable[[], Iterable[StoredVersion]]
"""Begins a scan of all stored versions, and may be called twice."""


class VersionReferrer(NamedTuple):
    """A stored version that refers to the file.

    table         its uuid, or its location where it has none
    is_strict     whether it names exactly this file
    snapshots     the table's snapshots that have it; empty for what the document names itself
    named_as      the path as it is written
    """

    version: StoredVersion
    table: str
    location: str
    snapshots: tuple[int, ...]
    is_strict: bool
    named_as: str


@dataclass(slots=True)
class _Match:
    """Compares paths with the file: exactly, and as the most careless reader would."""

    strict: str | None
    loose: str

    @classmethod
    def of(cls, path: str) -> _Match:
        return cls(strict_key(path), loose_key(path))

    def first(self, paths: Iterable[str]) -> str | None:
        """The first of the paths that is the file, an exact one before others."""
        found = [path for path in paths if loose_key(path) == self.loose]
        return next((path for path in found if self.is_exact(path)), found[0] if found else None)

    def is_exact(self, path: str) -> bool:
        return strict_key(path) == self.strict


@dataclass(slots=True)
class _Found:
    """What leads to the file: manifests and lists, each with the path as it is written in them."""

    manifests: dict[str, str] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)


def find_referrers(
    versions: Versions,
    storage_of: StorageOf,
    path: str,
    *,
    limit: int,
    unread: dict[str, str] | None = None,
    fence: Fence = lambda: None,
) -> list[VersionReferrer]:
    """Find the stored versions that refer to a file.

    limit         at most so many
    unread        filled with what cannot be read, and why: it refers to nothing here
    fence         called before each batch of files is read; what it raises ends the search
    """
    match, found = _Match.of(path), _Found()
    reader = _Reader(storage_of, {} if unread is None else unread)
    lists: dict[str, RealmKey] = {}
    manifests: dict[str, RealmKey] = {}
    for version in versions():
        document = reader.document(version)
        if document is not None:
            lists.update(dict.fromkeys(document.lists, version.realm))
            manifests.update(dict.fromkeys(document.manifests, version.realm))
    in_lists: dict[str, list[str]] = defaultdict(list)
    for (location, realm), named in _each(lists.items(), lambda entry: reader.manifests_of(*entry), fence):
        for manifest in named:
            in_lists[manifest].append(location)
            manifests.setdefault(manifest, realm)
    for (manifest, _), files in _each(manifests.items(), lambda entry: reader.files_of(*entry), fence):
        named_as = match.first([manifest, *files])
        if named_as is not None:
            found.manifests[manifest] = named_as
            found.lists.update(dict.fromkeys(in_lists[manifest], named_as))
    found.lists.update({location: location for location in lists if match.first([location]) is not None})
    return list(islice(_referring(versions(), reader, match, found), limit))


def _referring(versions: Iterable[StoredVersion], reader: _Reader, match: _Match, found: _Found) -> Iterator[VersionReferrer]:
    for version in versions:
        document = reader.document(version)
        if document is None:
            continue
        itself = match.first(file.path for file in document.files)
        leading = [*(set(document.lists) & found.lists.keys()), *(set(document.manifests) & found.manifests.keys())]
        named = itself or next(((found.lists | found.manifests)[path] for path in leading), None)
        if named is not None:
            snapshots = _snapshots(reader.document_text(version), set(leading)) if leading else ()
            place = document.places[0]
            yield VersionReferrer(version, document.table, place, snapshots, match.is_exact(named), named)


def _snapshots(text: bytes, leading: set[str]) -> tuple[int, ...]:
    """The snapshots whose lists, or own manifests, lead to the file."""
    document: dict[str, Any] = msgspec.json.decode(text)
    return tuple(
        snapshot["snapshot-id"]
        for snapshot in objects_in(document, "snapshots")
        if leading & {snapshot.get("manifest-list"), *(snapshot.get("manifests") or ())} and "snapshot-id" in snapshot
    )


@dataclass(slots=True)
class _Reader:
    """Reads what may lead to the file. Its methods may be called by several threads."""

    storage_of: StorageOf
    unread: dict[str, str]
    answers: StorageAnswers = field(default_factory=StorageAnswers)

    def document(self, version: StoredVersion) -> DocumentFiles | None:
        what = version.metadata_location or f"version {version.version_id}"
        return self._attempt(what, lambda: document_files(self.document_text(version), version.metadata_location))

    def document_text(self, version: StoredVersion) -> bytes:
        if version.read_text is not None:
            return version.read_text()
        assert version.metadata_location is not None
        return unpack_metadata(self._read(version.metadata_location, version.realm), path=version.metadata_location)

    def manifests_of(self, location: str, realm: RealmKey) -> Sequence[str]:
        listed = self._attempt(location, lambda: read_manifest_list(self._read(location, realm)))
        return [manifest.path for manifest in listed or ()]

    def files_of(self, location: str, realm: RealmKey) -> Sequence[str]:
        entries = self._attempt(location, lambda: read_manifest_entries(self._read(location, realm)))
        return () if entries is None else entries.paths

    def _attempt(self, what: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except (CorruptionError, NotFoundError, RefusedError, RejectedTable, UnavailableError, ValueError) as fault:
            self.unread[what] = str(fault)
            return None

    def _read(self, path: str, realm: RealmKey) -> bytes:
        if self.answers.is_silent(path):
            raise UnavailableError(str(SILENT))
        try:
            return self.answers.note_answer(path, read_lake_file(self.storage_of(realm, path), path))
        except UnavailableError as fault:
            self.answers.note_answer(path, Unanswered(str(fault)))
            raise


def _each(entries: Iterable[T], read: Callable[[T], R], fence: Fence) -> Iterator[tuple[T, R]]:
    with ThreadPoolExecutor(_READERS, thread_name_prefix="refer") as pool:
        rest = iter(entries)
        while some := list(islice(rest, _AT_ONCE)):
            fence()
            yield from zip(some, pool.map(read, some), strict=True)
