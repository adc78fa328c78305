"""What a commit takes up: files that a report has marked as referred to by nobody, and that a new version of a table names again.

Looked up before the commit, for tables with marks alone, or for all tables where files in the catalog's prefixes are marked: the new
manifest lists are read, and of their manifests those that the present version has not. What cannot be read takes up all marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Any
from uuid import UUID

import structlog

from headwater.catalogs import Put
from headwater.catalogs.content import IcebergTable
from headwater.catalogs.file_marks import NO_TABLE, take_up_files
from headwater.errors import HeadwaterError
from headwater.iceberg.layout import FileInfo
from headwater.iceberg.location import canonical_location
from headwater.iceberg.manifest_entries import read_manifest_entries, read_manifest_list
from headwater.iceberg.metadata_json import join_metadata, logged_files, statistics_files
from headwater.iceberg.survey_outcomes import RejectedTable
from headwater.iceberg_catalog.branch_session import BranchState
from headwater.iceberg_catalog.lake_files import DocumentStorage
from headwater.iceberg_catalog.lake_values import decoded_document
from headwater.lake_files.mark_filters import MarkedFiles
from headwater.store import ObjectId, RealmStore

_MOST_TAKEN = 10_000
"""So many files are entered one by one; beyond that all marks of the table are taken up."""
_AT_ONCE = 10_000
_log = structlog.get_logger()
Document = Mapping[str, Any]
_Taken = dict[UUID, set[bytes] | None]


class FileTakes:
    """Examines commits to one catalog before they happen."""

    def __init__(self, rows: RealmStore, catalog_id: str, storage: DocumentStorage) -> None:
        self._rows = rows
        self._catalog_id = catalog_id
        self._marked = MarkedFiles(rows, catalog_id)
        self._storage = storage

    def take_up(self, puts: Mapping[UUID, Put], present: Callable[[], BranchState]) -> None:
        """Enter what puts of tables take up, before they are committed.

        puts          by content id
        present       reads the state that they change; called if one of the tables has marks
        """
        filters = self._marked.find_tables(puts)
        if not filters:
            return
        looked = puts if NO_TABLE in filters else filters  # any table may name what lies in a prefix
        state = present()
        held = state.find_many(list(state.keys_of(looked).values()))
        locations = {content.metadata_location for content in held.values() if isinstance(content, IcebergTable)}
        found: _Taken = {}
        for content_id in looked:
            asked = {owner: filters[owner] for owner in (content_id, NO_TABLE) if owner in filters}
            if _location(puts[content_id]) not in locations:
                _join(found, self._taken_by(puts[content_id], state.find_metadata(content_id), asked))
        taken = {owner: digests or () for owner, digests in found.items() if digests is None or digests}
        if taken:
            take_up_files(self._rows, self._catalog_id, taken)

    def _taken_by(self, put: Put, before_text: bytes | None, filters: Mapping[UUID, ObjectId]) -> _Taken:
        """The digests of the marked files that a version names anew, by whose filter has them; None: all of that one."""
        everything: _Taken = dict.fromkeys(filters)
        if put.metadata is None:
            return everything
        after = decoded_document(join_metadata(put.metadata))
        before = {} if before_text is None else decoded_document(before_text)
        taken: dict[UUID, set[bytes]] = {owner: set() for owner in filters}
        named = chain([_location(put)], self._named_anew(after, before))
        try:
            while paths := list(islice(named, _AT_ONCE)):
                for owner, filter_id in filters.items():
                    taken[owner].update(self._marked.marked_digests(filter_id, paths))
        except (HeadwaterError, RejectedTable, ValueError) as fault:
            _log.warning(
                "all marks of a table are taken up: its new files cannot be read", fault=str(fault), realm=self._rows.realm
            )
            return everything
        return {owner: digests if len(digests) <= _MOST_TAKEN else None for owner, digests in taken.items()}

    def _named_anew(self, after: Document, before: Document) -> Iterator[str]:
        yield from set(statistics_files(after)) - set(statistics_files(before))
        yield from set(logged_files(after)) - set(logged_files(before))
        old_lists, new_lists = _lists(before), _lists(after)
        added = [path for path in new_lists if path not in old_lists]
        yield from added
        known = self._current_manifests(before) if added else set()
        manifests = _inline_manifests(after) - _inline_manifests(before)
        for path in added:
            manifests.update(listed.path for listed in read_manifest_list(self._read(path)))
        for path in sorted(manifests - known):
            yield path
            yield from read_manifest_entries(self._read(path)).paths

    def _current_manifests(self, before: Document) -> set[str]:
        """The manifests of the present snapshot: their files are live. Where they cannot be read, more is looked at."""
        current = before.get("current-snapshot-id")
        path = next((each.get("manifest-list") for each in _snapshots(before) if each.get("snapshot-id") == current), None)
        if not isinstance(path, str):
            return set()
        try:
            return {listed.path for listed in read_manifest_list(self._read(path))}
        except (HeadwaterError, RejectedTable, ValueError):
            return set()

    def _read(self, location: str) -> bytes:
        return self._storage.lake.read_file(FileInfo(canonical_location(location), 0))


def _join(found: _Taken, more: Mapping[UUID, set[bytes] | None]) -> None:
    """Add what another version takes up; None stays."""
    for owner, digests in more.items():
        known = found.get(owner, set())
        found[owner] = None if known is None or digests is None else known | digests


def _location(put: Put) -> str:
    assert isinstance(put.content, IcebergTable)
    return put.content.metadata_location


def _snapshots(document: Document) -> list[Mapping[str, Any]]:
    return [each for each in document.get("snapshots") or () if isinstance(each, Mapping)]


def _lists(document: Document) -> dict[str, None]:
    return dict.fromkeys(path for each in _snapshots(document) if isinstance(path := each.get("manifest-list"), str))


def _inline_manifests(document: Document) -> set[str]:
    """The manifests that snapshots of version 1 name themselves."""
    return {path for each in _snapshots(document) for path in each.get("manifests") or () if isinstance(path, str)}
